//! A key of scenarios: what it means and which values it takes.

use lowmesh_registry::{Domain, Parameter};

use super::rows::Rows;
use super::value::{Named, Rule, Value, literal};

/// What a list of sections is called in errors.
pub const SECTIONS_NOUN: &str = "a list of sections";

/// A key of scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name; dotted where it is in a list of all keys.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// What it takes, in words.
    pub allowed: String,
    /// Its default as TOML; `None` without one, or if the default depends on another key.
    pub default: Option<String>,
    /// The names that it takes; empty if its value is no name.
    pub values: Vec<Named>,
}

impl Key {
    /// A key with this type, default, bound and documentation.
    pub(super) fn new<T: Value>(
        name: &str,
        default: &T,
        rule: &impl Rule<T>,
        meaning: &str,
        rows: &Rows,
    ) -> Self {
        Self {
            name: name.to_owned(),
            meaning: meaning.trim().to_owned(),
            allowed: format!("{}{}", T::noun(rows), rule.words()),
            default: default.write(),
            values: T::names(rows),
        }
    }

    /// A key that decides by a name which other keys there are; the first name is the default.
    pub(super) fn choice(name: &str, values: Vec<Named>, meaning: &str) -> Self {
        let names: Vec<&str> = values.iter().map(|value| value.name).collect();
        Self {
            name: name.to_owned(),
            meaning: meaning.trim().to_owned(),
            allowed: format!("one of {}", names.join(", ")),
            default: names.first().and_then(|name| (*name).to_owned().write()),
            values,
        }
    }

    /// A key that is a list of sections.
    pub(super) fn sections(name: &str, meaning: &str) -> Self {
        let (name, meaning) = (name.to_owned(), meaning.to_owned());
        let allowed = SECTIONS_NOUN.to_owned();
        Self { name, meaning, allowed, default: None, values: Vec::new() }
    }

    /// The key of a parameter.
    pub(super) fn parameter(parameter: &Parameter, rows: &Rows) -> Self {
        let Parameter { key, summary, source, .. } = parameter;
        let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
        Self {
            name: (*key).to_owned(),
            meaning: format!("{summary}{source}."),
            allowed: parameter.allowed(),
            default: parameter.default().map(|default| literal(&default)),
            values: match parameter.domain {
                Domain::Name(names) => {
                    names.iter().map(|name| Named { name, summary: "" }).collect()
                }
                Domain::Flag(_) => bool::names(rows),
                _ => Vec::new(),
            },
        }
    }

    /// The same with the name of its section.
    pub(super) fn within(self, section: &str) -> Self {
        Self { name: format!("{section}.{}", self.name), ..self }
    }
}

/// The keys, each once. A key that several choices declare differently has no common default.
pub(super) fn merged(keys: impl IntoIterator<Item = Key>) -> Vec<Key> {
    let mut merged: Vec<Key> = Vec::new();
    for key in keys {
        let Some(known) = merged.iter_mut().find(|known| known.name == key.name) else {
            merged.push(key);
            continue;
        };
        if known.default != key.default {
            known.default = None;
        }
        for value in key.values {
            if !known.values.contains(&value) {
                known.values.push(value);
            }
        }
    }
    merged
}
