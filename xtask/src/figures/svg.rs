//! A sheet of SVG: lines, areas, circles and words, in the few styles that the figures use.
//!
//! Colours are those of Okabe and Ito (Color Universal Design, 2008), which stay apart for colour-blind readers;
//! width, dash or place repeats what a colour says.

use std::fmt::Write as _;

/// Ink of axes and words.
pub const INK: &str = "#333333";
/// Grid lines.
pub const GRID: &str = "#dddddd";
/// Okabe-Ito blue.
pub const BLUE: &str = "#0072B2";
/// Okabe-Ito sky blue.
pub const SKY: &str = "#56B4E9";
/// Okabe-Ito bluish green.
pub const GREEN: &str = "#009E73";
/// Okabe-Ito orange.
pub const ORANGE: &str = "#E69F00";
/// Okabe-Ito vermillion.
pub const VERMILLION: &str = "#D55E00";

const DASH: &str = " stroke-dasharray=\"5 3\"";

/// Where a word stands relative to its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// To the right of it.
    Start,
    /// Around it.
    Middle,
    /// To the left of it.
    End,
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Colour.
    pub colour: &'static str,
    /// Width in pixels.
    pub width: f64,
    /// Dashed or not.
    pub dashed: bool,
}

impl Stroke {
    /// A solid line.
    pub const fn solid(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dashed: false }
    }
}

/// The sheet; y grows downwards.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// A white sheet.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A line through the points.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let points = joined(points);
        let Stroke { colour, width, dashed } = stroke;
        let dash = if dashed { DASH } else { "" };
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dash}/>"
        ));
    }

    /// A curve that leaves `from` and reaches `to` level.
    pub fn curve(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let ((x0, y0), (x1, y1)) = (from, to);
        let middle = f64::midpoint(x0, x1);
        let Stroke { colour, width, dashed } = stroke;
        let dash = if dashed { DASH } else { "" };
        self.add(format_args!(
            "<path d=\"M{x0:.1},{y0:.1} C{middle:.1},{y0:.1} {middle:.1},{y1:.1} {x1:.1},{y1:.1}\" \
             fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>"
        ));
    }

    /// A curve that leaves `from` downwards and reaches `to` from above, with an arrowhead there.
    pub fn arrow(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let ((x0, y0), (x1, y1)) = (from, to);
        let Stroke { colour, width, .. } = stroke;
        let (length, half) = (5.0 + 2.0 * width, 2.2 + 1.4 * width);
        self.descent((x0, y0), (x1, y1 - length), stroke);
        self.head((x1, y1), (half, length), colour);
    }

    /// The same without an arrowhead.
    pub fn descent(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let ((x0, y0), (x1, y1)) = (from, to);
        let middle = f64::midpoint(y0, y1);
        let Stroke { colour, width, .. } = stroke;
        self.add(format_args!(
            "<path d=\"M{x0:.1},{y0:.1} C{x0:.1},{middle:.1} {x1:.1},{middle:.1} {x1:.1},{y1:.1}\" fill=\"none\" \
             stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    /// A filled triangle of this half width and length whose tip is down at the point.
    fn head(&mut self, (x, y): (f64, f64), (half, length): (f64, f64), colour: &str) {
        let points = joined(&[(x - half, y - length), (x + half, y - length), (x, y)]);
        self.add(format_args!("<polygon points=\"{points}\" fill=\"{colour}\"/>"));
    }

    /// A horizontal arrow.
    pub fn sideways(&mut self, from: f64, to: f64, y: f64, stroke: Stroke) {
        let Stroke { colour, width, .. } = stroke;
        let tail = to - 7.0 * (to - from).signum();
        self.line(&[(from, y), (tail, y)], Stroke::solid(colour, width));
        let points = joined(&[(tail, y - 3.6), (tail, y + 3.6), (to, y)]);
        self.add(format_args!("<polygon points=\"{points}\" fill=\"{colour}\"/>"));
    }

    /// A rectangle with round corners.
    pub fn plate(&mut self, (x, y, width, height): (f64, f64, f64, f64), fill: &str, edge: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"7\" \
             fill=\"{fill}\" stroke=\"{edge}\"/>"
        ));
    }

    /// A filled area with this edge, a quarter opaque.
    pub fn area(&mut self, points: &[(f64, f64)], colour: &str) {
        let points = joined(points);
        self.add(format_args!(
            "<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\".22\"/>"
        ));
    }

    /// A disk with an edge.
    pub fn disk(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, edge: &str) {
        self.add(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" stroke=\"{edge}\"/>"
        ));
    }

    /// Words in the size of titles and labels.
    pub fn text(&mut self, x: f64, y: f64, words: &str, anchor: Anchor) {
        self.words(x, y, words, anchor, "");
    }

    /// The same in bold.
    pub fn bold(&mut self, x: f64, y: f64, words: &str, anchor: Anchor) {
        self.words(x, y, words, anchor, " font-weight=\"bold\"");
    }

    /// Words in the size of ticks and legends.
    pub fn small(&mut self, x: f64, y: f64, words: &str, anchor: Anchor) {
        self.words(x, y, words, anchor, " font-size=\"14\"");
    }

    /// Words in the size of the numbers of nodes.
    pub fn tiny(&mut self, x: f64, y: f64, words: &str, colour: &str) {
        let style = format!(" font-size=\"10.5\" fill=\"{colour}\"");
        self.words(x, y, words, Anchor::Middle, &style);
    }

    /// Words that read upwards, centred on the point.
    pub fn upward(&mut self, x: f64, y: f64, words: &str) {
        let style = format!(" font-size=\"14\" transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.words(x, y, words, Anchor::Middle, &style);
    }

    /// The file; `title` is what screen readers say.
    pub fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"16\" \
             fill=\"{INK}\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    fn words(&mut self, x: f64, y: f64, words: &str, anchor: Anchor, style: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let words = escaped(words);
        self.add(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{style}>{words}</text>"));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

fn joined(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 12);
    for (x, y) in points {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{space}{x:.1},{y:.1}");
    }
    text
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_the_markup() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 2.0, "a < b & c", Anchor::End);
        let text = svg.finish("<t>");
        assert!(text.contains(">a &lt; b &amp; c</text>"), "{text}");
        assert!(text.contains("<title>&lt;t&gt;</title>"), "{text}");
    }

    #[test]
    fn points_are_rounded_to_a_tenth_of_a_pixel() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.line(&[(0.0, 1.04), (2.26, 3.0)], Stroke::solid(INK, 1.0));
        assert!(svg.finish("").contains("points=\"0.0,1.0 2.3,3.0\""));
    }
}
