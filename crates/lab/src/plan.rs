//! A plan: the points of a scenario's sweep, and the runs that they take.

use std::collections::BTreeSet;

use lowmesh_units::Seed;

use crate::identity::{Identity, RunId};
use crate::results::Point;
use crate::scenario::sweep::{Sweep, Swept};
use crate::scenario::{ConfigErrors, LoadError, Scenario};

/// The runs of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// Which keys are swept; without axes for a single scenario.
    pub sweep: Sweep,
    /// The points, at least one.
    pub points: Vec<Point>,
}

/// One run of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// Index of its point in the plan.
    pub point: usize,
    /// Its seed.
    pub seed: Seed,
    /// Its name.
    pub id: RunId,
}

impl Plan {
    /// The plan of a built-in scenario or a file, with overrides of the form `key=value`.
    pub fn load(name: &str, overrides: &[String]) -> Result<Self, LoadError> {
        Ok(Self::of(Swept::load(name, overrides)?))
    }

    /// The plan that a text holds; `source` is what errors call it.
    pub fn parse(source: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigErrors> {
        Ok(Self::of(Swept::parse(source, text, overrides)?))
    }

    /// The plan of a sweep.
    pub fn of(swept: Swept) -> Self {
        let point = |(settings, scenario)| Point { settings, scenario };
        let points: Vec<Point> = swept.points.into_iter().map(point).collect();
        let name = points.first().map(|point| point.scenario.head.name.clone());
        Self { name: name.unwrap_or_default(), sweep: swept.sweep, points }
    }

    /// The plan of one scenario.
    pub fn single(scenario: Scenario) -> Self {
        let point = Point { settings: Vec::new(), scenario };
        Self {
            name: point.scenario.head.name.clone(),
            sweep: Sweep::default(),
            points: vec![point],
        }
    }

    /// Whether the plan is more than one scenario.
    pub fn is_sweep(&self) -> bool {
        self.points.iter().any(|point| !point.settings.is_empty())
    }

    /// Every run: the seeds of the first point, then of the second.
    pub fn runs(&self) -> Vec<RunSpec> {
        let of_point = |(point, at): (usize, &Point)| {
            let identity = Identity::of(&at.scenario);
            at.scenario
                .seeds()
                .map(move |seed| RunSpec { point, seed, id: identity.run(seed) })
                .collect::<Vec<_>>()
        };
        self.points.iter().enumerate().flat_map(of_point).collect()
    }

    /// The scenario with its sweep as TOML; reading it gives the same points.
    pub fn to_toml(&self) -> String {
        self.written_by(Scenario::to_toml)
    }

    /// The same, with the meaning of every key as a comment.
    pub fn to_commented_toml(&self) -> String {
        self.written_by(Scenario::to_commented_toml)
    }

    fn written_by(&self, write: fn(&Scenario) -> String) -> String {
        let first = self.points.first().map(|point| write(&point.scenario)).unwrap_or_default();
        let text = first + &self.sweep.to_toml();
        let same = |plan: Self| plan.points == self.points;
        if Self::parse("plan", &text, &[]).is_ok_and(same) {
            return text;
        }
        // A swept choice, as of a topology's kind, has keys that the first point does not have.
        self.common_keys().to_string() + &self.sweep.to_toml()
    }

    /// The keys in which all points agree that have them; in others the points have their defaults, or they are
    /// swept.
    fn common_keys(&self) -> toml::Table {
        let tables = self.points.iter().filter_map(|point| point.scenario.to_toml().parse().ok());
        let mut common = toml::Table::new();
        let mut disputed = BTreeSet::new();
        for table in tables {
            join("", &mut common, table, &mut disputed);
        }
        common
    }
}

/// Puts the keys of `table` into `common`, but for those on which the two disagree.
fn join(path: &str, common: &mut toml::Table, table: toml::Table, disputed: &mut BTreeSet<String>) {
    for (key, value) in table {
        let dotted = format!("{path}.{key}");
        match (common.get_mut(&key), value) {
            (Some(toml::Value::Table(common)), toml::Value::Table(table)) => {
                join(&dotted, common, table, disputed);
            }
            (None, value) if !disputed.contains(&dotted) => _ = common.insert(key, value),
            (Some(agreed), value) if *agreed != value => {
                common.remove(&key);
                disputed.insert(dotted);
            }
            _ => {}
        }
    }
}

/// One part of a plan that is run in several places: the runs whose place leaves the rest `index` by `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// A text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write i/n, with i from 1 to n, such as 2/8")]
pub struct NoShard;

impl std::str::FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (index, count) = text.split_once('/').ok_or(NoShard)?;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| NoShard);
        let (index, count) = (number(index)?, number(count)?);
        if (1..=count).contains(&index) {
            Ok(Self { index: index - 1, count })
        } else {
            Err(NoShard)
        }
    }
}

impl Shard {
    /// The shard's share of `runs`. Neighbours go to different shards, so that all have the same mix of points.
    pub fn of(self, runs: Vec<RunSpec>) -> Vec<RunSpec> {
        runs.into_iter().skip(self.index).step_by(self.count).collect()
    }
}

#[cfg(test)]
mod tests;
