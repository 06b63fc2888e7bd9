//! Sections of a scenario: a table of keys read with all its errors, and written back.
//!
//! A section is declared once, by [`section!`]: each key with its type, default and bound. Reading, the
//! list of known keys, the defaults and writing all come from that declaration. [`variants!`] declares a
//! section whose keys depend on a choice, such as the kind of a topology.

use std::cell::RefCell;
use std::collections::BTreeSet;

use toml::de::DeTable;

use super::error::{ConfigError, Fault, Origin, similar};
use super::key::{Key, SECTIONS_NOUN};
use super::rows::Rows;
use super::source::Source;
use super::value::{Rule, Value};

/// The errors found so far.
pub type Faults = RefCell<Vec<ConfigError>>;

/// A table of keys with types, defaults and bounds.
pub trait Section: Sized {
    /// All its keys, without those of sections in it.
    fn keys(rows: &Rows) -> Vec<Key>;
    /// Reads the keys that are present, and defaults for the others.
    fn read(cursor: &mut Cursor<'_, '_>) -> Self;
    /// Writes every key.
    fn write(&self, lines: &mut Lines);
}

/// A value is none of the names that it can be.
pub struct UnknownName;

/// One table while it is being read.
pub struct Cursor<'a, 'i> {
    source: &'a Source,
    path: String,
    table: Option<&'a DeTable<'i>>,
    faults: &'a Faults,
    known: Vec<&'static str>,
    foreign: BTreeSet<String>,
    choice: Option<(&'static str, &'static str)>,
}

impl<'a, 'i> Cursor<'a, 'i> {
    /// Reads the table at `path`; without a table every key has its default.
    pub fn new(
        source: &'a Source,
        path: String,
        table: Option<&'a DeTable<'i>>,
        faults: &'a Faults,
    ) -> Self {
        let (known, foreign) = (Vec::new(), BTreeSet::new());
        Self { source, path, table, faults, known, foreign, choice: None }
    }

    /// The value of `key`, or `default`; a bad value is noted and stands as the default.
    pub fn value<T: Value>(&mut self, key: &'static str, default: T, rule: &impl Rule<T>) -> T {
        self.known.push(key);
        let allowed = || format!("{}{}", T::noun(self.rows()), rule.words());
        let Some(found) = self.table.and_then(|table| table.get(key)) else {
            if !rule.admits(&default) {
                self.note(Origin::Whole, key, Fault::Missing { allowed: allowed() });
            }
            return default;
        };
        let similar = match T::read(found.get_ref(), self.rows()) {
            Ok(value) if rule.admits(&value) => return value,
            Ok(_) => None,
            Err(mismatch) => mismatch.similar,
        };
        let path = self.dotted(key);
        let text = self.source.literal(&path, found.span());
        let fault = Fault::Value { found: text, allowed: allowed(), similar };
        self.note(self.source.origin(&path, found.span()), key, fault);
        default
    }

