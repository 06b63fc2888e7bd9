//! How the points of a sweep are laid out: which key is the x axis, what is a series, what is a panel of its own.
//!
//! The x axis is the numeric key with the most values. Every combination of the other keys is a series. More
//! series than a reader tells apart are spread over small panels, by numeric keys first and by `coap.` keys
//! last, because congestion controls are what readers compare; values of one key stay together while there are
//! colours for them. A key that follows from the others (as
//! in a zipped sweep) tells nothing and is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::style::SERIES_MAX;
use crate::results::PointResult;
use crate::statistics::Estimate;

/// Series in one panel, if there is more than one key to spread over panels.
const SERIES_WANTED: usize = 4;
/// Panels in one figure at most; the data tables have all of them.
pub const PANELS_MAX: usize = 12;

/// The key along the x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Along {
    /// The key.
    pub key: String,
    /// What stands under the axis.
    pub label: String,
    /// Its values in the order of the axis.
    pub values: Vec<String>,
    /// The same as numbers, if all are.
    pub numbers: Option<Vec<f64>>,
}

impl Along {
    /// Where a point lies on the axis: its number, or the place of its name.
    pub fn place(&self, point: &PointResult) -> Option<f64> {
        let value = point.setting(&self.key)?;
        let index = self.values.iter().position(|other| other == value)?;
        self.numbers.as_ref().map_or(Some(index as f64), |numbers| numbers.get(index).copied())
    }
}

/// Points that are joined by a line.
#[derive(Clone, Debug)]
pub struct Series<'r> {
    /// What tells it from the others of its panel; empty if there are none.
    pub label: String,
    /// Colour, dash and shape.
    pub style: usize,
    /// Its points in the order of the x axis.
    pub points: Vec<&'r PointResult>,
}

/// One panel.
#[derive(Clone, Debug)]
pub struct Facet<'r> {
    /// What its series have in common; empty if there is one panel only.
    pub title: String,
    /// Its series.
    pub series: Vec<Series<'r>>,
}

/// The layout of a sweep.
#[derive(Clone, Debug)]
pub struct Arrangement<'r> {
    /// The x axis; absent without a sweep.
    pub along: Option<Along>,
    /// The panels.
    pub facets: Vec<Facet<'r>>,
}

impl<'r> Arrangement<'r> {
    /// Lays out `points`.
    pub fn of(points: &'r [PointResult]) -> Self {
        let keys = swept_keys(points);
        let along = keys
            .iter()
            .filter(|(_, values)| numbers(values).is_some())
            // The first of several with as many values.
            .max_by_key(|(key, values)| (values.len(), std::cmp::Reverse(rank(&keys, key))))
            .or(keys.first())
            .map(|(key, values)| along(key, values));
        let others = telling_keys(points, &keys, along.as_ref());
        let (facet_keys, series_keys) = split(&others);
        let mut facets: Vec<Group<'r, Group<'r, &'r PointResult>>> = Vec::new();
        for point in points {
            let title = picked(point, &facet_keys);
            let label = picked(point, &series_keys);
            let facet = entry(&mut facets, title);
            entry(facet, label).push(point);
        }
        let styles: Vec<Vec<&str>> = order_of_labels(&facets);
        let facets = facets.into_iter().map(|(title, series)| Facet {
            title: named(&facet_keys, &title),
            series: series
                .into_iter()
                .map(|(label, points)| Series {
                    style: styles.iter().position(|other| *other == label).unwrap_or_default(),
                    label: named(&series_keys, &label),
                    points: in_order(points, along.as_ref()),
                })
                .collect(),
        });
        let facets = facets.collect();
        Self { along, facets }
    }

    /// One point of each series, `at` that value of the x axis (or its only one), with words that tell it.
    pub fn slice(&self, at: Option<&str>) -> Vec<(String, &'r PointResult)> {
        let mut slice = Vec::new();
        for facet in &self.facets {
            for series in &facet.series {
                let here = |point: &&&PointResult| match (&self.along, at) {
                    (Some(along), Some(at)) => point.setting(&along.key) == Some(at),
                    _ => true,
                };
                let words = [facet.title.as_str(), series.label.as_str()];
                let words: Vec<&str> =
                    words.into_iter().filter(|words| !words.is_empty()).collect();
                slice.extend(series.points.iter().find(here).map(|p| (words.join(", "), *p)));
            }
        }
        slice
    }

