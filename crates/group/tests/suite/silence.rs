//! Members without power do not keep healthy ones from answering.

use crate::world::{World, address, uri};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Code;

const SILENT: u16 = 200;

fn create(world: &mut World, name: &str, members: impl Iterator<Item = u16>) {
    let members: Vec<String> = members.map(|one| format!("{:?}", uri(one))).collect();
    let document = format!("{{\"name\":{name:?},\"er\":[{}]}}", members.join(","));
    assert_eq!(world.request(Code::POST, "e", &document).0, Code::CREATED);
}

fn building() -> World {
    let mut world = World::new(7, SILENT + 2);
    create(&mut world, "wing", 1..=SILENT);
    create(&mut world, "healthy", SILENT + 1..=SILENT + 2);
    world
}

fn set_power(world: &mut World, is_on: bool) {
    for number in 1..=SILENT {
        world.nodes.get_mut(&address(number)).expect("a node").alive = is_on;
    }
}

#[test]
fn a_wing_without_power_that_is_polled_leaves_the_others_their_answers() {
    let mut world = building();
    set_power(&mut world, false);
    let mut polls = Vec::new();
    let mut good = 0;
    for round in 0..60 {
        if round % 2 == 0 {
            polls.push(world.ask(Code::GET, "e/wing", ""));
        }
        let healthy = world.ask(Code::GET, "e/healthy", "");
        world.run(Duration::from_secs(1));
        good += usize::from(
            world.responses.get(&healthy).is_some_and(|answer| answer.code == Code::CONTENT),
        );
        world.run(Duration::from_secs(4));
    }
    assert_eq!(good, 60, "answers within a second");
    // The polls of a wing that is known to be down end soon.
    world.run(Duration::from_secs(4));
    assert!(polls.iter().all(|poll| world.responses.contains_key(poll)));
    assert_eq!(world.manager().count_nodes(), (202, 200));
    // Copies of requests to the wing in 300 s: of one CON each, and then of a probe at a time. Thirty polls are 150.
    let sent: usize = (1..=SILENT).map(|one| world.asked_of(one)).sum();
    assert!(sent <= 200 * 45, "{sent}");
    // The power is back: the wing answers at once, or with the next copies of its probes.
    set_power(&mut world, true);
    let back = (0..20).find(|_| {
        let (code, text) = world.request(Code::GET, "e/wing", "");
        world.run(Duration::from_secs(5));
        code == Code::CONTENT && !text.contains('!')
    });
    assert!(back.is_some_and(|rounds| rounds <= 8), "{back:?}");
    assert_eq!(world.manager().count_nodes(), (202, 0));
}

#[test]
fn a_wing_that_never_had_power_is_created_and_polled_while_the_others_answer() {
    let mut world = World::new(7, SILENT + 2);
    set_power(&mut world, false);
    create(&mut world, "healthy", SILENT + 1..=SILENT + 2);
    let members: Vec<String> = (1..=SILENT).map(|one| format!("{:?}", uri(one))).collect();
    let members = members.join(",");
    let document = format!("{{\"name\":\"wing\",\"missing\":\"allow\",\"er\":[{members}]}}");
    let created = world.ask(Code::POST, "e", &document);
    let mut polls = Vec::new();
    for second in 0..180 {
        let is_there = world.responses.contains_key(&created);
        if is_there && second % 10 == 0 {
            polls.push(world.ask(Code::GET, "e/wing", ""));
        }
        let healthy = world.ask(Code::GET, "e/healthy", "");
        world.run(Duration::from_secs(1));
        assert!(world.responses.contains_key(&healthy), "{second}");
    }
    assert_eq!(world.wait_for(created).0, Code::CREATED);
    assert!(polls.len() >= 6, "{} polls", polls.len());
}

