//! Panel c: how long acknowledged requests took, by hops; a line over all runs, a band from the run with the
//! least to the run with the largest share.

use super::axes::{Axis, Panel, Scale};
use super::svg::{Anchor, BLUE, GREEN, ORANGE, Stroke, Svg, VERMILLION};
use super::trace::Run;

/// Groups of hops, first and last, with colour, width and name.
const GROUPS: [(usize, usize, Stroke, &str); 4] = [
    (1, 2, Stroke::solid(BLUE, 3.2), "1 to 2 hops"),
    (3, 4, Stroke::solid(GREEN, 2.6), "3 to 4"),
    (5, 6, Stroke::solid(ORANGE, 2.2), "5 to 6"),
    (7, usize::MAX, Stroke { colour: VERMILLION, width: 2.2, dashed: true }, "7 and more"),
];
/// Ends of the axis, in seconds.
const SHORTEST_S: f64 = 0.02;
const LONGEST_S: f64 = 100.0;
/// Points of a curve.
const STEPS: u32 = 160;

/// Draws the distributions of requests first sent after the warm-up.
pub fn draw(svg: &mut Svg, runs: &[Run], warmup_s: f64, area: (f64, f64, f64, f64)) {
    let x = Axis {
        scale: Scale::Logarithmic(SHORTEST_S, LONGEST_S),
        ticks: vec![0.1, 1.0, 10.0, 100.0],
        label: "delay to the acknowledgement (s)",
    };
    let y = Axis::from_zero(1.0, "share of requests");
    let panel = Panel::draw(svg, area, x, y);
    let (left, mut row) = (area.0 + area.2 - 126.0, area.1 + area.3 - 78.0);
    for (first, last, stroke, name) in GROUPS {
        let samples: Vec<Vec<f64>> =
            runs.iter().map(|run| sorted(run, warmup_s, first, last)).collect();
        let runs_with: Vec<&Vec<f64>> = samples.iter().filter(|run| !run.is_empty()).collect();
        if runs_with.is_empty() {
            continue;
        }
        let mut all = samples.concat();
        all.sort_by(f64::total_cmp);
        let (mut middle, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let delay = SHORTEST_S * (LONGEST_S / SHORTEST_S).powf(share);
            let shares = || runs_with.iter().map(|run| share_within(run, delay));
            middle.push(panel.at(delay, share_within(&all, delay)));
            low.push(panel.at(delay, shares().fold(1.0, f64::min)));
            high.push(panel.at(delay, shares().fold(0.0, f64::max)));
        }
        low.reverse();
        high.extend(low);
        svg.area(&high, stroke.colour);
        svg.line(&middle, stroke);
        svg.line(&[(left, row - 5.0), (left + 26.0, row - 5.0)], stroke);
        svg.small(left + 32.0, row, name, Anchor::Start);
        row += 22.0;
    }
}

/// Delays of one run from `first` to `last` hops away, in order.
fn sorted(run: &Run, warmup_s: f64, first: usize, last: usize) -> Vec<f64> {
    let mut delays: Vec<f64> = run
        .delays
        .iter()
        .filter(|delay| delay.sent_s >= warmup_s)
        .filter(|delay| delay.hops.is_some_and(|hops| (first..=last).contains(&hops)))
        .map(|delay| delay.took_s)
        .collect();
    delays.sort_by(f64::total_cmp);
    delays
}

/// Share of the sorted delays that are no longer than `delay`.
fn share_within(sorted: &[f64], delay: f64) -> f64 {
    sorted.partition_point(|sample| *sample <= delay) as f64 / sorted.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::trace::Delay;
    use super::*;

    #[test]
    fn only_requests_after_the_warm_up_and_of_the_group_count() {
        let delay = |sent_s, took_s, hops| Delay { sent_s, took_s, hops };
        let run = Run {
            delays: vec![
                delay(9.0, 1.0, Some(1)),
                delay(10.0, 3.0, Some(2)),
                delay(11.0, 2.0, Some(1)),
                delay(12.0, 4.0, Some(3)),
                delay(13.0, 5.0, None),
            ],
            ..Run::default()
        };
        assert_eq!(sorted(&run, 10.0, 1, 2), [2.0, 3.0]);
        assert_eq!(sorted(&run, 10.0, 3, usize::MAX), [4.0]);
    }

    #[test]
    fn a_distribution_climbs_from_nothing_to_all() {
        let delays = [1.0, 2.0, 2.0, 4.0];
        let quarters = |delay_s| (4.0 * share_within(&delays, delay_s)).round() as u32;
        assert_eq!([0.5, 1.0, 2.0, 9.0].map(quarters), [0, 1, 3, 4]);
    }
}
