//! Entities from their creation to their end: what clients get, and what members see.

use lowmesh_group::params::{CHECK_MAX, MEMBERS_MAX};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, MessageId, OptionNumber};
use lowmesh_wire::problem_details::ProblemDetails;

use crate::world::{World, address, group_of, uri};

fn document(name: &str, nodes: &[u16], more: &str) -> String {
    let members: Vec<String> = nodes.iter().map(|node| format!("{:?}", uri(*node))).collect();
    format!("{{\"name\":\"{name}\",\"er\":[{}]{more}}}", members.join(","))
}

fn problem(world: &World, request: lowmesh_group::RequestId) -> (Code, String) {
    let message = &world.responses[&request];
    let details = ProblemDetails::parse(&message.payload).expect("problem details");
    (message.code, details.detail.unwrap_or_default().into_owned())
}

fn refused(world: &mut World, code: Code, path: &str, payload: &str) -> (Code, String) {
    let request = world.ask(code, path, payload);
    world.wait_for(request);
    problem(world, request)
}

const MULTICAST: &str = ",\"ect\":\"multicast\"";

#[test]
fn a_unicast_entity_is_created_queried_with_every_operation_and_deleted() {
    let mut world = World::new(1, 3);
    let (code, text) = world.request(Code::POST, "e", &document("room", &[1, 2, 3], ""));
    assert_eq!(code, Code::CREATED, "{text}");
    assert!(text.contains("ect: unicast"), "{text}");
    let list = "fd00::1/s/t 21\nfd00::2/s/t 22\nfd00::3/s/t 23\n";
    assert_eq!(world.request(Code::GET, "e/room", ""), (Code::CONTENT, list.into()));
    for (operation, value) in [("avg", "22"), ("min", "21"), ("max", "23")] {
        let answer = world.request(Code::GET, &format!("e/room?eo={operation}"), "");
        assert_eq!(answer, (Code::CONTENT, value.into()));
    }
    let (code, links) = world.request(Code::GET, ".well-known/core?rt=core.entity", "");
    assert_eq!(code, Code::CONTENT);
    assert_eq!(links, "</e/room>;rt=\"core.entity\";if=\"core.lb\";ct=\"0 110 112\"");
    assert_eq!(world.request(Code::DELETE, "e/room", "").0, Code::DELETED);
    assert_eq!(world.request(Code::GET, "e/room", "").0, Code::NOT_FOUND);
    assert_eq!(world.manager().open_requests(), (0, 0));
}

#[test]
fn a_multicast_entity_gets_an_address_that_its_members_join_and_leave() {
    let mut world = World::new(2, 3);
    let (code, text) = world.request(Code::POST, "e", &document("m", &[1, 2, 3], MULTICAST));
    assert_eq!(code, Code::CREATED, "{text}");
    let first = group_of(&text).expect("a group");
    assert!(text.contains(&format!("mcastURI: coap://[{first}]/s/t\n")), "{text}");
    assert_eq!(first.segments()[7], 1, "{first}");
    assert!(text.contains("emt: non\n"), "{text}");
    assert_eq!(world.memberships().len(), 3);
    let before = world.sent;
    let (code, list) = world.request(Code::GET, "e/m", "");
    assert_eq!((code, list.lines().count()), (Code::CONTENT, 3));
    assert_eq!(world.sent, before + 1, "one request for all");
    let (code, lines) = world.request(Code::DELETE, "e/m", "");
    assert_eq!((code, lines.lines().count()), (Code::DELETED, 3));
    assert!(lines.starts_with("fd00::1/s/t gone\n"), "{lines}");
    assert!(world.memberships().is_empty());
    // The address is not given out again.
    let (_, text) = world.request(Code::POST, "e", &document("m", &[1], MULTICAST));
    let second = group_of(&text).expect("a group").segments();
    assert_eq!((&second[..7], second[7]), (&first.segments()[..7], 2));
}

