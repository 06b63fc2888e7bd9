//! CoAP over TCP between nodes: connections, their bounds, and their ends.

use lowmesh_machine::{DropReason, Handle};
use lowmesh_rpl::Mode;
use lowmesh_tcp::Profile;
use lowmesh_units::Duration;

use super::mesh::{Mesh, quick};
use crate::config::{Tcp, Transport};
use crate::event::{Class, Input};
use crate::{Config, Csm, StreamCounters, StreamLimits};

/// A line of nodes whose CoAP goes over TCP.
fn line(nodes: usize, pdr: f64, tcp: Tcp) -> Mesh {
    let config = Config { transport: Transport::Tcp(tcp), ..quick(Mode::NonStoring) };
    Mesh::formed(&config, nodes, pdr)
}

fn lln() -> Tcp {
    Tcp { profile: Profile::LLN, ..Tcp::default() }
}

fn counters(mesh: &Mesh, node: usize) -> StreamCounters {
    mesh.nodes[node].stream_counters().expect("a node with TCP")
}

#[test]
fn requests_of_a_node_share_one_connection_over_three_hops() {
    for csm in [Csm::Wait, Csm::Early] {
        let mut mesh = line(4, 1.0, Tcp { csm, ..lln() });
        let handles: Vec<Handle> = (0..5_u8).map(|n| mesh.post(3, 0, vec![n; 100])).collect();
        mesh.run_until(Duration::from_secs(120), |mesh| {
            handles.iter().all(|handle| mesh.ending(*handle).is_some())
        });
        for handle in &handles {
            assert_eq!(mesh.ending(*handle), Some(Ok(())), "{csm:?}");
        }
        let bodies: Vec<&[u8]> = mesh.requests.iter().map(|(_, one)| &one.payload[..]).collect();
        let sent: Vec<Vec<u8>> = (0..5_u8).map(|n| vec![n; 100]).collect();
        assert_eq!(bodies, sent, "{csm:?}: in order");
        let established = [0, 3].map(|node| counters(&mesh, node).established);
        assert_eq!(established, [1, 1], "{csm:?}");
        assert!(
            mesh.arrived(Class::Request, 3, 0) >= 3 && mesh.arrived(Class::Response, 0, 3) >= 3
        );
        mesh.check_book();
    }
}

#[test]
fn lost_frames_cost_time_and_no_request() {
    let mut mesh = line(3, 0.7, lln());
    let handles: Vec<Handle> = (0..10_u8).map(|n| mesh.post(2, 0, vec![n; 60])).collect();
    mesh.run_until(Duration::from_secs(600), |mesh| {
        handles.iter().all(|handle| mesh.ending(*handle).is_some())
    });
    assert!(handles.iter().all(|handle| mesh.ending(*handle) == Some(Ok(()))));
    assert_eq!(mesh.requests.len(), 10, "TCP brings each once");
}

#[test]
fn requests_beyond_the_queue_are_refused_while_there_is_no_connection() {
    let transport = Transport::Tcp(lln());
    let mut config = Config { transport, ..quick(Mode::NonStoring) };
    config.coap.queue_max = 2;
    let mut mesh = Mesh::formed(&config, 2, 1.0);
    let peer = (mesh.nodes[0].global_address(), crate::COAP_PORT);
    let mut ask = |handle| {
        let request = lowmesh_coap::RequestTemplate::get("x");
        let input = Input::Request { peer, request, handle: Handle(handle) };
        let now = mesh.now;
        lowmesh_machine::Machine::handle(&mut mesh.nodes[1], now, input).is_ok()
    };
    assert_eq!([1, 2, 3].map(&mut ask), [true, true, false]);
}

#[test]
fn a_node_without_room_for_a_connection_resets_it_and_the_request_fails() {
    let limits = StreamLimits { connections_max: 1, ..StreamLimits::default() };
    let mut mesh = line(3, 1.0, Tcp { limits, ..lln() });
    let first = mesh.post(1, 0, b"first".to_vec());
    mesh.run_until(Duration::from_secs(60), |mesh| mesh.ending(first).is_some());
    let second = mesh.post(2, 0, b"second".to_vec());
    mesh.run_until(Duration::from_secs(60), |mesh| mesh.ending(second).is_some());
    assert_eq!(mesh.ending(first), Some(Ok(())));
    assert_eq!(mesh.ending(second), Some(Err(DropReason::Reset)));
    assert_eq!(counters(&mesh, 0).refused, 1);
    mesh.check_book();
}

#[test]
fn a_node_over_udp_answers_no_segment() {
    let mut mesh = Mesh::formed(&quick(Mode::NonStoring), 2, 1.0);
    let (now, source) = (mesh.now, mesh.nodes[1].global_address());
    let to = mesh.nodes[0].global_address();
    let (segment, class) = (&[0; 20][..], Class::Request);
    mesh.nodes[1].tell_ipv6(now, lowmesh_ipv6::Event::Segment { source, to, segment, class });
    mesh.nodes[1].settle(now);
    mesh.drain(1);
    mesh.run(Duration::from_secs(10));
    assert_eq!(
        mesh.drops.last().map(|(node, drop)| (*node, drop.reason)),
        Some((0, DropReason::NoListener))
    );
    assert_eq!(mesh.nodes[0].stream_counters(), None);
}
