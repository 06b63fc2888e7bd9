//! The packets of the tests: UDP from one node of the mesh to another.

use alloc::vec::Vec;

use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::{Address, Header, next_header};
use lowmesh_wire::udp::Datagram;

/// The prefix of the mesh, which is context 0.
pub const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];

/// A packet with so many octets of data, each of them its own.
pub fn udp(from: Eui64, to: Eui64, data: usize) -> Vec<u8> {
    let [source, destination] = [from, to].map(|node| Address::global(PREFIX, node));
    let payload: Vec<u8> = (0..data).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut bytes = Vec::new();
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 8 + data as u16,
        next_header: next_header::UDP,
        hop_limit: 64,
        source,
        destination,
    };
    header.emit(&mut bytes);
    let datagram = Datagram { source_port: 0xf0b1, destination_port: 0xf0b2, payload: &payload };
    datagram.emit(&source, &destination, &mut bytes);
    bytes
}
