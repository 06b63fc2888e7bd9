//! What every timer and every window has to hold, whatever happens to it.

use lowmesh_congestion::params::ACK_TIMEOUT;
use lowmesh_congestion::timer::conformance;
use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Message, Permit, Timer, Window, timer};
use lowmesh_registry::{Algorithm, Choice, Registry, Row};
use lowmesh_units::{Duration, Instant};
use proptest::prelude::*;

#[test]
fn every_timer_keeps_the_rules() {
    for row in Registry::<dyn Timer>::builtin().rows() {
        assert_eq!(conformance::check(row), Ok(()));
    }
}

#[test]
fn every_window_has_the_name_of_its_row() {
    for row in <dyn Window>::BUILTIN {
        assert_eq!(row.check(), Ok(()));
        assert_eq!((row.make)(Limits::messages(2, 32)).name(), row.name);
    }
}

#[test]
fn every_timer_has_the_name_of_its_row() {
    for row in Registry::builtin().rows() {
        let name = timer::make(&row.into(), ACK_TIMEOUT).name();
        assert!(name == row.name || (row.name, name) == ("cocoa/table-2", "cocoa"), "{name}");
    }
}

#[test]
fn a_number_over_the_set_changes_what_the_timer_does() {
    let overall_after_one_second = |choice: &Choice<dyn Timer>| {
        let mut timer = timer::make(choice, ACK_TIMEOUT);
        timer.on_sample(Duration::from_secs(1), 0, Instant::ZERO);
        timer.snapshot().rto.as_secs_f64()
    };
    // 1 s gives the strong estimator 1 + 4 * 0.5 = 3 s; 0.5 or 1.0 of it move the 2 s.
    let cocoa = Registry::<dyn Timer>::builtin().choose("cocoa").expect("a built-in row");
    let plain = overall_after_one_second(&cocoa);
    assert!((plain - 2.5).abs() < 1e-9, "{plain}");
    let own = overall_after_one_second(&cocoa.with("lambda_strong", 1.0).expect("in bounds"));
    assert!((own - 3.0).abs() < 1e-9, "{own}");
}

#[test]
fn names_and_keys_that_do_not_exist_are_answered_with_those_that_do() {
    let timers = Registry::<dyn Timer>::builtin();
    let text = timers.choose("cocao").expect_err("a slip of the pen").to_string();
    assert!(text.starts_with("no congestion control is called `cocao`; there are"), "{text}");
    assert!(text.contains("cocoa/draft-03"), "{text}");
    let fixed = timers.choose("fixed").expect("a built-in row");
    let text = fixed.with("alpha", 0.5).expect_err("no CoCoA").to_string();
    assert_eq!(text, "`fixed` has no parameter `alpha`, and no other one");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_window_keeps_count_and_bounds_and_opens_when_nothing_is_on_its_way(
        operations in prop::collection::vec(any_operation(), 0..120),
        initial in 0..40u32,
        max in 0..40u32,
        message in 1..4u32,
    ) {
        for row in <dyn Window>::BUILTIN {
            let limits = Limits { initial, min: 1, max, message };
            let mut sender = Sender::new(row, limits);
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
        for row in <dyn Window>::BUILTIN {
            let run = || {
                let mut sender = Sender::new(row, Limits::messages(2, 32));
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
        for row in <dyn Window>::BUILTIN {
            let mut sender = Sender::new(row, Limits::messages(8, 32));
            for operation in &operations {
                let before = sender.window.snapshot().window;
                sender.apply(operation);
                // Reno's ssthresh has a floor of two messages, which can lie above a window of one.
                let most = if matches!(row.name, "reno" | "abe") { before.max(2) } else { before };
                let good = matches!(operation, Operation::Acked { .. });
                prop_assert!(good || sender.window.snapshot().window <= most, "{:?}: {:?}", row, operation);
            }
        }
    }
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..5_000u64).prop_map(Duration::from_millis),
        (0..4_000u64).prop_map(Duration::from_secs),
        (0..u64::MAX / 4).prop_map(Duration::from_nanos),
    ]
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
    fn new(row: &'static Row<dyn Window>, limits: Limits) -> Self {
        let window = (row.make)(limits);
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
