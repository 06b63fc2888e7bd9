//! ICMPv6 errors (RFC 4443 s2.4, s3): when a node sends one, and what those of others mean to it.
//!
//! | what became of a packet | error |
//! |---|---|
//! | its hop limit came to zero | time exceeded |
//! | no route leads to its destination | destination unreachable, no route |
//! | nobody listens on its port | destination unreachable, port |
//! | its upper layer is not known here | parameter problem, next header |
//! | an option is not known here and asks for it | parameter problem, option |
//! | its other fragments did not come in time | time exceeded, reassembly |
//! | it is larger than the mesh carries | packet too big |

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Layer};
use lowmesh_shares::SharedRate;
use lowmesh_units::Instant;
use lowmesh_wire::icmpv6::{self, Icmpv6, Unreachable};
use lowmesh_wire::ipv6::{Address, next_header};

use crate::event::{ErrorCounters, Output, Problem};
use crate::params::{ERROR_SOURCES, MTU};
use crate::{Addresses, Headers};

/// Types of ICMPv6 messages below this one are errors: RFC 4443 s2.1.
const ERRORS_END: u8 = 128;
/// Octets between the checksum of an error and the invoking packet: RFC 4443 s3.
const UNUSED: usize = 4;
/// The type of a Redirect: RFC 4861 s4.5.
const REDIRECT: u8 = 137;

/// An ICMPv6 message with the addresses of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub source: Address,
    pub destination: Address,
    pub body: Icmpv6,
}

/// The errors of a node.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    rate: SharedRate<Address>,
    pub counters: ErrorCounters,
}

impl Errors {
    /// So many errors a second; 0 lets none leave.
    pub fn new(per_second: u32) -> Self {
        Self {
            rate: SharedRate::new(per_second, ERROR_SOURCES),
            counters: ErrorCounters::default(),
        }
    }

    /// The error to the source of a packet that ended, if RFC 4443 asks for one and the rate allows it.
    pub fn about(
        &mut self,
        now: Instant,
        addresses: &Addresses,
        packet: &[u8],
        handle: Handle,
        end: (Layer, DropReason),
    ) -> Option<Message> {
        // RFC 4443 s2.4 (e.5): a frame to all, which has no name here, is answered by none of them.
        if handle == Handle::NONE {
            return None;
        }
        let problem = problem(end, &Headers::of_beginning(packet).ok()?)?;
        self.tell(now, addresses, packet, problem)
    }

    /// The error to the source of a packet, or of its beginning, if RFC 4443 allows one and the rate does.
    pub fn tell(
        &mut self,
        now: Instant,
        addresses: &Addresses,
        packet: &[u8],
        problem: Problem,
    ) -> Option<Message> {
        let headers = Headers::of_beginning(packet).ok()?;
        let source = headers.ip.source;
        if !may_be_told(packet, &headers) {
            return None;
        }
        if !self.rate.take(now, source) {
            self.counters.withheld += 1;
            return None;
        }
        let body = message(problem, packet.to_vec())?;
        self.counters.sent.note(problem);
        // RFC 4443 s2.2: from the address that the packet was for, if it is one of this node's.
        let was_for = headers.ip.destination;
        let here =
            if addresses.contains(&was_for) { was_for } else { addresses.source_for(&source) };
        Some(Message { source: here, destination: source, body })
    }
}

/// What an error says of what became of a packet; most ends of packets are not reported.
fn problem(end: (Layer, DropReason), headers: &Headers) -> Option<Problem> {
    match end {
        (Layer::Ipv6, DropReason::HopLimit) => Some(Problem::HopLimit),
        (Layer::Ipv6, DropReason::NoRoute) => Some(Problem::Unreachable(Unreachable::NoRoute)),
        (Layer::Udp, DropReason::NoListener) => Some(Problem::Unreachable(Unreachable::Port)),
        (Layer::Ipv6, DropReason::NoListener) if headers.upper_layer().is_ok() => {
            // RFC 4443 s3.4: code 1, an unrecognised next header; the pointer is its offset.
            let pointer = u32::try_from(headers.upper_layer_field()).ok()?;
            Some(Problem::Parameter { code: 1, pointer })
        }
        (Layer::Ipv6, DropReason::UnknownOption) => {
            // RFC 4443 s3.4: code 2, an unrecognised option; the pointer is the offset of its type.
            let option = headers.unknown_option().filter(|option| option.is_reported)?;
            Some(Problem::Parameter { code: 2, pointer: u32::try_from(option.offset).ok()? })
        }
        (Layer::Ipv6, DropReason::TooLarge) => Some(Problem::TooBig),
        (Layer::Ipv6, DropReason::ReassemblyTimeout) => Some(Problem::Reassembly),
        _ => None,
    }
}

