//! The points that are compared: where they are read from, which are chosen, and the error if there are none.

use std::fs;
use std::path::Path;

use lowmesh_lab::compare::{Side, build_of_summary, points_of_store};
use lowmesh_lab::plan::Plan;
use lowmesh_lab::scenario::sweep::describe;
use lowmesh_lab::scenario::{every_key, similar};
use lowmesh_lab::store::Store;

use crate::failure::Failure;

/// Letters of the longest unit: `min`. The names of algorithms that begin with a digit go on for longer.
const UNIT_MAX: usize = 3;

/// A setting of a point: key and value.
pub type Setting = (String, String);

/// One side of a comparison, as read from a path.
#[derive(Debug)]
pub struct Read {
    /// The path that the user gave.
    pub name: String,
    /// Its points.
    pub points: Vec<Side>,
    /// The build that made them.
    pub build: String,
}

/// Two points, with a title that says how they differ.
#[derive(Debug)]
pub struct Pair<'s> {
    /// What is compared with what.
    pub title: String,
    /// The first point.
    pub a: &'s Side,
    /// The second point.
    pub b: &'s Side,
}

impl Read {
    /// Reads a folder of results, a summary or a store.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let summary = if path.is_dir() { path.join("summary.json") } else { path.to_owned() };
        if path.is_dir() && !summary.is_file() {
            let store = Store::open_results(path)?;
            return Ok(Self { name, points: points_of_store(&store)?, build: store.build()? });
        }
        let usage = |why: String| {
            let message = format!("{}: {why}", summary.display());
            let hint = "give the summary.json or the folder of `lowmesh run --out`, or a store";
            Failure::usage(message, hint)
        };
        let text = fs::read_to_string(&summary).map_err(|error| usage(error.to_string()))?;
        let mut points = Side::read_summary(&text).map_err(|error| usage(error.to_string()))?;
        // Without the scenario the points are still compared; a warning says what was not checked.
        if let Ok(plan) =
            Plan::load(&summary.with_file_name("scenario.toml").to_string_lossy(), &[])
        {
            Side::complete(&mut points, &plan);
        }
        let build = build_of_summary(&text).map(|build| build.to_string());
        let build = build.unwrap_or_else(|| "a build that was not recorded".to_owned());
        Ok(Self { name, points, build })
    }

    /// Keeps the points that have every setting of `filter`.
    pub fn choose(&mut self, filter: &[Setting]) -> Result<(), Failure> {
        for (key, value) in filter {
            self.must_have(key, value)?;
        }
        self.points.retain(|point| point.has(filter));
        if self.points.is_empty() {
            let message = if filter.is_empty() {
                format!("{} has no runs", self.name)
            } else {
                format!("no point of {} has {} together", self.name, describe(filter))
            };
            return Err(Failure::Usage { message, hint: None });
        }
        Ok(())
    }

    /// The values of a key, in the order of the points.
    fn values(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for found in self.points.iter().filter_map(|side| value(side, key)) {
            if !values.contains(&found) {
                values.push(found);
            }
        }
        values
    }

    /// The swept keys, in the order of the points.
    fn swept(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        for (key, _) in self.points.iter().flat_map(|side| &side.settings) {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        keys
    }

    fn must_have(&self, key: &str, value: &str) -> Result<(), Failure> {
        let values = self.values(key);
        if values.is_empty() {
            return Err(self.not_swept(key));
        }
        if values.contains(&value) {
            return Ok(());
        }
        let meant = if is_quantity(value) { None } else { similar(value, values.iter().copied()) };
        let message = format!("{key} = {value} was not run in {}{}", self.name, suggestion(meant));
        Err(Failure::usage(message, &format!("its values there are {}", values.join(", "))))
    }

    /// The error about a key that was not swept.
    fn not_swept(&self, key: &str) -> Failure {
        let (known, swept) = (every_key(), self.swept());
        let everywhere = self.points.first().and_then(|side| side.keys.as_ref()?.get(key));
        // A key of a list of sections has an index, and the list of all keys has none.
        let message = if everywhere.is_some() || known.iter().any(|known| known == key) {
            let everywhere = everywhere
                .map_or_else(String::new, |value| format!(": it is {value} at every point"));
            format!("{key} was not swept in {}{everywhere}", self.name)
        } else {
            let meant = similar(key, swept.iter().copied())
                .or_else(|| similar(key, known.iter().map(String::as_str)));
            format!("there is no key {key}{}", suggestion(meant))
        };
        let hint = match swept.as_slice() {
            [] => format!("nothing was swept in {}", self.name),
            keys => format!("the keys swept in {} are {}", self.name, keys.join(", ")),
        };
        Failure::usage(message, &hint)
    }
}