    /// The index in `names` of the choice that `key` makes.
    pub fn choice(&mut self, key: &'static str, names: &[&'static str], default: usize) -> usize {
        let found = self.name(key, names);
        if found.is_err() {
            // Which keys go with an unknown kind is unknown too: one error is enough.
            self.table = None;
        }
        let index = found.ok().flatten().unwrap_or(default);
        self.choice = Some((key, names[index]));
        index
    }

    /// The index in `names` of the value of `key`, if there is one; an error, which is noted, if it is another name.
    pub fn name(
        &mut self,
        key: &'static str,
        names: &[&'static str],
    ) -> Result<Option<usize>, UnknownName> {
        self.known.push(key);
        let Some(found) = self.table.and_then(|table| table.get(key)) else { return Ok(None) };
        let text = found.get_ref().as_str().unwrap_or_default();
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Ok(Some(index));
        }
        let path = self.dotted(key);
        let fault = Fault::Value {
            found: self.source.literal(&path, found.span()),
            allowed: format!("one of {}", names.join(", ")),
            similar: similar(text, names.iter().copied()),
        };
        self.note(self.source.origin(&path, found.span()), key, fault);
        Err(UnknownName)
    }

    /// Names a key that somebody else reads, so that slips of the pen find it.
    pub fn elsewhere(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// Names keys that other choices have, so that they are told apart from slips of the pen.
    pub fn foreign(&mut self, keys: Vec<Key>) {
        self.foreign.extend(keys.into_iter().map(|key| key.name));
    }

    /// The section at `key`.
    pub fn section<S: Section>(&mut self, key: &'static str) -> S {
        self.within(key, S::read)
    }

    /// What `read` makes of the section at `key`.
    pub fn within<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Cursor<'_, '_>) -> T,
    ) -> T {
        self.known.push(key);
        let found = self.table.and_then(|table| table.get(key));
        let table = found.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (found, table) {
            self.not_a_table(key, value.span(), "a section of keys");
        }
        let mut cursor = Cursor::new(self.source, self.dotted(key), table, self.faults);
        let section = read(&mut cursor);
        cursor.finish();
        section
    }

    /// The sections in the list at `key`, written as `[[key]]`.
    pub fn sections<S: Section>(&mut self, key: &'static str) -> Vec<S> {
        self.known.push(key);
        let Some(found) = self.table.and_then(|table| table.get(key)) else { return Vec::new() };
        let Some(list) = found.get_ref().as_array() else {
            self.not_a_table(key, found.span(), SECTIONS_NOUN);
            return Vec::new();
        };
        let mut sections = Vec::with_capacity(list.len());
        for (i, entry) in list.iter().enumerate() {
            let path = format!("{}[{i}]", self.dotted(key));
            let Some(table) = entry.get_ref().as_table() else {
                self.not_a_table(key, entry.span(), SECTIONS_NOUN);
                continue;
            };
            let mut cursor = Cursor::new(self.source, path, Some(table), self.faults);
            sections.push(S::read(&mut cursor));
            cursor.finish();
        }
        sections
    }

    /// Notes every key that nobody asked for.
    pub fn finish(self) {
        for key in self.table.into_iter().flatten().map(|(key, _)| key) {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let path = self.dotted(name);
            let origin = self.source.origin(&path, key.span());
            let known = || self.known.iter().map(|key| (*key).to_owned());
            let fault = match self.choice {
                Some((selector, choice)) if self.foreign.contains(name) => {
                    // A flag that changes the kind leaves behind the keys of the file's own kind.
                    if self.source.is_flag(&self.dotted(selector)) && !self.source.is_flag(&path) {
                        continue;
                    }
                    let known = known().filter(|known| known != selector).collect();
                    Fault::ForeignKey { choice: format!("{selector} = \"{choice}\""), known }
                }
                _ => Fault::UnknownKey {
                    similar: similar(name, self.known.iter().copied()),
                    known: known().collect(),
                },
            };
            self.note(origin, name, fault);
        }
    }

    fn not_a_table(&self, key: &str, span: std::ops::Range<usize>, allowed: &str) {
        let path = self.dotted(key);
        let found = self.source.literal(&path, span.clone());
        let fault = Fault::Value { found, allowed: allowed.to_owned(), similar: None };
        self.note(self.source.origin(&path, span), key, fault);
    }

    /// The algorithms that the scenario can name.
    pub fn rows(&self) -> &'a Rows {
        &self.source.rows
    }

    /// Whether `key` is known to be a key of this table.
    pub fn knows(&self, key: &str) -> bool {
        self.known.contains(&key)
    }

    /// Notes that the keys of this table have no effect, because the key `selector` of another section is `choice` and not
    /// `other`. What a file says is one error; a flag for `selector` leaves it behind.
    pub fn refuse_all(&self, selector: &'static str, choice: &'static str, other: &'static str) {
        if self.is_wrong(selector) {
            return;
        }
        let mut is_told = self.source.is_flag(selector);
        let mut keys: Vec<_> = self.table.into_iter().flatten().map(|(key, _)| key).collect();
        keys.sort_by_key(|key| key.span().start);
        for key in keys {
            let name: &str = key.get_ref();
            let path = self.dotted(name);
            let is_flag = self.source.is_flag(&path);
            if !self.knows(name) || (is_told && !is_flag) {
                continue;
            }
            is_told |= !is_flag;
            let origin = self.source.origin(&path, key.span());
            self.note(origin, name, Fault::ForeignSection { selector, choice, other });
        }
    }

    /// Whether the value of the key with this whole path has an error.
    pub fn is_wrong(&self, path: &str) -> bool {
        self.faults.borrow().iter().any(|error| error.key == path)
    }

    /// Notes an error about `key` of this table.
    pub fn note(&self, origin: Origin, key: &str, fault: Fault) {
        let (source, key) = (self.source.name.clone(), self.dotted(key));
        self.faults.borrow_mut().push(ConfigError { source, origin, key, fault });
    }

    /// The whole path of `key` of this table.
    pub fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// TOML text while it is being written.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    /// Whether each line says what its key means.
    commented: bool,
}

