//! What the link does: a line now and then, and totals at the end.

use lowmesh_realtime::emulate::{Emulator, End, Totals};
use lowmesh_units::{Instant, Seed};
use serde_json::{Value, json};

use crate::console::say;

/// The link between two lines.
pub struct Meter {
    octets: [u64; 2],
    at: Instant,
}

impl Meter {
    /// Starts to measure.
    pub fn new(emulator: &Emulator) -> Self {
        Self { octets: octets(emulator), at: emulator.now() }
    }
    /// Prints the throughput since the last line, the queues, and what was dropped and lost so far.
    pub fn line(&mut self, emulator: &Emulator) {
        let (now, octets) = (emulator.now(), octets(emulator));
        let seconds = now.since(self.at).as_secs_f64().max(1e-9);
        let part = |end: End| {
            let sent = octets[end as usize] - self.octets[end as usize];
            direction(sent as f64 * 8.0 / seconds, &emulator.totals(end))
        };
        let (forth, back) = (part(End::A), part(End::B));
        say!("{:6.1} s  a to b {forth} | b to a {back}", now.as_secs_f64());
        (self.at, self.octets) = (now, octets);
    }
}

fn octets(emulator: &Emulator) -> [u64; 2] {
    End::BOTH.map(|end| emulator.totals(end).counters.octets_sent)
}

fn direction(bits_per_second: f64, totals: &Totals) -> String {
    let counters = totals.counters;
    format!(
        "{:7.1} kbit/s, queue {:6} B, dropped {}, lost {}",
        bits_per_second / 1e3,
        totals.queued_octets,
        counters.dropped,
        counters.lost
    )
}

/// Prints the totals of both directions.
pub fn summary(emulator: &Emulator) {
    for (name, end) in [("a to b", End::A), ("b to a", End::B)] {
        let totals = emulator.totals(end);
        let counters = totals.counters;
        say!(
            "{name}: {} packets, {} arrived, {} dropped, {} lost, {} octets; queue at most {} B, {:.0} B on average",
            counters.offered,
            counters.arrived,
            counters.dropped,
            counters.lost,
            counters.octets_sent,
            totals.queued_octets_max,
            totals.queued_octets_mean
        );
    }
}

/// The totals of both directions with the seed that repeats jitter and loss.
pub fn json(emulator: &Emulator, seed: Seed) -> Value {
    let direction = |end: End| {
        let totals = emulator.totals(end);
        json!({
            "packets": totals.counters.offered,
            "arrived": totals.counters.arrived,
            "dropped": totals.counters.dropped,
            "lost": totals.counters.lost,
            "octets": totals.counters.octets_sent,
            "queue_octets_max": totals.queued_octets_max,
            "queue_octets_mean": totals.queued_octets_mean,
        })
    };
    json!({
        "seed": seed.0,
        "seconds": emulator.now().as_secs_f64(),
        "a_to_b": direction(End::A),
        "b_to_a": direction(End::B),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wired::Counters;

    #[test]
    fn a_direction_is_its_throughput_queue_drops_and_losses() {
        let counters = Counters { dropped: 3, lost: 1, ..Counters::default() };
        let totals = Totals {
            counters,
            queued_octets: 1_240,
            queued_octets_max: 2_500,
            queued_octets_mean: 0.0,
        };
        let line = direction(27_900.0, &totals);
        assert_eq!(line, "   27.9 kbit/s, queue   1240 B, dropped 3, lost 1");
    }
}