#[test]
fn one_answer_is_enough_for_enr_1_and_a_dead_member_shows_in_the_list() {
    let mut world = World::new(3, 3);
    world.request(Code::POST, "e", &document("room", &[1, 2, 3], ""));
    world.nodes.get_mut(&address(1)).expect("a node").alive = false;
    let start = world.now();
    let (code, list) = world.request(Code::GET, "e/room?enr=1", "");
    assert_eq!((code, list.as_str()), (Code::CONTENT, "fd00::2/s/t 22\n"));
    assert!(world.now().since(start) < Duration::from_secs(1));
    let (code, list) = world.request(Code::GET, "e/room", "");
    assert_eq!(code, Code::CONTENT);
    assert!(list.ends_with("fd00::1/s/t ! 5.04 silent\n"), "{list}");
    let (code, detail) = refused(&mut world, Code::GET, "e/room?enr=3&deadline=500", "");
    assert_eq!(code, Code::GATEWAY_TIMEOUT);
    assert_eq!(detail, "2 of 3 members answered, 3 are needed; fd00::1/s/t: 5.04 silent");
}

#[test]
fn an_entity_is_not_made_of_members_that_are_missing_silent_or_without_a_common_format() {
    let mut world = World::new(4, 3);
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let (code, detail) = refused(&mut world, Code::POST, "e", &document("room", &[1, 2], ""));
    assert_eq!(code, Code::GATEWAY_TIMEOUT);
    assert_eq!(detail, "fd00::2/s/t: 5.04 silent; fd00::1/s/t: valid, ct 0");
    let missing = "{\"er\":[\"coap://[fd00::1]/attic\",\"coap://[fd00::1]/s/t\"]}";
    let (code, detail) = refused(&mut world, Code::POST, "e", missing);
    assert_eq!(code, Code::NOT_FOUND);
    assert!(detail.starts_with("fd00::1/attic: 4.04"), "{detail}");
    world.nodes.get_mut(&address(3)).expect("a node").formats = "60";
    let (code, detail) = refused(&mut world, Code::POST, "e", &document("room", &[1, 3], ""));
    assert_eq!(code, Code::NOT_ACCEPTABLE);
    assert!(detail.contains("ct 0") && detail.contains("ct 60"), "{detail}");
    assert_eq!(world.request(Code::GET, "e", "").1, "</e>;rt=\"core.entities\"");
}

#[test]
fn a_full_table_and_a_lie_leave_nothing_half_joined() {
    for (lies, part) in [(false, "table full"), (true, "does not list it")] {
        let mut world = World::new(5, 3);
        let node = world.nodes.get_mut(&address(2)).expect("a node");
        node.lies = lies;
        node.table_max = 0;
        let (code, detail) =
            refused(&mut world, Code::POST, "e", &document("m", &[1, 2, 3], MULTICAST));
        assert_eq!(code, Code::CONFLICT);
        assert!(detail.contains(part) && detail.contains("fd00::1/s/t: joined"), "{detail}");
        world.run(Duration::from_secs(5));
        assert!(world.memberships().is_empty(), "{:?}", world.memberships());
        // The name is free again.
        let (code, _) = world.request(Code::POST, "e", &document("m", &[1, 3], MULTICAST));
        assert_eq!(code, Code::CREATED);
    }
}

