//! Settings that differ between points only because a choice brings its own: who compares `schedule.function` compares
//! the lengths of slotframes too, unless these are set.
//!
//! A choice, as [`CHOICES`] lists them, decides which keys its section has. Between two points with different choices
//! the same quantity can differ, since each choice has its own default: under one key, or under a key of each choice
//! ([`QUANTITIES`]). Such a quantity is found whatever its values mean, unless it was swept or nothing of it is a default.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::command::quoted;
use crate::results::Results;
use crate::scenario::{CHOICES, Scenario};

/// Every key of a scenario with its value.
pub type Keys = BTreeMap<String, String>;

/// One quantity that has a key of its own in each choice.
struct Quantity {
    choice: &'static str,
    words: &'static str,
    /// Choices with the last part of their key.
    keys: &'static [(&'static str, &'static str)],
}

/// Quantities that have more than one name. `minimal` has one slotframe for all.
const QUANTITIES: [Quantity; 3] = [
    Quantity {
        choice: "schedule.function",
        words: "slots from one cell of a link to the next",
        keys: &[
            ("minimal", "slotframe_length"),
            ("msf", "negotiated_length"),
            ("b-msf", "negotiated_length"),
            ("alice", "unicast_length"),
            ("orchestra", "unicast_length"),
        ],
    },
    Quantity {
        choice: "schedule.function",
        words: "slots from one cell for broadcast to the next",
        keys: &[
            ("msf", "minimal_length"),
            ("b-msf", "minimal_length"),
            ("alice", "broadcast_length"),
            ("orchestra", "common_length"),
        ],
    },
    Quantity {
        choice: "schedule.function",
        words: "cells that pass before their use is judged",
        keys: &[("msf", "max_num_cells"), ("b-msf", "max_nec")],
    },
];

/// A quantity that differs between choices that are compared. In JSON, `text` says it in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unequal {
    /// The key of the choice.
    pub choice: String,
    /// What the quantity is, if the key does not tell.
    pub words: Option<String>,
    /// Its value with each choice, in the order of the points.
    pub values: Vec<Own>,
}

/// The value that a choice has of a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Own {
    /// The choice.
    pub chosen: String,
    /// The key of the quantity with it.
    pub key: String,
    /// The value.
    pub value: String,
}

impl Unequal {
    /// The flags that give every choice the value of the first.
    pub fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        let wanted = self.values.first().map_or("", |own| own.value.as_str());
        for own in self.values.iter().filter(|own| own.value != wanted) {
            let flag = format!("--set {}", quoted(&format!("{}={wanted}", own.key)));
            if !flags.contains(&flag) {
                flags.push(flag);
            }
        }
        flags
    }
}

impl Serialize for Unequal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut unequal = serializer.serialize_struct("Unequal", 5)?;
        unequal.serialize_field("text", &self.to_string())?;
        unequal.serialize_field("choice", &self.choice)?;
        unequal.serialize_field("words", &self.words)?;
        unequal.serialize_field("values", &self.values)?;
        unequal.serialize_field("flags", &self.flags())?;
        unequal.end()
    }
}

impl fmt::Display for Unequal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = |own: &Own| format!("{} = {} ({})", own.key, own.value, own.chosen);
        let values: Vec<String> = self.values.iter().map(own).collect();
        write!(f, "{}", values.join(" against "))?;
        if let Some(words) = &self.words {
            write!(f, ", {words}")?;
        }
        write!(f, "; to compare {} alone: {}", self.choice, self.flags().join(" "))
    }
}

/// What differs between the points of a sweep besides its swept keys.
pub fn of_results(results: &Results) -> Vec<Unequal> {
    of_points(results.points.iter().map(|result| (&result.point.settings, &result.point.scenario)))
}

/// What differs between points, each with its swept keys, besides these.
pub fn of_points<'p>(
    points: impl Iterator<Item = (&'p Vec<(String, String)>, &'p Scenario)>,
) -> Vec<Unequal> {
    let mut swept: Vec<String> = Vec::new();
    let mut seen: Vec<Vec<&str>> = Vec::new();
    let mut told: Vec<Keys> = Vec::new();
    for (settings, scenario) in points {
        let keys = || settings.iter().map(|(key, _)| key.clone());
        swept.extend(keys().filter(|key| !swept.contains(key)).collect::<Vec<_>>());
        // Points of equal choices say the same, and a sweep can have very many.
        let choices = vec![
            scenario.topology.name(),
            scenario.radio.medium.name(),
            scenario.mac.name(),
            scenario.schedule.name(),
            scenario.fragments.name(),
        ];
        if !seen.contains(&choices) {
            seen.push(choices);
            told.push(scenario.keys());
        }
    }
    let all: Vec<&Keys> = told.iter().collect();
    let found = CHOICES.iter().flat_map(|choice| of_choice(choice, &all, &swept));
    found.collect()
}

