//! What a sender tells its window that keeps a queue of segments and finds losses itself (TCP): one summary an
//! acknowledgement, and the phases of loss recovery.

use lowmesh_units::{Duration, Instant};

use super::Message;

/// One acknowledgement in numbers; counts are in the caller's unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack<'a> {
    /// Messages in flight that this acknowledgement confirms.
    pub acked: &'a [Message],
    /// Messages in flight that are now found lost.
    pub lost: &'a [Message],
    /// True when the window may grow: the cumulative acknowledgement moved, or with much reordering a block of SACK named
    /// something new.
    pub advances: bool,
    /// What is newly known to have arrived, by a duplicate acknowledgement too.
    pub delivered: u32,
    /// What is newly found lost, with retransmissions that are lost again.
    pub newly_lost: u32,
    /// What was on its way before this acknowledgement.
    pub in_flight_before: u32,
    /// What is on its way now.
    pub in_flight: u32,
    /// The time of the newest original among the acknowledged.
    pub rtt: Option<Duration>,
    /// True when the acknowledgement of a lone message may have been delayed.
    pub is_delayed: bool,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The rate at which the path delivers.
    pub rate: Option<RateSample>,
    /// True when the window, and not the application, bounds what is on its way.
    pub is_window_limited: bool,
    /// The phase after this acknowledgement.
    pub phase: Phase,
    /// Octets of a full segment; 0 if the unit is not a segment.
    pub segment_octets: u32,
    /// When pacing lets the next segment leave.
    pub paced_until: Instant,
}

/// How fast the path delivers, measured over one flight (draft-cheng-iccrg-delivery-rate-estimation-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// What was delivered in `interval`.
    pub delivered: u32,
    /// The longer one of the times in which that was sent and was acknowledged.
    pub interval: Duration,
    /// What had been delivered in total when the newest message of the sample left.
    pub delivered_before: u64,
    /// True when the application had nothing to send for a part of the time.
    pub is_application_limited: bool,
}

/// The phases of a sender that recovers losses (RFC 5681, RFC 6582, RFC 6675), in order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing is missing.
    #[default]
    Open,
    /// Something may be missing: duplicate acknowledgements or SACK blocks came.
    Disorder,
    /// Losses are repaired while acknowledgements come.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// A change of phase.
#[derive(Clone, Copy, Debug)]
pub struct PhaseChange<'a> {
    /// The phase that begins.
    pub phase: Phase,
    /// True when the window is to be reduced: the losses belong to no congestion that it has met already.
    pub is_new_episode: bool,
    /// With [`Phase::Loss`], the messages in flight that the timeout marks as lost.
    pub lost: &'a [Message],
}