#[test]
fn bad_requests_name_the_field_and_what_is_allowed() {
    let mut world = World::new(6, 3);
    world.request(Code::POST, "e", &document("room", &[1, 2], ""));
    let mixed =
        "{\"er\":[\"coap://[fd00::1]/s/t\",\"coap://[fd00::2]/s/h\"],\"ect\":\"multicast\"}";
    for (code, path, payload, expected, part) in [
        (Code::POST, "e", "{}", Code::BAD_REQUEST, "members is missing"),
        (Code::POST, "e", mixed, Code::CONFLICT, "another path"),
        (Code::POST, "e", "{\"er\":[\"/e/attic\"]}", Code::NOT_FOUND, "attic"),
        (Code::POST, "e", "{\"er\":[\"/e/x\"],\"name\":\"x\"}", Code::CONFLICT, "leads back"),
        (Code::POST, "e", "{\"er\":[\"/e/room?eo=sum\"]}", Code::BAD_REQUEST, "avg"),
        (Code::GET, "e/room?enr=3", "", Code::BAD_REQUEST, "2 members"),
        (Code::GET, "e/room?ect=multicast", "", Code::BAD_REQUEST, "delete the entity"),
        (Code::GET, "e/room?er=coap://a/t", "", Code::NOT_FOUND, "not a member"),
        (Code::GET, "e/attic", "", Code::NOT_FOUND, "GET /e"),
        (Code::PUT, "e/room/profile", "{\"ect\":\"multicast\"}", Code::BAD_REQUEST, "ect"),
        (Code::IPATCH, "e/room", "", Code::METHOD_NOT_ALLOWED, "GET"),
        (Code::GET, "x", "", Code::NOT_FOUND, "GET /e"),
    ] {
        let (got, detail) = refused(&mut world, code, path, payload);
        assert_eq!(got, expected, "{path} {payload}: {detail}");
        assert!(detail.contains(part), "{path} {payload}: {detail}");
    }
    let taken = document("room", &[1], "");
    assert_eq!(refused(&mut world, Code::POST, "e", &taken).0, Code::CONFLICT);
}

#[test]
fn entities_nest_and_their_queries_run_at_the_same_time() {
    let mut world = World::new(7, 4);
    world.request(Code::POST, "e", &document("room1", &[1, 2], ",\"eo\":[\"avg\",\"lst\"]"));
    world.request(Code::POST, "e", &document("room2", &[3, 4], ",\"eo\":\"avg\""));
    let floor = "{\"name\":\"floor\",\"er\":[\"/e/room1\",\"/e/room2\"]}";
    assert_eq!(world.request(Code::POST, "e", floor).0, Code::CREATED);
    let house = "{\"name\":\"house\",\"er\":[\"/e/floor\",\"/e/room1?eo=max\"]}";
    assert_eq!(world.request(Code::POST, "e", house).0, Code::CREATED);
    let start = world.now();
    let (_, list) = world.request(Code::GET, "e/house", "");
    assert_eq!(list, "e/room1/avg 21.5\ne/room2/avg 23.5\ne/room1/max 22\n");
    assert_eq!(
        world.now().since(start),
        Duration::from_millis(40),
        "one round trip for all levels"
    );
    assert_eq!(world.request(Code::GET, "e/house?eo=max", "").1, "23.5");
    // A member of an entity stays until the entity lets it go, and no cycle comes by an update.
    let (code, detail) = refused(&mut world, Code::DELETE, "e/floor", "");
    assert_eq!(code, Code::CONFLICT);
    assert!(detail.contains("house"), "{detail}");
    let (code, _) = refused(&mut world, Code::IPATCH, "e/room1/profile", "{\"er\":[\"/e/house\"]}");
    assert_eq!(code, Code::CONFLICT);
    // A dead room shows with its own reason, and the rest still comes.
    for node in [3, 4] {
        world.nodes.get_mut(&address(node)).expect("a node").alive = false;
    }
    let (code, list) = world.request(Code::GET, "e/floor?deadline=1000", "");
    assert_eq!(code, Code::CONTENT);
    assert!(list.starts_with("e/room1/avg 21.5\ne/room2 ! 5.04 "), "{list}");
    assert_eq!(world.manager().open_requests(), (0, 0));
}

