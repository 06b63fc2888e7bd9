//! What counts as an answer, how long answers are taken, and how often a member is asked.

use crate::world::{World, address, uri};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Code;

fn document(name: &str, members: &[String], more: &str) -> String {
    let members: Vec<String> = members.iter().map(|one| format!("{one:?}")).collect();
    format!("{{\"name\":{name:?},\"er\":[{}]{more}}}", members.join(","))
}

fn create(world: &mut World, name: &str, members: &[String], more: &str) {
    let (code, text) = world.request(Code::POST, "e", &document(name, members, more));
    assert_eq!(code, Code::CREATED, "{text}");
}

fn uris(nodes: &[u16]) -> Vec<String> {
    nodes.iter().map(|one| uri(*one)).collect()
}

const MULTICAST: &str = ",\"ect\":\"multicast\"";

#[test]
fn a_member_of_a_group_may_answer_from_another_port() {
    let mut world = World::new(1, 2);
    create(&mut world, "m", &uris(&[1, 2]), MULTICAST);
    world.nodes.get_mut(&address(2)).expect("a node").answers_from = 40_000;
    let (code, text) = world.request(Code::GET, "e/m", "");
    assert_eq!((code, text.as_str()), (Code::CONTENT, "fd00::1/s/t 21\nfd00::2/s/t 22\n"));
}

#[test]
fn a_deadline_rules_how_long_answers_of_a_group_are_taken() {
    let mut world = World::new(1, 2);
    create(&mut world, "m", &uris(&[1, 2]), MULTICAST);
    world.nodes.get_mut(&address(2)).expect("a node").leisure = Duration::from_secs(30);
    world.nodes.get_mut(&address(2)).expect("a node").is_late = true;
    for (query, answers) in [("e/m", 1), ("e/m?deadline=60000", 2), ("e/m?deadline=7000", 1)] {
        let start = world.now();
        let (_, text) = world.request(Code::GET, query, "");
        let good = text.lines().filter(|line| !line.contains('!')).count();
        assert_eq!(good, answers, "{query}: {text}");
        if query.ends_with("7000") {
            assert!(world.now().since(start) <= Duration::from_secs(7));
        }
    }
    // As a field of the profile it holds for each query.
    let (code, text) = world.request(Code::IPATCH, "e/m/profile", "{\"deadline\":60000}");
    assert_eq!(code, Code::CHANGED);
    assert!(text.contains("deadline: 60000\n"), "{text}");
    let (_, text) = world.request(Code::GET, "e/m", "");
    assert_eq!(text.lines().filter(|line| !line.contains('!')).count(), 2, "{text}");
}

#[test]
fn a_post_reaches_a_member_of_several_entities_once() {
    let mut world = World::new(1, 3);
    create(&mut world, "a", &uris(&[1, 2]), "");
    create(&mut world, "b", &uris(&[2, 3]), "");
    let members = ["/e/a".to_owned(), "/e/b".to_owned(), uri(1)];
    create(&mut world, "all", &members, "");
    let written = |world: &World| -> Vec<usize> {
        (1..=3).map(|one| world.nodes[&address(one)].written.len()).collect()
    };
    let (code, text) = world.request(Code::POST, "e/all", "toggle");
    assert_eq!(code, Code::CHANGED, "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains('!'), "{text}");
    assert_eq!(written(&world), [1, 1, 1]);
    // PUT twice is the same as once.
    assert_eq!(world.request(Code::PUT, "e/all", "on").0, Code::CHANGED);
    assert_eq!(written(&world), [3, 3, 2]);
    assert_eq!(world.manager().open_requests(), (0, 0));
}

#[test]
fn a_member_without_power_can_be_taken_in_by_permission() {
    let mut world = World::new(1, 2);
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let refused = world.request(Code::POST, "e", &document("room", &uris(&[1, 2]), ""));
    assert_eq!(refused.0, Code::GATEWAY_TIMEOUT);
    create(&mut world, "room", &uris(&[1, 2]), ",\"missing\":\"allow\"");
    // What answers has to be right.
    let wrong = format!("coap://[{}]/none", address(1));
    let document = document("other", &[wrong, uri(2)], ",\"missing\":\"allow\"");
    assert_eq!(world.request(Code::POST, "e", &document).0, Code::NOT_FOUND);
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    world.run(Duration::from_secs(60));
    assert_eq!(world.request(Code::GET, "e/room", "").1.lines().count(), 2);
}

#[test]
fn the_list_of_members_says_who_answers() {
    let mut world = World::new(1, 2);
    create(&mut world, "room", &uris(&[1, 2]), "");
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    world.request(Code::GET, "e/room", "");
    let (_, text) = world.request(Code::GET, "e/room/members", "");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(" member; answered "), "{text}");
    assert!(lines[1].contains(" member; down for "), "{text}");
}

#[test]
fn while_a_store_fails_queries_go_on_and_changes_are_refused() {
    let mut world = World::new(1, 2);
    create(&mut world, "room", &uris(&[1, 2]), "");
    world.disk.0.lock().expect("one thread").fails = true;
    // The first change finds out, and waits for the store.
    let first = world.ask(Code::POST, "e", &document("first", &uris(&[1]), ""));
    world.run(Duration::from_secs(2));
    assert!(!world.responses.contains_key(&first));
    assert!(world.manager().store_fault().is_some());
    assert_eq!(world.request(Code::GET, "e/room", "").0, Code::CONTENT);
    assert_eq!(world.request(Code::PUT, "e/room", "1").0, Code::CHANGED);
    for (code, path, body) in [
        (Code::POST, "e", document("second", &uris(&[1]), "")),
        (Code::DELETE, "e/room", String::new()),
        (Code::IPATCH, "e/room/profile", "{\"delay\":5}".to_owned()),
    ] {
        let (answer, _) = world.request(code, path, &body);
        assert_eq!(answer, Code::SERVICE_UNAVAILABLE, "{path}");
    }
    world.disk.0.lock().expect("one thread").fails = false;
    assert_eq!(world.wait_for(first).0, Code::CREATED);
    assert!(world.manager().store_fault().is_none());
    assert_eq!(world.request(Code::DELETE, "e/room", "").0, Code::DELETED);
}
