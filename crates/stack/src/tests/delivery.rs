//! Packets over several hops, whole and in fragments, up and down, in both modes of RPL.

use lowmesh_ipv6::Event;
use lowmesh_lowpan::FragmentMode;
use lowmesh_rpl::Mode;
use lowmesh_units::Duration;
use lowmesh_wire::icmpv6::{Echo, Icmpv6};

use super::mesh::{Mesh, config, quick};
use crate::event::Class;

const MODES: [Mode; 2] = [Mode::Storing, Mode::NonStoring];

/// Gives an echo request of `octets` to the network layer of `from`.
fn ping(mesh: &mut Mesh, from: usize, to: usize, octets: usize) {
    let to = mesh.nodes[to].global_address();
    let echo = Echo { identifier: 7, sequence: 1, data: vec![0xa5; octets] };
    let (now, message) = (mesh.now, Icmpv6::EchoRequest(echo));
    mesh.nodes[from].tell_ipv6(now, Event::Message { to, message });
    mesh.nodes[from].settle(now);
    mesh.drain(from);
}

#[test]
fn a_request_goes_up_over_two_hops_and_its_response_comes_back() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&config(mode), 3, 1.0);
        let handle = mesh.post(2, 0, b"21.5 C".to_vec());
        mesh.run(Duration::from_secs(30));
        assert_eq!(mesh.ending(handle), Some(Ok(())), "{mode:?}");
        let (at, request) = &mesh.requests[0];
        assert_eq!((*at, request.payload.as_slice()), (0, &b"21.5 C"[..]));
        assert!(mesh.arrived(Class::Request, 2, 0) >= 1);
        assert!(mesh.arrived(Class::Response, 0, 2) >= 1);
        mesh.check_book();
    }
}

#[test]
fn three_hops_down_and_three_up_work_in_both_modes() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&config(mode), 4, 1.0);
        let (down, up) = (mesh.post(0, 3, b"open".to_vec()), mesh.post(3, 0, b"done".to_vec()));
        mesh.run(Duration::from_secs(60));
        assert_eq!(mesh.ending(down), Some(Ok(())), "{mode:?}");
        assert_eq!(mesh.ending(up), Some(Ok(())), "{mode:?}");
        let served: Vec<usize> = mesh.requests.iter().map(|(at, _)| *at).collect();
        assert!(served.contains(&0) && served.contains(&3), "{mode:?}: {served:?}");
        mesh.check_book();
    }
}

#[test]
fn in_storing_mode_a_node_reaches_another_without_the_root() {
    let mut mesh = Mesh::formed(&config(Mode::Storing), 4, 1.0);
    let before = mesh.nodes[0].counters().frames_acked;
    let handle = mesh.post(3, 1, b"neighbour".to_vec());
    mesh.run_until(Duration::from_secs(30), |mesh| mesh.ending(handle).is_some());
    assert_eq!(mesh.ending(handle), Some(Ok(())));
    assert_eq!(mesh.requests[0].0, 1);
    // Twice where its answer takes longer than CoAP waits.
    assert!(mesh.arrived(Class::Request, 3, 1) >= 1);
    // RFC 6550 s9.8: the common ancestor, node 1, turns it; the root has nothing to forward.
    assert!(mesh.nodes[0].counters().frames_acked <= before + 2, "control alone");
}

#[test]
fn one_node_reaches_another_over_one_to_six_hops_in_both_modes() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&quick(mode), 8, 1.0);
        for other in 2..8 {
            for (from, to) in [(1, other), (other, 1)] {
                // In one frame, and in fragments.
                for octets in [8, 300] {
                    let payload: Vec<u8> = (0..octets).map(|n| (n * 3) as u8).collect();
                    let handle = mesh.post(from, to, payload.clone());
                    let span = Duration::from_secs(120);
                    mesh.run_until(span, |mesh| mesh.ending(handle).is_some());
                    let case = format!("{mode:?}, {from} to {to}, {octets} octets");
                    assert_eq!(mesh.ending(handle), Some(Ok(())), "{case}");
                    let (at, request) = mesh.requests.last().expect("a request came");
                    assert_eq!((*at, &request.payload), (to, &payload), "{case}");
                    mesh.check_book();
                }
            }
        }
    }
}

