//! A connection: its state, what both ends agreed on, and its two halves (RFC 9293 s3.3 to s3.6).
//!
//! ```text
//!   Closed ── Open ──> SynSent ── SYN+ACK ──> Established ── Close ──> FinWait1 ──> FinWait2 ──> TimeWait ──> Closed
//!   Closed ── Listen ──> Listen ── SYN ──> SynReceived ── ACK ──^  └── FIN ──> CloseWait ── Close ──> LastAck ──> Closed
//!   both at once: SynSent ── SYN ──> SynReceived;  FinWait1 ── FIN ──> Closing ──> TimeWait
//! ```

mod arrival;
mod drive;
mod emit;
mod handshake;
mod initial;
mod keep_alive;
mod reset;

pub use initial::InitialNumbers;
pub use reset::reset_for;

use alloc::vec::Vec;
use core::fmt;

use lowmesh_congestion::window::Phase;
use lowmesh_machine::Outbox;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::tcp::Header;

use self::keep_alive::Watch;
use crate::acks::{Acks, Circumstances};
use crate::params::RTO_INITIAL;
use crate::profile::{ConfigError, Profile};
use crate::receive::Receiver;
use crate::send::{SendCounters, Sender};

/// The endpoints and the behaviour of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its behaviour.
    pub profile: Profile,
    /// The port of this end.
    pub local_port: u16,
    /// The port of the peer; 0 for a listener that takes any.
    pub remote_port: u16,
    /// The numbers it starts with; drawn if unset.
    pub initial: Option<InitialNumbers>,
}

impl Config {
    /// A configuration with random numbers.
    pub const fn new(profile: Profile, local_port: u16, remote_port: u16) -> Self {
        Self { profile, local_port, remote_port, initial: None }
    }
}

/// An event that a connection handles.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Connect to the peer.
    Open,
    /// Wait for a peer.
    Listen,
    /// A segment came whose ports are those of this connection.
    Segment {
        /// Its header.
        header: &'a Header,
        /// Its data.
        payload: &'a [u8],
    },
    /// The application sends; there is [`Connection::room`] for all of it.
    Write(&'a [u8]),
    /// The application takes up to so many octets.
    Read(usize),
    /// The application sends no more.
    Close,
    /// The application gives the connection up.
    Abort,
    /// The deadline has come.
    Deadline,
}

/// A segment to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its header.
    pub header: Header,
    /// Its data.
    pub payload: Vec<u8>,
}

/// An action that a connection requests from its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a segment.
    Segment(Transmit),
    /// The handshake is over.
    Established,
    /// There is data to read.
    Readable,
    /// The data of an [`Input::Read`].
    Data(Vec<u8>),
    /// The peer sends no more; what it sent can still be read.
    PeerClosed,
    /// The connection is over.
    Closed(Ending),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both ends closed it.
    Finished,
    /// The peer refused it.
    Refused,
    /// The peer reset it.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// The application gave it up.
    Aborted,
}

/// The states of RFC 9293 s3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no connection.
    Closed,
    /// It waits for a SYN.
    Listen,
    /// Its SYN has left.
    SynSent,
    /// It has the peer's SYN, and its own is not acknowledged.
    SynReceived,
    /// Data goes both ways.
    Established,
    /// It has closed its half, and the FIN is not acknowledged.
    FinWait1,
    /// Its FIN is acknowledged, and the peer has not closed.
    FinWait2,
    /// The peer has closed its half.
    CloseWait,
    /// Both have closed at the same time, and its FIN is not acknowledged.
    Closing,
    /// The peer has closed first, and its own FIN is not acknowledged.
    LastAck,
    /// It waits for segments that are late.
    TimeWait,
}

/// The sender as TCP_INFO of Linux shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendSnapshot {
    /// The phase of loss recovery.
    pub phase: Phase,
    /// The congestion window in segments.
    pub window: u32,
    /// The slow-start threshold, once there is one.
    pub threshold: Option<u32>,
    /// Segments that are not acknowledged.
    pub out: u32,
    /// Segments known to have arrived out of order.
    pub sacked: u32,
    /// Segments that count as lost.
    pub lost: u32,
    /// Segments in flight.
    pub in_flight: u32,
    /// The retransmission timeout with its back-off.
    pub rto: Duration,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Octets per second of a window that paces.
    pub pacing_rate: Option<u64>,
    /// Totals.
    pub counters: SendCounters,
}

/// Both halves of an established connection.
struct Flow {
    sender: Sender,
    receiver: Receiver,
    acks: Acks,
    /// What the last segment that left said about our window.
    window_sent: i64,
}

impl Flow {
    fn circumstances(&self) -> Circumstances {
        let estimator = self.sender.estimator();
        let window = self.window_sent;
        Circumstances { rto: estimator.rto(), srtt: estimator.srtt(), window }
    }
}

/// The SYN of this end on its way.
#[derive(Clone, Copy, Debug)]
struct Syn {
    sent: Instant,
    retries: u32,
    rto: Duration,
    deadline: Instant,
}

/// Octets of segments that a listener exchanged with a peer whose address is not proven: anybody may have sent the SYN.
#[derive(Clone, Copy, Debug, Default)]
struct Unproven {
    received: usize,
    sent: usize,
}

/// What the SYNs said.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    /// The peer's initial sequence number.
    irs: u32,
    mss: u16,
    /// The shift of windows that the peer sends, and of ours; `None` without scaling.
    shifts: Option<(u8, u8)>,
    timestamps: bool,
    sack: bool,
    window: u64,
}

