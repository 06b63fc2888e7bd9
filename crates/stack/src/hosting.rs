//! The applications of one node: which input belongs to which, and what each has under way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use lowmesh_coap::{ExchangeId, Input as CoapInput, Output as CoapOutput, Purpose};
use lowmesh_machine::{DropReason, Handle, Machine as _, Outbox, Rejected, earliest};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Message, OptionNumber, Options};

use crate::application::{
    Action, Application, ApplicationId, Exchange, HostHandle, Input, RequestId, Snapshot,
};
use crate::config::ConfigError;
use crate::event::{ApplicationEvent, Class, Output, Peer, Transaction};
use crate::node::Node;
use crate::params::{APPLICATIONS_MAX, COAP_PORT, ECHO_PORT};

/// An application with what it claims.
#[derive(Debug)]
struct Installed {
    machine: Box<dyn Application>,
    /// Claimed paths, as the options of a request for each.
    paths: Vec<Options>,
    ports: Vec<u16>,
}

/// Who made a request.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The driver of the node, under a name of its own.
    Driver(Handle),
    /// An application of the node.
    Application(ApplicationId),
}

/// A request of this node that is not over.
#[derive(Clone, Copy, Debug)]
struct Open {
    owner: Owner,
    /// When its first message left.
    sent: Option<Instant>,
    /// Copies of its messages after the first.
    copies: u8,
    /// A response has come: an observation that goes on has no other end for the record.
    answered: bool,
}

/// The applications of a node and their requests.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    all: Vec<Installed>,
    open: BTreeMap<u64, Open>,
    /// Number of the latest request.
    requests: u64,
    /// What the applications still have to hear.
    inbox: VecDeque<(ApplicationId, Input)>,
    actions: Outbox<Action>,
    has_joined: bool,
    /// The earliest deadline of all applications.
    due: Option<Instant>,
}

