//! The CoAP host of a node and the applications above it, as one part: datagrams, requests and deadlines go in,
//! datagrams and facts for the record come out.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_coap::exchange::GroupInput;
use lowmesh_coap::{
    IncomingId, Input as CoapInput, Output as CoapOutput, Purpose, RequestTemplate,
    ResponseTemplate,
};
use lowmesh_ipv6::event::Datagram;
use lowmesh_machine::{
    DropReason, Handle, Machine as _, Outbox, Rejected, debug_assert_accepted, earliest,
};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Message;
use lowmesh_wire::ipv6::Address;

use crate::application::{
    Action, Application, ApplicationId, Exchange, Input, RequestId, Snapshot,
};
use crate::coap_host::{CoapHost, Order};
use crate::config::ConfigError;
use crate::event::{self, ApplicationEvent, Class, Peer, Transaction};
use crate::installed::{Answer, Applications, Owner};
use crate::params::COAP_PORT;

/// What the hosting part has to say.
#[derive(Debug)]
pub(crate) enum Output {
    /// Send a UDP datagram.
    Datagram { source_port: u16, to: Peer, payload: Vec<u8>, class: Class },
    /// Do this with a connection.
    Connection(Order),
    /// The node joins a group for an application.
    Join { application: ApplicationId, group: Address },
    /// The node leaves a group.
    Leave { group: Address },
    /// The driver of the node reads this.
    Driver(event::Output),
}

/// The CoAP host and the applications of a node.
#[derive(Debug)]
pub(crate) struct Hosting {
    coap: CoapHost,
    applications: Applications,
    outbox: Outbox<Output>,
}

