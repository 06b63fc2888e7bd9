//! Managers that know nothing of each other have different group addresses, and clear up their own alone.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use crate::world::{Disk, World, address, group_of, uri};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Code;

fn create(world: &mut World, name: &str, members: &[u16]) -> (Code, String) {
    let members: Vec<String> = members.iter().map(|one| format!("{:?}", uri(*one))).collect();
    let er = members.join(",");
    let document = format!("{{\"name\":{name:?},\"er\":[{er}],\"ect\":\"multicast\"}}");
    world.request(Code::POST, "e", &document)
}

/// The group of a new entity.
fn group(world: &mut World, name: &str, members: &[u16]) -> Ipv6Addr {
    let (code, text) = create(world, name, members);
    assert_eq!(code, Code::CREATED, "{text}");
    group_of(&text).expect("a group")
}

fn with_number(group: Ipv6Addr, number: u16) -> Ipv6Addr {
    let mut segments = group.segments();
    segments[7] = number;
    Ipv6Addr::from(segments)
}

#[test]
fn each_manager_has_a_block_of_its_own_which_a_restart_keeps_and_a_lost_state_does_not() {
    let mut blocks = BTreeSet::new();
    for seed in (1..20).map(|one| 10 * one) {
        let mut world = World::new(seed, 2);
        let first = group(&mut world, "a", &[1]);
        world.start();
        let second = group(&mut world, "b", &[1]);
        assert_eq!(second, with_number(first, 2));
        world.disk = Disk::default();
        world.start();
        let lost = group(&mut world, "a", &[2]);
        assert_ne!(lost, first);
        for one in [first, lost] {
            assert!(blocks.insert(with_number(one, 0)), "{one} again");
        }
    }
}

#[test]
fn a_member_leaves_groups_of_the_manager_that_no_entity_has_and_stays_in_those_of_others() {
    let mut world = World::new(1, 2);
    let own = group(&mut world, "a", &[1, 2]);
    // Of another manager, of Ishaq et al. 2016, and of nobody that is known any more.
    let others: [Ipv6Addr; 3] =
        ["ff1e::1:8002:3", "ff1e::89:1", "ff05::fd"].map(|text| text.parse().expect("an address"));
    let stray = with_number(own, 77);
    let node = world.nodes.get_mut(&address(1)).expect("a node");
    node.groups.extend(others);
    node.groups.insert(stray);
    world.run(Duration::from_secs(2000));
    let node = &world.nodes[&address(1)];
    let wanted: BTreeSet<Ipv6Addr> = others.into_iter().chain([own]).collect();
    assert_eq!(node.groups, wanted);
}

#[test]
fn an_address_that_a_member_has_already_is_not_used() {
    let mut world = World::new(1, 3);
    let first = group(&mut world, "a", &[1]);
    let taken = with_number(first, 2);
    world.nodes.get_mut(&address(3)).expect("a node").groups.insert(taken);
    let (code, text) = create(&mut world, "b", &[2, 3]);
    assert_eq!(code, Code::CONFLICT);
    assert!(text.contains("it has been in the group before"), "{text}");
    // Nothing of it stays, and the next address is free.
    world.run(Duration::from_secs(100));
    assert!(world.nodes[&address(2)].groups.is_empty());
    let third = group(&mut world, "b", &[2, 3]);
    assert_eq!(third, with_number(first, 3));
}
