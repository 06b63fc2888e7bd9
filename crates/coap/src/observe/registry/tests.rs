//! One behaviour a test: who is told what, and when.

use lowmesh_wire::coap::{Code, MessageId};

use super::*;

const T0: Instant = Instant::ZERO;
const ASKED: Notifications = Notifications::AsRequested;
const NON: Notifications = Notifications::NonConfirmable;

fn request(kind: Kind, path: &str, token: u64) -> Message {
    let mut get = Message::new(kind, Code::GET, MessageId(1));
    get.token = Token::from_number(token, 2);
    get.options.insert_path(path);
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    get
}

fn registry() -> Registry<u8> {
    Registry::new(10, 3)
}

fn state(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT).with_payload(text.as_bytes().to_vec())
}

/// Changes the only observation of `/t`.
fn change(registry: &mut Registry<u8>, text: &str, now: Instant) -> Vec<Notification<u8>> {
    let found = registry.on_path(&[b"t"]);
    let [(id, ..)] = found[..] else { panic!("one observation, not {}", found.len()) };
    registry.on_state(id, state(text), now)
}

fn sequence(notification: &Notification<u8>) -> u32 {
    notification.response.options.get_uint(OptionNumber::OBSERVE).expect("has Observe")
}

#[test]
fn equal_requests_are_one_observation_and_everybody_is_told() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), ASKED, true, T0);
    registry.register(2, &request(Kind::Confirmable, "/t", 2), ASKED, true, T0);
    registry.register(2, &request(Kind::Confirmable, "/u", 3), ASKED, true, T0);
    let told = change(&mut registry, "1", T0);
    let peers: Vec<u8> = told.iter().map(|one| one.peer).collect();
    assert_eq!((peers, sequence(&told[0])), (vec![1, 2], sequence(&told[1])));
}

#[test]
fn requests_with_different_queries_are_asked_for_apart() {
    let mut registry = registry();
    for (peer, query) in [(1, "a"), (2, "b")] {
        let mut get = request(Kind::Confirmable, "/t", 1);
        get.options.insert_query(query);
        registry.register(peer, &get, ASKED, true, T0);
    }
    assert_eq!(registry.on_path(&[b"t"]).len(), 2);
    assert_eq!(registry.on_path(&[b"t", b"x"]).len(), 0);
}

#[test]
fn the_sequence_goes_on_when_a_client_registers_again() {
    let mut registry = registry();
    let get = request(Kind::NonConfirmable, "/t", 1);
    let first = registry.register(1, &get, ASKED, true, T0).expect("room");
    let told = sequence(&change(&mut registry, "1", T0)[0]);
    let again = registry.register(1, &get, ASKED, true, T0).expect("room");
    assert!(first < told && told < again);
    assert_eq!(registry.observers(), 1);
}

#[test]
fn observers_are_bounded_in_all_and_for_each_peer() {
    let mut registry = Registry::new(4, 3);
    let mut register = |peer, token| {
        registry.register(peer, &request(Kind::Confirmable, "/t", token), ASKED, true, T0)
    };
    assert!((0..3).all(|token| register(1, token).is_some()));
    assert_eq!(register(1, 3), None);
    assert!(register(2, 0).is_some());
    assert_eq!(register(3, 0), None);
    registry.remove_peer(1);
    assert_eq!(registry.observers(), 1);
}

#[test]
fn what_changes_while_a_confirmable_notification_is_on_its_way_is_told_once_in_its_newest_state() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), ASKED, true, T0);
    let first = change(&mut registry, "1", T0).remove(0);
    assert!(first.confirmable);
    assert!(change(&mut registry, "2", T0).is_empty());
    assert!(change(&mut registry, "3", T0).is_empty());
    let next = registry.on_end(first.id, End::Delivered, T0).expect("it is behind");
    assert_eq!(next.response.payload, b"3");
    assert_eq!(registry.on_end(next.id, End::Delivered, T0), None);
}

#[test]
fn unconfirmed_notifications_keep_their_distance() {
    let mut registry = registry();
    registry.register(1, &request(Kind::NonConfirmable, "/t", 1), ASKED, true, T0);
    assert_eq!(change(&mut registry, "1", T0).len(), 1);
    assert!(change(&mut registry, "2", T0).is_empty());
    let due = registry.next_deadline().expect("it is behind");
    assert_eq!(due, T0 + NOTIFICATION_GAP);
    let told = registry.on_deadline(due).remove(0);
    assert_eq!((&told.response.payload[..], told.confirmable), (&b"2"[..], false));
    assert_eq!(registry.next_deadline(), None);
}

