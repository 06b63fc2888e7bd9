//! Requests whose responses a layer above verifies before they count (RFC 8613 s8.4).

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Kind, Message, MessageId, OptionNumber};

use super::super::*;
use super::*;
use crate::observe::REGISTER;

fn ask_verified(client: &mut Endpoint<u16>, handle: u64, message: RequestTemplate) -> Message {
    let input =
        Input::RequestVerified { peer: PEER, message, handle: Name::Application(Handle(handle)) };
    client.handle(T0, input).expect("acceptable");
    sent(&outputs(client)).remove(0)
}

fn accept(client: &mut Endpoint<u16>, observes: bool) -> Vec<Output<u16>> {
    client
        .handle(T0, Input::Accept { handle: Name::Application(Handle(1)), observes })
        .expect("taken");
    outputs(client)
}

fn observe() -> RequestTemplate {
    let mut message = RequestTemplate::get("/t");
    message.options.insert_uint(OptionNumber::OBSERVE, REGISTER);
    message
}

fn state(get: &Message, id: u16, sequence: u32) -> Message {
    let mut message = response_to(get, Kind::NonConfirmable);
    message.message_id = MessageId(id);
    message.options.insert_uint(OptionNumber::OBSERVE, sequence);
    message
}

fn responses(outputs: &[Output<u16>]) -> usize {
    outputs.iter().filter(|one| matches!(one, Output::Response { .. })).count()
}

#[test]
fn each_response_is_told_until_one_is_accepted() {
    let mut client = endpoint(Config::default());
    let get = ask_verified(&mut client, 1, RequestTemplate::get("/t"));
    let response = response_to(&get, Kind::Acknowledgement);
    for _ in 0..2 {
        assert_eq!(responses(&receive(&mut client, &response, T0)), 1);
        assert_eq!(client.open(), 1);
    }
    accept(&mut client, false);
    assert_eq!(client.open(), 0);
    assert_eq!(discards(&receive(&mut client, &response, T0)), [Discard::Unmatched]);
}

#[test]
fn without_an_accepted_response_a_request_that_was_acknowledged_fails_in_the_end() {
    let mut client = endpoint(Config::default());
    let get = ask_verified(&mut client, 1, RequestTemplate::get("/t"));
    receive(&mut client, &response_to(&get, Kind::Acknowledgement), T0);
    let (now, out) = wake(&mut client);
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
    assert_eq!(now, T0 + crate::params::EXCHANGE_LIFETIME);
}

#[test]
fn a_response_of_its_own_that_is_not_accepted_stops_no_retransmission() {
    let mut client = endpoint(Config::default());
    let get = ask_verified(&mut client, 1, RequestTemplate::get("/t"));
    let mut other = response_to(&get, Kind::NonConfirmable);
    other.message_id.0 ^= 1;
    assert_eq!(responses(&receive(&mut client, &other, T0)), 1);
    let (_, out) = wake(&mut client);
    assert_eq!(sent(&out), [get]);
}

#[test]
fn a_response_with_an_unknown_critical_option_that_is_not_verified_ends_nothing() {
    let mut client = endpoint(Config::default());
    let get = ask_verified(&mut client, 1, RequestTemplate::get("/t"));
    let mut odd = response_to(&get, Kind::Acknowledgement);
    odd.options.insert(OptionNumber(65_001), b"x");
    let out = receive(&mut client, &odd, T0);
    assert_eq!((responses(&out), failures(&out)), (0, vec![]));
    let good = response_to(&get, Kind::Acknowledgement);
    assert_eq!(responses(&receive(&mut client, &good, T0)), 1);
}

#[test]
fn an_accepted_response_leaves_the_window_to_the_next_request() {
    let mut client = endpoint(Config::default());
    ask_verified(&mut client, 1, RequestTemplate::get("/t"));
    assert!(sent(&ask(&mut client, 2, T0)).is_empty(), "NSTART is 1");
    assert_eq!(sent(&accept(&mut client, false)).len(), 1);
}

#[test]
fn an_accepted_notification_ends_the_wait_and_later_ones_come_in_any_order_of_observe() {
    let mut client = endpoint(Config::default());
    let get = ask_verified(&mut client, 1, observe());
    assert_eq!(responses(&receive(&mut client, &state(&get, 1, 10), T0)), 1);
    accept(&mut client, true);
    assert_eq!(client.next_deadline(), None, "the layer that verifies registers again");
    let later = T0 + Duration::from_secs(1);
    for (id, sequence) in [(2, 5), (3, 900), (4, 11)] {
        assert_eq!(responses(&receive(&mut client, &state(&get, id, sequence), later)), 1);
    }
    accept(&mut client, false);
    assert_eq!(client.open(), 0);
}
