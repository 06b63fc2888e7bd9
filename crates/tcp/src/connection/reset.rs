//! The answer to a segment that belongs to no connection (RFC 9293 s3.10.7.1).

use alloc::vec::Vec;

use lowmesh_wire::tcp::{Control, Header};

use super::Transmit;

/// The reset that answers a segment of no connection; `None` if the segment is a reset itself.
pub fn reset_for(header: &Header, payload: &[u8]) -> Option<Transmit> {
    if header.control.rst {
        return None;
    }
    let octets =
        payload.len() as u32 + u32::from(header.control.syn) + u32::from(header.control.fin);
    let mut reset = Header {
        source_port: header.destination_port,
        destination_port: header.source_port,
        control: Control { rst: true, ..Control::default() },
        ..Header::default()
    };
    if header.control.ack {
        reset.sequence = header.acknowledgment;
    } else {
        reset.control.ack = true;
        reset.acknowledgment = header.sequence.wrapping_add(octets);
    }
    Some(Transmit { header: reset, payload: Vec::new() })
}
