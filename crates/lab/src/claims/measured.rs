//! Values that others measured with the settings of a publication's points, for a table beside ours. No claim is judged by
//! them.

use serde::Deserialize;

use super::Settings;
use super::select::has;
use crate::results::PointResult;

/// A table of measured values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What was measured.
    pub name: String,
    /// The metric.
    pub metric: String,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// Measurements with the settings of one point.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The sweep of the point.
    pub sweep: String,
    /// Settings of the point.
    pub at: Settings,
    /// The median; absent if more than half did not end.
    pub median: Option<f64>,
    /// The smallest value.
    pub least: Option<f64>,
    /// The largest value; absent if one did not end.
    pub most: Option<f64>,
    /// The number of values.
    pub flows: u32,
    /// Of these, those that did not end.
    #[serde(default)]
    pub unfinished: u32,
}

impl Measured {
    /// The row for `point` of `sweep`.
    pub fn row(&self, sweep: &str, point: &PointResult) -> Option<&Row> {
        self.rows.iter().find(|row| row.sweep == sweep && has(point, &row.at))
    }
}

impl Row {
    /// "59.8 (58.1 to 60.4; n = 3)".
    pub fn words(&self) -> String {
        let number = |value: Option<f64>| {
            value.map_or_else(|| "unfinished".to_owned(), |value| format!("{value:.1}"))
        };
        let [median, least, most] = [self.median, self.least, self.most].map(number);
        let range = if self.flows == 1 { String::new() } else { format!("{least} to {most}; ") };
        format!("{median} ({range}n = {})", self.flows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::select::tests::point;
    use super::*;

    #[test]
    fn a_row_belongs_to_the_points_with_its_settings() {
        let text = "name = \"x\"\nmetric = \"completion_s\"\n[[row]]\nsweep = \"s\"\nat = { p = \"2\" }\n\
                    median = 4.0\nleast = 3.0\nmost = 9.04\nflows = 3\n[[row]]\nsweep = \"s\"\n\
                    at = { p = \"3\" }\nleast = 3.0\nflows = 3\nunfinished = 2\n";
        let table: Measured = toml::from_str(text).expect("a table");
        let words = |sweep: &str, p: &str| {
            table.row(sweep, &point(&[("p", p), ("q", "1")], &[])).map(Row::words)
        };
        assert_eq!(words("s", "2").as_deref(), Some("4.0 (3.0 to 9.0; n = 3)"));
        assert_eq!(words("s", "3").as_deref(), Some("unfinished (3.0 to unfinished; n = 3)"));
        assert_eq!((words("s", "4"), words("t", "2")), (None, None));
    }
}
