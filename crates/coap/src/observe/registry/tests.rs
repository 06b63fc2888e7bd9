//! One behaviour a test: who is notified, when, and in which order.

use lowmesh_wire::coap::{Code, ContentFormat, MessageId, OptionNumber};

use super::*;
use crate::event::Notifications;

const T0: Instant = Instant::ZERO;
const PROVEN: Standing = Standing { proven: true, credit: usize::MAX, room_at: None };
const UNPROVEN: Standing = Standing { proven: false, credit: 100, room_at: None };

fn request(kind: Kind, path: &str, token: u64) -> Message {
    let mut get = Message::new(kind, Code::GET, MessageId(1));
    get.token = Token::from_number(token, 2);
    get.options.insert_path(path);
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    get
}

fn state(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(Code::CONTENT).with_payload(text.as_bytes().to_vec())
}

/// A registry with handles for its notifications.
struct Bench {
    registry: Registry<u32>,
    handle: u64,
    /// What the application answers when it is asked once more.
    latest: ResponseTemplate,
}

fn bench() -> Bench {
    Bench::of(Registry::new(10, 3))
}

/// A notification and its handle.
type Notified = (Name, Notification<u32>);

impl Bench {
    fn of(registry: Registry<u32>) -> Self {
        Self { registry, handle: 0, latest: state("") }
    }
    fn register(&mut self, peer: u32, request: &Message, proven: bool) -> Option<u32> {
        self.registry.register((peer, &Association::Open), request, &state(""), |_| proven, T0)
    }
    /// CON, unless the application wants NON.
    fn register_non(&mut self, peer: u32, proven: bool) {
        let mut response = state("");
        response.notifications = Notifications::NonConfirmable;
        let request = request(Kind::Confirmable, "/t", 1);
        self.registry.register((peer, &Association::Open), &request, &response, |_| proven, T0);
    }
    /// Everybody who is to be notified now.
    fn due(&mut self, standing: Standing, now: Instant) -> Vec<Notified> {
        let mut all = Vec::new();
        loop {
            self.handle += 1;
            let handle = Name::Host(self.handle);
            match self.registry.next_notification(now, handle, |_| standing) {
                Some(notification) => all.push((handle, notification)),
                None => match self.registry.next_stale() {
                    Some(id) => {
                        self.registry.question(id, |_| false).expect("it has observers");
                        self.registry.on_state(id, self.latest.clone(), || Duration::ZERO, now);
                    }
                    None => return all,
                },
            }
        }
    }
    /// Changes the only observation of `/t`, and notifies.
    fn change(&mut self, text: &str, standing: Standing, now: Instant) -> Vec<Notified> {
        self.become_state(state(text), now);
        self.due(standing, now)
    }
    fn become_state(&mut self, state: ResponseTemplate, now: Instant) {
        let [id] = self.registry.on_path(&[b"t"])[..] else { panic!("one observation") };
        self.latest = state.clone();
        if self.registry.on_change(id) {
            self.registry.question(id, |_| false).expect("it has observers");
            self.registry.on_state(id, state, || Duration::ZERO, now);
        }
    }
}

fn sequence(notification: &Notification<u32>) -> u32 {
    notification.response.options.get_uint(OptionNumber::OBSERVE).expect("has Observe")
}

#[test]
fn equal_requests_are_one_observation_and_everybody_is_notified() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), true);
    bench.register(2, &request(Kind::Confirmable, "/t", 2), true);
    bench.register(2, &request(Kind::Confirmable, "/u", 3), true);
    let notified = bench.change("1", PROVEN, T0);
    let peers: Vec<u32> = notified.iter().map(|(_, one)| one.peer).collect();
    assert_eq!((peers, sequence(&notified[0].1)), (vec![1, 2], sequence(&notified[1].1)));
}

#[test]
fn requests_with_different_queries_are_asked_for_apart() {
    let mut bench = bench();
    for (peer, query) in [(1, "a"), (2, "b")] {
        let mut get = request(Kind::Confirmable, "/t", 1);
        get.options.insert_query(query);
        bench.register(peer, &get, true);
    }
    let ids = bench.registry.on_path(&[b"t"]);
    assert_eq!(ids.len(), 2);
    let questions: Vec<_> = ids.iter().map(|id| bench.registry.question(*id, |_| false)).collect();
    assert_ne!(questions[0], questions[1]);
    assert_eq!(bench.registry.on_path(&[b"t", b"x"]).len(), 0);
}