#[test]
fn after_a_day_without_a_sign_of_life_a_notification_is_confirmable() {
    let mut registry = registry();
    registry.register(1, &request(Kind::NonConfirmable, "/t", 1), ASKED, true, T0);
    let day = T0 + CONFIRM_AFTER;
    let told = change(&mut registry, "1", day).remove(0);
    assert!(told.confirmable);
    registry.on_end(told.id, End::Delivered, day);
    let later = day + NOTIFICATION_GAP;
    assert!(!change(&mut registry, "2", later)[0].confirmable);
}

#[test]
fn an_address_that_is_not_proven_gets_confirmable_notifications_until_it_acknowledges_one() {
    let mut registry = registry();
    registry.register(1, &request(Kind::NonConfirmable, "/t", 1), ASKED, false, T0);
    let first = change(&mut registry, "1", T0).remove(0);
    assert!(first.confirmable);
    registry.on_end(first.id, End::Delivered, T0);
    let later = T0 + NOTIFICATION_GAP;
    assert!(!change(&mut registry, "2", later)[0].confirmable);
}

#[test]
fn where_the_application_says_so_a_request_by_con_is_notified_with_non_until_a_day_has_passed() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), NON, true, T0);
    for second in [0, 100, 24 * 3600 - 1] {
        let told = change(&mut registry, "soon", Instant::from_secs(second));
        assert!(!told[0].confirmable, "after {second} s");
    }
    let told = change(&mut registry, "late", T0 + CONFIRM_AFTER);
    assert!(told[0].confirmable);
    registry.on_end(told[0].id, End::Delivered, T0 + CONFIRM_AFTER);
    assert!(!change(&mut registry, "later", T0 + CONFIRM_AFTER + NOTIFICATION_GAP)[0].confirmable);
}

#[test]
fn of_non_notifications_an_address_that_is_not_proven_gets_a_few_and_then_a_con() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), NON, false, T0);
    let mut now = T0;
    for _ in 0..UNPROVEN_NON_MAX {
        assert!(!change(&mut registry, "a few", now)[0].confirmable);
        now += NOTIFICATION_GAP;
    }
    let told = change(&mut registry, "are you there?", now);
    assert!(told[0].confirmable);
    assert!(change(&mut registry, "nothing before an answer", now + CONFIRM_AFTER).is_empty());
    let end = now + NOTIFICATION_GAP;
    let told = registry.on_end(told[0].id, End::Delivered, end).expect("it is behind");
    assert!(!told.confirmable, "now it is proven");
}

#[test]
fn an_observer_that_is_gone_is_forgotten() {
    let mut registry = registry();
    registry.register(1, &request(Kind::NonConfirmable, "/t", 1), ASKED, true, T0);
    let told = change(&mut registry, "1", T0).remove(0);
    registry.on_end(told.id, End::Gone, T0);
    assert_eq!((registry.observers(), registry.on_path(&[b"t"]).len()), (0, 0));
}

#[test]
fn a_notification_that_found_no_room_is_told_later() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), ASKED, true, T0);
    let told = change(&mut registry, "1", T0).remove(0);
    assert_eq!(registry.on_end(told.id, End::Deferred, T0), None);
    let due = registry.next_deadline().expect("it is behind");
    assert_eq!(registry.on_deadline(due)[0].response.payload, b"1");
}

#[test]
fn an_error_is_told_without_observe_and_ends_the_observation() {
    let mut registry = registry();
    registry.register(1, &request(Kind::Confirmable, "/t", 1), ASKED, true, T0);
    registry.register(2, &request(Kind::NonConfirmable, "/t", 1), ASKED, true, T0);
    let [(id, ..)] = registry.on_path(&[b"t"])[..] else { panic!("one") };
    let told = registry.on_state(id, ResponseTemplate::new(Code::NOT_FOUND), T0);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|one| one.response.options.is_empty()));
    assert_eq!(registry.observers(), 0);
    assert_eq!(registry.on_end(told[0].id, End::Delivered, T0), None);
}
