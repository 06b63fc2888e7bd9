//! Frames on the air and those who hear them, as plain values: in one timeslot, or in continuous time.

use lowmesh_mac::tsch::Transmission;
use lowmesh_units::{Dbm, Instant, NodeId};

use crate::air::{Fate, Signal};

/// A frame that is on the air in this slot.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) from: NodeId,
    /// How far the sender's clock is ahead, microseconds.
    pub(crate) lead_micros: f64,
    pub(crate) start: Instant,
    pub(crate) frame: Transmission,
    /// Who acknowledges, and with what.
    pub(crate) ack: Option<(NodeId, Vec<u8>)>,
}

/// A frame as it arrives at a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) to: NodeId,
    pub(crate) flight: usize,
    pub(crate) signal: Signal,
    /// It starts outside the time for which the listener's radio waits, so it can only disturb.
    pub(crate) stray: bool,
}

/// Room that is used again in each slot.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) senders: Vec<NodeId>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) signals: Vec<Signal>,
}

/// Room that is used again for each frame under carrier sense.
#[derive(Debug, Default)]
pub(crate) struct Hearers {
    /// The nodes whose radio found the frame that begins.
    pub(crate) found: Vec<NodeId>,
    /// The nodes whose radio was with the frame that ends, and how loud it was.
    pub(crate) ended: Vec<(NodeId, Fate, Dbm)>,
}
