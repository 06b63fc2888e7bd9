//! The pace of an attack: so many actions a second for so long, and no more.

use std::time::Duration;

use crate::process::Stopwatch;

/// The shortest sleep: shorter ones cost more than they wait.
const NAP: Duration = Duration::from_millis(2);

/// Lets actions pass at a rate, until a span is over.
#[derive(Debug)]
pub struct Pace {
    clock: Stopwatch,
    span: Duration,
    per_second: f64,
    done: u64,
}

impl Pace {
    /// At most `per_second` actions a second, evenly, during `span`.
    pub fn new(per_second: u32, span: Duration) -> Self {
        Self { clock: Stopwatch::start(), span, per_second: f64::from(per_second), done: 0 }
    }
    /// Waits until the next action is due; `None` once the span is over. The number of the action.
    pub fn next(&mut self) -> Option<u64> {
        loop {
            let elapsed = self.clock.elapsed();
            if elapsed >= self.span {
                return None;
            }
            let due = Duration::from_secs_f64(self.done as f64 / self.per_second);
            if due <= elapsed {
                self.done += 1;
                return Some(self.done - 1);
            }
            std::thread::sleep(
                due.saturating_sub(elapsed).max(NAP).min(self.span.saturating_sub(elapsed)),
            );
        }
    }
    /// Actions so far.
    pub const fn done(&self) -> u64 {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_keeps_its_rate_and_its_span() {
        let clock = Stopwatch::start();
        let mut pace = Pace::new(1000, Duration::from_millis(200));
        while pace.next().is_some() {}
        assert!(clock.elapsed() >= Duration::from_millis(200));
        // On a busy machine there are fewer.
        assert!((1..=200).contains(&pace.done()), "{}", pace.done());
    }
}
