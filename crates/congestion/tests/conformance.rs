//! What every timer and every window has to hold, whatever happens to it.

use lowmesh_congestion::params::{ACK_TIMEOUT, RTO_MAX, RTO_MIN, WAIT_MAX};
use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{
    Attempt, Message, Permit, TIMER_NAMES, Timer, WINDOW_NAMES, Window, WindowSpec, timer_by_name,
};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use proptest::prelude::*;

/// Something that happens to a timer.
#[derive(Clone, Debug)]
enum Event {
    /// A message is sent and retransmitted this often.
    Sent {
        retransmissions: u8,
    },
    Sampled {
        rtt: Duration,
        retransmissions: u8,
    },
    GivenUp,
    Passed(Duration),
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..5_000u64).prop_map(Duration::from_millis),
        (0..4_000u64).prop_map(Duration::from_secs),
        (0..u64::MAX / 4).prop_map(Duration::from_nanos),
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..10u8).prop_map(|retransmissions| Event::Sent { retransmissions }),
        (any_duration(), 0..6u8)
            .prop_map(|(rtt, retransmissions)| Event::Sampled { rtt, retransmissions }),
        Just(Event::GivenUp),
        any_duration().prop_map(Event::Passed),
    ]
}

fn check_waits(timer: &mut dyn Timer, now: Instant, retransmissions: u8, rng: &mut Rng) {
    let initial = timer.initial(now, rng);
    let mut previous = initial;
    assert!((RTO_MIN..=WAIT_MAX).contains(&initial), "{}: first {initial}", timer.name());
    for number in 1..=retransmissions {
        let wait = timer.backoff(Attempt { initial, previous, number }, rng);
        assert!((RTO_MIN..=WAIT_MAX).contains(&wait), "{}: wait {wait}", timer.name());
        // FASOR takes its slow step once and goes on with the fast ones (draft-ietf-core-fasor-02 s4.3).
        let slow_step = timer.name() == "fasor" && number <= 2;
        assert!(slow_step || wait >= previous, "{}: {wait} after {previous}", timer.name());
        previous = wait;
    }
}

