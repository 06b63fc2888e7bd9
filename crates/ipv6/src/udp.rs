//! UDP at a node: whether a packet's datagram is whole, and who listens on its port (RFC 768).

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_wire::Problem;
use lowmesh_wire::ipv6::{Header, next_header};
use lowmesh_wire::udp::Datagram;

use crate::Headers;
use crate::packet::Flow;

/// The ports on which somebody listens, in order. The node's own settings open them, so they are as many as there are
/// settings.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ports(Vec<u16>);

impl Ports {
    /// Somebody listens on `port` from now on.
    pub fn open(&mut self, port: u16) {
        if let Err(at) = self.0.binary_search(&port) {
            self.0.insert(at, port);
        }
    }
    /// Whether somebody listens on `port`.
    pub fn is_open(&self, port: u16) -> bool {
        self.0.binary_search(&port).is_ok()
    }
}

/// A datagram whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who sent it to whom.
    pub flow: Flow,
    /// The data.
    pub payload: &'a [u8],
}

/// The datagram of a packet that has come to its destination.
pub fn demultiplex(packet: &[u8]) -> Result<Received<'_>, DropReason> {
    receive(packet, &Headers::of_packet(packet)?)
}

/// The datagram of a packet with these headers.
pub(crate) fn receive<'a>(packet: &'a [u8], headers: &Headers) -> Result<Received<'a>, DropReason> {
    let upper = headers.upper_layer()?;
    if upper.next_header != next_header::UDP {
        return Err(DropReason::NoListener);
    }
    let Header { source, destination, .. } = headers.ip;
    let datagram = Datagram::parse(&source, &destination, &packet[upper.offset..]).map_err(
        |error| match error.problem {
            Problem::Checksum => DropReason::Checksum,
            _ => DropReason::Malformed,
        },
    )?;
    let Datagram { source_port, destination_port, payload } = datagram;
    Ok(Received { flow: Flow { source, destination, source_port, destination_port }, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{plain, udp};
    use lowmesh_wire::ipv6::Address;

    const FLOW: Flow = Flow {
        source: Address([0xfd; 16]),
        destination: Address([0xfc; 16]),
        source_port: 61616,
        destination_port: 5683,
    };

    #[test]
    fn a_datagram_is_read_through_extension_headers() {
        let packet = udp(&FLOW, 64, b"get", |options| {
            options.extend_from_slice(&[0x63, 4, 0, 0, 1, 0]);
        });
        assert_eq!(demultiplex(&packet), Ok(Received { flow: FLOW, payload: b"get" }));
    }

    #[test]
    fn damage_is_told_from_absence() {
        let mut packet = udp(&FLOW, 64, b"get", |_| ());
        let last = packet.len() - 1;
        packet[last] ^= 1;
        assert_eq!(demultiplex(&packet), Err(DropReason::Checksum));
        packet.pop();
        assert_eq!(demultiplex(&packet), Err(DropReason::Malformed));
        let other = plain(FLOW.source, FLOW.destination, next_header::ICMPV6, 64, &[1], |_| ());
        assert_eq!(demultiplex(&other), Err(DropReason::NoListener));
    }
}
