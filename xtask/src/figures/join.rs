//! Panel b: how many nodes have joined, over time; a thin line a run, a thick one for their mean.

use super::axes::{Axis, Panel};
use super::svg::{Anchor, BLUE, SKY, Stroke, Svg};
use super::trace::Run;

/// Steps of the mean's curve.
const STEPS: u32 = 300;

/// Draws the curves of `runs` of a network with `nodes` nodes besides the root.
pub fn draw(svg: &mut Svg, runs: &[Run], nodes: usize, area: (f64, f64, f64, f64)) {
    let joins: Vec<Vec<f64>> = runs.iter().map(joins_min).collect();
    let last = joins.iter().flatten().copied().fold(1.0, f64::max);
    let x = Axis::from_zero(last * 1.02, "time (min)");
    let end = *x.ticks.last().expect("an axis has ticks");
    let y = Axis::from_zero(nodes as f64, "nodes joined");
    let panel = Panel::draw(svg, area, x, y);
    for joins in &joins {
        let mut points = vec![panel.at(0.0, 0.0)];
        for (count, minute) in joins.iter().enumerate() {
            points.push(panel.at(*minute, count as f64));
            points.push(panel.at(*minute, count as f64 + 1.0));
        }
        points.push(panel.at(end, joins.len() as f64));
        svg.line(&points, Stroke::solid(SKY, 1.2));
    }
    let mean: Vec<_> = (0..=STEPS)
        .map(|step| f64::from(step) / f64::from(STEPS) * end)
        .map(|minute| panel.at(minute, mean_joined(&joins, minute)))
        .collect();
    svg.line(&mean, Stroke::solid(BLUE, 2.8));
    let (right, y) = (area.0 + area.2 - 10.0, area.1 + area.3 - 40.0);
    for (row, stroke, words) in
        [(0.0, Stroke::solid(BLUE, 2.8), "mean"), (22.0, Stroke::solid(SKY, 1.2), "one run")]
    {
        svg.line(&[(right - 98.0, y + row - 5.0), (right - 72.0, y + row - 5.0)], stroke);
        svg.small(right - 64.0, y + row, words, Anchor::Start);
    }
}

/// When nodes joined, in minutes, in order, without the root.
fn joins_min(run: &Run) -> Vec<f64> {
    let mut joins: Vec<f64> =
        run.joined_s.iter().filter(|(node, _)| **node != 0).map(|(_, s)| s / 60.0).collect();
    joins.sort_by(f64::total_cmp);
    joins
}

fn mean_joined(joins: &[Vec<f64>], minute: f64) -> f64 {
    let joined = |run: &Vec<f64>| run.iter().filter(|join| **join <= minute).count();
    joins.iter().map(joined).sum::<usize>() as f64 / joins.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_root_does_not_count_as_a_node_that_joins() {
        let joined_s = BTreeMap::from([(0, 0.0), (1, 120.0), (2, 60.0)]);
        assert_eq!(joins_min(&Run { joined_s, ..Run::default() }), [1.0, 2.0]);
    }

    #[test]
    fn the_mean_is_over_runs() {
        let joins = [vec![1.0, 2.0], vec![3.0]];
        let halves = |minute| (2.0 * mean_joined(&joins, minute)).round() as u32;
        assert_eq!([0.5, 2.0, 3.0].map(halves), [0, 2, 3]);
    }
}
