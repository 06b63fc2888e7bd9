//! CoRE link format (RFC 6690): what `/.well-known/core` answers, and what groups are made of.
//!
//! ```text
//!   </sensors/temp>;rt="temperature-c";if="sensor";ct=40,</t>;obs
//!    target         attributes, with a token, a quoted string or no value
//! ```
//!
//! [`links`] walks over a document without allocation, [`Filter`] is the query of s4.1, and
//! [`Writer`] makes documents. Which links there are, and what a relative target is relative to, are
//! the application's.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

use crate::{DecodeError, Problem};

/// Attributes whose value is a list, its members apart by blanks: RFC 6690 s2 (`rel`, `rev`, `rt`,
/// `if`) and RFC 7252 s7.2.1 (`ct`).
const LISTS: [&str; 5] = ["rel", "rev", "rt", "if", "ct"];

/// One link of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// What it points at, as written between `<` and `>`.
    pub target: &'a str,
    /// Checked: attributes, each with the semicolon before it.
    attributes: &'a str,
}

/// An attribute of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value as written, without the quotes around it.
    raw: Option<&'a str>,
}

impl<'a> Attribute<'a> {
    /// Its value, with escapes in a quoted string undone; `None` if there is no `=`.
    pub fn value(&self) -> Option<Cow<'a, str>> {
        let raw = self.raw?;
        if !raw.contains('\\') {
            return Some(Cow::Borrowed(raw));
        }
        let mut value = String::with_capacity(raw.len());
        let mut characters = raw.chars();
        while let Some(one) = characters.next() {
            value.extend(if one == '\\' { characters.next() } else { Some(one) });
        }
        Some(Cow::Owned(value))
    }
}

impl<'a> Link<'a> {
    /// Walks over its attributes.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let mut cursor = Cursor { text: self.attributes, at: 0 };
        core::iter::from_fn(move || cursor.attribute().ok().flatten())
    }
    /// The value of its first attribute of this name; empty if the attribute has none.
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        // RFC 6690 s3: of `rt`, `if`, `sz` and the like only the first occurrence counts.
        let found = self.attributes().find(|attribute| attribute.name == name)?;
        Some(found.value().unwrap_or(Cow::Borrowed("")))
    }
}

/// Walks over the links of a document; after an error it ends.
///
/// Blanks and line breaks between parts are skipped: RFC 6690 has none, documents in the wild do.
///
/// ```
/// use lowmesh_wire::link_format::links;
/// let document = r#"</temp>;rt="temperature-c";ct=0,</led>"#;
/// let links: Vec<_> = links(document).collect::<Result<_, _>>()?;
/// assert_eq!(links[0].target, "/temp");
/// assert_eq!(links[0].attribute("rt").as_deref(), Some("temperature-c"));
/// assert_eq!(links[1].attributes().count(), 0);
/// # Ok::<(), lowmesh_wire::DecodeError>(())
/// ```
pub fn links(document: &str) -> impl Iterator<Item = Result<Link<'_>, DecodeError>> {
    let mut cursor = Some(Cursor { text: document, at: 0 });
    let mut first = true;
    core::iter::from_fn(move || {
        let link = cursor.as_mut()?.link(core::mem::take(&mut first)).transpose();
        if !matches!(link, Some(Ok(_))) {
            cursor = None;
        }
        link
    })
}

/// Reads from `text` on from octet `at`.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next link, behind a comma if it is not the first of its document.
    fn link(&mut self, first: bool) -> Result<Option<Link<'a>>, DecodeError> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok(None);
        }
        if !first && !self.eat(',') {
            return Err(self.error("separator", Problem::Value));
        }
        self.skip_blanks();
        if !self.eat('<') {
            return Err(self.error("target", self.problem_here()));
        }
        let Some(len) = self.rest().find('>') else {
            return Err(self.error("target", Problem::Truncated));
        };
        let target = &self.rest()[..len];
        self.at += len + 1;
        let start = self.at;
        while self.attribute()?.is_some() {}
        Ok(Some(Link { target, attributes: &self.text[start..self.at] }))
    }
    /// The next attribute, if there is a semicolon.
    fn attribute(&mut self) -> Result<Option<Attribute<'a>>, DecodeError> {
        self.skip_blanks();
        if !self.eat(';') {
            return Ok(None);
        }
        self.skip_blanks();
        let name = self.run(is_name);
        if name.is_empty() {
            return Err(self.error("attribute name", self.problem_here()));
        }
        self.skip_blanks();
        if !self.eat('=') {
            return Ok(Some(Attribute { name, raw: None }));
        }
        self.skip_blanks();
        let raw = if self.eat('"') { self.quoted()? } else { self.run(is_token) };
        if raw.is_empty() && !self.text[..self.at].ends_with('"') {
            return Err(self.error("attribute value", self.problem_here()));
        }
        Ok(Some(Attribute { name, raw: Some(raw) }))
    }
    /// The inside of a quoted string whose opening quote has been read.
    fn quoted(&mut self) -> Result<&'a str, DecodeError> {
        let mut escaped = false;
        for (len, octet) in self.rest().bytes().enumerate() {
            match octet {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let inside = &self.rest()[..len];
                    self.at += len + 1;
                    return Ok(inside);
                }
                _ => {}
            }
        }
        Err(self.error("attribute value", Problem::Truncated))
    }
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += usize::from(found);
        found
    }
    fn run(&mut self, fits: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|one| !fits(one)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }
    fn skip_blanks(&mut self) {
        self.run(|one| matches!(one, ' ' | '\t' | '\r' | '\n'));
    }
    fn problem_here(&self) -> Problem {
        if self.rest().is_empty() { Problem::Truncated } else { Problem::Value }
    }
    const fn error(&self, field: &'static str, problem: Problem) -> DecodeError {
        DecodeError { header: "link format", field, offset: self.at, problem }
    }
}

