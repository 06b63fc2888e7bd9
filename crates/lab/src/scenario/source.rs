//! The text that a scenario is read from, and what is laid over it: `--set` flags, the values of a sweep's point.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_spanned::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, ConfigErrors, Fault, Origin, Place};
use super::rows::Rows;

/// The longest piece of a value that an error repeats, in characters.
const LITERAL_MAX: usize = 60;

/// The mark with which some programs begin a file in UTF-8; it is no part of the text.
pub(super) const UTF8_MARK: char = '\u{feff}';

/// A value that lies over the text.
#[derive(Clone, Debug)]
pub struct Laid {
    /// The value as TOML, or a text without its quotes.
    pub literal: String,
    /// Who wrote it.
    pub origin: Origin,
}

/// A scenario's text and the values over it.
#[derive(Clone, Debug)]
pub struct Source {
    /// What errors call it: a file name, or the name of a built-in.
    pub name: String,
    text: String,
    /// Value by dotted key; the last one stands.
    flags: BTreeMap<String, Laid>,
    /// The algorithms that it can name.
    pub rows: Rows,
}

impl Source {
    /// Joins the text with overrides of the form `key=value`.
    pub fn new(name: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigErrors> {
        let mut source = Self {
            name: name.to_owned(),
            text: text.trim_start_matches(UTF8_MARK).to_owned(),
            flags: BTreeMap::new(),
            rows: Rows::default(),
        };
        let mut errors = Vec::new();
        for flag in overrides {
            match flag.split_once('=') {
                Some((key, value)) if key.split('.').all(|part| !part.trim().is_empty()) => {
                    let (key, literal) = (key.trim().to_owned(), value.trim().to_owned());
                    let origin = Origin::Flag(format!("{key}={literal}"));
                    source.flags.insert(key, Laid { literal, origin });
                }
                _ => errors.push(source.error(
                    Origin::Flag(flag.clone()),
                    flag.split('=').next().unwrap_or_default(),
                    "write a dotted key, an equals sign and a value, as mac.retries=5",
                )),
            }
        }
        if errors.is_empty() { Ok(source) } else { Err(ConfigErrors(errors)) }
    }

    /// The same with other algorithms to name.
    pub fn with_rows(self, rows: Rows) -> Self {
        Self { rows, ..self }
    }

    /// The same with one more value over it.
    pub fn lay(&mut self, key: &str, laid: Laid) {
        self.flags.insert(key.to_owned(), laid);
    }

    /// Removes the flag for `key`; returns whether there was one.
    pub fn leave_out(&mut self, key: &str) -> bool {
        self.flags.remove(key).is_some()
    }

    /// Parses the text and lays the flags over it.
    pub fn table(&self) -> Result<DeTable<'_>, ConfigErrors> {
        let (root, failures) = DeTable::parse_recoverable(&self.text);
        if !failures.is_empty() {
            let syntax = |failure: &toml::de::Error| ConfigError {
                source: self.name.clone(),
                origin: failure.span().map_or(Origin::Whole, |span| Origin::Text(self.place(span))),
                key: String::new(),
                fault: Fault::Syntax(failure.message().trim().replace('\n', ", ")),
            };
            return Err(ConfigErrors(failures.iter().map(syntax).collect()));
        }
        let mut root = root.into_inner();
        let mut errors = Vec::new();
        for (key, laid) in &self.flags {
            if let Err(why) = lay_over(&mut root, key, &laid.literal) {
                errors.push(self.error(laid.origin.clone(), key, why));
            }
        }
        if errors.is_empty() { Ok(root) } else { Err(ConfigErrors(errors)) }
    }

    /// Where the value at `path` was written.
    pub fn origin(&self, path: &str, span: Range<usize>) -> Origin {
        match self.writer(path, &span) {
            Some(laid) => laid.origin.clone(),
            None => Origin::Text(self.place(span)),
        }
    }

    /// The value at `path` as it was written, shortened.
    pub fn literal(&self, path: &str, span: Range<usize>) -> String {
        let text = match self.writer(path, &span) {
            Some(laid) => &laid.literal,
            None => self.text.get(span).unwrap_or_default().trim(),
        };
        let first_line = text.lines().next().unwrap_or_default();
        if first_line.chars().count() < text.chars().count()
            || first_line.chars().count() > LITERAL_MAX
        {
            return first_line.chars().take(LITERAL_MAX).chain("...".chars()).collect();
        }
        first_line.to_owned()
    }