    /// The value of the x axis at which transactions are lost most.
    pub fn hardest(&self) -> Option<&str> {
        let along = self.along.as_ref()?;
        let tdr = |value: &str| {
            let slice = self.slice(Some(value));
            let means = slice.iter().filter_map(|(_, p)| delivery(p)).map(|e| e.mean);
            let (sum, n) = means.fold((0.0, 0_u32), |(sum, n), mean| (sum + mean, n + 1));
            if n == 0 { f64::INFINITY } else { sum / f64::from(n) }
        };
        let worse = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
        along.values.iter().map(|v| (v.as_str(), tdr(v))).min_by(worse).map(|(value, _)| value)
    }
}

/// The share of transactions that were delivered, or of datagrams where there are no transactions.
fn delivery(point: &PointResult) -> Option<Estimate> {
    point.estimate("tdr").or_else(|| point.estimate("datagram_pdr"))
}

/// What shares these values.
type Group<'p, T> = (Vec<&'p str>, Vec<T>);

type Keys = Vec<(String, Vec<String>)>;

/// Keys with more than one value, each with its values in order of appearance.
fn swept_keys(points: &[PointResult]) -> Keys {
    let mut keys: Keys = Vec::new();
    for (key, value) in points.iter().flat_map(|point| &point.point.settings) {
        match keys.iter_mut().find(|(other, _)| other == key) {
            Some((_, values)) if values.contains(value) => {}
            Some((_, values)) => values.push(value.clone()),
            None => keys.push((key.clone(), vec![value.clone()])),
        }
    }
    keys.retain(|(_, values)| values.len() > 1);
    keys
}

fn rank(keys: &Keys, key: &str) -> usize {
    keys.iter().position(|(other, _)| other == key).unwrap_or_default()
}

fn along(key: &str, values: &[String]) -> Along {
    let name = key.rsplit('.').next().unwrap_or(key);
    let Some((numbers, unit)) = numbers(values) else {
        let (key, label) = (key.to_owned(), name.replace('_', " "));
        return Along { key, label, values: values.to_vec(), numbers: None };
    };
    let mut both: Vec<(f64, String)> = numbers.into_iter().zip(values.iter().cloned()).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A unit stands behind the number, or last in the key's name.
    let (words, own) = words_and_unit(name);
    let unit = if unit.is_empty() { own } else { unit };
    let label = if unit.is_empty() { words } else { format!("{words} ({unit})") };
    let (numbers, values) = both.into_iter().unzip();
    Along { key: key.to_owned(), label, values, numbers: Some(numbers) }
}

/// The last part of a key in words, and the unit that it ends with: `noise_dbm` is the noise in dBm.
fn words_and_unit(name: &str) -> (String, &str) {
    let suffixes = ["s", "ms", "m", "dbm", "db", "frames", "us"];
    let (stem, unit) = match name.rsplit_once('_') {
        Some((stem, suffix)) if suffixes.contains(&suffix) => (stem, suffix),
        _ => (name, ""),
    };
    let unit = match unit {
        "dbm" => "dBm",
        "db" => "dB",
        unit => unit,
    };
    (stem.replace('_', " "), unit)
}

