//! The sending half of a connection: what the application wrote, what is on its way, and the recovery of losses. The
//! order of steps is that of Linux (tcp_input.c, tcp_output.c), the words are those of the RFCs.
//!
//! ```text
//!   Open ── dupACK, SACK ──> Disorder ── loss found ──> Recovery ── all acknowledged ──> Open
//!     └───────────────────────── timeout ────────────────> Loss ──────────────────────────^
//! ```

mod acknowledge;
mod application;
mod counters;
mod finding;
mod queue;
mod rack;
mod recovery;
mod report;
mod timeout;
mod timer;
mod transmit;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_congestion::window::{Limits, Phase};
use lowmesh_congestion::{Message, Window};
use lowmesh_units::{Duration, Instant};

pub use self::counters::SendCounters;
use self::queue::Queue;
use self::rack::Rack;
use crate::params::{REORDERING, WINDOW_SEGMENTS_MAX};
use crate::profile::Profile;
use crate::rate::Sampler;
use crate::rto::Estimator;

/// A segment that is to leave; the connection adds acknowledgement, window and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The position of the first octet.
    pub(crate) start: i64,
    pub(crate) data: Vec<u8>,
    pub(crate) push: bool,
    pub(crate) fin: bool,
}

/// What an acknowledgement says to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) position: i64,
    /// The receive window of the peer in octets.
    pub(crate) window: u64,
    /// Where the segment starts in the peer's stream.
    pub(crate) segment: i64,
    pub(crate) has_data: bool,
    /// The round-trip time by the echoed timestamp.
    pub(crate) echo_rtt: Option<Duration>,
    /// The echoed timestamp, in the sender's clock.
    pub(crate) echo: Option<u32>,
    pub(crate) blocks: &'a [(i64, i64)],
}

/// What both ends agreed on in the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// Octets of data in a full segment.
    pub(crate) segment_octets: u32,
    pub(crate) sack: bool,
    pub(crate) window: u64,
    pub(crate) handshake_rtt: Option<Duration>,
    pub(crate) syn_retries: u32,
}

/// The one timer of a sender that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The retransmission timer (RFC 6298).
    Retransmission,
    /// The loss probe (RFC 8985 s7).
    LossProbe,
    /// The reordering window of RACK (RFC 8985 s6.2).
    Reordering,
    /// The zero-window probe (RFC 9293 s3.8.6.1).
    WindowProbe,
}

/// What may be retransmitted after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retransmit {
    /// No copies: nothing is lost, or what counted as lost was late.
    Nothing,
    /// New data first: F-RTO looks whether the timeout was spurious.
    NewData,
    /// What is lost.
    Lost,
}

/// Proportional rate reduction (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    window_before: u32,
    delivered: u32,
    out: u32,
}

/// Whether a reduction can be undone.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    is_armed: bool,
    /// What was acknowledged when the episode began: reports of duplicates below it are of no concern.
    start: i64,
    /// Copies whose originals are not known to have arrived; `None` before the first copy.
    copies: Option<u32>,
    /// The clock of timestamps at the first copy of the episode.
    first_copy: Option<u32>,
}

/// Whether the window, and not the application, limits the sender (Linux, tcp_cwnd_validate).
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    is_limited: bool,
    out_max: u32,
    end: i64,
}

pub(crate) struct Sender {
    profile: Profile,
    segment_octets: u32,
    /// Octets of a segment that blocks of SACK take for now.
    block_octets: u32,
    sack: bool,
    /// Data from `una` on; bounded by the profile.
    buffer: VecDeque<u8>,
    /// The position of the first octet in `buffer`.
    buffer_start: i64,
    fin: Option<i64>,
    queue: Queue,
    una: i64,
    next: i64,
    peer_window: u64,
    peer_window_max: u64,
    window_segment: i64,
    window: Box<dyn Window>,
    phase: Phase,
    high: i64,
    reordering: u32,
    reordering_seen: bool,
    reduction: Reduction,
    undo: Undo,
    is_probing_spurious: bool,
    estimator: Estimator,
    rtt_min: Option<(Duration, Instant)>,
    /// Timeouts since the acknowledgement last moved.
    retries: u32,
    /// Timeouts since the peer last answered in a way that keeps the connection open.
    unanswered: u32,
    sampler: Sampler,
    rack: Rack,
    probe_end: Option<i64>,
    probe_was_copy: bool,
    timer: Option<(Timer, Instant)>,
    window_probes: u32,
    probe_backoff: u32,
    paced_until: Instant,
    /// Something waits for `paced_until` alone.
    waits_for_pacing: bool,
    usage: Usage,
    short_end: i64,
    last_sent: Instant,
    clock_offset: u32,
    /// Segments that the peer reported as duplicates.
    duplicates: u64,
    acked: Vec<Message>,
    lost: Vec<Message>,
    departures: VecDeque<Departure>,
    counters: SendCounters,
    is_given_up: bool,
}