/// The error that this node sends about a problem, if it does.
fn message(problem: Problem, invoking: Vec<u8>) -> Option<Icmpv6> {
    match problem {
        Problem::Unreachable(reason) => Some(Icmpv6::DestinationUnreachable { reason, invoking }),
        Problem::HopLimit => Some(Icmpv6::TimeExceeded { code: 0, invoking }),
        Problem::Reassembly => Some(Icmpv6::TimeExceeded { code: 1, invoking }),
        Problem::Parameter { code, pointer } => {
            Some(Icmpv6::ParameterProblem { code, pointer, invoking })
        }
        Problem::TooBig => Some(Icmpv6::PacketTooBig { mtu: MTU, invoking }),
        Problem::Unknown { .. } => None,
    }
}

/// RFC 4443 s2.4 (e): no error about an error or a Redirect, nor about a packet to a group or from an unspecified or
/// multicast source.
fn may_be_told(packet: &[u8], headers: &Headers) -> bool {
    let is_error = headers.upper_layer().is_ok_and(|upper| {
        // What is too short to tell is taken for an error.
        upper.next_header == icmpv6::NEXT_HEADER
            && packet.get(upper.offset).is_none_or(|kind| *kind < ERRORS_END || *kind == REDIRECT)
    });
    let source = headers.ip.source;
    let from_one = !source.is_unspecified() && !source.is_multicast();
    !is_error && from_one && !headers.ip.destination.is_multicast()
}

/// What an error means that came about a packet of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The packet was made here.
    Own(Output),
    /// It encapsulated a packet of another node, which begins so.
    Carried(Problem, Vec<u8>),
}

/// What an error that came means to this node; `None` for any other message, and for an error about a packet of another.
pub(crate) fn trouble(addresses: &Addresses, from: Address, message: Icmpv6) -> Option<Trouble> {
    let (problem, invoking) = problem_of(message)?;
    let headers = Headers::of_beginning(&invoking).ok()?;
    // Anybody can write an error; one about a packet that this node cannot have sent says nothing.
    let source = headers.ip.source;
    if source.is_multicast() || !addresses.contains(&source) {
        return None;
    }
    if let Ok(upper) = headers.upper_layer()
        && upper.next_header == next_header::IPV6
    {
        return Some(Trouble::Carried(problem, invoking.get(upper.offset..)?.to_vec()));
    }
    let ports = ports(&invoking, &headers);
    Some(Trouble::Own(Output::Trouble { from, to: headers.ip.destination, problem, ports }))
}

/// What an error says, with the start of the packet that it is about; `None` for any other message.
fn problem_of(message: Icmpv6) -> Option<(Problem, Vec<u8>)> {
    Some(match message {
        Icmpv6::DestinationUnreachable { reason, invoking } => {
            (Problem::Unreachable(reason), invoking)
        }
        Icmpv6::TimeExceeded { code: 0, invoking } => (Problem::HopLimit, invoking),
        Icmpv6::TimeExceeded { invoking, .. } => (Problem::Reassembly, invoking),
        Icmpv6::PacketTooBig { invoking, .. } => (Problem::TooBig, invoking),
        Icmpv6::ParameterProblem { code, pointer, invoking } => {
            (Problem::Parameter { code, pointer }, invoking)
        }
        // RFC 4443 s2.4 (a): an error of unknown type is passed on; (b): any other message is not.
        Icmpv6::Other { kind, code, body } if kind < ERRORS_END => {
            (Problem::Unknown { kind, code }, body.get(UNUSED..).unwrap_or(&[]).to_vec())
        }
        _ => return None,
    })
}

/// The ports of the UDP datagram in the beginning of a packet.
fn ports(packet: &[u8], headers: &Headers) -> Option<(u16, u16)> {
    let upper = headers.upper_layer().ok().filter(|upper| upper.next_header == next_header::UDP)?;
    let octets = packet.get(upper.offset..upper.offset + 4)?;
    let port = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    Some((port(0), port(2)))
}
