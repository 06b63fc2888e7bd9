//! Making packets, and putting RPL's hop-by-hop option in and out of one (RFC 8200 s4.3, RFC 6553).

use alloc::vec::Vec;

use lowmesh_wire::ipv6::{
    Address, Extensions, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET, PAYLOAD_LENGTH_OFFSET,
    next_header, pad_to_eight,
};
use lowmesh_wire::udp::Datagram;

use crate::Headers;
use crate::params::RPL_OPTION;

/// Who talks to whom over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Address of the sender.
    pub source: Address,
    /// Address of the receiver.
    pub destination: Address,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

/// A packet with `payload` as its upper layer of type `next_header`.
///
/// `options` writes hop-by-hop options, type and length included; when it writes none there is no such header.
/// A payload is at most 65,000 octets.
pub fn plain(
    source: Address,
    destination: Address,
    next_header: u8,
    hop_limit: u8,
    payload: &[u8],
    options: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    build(source, destination, next_header, hop_limit, payload.len(), options, |packet| {
        packet.extend_from_slice(payload);
    })
}

/// A UDP packet; the rest as in [`plain`].
///
/// ```
/// use lowmesh_ipv6::packet::{Flow, udp};
/// use lowmesh_ipv6::udp::demultiplex;
/// use lowmesh_wire::ipv6::Address;
///
/// let (source, destination) = (Address([0xfd; 16]), Address([0xfe; 16]));
/// let flow = Flow { source, destination, source_port: 5683, destination_port: 5683 };
/// let packet = udp(&flow, 64, b"ping", |_| ());
/// assert_eq!(demultiplex(&packet).unwrap().flow, flow);
/// ```
pub fn udp(
    flow: &Flow,
    hop_limit: u8,
    payload: &[u8],
    options: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let &Flow { source, destination, source_port, destination_port } = flow;
    let octets = payload.len() + lowmesh_wire::udp::HEADER_OCTETS;
    build(source, destination, next_header::UDP, hop_limit, octets, options, |packet| {
        Datagram { source_port, destination_port, payload }.emit(&source, &destination, packet);
    })
}

fn build(
    source: Address,
    destination: Address,
    upper: u8,
    hop_limit: u8,
    upper_octets: usize,
    options: impl FnOnce(&mut Vec<u8>),
    payload: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    // Room for RPL's option as well.
    let mut packet = Vec::with_capacity(HEADER_OCTETS + 8 + upper_octets);
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: upper,
        hop_limit,
        source,
        destination,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(&[upper, 0]);
    options(&mut packet);
    if packet.len() == HEADER_OCTETS + 2 {
        packet.truncate(HEADER_OCTETS);
    } else {
        pad_to_eight(&mut packet, HEADER_OCTETS);
        packet[HEADER_OCTETS + 1] = ((packet.len() - HEADER_OCTETS) / 8 - 1) as u8;
        packet[NEXT_HEADER_OFFSET] = next_header::HOP_BY_HOP;
    }
    payload(&mut packet);
    renew_length(&mut packet);
    packet
}

/// Takes the hop-by-hop header with RPL's option out of a packet; one that holds more than that and padding stays.
///
/// Only an option of type 0x63, which hosts elsewhere may not skip, and only where a packet leaves the mesh. A node that
/// obeys RFC 6553 s5 or RFC 9008 sends no such packet, but one of Contiki-NG does, and its root takes the option out as well
/// (RPL Lite, `rpl_ext_header_remove`). RFC 9008 s7.2.1: an option of type 0x23 leaves with its packet.
pub fn remove_rpl_option(packet: &mut Vec<u8>) {
    remove_option(packet, |kind| kind == RPL_OPTION);
}

/// Removes RPL's option of either type, as [`remove_rpl_option`] does: a leaf knows none (RFC 9010 s4.1).
pub fn remove_any_rpl_option(packet: &mut Vec<u8>) {
    remove_option(packet, |_| true);
}