impl Lines {
    /// Text in which each line says what its key means.
    pub fn commented() -> Self {
        Self { commented: true, ..Self::default() }
    }
    /// Whether each line says what its key means.
    pub fn is_commented(&self) -> bool {
        self.commented
    }
    /// Writes `key = value` with the meaning of the key, or nothing for an absent value.
    pub fn value(&mut self, key: &str, value: &impl Value, meaning: &str) {
        if let Some(literal) = value.write() {
            let of_value = value.meaning().map(|meaning| format!(" {meaning}."));
            let meaning = format!("{}{}", meaning.trim_start(), of_value.unwrap_or_default());
            self.literal(key, &literal, &meaning);
        }
    }
    /// Writes `key = literal` with the meaning of the key.
    pub fn literal(&mut self, key: &str, literal: &str, meaning: &str) {
        self.text.extend([key, " = ", literal]);
        if self.commented {
            self.text.extend(["  # ", meaning]);
        }
        self.text.push('\n');
    }
    /// Writes `[name]`.
    pub fn heading(&mut self, name: &str) {
        self.text.extend(["\n[", name, "]\n"]);
    }
    /// Writes `[name]` and the section under it.
    pub fn section(&mut self, name: &str, section: &impl Section) {
        self.heading(name);
        section.write(self);
    }
    /// Writes `[[name]]` and the section under it, for each.
    pub fn sections<S: Section>(&mut self, name: &str, sections: &[S]) {
        for section in sections {
            self.text.extend(["\n[[", name, "]]\n"]);
            section.write(self);
        }
    }
    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Declares a section: documentation, then each key with type, default and bound.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident {
        $( $(#[doc = $kdoc:literal])* $key:ident : $type:ty = $default:expr , $rule:expr ; )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[doc = $kdoc])* pub $key: $type ),* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $key: $default ),* }
            }
        }
        impl $crate::scenario::section::Section for $name {
            fn keys(_rows: &$crate::scenario::Rows) -> Vec<$crate::scenario::Key> {
                vec![ $( $crate::scenario::Key::new::<$type>(
                    stringify!($key), &$default, &$rule, concat!($($kdoc),*), _rows,
                ) ),* ]
            }
            fn read(_cursor: &mut $crate::scenario::section::Cursor<'_, '_>) -> Self {
                Self { $( $key: _cursor.value(stringify!($key), $default, &$rule) ),* }
            }
            fn write(&self, _lines: &mut $crate::scenario::section::Lines) {
                $( _lines.value(stringify!($key), &self.$key, concat!($($kdoc),*)); )*
            }
        }
    };
}
pub(crate) use section;

/// Declares a section whose keys depend on the choice that its first key makes; the first is the default.
macro_rules! variants {
    ($(#[doc = $doc:literal])* $name:ident by $selector:literal {
        $( $(#[doc = $vdoc:literal])* $text:literal => $variant:ident ),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $( $(#[doc = $vdoc])* $variant($variant) ),* }

        impl $name {
            /// Every choice, as written in a scenario.
            pub const NAMES: &'static [&'static str] = &[ $( $text ),* ];
            /// The choice as written in a scenario.
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $text ),* }
            }
            /// Every choice with its meaning.
            fn named() -> Vec<$crate::scenario::Named> {
                vec![ $( $crate::scenario::Named::documented($text, concat!($($vdoc),*)) ),* ]
            }
        }
        impl $crate::scenario::section::Section for $name {
            fn keys(rows: &$crate::scenario::Rows) -> Vec<$crate::scenario::Key> {
                let meaning = concat!($($doc),*);
                let mut keys = vec![$crate::scenario::Key::choice($selector, Self::named(), meaning)];
                $( keys.extend($variant::keys(rows)); )*
                $crate::scenario::key::merged(keys)
            }
            fn read(cursor: &mut $crate::scenario::section::Cursor<'_, '_>) -> Self {
                let chosen = cursor.choice($selector, Self::NAMES, 0);
                cursor.foreign(Self::keys(cursor.rows()));
                match Self::NAMES[chosen] {
                    $( $text => Self::$variant($variant::read(cursor)), )*
                    _ => unreachable!("a choice is an index into the names"),
                }
            }
            fn write(&self, lines: &mut $crate::scenario::section::Lines) {
                let meaning = match self { $( Self::$variant(_) => concat!($($vdoc),*) ),* };
                lines.value($selector, &self.name().to_owned(), meaning);
                match self { $( Self::$variant(section) => section.write(lines) ),* }
            }
        }
    };
}
pub(crate) use variants;
