//! A sheet of SVG: lines, areas, marks and words. How they look is a class of [`super::style`].
//!
//! Numbers are written to a tenth of a pixel, so that the same data give the same bytes and files stay small.
//! A coordinate that is not finite never reaches the sheet.

use std::fmt::Write as _;

use super::style::STYLE;

/// A point in pixels; y grows downwards.
pub type Point = (f64, f64);

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// Where words stand relative to their point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// To the right of it.
    Start,
    /// Around it.
    Middle,
    /// To the left of it.
    End,
}

/// The drawing under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    width: f64,
    height: f64,
    body: String,
}

impl Sheet {
    /// An empty sheet.
    pub const fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A line through the points.
    pub fn line(&mut self, points: &[Point], class: &str) {
        let points = joined(points);
        self.add(format_args!("<polyline class=\"{class}\" points=\"{points}\"/>"));
    }

    /// A filled area with this edge.
    pub fn polygon(&mut self, points: &[Point], class: &str) {
        let points = joined(points);
        self.add(format_args!("<polygon class=\"{class}\" points=\"{points}\"/>"));
    }

    /// A rectangle; `tip` is what the pointer is told, if anything.
    pub fn rectangle(&mut self, area: Area, class: &str, tip: &str) {
        let Area { left, top, width, height } = area;
        if !(left + top + width + height).is_finite() {
            return;
        }
        let tip = titled(tip);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">{tip}</rect>"
        ));
    }

    /// A disk; `tip` is what the pointer is told, if anything.
    pub fn disk(&mut self, (x, y): Point, radius: f64, class: &str, tip: &str) {
        if !(x + y).is_finite() {
            return;
        }
        let tip = titled(tip);
        self.add(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\">{tip}</circle>"
        ));
    }

    /// A mark whose shape tells series apart without colour.
    pub fn mark(&mut self, at: Point, series: usize, class: &str) {
        let (x, y) = at;
        let corners: &[Point] = match series % 6 {
            0 => return self.disk(at, 4.2, class, ""),
            1 => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
            2 => &[(0.0, -5.2), (5.0, 4.0), (-5.0, 4.0)],
            3 => &[(0.0, -5.8), (5.0, 0.0), (0.0, 5.8), (-5.0, 0.0)],
            4 => &[(0.0, 5.2), (5.0, -4.0), (-5.0, -4.0)],
            _ => &[(-6.0, -2.5), (6.0, -2.5), (6.0, 2.5), (-6.0, 2.5)],
        };
        let corners: Vec<Point> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        self.polygon(&corners, class);
    }

    /// Words on one line.
    pub fn text(&mut self, (x, y): Point, words: &str, anchor: Anchor, class: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let words = escaped(words);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{words}</text>"
        ));
    }

    /// Words that read upwards, centred on the point.
    pub fn upward(&mut self, (x, y): Point, words: &str, class: &str) {
        let words = escaped(words);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x:.1} {y:.1})\">{words}</text>"
        ));
    }

    /// What `draw` draws leads to the place called `anchor` on the page, if there is one; `tip` is what the pointer
    /// is told.
    pub fn linked(&mut self, anchor: &str, tip: &str, draw: impl FnOnce(&mut Self)) {
        if anchor.is_empty() {
            return draw(self);
        }
        let (anchor, tip) = (escaped(anchor), titled(tip));
        self.add(format_args!("<a href=\"#{anchor}\">{tip}"));
        draw(self);
        self.add(format_args!("</a>"));
    }

    /// The sheet as a file of its own, with its style.
    pub fn to_file(&self, title: &str) -> String {
        let style = format!("<style>{STYLE}</style>\n");
        self.element(title, &style, " xmlns=\"http://www.w3.org/2000/svg\"")
    }

    /// The sheet as part of a page that has the style.
    pub fn to_inline(&self, title: &str) -> String {
        self.element(title, "", "")
    }

    fn element(&self, title: &str, style: &str, namespace: &str) -> String {
        let Self { width, height, body } = self;
        let title = escaped(title);
        format!(
            "<svg{namespace} class=\"fig\" role=\"img\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\">\n<title>{title}</title>\n{style}\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n{body}</svg>\n"
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        _ = writeln!(self.body, "{element}");
    }
}

fn titled(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) }
}

fn joined(points: &[Point]) -> String {
    let mut text = String::with_capacity(points.len() * 12);
    for (x, y) in points.iter().filter(|(x, y)| (x + y).is_finite()) {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        _ = write!(text, "{space}{x:.1},{y:.1}");
    }
    text
}

/// Words that cannot be taken for markup, nor end an attribute; what XML cannot hold at all is left out.
pub fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            control if control < ' ' && !matches!(control, '\n' | '\t') => {}
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_the_markup() {
        let mut sheet = Sheet::new(10.0, 10.0);
        sheet.text((1.0, 2.0), "a < b & \"c\"\u{1}", Anchor::End, "small");
        let text = sheet.to_file("<t>");
        assert!(text.contains(">a &lt; b &amp; &quot;c&quot;</text>"), "{text}");
        assert!(text.contains("<title>&lt;t&gt;</title>"), "{text}");
    }

    #[test]
    fn points_are_rounded_and_those_that_are_none_are_left_out() {
        let mut sheet = Sheet::new(10.0, 10.0);
        sheet.line(&[(0.0, 1.04), (f64::NAN, 1.0), (1.0, f64::INFINITY), (2.26, 3.0)], "l0");
        assert!(sheet.to_inline("").contains("points=\"0.0,1.0 2.3,3.0\""));
        sheet.disk((f64::NAN, 0.0), 1.0, "f0", "");
        assert!(!sheet.to_inline("").contains("NaN"));
    }
}
