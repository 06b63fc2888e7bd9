//! What both ends of a transaction do: to the schedule, and to the frames that the MAC has.

use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_units::Eui64;
use lowmesh_wire::sixp::Message;

use super::{Change, EventContext, Output, Sixtop};
use crate::functions::Event;
use crate::negotiation;
use crate::transaction::Commit;

impl Sixtop {
    pub(super) fn send(&mut self, to: Eui64, message: &Message) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        self.out.push(Output::Send { to, bytes, handle });
    }

    /// Takes back what the MAC still has of a transaction that is over: the peer would take it for the next one.
    pub(super) fn withdraw(&mut self, waiting: Option<Handle>) {
        if let Some(handle) = waiting {
            self.out.push(Output::Withdraw(handle));
        }
    }

    pub(super) fn apply(&mut self, context: &mut EventContext<'_>, peer: Eui64, commit: &Commit) {
        let slotframe = self.function.negotiated_slotframe();
        let (gone, made) =
            negotiation::apply(context.schedule, context.asn, slotframe, peer, commit);
        for cell in gone {
            self.out.push(Output::Event(Change::Removed(cell)));
        }
        for cell in made.into_iter().filter_map(|id| context.schedule.get(id)) {
            self.out.push(Output::Event(Change::Added(*cell)));
        }
    }

    pub(super) fn remove_cells(&mut self, context: &mut EventContext<'_>, peer: Eui64) {
        let slotframe = self.function.negotiated_slotframe();
        let cells = negotiation::all_with(context.schedule, slotframe, peer);
        let ids: Vec<_> = cells.map(|c| c.id).collect();
        for cell in ids.into_iter().filter_map(|id| context.schedule.remove(id)) {
            self.out.push(Output::Event(Change::Removed(cell)));
        }
    }

    pub(super) fn inconsistent(&mut self, context: &mut EventContext<'_>, peer: Eui64) {
        self.out.push(Output::Event(Change::Inconsistent(peer)));
        context.events.push_back(Event::Inconsistent(peer));
    }
}
