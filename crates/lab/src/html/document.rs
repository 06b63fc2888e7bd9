//! The frame of every page: its head, its style, its contents, its figures.

use std::fmt::Write as _;

use super::markup::{csv_link, prose, table};
use crate::figures::Figure;
use crate::figures::sheet::escaped;
use crate::figures::style::STYLE;

/// Sections from which on a page has a list of contents.
const CONTENTS_MIN: usize = 6;

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--soft:#5c6168;--line:#ddd;--paper:#fff;--field:#f4f5f6;--link:#0067a3;\
--good:#005a8c;--bad:#b34700;--open:#666}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e4e4;--soft:#a0a4aa;--line:#383b40;--paper:#16181b;--field:#212429;--link:#6cb8ea;\
--good:#6cb8ea;--bad:#f58a4b;--open:#aaa}}\
body{font:16px/1.5 system-ui,'DejaVu Sans',Verdana,sans-serif;color:var(--ink);background:var(--paper);\
max-width:56rem;margin:2rem auto;padding:0 1rem}\
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}a{color:var(--link)}\
figure{margin:1.5rem 0 2.5rem}figure svg{max-width:100%;height:auto}figcaption{color:var(--soft);font-size:.9rem}\
h3{margin:0 0 .3rem}.wide{overflow-x:auto;max-height:30rem;overflow-y:auto}\
table{border-collapse:collapse;font-size:.88rem}th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid var(--line)}\
.wide th,.wide td{white-space:nowrap;font-variant-numeric:tabular-nums}.wide .n{text-align:right}\
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:.85rem;background:var(--field)}\
pre{padding:.8rem;overflow-x:auto}.cmd{display:block;padding:.4rem .7rem;user-select:all;white-space:pre-wrap;overflow-wrap:anywhere}\
.note{color:var(--soft);font-size:.9rem}summary{cursor:pointer}dt{font-weight:bold}\
nav ol{columns:2;padding-left:1.4rem}.point{margin:0 0 1rem}.point p{margin:0 0 .2rem}\
:target{outline:3px solid var(--link);outline-offset:4px}.fig a:hover,.fig a:focus{opacity:.6}\
.claims{table-layout:fixed;width:100%;font-size:.92rem}.claims th,.claims td{vertical-align:top;overflow-wrap:anywhere}\
.claim{border-top:1px solid var(--line);padding:.7rem 0}.claim p{margin:0 0 .3rem}\
.verdict{font-weight:bold;white-space:nowrap}.reproduced{color:var(--good)}.not_reproduced{color:var(--bad)}.undecided{color:var(--open)}\
.counts{padding:0;list-style:none}.counts li{margin:0 0 .7rem;font-size:1.15rem}.counts small{font-size:.8rem;line-height:1.3;display:block}.counts a{white-space:nowrap}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1.5rem}dd{margin:0}\
@media(max-width:40rem){dl{display:block}dd{margin:0 0 .4rem}nav ol{columns:1}.claims thead,.claims colgroup{display:none}.claims,.claims tbody,.claims tr,.claims td{display:block}\
.claims td{padding:.1rem 0}.claims td:empty{display:none}.claims tr{border-bottom:1px solid var(--line);padding:.7rem 0}.claims td{border:0}.claims td[data-label]:before{content:attr(data-label)': ';color:var(--soft)}}\
@media print{body{max-width:none;margin:0;font-size:11pt}figure,.claims tbody,.point{break-inside:avoid}.wide{max-height:none}h2,h3{break-after:avoid}nav{display:none}}";

/// A page, and its figures as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub html: String,
    /// Name and text of each SVG file.
    pub figures: Vec<(String, String)>,
}

/// A page under way.
#[derive(Debug)]
pub struct Document {
    title: String,
    lead: String,
    body: String,
    sections: Vec<(String, String)>,
    figures: Vec<(String, String)>,
}

impl Document {
    /// An empty page; `lead` is markup that stands before the list of contents.
    pub fn new(title: &str, lead: String) -> Self {
        let (title, body) = (title.to_owned(), String::new());
        Self { title, lead, body, sections: Vec::new(), figures: Vec::new() }
    }

    /// Begins a section; `id` is its place on the page.
    pub fn section(&mut self, id: &str, heading: &str) {
        let heading = escaped(heading);
        // Writing to a String cannot fail, here and below.
        _ = writeln!(self.body, "<h2 id=\"{id}\">{heading}</h2>");
        self.sections.push((id.to_owned(), heading));
    }

    /// Adds markup.
    pub fn add(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// Adds a figure with its data; `prefix` sets its name apart from like ones on the page.
    pub fn figure(&mut self, prefix: &str, figure: &Figure) {
        let Figure { title, caption, data, .. } = figure;
        let name = format!("{prefix}{}", figure.name);
        let link = csv_link(&data.to_csv(), &format!("{name}.csv"), &format!("{name}.csv"));
        _ = write!(
            self.body,
            "<figure id=\"{name}\">\n<h3>{}</h3>\n{}<figcaption>{}</figcaption>\n\
             <details><summary>Data ({} rows)</summary>\n<p>{link}</p>\n{}</details>\n</figure>\n",
            escaped(title),
            figure.to_inline(),
            prose(caption),
            data.rows.len(),
            table(data)
        );
        self.figures.push((format!("{name}.svg"), figure.to_svg()));
    }

    /// The page.
    pub fn finish(self) -> Page {
        let Self { title, lead, body, sections, figures } = self;
        let title = escaped(&title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}: report</title>\n\
             <style>{PAGE_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{lead}"
        );
        if sections.len() >= CONTENTS_MIN {
            html.push_str("<nav><ol>\n");
            for (id, heading) in &sections {
                _ = writeln!(html, "<li><a href=\"#{id}\">{heading}</a></li>");
            }
            html.push_str("</ol></nav>\n");
        }
        html.push_str(&body);
        html.push_str("</body>\n</html>\n");
        Page { html, figures }
    }
}

/// Names and values; those without a value are left out.
pub fn facts(facts: &[(&str, String)]) -> String {
    let mut html = "<dl>\n".to_owned();
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    html.push_str("</dl>\n");
    html
}
