//! Leaves that run no RPL (RFC 9010): packets reach them and come from them over several hops, and their frames have nothing
//! of RPL in them.

use lowmesh_ipv6::Headers;
use lowmesh_lowpan::FragmentMode;
use lowmesh_mac::frame::node_of;
use lowmesh_rpl::Mode;
use lowmesh_units::{Duration, Eui64};
use lowmesh_wire::ieee802154::{Frame, FrameType};
use lowmesh_wire::ipv6::{Header, next_header};
use lowmesh_wire::lowpan::fragment::FragmentHeader;
use lowmesh_wire::lowpan::{Contexts, decompress};

use super::mesh::{Mesh, quick};
use crate::Config;

const MODES: [Mode; 2] = [Mode::Storing, Mode::NonStoring];
/// Node 0 is the root, and nodes 1 and 2 are routers behind each other. The leaves are the last two.
const LEAVES: [usize; 2] = [3, 4];

/// A leaf at node 2 and one at node 1: 0 - 1 - 2 - 3, 1 - 4.
fn tree(a: usize, b: usize) -> f64 {
    let links = [(0, 1), (1, 2), (2, 3), (1, 4)];
    if links.contains(&(a.min(b), a.max(b))) { 1.0 } else { 0.0 }
}

fn formed(config: &Config) -> Mesh {
    let mut mesh = Mesh::with_leaves(config, 5, tree, &LEAVES);
    mesh.listening = true;
    mesh.run_until(Duration::from_secs(1_200), |mesh| {
        let is_known = |leaf: &usize| {
            let address = mesh.nodes[*leaf].global_address();
            mesh.nodes[0].router_of(&address).is_some()
        };
        mesh.nodes.iter().all(crate::Node::is_joined) && LEAVES.iter().all(is_known)
    });
    mesh
}

/// Sends requests of `octets` between nodes, and looks at their answers.
fn exchange(mesh: &mut Mesh, pairs: &[(usize, usize)], octets: usize, case: &str) {
    for &(from, to) in pairs {
        let payload: Vec<u8> = (0..octets).map(|n| (n * 3) as u8).collect();
        let handle = mesh.post(from, to, payload.clone());
        mesh.run_until(Duration::from_secs(120), |mesh| mesh.ending(handle).is_some());
        assert_eq!(mesh.ending(handle), Some(Ok(())), "{case}, {from} to {to}, {octets} octets");
        let (at, request) = mesh.requests.last().expect("a request came");
        assert_eq!((*at, &request.payload), (to, &payload), "{case}, {from} to {to}");
    }
}

/// All pairs of which one is a leaf at least.
const PAIRS: [(usize, usize); 8] = [(0, 3), (3, 0), (0, 4), (4, 0), (3, 4), (2, 4), (4, 2), (3, 2)];

#[test]
fn leaves_reach_the_root_routers_and_each_other_and_are_reached() {
    for mode in MODES {
        for sixlorh in [false, true] {
            let mut config = quick(mode);
            config.rpl.sixlorh = sixlorh;
            let mut mesh = formed(&config);
            let eui = |node: usize| mesh.nodes[node].global_address().eui64();
            let parents = LEAVES.map(|leaf| mesh.nodes[leaf].parent());
            assert_eq!(parents, [Some(eui(2)), Some(eui(1))]);
            exchange(&mut mesh, &PAIRS, 8, &format!("{mode:?}, 6LoRH {sixlorh}"));
            mesh.run(Duration::from_secs(60));
            mesh.check_book();
        }
    }
}

#[test]
fn packets_in_fragments_reach_leaves_by_every_method_that_a_router_can_encapsulate() {
    for mode in MODES {
        for method in [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered] {
            let mut config = quick(mode);
            config.lowpan.mode = method;
            let mut mesh = formed(&config);
            exchange(
                &mut mesh,
                &[(0, 3), (3, 0), (2, 4), (3, 4)],
                300,
                &format!("{mode:?}, {method:?}"),
            );
            mesh.run(Duration::from_secs(100));
            mesh.check_book();
        }
    }
}

