//! The timeline of one datagram in recoverable fragments, as figures show it (Lenders et al. 2021, figure 19).

use lowmesh_lowpan::recover::{Ending, Event};
use lowmesh_units::Instant;
use serde::{Deserialize, Serialize};

use super::tenth;

/// One datagram in recoverable fragments, from its first fragment to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramTimeline {
    /// Its sender.
    pub node: u16,
    /// Whether all of it arrived, as far as its sender learnt.
    pub delivered: bool,
    /// When its first fragment left, in seconds from the start.
    pub start_s: f32,
    /// What happened since.
    pub steps: Vec<Step>,
}

/// One step of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f32, Kind, u8, u32, f32)", into = "(f32, Kind, u8, u32, f32)")]
pub struct Step {
    /// When, in ms from the first fragment.
    pub t_ms: f32,
    /// What happened.
    pub kind: Kind,
    /// To how many fragments.
    pub fragments: u8,
    /// The window after it, in fragments.
    pub window: u32,
    /// The gap between fragments after it, in ms.
    pub gap_ms: f32,
}

impl From<(f32, Kind, u8, u32, f32)> for Step {
    fn from((t_ms, kind, fragments, window, gap_ms): (f32, Kind, u8, u32, f32)) -> Self {
        Self { t_ms, kind, fragments, window, gap_ms }
    }
}
impl From<Step> for (f32, Kind, u8, u32, f32) {
    fn from(step: Step) -> Self {
        (step.t_ms, step.kind, step.fragments, step.window, step.gap_ms)
    }
}

/// What happened in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A fragment left for the first time.
    Sent,
    /// A fragment left again.
    Resent,
    /// Fragments were acknowledged.
    Acked,
    /// Fragments were missing in an acknowledgement.
    Lost,
    /// No acknowledgement came in time.
    TimedOut,
    /// An acknowledgement reported congestion.
    Marked,
    /// The datagram began from scratch.
    Restarted,
    /// The datagram was over.
    Ended,
}

impl Kind {
    /// Its name in data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Resent => "resent",
            Self::Acked => "acked",
            Self::Lost => "lost",
            Self::TimedOut => "timed_out",
            Self::Marked => "marked",
            Self::Restarted => "restarted",
            Self::Ended => "ended",
        }
    }

    const fn of(event: Event) -> (Self, u8) {
        match event {
            Event::Sent => (Self::Sent, 1),
            Event::Resent => (Self::Resent, 1),
            Event::Acked(fragments) => (Self::Acked, fragments),
            Event::Lost(fragments) => (Self::Lost, fragments),
            Event::TimedOut => (Self::TimedOut, 0),
            Event::Marked => (Self::Marked, 0),
            Event::Restarted => (Self::Restarted, 0),
            Event::Ended(_) => (Self::Ended, 0),
        }
    }
}

impl DatagramTimeline {
    /// What figures show of `timeline`.
    pub(super) fn of(timeline: &lowmesh_sim::record::DatagramTimeline) -> Self {
        let start = timeline.steps.first().map_or(Instant::ZERO, |(at, _)| *at);
        let step = |(at, step): &(Instant, lowmesh_lowpan::recover::Step)| {
            let (kind, fragments) = Kind::of(step.event);
            Step {
                t_ms: tenth(at.since(start).as_millis_f64()),
                kind,
                fragments,
                window: step.window,
                gap_ms: tenth(step.gap.as_millis_f64()),
            }
        };
        Self {
            node: timeline.node.0,
            delivered: timeline.ending == Ending::Delivered,
            start_s: tenth(start.as_secs_f64()),
            steps: timeline.steps.iter().map(step).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_lowpan::recover;
    use lowmesh_machine::Handle;
    use lowmesh_units::{Duration, NodeId};

    use super::*;

    #[test]
    fn times_count_from_the_first_fragment_and_survive_a_store() {
        let step = |ms: u64, event: Event| {
            let gap = Duration::from_micros(1250);
            (Instant::from_millis(ms), recover::Step { handle: Handle(1), event, window: 3, gap })
        };
        let steps = vec![
            step(2500, Event::Sent),
            step(2620, Event::Lost(2)),
            step(2700, Event::Ended(Ending::GaveUp)),
        ];
        let ending = Ending::GaveUp;
        let timeline = DatagramTimeline::of(&lowmesh_sim::record::DatagramTimeline {
            node: NodeId(5),
            ending,
            steps,
        });
        assert_eq!((timeline.node, timeline.delivered, timeline.start_s), (5, false, 2.5));
        let lost = Step { t_ms: 120.0, kind: Kind::Lost, fragments: 2, window: 3, gap_ms: 1.3 };
        assert_eq!(timeline.steps[1], lost);
        let text = serde_json::to_string(&timeline).expect("plain data");
        assert!(text.contains(r#"[120.0,"lost",2,3,1.3]"#), "{text}");
        assert_eq!(serde_json::from_str::<DatagramTimeline>(&text).expect("own output"), timeline);
    }
}
