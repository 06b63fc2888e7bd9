//! 6top of one node: a scheduling function, its 6P transactions, and the schedule that the MAC lends.
//!
//! The driver hands over what the node learns ([`Event`]), the content of 6top information elements, and
//! what became of the frames it was asked to send; it gets frames to send and a record of what changed.
//! Frames carry handles from [`HANDLE_FIRST`] on, so that the stack can tell them from its own.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::Cell;
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_machine::{Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Asn, Eui64, Instant, Rng};
use lowmesh_wire::DecodeError;
use lowmesh_wire::sixp::{Body, Command, Header, Kind, Message, Response, ReturnCode, VERSION};

use crate::functions::{Action, Context, Event, SchedulingFunction, Snapshot};
use crate::negotiation;
use crate::params::{HANDLE_FIRST, LIST_CELLS_MAX, MacTiming};
use crate::transaction::{Ask, Commit, Frame, Outcome, State, Transactions};

/// Something happened in slot `asn`.
#[derive(Debug)]
pub struct Input<'a> {
    /// The slot.
    pub asn: Asn,
    /// The node's schedule.
    pub schedule: &'a mut Schedule,
    /// What happened.
    pub event: SixtopEvent<'a>,
}

/// What can happen to 6top.
#[derive(Debug)]
pub enum SixtopEvent<'a> {
    /// The node learned something. [`Event::Deadline`] is also the machine's own deadline.
    Event(Event),
    /// A 6top information element came.
    Message {
        /// Its sender.
        from: Eui64,
        /// Its content, from the Version field on.
        bytes: &'a [u8],
    },
    /// The MAC is done with a frame that [`Output::Send`] asked for.
    FrameDone {
        /// The handle of the frame.
        handle: Handle,
        /// Did the neighbour acknowledge it?
        acked: bool,
    },
}

/// What 6top wants of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this as the content of a 6top information element, then tell with [`SixtopEvent::FrameDone`].
    Send {
        /// To whom.
        to: Eui64,
        /// The content.
        bytes: Vec<u8>,
        /// Its name, from [`HANDLE_FIRST`] on.
        handle: Handle,
    },
    /// Do not send this any more if it still waits: its transaction is over. There is no [`SixtopEvent::FrameDone`] to follow.
    Withdraw(Handle),
    /// For traces.
    Event(Change),
}

/// What changed, for traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A negotiated cell was added.
    Added(Cell),
    /// A negotiated cell was removed; its use says what it was good for.
    Removed(Cell),
    /// A transaction that this node began is over.
    Ended {
        /// With whom.
        peer: Eui64,
        /// The command, by its RFC name.
        command: &'static str,
        /// How.
        outcome: Outcome,
    },
    /// This node answered a request.
    Answered {
        /// Whose.
        peer: Eui64,
        /// With what.
        code: ReturnCode,
    },
    /// The two schedules may have come apart.
    Inconsistent(Eui64),
    /// No transactions with this neighbour until then (RFC 9033 s12); RPL may want to avoid it too.
    Quarantined(Eui64, Instant),
    /// A message that does not decode.
    Malformed(Eui64, DecodeError),
}

/// 6top of one node.
#[derive(Debug)]
pub struct Sixtop {
    me: Eui64,
    mac: MacTiming,
    function: Box<dyn SchedulingFunction>,
    rng: Rng,
    transactions: Transactions,
    next_handle: u64,
    out: Outbox<Output>,
    deadline: Option<Instant>,
}

/// One call's view: the moment and the schedule lent for it.
struct EventContext<'a> {
    now: Instant,
    asn: Asn,
    schedule: &'a mut Schedule,
    /// What the function is still to be told.
    events: VecDeque<Event>,
}

