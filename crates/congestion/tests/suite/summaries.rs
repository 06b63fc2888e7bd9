//! What every window has to hold for a sender that gives summaries (TCP), whatever happens to it.

use lowmesh_congestion::window::{Ack, Limits, Phase, PhaseChange, RateSample};
use lowmesh_congestion::{Message, Window};
use lowmesh_registry::Algorithm;
use lowmesh_units::{Duration, Instant};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

const LIMITS: Limits = Limits { initial: 10, min: 1, max: 64, message: 1 };

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Ack { acked: u8, lost: u8, phase: u8, rtt_ms: Option<u16>, limited: bool },
    Phase { phase: u8, is_new_episode: bool, lost: u8 },
    Undo,
    Restart,
    Resize(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    let ack = (0u8..6, 0u8..4, 0u8..4, any::<Option<u16>>(), any::<bool>()).prop_map(
        |(acked, lost, phase, rtt_ms, limited)| Step::Ack { acked, lost, phase, rtt_ms, limited },
    );
    let phase = (0u8..4, any::<bool>(), 0u8..6)
        .prop_map(|(phase, is_new_episode, lost)| Step::Phase { phase, is_new_episode, lost });
    prop::strategy::Union::new([
        (0u8..12).prop_map(Step::Send).boxed(),
        ack.boxed(),
        phase.boxed(),
        prop::sample::select(vec![Step::Undo, Step::Restart]).boxed(),
        any::<u8>().prop_map(Step::Resize).boxed(),
    ])
}

fn phase(number: u8) -> Phase {
    [Phase::Open, Phase::Disorder, Phase::Recovery, Phase::Loss][usize::from(number)]
}

proptest! {
    #[test]
    fn no_summary_breaks_the_limits_or_the_count(
        steps in prop::collection::vec((0u64..3_000, any_step()), 0..120),
    ) {
        for row in <dyn Window>::BUILTIN {
            let mut window = (row.make)(LIMITS);
            let mut now = Instant::ZERO;
            let mut on_the_way = Vec::new();
            let mut delivered = 0;
            for (gap_ms, step) in &steps {
                now += Duration::from_millis(*gap_ms);
                match *step {
                    Step::Send(count) => for _ in 0..count {
                        window.on_sent(1, now);
                        on_the_way.push(Message { size: 1, sent: now });
                    },
                    Step::Ack { acked, lost, phase: number, rtt_ms, limited } => {
                        let before = on_the_way.len() as u32;
                        let acked: Vec<_> = on_the_way.drain(..usize::from(acked).min(on_the_way.len())).collect();
                        let lost: Vec<_> = on_the_way.drain(..usize::from(lost).min(on_the_way.len())).collect();
                        let rate = acked.last().map(|message| RateSample {
                            delivered: acked.len() as u32,
                            interval: now.since(message.sent),
                            delivered_before: delivered,
                            is_application_limited: !limited,
                        });
                        delivered += acked.len() as u64;
                        let ack = Ack {
                            acked: &acked,
                            lost: &lost,
                            advances: !acked.is_empty(),
                            delivered: acked.len() as u32,
                            newly_lost: lost.len() as u32,
                            in_flight_before: before,
                            in_flight: on_the_way.len() as u32,
                            rtt: rtt_ms.map(|ms| Duration::from_millis(u64::from(ms))),
                            rate,
                            is_window_limited: limited,
                            phase: phase(number),
                            segment_octets: 244,
                            paced_until: now,
                            ..Ack::default()
                        };
                        window.on_ack(&ack, now);
                    }
                    Step::Phase { phase: number, is_new_episode, lost } => {
                        let phase = phase(number);
                        let lost = if phase == Phase::Loss { usize::from(lost) } else { 0 };
                        let lost: Vec<_> = on_the_way.drain(..lost.min(on_the_way.len())).collect();
                        window.on_phase(&PhaseChange { phase, is_new_episode, lost: &lost }, now);
                    }
                    Step::Undo => window.on_undo(now),
                    Step::Restart => window.on_restart(now),
                    Step::Resize(size) => window.resize(u32::from(size)),
                }
                let snapshot = window.snapshot();
                prop_assert!((1..=64).contains(&snapshot.window), "{row:?}: {snapshot:?}");
                prop_assert_eq!(snapshot.outstanding as usize, on_the_way.len(), "{:?}", row);
                prop_assert!(window.pacing_rate().is_none_or(|rate| rate < u64::MAX / 2));
            }
        }
    }
}

#[test]
fn a_window_without_rules_for_summaries_gets_the_signals() {
    let reno = <dyn Window>::BUILTIN.iter().find(|row| row.name == "reno").expect("a built-in row");
    let mut window = (reno.make)(LIMITS);
    let message = Message { size: 1, sent: Instant::ZERO };
    for _ in 0..4 {
        window.on_sent(1, Instant::ZERO);
    }
    let ack = Ack { acked: &[message; 2], ..Ack::default() };
    window.on_ack(&ack, Instant::from_millis(10));
    assert_eq!(window.snapshot().window, 6, "two more in slow start");
    window.on_ack(&Ack { lost: &[message], ..Ack::default() }, Instant::from_millis(20));
    assert_eq!(window.snapshot().window, 2, "half of what was on its way, at least two");
    let change = PhaseChange { phase: Phase::Loss, is_new_episode: true, lost: &[message] };
    window.on_phase(&change, Instant::from_secs(3));
    assert_eq!((window.snapshot().window, window.snapshot().outstanding), (1, 0));
}