#[test]
fn the_frames_of_leaves_have_nothing_of_rpl() {
    for mode in MODES {
        for rpi_0x23 in [true, false] {
            let mut config = quick(mode);
            config.rpl.rpi_0x23 = rpi_0x23;
            let mut mesh = formed(&config);
            exchange(&mut mesh, &PAIRS, 8, &format!("{mode:?}, 0x23 {rpi_0x23}"));
            let leaves = LEAVES.map(|leaf| mesh.nodes[leaf].global_address().eui64());
            let mut data = 0;
            for (sender, octets) in &mesh.air {
                let is_leaf = LEAVES.contains(sender);
                let Some((packet, to)) = packet_in(octets, &config) else {
                    let frame = Frame::parse(octets).expect("own frame");
                    assert!(!is_leaf || frame.header.frame_type != FrameType::Beacon);
                    continue;
                };
                let headers = Headers::of_packet(&packet).expect("own packet");
                let upper = headers.upper_layer().expect("a whole packet");
                if is_leaf {
                    // RFC 6550 s6: ICMPv6 type 155.
                    let is_rpl =
                        upper.next_header == next_header::ICMPV6 && packet[upper.offset] == 155;
                    assert!(!is_rpl, "{mode:?}: a leaf sends RPL");
                }
                if is_leaf || to.is_some_and(|to| leaves.contains(&to)) {
                    assert_eq!((headers.rpl_option(), headers.routing()), (None, None), "{mode:?}");
                    assert_ne!(upper.next_header, next_header::IPV6, "{mode:?}");
                    data += usize::from(upper.next_header == next_header::UDP);
                }
            }
            assert!(data >= 2 * PAIRS.len(), "{data}");
        }
    }
}

/// The packet in a frame, and who it is for; none in other frames. No packet here takes more than one frame but
/// advertisements of routers, which are in fragments.
fn packet_in(octets: &[u8], config: &Config) -> Option<(Vec<u8>, Option<Eui64>)> {
    let frame = Frame::parse(octets).expect("own frame");
    let is_data = frame.header.frame_type == FrameType::Data && !frame.payload.is_empty();
    let is_fragment = || FragmentHeader::parse(frame.payload).is_ok();
    if !is_data || is_fragment() {
        return None;
    }
    let source = frame.header.source.and_then(node_of).expect("a sender");
    let to = frame.header.destination.and_then(node_of);
    let contexts = Contexts::new().with(0, config.prefix);
    let mut packet = Vec::new();
    decompress(frame.payload, source, to, &contexts, None, &mut packet).expect("own frame");
    let _valid = Header::parse_packet(&packet).expect("a whole packet");
    Some((packet, to))
}

#[test]
fn a_leaf_whose_router_fails_is_reached_through_another() {
    for mode in MODES {
        // Two routers, either of which reaches the leaf; the link to the first is the better one.
        let chance = |a: usize, b: usize| match (a.min(b), a.max(b)) {
            (0, 1 | 2) | (1 | 2, 3) => 1.0,
            _ => 0.0,
        };
        let mut mesh = Mesh::with_leaves(&quick(mode), 4, chance, &[3]);
        let leaf = mesh.nodes[3].global_address();
        let is_reached = |mesh: &Mesh| mesh.nodes[0].router_of(&leaf).is_some();
        mesh.run_until(Duration::from_secs(1_200), is_reached);
        exchange(&mut mesh, &[(0, 3), (3, 0)], 8, &format!("{mode:?}"));
        let first = mesh.nodes[3].parent().expect("registered");
        let router = (1..=2).find(|n| mesh.nodes[*n].global_address().eui64() == first);
        let router = router.expect("one of the two");
        mesh.set_link(router, 0, 0.0);
        mesh.set_link(router, 3, 0.0);
        mesh.run_until(Duration::from_secs(900), |mesh| {
            let router = mesh.nodes[0].router_of(&leaf);
            router.is_some() && router == mesh.nodes[3].parent() && router != Some(first)
        });
        exchange(&mut mesh, &[(0, 3), (3, 0)], 8, &format!("{mode:?}, after the failure"));
        mesh.run(Duration::from_secs(100));
        mesh.check_book();
    }
}