#[test]
fn writes_reach_every_member_and_report_each_code() {
    let mut world = World::new(8, 3);
    world.request(Code::POST, "e", &document("room", &[1, 2, 3], ",\"enr\":1"));
    world.nodes.get_mut(&address(3)).expect("a node").alive = false;
    let (code, list) = world.request(Code::PUT, "e/room", "on");
    assert_eq!(code, Code::CHANGED);
    assert_eq!(list, "fd00::1/s/t/code 2.04\nfd00::2/s/t/code 2.04\nfd00::3/s/t ! 5.04 silent\n");
    assert!(
        world.nodes[&address(1)].written == [b"on"] && world.nodes[&address(2)].written == [b"on"]
    );
}

#[test]
fn an_update_lets_members_join_and_leave_before_it_is_answered() {
    let mut world = World::new(9, 4);
    world.request(Code::POST, "e", &document("m", &[1, 2], MULTICAST));
    let change = format!("{{\"er\":[{:?},{:?}],\"eo\":\"avg\"}}", uri(2), uri(3));
    let (code, text) = world.request(Code::IPATCH, "e/m/profile", &change);
    assert_eq!(code, Code::CHANGED, "{text}");
    assert!(text.contains("eo: avg"), "{text}");
    world.run(Duration::from_secs(5));
    let wanted = world.wanted();
    assert_eq!(world.memberships(), wanted);
    assert_eq!(wanted.len(), 2);
    // One that cannot join leaves all as it was.
    world.nodes.get_mut(&address(4)).expect("a node").table_max = 0;
    let change = format!("{{\"er\":[{:?}]}}", uri(4));
    assert_eq!(refused(&mut world, Code::IPATCH, "e/m/profile", &change).0, Code::CONFLICT);
    world.run(Duration::from_secs(5));
    assert_eq!(world.memberships(), wanted);
}

#[test]
fn a_node_that_restarts_is_back_in_its_groups_within_the_interval() {
    let mut world = World::new(10, 2);
    world.request(Code::POST, "e", &document("m", &[1, 2], MULTICAST));
    world.nodes.get_mut(&address(1)).expect("a node").reboot();
    assert_eq!(world.memberships().len(), 1);
    world.run(Duration::from_secs(18 * 60 + 5));
    assert_eq!(world.memberships().len(), 2);
    // Three queries without its answer make the manager look at once.
    world.nodes.get_mut(&address(1)).expect("a node").reboot();
    for _ in 0..3 {
        world.request(Code::GET, "e/m", "");
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.memberships().len(), 2);
}

#[test]
fn hybrid_asks_silent_members_of_a_group_one_by_one() {
    let mut world = World::new(11, 4);
    world.gate = "hybrid";
    world.start();
    world.request(Code::POST, "e", &document("m", &[1, 2, 3, 4], MULTICAST));
    world.nodes.get_mut(&address(1)).expect("a node").reboot();
    let (code, list) = world.request(Code::GET, "e/m", "");
    assert_eq!((code, list.lines().count()), (Code::CONTENT, 4));
    assert!(!list.contains('!'), "{list}");
}

#[test]
fn a_fetch_asks_a_subset() {
    let mut world = World::new(12, 3);
    world.request(Code::POST, "e", &document("room", &[1, 2, 3], ""));
    let mut message = Message::new(Kind::Confirmable, Code::FETCH, MessageId(1));
    message.options.insert_path("e/room");
    message.options.insert_uint(OptionNumber::CONTENT_FORMAT, ContentFormat::SENML_JSON.0.into());
    message.payload = br#"[{"n":"fd00::2/s/t"},{"n":"fd00::3/s/t"}]"#.to_vec();
    let request = world.send(message);
    assert_eq!(world.wait_for(request).1, "fd00::2/s/t 22\nfd00::3/s/t 23\n");
    assert_eq!(world.nodes[&address(1)].requests, 1, "its validation alone");
}

#[test]
fn the_delay_of_a_profile_lies_between_requests() {
    let mut world = World::new(13, 5);
    world.request(Code::POST, "e", &document("room", &[1, 2, 3, 4, 5], ",\"delay\":100"));
    let start = world.now();
    world.request(Code::GET, "e/room", "");
    assert_eq!(world.now().since(start), Duration::from_millis(440));
    let start = world.now();
    world.request(Code::GET, "e/room?delay=0", "");
    assert_eq!(world.now().since(start), Duration::from_millis(40));
}

