//! No forwarding: what a node sends to a group reaches its neighbours, as on a link without multicast routers (RFC 4291 s2.7).

use alloc::boxed::Box;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected};
use lowmesh_registry::Row;
use lowmesh_units::Instant;

use crate::engine::{Engine, Event, NodeContext, Output, Reach, Receiver};
use crate::packet::{dropped, originated, routable};

/// The row of [`Link`].
pub static ROW: Row<dyn Engine> = Row::<dyn Engine>::plain(
    "none",
    "No forwarding: a packet reaches only the neighbours of the sender",
    |_, _| Box::new(Link::default()),
);

/// One node that forwards nothing.
#[derive(Debug, Default)]
pub struct Link {
    outbox: Outbox<Output>,
}

impl Link {
    fn receive(&mut self, packet: &[u8], handle: Handle, context: &dyn NodeContext) {
        let output = match routable(packet) {
            None => dropped(handle, DropReason::Malformed),
            Some(header) if context.is_member(&header.destination) => {
                Output::Deliver { packet: packet.to_vec(), handle }
            }
            Some(_) => dropped(handle, DropReason::NotForUs),
        };
        self.outbox.push(output);
    }
}

impl Engine for Link {
    fn handle(
        &mut self,
        _now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        match event {
            Event::Originate { packet, handle } => {
                originated(packet)?;
                let (packet, to) = (packet.to_vec(), Receiver::Broadcast);
                self.outbox.push(Output::Send { packet, to, handle });
            }
            Event::Received { packet, handle, .. } => self.receive(packet, handle, context),
            Event::Control { handle, .. } => {
                self.outbox.push(dropped(handle, DropReason::NotForUs));
            }
            Event::Deadline => {}
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    fn reach(&self) -> Reach {
        Reach::Link
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}
