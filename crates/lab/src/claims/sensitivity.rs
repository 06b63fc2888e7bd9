//! The assumption that a sweep varies, and the points of other sweeps with the assumed value.
//!
//! A sweep that no claim needs repeats points of sweeps that claims need, with other values of one key. So the points with
//! the assumed value are among the runs of those sweeps. A point of another sweep belongs here under two conditions: its
//! scenario differs from one of this sweep only in swept keys, and each of its values of these keys occurs in this sweep,
//! unless its own sweep does not vary the key.

use std::collections::{BTreeMap, BTreeSet};

use super::paper::Paper;
use crate::identity::bare;
use crate::results::{Point, PointResult};

/// A sweep that varies an assumption, with the points that have the assumed value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// All points; those with the assumed value come first.
    pub points: Vec<PointResult>,
    /// The key that holds the assumption.
    pub key: String,
    /// The assumed value.
    pub taken: String,
}

type Keys = BTreeMap<String, String>;

impl Sensitivity {
    /// The assumption that the sweep called `name` varies; none if a claim needs the sweep, or if no other sweep has the
    /// same points with exactly one other value.
    pub fn of(
        paper: &Paper,
        name: &str,
        sweeps: &BTreeMap<String, Vec<PointResult>>,
    ) -> Option<Self> {
        let needed = paper.needs(&paper.claims.iter().collect::<Vec<_>>());
        let own = sweeps.get(name).filter(|_| !needed.contains(name))?;
        let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, value) in own.iter().flat_map(|point| &point.point.settings) {
            values.entry(key).or_default().insert(value);
        }
        let stripped = |point: &PointResult| -> (Keys, Keys) {
            let (swept, rest) = bare(&point.point.scenario)
                .keys()
                .into_iter()
                .partition(|(key, _)| values.contains_key(key.as_str()));
            (rest, swept)
        };
        let bases: BTreeSet<Keys> = own.iter().map(|point| stripped(point).0).collect();
        let mut taken: Vec<PointResult> = Vec::new();
        let others = sweeps.iter().filter(|(other, _)| needed.contains(other.as_str()));
        for point in others.flat_map(|(_, points)| points) {
            let (rest, swept) = stripped(point);
            let as_here = |(key, allowed): (&&str, &BTreeSet<&str>)| match point.setting(key) {
                Some(value) => allowed.contains(value).then(|| value.to_owned()),
                None => swept.get(*key).cloned(),
            };
            let settings = own[0].point.settings.iter().map(|(key, _)| {
                let allowed = values.get_key_value(key.as_str())?;
                Some((key.clone(), as_here(allowed)?))
            });
            let settings: Option<Vec<_>> = settings.collect();
            if let (Some(settings), true) = (settings, bases.contains(&rest)) {
                let scenario = point.point.scenario.clone();
                taken.push(PointResult { point: Point { settings, scenario }, ..point.clone() });
            }
        }
        Self::split(own, taken)
    }

    /// Finds the key that has one value in the points `taken` and other values in the sweep.
    fn split(own: &[PointResult], taken: Vec<PointResult>) -> Option<Self> {
        let of = |points: &[PointResult], key: &str| -> BTreeSet<String> {
            points.iter().filter_map(|p| p.setting(key)).map(ToOwned::to_owned).collect()
        };
        let varied = own.first()?.point.settings.iter().find_map(|(key, _)| {
            let (all, here) = (of(own, key), of(&taken, key));
            let one = here.first().filter(|_| here.len() == 1)?;
            all.iter().any(|value| value != one).then(|| (key.clone(), one.clone()))
        });
        let (key, value) = varied?;
        let same =
            |point: &&PointResult| taken.iter().all(|t| t.point.settings != point.point.settings);
        let own: Vec<PointResult> = own.iter().filter(same).cloned().collect();
        let mut points = taken;
        points.extend(own);
        Some(Self { points, key, taken: value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::paper::Scope;

    const HEAD: &str =
        "name = \"x\"\ntitle = \"\"\nauthors = \"\"\nvenue = \"\"\nyear = 2000\ndoi = \"\"\n";
    const SWEEPS: &str = r#"
[[sweep]]
name = "load"
purpose = ""
full = { set = ["duration=20min", "seeds=2"] }
[[sweep.part]]
scenarios = ["grid-25", "grid-64"]
sweep = { "coap.congestion" = ["default", "cocoa"], "traffic.period" = ["2s", "4s"] }

[[sweep]]
name = "noise"
purpose = ""
full = { set = ["duration=20min", "seeds=2"] }
[[sweep.part]]
scenarios = ["grid-64"]
set = ["traffic.period=2s"]
sweep = { "radio.noise_dbm" = [-80.0, -83.0], "coap.congestion" = ["default", "cocoa"] }

[[sweep]]
name = "readings"
purpose = ""
full = { set = ["duration=20min", "seeds=2"] }
[[sweep.part]]
scenarios = ["grid-64"]
sweep = { "coap.congestion" = ["cocoa", "cocoa/draft-03"], "traffic.period" = ["2s"] }

[[sweep]]
name = "longer"
purpose = ""
full = { set = ["duration=30min", "seeds=2"] }
[[sweep.part]]
scenarios = ["grid-64"]
set = ["traffic.period=2s"]
sweep = { "coap.nstart" = [1, 4] }
"#;
    const CLAIM: &str = "[[claim]]\nid = \"C\"\ngrade = \"hard\"\nkind = \"trend\"\nbasis = \"finding\"\nplace = \"\"\ntext = \"\"\n\
                         claimed = \"\"\n[[claim.test]]\nop = \"gt\"\nmetric = \"tdr\"\nsweep = \"load\"\n";

    /// The publication, and its points without runs.
    fn evidence() -> (Paper, BTreeMap<String, Vec<PointResult>>) {
        let paper = Paper::parse(&format!("{HEAD}{SWEEPS}"), CLAIM);
        let paper = paper.unwrap_or_else(|error| panic!("{error}"));
        let points = |sweep| {
            let plans = paper.plans(sweep, Scope::default()).expect("sound");
            let points = plans.into_iter().flat_map(|plan| plan.points);
            let point = |point| PointResult { point, runs: Vec::new(), failures: Vec::new() };
            points.map(point).collect::<Vec<_>>()
        };
        let sweeps = paper.sweeps.iter().map(|sweep| (sweep.name.clone(), points(sweep)));
        let sweeps = sweeps.collect();
        (paper, sweeps)
    }

    #[test]
    fn the_value_that_was_taken_comes_from_points_that_differ_in_nothing_else() {
        let (paper, sweeps) = evidence();
        let found = Sensitivity::of(&paper, "noise", &sweeps).expect("the noise is varied");
        assert_eq!((found.key.as_str(), found.taken.as_str()), ("radio.noise_dbm", "-81.6"));
        let taken = found.points.iter().filter(|p| p.setting("radio.noise_dbm") == Some("-81.6"));
        let taken: Vec<_> = taken
            .map(|p| ["scenario", "traffic.period", "coap.congestion"].map(|key| p.setting(key)))
            .collect();
        let here = |timer| [Some("grid-64"), Some("2s"), Some(timer)];
        assert_eq!(taken, [here("default"), here("cocoa")]);
        assert_eq!(found.points.len(), 2 + 4);
    }

    #[test]
    fn a_value_that_both_sweeps_have_is_the_one_that_was_taken() {
        let (paper, sweeps) = evidence();
        let found = Sensitivity::of(&paper, "readings", &sweeps).expect("the timer is varied");
        assert_eq!((found.key.as_str(), found.taken.as_str()), ("coap.congestion", "cocoa"));
        assert_eq!(found.points.len(), 2, "no point is there twice");
    }

    #[test]
    fn a_sweep_that_a_claim_needs_or_that_has_no_like_points_varies_no_assumption() {
        let (paper, sweeps) = evidence();
        assert_eq!(Sensitivity::of(&paper, "load", &sweeps), None);
        assert_eq!(Sensitivity::of(&paper, "longer", &sweeps), None, "its runs are longer");
        assert_eq!(Sensitivity::of(&paper, "nothing", &sweeps), None);
    }
}
