//! What a node did before it lost its memory, and how long it was dark: a record of a node covers all its lives.

use lowmesh_mac::account::RadioTime;
use lowmesh_stack::{Node, StreamCounters};
use lowmesh_units::{Duration, Instant};

use crate::record::Fragments;

/// The lives of a node that are over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    /// Time for which its radio was on.
    radio: RadioTime,
    /// Time that the present life counts as if its radio had been on, though it was dark and kept its memory.
    counted_dark: RadioTime,
    pub(crate) frames_sent: u64,
    pub(crate) frames_acked: u64,
    pub(crate) fragments: Fragments,
    /// Control messages of its multicast engine.
    pub(crate) controls: u64,
    streams: Option<StreamCounters>,
    /// Time without power.
    pub(crate) dark: Duration,
    /// Time without power since it first joined.
    pub(crate) dark_since_joined: Duration,
}

impl Lives {
    /// The life of `node` is over at `now`.
    pub(crate) fn end(&mut self, node: &Node, now: Instant) {
        self.radio = self.radio_with(node, now);
        self.counted_dark = RadioTime::default();
        let counters = node.counters();
        self.frames_sent += counters.frames_sent;
        self.frames_acked += counters.frames_acked;
        self.fragments.add(fragments(node));
        self.controls += node.multicast().controls_sent;
        self.streams = self.streams_with(node);
    }

    /// Radio time of all lives, with the present one of `node`.
    pub(crate) fn radio_with(&self, node: &Node, now: Instant) -> RadioTime {
        let (past, this, dark) = (self.radio, node.radio_time(now), self.counted_dark);
        RadioTime {
            tx: past.tx + this.tx - dark.tx,
            rx: past.rx + this.rx - dark.rx,
            listening_slots_used: past.listening_slots_used + this.listening_slots_used
                - dark.listening_slots_used,
        }
    }

    /// TCP counters of all lives, with the present one of `node`.
    pub(crate) fn streams_with(&self, node: &Node) -> Option<StreamCounters> {
        let mut sum = node.stream_counters()?;
        if let Some(past) = &self.streams {
            sum.established += past.established;
            sum.malformed += past.malformed;
            sum.refused += past.refused;
            sum.repeats += past.repeats;
            sum.sent.merge(&past.sent);
        }
        Some(sum)
    }

    /// The node was without power from `since` on; `node` if it kept its memory, and has not been told yet.
    pub(crate) fn was_dark(
        &mut self,
        (since, now): (Instant, Instant),
        joined: Option<Instant>,
        node: Option<&Node>,
    ) {
        self.dark += now.since(since);
        if let Some(joined) = joined {
            self.dark_since_joined += now.since(since.max(joined));
        }
        if let Some(node) = node {
            let (before, after) = (node.radio_time(since), node.radio_time(now));
            let dark = &mut self.counted_dark;
            dark.tx += after.tx - before.tx;
            dark.rx += after.rx - before.rx;
            dark.listening_slots_used += after.listening_slots_used - before.listening_slots_used;
        }
    }
}

/// Fragment counters of `node`, in both directions.
pub(crate) fn fragments(node: &Node) -> Fragments {
    let (plain, recovered) = (node.lowpan().counters(), node.lowpan().recovery_counters());
    Fragments {
        sent: plain.fragments_sent + recovered.sent,
        resent: recovered.resent,
        forwarded: plain.fragments_forwarded + recovered.forwarded,
        fallbacks: plain.fallbacks_order + plain.fallbacks_full + recovered.fallbacks,
        recovered: recovered.ended,
        gaps_changed: recovered.gaps_changed,
        marked: recovered.marked,
        marks_reported: recovered.marks_reported,
    }
}
