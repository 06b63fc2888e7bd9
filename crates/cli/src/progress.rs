//! How far the runs are, on stderr: a bar with the time left, or a plain line now and then.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::{Duration as WallDuration, Instant as WallInstant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
}

impl Meter {
    /// For `runs` runs that simulate `total` together.
    pub fn new(style: Style, runs: u64, total: Duration) -> Self {
        let view = match style {
            Style::None => View::Silent,
            Style::Auto if stderr().is_terminal() => View::Bar(bar(total)),
            Style::Auto | Style::Plain => View::Plain,
        };
        let now = wall_clock();
        let state = State { simulated: Duration::ZERO, total, ended: 0, last_line: now };
        Self { view, runs, started: now, state: Mutex::new(state) }
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
            Progress::Finished(_) | Progress::Failed(_) => state.ended += 1,
        }
        match &self.view {
            View::Bar(bar) => {
                bar.set_position(state.simulated.as_millis());
                if !matches!(progress, Progress::Advanced(_)) {
                    bar.set_message(format!("{}/{} runs", state.ended, self.runs));
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
    let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}  about {eta} left")
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
    format!("{}/{runs} runs, {:.0} %{left}", state.ended, share * 100.0)
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
        let state = State { simulated, total, ended: 1, last_line: wall_clock() };
        let line = plain_line(&state, 4, WallDuration::from_secs(10));
        assert_eq!(line, "1/4 runs, 25 %, about 30 s left");
    }

    #[test]
    fn before_any_progress_no_time_is_guessed() {
        let total = Duration::from_secs(400);
        let state = State { simulated: Duration::ZERO, total, ended: 0, last_line: wall_clock() };
        assert_eq!(plain_line(&state, 4, WallDuration::from_secs(1)), "0/4 runs, 0 %");
    }
}