impl Sixtop {
    /// 6top of node `me`, over a MAC of this timing, with its function, and its stream of [`Purpose::Sixtop`].
    ///
    /// [`Purpose::Sixtop`]: lowmesh_units::Purpose::Sixtop
    pub fn new(me: Eui64, mac: MacTiming, function: Box<dyn SchedulingFunction>, rng: Rng) -> Self {
        Self {
            me,
            mac,
            function,
            rng,
            transactions: Transactions::default(),
            next_handle: HANDLE_FIRST,
            out: Outbox::new(),
            deadline: None,
        }
    }

    /// The scheduling function's name.
    pub fn function_name(&self) -> &'static str {
        self.function.name()
    }

    /// The node's cells by neighbour.
    pub fn snapshot(&self, schedule: &Schedule) -> Snapshot {
        self.function.snapshot(schedule)
    }

    /// Tells the function everything that is queued, and does what it asks for.
    fn run(&mut self, context: &mut EventContext<'_>) {
        while let Some(event) = context.events.pop_front() {
            let moment = (context.now, context.asn, self.mac.slot);
            let mut lent = Context::new(moment, context.schedule, &mut self.rng, self.me);
            self.function.handle(&mut lent, &event);
            for action in lent.actions {
                match action {
                    Action::Ask(peer, ask) => self.start(context, peer, &ask),
                    Action::Drop(peer) => {
                        self.remove_cells(context, peer);
                        context.events.push_back(Event::CellsChanged(peer));
                    }
                    Action::Quarantine(peer, until) => {
                        self.out.push(Output::Event(Change::Quarantined(peer, until)));
                    }
                }
            }
        }
    }

    /// Begins a transaction, or says at once that it cannot be.
    fn start(&mut self, context: &mut EventContext<'_>, peer: Eui64, ask: &Ask) {
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
    fn command_for(
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

    fn send(&mut self, to: Eui64, message: &Message) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        self.out.push(Output::Send { to, bytes, handle });
    }

    /// Tells the end of a transaction that this node began.
    fn end(
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
    fn end_request(&mut self, context: &mut EventContext<'_>, peer: Eui64, outcome: Outcome) {
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

    /// Takes back what the MAC still has of a transaction that is over: the peer would take it for the next one.
    fn withdraw(&mut self, waiting: Option<Handle>) {
        if let Some(handle) = waiting {
            self.out.push(Output::Withdraw(handle));
        }
    }

    fn apply(&mut self, context: &mut EventContext<'_>, peer: Eui64, commit: &Commit) {
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

    fn remove_cells(&mut self, context: &mut EventContext<'_>, peer: Eui64) {
        let slotframe = self.function.negotiated_slotframe();
        let cells = negotiation::all_with(context.schedule, slotframe, peer);
        let ids: Vec<_> = cells.map(|c| c.id).collect();
        for cell in ids.into_iter().filter_map(|id| context.schedule.remove(id)) {
            self.out.push(Output::Event(Change::Removed(cell)));
        }
    }

    fn inconsistent(&mut self, context: &mut EventContext<'_>, peer: Eui64) {
        self.out.push(Output::Event(Change::Inconsistent(peer)));
        context.events.push_back(Event::Inconsistent(peer));
    }

    fn on_message(&mut self, context: &mut EventContext<'_>, from: Eui64, bytes: &[u8]) {
        let header = match Header::parse(bytes) {
            Ok(header) => header,
            Err(error) => return self.out.push(Output::Event(Change::Malformed(from, error))),
        };
        let parsed = Message::parse(bytes);
        if let Err(error) = &parsed {
            self.out.push(Output::Event(Change::Malformed(from, *error)));
        }
        if header.kind == Kind::Request {
            // RFC 8480 s3.4.1 and s3.4.2: what is not spoken here is answered, and changes nothing.
            let refusal = match self.function.sfid() {
                _ if header.version != VERSION => Some(ReturnCode::Version),
                sfid if sfid != Some(header.sfid) => Some(ReturnCode::Sfid),
                _ => None,
            };
            match (refusal, parsed.map(|m| m.body)) {
                (Some(code), _) => self.refuse(from, header, code),
                (None, Ok(Body::Request { command, .. })) => {
                    self.on_request(context, from, header, &command);
                }
                (None, _) => self.refuse(from, header, ReturnCode::Error),
            }
            return;
        }
        match parsed.map(|m| m.body) {
            Ok(Body::Response(response)) => self.on_response(context, from, header, &response),
            Ok(Body::Confirmation(said)) => self.on_confirmation(context, from, header, &said),
            _ => {}
        }
    }

    /// Answers without beginning a transaction.
    fn refuse(&mut self, to: Eui64, header: Header, code: ReturnCode) {
        let body = Body::Response(Response::bare(code));
        self.out.push(Output::Event(Change::Answered { peer: to, code }));
        self.send(to, &Message { sfid: header.sfid, seqnum: header.seqnum, body });
    }

    fn on_request(
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
    fn respond(
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

    fn on_response(
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

    /// RFC 8480 s3.1.2: the third step says which of the offered cells are to be used.
    fn on_confirmation(
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

    fn on_frame_done(&mut self, context: &mut EventContext<'_>, handle: Handle, acked: bool) {
        let Some(from) = self.transactions.by_handle(handle) else { return };
        let Some(peer) = self.transactions.get(from) else { return };
        match &mut peer.state {
            State::Requesting { frame, .. } => {
                *frame = Frame::Delivered;
                if !acked {
                    self.end_request(context, from, Outcome::Undelivered);
                }
            }
            State::Responding { .. } => self.end_response(context, from, acked),
            State::Offering { frame, deadline, .. } => {
                if acked {
                    *frame = Frame::Delivered;
                    *deadline = context.now + self.function.timeout(self.mac);
                } else {
                    // If it came all the same, the confirmation will show it.
                    peer.state = State::Idle;
                }
            }
            State::Idle => {}
        }
    }

    /// RFC 8480 s3.4: the responder commits when its response is acknowledged by the link layer.
    fn end_response(&mut self, context: &mut EventContext<'_>, from: Eui64, acked: bool) {
        let Some(peer) = self.transactions.get(from) else { return };
        let State::Responding { commit, .. } = &peer.state else { return };
        let commit = commit.clone();
        peer.state = State::Idle;
        if acked {
            peer.advance();
            self.apply(context, from, &commit);
            if commit.changes() {
                context.events.push_back(Event::CellsChanged(from));
            }
        } else if commit.changes() {
            // The response may have come although its acknowledgements did not.
            self.inconsistent(context, from);
        }
    }

    fn on_deadline(&mut self, context: &mut EventContext<'_>) {
        while let Some(peer) = self.transactions.overdue(context.now) {
            // RFC 8480 s3.4.4: a transaction that takes too long is given up by either side.
            self.end_request(context, peer, Outcome::TimedOut);
            let late = self.transactions.get(peer).and_then(|peer| peer.waiting());
            self.withdraw(late);
            self.end_response(context, peer, false);
            // Nothing was confirmed, so nothing changed at either end.
            if let Some(peer) = self.transactions.get(peer) {
                peer.state = State::Idle;
            }
        }
        if self.function.next_deadline().is_some_and(|d| d <= context.now) {
            context.events.push_back(Event::Deadline);
        }
    }
}

impl Machine for Sixtop {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        let Input { asn, schedule, event } = input;
        let mut context = EventContext { now, asn, schedule, events: VecDeque::new() };
        match event {
            SixtopEvent::Event(Event::Deadline) => self.on_deadline(&mut context),
            SixtopEvent::Event(event) => {
                if event == Event::Desynchronised {
                    // Without a clock no transaction can end; peers will see sequence number 0 next.
                    self.transactions.clear();
                }
                context.events.push_back(event);
            }
            SixtopEvent::Message { from, bytes } => self.on_message(&mut context, from, bytes),
            SixtopEvent::FrameDone { handle, acked } => {
                self.on_frame_done(&mut context, handle, acked);
            }
        }
        self.run(&mut context);
        self.deadline = earliest(self.transactions.next_deadline(), self.function.next_deadline());
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests;
