//! What every timer and every window has to hold, whatever happens to it.

use lowmesh_congestion::params::{ACK_TIMEOUT, RTO_MAX, RTO_MIN, WAIT_MAX};
use lowmesh_congestion::{
    Attempt, Flight, Permit, TIMER_NAMES, Timer, Window, timer_by_name, window,
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
        assert!(wait >= previous, "{}: {wait} after {previous}", timer.name());
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
    fn every_window_opens_when_nothing_is_on_its_way_and_stays_within_its_size(
        signals in prop::collection::vec((0..6u8, 1..4u32), 0..80),
        size in 0..9u32,
    ) {
        let mut windows: Vec<Box<dyn Window>> = vec![Box::new(window::Fixed::new(size))];
        for window in &mut windows {
            let mut outstanding = 0u32;
            let mut now = Instant::ZERO;
            for (signal, count) in &signals {
                now += Duration::from_millis(10);
                if *signal == 0 {
                    let flight = Flight { now, outstanding, size: 1 };
                    if window.permits(&flight) == Permit::Now {
                        window.on_sent(1, now);
                        outstanding += 1;
                    }
                } else {
                    let gone = outstanding.min(*count);
                    signal_end(window.as_mut(), *signal, gone, now);
                    outstanding -= gone;
                }
                prop_assert!(outstanding <= window.snapshot().window);
            }
            let idle = Flight { now, outstanding: 0, size: 1 };
            prop_assert_ne!(window.permits(&idle), Permit::Blocked);
        }
    }
}

fn signal_end(window: &mut dyn Window, signal: u8, gone: u32, now: Instant) {
    match signal {
        1 => window.on_discarded(gone, now),
        2 => window.on_acked(gone, Some(Duration::from_millis(40)), now),
        3 => window.on_lost(gone, now),
        4 => window.on_timeout(now),
        _ => window.on_ecn(now),
    }
}
