//! Connections without a host above them, with the inputs and outputs of a host, so that one conversation tries both.

use lowmesh_coap::exchange::{self, GroupInput, Name};
use lowmesh_coap::{Connections, IncomingId, Input, Output};
use lowmesh_machine::{Handle, Machine, Rejected};
use lowmesh_units::Instant;

/// An exchange engine that stands alone.
pub struct Alone(pub Connections<u16>);

impl Machine for Alone {
    type Input<'a> = Input<'a, u16>;
    type Output = Output<u16>;

    fn handle(&mut self, now: Instant, input: Input<'_, u16>) -> Result<(), Rejected> {
        self.0.handle(now, below(input)?)
    }
    fn poll_output(&mut self) -> Option<Output<u16>> {
        self.0.poll_output().map(above)
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

const NO_HOST: Rejected =
    Rejected::Unsupported { what: "input", why: "an engine without a host does not take it" };

fn below(input: Input<'_, u16>) -> Result<exchange::Input<'_, u16>, Rejected> {
    let engine = |exchange| match exchange {
        IncomingId::Peer(exchange) => Ok(exchange),
        IncomingId::State(_) => Err(NO_HOST),
    };
    Ok(match input {
        Input::Request { peer, message, handle } => {
            exchange::Input::Request { peer, message, handle: handle.into() }
        }
        Input::Ping { peer, handle } => exchange::Input::Ping { peer, handle: handle.into() },
        Input::Cancel { handle } => exchange::Input::Cancel { handle: handle.into() },
        Input::Deregister { .. } => return Err(NO_HOST),
        Input::Decline { exchange } => exchange::Input::Decline { exchange: engine(exchange)? },
        Input::Respond { exchange, response, handle } => {
            let (exchange, handle) = (engine(exchange)?, handle.into());
            exchange::Input::Respond { exchange, response, handle }
        }
        Input::Datagram { from, bytes } => exchange::Input::Datagram { from, bytes },
        Input::Group(GroupInput::Request { group, message, wait, handle }) => {
            let handle = handle.into();
            exchange::Input::Group(GroupInput::Request { group, message, wait, handle })
        }
        Input::Group(GroupInput::Repeat { handle, repetition, wait }) => {
            let handle = handle.into();
            exchange::Input::Group(GroupInput::Repeat { handle, repetition, wait })
        }
        Input::Group(GroupInput::Datagram { from, bytes }) => {
            exchange::Input::Group(GroupInput::Datagram { from, bytes })
        }
        Input::Connection(input) => exchange::Input::Connection(input),
        Input::Unreachable { peer } => exchange::Input::Unreachable { peer },
        Input::SessionEnded { peer, reopens } => exchange::Input::SessionEnded { peer, reopens },
        Input::Deadline => exchange::Input::Deadline,
    })
}

fn above(output: exchange::Output<u16>) -> Output<u16> {
    use exchange::Output as Below;
    match output {
        Below::Send { to, bytes, handle, copy, purpose } => {
            Output::Send { to, bytes, handle: of(handle), copy, purpose }
        }
        Below::Started { handle, rto, at } => Output::Started { handle: of(handle), rto, at },
        Below::Request { exchange, from, message, multicast } => {
            Output::Request { exchange: IncomingId::Peer(exchange), from, message, multicast }
        }
        Below::Response { handle, from, message, rtt, retransmissions } => {
            Output::Response { handle: of(handle), from, message, rtt, retransmissions }
        }
        Below::Notification { handle, from, message } => {
            Output::Notification { handle: of(handle), from, message }
        }
        Below::GroupResponse { handle, from, message, rtt } => {
            Output::GroupResponse { handle: of(handle), from, message, rtt }
        }
        Below::Pong { handle, rtt, retransmissions } => {
            Output::Pong { handle: of(handle), rtt, retransmissions }
        }
        Below::Over { handle } => Output::Over { handle: of(handle) },
        Below::Acknowledged { handle, rtt, retransmissions } => {
            Output::Acknowledged { handle: of(handle), rtt, retransmissions }
        }
        Below::Refused { from, message, code, why } => Output::Refused { from, message, code, why },
        Below::Fault { handle, fault } => Output::Fault { handle: of(handle), fault },
        Below::Missed { handle, from, reason, fault } => {
            Output::Missed { handle: of(handle), from, reason, fault }
        }
        Below::Failed { handle, reason } => Output::Failed { handle: of(handle), reason },
        Below::Close { peer } => Output::Close { peer },
        Below::SessionOver { peer } => Output::SessionOver { peer },
        Below::Discarded { from, cause } => Output::Discarded { from, cause },
    }
}

/// The application's name; no host has given one.
fn of(name: Name) -> Handle {
    match name {
        Name::Application(handle) => handle,
        Name::Host(number) | Name::Layer(number) => panic!("no host has sent message {number}"),
    }
}