/// What differs between the two sides of any of `pairs` besides the `swept` keys.
pub fn of_pairs(pairs: &[(&Keys, &Keys)], swept: &[String]) -> Vec<Unequal> {
    let of = |choice: &&str| {
        let differ = pairs.iter().filter(|(a, b)| a.get(*choice) != b.get(*choice));
        let compared: Vec<&Keys> = differ.flat_map(|(a, b)| [*a, *b]).collect();
        of_choice(choice, &compared, swept)
    };
    CHOICES.iter().flat_map(of).collect()
}

/// One of the points that are compared for each value of a choice.
type Chosen<'k> = Vec<(&'k str, &'k Keys)>;

fn of_choice(choice: &str, points: &[&Keys], swept: &[String]) -> Vec<Unequal> {
    let mut chosen: Chosen<'_> = Vec::new();
    for keys in points {
        let Some(own) = keys.get(choice) else { continue };
        if !chosen.iter().any(|(other, _)| other == own) {
            chosen.push((own.as_str(), *keys));
        }
    }
    if chosen.len() < 2 {
        return Vec::new();
    }
    let section = choice.split_once('.').map_or("", |(section, _)| section);
    let defaults: Vec<Option<Keys>> = chosen.iter().map(|(own, _)| defaults(choice, own)).collect();
    let check = |words: Option<&str>, key: &dyn Fn(&str) -> Option<String>| {
        let own = |(chosen, keys): &(&str, &Keys)| {
            let key = key(chosen)?;
            let value = keys.get(&key).filter(|_| !swept.contains(&key))?.clone();
            Some(Own { chosen: (*chosen).to_owned(), key, value })
        };
        let values: Vec<Option<Own>> = chosen.iter().map(own).collect();
        let is_default = |(own, defaults): (&Option<Own>, &Option<Keys>)| {
            let Some(own) = own else { return false };
            defaults.as_ref().is_none_or(|defaults| defaults.get(&own.key) == Some(&own.value))
        };
        let by_default = values.iter().zip(&defaults).any(is_default);
        let values: Vec<Own> = values.into_iter().flatten().collect();
        let differ = values.iter().any(|own| own.value != values[0].value);
        (differ && by_default).then(|| Unequal {
            choice: choice.to_owned(),
            words: words.map(str::to_owned),
            values,
        })
    };
    let named = QUANTITIES.iter().filter(|quantity| quantity.choice == choice);
    let mut found: Vec<Unequal> = named
        .filter_map(|quantity| {
            let key = |chosen: &str| {
                let own = quantity.keys.iter().find(|(own, _)| *own == chosen);
                own.map(|(_, key)| format!("{section}.{key}"))
            };
            check(Some(quantity.words), &key)
        })
        .collect();
    found.extend(
        shared(choice, section, &chosen)
            .into_iter()
            .filter_map(|shared| check(None, &|_| Some(shared.clone()))),
    );
    found
}

/// The keys of a section that several choices have and no quantity names.
fn shared(choice: &str, section: &str, chosen: &Chosen<'_>) -> Vec<String> {
    let named = |key: &str| {
        let quantities = QUANTITIES.iter().filter(|quantity| quantity.choice == choice);
        quantities.flat_map(|quantity| quantity.keys).any(|(_, named)| *named == key)
    };
    let mut keys: BTreeMap<&String, usize> = BTreeMap::new();
    for key in chosen.iter().flat_map(|(_, keys)| keys.keys()) {
        let last = key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
        if last.is_some_and(|last| !named(last)) && key != choice {
            *keys.entry(key).or_default() += 1;
        }
    }
    keys.into_iter().filter(|(_, count)| *count > 1).map(|(key, _)| key.clone()).collect()
}

/// The keys of a scenario in which nothing but a choice is set; none if the choice has a key without a default.
fn defaults(choice: &str, chosen: &str) -> Option<Keys> {
    let set = format!("{choice}={chosen}");
    Scenario::parse("defaults", "name = \"defaults\"", &[set]).ok().map(|scenario| scenario.keys())
}

#[cfg(test)]
mod tests;
