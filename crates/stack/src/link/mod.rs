//! The link layer of a node, a closed choice: timeslots in `slotted`, carrier sense in `contended`. What any of
//! them tells the node is in `event`, and what the node does about it in `boundary`.

mod boundary;
mod contended;
mod event;
mod slotted;

use alloc::boxed::Box;

use lowmesh_mac::csma::Csma;
use lowmesh_mac::frame::Content;
use lowmesh_mac::link::LinkTable;
use lowmesh_mac::queue::Priority;
use lowmesh_mac::tsch::{self, FormerNetwork};
use lowmesh_machine::{Handle, Machine as _, Outbox, debug_assert_accepted};
use lowmesh_sixtop::Event;
use lowmesh_units::{Duration, Eui64, Instant};

pub(crate) use event::LinkEvent;
pub(crate) use slotted::Slotted;

use crate::event::Output;

/// What gives a node its neighbours.
#[derive(Debug)]
pub(crate) enum Link {
    /// Timeslots and channel hopping, with 6top.
    Slotted(Box<Slotted>),
    /// Carrier sense.
    Contended(Box<Csma>),
}

/// What a frame is for, by which the MAC orders its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Packets of applications and of other nodes.
    Data,
    /// ICMPv6 messages of this node.
    Control,
    /// A DIO to all neighbours or a DAO: while one waits, a newer one to the same neighbours replaces it.
    Advertisement,
    /// It helps its receiver, and nothing depends on its arrival.
    Advice,
}

impl FrameKind {
    const fn priority(self) -> Priority {
        match self {
            Self::Data | Self::Advice => Priority::Data,
            Self::Control | Self::Advertisement => Priority::Control,
        }
    }
}

impl Link {
    pub(crate) fn boot(&mut self, now: Instant) -> Option<LinkEvent> {
        match self {
            Self::Slotted(slotted) => {
                slotted.boot(now);
                None
            }
            Self::Contended(csma) => {
                debug_assert_accepted(csma.handle(now, lowmesh_mac::csma::Input::Start));
                // There is nothing to join: a radio that is on has a link layer.
                Some(LinkEvent::Up)
            }
        }
    }

    /// The power is back after a time in which nobody called.
    pub(crate) fn resume(&mut self, now: Instant) {
        if let Self::Slotted(slotted) = self {
            // The slots of that time are over.
            slotted.tell_mac(now, tsch::Input::ScheduleChanged);
        }
    }

    pub(crate) fn deadline(&mut self, now: Instant) {
        match self {
            Self::Slotted(slotted) => slotted.deadline(now),
            Self::Contended(csma) => {
                if csma.next_deadline().is_some_and(|due| due <= now) {
                    debug_assert_accepted(csma.handle(now, lowmesh_mac::csma::Input::Deadline));
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Slotted(slotted) => slotted.next_deadline(),
            Self::Contended(csma) => csma.next_deadline(),
        }
    }

    /// The next thing that it has to say.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<LinkEvent> {
        match self {
            Self::Slotted(slotted) => slotted.poll(now),
            Self::Contended(csma) => {
                csma.poll_output().map(|output| contended::event(csma, output))
            }
        }
    }

    /// Lets the sublayer over the MAC say one thing; false when it is silent.
    pub(crate) fn step(&mut self, now: Instant, outbox: &mut Outbox<Output>) -> bool {
        match self {
            Self::Slotted(slotted) => slotted.step_sixtop(now, outbox),
            Self::Contended(_) => false,
        }
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        payload: &[u8],
        destination: Option<Eui64>,
        kind: FrameKind,
        handle: Handle,
    ) {
        let priority = kind.priority();
        match self {
            Self::Slotted(slotted) => {
                let content = match kind {
                    FrameKind::Advertisement => Content::Advertisement(payload),
                    FrameKind::Control | FrameKind::Data | FrameKind::Advice => {
                        Content::Payload(payload)
                    }
                };
                slotted.tell_mac(now, tsch::Input::Send { destination, content, priority, handle });
            }
            Self::Contended(csma) => {
                let is_advice = kind == FrameKind::Advice;
                let input = lowmesh_mac::csma::Input::Send {
                    destination,
                    payload,
                    priority,
                    is_advice,
                    handle,
                };
                debug_assert_accepted(csma.handle(now, input));
            }
        }
    }

    /// Takes the end of a frame if it was one of the link layer's own.
    pub(crate) fn take_done(&mut self, now: Instant, handle: Handle, acked: bool) -> bool {
        match self {
            Self::Slotted(slotted) => slotted.take_done(now, handle, acked),
            Self::Contended(_) => false,
        }
    }

    /// What is known of the neighbours.
    pub(crate) fn links(&self) -> &LinkTable {
        match self {
            Self::Slotted(slotted) => slotted.mac.links(),
            Self::Contended(csma) => csma.links(),
        }
    }

    /// Whether a neighbour is known to hear this node; false of all where frames to strangers are nothing special.
    pub(crate) fn is_proven(&self, peer: Eui64) -> bool {
        match self {
            Self::Slotted(_) => false,
            Self::Contended(csma) => csma.is_proven(peer),
        }
    }

    /// The time from one cell in which this node can broadcast to the next; none where it can at any time.
    pub(crate) fn broadcast_period(&self) -> Option<Duration> {
        match self {
            Self::Slotted(slotted) => slotted.broadcast_period(),
            Self::Contended(_) => None,
        }
    }

    /// True while the radio is occupied with a frame of this node; under TSCH never, since a slot has its time.
    pub(crate) fn is_sending(&self) -> bool {
        match self {
            Self::Slotted(_) => false,
            Self::Contended(csma) => csma.is_sending(),
        }
    }

    /// What a root has to keep of its network over a restart.
    pub(crate) fn network(&self) -> Option<FormerNetwork> {
        match self {
            Self::Slotted(slotted) => slotted.network(),
            Self::Contended(_) => None,
        }
    }

    /// True when frames can be sent.
    pub(crate) fn is_up(&self) -> bool {
        match self {
            Self::Slotted(slotted) => slotted.mac.is_synchronised(),
            Self::Contended(csma) => csma.is_on(),
        }
    }

    /// The preferred parent is another one, or none.
    pub(crate) fn on_parent(&mut self, now: Instant, old: Option<Eui64>, new: Option<Eui64>) {
        if let Self::Slotted(slotted) = self {
            slotted.on_parent(now, old, new);
        }
    }

    /// What routing has to say to a scheduling function.
    pub(crate) fn tell_sixtop(&mut self, now: Instant, event: Event) {
        if let Self::Slotted(slotted) = self {
            slotted.tell_sixtop(now, event);
        }
    }

    /// Resets the ETX of bad links.
    pub(crate) fn reset_bad_links(&mut self) {
        match self {
            Self::Slotted(slotted) => slotted.mac.reset_bad_links(),
            Self::Contended(csma) => csma.reset_bad_links(),
        }
    }

    /// Beacons carry this join metric from now on, or there are none.
    pub(crate) fn set_beacons(&mut self, now: Instant, metric: Option<u8>) {
        if let Self::Slotted(slotted) = self {
            // A node that has left its network has nothing to say of it.
            let metric = metric.filter(|_| slotted.mac.is_synchronised());
            slotted.tell_mac(now, tsch::Input::SetBeacons(metric));
        }
    }
}
