//! The numbers of a congestion window, out of what it answers to fragments that are sent, acknowledged, lost,
//! marked and timed out.

use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Message, Permit, Window};
use lowmesh_registry::{Registry, Row};
use lowmesh_units::{Duration, Instant};

use super::{Values, values};

/// OptWindowSize of the publication's study of congestion control.
const INITIAL: u32 = 2;
/// MaxWindowSize: the fragments of one bitmap.
const MOST: u32 = 32;
/// The round trip of the probe.
const RTT: Duration = Duration::from_millis(100);
/// One round trip after the start.
const LATER: Instant = Instant::from_millis(100);

/// The numbers of the window called `name`, for fragments.
pub fn probe(name: &str) -> Result<Values, String> {
    let row = Registry::<dyn Window>::builtin().row(name).map_err(|error| error.to_string())?;
    let fresh =
        || Probed { window: (row.make)(Limits::messages(INITIAL, MOST)), now: Instant::ZERO };
    let mut found = values([
        ("cwnd0", fresh().size()),
        ("paces", f64::from(u8::from(fresh().window.pacing_gap(1).is_some()))),
        ("cwnd0_octets", octets(row)),
    ]);
    found.extend(counted(&fresh));
    found.extend(extremes(&fresh));
    found.extend(one_acknowledgement(&fresh));
    Ok(found)
}

/// Where it starts when the unit is the octet and a message has 100 of them, in messages.
fn octets(row: &Row<dyn Window>) -> f64 {
    let limits = Limits { initial: 100 * INITIAL, min: 100, max: 100 * MOST, message: 100 };
    f64::from((row.make)(limits).snapshot().window) / 100.0
}

/// What each of the signals takes away from what is on its way: 1 if it counts a message of one unit.
fn counted(fresh: &dyn Fn() -> Probed) -> Values {
    let after = |signal: fn(&mut dyn Window, Message)| {
        let mut probed = fresh();
        probed.window.on_sent(1, Instant::ZERO);
        let before = probed.window.snapshot().outstanding;
        signal(probed.window.as_mut(), Message { size: 1, sent: Instant::ZERO });
        f64::from(before) - f64::from(probed.window.snapshot().outstanding)
    };
    values([
        ("counts_discarded", after(|window, _| window.on_discarded(1, LATER))),
        ("counts_acked", after(|window, message| window.on_acked(message, Some(RTT), LATER))),
        ("counts_lost", after(|window, message| window.on_lost(&[message], LATER))),
        ("counts_timeout", after(|window, message| window.on_timeout(&[message], LATER))),
        ("counts_marked", after(|window, message| window.on_ecn(message.sent, LATER))),
    ])
}

/// How small timeouts make it, and how large clean round trips.
fn extremes(fresh: &dyn Fn() -> Probed) -> Values {
    let mut shrinking = fresh();
    shrinking.time_out();
    let first = shrinking.size();
    for _ in 0..8 {
        shrinking.time_out();
    }
    let mut growing = fresh();
    for _ in 0..64 {
        growing.round_trip();
    }
    values([
        ("cwnd_after_timeout", first),
        ("cwnd_least", shrinking.size()),
        ("cwnd_most", growing.size()),
    ])
}

/// The window within one acknowledgement that says that all but the first of a full window came.
fn one_acknowledgement(fresh: &dyn Fn() -> Probed) -> Values {
    let mut probed = fresh();
    let sent = probed.fill();
    let before = probed.size();
    for message in &sent[1..] {
        probed.window.on_acked(*message, None, LATER);
    }
    let peak = probed.size();
    probed.window.on_lost(&sent[..1], LATER);
    values([("ack_rise", peak - before), ("ack_fall", peak - probed.size())])
}

/// A window and its clock.
struct Probed {
    window: Box<dyn Window>,
    now: Instant,
}

impl Probed {
    fn size(&self) -> f64 {
        f64::from(self.window.snapshot().window)
    }
    /// Sends as long as it may, waiting where it paces.
    fn fill(&mut self) -> Vec<Message> {
        let mut sent = Vec::new();
        loop {
            match self.window.permits(1, self.now) {
                Permit::Now => {
                    self.window.on_sent(1, self.now);
                    sent.push(Message { size: 1, sent: self.now });
                }
                Permit::At(later) => self.now = later,
                Permit::Blocked => return sent,
            }
        }
    }
    fn round_trip(&mut self) {
        for message in self.fill() {
            self.now = self.now.max(message.sent + RTT);
            self.window.on_acked(message, Some(RTT), self.now);
        }
    }
    fn time_out(&mut self) {
        let sent = self.fill();
        self.now += Duration::from_secs(3);
        self.window.on_timeout(&sent, self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_counts_what_has_ended_and_no_mark() {
        for name in Registry::<dyn Window>::builtin().names() {
            let found = probe(name).expect("it is known");
            for signal in ["discarded", "acked", "lost", "timeout"] {
                assert!((found[&format!("counts_{signal}")] - 1.0).abs() < 1e-9, "{name} {signal}");
            }
            assert!(found["counts_marked"].abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn a_window_that_never_changes_stays_where_it_starts() {
        let found = probe("fixed").expect("it is known");
        for key in ["cwnd0", "cwnd_after_timeout", "cwnd_least", "cwnd_most", "cwnd0_octets"] {
            assert!((found[key] - 2.0).abs() < 1e-9, "{key}");
        }
        assert!(probe("vegas").is_err());
    }
}