/// The value of a swept key.
fn value<'s>(side: &'s Side, key: &str) -> Option<&'s str> {
    side.settings.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
}

/// Whether a value is a number, perhaps with a unit. A number is never suggested for another one.
fn is_quantity(value: &str) -> bool {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    unit.len() < value.len() && unit.len() <= UNIT_MAX
}

/// The end of an error message: the name that the user may have meant.
pub fn suggestion(meant: Option<String>) -> String {
    meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Pairs of points with equal settings; two single points form a pair whatever their settings are.
pub fn across<'s>(a: &'s Read, b: &'s Read) -> Result<Vec<Pair<'s>>, Failure> {
    if let ([a], [b]) = (a.points.as_slice(), b.points.as_slice()) {
        let title = match (describe(&a.settings), describe(&b.settings)) {
            (a, b) if a.is_empty() && b.is_empty() => "A to B".to_owned(),
            (a, b) => format!("A ({a}) to B ({b})"),
        };
        return Ok(vec![Pair { title, a, b }]);
    }
    let same = |a: &'s Side| {
        let b = b.points.iter().find(|b| b.settings == a.settings)?;
        Some(Pair { title: format!("A to B at {}", describe(&a.settings)), a, b })
    };
    let pairs: Vec<Pair<'s>> = a.points.iter().filter_map(same).collect();
    if !pairs.is_empty() {
        return Ok(pairs);
    }
    let swept = |of: &Read| {
        let keys = of.swept();
        let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
        format!("{} sweeps {keys}", of.name)
    };
    let message = if a.swept() == b.swept() {
        format!("no point of {} has the settings of a point of {}", a.name, b.name)
    } else {
        format!("{}, {}: no two points have equal settings", swept(a), swept(b))
    };
    Err(Failure::usage(
        message,
        "--where KEY=VALUE chooses points; one point of A and one of B always form a pair",
    ))
}

/// Pairs of the baseline with every other value of a swept key, all other settings equal.
pub fn by_key<'s>(
    read: &'s Read,
    key: &str,
    baseline: Option<&str>,
) -> Result<Vec<Pair<'s>>, Failure> {
    let values = read.values(key);
    let first = values.first().ok_or_else(|| read.not_swept(key))?;
    let baseline = baseline.unwrap_or(first);
    read.must_have(key, baseline)?;
    let pair = |b: &'s Side| {
        let own = value(b, key).filter(|own| *own != baseline)?;
        let rest = b.without(key);
        let same = |a: &&Side| value(a, key) == Some(baseline) && a.without(key) == rest;
        let a = read.points.iter().find(same)?;
        let place =
            if rest.is_empty() { String::new() } else { format!(" at {}", describe(&rest)) };
        Some(Pair { title: format!("{key}: {baseline} to {own}{place}"), a, b })
    };
    let pairs: Vec<Pair<'s>> = read.points.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        let (message, hint) = match values.as_slice() {
            [one] => (
                format!("{key} has one value at these points: {one}"),
                "a comparison needs two values",
            ),
            _ => (
                format!("no two points of {} differ in {key} alone", read.name),
                "--where KEY=VALUE chooses points",
            ),
        };
        return Err(Failure::usage(message, hint));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_or_without_a_unit_is_a_quantity_and_a_name_with_digits_is_not() {
        for value in ["5", "2s", "500ms", "12min", "-80.0"] {
            assert!(is_quantity(value), "{value}");
        }
        for value in ["6cocoa", "rfc6298", "k7", "msf", "pdr-matrix"] {
            assert!(!is_quantity(value), "{value}");
        }
    }
}
