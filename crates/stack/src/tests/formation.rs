//! Who joins, who falls out and comes back.

use lowmesh_rpl::Mode;
use lowmesh_sixtop::functions::msf;
use lowmesh_units::{Duration, NodeId};

use super::mesh::{Mesh, config};
use crate::event::Network;

#[test]
fn nodes_in_a_line_join_one_behind_the_other() {
    let mesh = Mesh::formed(&config(Mode::Storing), 4, 1.0);
    for node in 1..4 {
        let parent = NodeId(node as u16 - 1).eui64();
        assert_eq!(mesh.nodes[node].parent(), Some(parent), "node {node}");
        assert!(mesh.nodes[node].rank() > mesh.nodes[node - 1].rank(), "node {node}");
    }
    assert_eq!(mesh.nodes[0].parent(), None);
}

#[test]
fn every_node_tells_of_its_clock_before_its_parent() {
    let mesh = Mesh::formed(&config(Mode::Storing), 3, 1.0);
    for node in 1..3 {
        let own = mesh.networks.iter().filter(|(n, _)| *n == node).map(|(_, network)| network);
        let story: Vec<&Network> =
            own.filter(|network| !matches!(network, Network::Cells { .. })).collect();
        let parent = NodeId(node as u16 - 1).eui64();
        assert_eq!(story, [&Network::Synchronised, &Network::Parent(Some(parent))]);
    }
}

#[test]
fn a_network_forms_over_links_that_lose_every_third_frame() {
    let mesh = Mesh::formed(&config(Mode::Storing), 3, 0.67);
    assert!(mesh.nodes.iter().all(crate::Node::is_joined));
    mesh.check_book();
}

#[test]
fn a_node_that_hears_nobody_loses_the_clock_and_joins_again_when_it_does() {
    let mut mesh = Mesh::formed(&config(Mode::Storing), 3, 1.0);
    mesh.set_link(1, 2, 0.0);
    mesh.run(Duration::from_secs(180));
    assert!(!mesh.nodes[2].is_synchronised());
    assert_eq!((mesh.nodes[2].is_joined(), mesh.nodes[2].parent()), (false, None));
    assert!(mesh.nodes[2].held().is_empty(), "its queues went with the clock");
    mesh.check_book();

    mesh.set_link(1, 2, 1.0);
    mesh.run_until(Duration::from_secs(600), |mesh| mesh.nodes[2].is_joined());
    mesh.run(Duration::from_secs(60));
    let handle = mesh.post(2, 0, b"back".to_vec());
    mesh.run(Duration::from_secs(30));
    assert_eq!(mesh.ending(handle), Some(Ok(())));
    mesh.check_book();
}

#[test]
fn a_node_whose_parent_is_gone_leaves_the_dodag_within_a_minute() {
    let mut mesh = Mesh::formed(&config(Mode::Storing), 3, 1.0);
    mesh.set_link(1, 2, 0.0);
    mesh.run(Duration::from_secs(45));
    assert_eq!((mesh.nodes[2].is_synchronised(), mesh.nodes[2].parent()), (true, None));
    mesh.check_book();
}

#[test]
fn a_node_moves_to_another_parent_when_its_own_is_gone() {
    let mut mesh = Mesh::formed(&config(Mode::Storing), 3, 1.0);
    // Node 2 walks: away from node 1, towards the root.
    mesh.set_link(1, 2, 0.0);
    mesh.set_link(0, 2, 1.0);
    let root = NodeId(0).eui64();
    mesh.run_until(Duration::from_secs(900), |mesh| mesh.nodes[2].parent() == Some(root));
    mesh.run(Duration::from_secs(60));
    let (up, down) = (mesh.post(2, 0, b"here".to_vec()), mesh.post(0, 2, b"found".to_vec()));
    mesh.run(Duration::from_secs(60));
    assert_eq!((mesh.ending(up), mesh.ending(down)), (Some(Ok(())), Some(Ok(()))));
    mesh.check_book();
}

#[test]
fn beacons_as_often_as_shared_cells_leave_room_for_routing() {
    let mut settings = config(Mode::Storing);
    settings.scheduling = (&msf::MSF).into();
    settings.mac.eb_period = Duration::from_millis(500);
    // The beacons of nodes 0 and 2 meet at node 1, and those of node 1 must reach node 2 all the same.
    let mesh = Mesh::formed(&settings, 4, 1.0);
    assert_eq!(mesh.nodes[3].parent(), Some(NodeId(2).eui64()));
}
