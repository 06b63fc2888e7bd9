//! Entities that nest, and the share of a client.

use super::*;
use crate::params::NESTING_MAX;

fn with(all: &mut Entities, name: &str, members: &[&str]) {
    let mut entity = Entity::new(name.into(), Profile::default(), Phase::Live, None);
    let targets: Vec<Target> =
        members.iter().map(|text| Target::parse(text, &[]).expect(text)).collect();
    entity.members = entity.enlist(targets, None);
    all.insert(entity);
}

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| Target::parse(text, &[]).expect(text)).collect()
}

#[test]
fn a_cycle_of_any_length_is_refused() {
    let mut all = Entities::default();
    with(&mut all, "room", &["coap://a/t"]);
    with(&mut all, "floor", &["/e/room"]);
    with(&mut all, "house", &["/e/floor"]);
    for (name, member) in [("room", "/e/house"), ("room", "/e/room?eo=avg"), ("new", "/e/new")] {
        let refusal = all.check_nesting(name, &targets(&[member])).expect_err(name);
        assert_eq!(refusal.title, "cycle of entities");
    }
    assert_eq!(all.check_nesting("new", &targets(&["/e/house", "/e/room"])), Ok(()));
    let unknown = all.check_nesting("new", &targets(&["/e/attic"])).expect_err("no attic");
    assert_eq!(unknown.code, Code::NOT_FOUND);
}

#[test]
fn a_client_has_a_quarter_of_the_entities_until_it_deletes_one() {
    let mut all = Entities::default();
    let (greedy, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let add = |all: &mut Entities, owner: Option<IpAddr>, number: usize| {
        let name = format!("e{number}");
        let mut entity = Entity::new(name, Profile::default(), Phase::Live, None);
        entity.owner = owner;
        all.insert(entity)
    };
    let mut last = 0;
    for number in 0..ENTITIES_A_CLIENT_MAX {
        assert_eq!(all.check_room(greedy), Ok(()));
        last = add(&mut all, Some(greedy), number);
    }
    let refusal = all.check_room(greedy).expect_err("it has its share");
    assert!(refusal.code == Code::FORBIDDEN && refusal.detail.contains("1024 of 4096"));
    assert_eq!(all.check_room(other), Ok(()));
    all.erase(last);
    assert_eq!(all.check_room(greedy), Ok(()));
    // Those of unknown clients count for all.
    for number in ENTITIES_A_CLIENT_MAX - 1..ENTITIES_MAX {
        add(&mut all, None, number);
    }
    assert!(all.check_room(other).is_err_and(|refusal| refusal.detail.contains("4096")));
}

#[test]
fn entities_nest_to_a_depth_from_above_and_from_below() {
    let mut all = Entities::default();
    with(&mut all, "a1", &["coap://a/t"]);
    for level in 2..=NESTING_MAX {
        let (name, member) = (format!("a{level}"), format!("/e/a{}", level - 1));
        assert_eq!(all.check_nesting(&name, &targets(&[&member])), Ok(()), "{name}");
        with(&mut all, &name, &[&member]);
    }
    let top = format!("/e/a{NESTING_MAX}");
    let refusal = all.check_nesting("above", &targets(&[&top])).expect_err("too deep");
    assert_eq!(refusal.title, "entities too deep");
    with(&mut all, "below", &["coap://b/t"]);
    let refusal = all.check_nesting("a1", &targets(&["/e/below"])).expect_err("too deep");
    assert_eq!(refusal.title, "entities too deep");
    assert_eq!(all.check_nesting("a2", &targets(&["/e/below"])), Ok(()));
}

#[test]
fn entities_that_double_with_each_level_are_bounded() {
    let mut all = Entities::default();
    with(&mut all, "a0", &["coap://a/t", "coap://b/t"]);
    let mut refused = None;
    for level in 1..20 {
        let members = [format!("/e/a{}", level - 1), format!("/e/a{}?eo=avg", level - 1)];
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let name = format!("a{level}");
        if all.check_nesting(&name, &targets(&members)).is_err() {
            refused = Some(level);
            break;
        }
        with(&mut all, &name, &members);
    }
    // 2^(n + 2) - 2 requests at level n.
    assert_eq!(refused, Some(11));
    // The bottom cannot grow under the top either.
    let many: Vec<String> = (0..200).map(|node| format!("coap://n{node}/t")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(all.check_nesting("a9", &targets(&many)).is_ok());
    // It counts for each place at which the top leads to it: 1,024 places here.
    let few: Vec<&str> = many.iter().copied().take(3).collect();
    let refusal = all.check_nesting("a0", &targets(&few)).expect_err("3,072 members");
    assert_eq!(refusal.title, "entity too large");
    assert!(all.check_nesting("a0", &targets(&["coap://c/t", "coap://d/t"])).is_ok());
}
