//! UDP at a node: whether a packet's datagram is whole, and who listens on its port (RFC 768).

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_wire::Problem;
use lowmesh_wire::ipv6::{Header, next_header, upper_layer};
use lowmesh_wire::udp::Datagram;

use crate::packet::Flow;
use crate::params::PORTS;

/// The ports on which somebody listens, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ports(Vec<u16>);

impl Ports {
    /// Nobody listens.
    pub const fn new() -> Self {
        Self(Vec::new())
    }
    /// Somebody listens on `port` from now on.
    pub fn open(&mut self, port: u16) -> Result<(), Rejected> {
        match self.0.binary_search(&port) {
            Ok(_) => Err(Rejected { what: "port", why: "somebody listens on it already" }),
            Err(_) if self.0.len() == PORTS => {
                Err(Rejected { what: "port", why: "as many are open as can be" })
            }
            Err(at) => {
                self.0.insert(at, port);
                Ok(())
            }
        }
    }
    /// Nobody listens on `port` any more.
    pub fn close(&mut self, port: u16) {
        if let Ok(at) = self.0.binary_search(&port) {
            self.0.remove(at);
        }
    }
    /// The datagram of a packet that was delivered here, if somebody listens on its port.
    pub fn accept<'a>(&self, packet: &'a [u8]) -> Result<Received<'a>, DropReason> {
        let received = demultiplex(packet)?;
        match self.0.binary_search(&received.flow.destination_port) {
            Ok(_) => Ok(received),
            Err(_) => Err(DropReason::NoListener),
        }
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
    let header = Header::parse_packet(packet).map_err(|_| DropReason::Malformed)?;
    let upper = upper_layer(packet).map_err(|_| DropReason::Malformed)?;
    if upper.next_header != next_header::UDP {
        return Err(DropReason::NoListener);
    }
    let Header { source, destination, .. } = header;
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
    fn a_datagram_reaches_its_listener_through_extension_headers() {
        let mut ports = Ports::new();
        ports.open(5683).expect("room");
        let packet = udp(&FLOW, 64, b"get", |options| {
            options.extend_from_slice(&[0x63, 4, 0, 0, 1, 0]);
        });
        assert_eq!(ports.accept(&packet), Ok(Received { flow: FLOW, payload: b"get" }));
        ports.close(5683);
        assert_eq!(ports.accept(&packet), Err(DropReason::NoListener));
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

    #[test]
    fn ports_are_bounded_and_have_one_listener_each() {
        let mut ports = Ports::new();
        for port in 0..PORTS as u16 {
            ports.open(port).expect("room");
        }
        assert!(ports.open(0).is_err());
        assert!(ports.open(9999).is_err());
        ports.close(0);
        ports.open(9999).expect("room again");
    }
}
