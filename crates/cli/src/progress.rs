//! How far the runs are, on stderr: a bar with the time left, or a plain line now and then.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::{Duration as WallDuration, Instant as WallInstant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lowmesh_lab::digits::Digits;
use lowmesh_lab::runner::Progress;
use lowmesh_units::Duration;

use crate::console::say;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// A bar on a terminal, plain lines elsewhere.
    Auto,
    /// A line every ten seconds.
    Plain,
    /// Nothing.
    None,
}

/// Time between two plain lines.
const PLAIN_PERIOD: WallDuration = WallDuration::from_secs(10);

/// Shows the progress of a number of runs; any thread may report.
pub struct Meter {
    view: View,
    runs: u64,
    /// The metric of which a running mean is shown.
    figure: String,
    started: WallInstant,
    state: Mutex<State>,
}

enum View {
    Bar(ProgressBar),
    Plain,
    Silent,
}

struct State {
    simulated: Duration,
    total: Duration,
    ended: u64,
    last_line: WallInstant,
    /// The point of the run that finished last, with the mean of the figure over its finished runs.
    newest: String,
    /// Sum and number of values of the figure, by point.
    sums: BTreeMap<String, (f64, u32)>,
}

impl State {
    fn new(total: Duration, now: WallInstant) -> Self {
        Self {
            simulated: Duration::ZERO,
            total,
            ended: 0,
            last_line: now,
            newest: String::new(),
            sums: BTreeMap::new(),
        }
    }

    /// Adds the figure of a run that finished at `place`.
    fn add(&mut self, place: &str, figure: &str, value: Option<f64>) {
        let sum = self.sums.entry(place.to_owned()).or_default();
        if let Some(value) = value {
            *sum = (sum.0 + value, sum.1 + 1);
        }
        let (sum, runs) = *sum;
        place.clone_into(&mut self.newest);
        if runs > 0 {
            let mean = Digits::significant(sum / f64::from(runs), 4).show(sum / f64::from(runs));
            let plural = if runs == 1 { "" } else { "s" };
            self.newest.extend([format!(": {figure} {mean} ({runs} run{plural})")]);
        }
    }
}

/// The main figure where the user chooses none: the share of transactions that are delivered.
pub const FIGURE: &str = "tdr";

impl Meter {
    /// For `runs` runs that simulate `total` together.
    pub fn new(style: Style, runs: u64, total: Duration) -> Self {
        let view = match style {
            Style::None => View::Silent,
            Style::Auto if stderr().is_terminal() => View::Bar(bar(total)),
            Style::Auto | Style::Plain => View::Plain,
        };
        let now = wall_clock();
        let state = Mutex::new(State::new(total, now));
        Self { view, runs, figure: FIGURE.to_owned(), started: now, state }
    }

    /// The same with a running mean of this metric.
    pub fn with_figure(self, figure: &str) -> Self {
        Self { figure: figure.to_owned(), ..self }
    }

    /// The bar, if there is one, for a thread that ends the process while it is drawn.
    pub fn bar(&self) -> Option<ProgressBar> {
        if let View::Bar(bar) = &self.view { Some(bar.clone()) } else { None }
    }

    /// Takes one report and shows it if it is time; `place` says which point of a sweep it is about.
    pub fn observe(&self, progress: &Progress<'_>, place: &str) {
        if let Progress::Failed(failure) = progress {
            self.line(&format!("seed {}{place} failed: {}", failure.seed.0, failure.error));
        }
        // A poisoned lock holds numbers for show only.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match progress {
            Progress::Advanced(span) => state.simulated += *span,
            Progress::Finished(run) => {
                state.ended += 1;
                let numbers = run.metrics.numbers();
                let value = numbers.into_iter().find(|(name, _)| *name == self.figure);
                state.add(place, &self.figure, value.and_then(|(_, value)| value));
            }
            Progress::Failed(_) => state.ended += 1,
        }
        match &self.view {
            View::Bar(bar) => {
                bar.set_position(state.simulated.as_millis());
                if !matches!(progress, Progress::Advanced(_)) {
                    bar.set_message(format!("{}/{} runs{}", state.ended, self.runs, state.newest));
                }
            }
            View::Plain => {
                let now = wall_clock();
                if now.duration_since(state.last_line) >= PLAIN_PERIOD {
                    state.last_line = now;
                    say!("{}", plain_line(&state, self.runs, now.duration_since(self.started)));
                }
            }
            View::Silent => {}
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    /// Writes a line without breaking the bar. Failures are shown even without progress.
    pub fn line(&self, text: &str) {
        match &self.view {
            View::Bar(bar) => bar.suspend(|| say!("{text}")),
            View::Plain | View::Silent => say!("{text}"),
        }
    }
}

fn bar(total: Duration) -> ProgressBar {
    // The message is last, because a narrow terminal cuts it.
    let style = ProgressStyle::with_template("{bar:16} {percent:>3} %, {eta} left, {wide_msg}")
        .expect("the template names fields that exist")
        .progress_chars("=> ");
    // Drawn ten times a second: the simulator reports more often.
    let target = ProgressDrawTarget::stderr_with_hz(10);
    ProgressBar::with_draw_target(Some(total.as_millis()), target).with_style(style)
}

fn plain_line(state: &State, runs: u64, elapsed: WallDuration) -> String {
    let share = state.simulated.as_secs_f64() / state.total.as_secs_f64();
    let left = elapsed.as_secs_f64() * (1.0 - share) / share;
    let left = if left.is_finite() { format!(", about {left:.0} s left") } else { String::new() };
    format!("{}/{runs} runs, {:.0} %{left}{}", state.ended, share * 100.0, state.newest)
}

#[expect(
    clippy::disallowed_methods,
    reason = "progress is about the wall clock, not the simulated one"
)]
fn wall_clock() -> WallInstant {
    WallInstant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_line_says_how_many_runs_are_done_and_how_long_the_rest_takes() {
        let total = Duration::from_secs(400);
        let simulated = Duration::from_secs(100);
        let mut state = State { simulated, ended: 1, ..State::new(total, wall_clock()) };
        let line = plain_line(&state, 4, WallDuration::from_secs(10));
        assert_eq!(line, "1/4 runs, 25 %, about 30 s left");
        state.add(" at mac.retries = 3", "tdr", Some(0.5));
        state.add(" at mac.retries = 7", "tdr", Some(0.99));
        state.add(" at mac.retries = 3", "tdr", Some(1.0));
        let line = plain_line(&state, 4, WallDuration::from_secs(10));
        let newest = " at mac.retries = 3: tdr 0.7500 (2 runs)";
        assert_eq!(line, format!("1/4 runs, 25 %, about 30 s left{newest}"));
    }

    #[test]
    fn before_any_progress_no_time_is_guessed() {
        let total = Duration::from_secs(400);
        let state = State::new(total, wall_clock());
        assert_eq!(plain_line(&state, 4, WallDuration::from_secs(1)), "0/4 runs, 0 %");
    }
}
