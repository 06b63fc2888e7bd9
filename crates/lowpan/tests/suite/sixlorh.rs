//! Packets with 6LoRH over several hops (RFC 8138, RFC 9035): whole, and in the fragments of every mode.

use lowmesh_lowpan::{Config, FragmentMode, Input, Network};
use lowmesh_machine::Machine as _;
use lowmesh_units::Duration;
use lowmesh_wire::ipv6::{
    Address, HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, NEXT_HEADER_OFFSET, next_header,
};
use lowmesh_wire::lowpan::fragment::FIRST_OCTETS;
use lowmesh_wire::lowpan::rfrag::RFRAG_OCTETS;
use lowmesh_wire::lowpan::{DISPATCH_PAGE_1, Dispatch, RoutingContext};
use lowmesh_wire::rpl::{HopByHopOption, SourceRoute};

use crate::line::{Faults, Line, PREFIX, eui, packet};

const MODES: [FragmentMode; 3] =
    [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered];
const NODES: usize = 5;

fn config(mode: FragmentMode) -> Config {
    Config { mode, ..Config::default() }
}
fn global(node: usize) -> Address {
    Address::global(PREFIX, eui(node))
}

/// A packet of the root to the last node: RPL's option, a route over all nodes between, and `octets` of data.
fn routed(octets: usize, salt: u8) -> Vec<u8> {
    let hops: Vec<_> = (1..NODES).map(|node| global(node).0).collect();
    let (first, route) = SourceRoute::over(&hops).expect("hops");
    let mut headers = with_option(next_header::ROUTING);
    route.emit(next_header::UDP, &first, &mut headers);
    around(&headers, first, octets, salt)
}
/// The same packet as the last node gets it when all entries are consumed and gone.
fn unrouted(octets: usize, salt: u8) -> Vec<u8> {
    let mut packet = around(&with_option(next_header::UDP), global(NODES - 1).0, octets, salt);
    packet[HOP_LIMIT_OFFSET] -= (NODES - 2) as u8;
    packet
}
fn with_option(behind: u8) -> Vec<u8> {
    let mut headers = vec![behind, 0];
    let (skippable, down, rank_error, forwarding_error) = (true, true, false, false);
    let (instance, sender_rank) = (0, 1);
    HopByHopOption { skippable, down, rank_error, forwarding_error, instance, sender_rank }
        .emit(&mut headers);
    headers
}
fn around(headers: &[u8], destination: [u8; 16], octets: usize, salt: u8) -> Vec<u8> {
    let plain = packet(0, NODES - 1, octets, salt);
    let header = Header::parse(&plain).expect("own packet");
    let payload_length = header.payload_length + headers.len() as u16;
    let destination = Address(destination);
    let mut bytes = Vec::new();
    Header { payload_length, destination, ..header }.emit(&mut bytes);
    bytes[NEXT_HEADER_OFFSET] = next_header::HOP_BY_HOP;
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(&plain[HEADER_OCTETS..]);
    bytes
}

/// Tells a node what the root wants.
fn tell(line: &mut Line, node: usize, is_routed: bool) {
    let routing = Some(RoutingContext { root: global(0), skippable: true });
    let network = Input::Network(Network { routing, is_routed });
    let now = line.now();
    line.nodes[node].handle(now, network).expect("a decision");
}

/// Of every frame that begins a packet, whether it has 6LoRH.
fn forms(line: &Line) -> Vec<bool> {
    let form = |(_, frame): &(usize, Vec<u8>)| {
        let at = match Dispatch::of(frame[0]) {
            Dispatch::Iphc | Dispatch::Routed => 0,
            Dispatch::First => FIRST_OCTETS,
            // The first fragment has no sequence number.
            Dispatch::Rfrag if frame[2] & 0x7c == 0 => RFRAG_OCTETS,
            _ => return None,
        };
        Some(frame[at] == DISPATCH_PAGE_1)
    };
    line.sent.iter().filter_map(form).collect()
}

#[test]
fn a_source_of_packets_obeys_the_root_and_forwarders_keep_the_form() {
    for mode in MODES {
        for from_root in [true, false] {
            for octets in [10, 60, 90, 200, 333, 600] {
                let case = format!("{mode:?}, {from_root}, {octets} octets");
                let mut line = Line::new(NODES, config(mode), 7);
                tell(&mut line, 0, from_root);
                for node in 1..NODES {
                    // They have not heard of it, or no longer want it.
                    tell(&mut line, node, !from_root);
                }
                line.send(routed(octets, 1), 1);
                line.run_to_rest();
                assert!(line.dropped.is_empty(), "{case}: {:?}", line.dropped);
                let [delivered] = &line.delivered[..] else { panic!("{case}: not delivered") };
                let forms = forms(&line);
                assert!(forms.len() >= NODES - 1, "{case}");
                assert!(forms.iter().all(|form| *form == from_root), "{case}: {forms:?}");
                if from_root {
                    assert_eq!(*delivered, unrouted(octets, 1), "{case}");
                } else {
                    assert_eq!(delivered.len(), routed(octets, 1).len(), "{case}");
                }
            }
        }
    }
}

