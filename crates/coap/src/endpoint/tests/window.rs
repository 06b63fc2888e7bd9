//! Timer and window of each destination (RFC 7252 s4.7).

use lowmesh_units::Duration;
use lowmesh_wire::coap::Kind;

use super::super::*;
use super::*;
use crate::CongestionControl;

const OTHER: u16 = 8;

fn ask_of(endpoint: &mut Endpoint<u16>, peer: u16, handle: u64, now: Instant) -> usize {
    let message = RequestTemplate::get("/t");
    endpoint
        .handle(now, Input::Request { peer, message, handle: Name::Application(Handle(handle)) })
        .expect("taken");
    sent(&outputs(endpoint)).len()
}

fn with_window(name: &str, nstart: u32) -> CongestionControl {
    CongestionControl::default().with_window(name, nstart).expect("a listed name")
}

#[test]
fn a_destination_has_the_congestion_control_that_was_chosen_for_it() {
    let mut client = endpoint(Config::default());
    let chosen = CongestionControl::new("6cocoa").expect("a listed name").with_nstart(3);
    client.choose_congestion_control(OTHER, Some(chosen), T0).expect("possible");
    let leave = |client: &mut _, peer| (1..=4).map(|n| ask_of(client, peer, n, T0)).sum::<usize>();
    assert_eq!((leave(&mut client, PEER), leave(&mut client, OTHER)), (1, 3));
    let told: Vec<_> = client.destinations().map(|(peer, one)| (peer, one.timer)).collect();
    assert_eq!(told, [(PEER, "default"), (OTHER, "6cocoa")]);
    assert_eq!(client.congestion(OTHER).expect("known").queued, 1);
}

#[test]
fn a_choice_for_a_busy_destination_counts_what_is_on_its_way() {
    let mut client = endpoint(Config::default());
    let first = sent(&ask(&mut client, 1, T0)).remove(0);
    ask(&mut client, 2, T0);
    ask(&mut client, 3, T0);
    let chosen = CongestionControl::default().with_nstart(2);
    client.choose_congestion_control(PEER, Some(chosen), T0).expect("possible");
    assert_eq!(sent(&outputs(&mut client)).len(), 1, "the window of two has one place left");
    client.choose_congestion_control(PEER, None, T0).expect("the endpoint's own");
    let out = receive(&mut client, &response_to(&first, Kind::Acknowledgement), T0);
    assert_eq!(sent(&out).len(), 0, "NSTART is 1 again, and one is on its way");
}

#[test]
fn a_choice_outlives_the_memory_of_its_destination() {
    let mut client = endpoint(Config { peers_max: 1, ..Config::default() });
    let chosen = CongestionControl::new("cocoa").expect("a listed name");
    client.choose_congestion_control(PEER, Some(chosen), T0).expect("possible");
    for (peer, handle) in [(PEER, 1), (OTHER, 2), (PEER, 3)] {
        ask_of(&mut client, peer, handle, T0);
        client
            .handle(T0, Input::Cancel { handle: Name::Application(Handle(handle)) })
            .expect("always");
    }
    assert_eq!(client.destinations().count(), 1, "the table has one place");
    assert_eq!(client.congestion(PEER).expect("known").timer, "cocoa");
}

#[test]
fn choices_are_bounded_and_checked() {
    let mut client = endpoint(Config { peers_max: 1, ..Config::default() });
    let mut choose = |peer, name| {
        client.choose_congestion_control(peer, Some(CongestionControl::new(name)?), T0)
    };
    assert!(matches!(choose(PEER, "cocao"), Err(ConfigError::Unknown(_))));
    assert_eq!(choose(PEER, "cocoa"), Ok(()));
    assert_eq!(choose(PEER, "6cocoa"), Ok(()), "another choice for the same takes no more room");
    assert_eq!(choose(OTHER, "cocoa"), Err(ConfigError::Choices(1)));
}

#[test]
fn an_adaptive_window_grows_with_what_comes_through() {
    let mut client = endpoint(Config { congestion: with_window("reno", 1), ..Config::default() });
    let ask_all = (1..=30).flat_map(|handle| sent(&ask(&mut client, handle, T0)));
    let mut on_their_way: Vec<Message> = ask_all.collect();
    let before = on_their_way.len();
    for _ in 0..10 {
        let answer = response_to(&on_their_way.remove(0), Kind::Acknowledgement);
        on_their_way.extend(sent(&receive(&mut client, &answer, Instant::from_millis(100))));
    }
    assert!(on_their_way.len() > before, "{} after {before}", on_their_way.len());
    let occupancy = client.congestion(PEER).expect("known").occupancy;
    assert_eq!(occupancy.outstanding as usize, on_their_way.len());
}

#[test]
fn a_window_that_paces_lets_the_next_request_leave_when_its_time_has_come() {
    let mut client = endpoint(Config { congestion: with_window("quic", 4), ..Config::default() });
    let first = sent(&ask(&mut client, 1, T0)).remove(0);
    let now = Instant::from_secs(1);
    receive(&mut client, &response_to(&first, Kind::Acknowledgement), now);
    let mut left = 0;
    for handle in 2..=4 {
        left += sent(&ask(&mut client, handle, now)).len();
    }
    assert!(left < 3, "one round trip of 1 s is known, so the three are spread over it");
    let (mut last, mut gaps) = (now, Vec::new());
    while left < 3 {
        let (then, out) = wake(&mut client);
        left += sent(&out).len();
        gaps.push(then.since(last));
        last = then;
    }
    assert!(gaps.iter().all(|gap| *gap > Duration::ZERO), "{gaps:?}");
    assert!(last < Instant::from_secs(2), "before any copy is due");
}