fn check_snapshot(timer: &dyn Timer) {
    let snapshot = timer.snapshot();
    assert!((RTO_MIN..=RTO_MAX).contains(&snapshot.rto), "{}: {snapshot:?}", timer.name());
    assert_eq!(snapshot.srtt.is_some(), snapshot.rttvar.is_some(), "{}", timer.name());
    for estimator in [snapshot.strong, snapshot.weak].into_iter().flatten() {
        assert!(estimator.srtt < Duration::MAX && estimator.rttvar < Duration::MAX);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_timer_keeps_its_waits_and_its_beliefs_in_bounds(
        events in prop::collection::vec(any_event(), 0..60),
        seed in any::<u64>(),
    ) {
        for name in TIMER_NAMES {
            let mut timer = timer_by_name(name, ACK_TIMEOUT).expect("a listed name");
            let mut rng = Rng::stream(Seed(seed), NodeId(1), Purpose::Coap);
            let mut now = Instant::ZERO;
            for event in &events {
                match *event {
                    Event::Sent { retransmissions } => {
                        check_waits(timer.as_mut(), now, retransmissions, &mut rng);
                    }
                    Event::Sampled { rtt, retransmissions } => {
                        timer.on_sample(rtt, retransmissions, now);
                    }
                    Event::GivenUp => timer.on_give_up(now),
                    Event::Passed(span) => now += span,
                }
                check_snapshot(timer.as_ref());
            }
        }
    }

    #[test]
    fn every_timer_gives_the_same_waits_for_the_same_history(
        events in prop::collection::vec(any_event(), 0..40),
        seed in any::<u64>(),
    ) {
        for name in TIMER_NAMES {
            let run = || {
                let mut timer = timer_by_name(name, ACK_TIMEOUT).expect("a listed name");
                let mut rng = Rng::stream(Seed(seed), NodeId(1), Purpose::Coap);
                let mut now = Instant::ZERO;
                let mut waits = Vec::new();
                for event in &events {
                    match *event {
                        Event::Sent { .. } => waits.push(timer.initial(now, &mut rng)),
                        Event::Sampled { rtt, retransmissions } => {
                            timer.on_sample(rtt, retransmissions, now);
                        }
                        Event::GivenUp => timer.on_give_up(now),
                        Event::Passed(span) => now += span,
                    }
                }
                waits
            };
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn every_window_keeps_count_and_bounds_and_opens_when_nothing_is_on_its_way(
        operations in prop::collection::vec(any_operation(), 0..120),
        initial in 0..40u32,
        max in 0..40u32,
        message in 1..4u32,
    ) {
        for name in WINDOW_NAMES {
            let limits = Limits { initial, min: 1, max, message };
            let mut sender = Sender::new(name, limits);
            for operation in &operations {
                sender.apply(operation);
                sender.check();
            }
            sender.check_that_it_opens();
        }
    }

    #[test]
    fn every_window_answers_the_same_history_in_the_same_way(
        operations in prop::collection::vec(any_operation(), 0..80),
    ) {
        for name in WINDOW_NAMES {
            let run = || {
                let mut sender = Sender::new(name, Limits::messages(2, 32));
                let answers = operations.iter().map(|operation| {
                    sender.apply(operation);
                    (sender.window.snapshot(), sender.window.pacing_gap(1))
                });
                answers.collect::<Vec<_>>()
            };
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn no_window_grows_on_bad_news_alone(
        operations in prop::collection::vec(any_operation(), 0..80),
    ) {
        for name in WINDOW_NAMES {
            let mut sender = Sender::new(name, Limits::messages(8, 32));
            for operation in &operations {
                let before = sender.window.snapshot().window;
                sender.apply(operation);
                // Reno's ssthresh has a floor of two messages, which can lie above a window of one.
                let most = if matches!(name, "reno" | "abe") { before.max(2) } else { before };
                let good = matches!(operation, Operation::Acked { .. });
                prop_assert!(good || sender.window.snapshot().window <= most, "{}: {:?}", name, operation);
            }
        }
    }
}

/// Something that happens to a window.
#[derive(Clone, Debug)]
enum Operation {
    Passed(Duration),
    /// A message leaves if it may.
    Sent(u32),
    /// The oldest messages end.
    Acked {
        count: usize,
        sampled: bool,
    },
    Lost(usize),
    TimedOut(usize),
    Discarded(usize),
    /// A mark comes back for the oldest message.
    Marked,
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => any_duration().prop_map(Operation::Passed),
        6 => (1..4u32).prop_map(Operation::Sent),
        3 => (0..9usize, any::<bool>())
            .prop_map(|(count, sampled)| Operation::Acked { count, sampled }),
        1 => (0..5usize).prop_map(Operation::Lost),
        1 => (0..5usize).prop_map(Operation::TimedOut),
        1 => (0..5usize).prop_map(Operation::Discarded),
        1 => Just(Operation::Marked),
    ]
}

/// A window, and what its caller knows.
struct Sender {
    window: Box<dyn Window>,
    limits: Limits,
    outstanding: Vec<Message>,
    now: Instant,
}

impl Sender {
    fn new(name: &str, limits: Limits) -> Self {
        let window = WindowSpec::new(name, limits).expect("a listed name").window();
        Self { window, limits, outstanding: Vec::new(), now: Instant::ZERO }
    }
    fn take(&mut self, count: usize) -> Vec<Message> {
        self.outstanding.drain(..count.min(self.outstanding.len())).collect()
    }
    fn apply(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Passed(span) => self.now += span,
            Operation::Sent(size) => {
                if self.window.permits(size, now) == Permit::Now {
                    self.window.on_sent(size, now);
                    self.outstanding.push(Message { size, sent: now });
                    let snapshot = self.window.snapshot();
                    let alone = self.outstanding.len() == 1;
                    assert!(alone || snapshot.outstanding <= snapshot.window);
                }
            }
            Operation::Acked { count, sampled } => {
                for message in self.take(count) {
                    let rtt = sampled.then(|| now.since(message.sent));
                    self.window.on_acked(message, rtt, now);
                }
            }
            Operation::Lost(count) => {
                let messages = self.take(count);
                self.window.on_lost(&messages, now);
            }
            Operation::TimedOut(count) => {
                let messages = self.take(count);
                self.window.on_timeout(&messages, now);
            }
            Operation::Discarded(count) => {
                for message in self.take(count) {
                    self.window.on_discarded(message.size, now);
                }
            }
            Operation::Marked => {
                if let Some(message) = self.outstanding.first() {
                    self.window.on_ecn(message.sent, now);
                }
            }
        }
    }
    fn check(&self) {
        let snapshot = self.window.snapshot();
        let name = self.window.name();
        let sent: u32 = self.outstanding.iter().map(|message| message.size).sum();
        assert_eq!(snapshot.outstanding, sent, "{name}");
        let most = self.limits.max.max(self.limits.initial).max(1);
        assert!((1..=most).contains(&snapshot.window), "{name}: {snapshot:?}");
        assert!(snapshot.threshold.is_none_or(|threshold| threshold >= 1), "{name}");
    }
    fn check_that_it_opens(&mut self) {
        for message in self.take(usize::MAX) {
            self.window.on_discarded(message.size, self.now);
        }
        match self.window.permits(1, self.now) {
            Permit::Now => {}
            Permit::At(later) => {
                assert!(later > self.now);
                assert_eq!(self.window.permits(1, later), Permit::Now);
            }
            Permit::Blocked => panic!("{} is closed with nothing on its way", self.window.name()),
        }
    }
}
