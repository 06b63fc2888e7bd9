//! What a link layer tells its node, the same for every MAC.

use alloc::vec::Vec;

use lowmesh_machine::{Dropped, Handle};
use lowmesh_units::Eui64;

use crate::event::Output;

/// What a link layer has to say to its node.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// Frames can be sent from now on.
    Up,
    /// They no longer can.
    Down,
    /// A frame came.
    Received { source: Eui64, broadcast: bool, payload: Vec<u8>, handle: Handle },
    /// A frame of this node is over: `acked` by a neighbour, or `dropped`, or sent to everyone.
    Done { handle: Handle, acked: bool, dropped: Option<Dropped> },
    /// The expected transmissions over a link changed.
    Etx { peer: Eui64, etx: u16, fresh: bool },
    /// The neighbour answers no frame, and has been silent for long.
    Gone(Eui64),
    /// Nothing was heard from the neighbour for long.
    Silent(Eui64),
    /// A neighbour that was gone or silent is heard again.
    Back(Eui64),
    /// The driver is to do this.
    Driver(Output),
}
