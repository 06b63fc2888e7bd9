//! Observations of entities: results that change, conditions, members that cannot be observed or that end.

use lowmesh_units::Duration;
use lowmesh_wire::coap::Code;

use crate::world::{World, address, uri};

/// A world with an entity of all nodes, whose sensors can be observed.
fn room(seed: u64, nodes: u16, more: &str) -> World {
    let mut world = World::new(seed, nodes);
    world.nodes.values_mut().for_each(|node| node.observable = true);
    let members: Vec<String> = (1..=nodes).map(|node| format!("{:?}", uri(node))).collect();
    let document = format!("{{\"name\":\"room\",\"er\":[{}]{more}}}", members.join(","));
    assert_eq!(world.request(Code::POST, "e", &document).0, Code::CREATED);
    world
}

fn run(world: &mut World, seconds: u64) {
    world.run(Duration::from_secs(seconds));
}

#[test]
fn observers_get_the_mean_when_it_changes_and_members_are_asked_once() {
    let mut world = room(1, 3, "");
    assert_eq!(world.observe("e/room?eo=avg"), (Code::CONTENT, "22".into()));
    let asked = world.sent;
    world.change(1, "24");
    run(&mut world, 1);
    assert_eq!(world.take_states(), ["23"]);
    // The smallest changes, the mean does not.
    world.change(1, "23");
    world.change(2, "23");
    run(&mut world, 1);
    assert_eq!(world.take_states().last().map(String::as_str), Some("23"));
    assert_eq!(world.sent, asked, "notifications need no requests");
}

#[test]
fn an_observation_without_changes_is_confirmed_once_a_minute_and_ends_with_its_observer() {
    let mut world = room(2, 2, "");
    world.observe("e/room");
    run(&mut world, 59);
    assert!(world.take_states().is_empty());
    run(&mut world, 2);
    assert_eq!(world.take_states().len(), 1);
    assert_eq!(world.observers.len(), 2);
    // The client goes; nobody asks about the next state.
    world.observed = None;
    run(&mut world, 75);
    assert!(world.observers.is_empty(), "{:?}", world.observers);
    let sent = world.sent;
    run(&mut world, 3600);
    assert_eq!(world.sent, sent);
}

#[test]
fn conditions_decide_which_changes_are_told() {
    let mut world = room(3, 1, "");
    world.observe("e/room?eo=max&c.gt=25&c.pmax=600");
    for value in ["24", "26", "27", "25"] {
        world.change(1, value);
        run(&mut world, 2);
    }
    assert_eq!(world.take_states(), ["26", "25"]);
    let mut world = room(4, 1, "");
    world.observe("e/room?eo=max&c.pmin=10");
    for value in ["22", "23", "24"] {
        world.change(1, value);
        run(&mut world, 2);
    }
    assert!(world.take_states().is_empty());
    run(&mut world, 10);
    assert_eq!(world.take_states(), ["24"]);
    let (code, why) = world.observe("e/room?c.gt=25");
    assert_eq!(code, Code::BAD_REQUEST);
    assert!(why.contains("needs eo=avg"), "{why}");
}

#[test]
fn a_member_that_cannot_be_observed_is_asked_again_when_its_answer_is_old() {
    let mut world = room(5, 2, "");
    world.nodes.get_mut(&address(2)).expect("a node").observable = false;
    world.observe("e/room?eo=max");
    world.nodes.get_mut(&address(2)).expect("a node").value = "30".into();
    run(&mut world, 61);
    assert!(world.take_states().contains(&"30".to_string()));
}

#[test]
fn a_member_that_dies_shows_as_failed_within_two_minutes_and_the_others_go_on() {
    let mut world = room(6, 2, "");
    world.observe("e/room");
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    run(&mut world, 140);
    let states = world.take_states();
    assert!(states.last().is_some_and(|state| state.contains("! 5.04 silent")), "{states:?}");
    world.change(1, "28");
    run(&mut world, 1);
    assert!(world.take_states().iter().any(|state| state.contains(" 28\n")));
    // It is back, and counts again.
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    run(&mut world, 120);
    assert!(world.take_states().last().is_some_and(|state| !state.contains('!')));
}

#[test]
fn a_change_below_reaches_the_observers_of_the_entity_above() {
    let mut world = room(7, 2, "");
    world.request(Code::POST, "e", r#"{"name":"floor","er":["/e/room?eo=max"]}"#);
    assert_eq!(world.observe("e/floor?eo=max").1, "22");
    world.change(2, "40");
    run(&mut world, 1);
    assert_eq!(world.take_states(), ["40"]);
    assert_eq!(world.observers.len(), 2);
}

#[test]
fn observers_of_an_entity_that_changes_follow_and_those_of_one_that_ends_are_told() {
    let mut world = room(8, 3, "");
    world.observe("e/room?eo=max");
    let change = format!("{{\"er\":[{:?}]}}", uri(1));
    assert_eq!(world.request(Code::IPATCH, "e/room/profile", &change).0, Code::CHANGED);
    run(&mut world, 1);
    assert_eq!(world.take_states(), ["21"]);
    assert_eq!(world.observers.len(), 1);
    world.request(Code::DELETE, "e/room", "");
    run(&mut world, 1);
    assert_eq!(world.take_states().len(), 1);
    assert_eq!((world.observed.is_none(), world.observers.len()), (true, 0));
}

#[test]
fn an_entity_that_changes_before_the_first_result_is_observed_with_its_new_members() {
    let mut world = room(10, 3, "");
    world.nodes.get_mut(&address(3)).expect("a node").alive = false;
    let registration = world.register("e/room?eo=max");
    let change = format!("{{\"er\":[{:?}]}}", uri(1));
    assert_eq!(world.request(Code::IPATCH, "e/room/profile", &change).0, Code::CHANGED);
    // The first result waits for the silent member.
    assert!(!world.responses.contains_key(&registration));
    assert_eq!(world.registered(registration).0, Code::CONTENT);
    run(&mut world, 1);
    assert_eq!(world.take_states(), ["21"]);
    assert_eq!(world.observers.len(), 1);
}

#[test]
fn a_client_has_a_bounded_share_of_observations() {
    let mut world = room(9, 1, "");
    for number in 0..64 {
        assert_eq!(world.observe(&format!("e/room?c.pmax={}", number + 1)).0, Code::CONTENT);
    }
    let (code, why) = world.observe("e/room?c.pmax=100");
    assert_eq!(code, Code::SERVICE_UNAVAILABLE);
    assert!(why.contains("too many observations"), "{why}");
}
