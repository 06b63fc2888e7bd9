//! ICMPv6 errors (RFC 4443 s2.4, s3): when a node sends one, and what it does with those that it receives.
//!
//! | what became of a packet | error | told to |
//! |---|---|---|
//! | its hop limit came to zero | time exceeded | the application |
//! | no route leads to its destination | destination unreachable, no route | CoAP, the application |
//! | nobody listens on its port | destination unreachable, port | CoAP, the application |
//! | its upper layer is not known here | parameter problem, next header | the application |

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Layer, Machine as _, expect_accepted};
use lowmesh_units::Instant;
use lowmesh_wire::icmpv6::{self, Icmpv6, Unreachable};
use lowmesh_wire::ipv6::{self, Address, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET};

use crate::event::{Output, Problem};
use crate::node::Node;
use crate::params::COAP_PORT;

/// Types of ICMPv6 messages below this one are errors: RFC 4443 s2.1.
pub(crate) const ERRORS_END: u8 = 128;
/// Octets between the checksum of an error and the invoking packet: RFC 4443 s3.
pub(crate) const UNUSED: usize = 4;
/// The type of a Redirect: RFC 4861 s4.5.
const REDIRECT: u8 = 137;

/// The error that says what became of a packet; most drops are not reported.
fn problem_of(layer: Layer, reason: DropReason, packet: &[u8]) -> Option<Problem> {
    match (layer, reason) {
        (Layer::Ipv6, DropReason::HopLimit) => Some(Problem::HopLimit),
        (Layer::Ipv6, DropReason::NoRoute) => Some(Problem::Unreachable(Unreachable::NoRoute)),
        (Layer::Udp, DropReason::NoListener) => Some(Problem::Unreachable(Unreachable::Port)),
        (Layer::Ipv6, DropReason::NoListener) => {
            // RFC 4443 s3.4: code 1, an unrecognised next header; the pointer is its offset.
            Some(Problem::Parameter { code: 1, pointer: upper_layer_field(packet)? })
        }
        _ => None,
    }
}

/// The offset of the Next Header field that names the upper layer.
fn upper_layer_field(packet: &[u8]) -> Option<u32> {
    let upper = ipv6::upper_layer(packet).ok()?;
    let (mut field, mut header) = (NEXT_HEADER_OFFSET, HEADER_OCTETS);
    while header < upper.offset {
        field = header;
        header += (usize::from(*packet.get(header + 1)?) + 1) * 8;
    }
    u32::try_from(field).ok()
}

/// RFC 4443 s2.4 (e): no error about an error or a Redirect, nor about a packet to a group or from an unspecified or
/// multicast source.
fn may_be_told(header: &Header, packet: &[u8]) -> bool {
    let is_error = ipv6::upper_layer(packet).is_ok_and(|upper| {
        // What is too short to tell is taken for an error.
        upper.next_header == icmpv6::NEXT_HEADER
            && packet.get(upper.offset).is_none_or(|kind| *kind < ERRORS_END || *kind == REDIRECT)
    });
    let from_one = !header.source.is_unspecified() && !header.source.is_multicast();
    !is_error && from_one && !header.destination.is_multicast()
}

impl Node {
    /// Sends an ICMPv6 error to the source of a packet, if RFC 4443 asks for one and the rate allows it.
    pub(crate) fn tell_source(
        &mut self,
        now: Instant,
        packet: &[u8],
        handle: Handle,
        (layer, reason): (Layer, DropReason),
    ) {
        let Some(problem) = problem_of(layer, reason, packet) else { return };
        let Ok(header) = Header::parse(packet) else { return };
        // RFC 4443 s2.4 (e.5): a frame to all, which has no name here, is answered by none of them.
        if handle == Handle::NONE || !may_be_told(&header, packet) {
            return;
        }
        if !self.error_rate.take(now, header.source) {
            self.counters.errors_withheld += 1;
            return;
        }
        // RFC 4443 s2.2: from the address that the packet was for, if it is one of this node's.
        let here = if self.ipv6.addresses.contains(&header.destination) {
            header.destination
        } else {
            self.ipv6.addresses.source_for(&header.source)
        };
        let invoking = packet.to_vec();
        let message = match problem {
            Problem::Unreachable(reason) => Icmpv6::DestinationUnreachable { reason, invoking },
            Problem::TooBig | Problem::Unknown { .. } => return,
            Problem::HopLimit => Icmpv6::TimeExceeded { code: 0, invoking },
            Problem::Reassembly => Icmpv6::TimeExceeded { code: 1, invoking },
            Problem::Parameter { code, pointer } => {
                Icmpv6::ParameterProblem { code, pointer, invoking }
            }
        };
        let mut payload = Vec::new();
        self.counters.errors_sent.note(problem);
        message.emit(&here.0, &header.source.0, &mut payload);
        self.send_control(now, here, header.source, &payload);
    }

    /// An error came about a packet that begins with `invoking`.
    pub(crate) fn on_error(
        &mut self,
        now: Instant,
        from: Address,
        problem: Problem,
        invoking: &[u8],
    ) {
        let Ok(header) = Header::parse(invoking) else { return };
        // Anybody can write an error; one about a packet that this node cannot have sent says nothing.
        let is_own = !header.source.is_multicast() && self.ipv6.addresses.contains(&header.source);
        if !is_own {
            return;
        }
        let to = header.destination;
        self.counters.errors_received.note(problem);
        self.outbox.push(Output::Trouble { from, to, problem });
        if let (Problem::Unreachable(_), Some((COAP_PORT, port))) = (problem, ports(invoking)) {
            let input = lowmesh_coap::Input::Unreachable { peer: (to, port) };
            expect_accepted(self.coap.handle(now, input));
        }
    }
}

/// The ports of the UDP datagram in the beginning of a packet.
fn ports(packet: &[u8]) -> Option<(u16, u16)> {
    let upper = ipv6::upper_layer(packet).ok()?;
    let octets = packet.get(upper.offset..upper.offset + 4)?;
    (upper.next_header == ipv6::next_header::UDP).then(|| {
        let port = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        (port(0), port(2))
    })
}
