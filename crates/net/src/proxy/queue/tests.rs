//! Who gets a place, who gives way, and whose turn it is.

use lowmesh_wire::coap::Code;

use super::*;

impl From<(Client, bool)> for Asker {
    fn from((client, proven): (Client, bool)) -> Self {
        Self { client, port: 5683, proven }
    }
}

const BOUNDS: Bounds = Bounds {
    requests: 64,
    origin: 16,
    connections: 8,
    window: 2,
    ack_delay: lowmesh_coap::params::ACK_DELAY,
};

/// A client in a /16 of its own.
fn client(number: u8) -> Client {
    Client(Source::V4([10, number, 0, 1]))
}

fn enter(queue: &Queue, who: u8, origin: &str) -> Result<Place, NoPlace> {
    queue.enter((client(who), true), origin, false).map(|(place, _)| place)
}

/// As many places as there are.
fn fill(queue: &Queue, who: u8, origin: &str) -> (Vec<Place>, NoPlace) {
    let mut places = Vec::new();
    loop {
        match enter(queue, who, origin) {
            Ok(place) => places.push(place),
            Err(full) => return (places, full),
        }
    }
}

fn has_lost(place: &Place) -> bool {
    *place.notice.0.borrow()
}

#[test]
fn one_client_gets_half_and_the_next_as_much_and_a_third_takes_from_both() {
    let queue = Queue::new(BOUNDS);
    let (first, full) = fill(&queue, 1, "silent");
    assert_eq!((first.len(), full), (8, NoPlace::Origin));
    let (second, _) = fill(&queue, 2, "silent");
    assert_eq!(second.len(), 8);
    let (third, _) = fill(&queue, 3, "silent");
    let left = [&first, &second].map(|all| all.iter().filter(|one| !has_lost(one)).count());
    assert_eq!((left, third.len()), ([5, 6], 5));
}

#[test]
fn silent_origins_cannot_take_the_place_of_others_nor_one_client_that_of_another() {
    let queue = Queue::new(BOUNDS);
    let mut held = Vec::new();
    for origin in 0..40 {
        held.extend(fill(&queue, 1, &format!("silent {origin}")).0);
    }
    assert_eq!(held.len(), 32, "half of all");
    assert_eq!(enter(&queue, 1, "healthy").err(), Some(NoPlace::Proxy));
    let mut others = Vec::new();
    for number in 2..40 {
        let place = enter(&queue, number, "healthy");
        others.push(place.unwrap_or_else(|_| panic!("client {number} with one at a time")));
        others.truncate(8);
    }
    drop((held, others));
    let state = queue.lock();
    assert!(state.asked.is_empty() && state.requests.is_empty() && state.all.is_empty());
}

#[test]
fn one_request_of_each_network_of_a_subscriber_or_of_a_provider_shuts_nobody_out() {
    let subscriber = |network| Source::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, network]);
    let sites = |network| Source::V6([0x20, 1, 0xd, 0xb8, network, network, 0, 0]);
    let networks = |network| Source::V4([198, 51, network, 1]);
    for of in [&subscriber as &dyn Fn(u8) -> Source, &sites, &networks] {
        let queue = Queue::new(BOUNDS);
        let enter = |who, origin: String| queue.enter((who, true), &origin, false);
        let all = (0..64).map(|network| enter(Client(of(network)), format!("silent {network}")));
        let all: Vec<_> = all.map(|one| one.expect("there is room").0).collect();
        let other = enter(client(1), "healthy".to_owned()).expect("one of the many gives way").0;
        assert_eq!(all.iter().filter(|place| has_lost(place)).count(), 1);
        assert!(!has_lost(&other));
    }
}