#[test]
fn a_client_beyond_its_share_is_asked_to_come_again() {
    let mut world = World::new(14, 1);
    world.request(Code::POST, "e", &document("room", &[1], ""));
    let all: Vec<_> = (0..70).map(|_| world.ask(Code::GET, "e/room", "")).collect();
    world.run(Duration::from_secs(5));
    let codes = all.iter().map(|request| world.responses[request].code);
    assert_eq!(codes.filter(|code| *code == Code::SERVICE_UNAVAILABLE).count(), 6);
}

#[test]
fn more_than_a_member_can_take_is_not_written() {
    let mut world = World::new(16, 2);
    world.request(Code::POST, "e", &document("room", &[1, 2], ""));
    let (code, detail) = refused(&mut world, Code::PUT, "e/room", &"x".repeat(2049));
    assert_eq!(
        (code, detail.as_str()),
        (Code::REQUEST_ENTITY_TOO_LARGE, "2049 octets; 2048 are allowed")
    );
    assert_eq!(world.request(Code::PUT, "e/room", &"x".repeat(2048)).0, Code::CHANGED);
}

#[test]
fn a_validation_takes_no_longer_than_a_query_whatever_the_delay() {
    let mut world = World::new(17, 20);
    let nodes: Vec<u16> = (1..=20).collect();
    let slow = document("room", &nodes, ",\"delay\":12500");
    assert_eq!(world.request(Code::POST, "e", &slow).0, Code::CREATED);
    assert!(world.now().since(Instant::ZERO) < Duration::from_secs(248));
    // A query asks every member before it is over, or it is refused.
    let slower = document("hall", &nodes, ",\"delay\":13000");
    let (code, why) = refused(&mut world, Code::POST, "e", &slower);
    assert_eq!((code, why.contains("20 members")), (Code::BAD_REQUEST, true), "{why}");
    let (code, why) = refused(&mut world, Code::GET, "e/room?deadline=200000", "");
    assert_eq!((code, why.contains("200000 ms")), (Code::BAD_REQUEST, true), "{why}");
}

/// A gate that is busy is no silence of the member.
#[test]
fn a_member_that_no_request_has_left_for_is_not_called_silent() {
    let mut world = World::new(22, 20);
    world.gate = "gate-aimd";
    world.start();
    let nodes: Vec<u16> = (1..=20).collect();
    world.request(Code::POST, "e", &document("room", &nodes, ""));
    world.nodes.values_mut().for_each(|node| node.alive = false);
    let (_, why) = refused(&mut world, Code::GET, "e/room?deadline=1", "");
    assert!(why.contains("5.04 silent") && why.contains("5.04 not asked in time"), "{why}");
}

#[test]
fn a_member_of_a_group_that_returns_while_it_leaves_stays_in_the_group() {
    let mut world = World::new(18, 2);
    world.request(Code::POST, "e", &document("m", &[1, 2], MULTICAST));
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let alone = format!("{{\"er\":[{:?}]}}", uri(1));
    assert_eq!(world.request(Code::IPATCH, "e/m/profile", &alone).0, Code::CHANGED);
    world.run(Duration::from_secs(70));
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    let both = format!("{{\"er\":[{:?},{:?}]}}", uri(1), uri(2));
    assert_eq!(world.request(Code::IPATCH, "e/m/profile", &both).0, Code::CHANGED);
    for _ in 0..120 {
        world.run(Duration::from_secs(5));
        assert_eq!(world.memberships().len(), 2, "{}", world.now());
    }
}

