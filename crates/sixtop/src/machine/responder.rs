//! The node that answers a request: its response, and when that counts (RFC 8480 s3.1).

use lowmesh_machine::Handle;
use lowmesh_units::Eui64;
use lowmesh_wire::sixp::{Body, Command, Header, Message, Response, ReturnCode};

use super::{Change, EventContext, Output, Sixtop};
use crate::functions::Event;
use crate::negotiation;
use crate::transaction::{Commit, Frame, Outcome, State};

impl Sixtop {
    /// Answers without beginning a transaction.
    pub(super) fn refuse(&mut self, to: Eui64, header: Header, code: ReturnCode) {
        let body = Body::Response(Response::bare(code));
        self.out.push(Output::Event(Change::Answered { peer: to, code }));
        self.send(to, &Message { sfid: header.sfid, seqnum: header.seqnum, body });
    }

    pub(super) fn on_request(
        &mut self,
        context: &mut EventContext<'_>,
        from: Eui64,
        header: Header,
        command: &Command,
    ) {
        let slotframe = self.function.negotiated_slotframe();
        let locked = self.transactions.locked_slots();
        let has_cells = |peer| negotiation::has_cells(context.schedule, slotframe, peer);
        let Some(peer) = self.transactions.peer(from, has_cells) else {
            return self.refuse(from, header, ReturnCode::Busy);
        };
        if *command == Command::Clear {
            // RFC 8480 s3.3.6: accepted whatever the sequence number and whatever else is going on.
            self.end_request(context, from, Outcome::Aborted);
            if let Some(peer) = self.transactions.get(from) {
                let waiting = peer.waiting();
                (peer.seqnum, peer.state) = (0, State::Idle);
                self.withdraw(waiting);
            }
            self.remove_cells(context, from);
            context.events.push_back(Event::Cleared(from));
            return self.refuse(from, header, ReturnCode::Success);
        }
        // RFC 8480 s3.4.3: a second transaction with the same neighbour is refused.
        if peer.state != State::Idle {
            return self.refuse(from, header, ReturnCode::Busy);
        }
        // RFC 8480 s3.4.6: 0 from one side only means that one of the two has started again. Other numbers may
        // differ, as when a response was lost; Contiki-NG and the 6TiSCH simulator read "expected" alike.
        if (header.seqnum == 0) != (peer.seqnum == 0) {
            return self.refuse(from, header, ReturnCode::SeqNum);
        }
        peer.seqnum = header.seqnum;
        let (response, state) = self.respond(context, from, command, &locked);
        if let State::Responding { commit, .. } = &state {
            self.apply(context, from, &commit.early());
        }
        if let Some(peer) = self.transactions.get(from) {
            peer.state = state;
        }
        if header.seqnum == 0 {
            context.events.push_back(Event::StartedAgain(from));
        }
        self.out.push(Output::Event(Change::Answered { peer: from, code: response.code }));
        let (sfid, seqnum) = (header.sfid, header.seqnum);
        self.send(from, &Message { sfid, seqnum, body: Body::Response(response) });
    }

    /// What to say to a request whose sequence number is right, in the frame that is sent next, and what that begins.
    pub(super) fn respond(
        &mut self,
        context: &EventContext<'_>,
        from: Eui64,
        command: &Command,
        locked: &[u16],
    ) -> (Response, State) {
        let (schedule, slotframe) = (&*context.schedule, self.function.negotiated_slotframe());
        let most = self.function.cells_per_peer_max();
        let limited = negotiation::within_share(schedule, slotframe, from, command.clone(), most);
        let handle = Handle(self.next_handle);
        let deadline = context.now + self.function.timeout(self.mac);
        if !negotiation::is_open(command) {
            let (response, commit) =
                negotiation::answer(schedule, slotframe, locked, from, &limited);
            return (response, State::Responding { handle, commit, deadline });
        }
        // From a longer list the peer could choose more than its share.
        let list = if limited == *command { self.function.cell_list() } else { 0 };
        let rng = &mut self.rng;
        match negotiation::offer(schedule, slotframe, locked, from, &limited, list, rng) {
            Ok(offer) => {
                let cells = negotiation::offered(&offer);
                let response = Response::with_cells(ReturnCode::Success, cells);
                (response, State::Offering { frame: Frame::Waiting(handle), offer, deadline })
            }
            Err(code) => {
                let commit = Commit::Nothing;
                (Response::bare(code), State::Responding { handle, commit, deadline })
            }
        }
    }

    /// RFC 8480 s3.1.2: the third step says which of the offered cells are to be used.
    pub(super) fn on_confirmation(
        &mut self,
        context: &mut EventContext<'_>,
        from: Eui64,
        header: Header,
        confirmation: &Response,
    ) {
        let agreed = confirmation.code == ReturnCode::Success;
        let Some(peer) = self.transactions.get(from) else { return };
        let waiting = peer.waiting();
        let commit = match &peer.state {
            State::Offering { offer, .. } if header.seqnum == peer.seqnum => {
                if agreed {
                    confirmation.cells().ok().and_then(|cells| negotiation::agreed(offer, cells))
                } else {
                    Some(Commit::Nothing)
                }
            }
            _ => {
                if agreed && !confirmation.fields.is_empty() {
                    // RFC 9033 s13: the peer commits to cells that are not offered any more.
                    self.inconsistent(context, from);
                }
                return;
            }
        };
        peer.state = State::Idle;
        // RFC 8480 s3.4.6: the responder of three steps counts with the acknowledgement of the confirmation.
        peer.advance();
        self.withdraw(waiting);
        let Some(commit) = commit else { return self.inconsistent(context, from) };
        self.apply(context, from, &commit);
        if commit.changes() {
            context.events.push_back(Event::CellsChanged(from));
        }
    }

    /// RFC 8480 s3.4: the responder commits when its response is acknowledged by the link layer. In cells to receive it has
    /// listened since the response left.
    pub(super) fn end_response(
        &mut self,
        context: &mut EventContext<'_>,
        from: Eui64,
        acked: bool,
    ) {
        let Some(peer) = self.transactions.get(from) else { return };
        let State::Responding { commit, .. } = &peer.state else { return };
        let commit = commit.clone();
        peer.state = State::Idle;
        if acked {
            peer.advance();
            self.apply(context, from, &commit.late());
            if commit.changes() {
                context.events.push_back(Event::CellsChanged(from));
            }
        } else if commit.changes() {
            self.apply(context, from, &commit.undo());
            // The response may have come although its acknowledgements did not.
            self.inconsistent(context, from);
        }
    }
}