#[test]
fn writes_to_a_wing_without_power_leave_the_others_their_answers_too() {
    let mut world = building();
    set_power(&mut world, false);
    for round in 0..60 {
        if round % 2 == 0 {
            // Different values, which nobody can share.
            world.ask(Code::PUT, "e/wing", &round.to_string());
        }
        let healthy = world.ask(Code::GET, "e/healthy", "");
        world.run(Duration::from_secs(1));
        assert!(world.responses.contains_key(&healthy), "{round}");
        world.run(Duration::from_secs(4));
    }
}

#[test]
fn queries_that_ask_the_same_share_one_request_and_each_has_its_answer() {
    let mut world = World::new(7, 3);
    create(&mut world, "room", 1..=3);
    let before = world.sent;
    let queries: Vec<_> = (0..5).map(|_| world.ask(Code::GET, "e/room", "")).collect();
    let other = world.ask(Code::PUT, "e/room", "1");
    world.run(Duration::from_secs(2));
    assert_eq!(world.sent - before, 3 + 3, "a write is not shared");
    let texts: Vec<String> = queries.into_iter().map(|one| world.wait_for(one).1).collect();
    assert!(texts.iter().all(|text| text == &texts[0] && text.lines().count() == 3), "{texts:?}");
    assert_eq!(world.wait_for(other).0, Code::CHANGED);
    assert_eq!(world.manager().open_requests(), (0, 0));
}

#[test]
fn a_shared_request_goes_on_for_the_others_if_its_own_query_ends() {
    let mut world = World::new(7, 2);
    create(&mut world, "room", 1..=2);
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    // The first query is content with one answer.
    let first = world.ask(Code::GET, "e/room?enr=1", "");
    let second = world.ask(Code::GET, "e/room", "");
    world.run(Duration::from_secs(1));
    assert!(world.responses.contains_key(&first) && !world.responses.contains_key(&second));
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    let (code, text) = world.wait_for(second);
    assert_eq!((code, text.lines().count()), (Code::CONTENT, 2), "{text}");
    assert_eq!(world.manager().open_requests(), (0, 0));
}

#[test]
fn a_member_that_is_down_fails_at_once_and_one_probe_finds_it_again() {
    let mut world = World::new(7, 2);
    create(&mut world, "room", 1..=2);
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    assert!(world.request(Code::GET, "e/room", "").1.contains("! 5.04 silent"));
    // The probe: its query waits for two copies.
    let start = world.now();
    assert!(world.request(Code::GET, "e/room", "").1.contains("! 5.04 silent"));
    let waited = world.now().since(start);
    assert!((2..4).contains(&(waited.as_millis() / 1000)), "{waited:?}");
    // While it is under way, others do not wait, whatever they ask.
    let start = world.now();
    for (code, body) in [(Code::GET, ""), (Code::PUT, "1")] {
        let (_, text) = world.request(code, "e/room", body);
        assert!(text.contains("not asked again yet"), "{text}");
    }
    assert!(world.now().since(start) < Duration::from_secs(1));
    world.nodes.get_mut(&address(2)).expect("a node").alive = true;
    world.run(Duration::from_secs(15));
    assert_eq!(world.request(Code::GET, "e/room", "").1.lines().count(), 2);
    assert_eq!(world.manager().count_nodes(), (2, 0));
}

#[test]
fn clients_with_little_time_take_no_node_that_is_slow_for_one_that_is_down() {
    let mut world = World::new(7, 2);
    create(&mut world, "room", 1..=2);
    world.nodes.get_mut(&address(2)).expect("a node").separate = Some(Duration::from_secs(8));
    for round in 0..6 {
        // The node confirms each request, and its answer comes after the end of each query.
        let (_, text) = world.request(Code::GET, "e/room?deadline=4000", &round.to_string());
        assert!(text.contains("! 5.04 silent"), "{text}");
        assert_eq!(world.manager().count_nodes(), (2, 0), "{round}");
    }
    assert_eq!(world.request(Code::GET, "e/room?deadline=60000", "").1.lines().count(), 2);
}
