//! 6top of one node: a scheduling function, its 6P transactions, and the schedule that the MAC lends.
//!
//! The driver hands over what the node learns ([`Event`]), the content of 6top information elements, and
//! what became of the frames it was asked to send; it gets frames to send and a record of what changed.
//! Frames carry handles from [`HANDLE_FIRST`] on, so that the stack can tell them from its own.
//!
//! What a node does as the requester of a transaction is in `requester`, what it does as the responder in `responder`.

mod effects;
mod requester;
mod responder;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::Cell;
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_machine::{Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Asn, Eui64, Instant, Rng};
use lowmesh_wire::DecodeError;
use lowmesh_wire::sixp::{Body, Header, Kind, Message, ReturnCode, VERSION};

use crate::functions::{Action, Context, Event, SchedulingFunction, Snapshot};
use crate::params::{HANDLE_FIRST, MacTiming};
use crate::transaction::{Frame, Outcome, State, Transactions};

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