impl Sender {
    fn new(profile: &Profile, agreement: &Agreement, clock_offset: u32, now: Instant) -> Self {
        let limits = Limits::messages(profile.initial_window_segments, WINDOW_SEGMENTS_MAX);
        Self {
            profile: *profile,
            segment_octets: agreement.segment_octets,
            block_octets: 0,
            sack: agreement.sack,
            buffer: VecDeque::new(),
            buffer_start: 1,
            fin: None,
            queue: Queue::default(),
            una: 1,
            next: 1,
            peer_window: agreement.window,
            peer_window_max: agreement.window,
            window_segment: 0,
            window: (profile.window.make)(limits),
            phase: Phase::Open,
            high: 1,
            reordering: REORDERING,
            reordering_seen: false,
            reduction: Reduction::default(),
            undo: Undo::default(),
            is_probing_spurious: false,
            estimator: Estimator::new(),
            rtt_min: None,
            retries: 0,
            unanswered: 0,
            sampler: Sampler::new(now),
            rack: Rack::default(),
            probe_end: None,
            probe_was_copy: false,
            timer: None,
            window_probes: 0,
            probe_backoff: 0,
            paced_until: now,
            waits_for_pacing: false,
            usage: Usage::default(),
            short_end: 1,
            last_sent: now,
            clock_offset,
            duplicates: 0,
            acked: Vec::new(),
            lost: Vec::new(),
            departures: VecDeque::new(),
            counters: SendCounters::default(),
            is_given_up: false,
        }
    }
    /// Octets that the application may write now.
    pub(crate) fn room(&self) -> usize {
        (self.profile.send_buffer_octets as usize).saturating_sub(self.buffer.len())
    }
    /// Octets that were written and are not acknowledged.
    pub(crate) fn held(&self) -> usize {
        self.buffer.len()
    }
    /// True when the peer has acknowledged our FIN.
    pub(crate) fn is_fin_acknowledged(&self) -> bool {
        self.fin.is_some_and(|fin| self.una > fin)
    }
    /// True when the peer answered none of so many copies that the connection is over.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }
    pub(crate) fn poll(&mut self) -> Option<Departure> {
        self.departures.pop_front()
    }
    /// True when everything has left, the FIN too.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.unsent() == 0
    }
    /// True when everything is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.unsent() == 0
    }
    /// True when a segment is ready to leave.
    pub(crate) fn departs(&self) -> bool {
        !self.departures.is_empty()
    }
    pub(crate) const fn una(&self) -> i64 {
        self.una
    }
    pub(crate) const fn next(&self) -> i64 {
        self.next
    }
    pub(crate) const fn peer_window_max(&self) -> u64 {
        self.peer_window_max
    }
    pub(crate) const fn estimator(&self) -> &Estimator {
        &self.estimator
    }
    pub(crate) const fn counters(&self) -> SendCounters {
        self.counters
    }
    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }
    pub(crate) fn window(&self) -> &dyn Window {
        self.window.as_ref()
    }
    pub(crate) fn in_flight(&self) -> u32 {
        self.queue.in_flight()
    }
    pub(crate) fn out(&self) -> u32 {
        self.queue.len()
    }
    pub(crate) fn sacked(&self) -> u32 {
        self.queue.sacked
    }
    pub(crate) fn lost(&self) -> u32 {
        self.queue.lost
    }
    /// The clock of timestamps: milliseconds from a random start (RFC 7323 s5.4).
    pub(crate) fn clock(&self, now: Instant) -> u32 {
        clock(self.clock_offset, now)
    }
    /// Our acknowledgements carry blocks of so many octets now (RFC 6691: they count for the segment).
    pub(crate) const fn reserve(&mut self, octets: u32) {
        self.block_octets = octets;
    }
    /// Octets of data in the next full segment. A peer whose window is never as large gets segments of its window, as from
    /// Linux (tcp_bound_to_half_wnd); else each would wait for a probe (RFC 9293 s3.8.6.2.1, rule 3).
    fn full_segment(&self) -> i64 {
        let octets = u64::from(self.segment_octets.saturating_sub(self.block_octets));
        octets.min(self.peer_window_max).max(1) as i64
    }
    fn window_size(&self) -> u32 {
        self.window.snapshot().window
    }
    fn data_end(&self) -> i64 {
        self.buffer_start + self.buffer.len() as i64
    }
    /// The end of everything that is to be sent, with the FIN.
    fn end(&self) -> i64 {
        self.fin.map_or_else(|| self.data_end(), |fin| fin + 1)
    }
    fn unsent(&self) -> i64 {
        self.end() - self.next
    }
    fn window_end(&self) -> i64 {
        self.una + self.peer_window as i64
    }
    /// The number of a segment without data: the next one, or the end of a window that the peer has closed over what is on
    /// its way, since it would not take what lies beyond (Linux, tcp_acceptable_seq). `slack` octets are lost where windows
    /// are scaled.
    pub(crate) fn acceptable(&self, slack: i64) -> i64 {
        if self.next - self.window_end() < slack { self.next } else { self.window_end() }
    }
    fn note_rtt_min(&mut self, rtt: Duration, now: Instant) {
        let is_old = |at: Instant| now.since(at) > crate::params::RTT_MIN_AGE;
        if self.rtt_min.is_none_or(|(least, at)| rtt <= least || is_old(at)) {
            self.rtt_min = Some((rtt, now));
        }
    }
}

/// The clock of timestamps in milliseconds.
pub(crate) fn clock(offset: u32, now: Instant) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(offset)
}