/// The group is of the node, whatever the path of its resource.
#[test]
fn an_update_of_the_path_keeps_the_nodes_in_the_group() {
    let mut world = World::new(21, 3);
    world.request(Code::POST, "e", &document("m", &[1, 2], MULTICAST));
    let before = world.memberships();
    let at = |node: u16| uri(node).replace("/s/t", "/s/u");
    let change = format!("{{\"er\":[{:?},{:?}]}}", at(1), at(2));
    let (code, text) = world.request(Code::IPATCH, "e/m/profile", &change);
    assert_eq!(code, Code::CHANGED, "{text}");
    assert!(text.contains("/s/u"), "{text}");
    world.run(Duration::from_secs(60));
    assert_eq!(world.memberships(), before);
    // A failed change leaves all as it was.
    world.nodes.get_mut(&address(3)).expect("a node").table_max = 0;
    let change = format!("{{\"er\":[{:?},{:?}]}}", uri(1), uri(3));
    assert_eq!(refused(&mut world, Code::IPATCH, "e/m/profile", &change).0, Code::CONFLICT);
    world.run(Duration::from_secs(60));
    assert_eq!(world.memberships(), before);
    let (_, text) = world.request(Code::GET, "e/m/profile", "");
    assert!(text.contains(&at(1)) && text.contains(&at(2)) && !text.contains(&uri(1)), "{text}");
    // Nor does it end the membership of a node that is leaving under another path.
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let change = format!("{{\"er\":[{:?}]}}", at(1));
    assert_eq!(world.request(Code::IPATCH, "e/m/profile", &change).0, Code::CHANGED);
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    let change = format!("{{\"er\":[{:?},{:?}]}}", uri(1), uri(2));
    assert_eq!(world.request(Code::IPATCH, "e/m/profile", &change).0, Code::CHANGED);
    for _ in 0..120 {
        world.run(Duration::from_secs(5));
        assert_eq!(world.memberships().len(), 2, "{}", world.now());
    }
}

#[test]
fn members_that_do_not_leave_bound_the_updates_of_their_entity() {
    let mut world = World::new(23, 3 * MEMBERS_MAX as u16);
    let of = |first: usize| -> Vec<u16> { (first as u16..).take(MEMBERS_MAX).collect() };
    world.request(Code::POST, "e", &document("m", &of(1), MULTICAST));
    let update = |world: &mut World, first: usize| {
        // Those before are silent when they are to leave.
        world.nodes.range_mut(..address(first as u16)).for_each(|(_, node)| node.alive = false);
        let uris: Vec<String> =
            of(first).into_iter().map(|node| format!("{:?}", uri(node))).collect();
        let change = format!("{{\"er\":[{}]}}", uris.join(","));
        let request = world.ask(Code::IPATCH, "e/m/profile", &change);
        world.wait_for(request).0
    };
    assert_eq!(update(&mut world, 1 + MEMBERS_MAX), Code::CHANGED);
    assert_eq!(update(&mut world, 1 + 2 * MEMBERS_MAX), Code::CHANGED);
    let (code, why) =
        refused(&mut world, Code::IPATCH, "e/m/profile", &format!("{{\"er\":[{:?}]}}", uri(1)));
    assert_eq!((code, why.contains("have not left")), (Code::CONFLICT, true), "{why}");
}

#[test]
fn a_validation_that_a_gate_holds_up_ends() {
    let mut world = World::new(24, 256);
    world.gate = "gate-aimd";
    world.start();
    world.nodes.values_mut().for_each(|node| node.alive = false);
    let nodes: Vec<u16> = (1..=256).collect();
    let start = world.now();
    let request = world.ask(Code::POST, "e", &document("m", &nodes, ""));
    let (code, why) = world.wait_for(request);
    assert_eq!((code, why.contains("silent")), (Code::GATEWAY_TIMEOUT, true), "{why}");
    assert!(world.now().since(start) <= CHECK_MAX, "{}", world.now());
}