impl Applications {
    fn install(&mut self, machine: Box<dyn Application>) -> Result<ApplicationId, ConfigError> {
        let claims = machine.claims();
        let path_of = |path: &alloc::string::String| {
            let mut options = Options::new();
            options.insert_path(path);
            options
        };
        for path in &claims.paths {
            if self.of_path(&path_of(path)).is_some() {
                return Err(ConfigError::ClaimedPath(path.clone()));
            }
        }
        for &port in &claims.ports {
            if [COAP_PORT, ECHO_PORT].contains(&port) || self.of_port(port).is_some() {
                return Err(ConfigError::ClaimedPort(port));
            }
        }
        let place = u16::try_from(self.all.len()).ok().filter(|place| *place < APPLICATIONS_MAX);
        let id = ApplicationId(place.ok_or(ConfigError::TooManyApplications)?);
        let paths = claims.paths.iter().map(path_of).collect();
        self.all.push(Installed { machine, paths, ports: claims.ports });
        Ok(id)
    }
    fn of_path(&self, options: &Options) -> Option<ApplicationId> {
        let asked = || options.iter().values(OptionNumber::URI_PATH);
        let claims = |path: &Options| path.iter().values(OptionNumber::URI_PATH).eq(asked());
        let place = self.all.iter().position(|one| one.paths.iter().any(claims))?;
        Some(ApplicationId(place as u16))
    }
    fn of_port(&self, port: u16) -> Option<ApplicationId> {
        let place = self.all.iter().position(|one| one.ports.contains(&port))?;
        Some(ApplicationId(place as u16))
    }
    fn tell(&mut self, application: ApplicationId, input: Input) {
        self.inbox.push_back((application, input));
    }
    fn tell_all(&mut self, input: impl Fn() -> Input) {
        for place in 0..self.all.len() {
            self.tell(ApplicationId(place as u16), input());
        }
    }
    /// The node was switched on.
    pub fn start(&mut self) {
        self.tell_all(|| Input::Started);
    }
    /// The deadlines that have come.
    pub fn deadline(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for place in 0..self.all.len() {
            if self.all[place].machine.next_deadline().is_some_and(|due| due <= now) {
                self.tell(ApplicationId(place as u16), Input::Deadline);
            }
        }
    }
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
    /// Asks all applications for their deadlines, which change when one has handled an input.
    fn ask_deadlines(&mut self) {
        let deadlines = self.all.iter().map(|one| one.machine.next_deadline());
        self.due = deadlines.fold(None, earliest);
    }
    /// Whether the applications wait for the node to join.
    pub fn awaits_network(&self) -> bool {
        !self.has_joined && !self.all.is_empty()
    }
    /// The node has joined.
    pub fn join(&mut self) {
        self.has_joined = true;
        self.tell_all(|| Input::Joined);
    }
    pub fn on_datagram(&mut self, port: u16, from: Peer, payload: &[u8]) -> bool {
        let Some(application) = self.of_port(port) else { return false };
        self.tell(application, Input::Datagram { port, from, payload: payload.to_vec() });
        true
    }
    /// The number under which the host knows a request from now on.
    pub fn open(&mut self, handle: Handle) -> Handle {
        self.requests += 1;
        self.insert(self.requests, Owner::Driver(handle));
        Handle(self.requests)
    }
    fn insert(&mut self, number: u64, owner: Owner) {
        self.open.insert(number, Open { owner, sent: None, copies: 0, answered: false });
    }
    /// The host did not take a request.
    pub fn close(&mut self, host_handle: Handle) {
        self.open.remove(&host_handle.0);
    }
    fn noted(host_handle: Handle, owner: Owner, note: impl Fn(Handle) -> Transaction) -> Output {
        match owner {
            Owner::Driver(handle) => Output::Transaction(note(handle)),
            Owner::Application(application) => {
                let request = RequestId { application, number: host_handle.0 };
                let event = ApplicationEvent::Transaction(request, note(Handle(request.number)));
                Output::Application(event)
            }
        }
    }
    /// The first message of a request has left, or one of its later ones.
    fn on_started(
        &mut self,
        handle: Handle,
        rto: lowmesh_units::Duration,
        at: Instant,
    ) -> Option<Output> {
        let open = self.open.get_mut(&handle.0).filter(|open| open.sent.is_none())?;
        open.sent = Some(at);
        Some(Self::noted(handle, open.owner, |name| Transaction::Sent(name, rto)))
    }
    fn on_resent(&mut self, handle: Handle) -> Option<Output> {
        let open = self.open.get_mut(&handle.0)?;
        open.copies = open.copies.saturating_add(1);
        let copies = open.copies;
        Some(Self::noted(handle, open.owner, |name| Transaction::Resent(name, copies)))
    }
    /// A request has failed, or the host has not taken it.
    fn on_failed(&mut self, handle: Handle, reason: DropReason) -> Option<Output> {
        let open = self.open.remove(&handle.0)?;
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(application, Input::Failed { request, reason });
        }
        let note = |name| Transaction::Failed(name, reason);
        (!open.answered).then(|| Self::noted(handle, open.owner, note))
    }
    fn on_response(&mut self, handle: Handle, answer: Answer) -> Option<Output> {
        let Answer { from, message, rtt, retransmissions } = answer;
        let open = self.open.remove(&handle.0)?;
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(
                application,
                Input::Response { request, from, message, rtt, retransmissions },
            );
        }
        let note = |name| Transaction::Acknowledged(name, rtt, retransmissions);
        (!open.answered).then(|| Self::noted(handle, open.owner, note))
    }
    /// A request goes on after this: a notification, or the answer of a group's member.
    fn on_part(
        &mut self,
        now: Instant,
        handle: Handle,
        input: impl Fn(RequestId) -> Input,
    ) -> Option<Output> {
        let open = self.open.get_mut(&handle.0)?;
        let (first, copies) = (!open.answered, open.copies);
        open.answered = true;
        let (owner, rtt) = (open.owner, now.since(open.sent.unwrap_or(now)));
        if let Owner::Application(application) = owner {
            let request = RequestId { application, number: handle.0 };
            self.inbox.push_back((application, input(request)));
        }
        let note = |name| Transaction::Acknowledged(name, rtt, copies);
        first.then(|| Self::noted(handle, owner, note))
    }
    fn on_over(&mut self, handle: Handle) {
        let Some(open) = self.open.remove(&handle.0) else { return };
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(application, Input::Over { request });
        }
    }
    /// What the applications show of themselves.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.all.iter().map(|one| one.machine.snapshot())
    }
}

/// A response with its times.
struct Answer {
    from: Peer,
    message: Message,
    rtt: lowmesh_units::Duration,
    retransmissions: u8,
}