    /// Whether a flag wrote the value at `path`, or a table around it.
    pub fn is_flag(&self, path: &str) -> bool {
        self.flag(path).is_some()
    }

    /// The flag that wrote what is at `path`, if a flag did.
    fn writer(&self, path: &str, span: &Range<usize>) -> Option<&Laid> {
        let within = |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        // A table that is not in the text was created for the key of a flag.
        let made = || self.flags.iter().find(|(key, _)| span.is_empty() && within(key));
        self.flag(path).or_else(|| made().map(|(_, laid)| laid))
    }

    fn flag(&self, path: &str) -> Option<&Laid> {
        let holds = |key: &str| {
            path.strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.flags.iter().find(|(key, _)| holds(key)).map(|(_, laid)| laid)
    }

    /// An error about the value of `key`, in words.
    pub fn error(&self, origin: Origin, key: &str, why: &str) -> ConfigError {
        let (source, key) = (self.name.clone(), key.to_owned());
        ConfigError { source, origin, key, fault: Fault::Conflict(why.to_owned()) }
    }

    /// Where the value of the dotted `key` was written, if it is in `table`.
    pub fn locate(&self, table: &DeTable<'_>, key: &str) -> Option<Origin> {
        let mut parts = key.split('.');
        let mut found = table.get(parts.next()?)?;
        for part in parts {
            found = found.get_ref().as_table()?.get(part)?;
        }
        Some(self.origin(key, found.span()))
    }

    /// The place of a span: its first line.
    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        let text = self.text[begin..].lines().next().unwrap_or_default();
        let of_span = self.text.get(span).unwrap_or_default().lines().next().unwrap_or_default();
        Place {
            line: 1 + before.matches('\n').count(),
            column: 1 + before[begin..].chars().count(),
            width: of_span.chars().count(),
            text: text.to_owned(),
        }
    }
}

/// Sets the dotted `key` to `literal`, and creates the tables that the key names and the text lacks. A part with an index,
/// such as `link[0]`, names an existing entry of a list.
fn lay_over<'i>(
    root: &mut DeTable<'i>,
    key: &'i str,
    literal: &'i str,
) -> Result<(), &'static str> {
    let mut parts: Vec<&str> = match key.split_once('.') {
        // A swept key with an index is one key of the table of the sweep.
        Some(("sweep", swept)) if swept.contains('[') => vec!["sweep", swept],
        _ => key.split('.').map(str::trim).collect(),
    };
    let last = parts.pop().expect("a split text has at least one part");
    let mut table = root;
    for part in parts {
        let (name, index) = indexed(part);
        let entry = table
            .entry(Spanned::new(0..0, DeString::Borrowed(name)))
            .or_insert_with(|| Spanned::new(0..0, DeValue::Table(DeTable::new())));
        table = match (index, entry.get_mut()) {
            (None, DeValue::Table(table)) => table,
            (Some(index), DeValue::Array(list)) => {
                let found = list.get_mut(index).map(Spanned::get_mut);
                found
                    .and_then(table_mut)
                    .ok_or("the list has no such entry; entries count from 0")?
            }
            _ => {
                return Err(
                    "a flag reaches into sections and entries of lists, as 'link[0].loss=0.02'; or set a list as a \
                     whole: 'radio.wifi=[{...}]'",
                );
            }
        };
    }
    let value = match DeValue::parse(literal).map(Spanned::into_inner) {
        // `16_16` is a hopping sequence; nobody groups digits on a command line.
        Ok(value) if !(value.is_integer() && literal.contains('_')) => value,
        // What is no TOML value is a text whose quotes the shell or the user left out.
        _ => DeValue::String(DeString::Borrowed(literal)),
    };
    table.insert(Spanned::new(0..0, DeString::Borrowed(last)), Spanned::new(0..0, value));
    Ok(())
}

/// The name of a part of a key, and its index if it has one.
fn indexed(part: &str) -> (&str, Option<usize>) {
    let inner = part.strip_suffix(']').and_then(|part| part.split_once('['));
    match inner.and_then(|(name, index)| Some((name, index.parse().ok()?))) {
        Some((name, index)) => (name, Some(index)),
        None => (part, None),
    }
}

/// Whether `value` is a table, for the walk along a dotted key.
fn table_mut<'v, 'i>(value: &'v mut DeValue<'i>) -> Option<&'v mut DeTable<'i>> {
    if let DeValue::Table(table) = value { Some(table) } else { None }
}