/// All values as numbers in one unit; durations of different units come out in seconds.
fn numbers(values: &[String]) -> Option<(Vec<f64>, &'static str)> {
    const TIMES: [(&str, f64); 7] = [
        ("", 0.0),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let read = |value: &String| {
        let bare = value.trim().trim_matches('"');
        let end = bare.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(bare.len());
        let (digits, unit) = bare.split_at(end);
        let number: f64 = digits.trim().parse().ok().filter(|n: &f64| n.is_finite())?;
        let unit = TIMES.iter().find(|(name, _)| *name == unit)?;
        Some((number, *unit))
    };
    let read: Vec<_> = values.iter().map(read).collect::<Option<_>>()?;
    let (_, (first, factor)) = *read.first()?;
    if read.iter().all(|(_, (unit, _))| *unit == first) {
        return Some((read.iter().map(|(number, _)| *number).collect(), first));
    }
    // A bare number among durations is no duration, but for zero.
    let all_times = factor > 0.0 && read.iter().all(|(n, (_, f))| *f > 0.0 || n.abs() < 1e-12);
    all_times.then(|| (read.iter().map(|(n, (_, f))| n * f).collect(), "s"))
}

/// The keys besides the x axis, without those that follow from the ones before them.
fn telling_keys(points: &[PointResult], keys: &Keys, along: Option<&Along>) -> Keys {
    let mut kept: Keys = Vec::new();
    for (key, values) in keys {
        if along.is_some_and(|along| along.key == *key) {
            continue;
        }
        let mut known: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
        known.extend(along.map(|along| along.key.as_str()));
        let mut seen: BTreeMap<Vec<&str>, BTreeSet<&str>> = BTreeMap::new();
        for point in points {
            let value = point.setting(key).unwrap_or_default();
            seen.entry(picked(point, &known)).or_default().insert(value);
        }
        if seen.values().any(|values| values.len() > 1) {
            kept.push((key.clone(), values.clone()));
        }
    }
    kept
}

/// Which keys tell panels apart, and which tell the series of a panel apart.
fn split(keys: &Keys) -> (Vec<&str>, Vec<&str>) {
    let reluctance = |(key, values): &&(String, Vec<String>)| {
        (key.starts_with("coap."), numbers(values).is_none())
    };
    let mut order: Vec<_> = keys.iter().collect();
    order.sort_by_key(reluctance);
    let mut series: usize = keys.iter().map(|(_, values)| values.len()).product();
    let mut facet: Vec<&str> = Vec::new();
    for (index, (key, values)) in order.iter().enumerate() {
        let last = index + 1 == order.len();
        if series <= if last { SERIES_MAX } else { SERIES_WANTED } {
            break;
        }
        facet.push(key);
        series /= values.len();
    }
    let own = keys.iter().map(|(key, _)| key.as_str()).filter(|key| !facet.contains(key)).collect();
    (facet, own)
}

fn picked<'p>(point: &'p PointResult, keys: &[&str]) -> Vec<&'p str> {
    keys.iter().map(|key| point.setting(key).unwrap_or_default()).collect()
}

/// The list under `key`, made if need be; order of first appearance.
fn entry<K: PartialEq, V>(list: &mut Vec<(K, Vec<V>)>, key: K) -> &mut Vec<V> {
    let place = list.iter().position(|(other, _)| *other == key);
    let place = place.unwrap_or_else(|| {
        list.push((key, Vec::new()));
        list.len() - 1
    });
    &mut list[place].1
}