#[test]
fn fragments_of_three_methods_reach_another_node_through_the_root() {
    // Mode E2E: see docs/conformance/rfc9008.md.
    for mode in [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered] {
        let mut config = quick(Mode::NonStoring);
        config.lowpan.mode = mode;
        let mut mesh = Mesh::formed(&config, 5, 1.0);
        for (from, to) in [(2, 4), (4, 2), (4, 1)] {
            let payload: Vec<u8> = (0..300_u16).map(|n| (n * 5) as u8).collect();
            let handle = mesh.post(from, to, payload.clone());
            mesh.run_until(Duration::from_secs(120), |mesh| mesh.ending(handle).is_some());
            assert_eq!(mesh.ending(handle), Some(Ok(())), "{mode:?}, {from} to {to}");
            let (at, request) = mesh.requests.last().expect("a request came");
            assert_eq!((*at, &request.payload), (to, &payload), "{mode:?}, {from} to {to}");
        }
        mesh.run(Duration::from_secs(100));
        mesh.check_book();
    }
}

#[test]
fn with_6lorh_every_method_carries_packets_up_down_and_between_nodes() {
    for mode in MODES {
        for method in [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered] {
            let mut config = quick(mode);
            config.lowpan.mode = method;
            config.rpl.sixlorh = true;
            let mut mesh = Mesh::formed(&config, 5, 1.0);
            for (from, to) in [(4, 0), (0, 4), (4, 2), (1, 4)] {
                for octets in [8, 300] {
                    let payload: Vec<u8> = (0..octets).map(|n| (n * 3) as u8).collect();
                    let handle = mesh.post(from, to, payload.clone());
                    let span = Duration::from_secs(120);
                    mesh.run_until(span, |mesh| mesh.ending(handle).is_some());
                    let case = format!("{mode:?}, {method:?}, {from} to {to}, {octets} octets");
                    assert_eq!(mesh.ending(handle), Some(Ok(())), "{case}");
                    let (at, request) = mesh.requests.last().expect("a request came");
                    assert_eq!((*at, &request.payload), (to, &payload), "{case}");
                }
            }
            for node in &mesh.nodes {
                let network = node.lowpan.network();
                assert!(network.is_routed, "the root decides for every node");
                let root = mesh.nodes[0].global_address();
                assert_eq!(network.routing.map(|routing| routing.root), Some(root));
            }
            mesh.run(Duration::from_secs(100));
            mesh.check_book();
        }
    }
}

#[test]
fn a_ping_is_answered_over_three_hops_both_ways() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&config(mode), 4, 1.0);
        for (from, to) in [(3, 0), (0, 3)] {
            let asked = mesh.arrived(Class::Request, from, to);
            let answered = mesh.arrived(Class::Response, to, from);
            ping(&mut mesh, from, to, 16);
            mesh.run(Duration::from_secs(30));
            assert_eq!(mesh.arrived(Class::Request, from, to), asked + 1, "{mode:?} {from} {to}");
            assert_eq!(
                mesh.arrived(Class::Response, to, from),
                answered + 1,
                "{mode:?} {to} {from}"
            );
        }
        mesh.check_book();
    }
}

#[test]
fn a_datagram_in_fragments_crosses_two_hops_and_its_answer_too() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&config(mode), 3, 1.0);
        let payload: Vec<u8> = (0..300_u16).map(|n| n as u8).collect();
        let handle = mesh.post(2, 0, payload.clone());
        mesh.run(Duration::from_secs(60));
        assert_eq!(mesh.ending(handle), Some(Ok(())), "{mode:?}");
        assert_eq!(mesh.requests[0].1.payload, payload, "{mode:?}");
        mesh.check_book();
    }
}

#[test]
fn fragments_over_lossy_links_arrive_unharmed_or_not_at_all() {
    let mut mesh = Mesh::formed(&quick(Mode::Storing), 3, 0.7);
    let payload: Vec<u8> = (0..300_u16).map(|n| (n * 7) as u8).collect();
    let handles: Vec<_> = (0..10).map(|_| mesh.post(2, 0, payload.clone())).collect();
    for _ in 0..600 {
        mesh.run(Duration::from_secs(1));
        mesh.check_book();
    }
    let acknowledged = handles.iter().filter(|h| mesh.ending(**h) == Some(Ok(()))).count();
    assert!(acknowledged >= 8, "{acknowledged} of 10");
    assert!(mesh.requests.iter().all(|(_, request)| request.payload == payload));
    // RFC 7252 s4.5: whatever was sent again was not executed again.
    assert!(mesh.requests.len() <= 10, "{}", mesh.requests.len());
}

#[test]
fn the_book_is_right_at_every_moment_of_a_busy_network() {
    for mode in MODES {
        let mut mesh = Mesh::formed(&quick(mode), 4, 0.8);
        for round in 0..60 {
            for from in 1..4 {
                mesh.post(from, 0, vec![round; 20 + 30 * from]);
            }
            for _ in 0..200 {
                mesh.run(Duration::from_millis(10));
                mesh.check_book();
            }
        }
        assert!(mesh.requests.len() > 20, "{mode:?}: {}", mesh.requests.len());
    }
}
