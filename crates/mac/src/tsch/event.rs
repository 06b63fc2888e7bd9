//! What goes into a TSCH MAC and what comes out, outside of its timeslots and in them.

use alloc::vec::Vec;

use lowmesh_machine::{Dropped, Handle};
use lowmesh_units::{Channel, Dbm, Eui64};

use super::cell::CellId;
use super::former::Start;
use crate::frame::Content;
use crate::queue::Priority;

/// What can happen to a TSCH MAC outside of its timeslots.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Power on.
    Start(Start),
    /// Send this.
    Send {
        /// To one neighbour, or to everyone in range.
        destination: Option<Eui64>,
        /// The contents of the frame.
        content: Content<'a>,
        /// Who goes first.
        priority: Priority,
        /// Its name.
        handle: Handle,
    },
    /// Take the time from this neighbour from now on (the RPL parent).
    SetTimeSource(Eui64),
    /// Send beacons with this join metric, or none.
    SetBeacons(Option<u8>),
    /// The schedule was changed from outside.
    ScheduleChanged,
    /// Give up what waits for this neighbour.
    Flush(Eui64),
    /// Do not send this frame, or not again, if it still waits; nothing more is said of it. A frame on the air
    /// comes to its end as any other.
    Withdraw(Handle),
    /// Leave the network and look for one again; a coordinator stays.
    Leave,
    /// A deadline came.
    Deadline,
}

/// What a TSCH MAC asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame ended: acknowledged by its destination, or sent to everyone.
    Sent {
        /// Its name.
        handle: Handle,
        /// Where it went.
        destination: Option<Eui64>,
        /// Copies.
        transmissions: u8,
    },
    /// A frame ended without arriving. `destination` did not answer if the reason is `NoAck`.
    Dropped {
        /// Which, and why.
        dropped: Dropped,
        /// Where it should have gone.
        destination: Option<Eui64>,
    },
    /// A frame for this node came.
    Received {
        /// From this neighbour,
        source: Eui64,
        /// in this cell,
        cell: Option<CellId>,
        /// to everyone or to this node alone,
        broadcast: bool,
        /// with this in it.
        payload: Vec<u8>,
        /// The datagram's name, where the driver knows it.
        handle: Handle,
    },
    /// A 6P message for this node came.
    Sixtop {
        /// From this neighbour.
        source: Eui64,
        /// In this cell.
        cell: Option<CellId>,
        /// The message.
        message: Vec<u8>,
    },
    /// In step with a network.
    Synchronised {
        /// Who gave the time; `None` at the coordinator.
        time_source: Option<Eui64>,
    },
    /// Out of step; queues and schedule are empty.
    Desynchronised,
    /// The expected transmissions over a link changed.
    LinkEtx {
        /// To this neighbour.
        peer: Eui64,
        /// In 1/128.
        etx: u16,
    },
    /// Frames to this neighbour fail, and it has been silent for 30 s.
    NeighbourGone(Eui64),
    /// Nothing has been heard from this neighbour for long, not even a beacon.
    NeighbourSilent(Eui64),
    /// A neighbour that was gone or silent is heard again.
    NeighbourBack(Eui64),
    /// The first frame for this neighbour waits.
    QueueBusy(Eui64),
    /// The last frame for this neighbour is gone.
    QueueEmpty(Eui64),
    /// Move the local clock: positive makes it later.
    AdjustClock {
        /// By so much.
        micros: i32,
    },
}

/// A frame that goes out in this slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// On this channel,
    pub channel: Channel,
    /// these octets (FCS left out).
    pub octets: Vec<u8>,
    /// One neighbour is to acknowledge.
    pub destination: Option<Eui64>,
    /// The datagram in it.
    pub handle: Handle,
}

/// What the radio heard.
#[derive(Clone, Copy, Debug)]
pub struct Reception<'a> {
    /// The frame without FCS, which was right.
    pub octets: &'a [u8],
    /// How strong.
    pub rssi: Dbm,
    /// Microseconds after the expected moment, by the local clock.
    pub late_micros: i32,
    /// The datagram in it, where the driver knows.
    pub handle: Handle,
}
