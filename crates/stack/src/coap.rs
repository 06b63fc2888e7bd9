//! The boundary of CoAP and of UDP: datagrams and requests go in, datagrams and what became of requests come out.

use lowmesh_coap::exchange::GroupInput;
use lowmesh_coap::{IncomingId, Output as CoapOutput, Purpose, RequestTemplate};
use lowmesh_ipv6::Event;
use lowmesh_ipv6::event::Datagram;
use lowmesh_machine::{Handle, Machine as _, Rejected, debug_assert_accepted};
use lowmesh_units::Instant;
use lowmesh_wire::coap::Message;

use crate::application::{Exchange, Input};
use crate::event::{Class, Output, Peer};
use crate::installed::Answer;
use crate::node::Node;
use crate::params::COAP_PORT;

impl Node {
    /// Handles an output of the CoAP host.
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

    fn on_request(&mut self, exchange: IncomingId, from: Peer, message: Message, multicast: bool) {
        match self.applications.of_path(&message.options) {
            Some(application) => {
                let exchange = Exchange(exchange);
                let input = Input::Request { exchange, from, message, multicast };
                self.applications.tell(application, input);
            }
            None => self.outbox.push(Output::Request { exchange, from, message, multicast }),
        }
    }

    /// The driver asks.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        peer: Peer,
        message: RequestTemplate,
        name: Handle,
    ) -> Result<(), Rejected> {
        let handle = self.applications.open(name);
        let input = lowmesh_coap::Input::Request { peer, message, handle };
        self.coap.handle(now, input).inspect_err(|_| self.applications.close(handle))
    }

    /// A UDP datagram came for a port of this node.
    pub(crate) fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let (from, bytes) = (datagram.from(), datagram.payload());
        let port = datagram.flow.destination_port;
        if port == COAP_PORT {
            let input = if datagram.flow.destination.is_multicast() {
                lowmesh_coap::Input::Group(GroupInput::Datagram { from, bytes })
            } else {
                lowmesh_coap::Input::Datagram { from, bytes }
            };
            debug_assert_accepted(self.coap.handle(now, input));
        } else if !self.applications.on_datagram(port, from, bytes) {
            self.outbox.push(Output::Datagram { from, payload: bytes.to_vec() });
        }
    }

    /// An ICMPv6 error says that a CoAP endpoint cannot be reached.
    pub(crate) fn on_unreachable(&mut self, now: Instant, peer: Peer) {
        let input = lowmesh_coap::Input::Unreachable { peer };
        debug_assert_accepted(self.coap.handle(now, input));
    }

    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        source_port: u16,
        to: Peer,
        payload: &[u8],
        class: Class,
    ) {
        self.tell_ipv6(now, Event::Datagram { source_port, to, payload, class });
    }
}