#[test]
fn the_sequence_goes_on_when_a_client_registers_again() {
    let mut bench = bench();
    let get = request(Kind::NonConfirmable, "/t", 1);
    let first = bench.register(1, &get, true).expect("room");
    let notified = sequence(&bench.change("1", PROVEN, T0)[0].1);
    let again = bench.register(1, &get, true).expect("room");
    assert!(first < notified && notified < again);
    assert_eq!(bench.registry.observers(), 1);
}

#[test]
fn observers_are_bounded_in_total_and_for_each_peer() {
    let mut bench = Bench::of(Registry::new(4, 3));
    let mut register =
        |peer, token| bench.register(peer, &request(Kind::Confirmable, "/t", token), true);
    assert!((0..3).all(|token| register(1, token).is_some()));
    assert_eq!(register(1, 3), None);
    assert!(register(2, 0).is_some());
    assert_eq!(register(3, 0), None);
    bench.registry.remove_peer(1);
    assert_eq!(bench.registry.observers(), 1);
}

#[test]
fn when_all_places_are_taken_the_oldest_unproven_observer_gives_way_to_a_proven_one() {
    let mut bench = Bench::of(Registry::new(3, 3));
    let get = request(Kind::Confirmable, "/t", 1);
    bench.register(1, &get, true);
    bench.register(2, &get, false);
    bench.register(3, &get, false);
    assert_eq!(bench.register(4, &get, false), None, "it has proven nothing either");
    assert!(
        bench
            .registry
            .register((4, &Association::Open), &get, &state(""), |peer| peer == 4, T0)
            .is_some()
    );
    let peers: Vec<u32> = bench.change("1", PROVEN, T0).iter().map(|(_, one)| one.peer).collect();
    assert_eq!(peers, [1, 3, 4]);
}

#[test]
fn what_changes_while_a_con_is_in_flight_is_notified_once_in_its_newest_state() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), true);
    let (first, notification) = bench.change("1", PROVEN, T0).remove(0);
    assert!(notification.confirmable);
    assert!(bench.change("2", PROVEN, T0).is_empty());
    assert!(bench.change("3", PROVEN, T0).is_empty());
    assert!(bench.registry.on_end(first, End::Delivered, T0));
    let (next, notification) = bench.due(PROVEN, T0).remove(0);
    assert_eq!(notification.response.payload, b"3");
    assert!(bench.registry.on_end(next, End::Delivered, T0));
    assert!(bench.due(PROVEN, T0).is_empty());
}

#[test]
fn observers_that_wait_get_their_turn_before_any_gets_a_second_one() {
    let mut bench = Bench::of(Registry::new(600, 1));
    for peer in 0..600 {
        bench.register(peer, &request(Kind::Confirmable, "/t", 1), true);
    }
    let mut notified = std::collections::BTreeSet::new();
    // The state changes again and again while there is room for a hundred at a time.
    for round in 0..6 {
        bench.become_state(state("again"), Instant::from_secs(round));
        for _ in 0..100 {
            bench.handle += 1;
            let handle = Name::Host(bench.handle);
            let now = Instant::from_secs(round);
            let next = bench.registry.next_notification(now, handle, |_| PROVEN);
            notified.insert(next.expect("600 are behind").peer);
            bench.registry.on_end(handle, End::Delivered, now);
        }
    }
    assert_eq!(notified.len(), 600);
}

#[test]
fn unconfirmed_notifications_keep_their_distance() {
    let mut bench = bench();
    bench.register(1, &request(Kind::NonConfirmable, "/t", 1), true);
    assert_eq!(bench.change("1", PROVEN, T0).len(), 1);
    assert!(bench.change("2", PROVEN, T0).is_empty());
    let due = bench.registry.next_deadline().expect("it is behind");
    assert_eq!(due, T0 + NOTIFICATION_GAP);
    let (_, notification) = bench.due(PROVEN, due).remove(0);
    assert_eq!((&notification.response.payload[..], notification.confirmable), (&b"2"[..], false));
    assert_eq!(bench.registry.next_deadline(), None);
}

