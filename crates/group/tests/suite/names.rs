//! Names that an entity gives to its members: results call the members so.

use crate::world::{World, address, uri};
use lowmesh_wire::coap::Code;

fn create(world: &mut World, name: &str, members: &[String]) -> (Code, String) {
    let members: Vec<String> = members.iter().map(|one| format!("{one:?}")).collect();
    let document = format!("{{\"name\":{name:?},\"er\":[{}]}}", members.join(","));
    world.request(Code::POST, "e", &document)
}

fn named(name: &str, node: u16) -> String {
    format!("{name}={}", uri(node))
}

#[test]
fn a_result_calls_a_member_by_the_name_that_the_profile_gives_it() {
    let mut world = World::new(1, 3);
    let (code, text) = create(&mut world, "room", &[named("desk", 1), named("door", 2), uri(3)]);
    assert_eq!(code, Code::CREATED, "{text}");
    assert!(text.contains(&format!("er: {} {} {}\n", named("desk", 1), named("door", 2), uri(3))));
    let (_, text) = world.request(Code::GET, "e/room", "");
    assert_eq!(text, "desk 21\ndoor 22\nfd00::3/s/t 23\n");
    // A failure names it too, and a query chooses it by its name.
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let (_, text) = world.request(Code::GET, "e/room", "");
    assert!(text.contains("door ! 5.04 silent"), "{text}");
    assert_eq!(world.request(Code::GET, "e/room?er=desk", "").1, "desk 21\n");
    let (code, text) = world.request(Code::GET, "e/room?er=lamp", "");
    assert_eq!((code, text.contains("lamp is not a member")), (Code::NOT_FOUND, true), "{text}");
    let (_, text) = world.request(Code::GET, "e/room/members", "");
    assert!(text.starts_with(&format!("{} member", named("desk", 1))), "{text}");
}

#[test]
fn a_change_of_names_asks_no_member() {
    let mut world = World::new(1, 2);
    assert_eq!(create(&mut world, "room", &[named("desk", 1), named("door", 2)]).0, Code::CREATED);
    world.nodes.get_mut(&address(2)).expect("a node").alive = false;
    let asked = world.asked_of(2);
    let er = format!("{{\"er\":[{:?},{:?}]}}", named("bed", 1), named("door", 2));
    let (code, text) = world.request(Code::IPATCH, "e/room/profile", &er);
    assert_eq!(code, Code::CHANGED, "{text}");
    assert_eq!(world.asked_of(2), asked);
    assert_eq!(world.request(Code::GET, "e/room?er=bed", "").1, "bed 21\n");
    // Other changes keep the names, and so does a restart.
    assert_eq!(world.request(Code::IPATCH, "e/room/profile", "{\"delay\":10}").0, Code::CHANGED);
    world.start();
    assert_eq!(world.request(Code::GET, "e/room?er=bed", "").1, "bed 21\n");
}

#[test]
fn a_result_never_calls_two_members_the_same() {
    let mut world = World::new(1, 3);
    let refused = |world: &mut World, members: &[String]| {
        let (code, text) = create(world, "room", members);
        assert_eq!(code, Code::BAD_REQUEST, "{text}");
        assert!(text.contains("give one a name, NAME=URI"), "{text}");
    };
    refused(&mut world, &[named("lamp", 1), named("lamp", 2)]);
    // The labels of URIs have no other characters than SenML.
    refused(&mut world, &[format!("{}?a=1", uri(1)), format!("{}?a_1", uri(1))]);
    assert_eq!(create(&mut world, "hall", &[named("lamp", 1), named("door", 2)]).0, Code::CREATED);
    refused(&mut world, &["/e/hall?eo=min".to_owned(), "/e/hall?eo=max".to_owned()]);
    // Entities may give the same name: in an entity above, the name of the entity precedes it.
    assert_eq!(create(&mut world, "attic", &[named("lamp", 3)]).0, Code::CREATED);
    let house =
        ["/e/hall", "up=/e/attic", "least=/e/hall?eo=min", "most=/e/hall?eo=max"].map(String::from);
    assert_eq!(create(&mut world, "house", &house).0, Code::CREATED);
    let (_, text) = world.request(Code::GET, "e/house", "");
    let lines = ["e/hall/lamp 21", "e/hall/door 22", "up/lamp 23", "least/min 21", "most/max 22"];
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    let (code, text) = world.observe("e/house");
    assert_eq!(code, Code::CONTENT);
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
}