impl Hosting {
    /// A host without applications.
    pub(crate) fn new(coap: CoapHost) -> Self {
        Self { coap, applications: Applications::default(), outbox: Outbox::new() }
    }
    /// Puts one more application above the host.
    pub(crate) fn install(
        &mut self,
        application: Box<dyn Application>,
    ) -> Result<ApplicationId, ConfigError> {
        self.applications.install(application)
    }
    /// The applications from number `first` on.
    pub(crate) fn into_applications(self, first: usize) -> Vec<Box<dyn Application>> {
        self.applications.into_machines(first)
    }
    /// What the applications show of themselves, in the order in which they were installed.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.applications.snapshots()
    }

    /// The node was switched on.
    pub(crate) fn start(&mut self) {
        self.applications.start();
    }
    /// Readings of a node, or of all nodes, have another period.
    pub(crate) fn pace(&mut self, node: Option<Address>, period: Duration) {
        self.applications.tell_all(|| Input::Paced { node, period });
    }
    /// The driver makes a request.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        peer: Peer,
        message: RequestTemplate,
        name: Handle,
    ) -> Result<(), Rejected> {
        let handle = self.applications.open(name);
        let input = CoapInput::Request { peer, message, handle };
        self.coap.handle(now, input).inspect_err(|_| self.applications.close(handle))
    }
    /// The driver or an application answers a request.
    pub(crate) fn respond(
        &mut self,
        now: Instant,
        exchange: IncomingId,
        response: ResponseTemplate,
    ) -> Result<(), Rejected> {
        let handle = Handle::NONE;
        self.coap.handle(now, CoapInput::Respond { exchange, response, handle })
    }
    /// A UDP datagram came for a port of this node. If it belongs to neither CoAP nor an application, the driver reads it.
    pub(crate) fn on_datagram(
        &mut self,
        now: Instant,
        datagram: &Datagram,
    ) -> Option<event::Output> {
        let (from, bytes) = (datagram.from(), datagram.payload());
        let port = datagram.flow.destination_port;
        if port == COAP_PORT {
            let input = if datagram.flow.destination.is_multicast() {
                CoapInput::Group(GroupInput::Datagram { from, bytes })
            } else {
                CoapInput::Datagram { from, bytes }
            };
            debug_assert_accepted(self.coap.handle(now, input));
            return None;
        }
        let is_claimed = self.applications.on_datagram(port, from, bytes);
        (!is_claimed).then(|| event::Output::Datagram { from, payload: bytes.to_vec() })
    }
    /// A connection to a peer is there.
    pub(crate) fn on_connected(&mut self, now: Instant, peer: Peer) {
        self.coap.on_connected(now, peer);
    }
    /// Octets have come on a connection.
    pub(crate) fn on_octets(&mut self, now: Instant, from: Peer, octets: &[u8]) {
        self.coap.on_octets(now, from, octets);
    }
    /// A connection is over, or there is none.
    pub(crate) fn on_gone(&mut self, now: Instant, peer: Peer, reason: DropReason) {
        self.coap.on_gone(now, peer, reason);
    }
    /// The node did not join a group for an application.
    pub(crate) fn on_not_joined(
        &mut self,
        application: ApplicationId,
        group: Address,
        refusal: Rejected,
    ) {
        self.applications.tell(application, Input::NotJoined { group, refusal });
    }
    /// An ICMPv6 error says that a CoAP endpoint cannot be reached.
    pub(crate) fn on_unreachable(&mut self, now: Instant, peer: Peer) {
        debug_assert_accepted(self.coap.handle(now, CoapInput::Unreachable { peer }));
    }
    /// Handles the deadlines that have come.
    pub(crate) fn deadline(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.coap.next_deadline().is_some_and(|due| due <= now) {
            self.coap.handle(now, CoapInput::Deadline)?;
        }
        self.applications.deadline(now);
        Ok(())
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        earliest(self.coap.next_deadline(), self.applications.next_deadline())
    }
    /// Takes the next output.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    /// Whether the applications wait for the node to join.
    pub(crate) fn awaits_network(&self) -> bool {
        self.applications.awaits_network()
    }

    /// Handles one output of the CoAP host; false if it has none.
    pub(crate) fn step_coap(&mut self, now: Instant) -> bool {
        let output = self.coap.poll_output();
        let order = self.coap.next_order();
        let some = output.is_some() || order.is_some();
        if let Some(output) = output {
            self.on_coap(now, output);
        }
        self.outbox.extend(order.map(Output::Connection));
        some
    }

    fn on_coap(&mut self, now: Instant, output: CoapOutput<Peer>) {
        let applications = &mut self.applications;
        let note = match output {
            CoapOutput::Send { to, bytes, handle, copy, purpose } => {
                let resends = purpose == Purpose::Request && copy > 0;
                let note = resends.then(|| applications.on_resent(handle)).flatten();
                let class = match purpose {
                    Purpose::Request => Class::Request,
                    Purpose::Response | Purpose::Empty => Class::Response,
                };
                self.outbox.extend(note.map(Output::Driver));
                let source_port = COAP_PORT;
                self.outbox.push(Output::Datagram { source_port, to, payload: bytes, class });
                return;
            }
            CoapOutput::Request { exchange, from, message, multicast } => {
                self.on_request(exchange, from, message, multicast)
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
            // An empty acknowledgement says that the response comes later, which then ends the transaction; a state that is
            // missed comes afresh; what came to nothing is counted in the endpoint. A node has no pings of CoAP, and the ends
            // of connections are orders.
            CoapOutput::Acknowledged { .. }
            | CoapOutput::Discarded { .. }
            | CoapOutput::Fault { .. }
            | CoapOutput::Missed { .. }
            | CoapOutput::Refused { .. }
            | CoapOutput::Pong { .. }
            | CoapOutput::SessionOver { .. }
            | CoapOutput::Close { .. } => None,
        };
        self.outbox.extend(note.map(Output::Driver));
    }

    /// Passes a request to the application that claims its path; the driver reads what none claims.
    fn on_request(
        &mut self,
        exchange: IncomingId,
        from: Peer,
        message: Message,
        multicast: bool,
    ) -> Option<event::Output> {
        let Some(application) = self.applications.of_path(&message.options) else {
            return Some(event::Output::Request { exchange, from, message, multicast });
        };
        let exchange = Exchange(exchange);
        let input = Input::Request { exchange, from, message, multicast };
        self.applications.tell(application, input);
        None
    }

    /// Passes the next input to an application; false if none waits. `is_joined` is about the node, whose global address
    /// is `address`.
    pub(crate) fn step_application(
        &mut self,
        now: Instant,
        address: Address,
        is_joined: impl FnOnce() -> bool,
    ) -> bool {
        if self.applications.awaits_network() && is_joined() {
            self.applications.join();
        }
        let Some(application) = self.applications.call_next(now, address) else { return false };
        while let Some(action) = self.applications.next_action() {
            self.act(now, application, action);
        }
        true
    }

    fn act(&mut self, now: Instant, application: ApplicationId, action: Action) {
        match action {
            Action::Request { request, peer, message } => {
                let handle = Handle(request.number);
                self.report(ApplicationEvent::Issued(request));
                self.issue(now, request, CoapInput::Request { peer, message, handle });
            }
            Action::GroupRequest { request, group, message, wait } => {
                let handle = Handle(request.number);
                let input = GroupInput::Request { group, message, wait, handle };
                self.report(ApplicationEvent::Asked(request));
                self.issue(now, request, CoapInput::Group(input));
            }
            Action::Cancel(request) => {
                let handle = Handle(request.number);
                self.applications.close(handle);
                // A host takes every cancellation.
                debug_assert_accepted(self.coap.handle(now, CoapInput::Cancel { handle }));
            }
            Action::Deregister(request) => {
                let handle = Handle(request.number);
                if self.coap.handle(now, CoapInput::Deregister { handle }).is_err() {
                    self.applications.on_over(handle);
                }
            }
            // The client of a request that has expired meanwhile waits no longer.
            Action::Respond { exchange: Exchange(exchange), response } => {
                let _expired = self.respond(now, exchange, response);
            }
            Action::Decline(Exchange(exchange)) => {
                let _expired = self.coap.handle(now, CoapInput::Decline { exchange });
            }
            Action::Changed(path) => self.coap.changed(&path, now),
            Action::Datagram { source_port, peer: to, payload } => {
                let class = Class::Request;
                self.outbox.push(Output::Datagram { source_port, to, payload, class });
            }
            Action::Join(group) => self.outbox.push(Output::Join { application, group }),
            Action::Leave(group) => self.outbox.push(Output::Leave { group }),
            Action::Report(report) => self.report(ApplicationEvent::Report(report)),
        }
    }

    /// Gives a request of an application to the host.
    fn issue(&mut self, now: Instant, request: RequestId, input: CoapInput<'_, Peer>) {
        self.applications.insert(request.number, Owner::Application(request.application));
        if let Err(refusal) = self.coap.handle(now, input) {
            self.on_refusal(request, refusal);
        }
    }

    /// The host has not taken a request: to the record it is one that found no room.
    fn on_refusal(&mut self, request: RequestId, refusal: Rejected) {
        let handle = Handle(request.number);
        self.applications.close(handle);
        self.applications.tell(request.application, Input::Refused { request, refusal });
        let failed = Transaction::Failed(handle, DropReason::QueueFull);
        self.report(ApplicationEvent::Transaction(request, failed));
    }

    fn report(&mut self, event: ApplicationEvent) {
        self.outbox.push(Output::Driver(event::Output::Application(event)));
    }
}
