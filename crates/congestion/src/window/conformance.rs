//! What every [`Window`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all windows of this crate.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use lowmesh_registry::{Breach, Row};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

use super::{Limits, Message, Permit, Window, WindowSnapshot};

/// Random histories that a window goes through.
const HISTORIES: u64 = 300;
/// Events of a history.
const EVENTS: u32 = 120;
/// The limits of the histories in which bad news must not open the window: no standard's floor is above two messages.
const FALLING: Limits = Limits { initial: 8, min: 2, max: 32, message: 1 };

/// Checks the row and the window that it makes, over random histories: it counts what is in flight, keeps its limits,
/// opens when nothing is in flight, grows on acknowledgements only, and gives the same answers to the same history.
///
/// ```
/// use lowmesh_congestion::window::{conformance, quic};
/// conformance::check(&quic::ROW)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn Window>) -> Result<(), Breach> {
    row.check()?;
    let name = (row.make)(FALLING).name();
    if name != row.name {
        return Err(row.breach(format!("the window is called {name}")));
    }
    for number in 0..HISTORIES {
        let seed = Seed(number);
        let limits = any_limits(&mut Rng::stream(seed, NodeId(1), Purpose::Swarm));
        let answers = history(row, limits, seed).map_err(|what| row.breach(what))?;
        if history(row, limits, seed).as_ref() != Ok(&answers) {
            return Err(row.breach("the same history gives other answers"));
        }
        history(row, FALLING, seed).map_err(|what| row.breach(what))?;
    }
    Ok(())
}

/// Limits as callers give them, contradictions included.
fn any_limits(rng: &mut Rng) -> Limits {
    let mut below = |end| rng.below(end);
    Limits { initial: below(40), min: 1, max: below(40), message: 1 + below(3) }
}

/// A state of the window, and its pause between messages.
type Answer = (WindowSnapshot, Option<Duration>);

/// The answers to one random history.
fn history(
    row: &'static Row<dyn Window>,
    limits: Limits,
    seed: Seed,
) -> Result<Vec<Answer>, String> {
    let mut rng = Rng::stream(seed, NodeId(0), Purpose::Swarm);
    let window = (row.make)(limits);
    let mut sender = Sender { window, limits, in_flight: Vec::new(), now: Instant::ZERO };
    let mut answers = Vec::new();
    for _ in 0..EVENTS {
        let before = sender.window.snapshot().window;
        let is_good = sender.event(&mut rng)?;
        sender.check()?;
        let snapshot = sender.window.snapshot();
        if limits == FALLING && !is_good && snapshot.window > before {
            let after = snapshot.window;
            return Err(format!("it grows from {before} to {after} without an acknowledgement"));
        }
        answers.push((snapshot, sender.window.pacing_gap(1)));
    }
    sender.check_that_it_opens()?;
    Ok(answers)
}

/// A window, and what its caller has in flight.
struct Sender {
    window: Box<dyn Window>,
    limits: Limits,
    in_flight: Vec<Message>,
    now: Instant,
}

impl Sender {
    /// One random event; true for an acknowledgement.
    fn event(&mut self, rng: &mut Rng) -> Result<bool, String> {
        let now = self.now;
        // Of fifteen events two pass time, six send, three acknowledge, and one each loses, times out, discards and marks.
        match rng.below(15) {
            0 | 1 => self.now += span(rng),
            2..=7 => self.send(1 + rng.below(3))?,
            8..=10 => {
                let is_sampled = rng.below(2) == 0;
                for message in self.take(rng.below(9)) {
                    let rtt = is_sampled.then(|| now.since(message.sent));
                    self.window.on_acked(message, rtt, now);
                }
                return Ok(true);
            }
            11 => {
                let lost = self.take(rng.below(5));
                self.window.on_lost(&lost, now);
            }
            12 => {
                let late = self.take(rng.below(5));
                self.window.on_timeout(&late, now);
            }
            13 => {
                for message in self.take(rng.below(5)) {
                    self.window.on_discarded(message.size, now);
                }
            }
            _ => {
                if let Some(message) = self.in_flight.first() {
                    self.window.on_ecn(message.sent, now);
                }
            }
        }
        Ok(false)
    }