/// One connection.
pub struct Connection {
    config: Config,
    state: State,
    iss: u32,
    clock_offset: u32,
    syn: Option<Syn>,
    /// While a listener waits for the end of a handshake.
    unproven: Option<Unproven>,
    agreed: Agreed,
    flow: Option<Flow>,
    /// What the sender had counted when it ended.
    final_counters: SendCounters,
    final_repeats: u64,
    /// The timestamp to echo, and when it came (RFC 7323 s4.3).
    recent: Option<(u32, Instant)>,
    closes_when_established: bool,
    challenge_after: Instant,
    watch: Watch,
    time_wait: Option<Instant>,
    outputs: Outbox<Output>,
}

impl Connection {
    /// A closed connection.
    pub fn new(config: Config, rng: &mut Rng) -> Result<Self, ConfigError> {
        config.profile.check()?;
        let drawn = InitialNumbers { sequence: rng.next_u32(), clock: rng.next_u32() };
        let initial = config.initial.unwrap_or(drawn);
        Ok(Self {
            config,
            state: State::Closed,
            iss: initial.sequence,
            clock_offset: initial.clock,
            syn: None,
            unproven: None,
            agreed: Agreed::default(),
            flow: None,
            final_counters: SendCounters::default(),
            final_repeats: 0,
            recent: None,
            closes_when_established: false,
            challenge_after: Instant::ZERO,
            watch: Watch::default(),
            time_wait: None,
            outputs: Outbox::new(),
        })
    }
    /// The time of the last accepted segment from the peer.
    pub const fn last_heard(&self) -> Instant {
        self.watch.heard()
    }
    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }
    /// Octets that can be written now; 0 before the handshake is over and after [`Input::Close`].
    pub fn room(&self) -> usize {
        let is_open = matches!(self.state, State::Established | State::CloseWait);
        self.flow.as_ref().filter(|_| is_open).map_or(0, |flow| flow.sender.room())
    }
    /// Octets that can be read now.
    pub fn readable(&self) -> usize {
        self.flow.as_ref().map_or(0, |flow| flow.receiver.unread())
    }
    /// Octets in the buffers: not acknowledged, not read, or received out of order.
    pub fn held(&self) -> usize {
        self.flow.as_ref().map_or(0, |flow| flow.sender.held() + flow.receiver.held())
    }
    /// The counters of the sender, also after the end of the connection.
    pub fn counters(&self) -> SendCounters {
        self.flow.as_ref().map_or(self.final_counters, |flow| flow.sender.counters())
    }
    /// Data segments whose octets had all arrived before: needless copies. Also after the end.
    pub fn repeats(&self) -> u64 {
        self.flow.as_ref().map_or(self.final_repeats, |flow| flow.receiver.repeats())
    }
    /// The sender; available after the handshake.
    pub fn sending(&self) -> Option<SendSnapshot> {
        let sender = &self.flow.as_ref()?.sender;
        let window = sender.window().snapshot();
        Some(SendSnapshot {
            phase: sender.phase(),
            window: window.window,
            threshold: window.threshold,
            out: sender.out(),
            sacked: sender.sacked(),
            lost: sender.lost(),
            in_flight: sender.in_flight(),
            rto: sender.estimator().rto(),
            srtt: sender.estimator().srtt(),
            backoff: sender.estimator().backoff(),
            pacing_rate: sender.window().pacing_rate(),
            counters: sender.counters(),
        })
    }
    /// True when this connection is in TIME-WAIT and `header` opens the next one of the same ends (RFC 6191): the driver
    /// drops this one and gives the segment to a listener. A SYN that may be old is answered here.
    pub fn yields_to(&self, header: &Header) -> bool {
        let Some(flow) = self.flow.as_ref().filter(|_| self.state == State::TimeWait) else {
            return false;
        };
        if !header.control.syn || header.control.ack || header.control.rst {
            return false;
        }
        let next = flow.receiver.next();
        let is_behind = self.peer_position(header.sequence, next) > next;
        let own = self.recent.filter(|_| self.agreed.timestamps);
        match (own, header.options.timestamps) {
            (Some((recent, _)), Some(new)) => {
                let step = new.value.wrapping_sub(recent) as i32;
                step > 0 || (step == 0 && is_behind)
            }
            (None, Some(_)) => true,
            (_, None) => is_behind,
        }
    }
    /// The sequence number of a position in our stream.
    const fn sequence(&self, position: i64) -> u32 {
        self.iss.wrapping_add(position as u32)
    }
    /// The position in the peer's stream that `sequence` names, near `reference`.
    const fn peer_position(&self, sequence: u32, reference: i64) -> i64 {
        let near = self.agreed.irs.wrapping_add(reference as u32);
        reference + sequence.wrapping_sub(near) as i32 as i64
    }
    /// The position in our stream that `number` names, near `reference`.
    const fn own_position(&self, number: u32, reference: i64) -> i64 {
        reference + number.wrapping_sub(self.sequence(reference)) as i32 as i64
    }
    /// Nothing is left but the ending.
    fn end(&mut self, ending: Ending) {
        self.state = State::Closed;
        self.syn = None;
        self.time_wait = None;
        self.final_counters = self.counters();
        self.final_repeats = self.repeats();
        self.flow = None;
        self.outputs.push(Output::Closed(ending));
    }
}

impl Syn {
    const fn new(now: Instant, deadline: Instant) -> Self {
        Self { sent: now, retries: 0, rto: RTO_INITIAL, deadline }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("state", &self.state)
            .field("sending", &self.sending())
            .finish_non_exhaustive()
    }
}
