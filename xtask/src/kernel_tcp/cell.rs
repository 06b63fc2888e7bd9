//! A cell of the table: congestion control, queue and loss, and the line of its completion times.

/// The congestion controls of the kernel.
pub const WINDOWS: [&str; 3] = ["reno", "bbr", "cubic"];
/// Octets of the queue; the last one never fills.
pub const QUEUES: [u64; 4] = [2_500, 14_100, 28_200, 1_410_000];
/// Losses of each direction.
pub const LOSSES: [&str; 2] = ["none", "2%"];

/// What a transfer is run with.
#[derive(Clone, Debug)]
pub struct Cell {
    pub window: String,
    pub queue: u64,
    /// `none`, or a value of `lowmesh emulate --loss`.
    pub loss: String,
    pub sack: bool,
}

impl Cell {
    pub fn is_lossy(&self) -> bool {
        self.loss != "none"
    }
    pub fn loss_value(&self) -> &str {
        if self.is_lossy() { &self.loss } else { "0" }
    }
    pub fn name(&self) -> String {
        let sack = if self.sack { " sack" } else { "" };
        format!("{} {} {}{sack}", self.window, self.queue, self.loss)
    }
    /// The cell and its times, one line of a file of runs.
    pub fn line(&self, times: &[f64]) -> String {
        let times: Vec<String> = times.iter().map(|seconds| format!("{seconds:.2}")).collect();
        format!("{}: {}\n", self.name(), times.join(" "))
    }
    /// The median of sorted times with its interval and the range.
    pub fn summary(&self, times: &[f64]) -> String {
        let (Some(least), Some(most)) = (times.first(), times.last()) else {
            return format!("{}: no runs", self.name());
        };
        let (median, (low, high)) = (median(times), interval(times));
        format!(
            "{}: median {median:.1} s ({low:.1} to {high:.1} with 95 %), {least:.1} to {most:.1} in {} runs",
            self.name(),
            times.len()
        )
    }
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// The narrowest pair of order statistics that holds the median with 95 %: the binomial counts how many runs lie below
/// it. With fewer than six runs it is the whole range.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let runs = sorted.len();
    let mut probability = 0.5_f64.powf(runs as f64);
    let (mut outside, mut rank) = (0.0, 0);
    while rank < runs / 2 && outside + probability <= 0.025 {
        outside += probability;
        rank += 1;
        probability *= (runs - rank + 1) as f64 / rank as f64;
    }
    let rank = rank.max(1);
    (sorted[rank - 1], sorted[runs - rank])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_the_median_is_that_of_the_tables() {
        // Conover's table: with 25 runs the ranks 8 and 18, with 15 the ranks 4 and 12, with 6 the range.
        let times = |runs: u32| (1..=runs).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&times(25)), (8.0, 18.0));
        assert_eq!(interval(&times(15)), (4.0, 12.0));
        assert_eq!(interval(&times(6)), (1.0, 6.0));
        assert_eq!(interval(&times(3)), (1.0, 3.0));
        assert!((median(&times(4)) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_line_names_its_cell() {
        let cell = Cell { window: "bbr".into(), queue: 2_500, loss: "2%".into(), sack: false };
        assert_eq!(cell.line(&[40.0, 41.256]), "bbr 2500 2%: 40.00 41.26\n");
    }
}