#[test]
fn every_size_arrives_although_an_entry_is_consumed_at_each_hop() {
    for mode in MODES {
        for octets in (0..900).step_by(13) {
            let mut line = Line::new(NODES, config(mode), 11);
            (0..NODES).for_each(|node| tell(&mut line, node, true));
            line.send(routed(octets, 3), 1);
            line.run_to_rest();
            assert_eq!(line.delivered, [unrouted(octets, 3)], "{mode:?}, {octets} octets");
        }
    }
}

#[test]
fn what_fits_into_a_frame_needs_no_fragments_in_mode_e2e_and_may_be_larger_than_without_6lorh() {
    let sent = |octets: usize, is_routed: bool| {
        let mut line = Line::new(NODES, config(FragmentMode::EndToEnd), 11);
        (0..NODES).for_each(|node| tell(&mut line, node, is_routed));
        line.send(routed(octets, 3), 1);
        line.run_to_rest();
        assert!(line.delivered.is_empty() || line.sent.len() == NODES - 1);
        if is_routed && !line.delivered.is_empty() {
            assert_eq!(line.delivered, [unrouted(octets, 3)]);
        }
        !line.delivered.is_empty()
    };
    let most = |is_routed| (0..120).take_while(|octets| sent(*octets, is_routed)).count();
    let (with, without) = (most(true), most(false));
    assert!(with >= without + 5, "{with} and {without} octets");
}

#[test]
fn fragments_that_pass_through_are_not_put_together_on_the_way() {
    let mut line = Line::new(NODES, config(FragmentMode::Forwarded), 5);
    (0..NODES).for_each(|node| tell(&mut line, node, true));
    line.send(routed(400, 3), 1);
    line.run_to_rest();
    assert_eq!(line.delivered, [unrouted(400, 3)]);
    for node in 1..NODES - 1 {
        let counters = line.nodes[node].counters();
        assert!(counters.fragments_forwarded >= 4, "node {node}: {counters:?}");
        assert_eq!(counters.fallbacks_order + counters.fallbacks_full, 0, "node {node}");
    }
    // The last link carries a datagram without the route, which had 16 octets as long as an address was left in it.
    let size = |node: usize| {
        let mut sizes: Vec<u16> = (line.sent.iter())
            .filter(|(from, _)| *from == node)
            .map(|(_, frame)| u16::from_be_bytes([frame[0] & 7, frame[1]]))
            .collect();
        sizes.dedup();
        assert_eq!(sizes.len(), 1, "all fragments on a link have the same size");
        usize::from(sizes[0])
    };
    let (with_route, without) = (routed(400, 3).len(), unrouted(400, 3).len());
    assert_eq!([0, 1, 2, 3].map(size), [with_route, with_route, with_route, without]);
}

#[test]
fn a_packet_ends_as_it_would_without_6lorh_when_frames_are_lost_or_late() {
    for mode in MODES {
        for seed in 0..20 {
            let mut line = Line::new(NODES, config(mode), seed);
            let late = Duration::from_millis(30);
            line.faults = Faults { loss: 0.1, ack_loss: 0.05, copy: 0.1, delay_max: late };
            (0..NODES).for_each(|node| tell(&mut line, node, true));
            for salt in 0..6 {
                line.send(routed(150 + 40 * usize::from(salt), salt), salt.into());
            }
            line.run_to_rest();
            for delivered in &line.delivered {
                let whole = |salt: u8| unrouted(150 + 40 * usize::from(salt), salt);
                assert!((0..6).any(|salt| whole(salt) == *delivered), "{mode:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn no_packet_is_lost_while_the_root_turns_6lorh_on_and_off() {
    for mode in MODES {
        let mut line = Line::new(NODES, config(mode), 3);
        let packets = 60;
        for number in 0..packets {
            // The news travels: one node after the other hears of it.
            let step = number % 10;
            if step < NODES as u64 {
                tell(&mut line, step as usize, (number / 10) % 2 == 0);
            }
            let octets = if number % 3 == 0 { 300 } else { 20 };
            line.send(routed(octets, number as u8), number);
            let pause = line.now() + Duration::from_millis(700);
            line.run_until(pause);
        }
        line.run_to_rest();
        assert!(line.dropped.is_empty(), "{mode:?}: {:?}", line.dropped);
        assert_eq!(line.delivered.len() as u64, packets, "{mode:?}");
        let forms = forms(&line);
        assert!(forms.contains(&true) && forms.contains(&false));
    }
}