#[test]
fn what_an_origin_does_not_acknowledge_gives_way_after_its_grace() {
    let queue = Queue::new(Bounds { requests: 4, ..BOUNDS });
    let enter = |who: u8| enter(&queue, who, &format!("silent {who}"));
    let places: Vec<_> = (1..=4).map(|who| enter(who).expect("there is room")).collect();
    assert_eq!(enter(5).err(), Some(NoPlace::Proxy), "all are as modest, and young");
    places[1..].iter().for_each(Place::acknowledged);
    std::thread::sleep(PROXY_UNACKNOWLEDGED_GRACE);
    let _fifth = enter(5).expect("the first has had its time");
    let lost: Vec<_> = places.iter().map(has_lost).collect();
    assert_eq!(lost, [true, false, false, false]);
}

#[test]
fn unproven_clients_have_half_and_then_are_asked_for_a_proof() {
    let queue = Queue::new(BOUNDS);
    let enter =
        |who, proven| queue.enter((client(who), proven), "slow", false).map(|(place, _)| place);
    let forged: Vec<_> = (0..20).map(|who| enter(who, false)).collect();
    let admitted = forged.iter().filter(|one| one.is_ok()).count();
    assert_eq!(admitted, 8);
    assert!(forged[8..].iter().all(|one| matches!(one, Err(NoPlace::Unproven))));
    assert!((100..108).map(|who| enter(who, true)).all(|one| one.is_ok()));
}

#[tokio::test]
async fn few_unproven_clients_wait_for_a_turn_and_others_are_asked_for_a_proof() {
    let queue = Queue::new(BOUNDS);
    let enter =
        |who, proven| queue.enter((client(who), proven), "slow", false).map(|(place, _)| place);
    let mut waiting = Vec::new();
    for who in 0..3 {
        let place = enter(who, false).expect("it is nobody's turn, or few wait");
        waiting.push(tokio::spawn(async move { (place.permit().await, place) }));
        tokio::task::yield_now().await;
    }
    assert_eq!(enter(3, false).err(), Some(NoPlace::Unproven));
    assert!(enter(3, true).is_ok());
}

