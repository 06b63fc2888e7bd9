//! Settings that differ between points only because each choice has its own defaults. A comparison of
//! `schedule.function`, for example, also compares slotframe lengths unless these are set.
//!
//! A choice (see [`CHOICES`]) decides which keys its section has. The same quantity can differ between two choices, since
//! each has its own default: under one key, or under a key of each choice (`QUANTITIES`). Such a quantity is reported
//! unless it was swept or all its values were set.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::command::quoted;
use crate::results::Results;
use crate::scenario::{CHOICES, Scenario};

/// Every key of a scenario with its value.
pub type Keys = BTreeMap<String, String>;

/// One quantity with a separate key in each choice.
struct Quantity {
    choice: &'static str,
    words: &'static str,
    /// Each choice with the last part of its key.
    keys: &'static [(&'static str, &'static str)],
}

/// Quantities with more than one name. `minimal` has a single slotframe for all purposes.
const QUANTITIES: [Quantity; 3] = [
    Quantity {
        choice: "schedule.function",
        words: "slots from one cell of a link to the next",
        keys: &[
            ("minimal", "slotframe_length"),
            ("msf", "negotiated_length"),
            ("msf/backlog", "negotiated_length"),
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
            ("msf/backlog", "minimal_length"),
            ("b-msf", "minimal_length"),
            ("alice", "broadcast_length"),
            ("orchestra", "common_length"),
        ],
    },
    Quantity {
        choice: "schedule.function",
        words: "cells that pass before their use is judged",
        keys: &[("msf", "max_num_cells"), ("msf/backlog", "max_num_cells"), ("b-msf", "max_nec")],
    },
];

/// A quantity that differs between the compared choices. In JSON, `text` describes it in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unequal {
    /// The key of the choice.
    pub choice: String,
    /// The quantity in words, if its keys have different names.
    pub words: Option<String>,
    /// Its value with each choice, in the order of the points.
    pub values: Vec<Own>,
}

/// The value of a quantity under one choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Own {
    /// The choice.
    pub chosen: String,
    /// The key of the quantity under this choice.
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

/// The quantities that differ between the points of a sweep, without its swept keys.
pub fn of_results(results: &Results) -> Vec<Unequal> {
    of_points(results.points.iter().map(|result| (&result.point.settings, &result.point.scenario)))
}

/// The quantities that differ between points, without the swept keys of any of them.
pub fn of_points<'p>(
    points: impl Iterator<Item = (&'p Vec<(String, String)>, &'p Scenario)>,
) -> Vec<Unequal> {
    let mut swept: Vec<String> = Vec::new();
    let mut seen: Vec<Vec<&str>> = Vec::new();
    let mut distinct: Vec<Keys> = Vec::new();
    for (settings, scenario) in points {
        let keys = || settings.iter().map(|(key, _)| key.clone());
        swept.extend(keys().filter(|key| !swept.contains(key)).collect::<Vec<_>>());
        // One point for each combination of choices is enough; a sweep can have very many points.
        let choices = vec![
            scenario.topology.name(),
            scenario.radio.medium.name(),
            scenario.mac.name(),
            scenario.schedule.name(),
            scenario.fragments.name(),
        ];
        if !seen.contains(&choices) {
            seen.push(choices);
            distinct.push(scenario.keys());
        }
    }
    let all: Vec<&Keys> = distinct.iter().collect();
    let found = CHOICES.iter().flat_map(|choice| of_choice(choice, &all, &swept));
    found.collect()
}

/// The quantities that differ between the two sides of any of `pairs`, without the `swept` keys.
pub fn of_pairs(pairs: &[(&Keys, &Keys)], swept: &[String]) -> Vec<Unequal> {
    let of = |choice: &&str| {
        let differ = pairs.iter().filter(|(a, b)| a.get(*choice) != b.get(*choice));
        let compared: Vec<&Keys> = differ.flat_map(|(a, b)| [*a, *b]).collect();
        of_choice(choice, &compared, swept)
    };
    CHOICES.iter().flat_map(of).collect()
}

/// For each value of a choice, one of the compared points.
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

/// The keys of a section that several choices share and that no quantity lists.
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

/// The keys of a scenario that sets only a choice; none if the choice has a key without a default.
fn defaults(choice: &str, chosen: &str) -> Option<Keys> {
    let set = format!("{choice}={chosen}");
    Scenario::parse("defaults", "name = \"defaults\"", &[set]).ok().map(|scenario| scenario.keys())
}

#[cfg(test)]
mod tests;