#[test]
fn after_a_day_without_a_sign_of_life_a_notification_is_confirmable() {
    let mut bench = bench();
    bench.register(1, &request(Kind::NonConfirmable, "/t", 1), true);
    let day = T0 + CONFIRM_AFTER;
    let (handle, notification) = bench.change("1", PROVEN, day).remove(0);
    assert!(notification.confirmable);
    bench.registry.on_end(handle, End::Delivered, day);
    let later = day + NOTIFICATION_GAP;
    assert!(!bench.change("2", PROVEN, later)[0].1.confirmable);
}

#[test]
fn an_unproven_address_gets_confirmable_notifications_whatever_the_application_wants() {
    for non in [false, true] {
        let mut bench = bench();
        if non {
            bench.register_non(1, false);
        } else {
            bench.register(1, &request(Kind::NonConfirmable, "/t", 1), false);
        }
        let (handle, notification) = bench.change("1", UNPROVEN, T0).remove(0);
        assert!(notification.confirmable);
        bench.registry.on_end(handle, End::Delivered, T0);
        assert!(!bench.change("2", PROVEN, T0 + NOTIFICATION_GAP)[0].1.confirmable);
    }
}

#[test]
fn an_unproven_address_without_credit_waits_until_something_comes_from_it() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), false);
    let broke = Standing { credit: 5, ..UNPROVEN };
    assert!(bench.change("1", broke, T0).is_empty());
    assert_eq!((bench.registry.next_deadline(), bench.registry.state_octets()), (None, 0));
    bench.registry.on_heard(1, T0);
    // The state is gone meanwhile, and is asked for once more.
    assert_eq!(bench.due(UNPROVEN, T0)[0].1.response.payload, b"1");
}

#[test]
fn credit_that_is_set_aside_at_the_registration_serves_the_first_notification_whenever_it_comes() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), false);
    bench.registry.reserve(1, &Token::from_number(1, 2), 150);
    let broke = Standing { credit: 5, ..UNPROVEN };
    let (handle, first) = bench.change("1", broke, Instant::from_secs(600)).remove(0);
    assert_eq!((first.reserve, first.acknowledged), (150, false));
    bench.registry.on_end(handle, End::Unheard, T0);
    assert!(bench.change("2", broke, T0).is_empty(), "it serves once");
    assert_eq!(bench.registry.observers(), 1);
}

#[test]
fn an_observer_that_has_acknowledged_a_notification_stays_proven_and_is_never_displaced() {
    let mut bench = Bench::of(Registry::new(1, 3));
    let get = request(Kind::Confirmable, "/t", 1);
    bench.register(1, &get, false);
    let (handle, _) = bench.change("1", UNPROVEN, T0).remove(0);
    bench.registry.on_end(handle, End::Delivered, T0);
    assert_eq!(bench.register(2, &get, false), None);
    let broke = Standing { credit: 0, ..UNPROVEN };
    assert!(bench.change("2", broke, T0)[0].1.acknowledged);
}

#[test]
fn an_observer_that_proves_its_address_by_other_means_is_not_displaced() {
    let mut bench = Bench::of(Registry::new(1, 3));
    let get = request(Kind::Confirmable, "/t", 1);
    bench.register(1, &get, false);
    let place =
        bench.registry.register((2, &Association::Open), &get, &state(""), |peer| peer == 1, T0);
    assert_eq!((place, bench.registry.observers()), (None, 1));
}

#[test]
fn a_state_is_kept_only_while_somebody_waits_for_it() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), true);
    bench.become_state(state("a state"), T0);
    assert_eq!(bench.registry.state_octets(), 7);
    bench.due(PROVEN, T0);
    assert_eq!(bench.registry.state_octets(), 0);
}

#[test]
fn an_unproven_address_without_room_waits_and_keeps_nobody_else_waiting() {
    let mut bench = bench();
    let get = request(Kind::Confirmable, "/t", 1);
    bench.register(1, &get, false);
    bench.register(2, &get, true);
    bench.become_state(state("1"), T0);
    let later = Instant::from_secs(1);
    let standing =
        |peer| if peer == 1 { Standing { room_at: Some(later), ..UNPROVEN } } else { PROVEN };
    let first =
        bench.registry.next_notification(T0, Name::Host(1), standing).expect("one has room");
    assert_eq!(first.peer, 2);
    assert_eq!(bench.registry.next_notification(T0, Name::Host(2), standing), None);
    assert_eq!(bench.due(UNPROVEN, later)[0].1.peer, 1);
}