impl Node {
    /// Puts one more application on the node, which is switched off.
    pub fn install(
        &mut self,
        application: Box<dyn Application>,
    ) -> Result<ApplicationId, ConfigError> {
        self.applications.install(application)
    }
    /// What the applications show of themselves, in the order in which they were installed.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.applications.snapshots()
    }

    /// What the CoAP host has to say.
    pub(crate) fn on_coap(&mut self, now: Instant, output: CoapOutput<Peer>) {
        let applications = &mut self.applications;
        let note = match output {
            CoapOutput::Send { to, bytes, handle, copy, purpose } => {
                let resends = purpose == Purpose::Request && copy > 0;
                if let Some(note) = resends.then(|| applications.on_resent(handle)).flatten() {
                    self.outbox.push(note);
                }
                let class = match purpose {
                    Purpose::Request => Class::Request,
                    Purpose::Response | Purpose::Empty => Class::Response,
                };
                return self.send_datagram(now, COAP_PORT, to, &bytes, class);
            }
            CoapOutput::Request { exchange, from, message, multicast } => {
                return self.on_request(exchange, from, message, multicast);
            }
            CoapOutput::Started { handle, rto, at } => applications.on_started(handle, rto, at),
            CoapOutput::Response { handle, from, message, rtt, retransmissions } => {
                applications.on_response(handle, Answer { from, message, rtt, retransmissions })
            }
            CoapOutput::Failed { handle, reason } => applications.on_failed(handle, reason),
            CoapOutput::Notification { handle, from, message } => {
                applications.on_part(now, handle, |request| Input::Notification {
                    request,
                    from,
                    message: message.clone(),
                })
            }
            CoapOutput::GroupResponse { handle, from, message, .. } => {
                applications.on_part(now, handle, |request| Input::GroupResponse {
                    request,
                    from,
                    message: message.clone(),
                })
            }
            CoapOutput::Over { handle } => {
                applications.on_over(handle);
                None
            }
            // An empty acknowledgement says that the response comes later, which then ends the transaction; what came
            // to nothing is counted in the endpoint. A node has neither pings of CoAP nor connections.
            CoapOutput::Acknowledged { .. }
            | CoapOutput::Discarded { .. }
            | CoapOutput::Pong { .. }
            | CoapOutput::Close { .. } => None,
        };
        if let Some(note) = note {
            self.outbox.push(note);
        }
    }

    fn on_request(&mut self, exchange: ExchangeId, from: Peer, message: Message, multicast: bool) {
        match self.applications.of_path(&message.options) {
            Some(application) => {
                let exchange = Exchange(exchange);
                let input = Input::Request { exchange, from, message, multicast };
                self.applications.tell(application, input);
            }
            None => self.outbox.push(Output::Request { exchange, from, message, multicast }),
        }
    }

    /// Lets the next application hear what it has not heard; false if all have.
    pub(crate) fn call_application(&mut self, now: Instant) -> bool {
        if self.applications.awaits_network() && self.is_joined() {
            self.applications.join();
        }
        let applications = &mut self.applications;
        let Some((id, input)) = applications.inbox.pop_front() else { return false };
        let Some(installed) = applications.all.get_mut(usize::from(id.0)) else { return true };
        let address = self.ipv6.addresses.global();
        let (requests, actions) = (&mut applications.requests, &mut applications.actions);
        installed.machine.handle(
            now,
            input,
            &mut HostHandle::new(id.0, address, requests, actions),
        );
        self.applications.ask_deadlines();
        while let Some(action) = self.applications.actions.pop() {
            self.act(now, id, action);
        }
        true
    }

    fn act(&mut self, now: Instant, application: ApplicationId, action: Action) {
        match action {
            Action::Request { request, peer, message } => {
                self.applications.insert(request.number, Owner::Application(application));
                self.outbox.push(Output::Application(ApplicationEvent::Issued(request)));
                let handle = Handle(request.number);
                let input = CoapInput::Request { peer, message, handle };
                if let Err(refusal) = self.coap.handle(now, input) {
                    self.on_refusal(request, refusal);
                }
            }
            Action::Cancel(request) => {
                let handle = Handle(request.number);
                self.applications.close(handle);
                // A host takes every cancellation.
                let _always_taken = self.coap.handle(now, CoapInput::Cancel { handle });
            }
            Action::Deregister(request) => {
                let handle = Handle(request.number);
                if self.coap.handle(now, CoapInput::Deregister { handle }).is_err() {
                    self.applications.on_over(handle);
                }
            }
            // The client of a request that has expired meanwhile waits no longer.
            Action::Respond { exchange: Exchange(exchange), response } => {
                let handle = Handle::NONE;
                let _expired =
                    self.coap.handle(now, CoapInput::Respond { exchange, response, handle });
            }
            Action::Decline(Exchange(exchange)) => {
                let _expired = self.coap.handle(now, CoapInput::Decline { exchange });
            }
            Action::Changed(path) => self.coap.changed(&path, now),
            Action::Datagram { source_port, peer, payload } => {
                self.send_datagram(now, source_port, peer, &payload, Class::Request);
            }
            Action::Report(report) => {
                self.outbox.push(Output::Application(ApplicationEvent::Report(report)));
            }
        }
    }

    /// The host has not taken a request: to the record it is one that found no room.
    fn on_refusal(&mut self, request: RequestId, refusal: Rejected) {
        let handle = Handle(request.number);
        self.applications.close(handle);
        self.applications.tell(request.application, Input::Refused { request, refusal });
        let failed = Transaction::Failed(handle, DropReason::QueueFull);
        let event = ApplicationEvent::Transaction(request, failed);
        self.outbox.push(Output::Application(event));
    }
}