fn remove_option(packet: &mut Vec<u8>, is_removed: impl Fn(u8) -> bool) {
    let found = Headers::of_beginning(packet).ok().and_then(|headers| headers.rpl_option());
    let Some(option) = found.filter(|option| is_removed(packet[option.start])) else { return };
    let Some(Ok(first)) = Extensions::new(packet).ok().and_then(|mut chain| chain.next()) else {
        return;
    };
    let (next, length) = (packet[HEADER_OCTETS], first.bytes.len());
    // Behind the option there is room for padding at most: less than eight octets.
    let is_alone = option.start == HEADER_OCTETS + 2 && length - 2 - option.len() < 8;
    if !is_alone {
        return;
    }
    packet[NEXT_HEADER_OFFSET] = next;
    packet.drain(HEADER_OCTETS..HEADER_OCTETS + length);
    renew_length(packet);
}

/// Gives a packet a hop-by-hop header with what `options` writes, type and length included. A packet that has such a
/// header, or no options to take, stays as it is.
pub fn insert_options(packet: &mut Vec<u8>, options: impl FnOnce(&mut Vec<u8>)) {
    if packet.len() < HEADER_OCTETS || packet[NEXT_HEADER_OFFSET] == next_header::HOP_BY_HOP {
        return;
    }
    let mut header = Vec::from([packet[NEXT_HEADER_OFFSET], 0]);
    options(&mut header);
    if header.len() == 2 {
        return;
    }
    pad_to_eight(&mut header, 0);
    header[1] = (header.len() / 8 - 1) as u8;
    packet[NEXT_HEADER_OFFSET] = next_header::HOP_BY_HOP;
    packet.splice(HEADER_OCTETS..HEADER_OCTETS, header);
    renew_length(packet);
}

fn renew_length(packet: &mut [u8]) {
    let length = (packet.len() - HEADER_OCTETS) as u16;
    packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::RPL_OPTION_RFC9008;
    use lowmesh_wire::ipv6::upper_layer;

    const FROM: Address = Address([0xfd; 16]);
    const TO: Address = Address([0xfc; 16]);

    #[test]
    fn the_options_of_the_caller_stand_first_and_are_padded() {
        let option = [RPL_OPTION, 5, 0, 0, 1, 0, 9];
        let packet = plain(FROM, TO, next_header::ICMPV6, 64, &[155, 1], |options| {
            options.extend_from_slice(&option);
        });
        assert!(Header::parse_packet(&packet).is_ok());
        let upper = upper_layer(&packet).expect("own packet");
        assert_eq!((upper.next_header, upper.offset), (next_header::ICMPV6, 56));
        let headers = Headers::of_packet(&packet).expect("own packet");
        let range = headers.rpl_option().expect("the option");
        assert_eq!(packet[range], option);
    }

    #[test]
    fn without_options_there_is_no_header_for_them() {
        let packet = plain(FROM, TO, next_header::ICMPV6, 64, &[155, 1], |_| ());
        assert_eq!(packet.len(), 42);
        assert_eq!(packet[NEXT_HEADER_OFFSET], next_header::ICMPV6);
    }

    #[test]
    fn an_option_that_others_may_not_skip_is_taken_out_and_put_in_again_and_others_stay() {
        let option = [RPL_OPTION, 4, 0, 0, 1, 0];
        let with = udp_packet(&option);
        let mut packet = with.clone();
        remove_rpl_option(&mut packet);
        assert_eq!(packet, udp_packet(&[]));
        assert!(Header::parse_packet(&packet).is_ok());
        remove_rpl_option(&mut packet);
        assert_eq!(packet, udp_packet(&[]), "there is none to be taken out");
        insert_options(&mut packet, |out| out.extend_from_slice(&option));
        assert_eq!(packet, with);
        let other = udp_packet(&[0x1e, 8, 1, 2, 3, 4, 5, 6, 7, 8, RPL_OPTION, 4, 0, 0, 1, 0]);
        let mut packet = other.clone();
        remove_rpl_option(&mut packet);
        insert_options(&mut packet, |out| out.extend_from_slice(&option));
        assert_eq!(packet, other);
        let skippable = udp_packet(&[RPL_OPTION_RFC9008, 4, 0, 0, 1, 0]);
        let mut packet = skippable.clone();
        remove_rpl_option(&mut packet);
        assert_eq!(packet, skippable, "others skip it");
    }

    fn udp_packet(options: &[u8]) -> Vec<u8> {
        let flow = Flow { source: FROM, destination: TO, source_port: 1, destination_port: 2 };
        udp(&flow, 64, b"x", |out| out.extend_from_slice(options))
    }
}
