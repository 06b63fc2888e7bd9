//! The node that begins a transaction: its request, and what it makes of the response (RFC 8480 s3.1).

use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_units::{Eui64, Rng};
use lowmesh_wire::sixp::{Body, Command, Header, Message, Response, ReturnCode};

use super::{Change, EventContext, Output, Sixtop};
use crate::functions::Event;
use crate::negotiation;
use crate::params::LIST_CELLS_MAX;
use crate::transaction::{Ask, Frame, Outcome, State};

impl Sixtop {
    /// Begins a transaction, or says at once that it cannot be.
    pub(super) fn start(&mut self, context: &mut EventContext<'_>, peer: Eui64, ask: &Ask) {
        let command = self.command_for(context, peer, ask);
        let sfid = self.function.sfid();
        let deadline = context.now + self.function.timeout(self.mac);
        let frame = Frame::Waiting(Handle(self.next_handle));
        let clear = *ask == Ask::Clear;
        let slotframe = self.function.negotiated_slotframe();
        let has_cells = |peer| negotiation::has_cells(context.schedule, slotframe, peer);
        let state = self.transactions.peer(peer, has_cells);
        let (Some(command), Some(sfid), Some(state)) = (command, sfid, state) else {
            self.end(context, peer, clear, "", Outcome::NotSent);
            return;
        };
        // RFC 8480 s3.4.3: one transaction at a time with one neighbour. A response on its way may still
        // arrive, so a CLEAR waits for it too.
        if state.state != State::Idle {
            self.end(context, peer, clear, command.name(), Outcome::Engaged);
            return;
        }
        let seqnum = state.seqnum;
        state.state = State::Requesting { frame, command: command.clone(), deadline };
        let body = Body::Request { command, metadata: 0 };
        if clear {
            self.remove_cells(context, peer);
            context.events.push_back(Event::CellsChanged(peer));
        }
        self.send(peer, &Message { sfid, seqnum, body });
    }

    /// The request for what the function asks; `None` when there is nothing to offer.
    pub(super) fn command_for(
        &mut self,
        context: &EventContext<'_>,
        peer: Eui64,
        ask: &Ask,
    ) -> Option<Command> {
        let slotframe = self.function.negotiated_slotframe();
        let list = self.function.cell_list().min(LIST_CELLS_MAX);
        let free = |rng: &mut Rng, locked: &[u16], count: usize| {
            let count = list.max(count).min(LIST_CELLS_MAX);
            let cells = negotiation::candidates(context.schedule, slotframe, locked, count, rng);
            (!cells.is_empty()).then_some(cells)
        };
        let locked = self.transactions.locked_slots();
        Some(match ask {
            Ask::Add { options, count } => {
                let cells = free(&mut self.rng, &locked, usize::from(*count))?;
                Command::Add { options: options.0, count: *count, cells }
            }
            Ask::Delete { options, count } => {
                let mut cells: Vec<_> =
                    negotiation::cells_with(context.schedule, slotframe, peer, *options)
                        .filter_map(negotiation::place_of)
                        .collect();
                cells.reverse();
                cells.truncate(usize::from(*count));
                let count = cells.len() as u8;
                (count > 0).then_some(Command::Delete { options: options.0, count, cells })?
            }
            Ask::Relocate { options, cells } => {
                let candidates = free(&mut self.rng, &locked, cells.len())?;
                Command::Relocate { options: options.0, from: cells.clone(), candidates }
            }
            Ask::Clear => Command::Clear,
        })
    }

    /// Tells the end of a transaction that this node began.
    pub(super) fn end(
        &mut self,
        context: &mut EventContext<'_>,
        peer: Eui64,
        clear: bool,
        command: &'static str,
        outcome: Outcome,
    ) {
        self.out.push(Output::Event(Change::Ended { peer, command, outcome }));
        context.events.push_back(Event::TransactionEnded { peer, clear, outcome });
    }

    /// Ends the open request to `peer`, if there is one.
    pub(super) fn end_request(
        &mut self,
        context: &mut EventContext<'_>,
        peer: Eui64,
        outcome: Outcome,
    ) {
        let Some(state) = self.transactions.get(peer) else { return };
        let waiting = state.waiting();
        if let State::Requesting { command, frame, .. } = &state.state {
            let (clear, name) = (*command == Command::Clear, command.name());
            let counts = *frame == Frame::Delivered && outcome.counts();
            state.state = State::Idle;
            if clear {
                // RFC 8480 s3.3.6: start again from 0, whatever became of the response.
                state.seqnum = 0;
            } else if counts {
                state.advance();
            }
            self.withdraw(waiting);
            self.end(context, peer, clear, name, outcome);
        }
    }

    pub(super) fn on_response(
        &mut self,
        context: &mut EventContext<'_>,
        from: Eui64,
        header: Header,
        response: &Response,
    ) {
        let agreed = matches!(response.code, ReturnCode::Success | ReturnCode::EndOfList);
        let Some(peer) = self.transactions.get(from) else { return };
        let State::Requesting { command, frame, .. } = &mut peer.state else {
            if agreed && !response.fields.is_empty() {
                // RFC 9033 s13: this node has given up what the peer has just committed to.
                self.inconsistent(context, from);
            } else if !agreed
                && header.seqnum == peer.seqnum
                && Outcome::Refused(response.code).counts()
            {
                // The request arrived although none of its acknowledgements did.
                peer.advance();
            }
            return;
        };
        if *command == Command::Clear {
            if header.seqnum == peer.seqnum && response.fields.is_empty() {
                let refused = Outcome::Refused(response.code);
                let outcome = if agreed { Outcome::Agreed(0) } else { refused };
                self.end_request(context, from, outcome);
            }
            return;
        }
        // RFC 8480 s3.4.6: a peer that has started again may say so with its own number, 0.
        let restarted = response.code == ReturnCode::SeqNum && header.seqnum == 0;
        if header.seqnum != peer.seqnum && !restarted {
            // A late answer to an earlier request: its cells are not ours.
            if agreed && !response.fields.is_empty() {
                self.end_request(context, from, Outcome::Aborted);
                self.inconsistent(context, from);
            }
            return;
        }
        // A response proves that the request arrived, whether or not its acknowledgement did.
        *frame = Frame::Delivered;
        if !agreed {
            return self.end_request(context, from, Outcome::Refused(response.code));
        }
        let commit = response.cells().ok().and_then(|cells| negotiation::agreed(command, cells));
        let Some(commit) = commit else {
            self.end_request(context, from, Outcome::Aborted);
            return self.inconsistent(context, from);
        };
        self.apply(context, from, &commit);
        self.end_request(context, from, Outcome::Agreed(commit.cells()));
    }
}
