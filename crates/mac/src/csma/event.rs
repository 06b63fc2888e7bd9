//! The face of the CSMA MAC: what its driver tells it, and what it asks of its driver.
//!
//! Both kinds of MAC, the open one and the thin one ([`Config`](super::Config)), have this face. The MAC decides
//! *when* and *what*; the driver (a simulated air, a radio, a ZEP socket) does it and says how it went:
//!
//! ```text
//!   sender    | backoff, n x 320 us | CCA 128 us | turnaround 192 us | frame ......... | <= 864 us | ack |
//!             ^ Sense { at } ------>^ at         ^ Sensed            ^ at              ^ Sent          ^ Received
//!                                                └ Transmit { at } ──┘                 └ deadline: ack wait
//!   receiver                                                         ^ Incoming        ^ Received
//!                                                                                      | turnaround 192 us | ack |
//!                                                                                      └ Acknowledge { at } ─────^ Sent
//! ```
//! | driver's duty | when |
//! |---|---|
//! | on [`Output::Sense`]: measure the channel from `at` on for 8 symbols ([`params::CCA`](crate::params::CCA)) and answer [`Input::Sensed`] | `at + CCA` |
//! | on [`Output::Transmit`] or [`Output::Acknowledge`]: the first symbol of the preamble leaves at `at`, the last of the FCS [`airtime`](crate::frame::airtime) later; then [`Input::Sent`] | end of the frame |
//! | when a frame begins that this radio locks on to, and [`Csma::listens`](super::Csma::listens) is true: [`Input::Incoming`] | start of the preamble |
//! | when that frame ends whole: [`Input::Received`], for any receiver; broken: [`Input::Lost`] | end of the frame |
//! | a frame that begins while `listens` is false is not heard: no input at all | |
//!
//! `at` is never before the moment of the call. There is never more than one `Sense` unanswered, nor more than one
//! frame on its way out: while an acknowledgement leaves, the MAC takes any CCA for busy, so that `Sent` cannot
//! mean two things. The MAC never begins to send between [`Input::Incoming`] and the end of that frame. A driver that
//! hears frames only when they are over (ZEP) leaves out `Incoming` and `Lost`; one that cannot sense answers "idle".

use alloc::vec::Vec;

use lowmesh_machine::{Dropped, Handle};
use lowmesh_units::{Dbm, Eui64, Instant};

use crate::queue::Priority;

/// What can happen to a CSMA MAC.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Power on. Before it the MAC neither hears nor sends.
    Start,
    /// Send this; answered by exactly one [`Output::Sent`] or [`Output::Dropped`].
    Send {
        /// To one neighbour, or to everyone in range.
        destination: Option<Eui64>,
        /// What is behind the MAC header.
        payload: &'a [u8],
        /// Who goes first.
        priority: Priority,
        /// Nothing depends on its arrival: one copy is enough, and none leaves to a neighbour that is silent.
        is_advice: bool,
        /// Its name.
        handle: Handle,
    },
    /// The answer to [`Output::Sense`]: `busy` when there was energy above the threshold, or a frame of this
    /// standard, at any time in the 8 symbols.
    Sensed {
        /// Somebody sends.
        busy: bool,
    },
    /// The last symbol of the frame of [`Output::Transmit`] or [`Output::Acknowledge`] left.
    Sent,
    /// The receiver found the start of a frame and stays with it until `Received` or `Lost`.
    Incoming,
    /// A frame with a right FCS came to its end.
    Received {
        /// The frame without FCS.
        octets: &'a [u8],
        /// How strong.
        rssi: Dbm,
        /// The datagram in it, where the driver knows.
        handle: Handle,
    },
    /// The frame of `Incoming` ended with a wrong FCS, or broke off.
    Lost,
    /// The time of `next_deadline` has come.
    Deadline,
}

/// What a CSMA MAC asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Sense the channel for 8 symbols.
    Sense {
        /// From here on.
        at: Instant,
    },
    /// Send a data frame.
    Transmit {
        /// Its first symbol leaves here.
        at: Instant,
        /// The frame without FCS.
        octets: Vec<u8>,
        /// For whom; `None` is everyone in range.
        destination: Option<Eui64>,
        /// The datagram in it.
        handle: Handle,
    },
    /// Send an acknowledgement. A radio that does so by itself needs no telling: its driver answers `Sent` at
    /// the end of it all the same.
    Acknowledge {
        /// Its first symbol leaves here.
        at: Instant,
        /// The frame without FCS.
        octets: Vec<u8>,
        /// For whom: not on the air, for the record only.
        destination: Eui64,
    },
    /// A frame ended: acknowledged by its destination; without acknowledgements, or to everyone: sent.
    Sent {
        /// Its name.
        handle: Handle,
        /// Where it went.
        destination: Option<Eui64>,
        /// Copies on the air.
        transmissions: u8,
    },
    /// A frame ended without arriving, as far as this MAC can tell.
    Dropped {
        /// Which, and why: `NoAck`, `ChannelAccess`, `QueueFull`, `TooLarge`, `NotJoined` (before `Start`).
        dropped: Dropped,
        /// Where it should have gone.
        destination: Option<Eui64>,
        /// Copies on the air.
        transmissions: u8,
    },
    /// A frame for this node came, for the first time.
    Received {
        /// From this neighbour,
        source: Eui64,
        /// to everyone or to this node alone,
        broadcast: bool,
        /// with this in it.
        payload: Vec<u8>,
        /// The datagram's name, where the driver knows it.
        handle: Handle,
    },
    /// Frames to this neighbour fail, and it has been silent for 30 s.
    NeighbourGone(Eui64),
    /// A neighbour that was gone is heard again.
    NeighbourBack(Eui64),
    /// The expected transmissions over a link changed.
    LinkEtx {
        /// To this neighbour.
        peer: Eui64,
        /// In 1/128.
        etx: u16,
    },
}
