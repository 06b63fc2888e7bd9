//! Machines over lossy links in virtual time, for the tests of every layer.
//!
//! A test owns its machines and says what an event does to them. [`Links`] owns the rest: the clock, the events to come, the
//! dice of the links ([`Faults`]), and on request a table of all frames that a test can compare with a text.
//!
//! ```
//! use lowmesh_testkit::{Faults, Links, Next};
//! use lowmesh_units::{Duration, Instant};
//!
//! let mut links = Links::new(1);
//! links.keep_table();
//! let fate = links.fate(&Faults::default());
//! links.record(0, 1, &fate, || "hello".to_owned());
//! for late in fate.copies {
//!     links.after(Duration::from_millis(4) + late, "hello");
//! }
//! // The machines have no deadline here, so the frame comes next.
//! assert_eq!(links.next(None, Instant::from_secs(1)), Some(Next::Event("hello")));
//! assert_eq!(links.now(), Instant::from_millis(4));
//! assert_eq!(links.table(), "    0.000 ms  0 -> 1  hello\n");
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

/// What links do to frames; each is a probability or a bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The frame does not arrive.
    pub loss: f64,
    /// It arrives, but its acknowledgement does not.
    pub ack_loss: f64,
    /// It arrives twice.
    pub copy: f64,
    /// It arrives later by up to this, so that frames overtake each other.
    pub delay_max: Duration,
}

/// What a link does to one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// How late each copy arrives; none if the frame is lost.
    pub copies: Vec<Duration>,
    /// The sender gets the acknowledgement.
    pub acked: bool,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<E> {
    /// An event of the links. At the same time as a deadline it comes first.
    Event(E),
    /// The deadline of a machine.
    Deadline,
}

/// The links between the machines of a test, and its clock.
#[derive(Debug)]
pub struct Links<E> {
    now: Instant,
    /// By time, then in the order in which they were scheduled.
    events: BTreeMap<(Instant, u64), E>,
    sequence: u64,
    rng: Rng,
    table: Option<String>,
}

impl<E> Links<E> {
    /// Links at time zero, whose dice `seed` sets.
    pub fn new(seed: u64) -> Self {
        Self::with(Rng::stream(Seed(seed), NodeId(0), Purpose::Reception))
    }
    /// Links at time zero with these dice.
    pub const fn with(rng: Rng) -> Self {
        Self { now: Instant::ZERO, events: BTreeMap::new(), sequence: 0, rng, table: None }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// The dice of the links.
    pub const fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Schedules an event.
    pub fn at(&mut self, time: Instant, event: E) {
        self.sequence += 1;
        self.events.insert((time, self.sequence), event);
    }
    /// Schedules an event after a time from now.
    pub fn after(&mut self, span: Duration, event: E) {
        self.at(self.now + span, event);
    }

    /// Goes on to the next event, or to `deadline` if that is earlier. Without either before `until` or at it, the time
    /// becomes `until`.
    pub fn next(&mut self, deadline: Option<Instant>, until: Instant) -> Option<Next<E>> {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let next = [event, deadline].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return None;
        };
        self.now = self.now.max(next);
        if event == Some(next) {
            return self.events.pop_first().map(|(_, event)| Next::Event(event));
        }
        Some(Next::Deadline)
    }

    /// Rolls the dice for one frame.
    pub fn fate(&mut self, faults: &Faults) -> Fate {
        let arrives = self.rng.unit() >= faults.loss;
        let acked = arrives && self.rng.unit() >= faults.ack_loss;
        let twice = arrives && self.rng.unit() < faults.copy;
        let most = faults.delay_max.as_nanos().min(u64::from(u32::MAX)) as u32;
        let copies = (0..usize::from(arrives) + usize::from(twice))
            .map(|_| Duration::from_nanos(self.rng.below(most).into()))
            .collect();
        Fate { copies, acked }
    }

    /// From now on frames are recorded.
    pub fn keep_table(&mut self) {
        self.table.get_or_insert_default();
    }
    /// Records a frame that leaves now.
    pub fn record(&mut self, from: usize, to: usize, fate: &Fate, what: impl FnOnce() -> String) {
        let Some(table) = &mut self.table else { return };
        let mark = match (fate.copies.len(), fate.acked) {
            (0, _) => "  lost",
            (1, true) => "",
            (1, false) => "  acknowledgement lost",
            (_, _) => "  twice",
        };
        let ms = self.now.since(Instant::ZERO).as_secs_f64() * 1e3;
        // Writing to a string does not fail.
        let _ = writeln!(table, "{ms:9.3} ms  {from} -> {to}  {}{mark}", what());
    }
    /// The frames that were recorded, one a line.
    pub fn table(&self) -> &str {
        self.table.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn events_come_in_the_order_of_their_times_and_before_deadlines() {
        let mut links = Links::new(1);
        for (ms, event) in [(5, 'c'), (3, 'a'), (3, 'b')] {
            links.at(at(ms), event);
        }
        assert_eq!(links.next(Some(at(2)), at(9)), Some(Next::Deadline));
        for (event, ms) in [('a', 3), ('b', 3), ('c', 5)] {
            assert_eq!(links.next(Some(at(5)), at(9)), Some(Next::Event(event)));
            assert_eq!(links.now(), at(ms));
        }
        assert_eq!(links.next(Some(at(10)), at(9)), None);
        assert_eq!(links.now(), at(9));
    }

    #[test]
    fn faults_happen_as_often_as_they_should() {
        let mut links = Links::<()>::new(1);
        let faults = Faults { loss: 0.2, ack_loss: 0.5, copy: 0.1, ..Faults::default() };
        let fates: Vec<Fate> = (0..10_000).map(|_| links.fate(&faults)).collect();
        let share = |is: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
        assert!((1850..2150).contains(&share(&|fate| fate.copies.is_empty())));
        assert!((3850..4150).contains(&share(&|fate| fate.acked)));
        assert!((700..900).contains(&share(&|fate| fate.copies.len() == 2)));
    }

    #[test]
    fn the_table_tells_what_happened_to_each_frame() {
        let mut links = Links::<()>::new(1);
        let fate = |copies: usize, acked| Fate { copies: vec![Duration::ZERO; copies], acked };
        links.record(0, 1, &fate(1, true), || panic!("nobody asked for a table"));
        links.keep_table();
        for (copies, acked) in [(1, true), (0, false), (1, false), (2, true)] {
            links.record(0, 1, &fate(copies, acked), || "frame".to_owned());
        }
        let lines: Vec<&str> = links.table().lines().map(|line| &line[22..]).collect();
        assert_eq!(lines, ["frame", "frame  lost", "frame  acknowledgement lost", "frame  twice"]);
    }
}