#[tokio::test]
async fn an_unproven_client_is_asked_for_a_proof_before_it_loses_patience() {
    let queue = Queue::new(BOUNDS);
    let enter = |who, proven| queue.enter((client(who), proven), "slow", false).map(|one| one.0);
    let (first, second) = (enter(0, false).expect("free"), enter(1, false).expect("few wait"));
    drop(first.permit().await);
    first.sent();
    let soon = std::time::Duration::from_secs(3);
    let patience = second.out_of_patience(Code::GET);
    tokio::pin!(patience);
    assert!(tokio::time::timeout(soon, &mut patience).await.is_err());
    assert!(tokio::time::timeout(soon, &mut patience).await.is_ok());
    assert!(
        tokio::time::timeout(soon / 30, enter(2, true).expect("room").out_of_patience(Code::GET))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_change_is_asked_for_a_proof_before_its_acknowledgement_or_not_at_all() {
    for (ack_delay, asks) in [(BOUNDS.ack_delay, true), (Duration::ZERO, false)] {
        let queue = Queue::new(Bounds { ack_delay, ..BOUNDS });
        let enter = |who| queue.enter((client(who), false), "slow", false).expect("few wait").0;
        let first = enter(0);
        drop(first.permit().await);
        first.sent();
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        let second = enter(1);
        let begun = queue.clock.now();
        let put = second.out_of_patience(Code::PUT);
        let put = tokio::time::timeout(crate::params::PROXY_UNPROVEN_WAIT, put).await;
        assert_eq!(put.is_ok(), asks, "{ack_delay:?}");
        assert!(!asks || queue.clock.now().since(begun) < ack_delay);
        assert!(second.may_ask(Code::GET));
    }
}

#[tokio::test]
async fn a_client_without_echo_waits_for_its_turn_the_next_time() {
    let queue = Queue::new(BOUNDS);
    let enter = |who, proven| queue.enter((client(who), proven), "slow", false).map(|one| one.0);
    let (proven, forged) = (enter(1, true).expect("room"), enter(2, false).expect("room"));
    drop(forged.permit().await);
    forged.sent();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    forged.acknowledged();
    assert_eq!(enter(3, false).err(), Some(NoPlace::Unproven));
    assert_eq!(enter(3, false).err(), Some(NoPlace::Unproven), "both came together");
    tokio::time::sleep(crate::params::PROXY_PROOF_TIME).await;
    let patient = enter(3, false).expect("it has returned no value");
    let waits = crate::params::PROXY_UNPROVEN_WAIT + std::time::Duration::from_millis(200);
    let asked = tokio::time::timeout(waits, patient.out_of_patience(Code::GET)).await;
    assert!(asked.is_err(), "a question does not help it");
    // The pause is twelve times half a second.
    let turn = tokio::time::timeout(std::time::Duration::from_secs(3), patient.permit()).await;
    assert!(turn.is_ok());
    drop(proven);
}

#[test]
fn one_client_cannot_take_all_connections() {
    let queue = Queue::new(BOUNDS);
    let enter = |who, origin: usize| queue.enter((client(who), true), &origin.to_string(), true);
    let held: Vec<_> = (0..10).map_while(|origin| enter(1, origin).ok()).collect();
    assert_eq!(held.len(), 4);
    assert!(enter(1, 0).is_ok(), "one that is connected already");
    let others: Vec<_> = (2..=5).map(|who| enter(who, 100).expect("room")).collect();
    let sixth = enter(6, 100).expect("the client with four gives way");
    let lost = |line: &Line| *line.notice.0.borrow();
    let lines = |all: &[(Place, Option<Line>)]| {
        all.iter().filter_map(|(_, line)| line.as_ref()).filter(|line| lost(line)).count()
    };
    assert_eq!((lines(&held), lines(&others)), (1, 0));
    drop((held, others, sixth));
    let state = queue.lock();
    assert!(state.connections.is_empty() && state.lines.is_empty() && state.all.is_empty());
}

#[test]
fn what_is_answered_and_still_observed_counts_as_a_connection() {
    let queue = Queue::new(BOUNDS);
    let enter = |origin: usize| queue.enter((client(1), true), &origin.to_string(), true);
    let lines: Vec<_> = (0..10).map_while(|origin| Some(enter(origin).ok()?.1)).collect();
    assert_eq!(lines.len(), 4);
    assert!(queue.lock().requests.is_empty(), "all are answered");
    assert_eq!(enter(10).err(), Some(NoPlace::Proxy));
    assert!(enter(0).is_ok(), "one that is connected already");
    drop(lines);
    let state = queue.lock();
    assert!(state.connections.is_empty() && state.lines.is_empty());
}

#[tokio::test]
async fn clients_that_wait_are_served_in_turn_however_many_requests_each_has() {
    let queue = Queue::new(BOUNDS);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let first = enter(&queue, 9, "origin").expect("room");
    let permit = first.permit().await;
    for (who, proven) in [(1, true), (1, true), (1, true), (2, true), (7, false), (8, false)] {
        let entered = queue.enter((client(who), proven), "origin", false);
        let ((place, _), tell) = (entered.expect("room"), tell.clone());
        tokio::spawn(async move {
            let permit = place.permit().await;
            tell.send(who).expect("the test listens");
            drop(permit);
        });
        tokio::task::yield_now().await;
    }
    drop((permit, tell));
    let mut order = Vec::new();
    while let Some(who) = told.recv().await {
        order.push(who);
    }
    assert_eq!(order, [7, 1, 8, 2, 1, 1]);
}

#[tokio::test]
async fn an_unproven_client_that_held_the_window_for_long_has_no_turn_soon_again() {
    let queue = Queue::new(BOUNDS);
    let enter =
        |who, proven| queue.enter((client(who), proven), "slow", false).map(|(place, _)| place);
    let soon = std::time::Duration::from_millis(100);
    let is_soon = async |place: &Place| tokio::time::timeout(soon, place.permit()).await.is_ok();
    let proven = enter(1, true).expect("room");
    let first = enter(2, false).expect("room");
    assert!(is_soon(&first).await, "nothing holds the window");
    let second = enter(3, false).expect("room");
    first.sent();
    tokio::time::sleep(soon).await;
    assert_eq!(enter(5, false).err(), Some(NoPlace::Unproven), "a proof helps it");
    assert!(!is_soon(&second).await, "one of them holds the window");
    first.acknowledged();
    assert_eq!(enter(5, false).err(), Some(NoPlace::Unproven), "a proof still helps it");
    assert!(!is_soon(&second).await, "its pause is twelve times as long");
    assert!(is_soon(&proven).await);
    let alone = queue.enter((client(4), false), "other", false).expect("room").0;
    assert!(is_soon(&alone).await, "where no proven one asks, there is no pause");
}

#[tokio::test]
async fn unproven_clients_leave_one_place_of_the_window_of_a_target_free() {
    let queue = Queue::new(Bounds { window: 3, ..BOUNDS });
    let enter = |who, reliable| queue.enter((client(who), false), "slow", reliable);
    let soon = std::time::Duration::from_millis(100);
    let mut sent = Vec::new();
    for who in 1..=2 {
        let (place, _) = enter(who, false).expect("room");
        let permit = tokio::time::timeout(soon, place.permit()).await;
        assert!(permit.is_ok(), "nobody proven asks, and two of three places are free");
        place.sent();
        sent.push(place);
    }
    let third = queue.enter((client(3), true), "slow", false).expect("room").0;
    assert!(tokio::time::timeout(soon, third.permit()).await.is_ok());
    let fourth = enter(4, false).expect("room").0;
    let turn = tokio::time::timeout(soon, fourth.permit()).await;
    assert!(turn.is_err(), "the third place is that of a proven one");
}

#[tokio::test]
async fn the_turns_of_an_origin_that_was_forgotten_are_not_those_of_the_next() {
    let queue = Queue::new(BOUNDS);
    let soon = std::time::Duration::from_millis(10);
    let [first, second, late] = [1, 2, 3].map(|who| enter(&queue, who, "origin").expect("room"));
    let before = first.permit().await;
    let waiting = second.permit();
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(soon, waiting.as_mut()).await.is_err());
    for lost in [&first, &second, &late] {
        queue.lock().evict(lost.id);
    }
    assert!(queue.lock().asked.is_empty());
    let [fourth, fifth] = [4, 5].map(|who| enter(&queue, who, "origin").expect("room"));
    let held = fourth.permit().await;
    drop((before, waiting.await, late.permit().await));
    let next = fifth.permit();
    tokio::pin!(next);
    assert!(tokio::time::timeout(soon, next.as_mut()).await.is_err(), "the turn is the fourth's");
    drop(held);
    assert!(tokio::time::timeout(soon, next).await.is_ok());
}

#[tokio::test]
async fn a_client_that_gives_up_waiting_does_not_block_the_permit() {
    let queue = Queue::new(BOUNDS);
    let places = fill(&queue, 1, "origin").0;
    let permit = places[0].permit().await;
    for place in &places[1..4] {
        let soon = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(soon, place.permit()).await.is_err());
    }
    let next = places[4].permit();
    tokio::pin!(next);
    let soon = std::time::Duration::from_millis(1);
    assert!(tokio::time::timeout(soon, next.as_mut()).await.is_err());
    drop(permit);
    drop(next.await);
    drop(places[5].permit().await);
}

#[test]
fn the_addresses_of_one_ipv6_network_are_one_client() {
    let of = |text: &str| Client::of(&Peer::new(text.parse().expect("an address"), None));
    assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:1]:2"));
    assert_ne!(of("[2001:db8:0:1::1]:1"), of("[2001:db8::1]:1"));
    assert_ne!(of("192.0.2.1:1"), of("192.0.2.2:1"));
}
