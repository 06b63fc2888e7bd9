//! Packets that do not arrive: each has a name, and its end has a reason.

use lowmesh_machine::{DropReason, Handle, Layer};
use lowmesh_rpl::Mode;
use lowmesh_units::{Duration, NodeId};
use lowmesh_wire::ipv6::Address;

use super::mesh::{Mesh, config};
use crate::COAP_PORT;
use crate::event::{Class, Input};
use lowmesh_coap::{CongestionControl, RequestTemplate};

/// The reasons for which packets that `node` made as requests ended.
fn ends(mesh: &Mesh, node: usize) -> Vec<(Layer, DropReason)> {
    let own = |handle: &Handle| mesh.births.get(handle) == Some(&(node, Class::Request));
    mesh.drops.iter().filter(|(_, d)| own(&d.handle)).map(|(_, d)| (d.layer, d.reason)).collect()
}

#[test]
fn a_node_that_has_not_joined_drops_what_it_is_asked_to_send_by_name() {
    let mut mesh = Mesh::line(&config(Mode::Storing), 2, 0.0);
    mesh.run(Duration::from_secs(10));
    let handle = mesh.post(1, 0, b"too early".to_vec());
    assert_eq!(ends(&mesh, 1), [(Layer::Ipv6, DropReason::NotJoined)]);
    mesh.check_book();
    // Each of the five copies that RFC 7252 s4.2 allows has an ending of its own.
    mesh.run(Duration::from_secs(120));
    assert_eq!(ends(&mesh, 1), [(Layer::Ipv6, DropReason::NotJoined); 5]);
    assert_eq!(mesh.ending(handle), Some(Err(DropReason::GaveUp)));
    assert!(mesh.drops.iter().all(|(_, dropped)| dropped.handle != Handle::NONE));
}

#[test]
fn at_the_root_a_packet_to_a_node_without_a_route_ends_as_no_route() {
    for mode in [Mode::Storing, Mode::NonStoring] {
        let mut mesh = Mesh::formed(&config(mode), 2, 1.0);
        let stranger = Address::global(config(mode).prefix, NodeId(99).eui64());
        let request = RequestTemplate::get("anyone");
        let input = Input::Request { peer: (stranger, COAP_PORT), request, handle: Handle(500) };
        mesh.tell(0, input);
        assert_eq!(ends(&mesh, 0), [(Layer::Ipv6, DropReason::NoRoute)], "{mode:?}");
        mesh.check_book();
    }
}

#[test]
fn what_nobody_acknowledges_ends_at_the_mac() {
    let mut mesh = Mesh::formed(&config(Mode::Storing), 3, 1.0);
    mesh.run(Duration::from_secs(60));
    mesh.set_link(1, 2, 0.0);
    mesh.post(2, 0, b"into the void".to_vec());
    mesh.run(Duration::from_secs(60));
    assert!(ends(&mesh, 2).contains(&(Layer::Mac, DropReason::NoAck)), "{:?}", ends(&mesh, 2));
    mesh.check_book();
}

#[test]
fn a_burst_beyond_the_queue_ends_as_queue_full_and_the_rest_arrives() {
    let mut settings = config(Mode::Storing);
    settings.mac.queue_frames_max = 4;
    settings.coap.congestion = CongestionControl::default().with_nstart(16);
    let mut mesh = Mesh::formed(&settings, 2, 1.0);
    mesh.run(Duration::from_secs(30));
    let handles: Vec<Handle> = (0..12).map(|n| mesh.post(1, 0, vec![n])).collect();
    assert!(ends(&mesh, 1).contains(&(Layer::Mac, DropReason::QueueFull)));
    mesh.check_book();
    mesh.run(Duration::from_secs(120));
    // CoAP sends again what the queue had no room for.
    assert!(handles.iter().all(|handle| mesh.ending(*handle) == Some(Ok(()))));
    mesh.check_book();
}

#[test]
fn a_hop_limit_too_small_for_the_way_ends_the_packet_on_it() {
    let mut settings = config(Mode::Storing);
    settings.hop_limit = 2;
    let mut mesh = Mesh::formed(&settings, 4, 1.0);
    mesh.post(3, 0, b"far".to_vec());
    mesh.run(Duration::from_secs(10));
    assert!(ends(&mesh, 3).contains(&(Layer::Ipv6, DropReason::HopLimit)), "{:?}", ends(&mesh, 3));
    assert!(mesh.requests.is_empty());
    mesh.check_book();
}
