//! The radio of one node under a MAC with carrier sense: what it is doing, in continuous time.

use lowmesh_mac::frame::airtime;
use lowmesh_mac::params::CCA;
use lowmesh_machine::Handle;
use lowmesh_stack::event::RadioOrder;
use lowmesh_units::{Eui64, Instant};

use crate::air::{FrameId, Receiver};

/// A frame on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: Instant,
    /// Without FCS.
    pub(crate) octets: Vec<u8>,
    pub(crate) content: Content,
    /// Its name, from its start on.
    pub(crate) frame: Option<FrameId>,
    /// Whether the neighbour that it is for listened at its start.
    pub(crate) awaited: bool,
    /// Whether that neighbour sent during a part of it.
    pub(crate) deaf: bool,
}

impl Outgoing {
    fn new(start: Instant, octets: Vec<u8>, content: Content) -> Self {
        Self { start, octets, content, frame: None, awaited: false, deaf: false }
    }

    /// The time at which the frame ends.
    pub(crate) fn end(&self) -> Instant {
        self.start + airtime(self.octets.len())
    }

    /// The neighbour that it is for.
    pub(crate) const fn destination(&self) -> Option<Eui64> {
        match self.content {
            Content::Data { destination, .. } => destination,
            Content::Acknowledgement => None,
        }
    }

    /// The datagram in it.
    pub(crate) const fn handle(&self) -> Handle {
        match self.content {
            Content::Data { handle, .. } => handle,
            Content::Acknowledgement => Handle::NONE,
        }
    }
}

/// What is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A frame of the MAC's queue, to one neighbour or to everyone.
    Data { destination: Option<Eui64>, handle: Handle },
    /// An acknowledgement.
    Acknowledgement,
}

/// A radio.
#[derive(Clone, Debug, Default)]
pub(crate) struct Radio {
    pub(crate) receiver: Receiver,
    /// Since when the channel is being sensed, or from when on.
    pub(crate) sense: Option<Instant>,
    pub(crate) outgoing: Option<Outgoing>,
    /// What the MAC is to hear when the node has its power back.
    pub(crate) owed: Owed,
}

/// What a loss of power cut short, of which the MAC has kept the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owed {
    /// A frame on its way out is over.
    pub(crate) sent: bool,
    /// The frame that came in is lost.
    pub(crate) lost: bool,
}

impl Radio {
    /// Takes an order of the MAC.
    pub(crate) fn take(&mut self, order: RadioOrder) {
        match order {
            RadioOrder::Sense { at } => self.sense = Some(at),
            RadioOrder::Transmit { at, octets, destination, handle } => {
                let content = Content::Data { destination, handle };
                self.outgoing = Some(Outgoing::new(at, octets, content));
            }
            RadioOrder::Acknowledge { at, octets, .. } => {
                self.outgoing = Some(Outgoing::new(at, octets, Content::Acknowledgement));
            }
        }
    }

    /// When the channel is sensed.
    pub(crate) fn sensed_at(&self) -> Option<Instant> {
        Some(self.sense? + CCA)
    }

    /// When the frame on its way out begins, or ends if it has begun.
    pub(crate) fn next_frame_step(&self) -> Option<Instant> {
        let outgoing = self.outgoing.as_ref()?;
        Some(if outgoing.frame.is_none() { outgoing.start } else { outgoing.end() })
    }
}