#[test]
fn where_the_application_says_so_a_request_by_con_is_notified_with_non_until_a_day_has_passed() {
    let mut bench = bench();
    bench.register_non(1, true);
    for second in [0, 100, 24 * 3600 - 1] {
        let notified = bench.change("soon", PROVEN, Instant::from_secs(second));
        assert!(!notified[0].1.confirmable, "after {second} s");
    }
    let (handle, late) = bench.change("late", PROVEN, T0 + CONFIRM_AFTER).remove(0);
    assert!(late.confirmable);
    bench.registry.on_end(handle, End::Delivered, T0 + CONFIRM_AFTER);
    let later = T0 + CONFIRM_AFTER + NOTIFICATION_GAP;
    assert!(!bench.change("later", PROVEN, later)[0].1.confirmable);
}

#[test]
fn an_observer_that_is_gone_is_forgotten() {
    let mut bench = bench();
    bench.register(1, &request(Kind::NonConfirmable, "/t", 1), true);
    let (handle, _) = bench.change("1", PROVEN, T0).remove(0);
    assert_eq!(bench.registry.peer_of(handle), Some(1));
    bench.registry.on_end(handle, End::Gone, T0);
    assert_eq!((bench.registry.observers(), bench.registry.on_path(&[b"t"]).len()), (0, 0));
}

#[test]
fn a_notification_that_found_no_room_follows_later() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), true);
    let (handle, _) = bench.change("1", PROVEN, T0).remove(0);
    bench.registry.on_end(handle, End::Deferred, T0);
    assert!(bench.due(PROVEN, T0).is_empty());
    let due = bench.registry.next_deadline().expect("it is behind");
    assert_eq!(bench.due(PROVEN, due)[0].1.response.payload, b"1");
}

#[test]
fn an_error_has_no_observe_and_ends_the_observation() {
    let mut bench = bench();
    bench.register(1, &request(Kind::Confirmable, "/t", 1), true);
    bench.register(2, &request(Kind::NonConfirmable, "/t", 1), true);
    bench.become_state(ResponseTemplate::new(Code::NOT_FOUND), T0);
    let notified = bench.due(PROVEN, T0);
    assert_eq!(notified.len(), 2);
    assert!(notified.iter().all(|(_, one)| one.response.options.is_empty()));
    assert_eq!(bench.registry.observers(), 0);
    assert!(!bench.registry.on_end(notified[0].0, End::Delivered, T0));
}

#[test]
fn a_state_in_another_content_format_ends_the_observation_with_4_06() {
    let mut bench = bench();
    let text = state("a").with_format(ContentFormat::TEXT_PLAIN);
    let get = request(Kind::Confirmable, "/t", 1);
    bench.registry.register((1, &Association::Open), &get, &text, |_| true, T0);
    bench.become_state(text, T0);
    let (handle, same) = bench.due(PROVEN, T0).remove(0);
    assert_eq!(same.response.code, Code::CONTENT);
    bench.registry.on_end(handle, End::Delivered, T0);
    bench.become_state(state("<a/>").with_format(ContentFormat::XML), T0);
    let (_, other) = bench.due(PROVEN, T0).remove(0);
    assert_eq!(
        (other.response.code, other.response.options.is_empty()),
        (Code::NOT_ACCEPTABLE, true)
    );
    assert_eq!(bench.registry.observers(), 0);
}

#[test]
fn every_table_is_empty_when_the_last_observer_has_left() {
    let mut bench = bench();
    bench.register_non(1, false);
    bench.register(2, &request(Kind::Confirmable, "/t", 1), true);
    bench.change("1", UNPROVEN, T0);
    bench.change("2", UNPROVEN, T0);
    bench.registry.remove_peer(1);
    bench.registry.remove_peer(2);
    let Registry { observations, observers, waiting, withheld, in_flight, .. } = &bench.registry;
    assert!(observations.is_empty() && observers.is_empty());
    assert_eq!((waiting.len(), withheld.len(), in_flight.len()), (0, 0, 0));
}