#[test]
fn a_creation_ends_although_many_members_fall_silent_while_they_join() {
    let mut world = World::new(19, 30);
    world.gate = "gate-aimd";
    world.start();
    let nodes: Vec<u16> = (1..=30).collect();
    let request = world.ask(Code::POST, "e", &document("m", &nodes, MULTICAST));
    // All are valid, and then the mesh fails.
    while world.disk.0.lock().expect("one thread").commits == 0 {
        world.run(Duration::from_millis(10));
    }
    world.nodes.values_mut().for_each(|node| node.alive = false);
    let (code, _) = world.wait_for(request);
    assert_eq!(code, Code::GATEWAY_TIMEOUT);
}

#[test]
fn a_query_whose_only_sub_entity_refuses_it_ends_at_once() {
    let mut world = World::new(20, 3);
    world.request(Code::POST, "e", &document("room", &[1, 2, 3], ""));
    world.request(Code::POST, "e", "{\"name\":\"floor\",\"er\":[\"/e/room?enr=3\"]}");
    let less = format!("{{\"er\":[{:?}]}}", uri(1));
    assert_eq!(world.request(Code::IPATCH, "e/room/profile", &less).0, Code::CHANGED);
    let start = world.now();
    assert_eq!(world.request(Code::GET, "e/floor", "").0, Code::BAD_REQUEST);
    assert!(world.now().since(start) < Duration::from_secs(1));
}

#[test]
fn nothing_leaves_before_the_store_has_it() {
    let mut world = World::new(15, 2);
    world.disk.0.lock().expect("one thread").fails = true;
    let request = world.ask(Code::POST, "e", &document("m", &[1, 2], MULTICAST));
    world.run(Duration::from_secs(30));
    assert!(!world.responses.contains_key(&request) && world.memberships().is_empty());
    world.disk.0.lock().expect("one thread").fails = false;
    assert_eq!(world.wait_for(request).0, Code::CREATED);
    let group = group_of(&world.wait_for(request).1).expect("a group");
    assert!(world.nodes[&address(1)].groups.contains(&group));
}

#[test]
fn a_manager_that_starts_spreads_its_looks_at_memberships() {
    let mut world = World::new(31, 8);
    for number in 1..=4 {
        let document = document(&format!("m{number}"), &[1, 2, 3, 4, 5, 6, 7, 8], MULTICAST);
        assert_eq!(world.request(Code::POST, "e", &document).0, Code::CREATED);
    }
    world.start();
    let start = world.sent;
    let mut most = 0;
    // 32 memberships, one a second in the mean, after the time in which older requests leave the mesh.
    for _ in 0..=10 + 32 {
        let before = world.sent;
        world.run(Duration::from_secs(1));
        most = most.max(world.sent - before);
    }
    assert_eq!(world.sent - start, 32, "each membership has its look");
    assert!(most <= 8, "{most} looks within a second");
}

#[test]
fn a_resource_is_a_member_once_however_its_uri_is_written() {
    let mut world = World::new(32, 2);
    let twice = "{\"er\":[\"coap://[fd00::1]/s/t\",\"coap://[fd00:0::1]:5683/s/%74\"]}";
    let (code, detail) = refused(&mut world, Code::POST, "e", twice);
    assert_eq!(code, Code::BAD_REQUEST);
    assert!(detail.contains("occurs twice"), "{detail}");
    // A query names a member in any form, too.
    world.request(Code::POST, "e", &document("room", &[1, 2], ""));
    let one = "e/room?er=coap://[fd00:0:0::2]:5683/s/t";
    assert_eq!(world.request(Code::GET, one, "").1, "fd00::2/s/t 22\n");
}

#[test]
fn members_of_a_group_have_ipv6_addresses() {
    let mut world = World::new(33, 1);
    for host in ["192.0.2.1", "lamp.example"] {
        let document = format!("{{\"er\":[\"coap://{host}/s/t\"]{MULTICAST}}}");
        let (code, detail) = refused(&mut world, Code::POST, "e", &document);
        assert_eq!(code, Code::CONFLICT);
        assert!(detail.contains(host) && detail.contains("IPv6 address"), "{detail}");
    }
}