    /// Sends a message if the window permits it.
    fn send(&mut self, size: u32) -> Result<(), String> {
        if self.window.permits(size, self.now) != Permit::Now {
            return Ok(());
        }
        self.window.on_sent(size, self.now);
        self.in_flight.push(Message { size, sent: self.now });
        let WindowSnapshot { window, outstanding, .. } = self.window.snapshot();
        if self.in_flight.len() > 1 && outstanding > window {
            return Err(format!("it permits {outstanding} in flight, over its window of {window}"));
        }
        Ok(())
    }

    /// The oldest messages in flight, so many at most.
    fn take(&mut self, count: u32) -> Vec<Message> {
        let count = self.in_flight.len().min(count as usize);
        self.in_flight.drain(..count).collect()
    }

    fn check(&self) -> Result<(), String> {
        let WindowSnapshot { window, outstanding, threshold } = self.window.snapshot();
        let sent: u32 = self.in_flight.iter().map(|message| message.size).sum();
        if outstanding != sent {
            return Err(format!("it counts {outstanding} in flight of {sent}"));
        }
        let most = self.limits.max.max(self.limits.initial).max(self.limits.min).max(1);
        if !(1..=most).contains(&window) {
            return Err(format!("its window is {window}, not 1 to {most}"));
        }
        if threshold == Some(0) { Err("its threshold is 0".to_string()) } else { Ok(()) }
    }

    /// With nothing in flight, a message may leave now or at a time that the window says.
    fn check_that_it_opens(&mut self) -> Result<(), String> {
        for message in self.take(u32::MAX) {
            self.window.on_discarded(message.size, self.now);
        }
        let is_open = match self.window.permits(1, self.now) {
            Permit::Now => true,
            Permit::At(later) => later > self.now && self.window.permits(1, later) == Permit::Now,
            Permit::Blocked => false,
        };
        if is_open { Ok(()) } else { Err("it is closed with nothing in flight".to_string()) }
    }
}

/// A time span: none, short, long or absurd.
pub(crate) fn span(rng: &mut Rng) -> Duration {
    match rng.below(4) {
        0 => Duration::ZERO,
        1 => Duration::from_millis(rng.below(5_000).into()),
        2 => Duration::from_secs(rng.below(4_000).into()),
        _ => Duration::from_nanos(u64::MAX / 4).mul_f64(rng.unit()),
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_registry::Registry;

    use super::*;
    use crate::window::{Fixed, Flight};

    #[test]
    fn every_window_keeps_the_rules() {
        assert_eq!(Registry::<dyn Window>::builtin().breaches(), []);
    }

    /// A fixed window with one thing wrong.
    #[derive(Debug)]
    struct Wrong(Fixed, fn(&mut WindowSnapshot));

    impl Window for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }
        fn flight(&self) -> &Flight {
            self.0.flight()
        }
        fn flight_mut(&mut self) -> &mut Flight {
            self.0.flight_mut()
        }
        fn window(&self) -> u32 {
            self.0.window()
        }
        fn snapshot(&self) -> WindowSnapshot {
            let mut snapshot = self.0.snapshot();
            (self.1)(&mut snapshot);
            snapshot
        }
    }

    static UNCOUNTED: Row<dyn Window> =
        Row::<dyn Window>::plain("wrong", "Counts nothing", |limits| {
            Box::new(Wrong(Fixed::new(limits.initial), |snapshot| snapshot.outstanding = 0))
        });
    static UNBOUNDED: Row<dyn Window> = Row::<dyn Window>::plain("wrong", "No bound", |limits| {
        Box::new(Wrong(Fixed::new(limits.initial), |snapshot| snapshot.window = 1000))
    });
    static GROWING: Row<dyn Window> =
        Row::<dyn Window>::plain("wrong", "Grows with what it sends", |limits| {
            Box::new(Wrong(Fixed::new(limits.initial), |snapshot| {
                snapshot.window = snapshot.window.min(1 + snapshot.outstanding);
            }))
        });

    #[test]
    fn a_window_that_breaks_a_rule_is_found() {
        for (row, expected) in [
            (&UNCOUNTED, "congestion window wrong: it counts 0 in flight of"),
            (&UNBOUNDED, "its window is 1000, not 1 to"),
            (&GROWING, "without an acknowledgement"),
        ] {
            let breach = check(row).expect_err(row.summary).to_string();
            assert!(breach.contains(expected), "{breach}");
        }
    }
}