/// Labels over all panels, so that a label has the same colour everywhere.
fn order_of_labels<'p, P>(facets: &[Group<'p, Group<'p, P>>]) -> Vec<Vec<&'p str>> {
    let mut labels: Vec<Vec<&str>> = Vec::new();
    for (label, _) in facets.iter().flat_map(|(_, series)| series) {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    labels
}

/// "rows 8, cocoa": numbers need the key's name, names do not.
pub(super) fn named(keys: &[&str], values: &[&str]) -> String {
    let words = |(key, value): (&&str, &&str)| {
        let bare = value.trim_matches('"');
        let (name, unit) = words_and_unit(key.rsplit('.').next().unwrap_or(key));
        let named = numbers(&[bare.to_owned()]).is_none() && !matches!(bare, "true" | "false");
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        if named { bare.to_owned() } else { format!("{name} {bare}{unit}") }
    };
    keys.iter().zip(values).map(words).collect::<Vec<_>>().join(", ")
}

fn in_order<'r>(mut points: Vec<&'r PointResult>, along: Option<&Along>) -> Vec<&'r PointResult> {
    if let Some(along) = along {
        let place = |point: &PointResult| along.place(point).unwrap_or(f64::INFINITY);
        points.sort_by(|a, b| place(a).total_cmp(&place(b)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::made_up::results;
    use super::*;

    #[test]
    fn the_x_axis_is_the_numeric_key_with_the_most_values() {
        let results = results(
            &[
                ("coap.congestion", &["default", "cocoa"]),
                ("topology.rows", &["5", "8"]),
                ("traffic.period", &["10s", "500ms", "2s"]),
            ],
            1,
        );
        let arrangement = Arrangement::of(&results.points);
        let along = arrangement.along.expect("a sweep");
        assert_eq!((along.key.as_str(), along.label.as_str()), ("traffic.period", "period (s)"));
        assert_eq!(along.values, ["500ms", "2s", "10s"]);
        assert_eq!(along.numbers, Some(vec![0.5, 2.0, 10.0]));
        let labels: Vec<_> = arrangement.facets[0].series.iter().map(|s| &s.label).collect();
        assert_eq!(
            labels,
            ["default, rows 5", "default, rows 8", "cocoa, rows 5", "cocoa, rows 8"]
        );
    }

    #[test]
    fn many_series_become_small_panels_and_congestion_stays_inside() {
        let results = results(
            &[
                ("coap.congestion", &["default", "cocoa", "6cocoa"]),
                ("topology.rows", &["5", "8"]),
                ("schedule.function", &["b-msf", "alice"]),
                ("traffic.period_s", &["2", "4", "6"]),
            ],
            1,
        );
        let arrangement = Arrangement::of(&results.points);
        let titles: Vec<_> = arrangement.facets.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(titles, ["rows 5, b-msf", "rows 5, alice", "rows 8, b-msf", "rows 8, alice"]);
        for facet in &arrangement.facets {
            let labels: Vec<_> = facet.series.iter().map(|s| (s.label.as_str(), s.style)).collect();
            assert_eq!(labels, [("default", 0), ("cocoa", 1), ("6cocoa", 2)]);
        }
        assert_eq!(arrangement.along.expect("a sweep").label, "period (s)");
    }

    #[test]
    fn a_number_is_told_with_its_key_and_unit_and_a_name_alone() {
        let keys = ["radio.noise_dbm", "traffic.period", "coap.congestion", "topology.rows"];
        let told = named(&keys, &["-80.0", "2s", "cocoa", "5"]);
        assert_eq!(told, "noise -80.0 dBm, period 2s, cocoa, rows 5");
    }

    #[test]
    fn values_of_one_key_stay_in_one_panel_while_there_are_colours() {
        let timers: &[&str] = &["default", "cocoa", "6cocoa", "fixed", "rfc6298", "cocoa/ecoap"];
        let swept = [("coap.congestion", timers), ("traffic.period", &["2s", "4s"])];
        let results = results(&swept, 1);
        let arrangement = Arrangement::of(&results.points);
        assert_eq!((arrangement.facets.len(), arrangement.facets[0].series.len()), (1, 6));
    }

    #[test]
    fn a_key_that_follows_from_another_is_in_no_label() {
        let mut results =
            results(&[("topology.rows", &["5", "8"]), ("coap.congestion", &["a", "b"])], 1);
        for point in &mut results.points {
            let rows = point.setting("topology.rows").expect("swept").to_owned();
            point.point.settings.insert(1, ("topology.cols".to_owned(), rows));
        }
        let labels: Vec<String> = Arrangement::of(&results.points).facets[0]
            .series
            .iter()
            .map(|s| s.label.clone())
            .collect();
        assert_eq!(labels, ["a", "b"]);
    }

    #[test]
    fn without_a_sweep_there_is_one_series_without_a_name() {
        let results = results(&[], 3);
        let arrangement = Arrangement::of(&results.points);
        assert!(arrangement.along.is_none());
        let slice = arrangement.slice(None);
        assert_eq!((slice.len(), slice[0].0.as_str()), (1, ""));
    }

    #[test]
    fn names_that_are_no_numbers_can_be_an_axis_too() {
        let results = results(&[("coap.congestion", &["default", "cocoa"])], 1);
        let along = Arrangement::of(&results.points).along.expect("a sweep");
        assert_eq!((along.numbers, along.label.as_str()), (None, "congestion"));
    }
}
