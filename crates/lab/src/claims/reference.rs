//! Measured values as the reference of a claim, from a CSV table.
//!
//! The first line names the columns. A row belongs to a point if, for every column whose name is a setting of
//! the point, it has the same value; the column with the metric's name holds the value, and `seed`, where there is
//! one, pairs it with a run. Rows without a seed stand for every seed.

use std::collections::BTreeMap;

use super::claim::Test;
use super::select::{self, Comparison, Side};
use crate::results::PointResult;

/// A table of measured values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is no first line.
    #[error("the table has no line with the names of its columns")]
    Empty,
    /// A row has more or fewer fields than there are columns.
    #[error("line {0}: {1} fields in a table of {2} columns")]
    Width(usize, usize, usize),
}

impl Table {
    /// Reads a CSV text; lines that begin with `#` are remarks. Fields have no quotes and hold no comma.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let kept = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
        let mut lines = text.lines().enumerate().filter(kept);
        let fields = |line: &str| -> Vec<String> {
            line.split(',').map(|field| field.trim().to_owned()).collect()
        };
        let columns = fields(lines.next().ok_or(TableError::Empty)?.1);
        let mut rows = Vec::new();
        for (number, line) in lines {
            let row = fields(line);
            if row.len() != columns.len() {
                return Err(TableError::Width(number + 1, row.len(), columns.len()));
            }
            rows.push(row);
        }
        Ok(Self { columns, rows })
    }

    /// The values of `metric` at `point`, by seed where the table has seeds.
    fn values(&self, point: &PointResult, metric: &str) -> Vec<(Option<u64>, f64)> {
        let index = |name: &str| self.columns.iter().position(|column| column == name);
        let Some(metric) = index(metric) else { return Vec::new() };
        let seed = index("seed");
        let same = |row: &&Vec<String>| {
            self.columns.iter().zip(*row).all(|(column, field)| {
                select::setting(point, column).is_none_or(|value| alike(value, field))
            })
        };
        let value = |row: &Vec<String>| {
            let number = row[metric].parse::<f64>().ok().filter(|number| number.is_finite())?;
            Some((seed.and_then(|seed| row[seed].parse().ok()), number))
        };
        self.rows.iter().filter(same).filter_map(value).collect()
    }
}

/// Equal as texts or as numbers with units: `500ms` is `0.5s`.
fn alike(value: &str, field: &str) -> bool {
    let numbers = || select::place(value).zip(select::place(field));
    value == field || numbers().is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
}

/// Puts measured values in the place of the right side.
pub(super) fn hold_against(test: &Test, table: &Table, comparisons: &mut Vec<Comparison<'_>>) {
    for one in comparisons {
        let measured = table.values(one.point, &test.metric);
        let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (seed, value) in measured {
            match seed {
                Some(seed) => by_seed.entry(seed).or_default().push(value),
                None => {
                    one.left.runs.keys().for_each(|s| by_seed.entry(*s).or_default().push(value));
                }
            }
        }
        let mean = |(seed, values): (u64, Vec<f64>)| {
            crate::statistics::mean(&values).map(|mean| (seed, mean))
        };
        one.right = Side::of(by_seed.into_iter().filter_map(mean).collect());
        one.effect = one.left.minus(&one.right, test.relative);
    }
}

#[cfg(test)]
mod tests {
    use super::super::select::tests::point;
    use super::*;

    const CSV: &str =
        "# a testbed\ntraffic.period,cc,tdr\n500ms,cocoa,0.9\n500ms,cocoa,0.8\n1s,cocoa,0.99\n";

    #[test]
    fn rows_are_found_by_the_settings_that_they_share_with_a_point() {
        let table = Table::parse(CSV).expect("a table");
        let here = point(&[("scenario", "x"), ("traffic.period", "0.5s"), ("cc", "cocoa")], &[]);
        assert_eq!(table.values(&here, "tdr"), [(None, 0.9), (None, 0.8)]);
        let other = point(&[("traffic.period", "0.5s"), ("cc", "default")], &[]);
        assert_eq!(table.values(&other, "tdr"), []);
        assert_eq!(table.values(&here, "delay_p95_ms"), []);
    }

    #[test]
    fn a_measured_mean_stands_on_the_right_of_every_run() {
        let table = Table::parse(CSV).expect("a table");
        let points = [point(&[("traffic.period", "500ms"), ("cc", "cocoa")], &[0.9, 0.95])];
        let test: Test =
            toml::from_str("op = \"similar\"\nmetric = \"tdr\"\ntolerance = 0.1").expect("a test");
        let mut comparisons = select::comparisons(&test, &points);
        hold_against(&test, &table, &mut comparisons);
        let effects: Vec<f64> =
            comparisons[0].effect.runs.values().map(|v| (v * 1000.0).round()).collect();
        assert_eq!(effects, [50.0, 100.0]);
    }

    #[test]
    fn a_table_with_seeds_is_paired() {
        let table = Table::parse("seed,tdr\n2,0.5\n9,0.1\n").expect("a table");
        let points = [point(&[("cc", "cocoa")], &[0.9, 0.7])];
        let test: Test = toml::from_str("op = \"gt\"\nmetric = \"tdr\"").expect("a test");
        let mut comparisons = select::comparisons(&test, &points);
        hold_against(&test, &table, &mut comparisons);
        assert_eq!(comparisons[0].effect.runs.keys().copied().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_row_of_another_width_is_told_with_its_line() {
        assert_eq!(Table::parse("# only a remark\n"), Err(TableError::Empty));
        assert_eq!(Table::parse("a,b\n1\n"), Err(TableError::Width(2, 1, 2)));
    }
}