/// parmname of RFC 5987 s3.2.1, and the star at its end.
const fn is_name(one: char) -> bool {
    one.is_ascii_alphanumeric()
        || matches!(
            one,
            '!' | '#' | '$' | '&' | '+' | '-' | '.' | '^' | '_' | '`' | '|' | '~' | '*'
        )
}

/// ptokenchar of RFC 6690 s2.
const fn is_token(one: char) -> bool {
    one.is_ascii_graphic() && !matches!(one, '"' | ',' | ';' | '\\')
}

/// A query on `/.well-known/core`, as in `?rt=temperature*` (RFC 6690 s4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    name: &'a str,
    pattern: &'a str,
    prefix: bool,
}

impl<'a> Filter<'a> {
    /// Reads one argument of a query, percent-decoded, as in a Uri-Query; `None` if it is not
    /// `name=pattern`.
    ///
    /// ```
    /// use lowmesh_wire::link_format::{Filter, links};
    /// let filter = Filter::parse("rt=temp*").expect("a name and a pattern");
    /// let found = links(r#"</a>;rt="light temperature",</b>"#).flatten();
    /// assert_eq!(found.filter(|link| filter.matches(link)).count(), 1);
    /// ```
    pub fn parse(argument: &'a str) -> Option<Self> {
        let (name, pattern) = argument.split_once('=')?;
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        // RFC 6690 s4.1: a `*` at the end matches any end; anywhere else it is a character.
        let (pattern, prefix) = match pattern.strip_suffix('*') {
            Some(start) => (start, true),
            None => (pattern, false),
        };
        Some(Self { name, pattern, prefix })
    }
    /// Whether a link passes: its target for the name `href`, else one of its attributes.
    pub fn matches(&self, link: &Link<'_>) -> bool {
        if self.name == "href" {
            return self.fits(link.target);
        }
        let mut named = link.attributes().filter(|attribute| attribute.name == self.name);
        named.any(|attribute| {
            let value = attribute.value().unwrap_or_default();
            // RFC 6690 s4.1: of an attribute with several values one must match.
            if LISTS.contains(&self.name) {
                value.split(' ').any(|one| self.fits(one))
            } else {
                self.fits(&value)
            }
        })
    }
    fn fits(&self, value: &str) -> bool {
        if self.prefix { value.starts_with(self.pattern) } else { value == self.pattern }
    }
}

/// Makes a document, link by link.
///
/// ```
/// use lowmesh_wire::link_format::Writer;
/// let mut document = Writer::new();
/// document.link("/temp").quoted("rt", "temperature-c").number("ct", 0).flag("obs");
/// document.link("/led");
/// assert_eq!(document.finish(), r#"</temp>;rt="temperature-c";ct=0;obs,</led>"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: String,
}

impl Writer {
    /// An empty document.
    pub const fn new() -> Self {
        Self { out: String::new() }
    }
    /// Starts a link. A `>` in its target, which no URI has, is written as `%3E`.
    pub fn link(&mut self, target: &str) -> &mut Self {
        if !self.out.is_empty() {
            self.out.push(',');
        }
        self.out.push('<');
        for (place, part) in target.split('>').enumerate() {
            if place > 0 {
                self.out.push_str("%3E");
            }
            self.out.push_str(part);
        }
        self.out.push('>');
        self
    }
    /// Adds an attribute with a quoted string. What is no name character in `name` is left away, in
    /// this and the other two.
    pub fn quoted(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        self.out.push_str("=\"");
        for one in value.chars() {
            if matches!(one, '"' | '\\') {
                self.out.push('\\');
            }
            self.out.push(one);
        }
        self.out.push('"');
        self
    }
    /// Adds an attribute with a number.
    pub fn number(&mut self, name: &str, value: u32) -> &mut Self {
        self.name(name);
        write!(self.out, "={value}").expect("a String takes everything");
        self
    }
    /// Adds an attribute without a value.
    pub fn flag(&mut self, name: &str) -> &mut Self {
        self.name(name);
        self
    }
    /// The document.
    pub fn finish(self) -> String {
        self.out
    }
    fn name(&mut self, name: &str) {
        self.out.push(';');
        self.out.extend(name.chars().filter(|one| is_name(*one)));
    }
}

#[cfg(test)]
mod tests;
