//! Requests to groups by RFC 10020: repetition, tokens, several answers, observation, bounds, congestion.

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber, Token};

use super::super::*;
use super::*;
use crate::Leisure;
use crate::exchange::Repetition;
use crate::params::{
    DEFAULT_LEISURE, GROUP_MEMBERS_MAX, GROUP_MEMBERS_PER_SOURCE, GROUP_RESPONSES_PER_MEMBER,
};

const GROUP: u16 = 0xff02;
const WAIT: Duration = Duration::from_secs(10);
const NAME: Name = Name::Application(Handle(1));

fn input(message: RequestTemplate, handle: u64) -> Input<'static, u16> {
    let handle = Name::Application(Handle(handle));
    Input::Group(GroupInput::Request { group: GROUP, message, wait: WAIT, handle })
}

fn ask_group(endpoint: &mut Endpoint<u16>, message: RequestTemplate, now: Instant) -> Message {
    endpoint.handle(now, input(message, 1)).expect("acceptable");
    sent(&outputs(endpoint)).remove(0)
}

fn repeat(endpoint: &mut Endpoint<u16>, repetition: Repetition, now: Instant) -> Message {
    let input = Input::Group(GroupInput::Repeat { handle: NAME, repetition, wait: WAIT });
    endpoint.handle(now, input).expect("it is open");
    sent(&outputs(endpoint)).remove(0)
}

fn hear(
    endpoint: &mut Endpoint<u16>,
    member: u16,
    message: &Message,
    now: Instant,
) -> Vec<Output<u16>> {
    endpoint.handle(now, Input::Datagram { from: member, bytes: &message.to_vec() }).expect("ok");
    outputs(endpoint)
}

fn answer(get: &Message, id: u16) -> Message {
    let mut answer = response_to(get, Kind::NonConfirmable);
    answer.message_id = MessageId(id);
    answer
}

fn notification(get: &Message, id: u16, sequence: u32) -> Message {
    let mut answer = answer(get, id);
    answer.options.insert_uint(OptionNumber::OBSERVE, sequence);
    answer
}

fn observe(value: u32) -> RequestTemplate {
    let mut message = RequestTemplate::get("/t");
    message.options.insert_uint(OptionNumber::OBSERVE, value);
    message
}

fn group_responses(outputs: &[Output<u16>]) -> usize {
    outputs.iter().filter(|one| matches!(one, Output::GroupResponse { .. })).count()
}

#[test]
fn a_repetition_has_the_same_token_and_the_message_id_that_reaches_whom_it_should() {
    let mut client = endpoint(Config::default());
    let first = ask_group(&mut client, RequestTemplate::get("/t"), T0);
    let same = repeat(&mut client, Repetition::SameMessage, T0);
    assert_eq!(same, first, "members that it has reached take it for a duplicate");
    let new = repeat(&mut client, Repetition::NewMessage, T0);
    assert_eq!(new.token, first.token);
    assert_ne!(new.message_id, first.message_id);
    assert_eq!(Message { message_id: first.message_id, ..new }, first);
}

#[test]
fn a_repetition_makes_the_wait_longer_and_is_refused_once_the_request_is_over() {
    let mut client = endpoint(Config::default());
    ask_group(&mut client, RequestTemplate::get("/t"), T0);
    let later = Instant::from_secs(4);
    repeat(&mut client, Repetition::NewMessage, later);
    let (now, out) = wake(&mut client);
    assert_eq!((now, &out[..]), (later + WAIT, &[Output::Over { handle: NAME }][..]));
    let input =
        GroupInput::Repeat { handle: NAME, repetition: Repetition::SameMessage, wait: WAIT };
    let refused = client.handle(now, Input::Group(input));
    assert!(matches!(refused, Err(Rejected::Gone { .. })), "{refused:?}");
}

#[test]
fn a_member_may_answer_each_repetition_up_to_its_bound() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, RequestTemplate::get("/t"), T0);
    for id in 0..GROUP_RESPONSES_PER_MEMBER as u16 {
        assert_eq!(group_responses(&hear(&mut client, 3, &answer(&get, id), T0)), 1);
    }
    let excess = hear(&mut client, 3, &answer(&get, 900), T0);
    assert_eq!((discards(&excess), group_responses(&excess)), (vec![Discard::Overloaded], 0));
    assert_eq!(group_responses(&hear(&mut client, 4, &answer(&get, 900), T0)), 1, "another one");
}

#[test]
fn a_source_has_its_share_of_members_and_all_sources_have_the_total() {
    let rng = Rng::stream(Seed(11), NodeId(1), Stream::Coap);
    let mut client: Endpoint<(u8, u16)> = Endpoint::new(Config::default(), rng).expect("possible");
    let message = RequestTemplate::get("/t");
    let (group, wait, handle) = ((0xff, 5683), WAIT, NAME);
    let request = GroupInput::Request { group, message, wait, handle };
    client.handle(T0, Input::Group(request)).expect("acceptable");
    let mut next = || core::iter::from_fn(|| client.poll_output()).collect::<Vec<_>>();
    let get = next().into_iter().find_map(|one| match one {
        Output::Send { bytes, .. } => Message::parse(&bytes).ok(),
        _ => None,
    });
    let bytes = response_to(&get.expect("it has left"), Kind::NonConfirmable).to_vec();
    let mut heard = |from| {
        client.handle(T0, Input::Datagram { from, bytes: &bytes }).expect("never fails");
        core::iter::from_fn(|| client.poll_output())
            .any(|one| matches!(one, Output::GroupResponse { .. }))
    };
    let mut members = 0;
    for source in 1..=6 {
        let of_source = (1..=300).filter(|port| heard((source, *port))).count();
        assert!(of_source <= GROUP_MEMBERS_PER_SOURCE, "{of_source}");
        members += of_source;
    }
    assert_eq!(members, GROUP_MEMBERS_MAX);
}

#[test]
fn a_token_is_not_used_again_while_late_answers_may_come() {
    let mut client = endpoint(Config::default());
    let chosen = || RequestTemplate::get("/t").with_token(Token::from_number(5, 3));
    let get = ask_group(&mut client, chosen(), T0);
    hear(&mut client, 1, &answer(&get, 1), T0);
    let (over, _) = wake(&mut client);
    assert!(client.handle(over, input(chosen(), 2)).is_err(), "a member may still answer");
    let unicast = Input::Request { peer: PEER, message: chosen(), handle: NAME };
    assert!(client.handle(over, unicast).is_err(), "its answer may come from this peer");
    // RFC 10020 s3.1.5: 145 s + 100 s + 250 s.
    let free = over + Duration::from_secs(495);
    assert_eq!(ask_group(&mut client, chosen(), free).token, get.token);
}

#[test]
fn the_next_request_to_a_group_waits_for_the_first_answer_to_the_one_before() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, RequestTemplate::get("/t"), T0);
    client.handle(T0, input(RequestTemplate::get("/u"), 2)).expect("acceptable");
    assert_eq!(sent(&outputs(&mut client)), [], "NSTART is 1");
    let out = hear(&mut client, 1, &answer(&get, 1), T0);
    assert_eq!((group_responses(&out), sent(&out).len()), (1, 1));
    assert_ne!(sent(&out)[0].token, get.token);
}

#[test]
fn a_silent_group_is_asked_no_faster_than_the_probing_rate() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, RequestTemplate::get("/t"), T0);
    client.handle(T0, input(RequestTemplate::get("/u"), 2)).expect("acceptable");
    outputs(&mut client);
    let (now, out) = wake(&mut client);
    assert_eq!(now, T0 + WAIT);
    assert!(out.contains(&Output::Over { handle: NAME }));
    let probing = Duration::from_secs(get.to_vec().len() as u64);
    assert_eq!(sent(&out).len(), usize::from(probing <= WAIT));
    let long = RequestTemplate::get("/t").with_payload(vec![7; 60]);
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, long, T0);
    client.handle(T0, input(RequestTemplate::get("/u"), 2)).expect("acceptable");
    outputs(&mut client);
    let (now, out) = wake(&mut client);
    assert_eq!((now, sent(&out).len()), (T0 + WAIT, 0));
    let (now, out) = wake(&mut client);
    assert_eq!(now, T0 + Duration::from_secs(get.to_vec().len() as u64));
    assert_eq!(sent(&out).len(), 1);
}

#[test]
fn the_members_of_a_group_are_observed_each_in_its_own_order() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, observe(0), T0);
    let mut later = T0;
    for (member, id, sequence, news) in
        [(1, 1, 9, true), (2, 2, 4, true), (1, 3, 8, false), (2, 4, 5, true), (1, 5, 10, true)]
    {
        later += Duration::from_secs(1);
        let out = hear(&mut client, member, &notification(&get, id, sequence), later);
        assert_eq!(group_responses(&out), usize::from(news), "{member} {sequence}");
        assert_eq!(discards(&out), if news { vec![] } else { vec![Discard::Stale] });
    }
    let (_, out) = wake(&mut client);
    assert_eq!(out, [], "the wait is over, the observation is not");
    assert_eq!(client.next_deadline(), None);
    for id in 0..3 * GROUP_RESPONSES_PER_MEMBER as u16 {
        let later = Instant::from_secs(1000 + u64::from(id));
        let out = hear(&mut client, 1, &notification(&get, 100 + id, 20 + u32::from(id)), later);
        assert_eq!(group_responses(&out), 1, "notifications are not counted");
    }
    client.handle(Instant::from_secs(2000), Input::Cancel { handle: NAME }).expect("ok");
    let out = hear(&mut client, 2, &notification(&get, 999, 90), Instant::from_secs(2001));
    assert_eq!((group_responses(&out), sent(&out)[0].kind), (0, Kind::Reset), "RFC 7641 s3.6");
}

#[test]
fn an_observation_of_a_group_is_registered_again_or_ended_under_its_token() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, observe(0), T0);
    hear(&mut client, 1, &notification(&get, 1, 1), T0);
    wake(&mut client);
    let now = Instant::from_secs(60);
    let again = repeat(&mut client, Repetition::NewMessage, now);
    assert_eq!(again.token, get.token);
    assert_eq!(again.options.get_uint(OptionNumber::OBSERVE), Some(0));
    let end = observe(1).with_token(get.token.clone());
    client.handle(now, input(end, 2)).expect("it takes the token over");
    let end = sent(&outputs(&mut client)).remove(0);
    assert_eq!((&end.token, end.options.get_uint(OptionNumber::OBSERVE)), (&get.token, Some(1)));
    let (_, out) = wake(&mut client);
    assert_eq!(out, [Output::Over { handle: Name::Application(Handle(2)) }]);
}

#[test]
fn the_answers_to_a_new_registration_of_a_group_are_newer_whatever_their_numbers() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client, observe(0), T0);
    hear(&mut client, 1, &notification(&get, 1, 1000), T0);
    hear(&mut client, 2, &notification(&get, 2, 7), T0);
    wake(&mut client);
    let now = Instant::from_secs(60);
    let hears = |client: &mut _, member, id, sequence| {
        let out = hear(client, member, &notification(&get, id, sequence), now);
        group_responses(&out) == 1
    };
    repeat(&mut client, Repetition::SameMessage, now);
    assert!(!hears(&mut client, 1, 3, 2), "no member has to answer that");
    repeat(&mut client, Repetition::NewMessage, now);
    assert!(hears(&mut client, 1, 4, 2), "it has started again");
    assert!(hears(&mut client, 1, 5, 3) && !hears(&mut client, 1, 6, 2));
    assert!(hears(&mut client, 2, 7, 8) && !hears(&mut client, 2, 8, 7));
}

#[test]
fn leisure_follows_the_size_of_the_answer_and_of_the_group() {
    let wait = |leisure, payload: usize, id| {
        let mut server = endpoint(Config { leisure, ..Config::default() });
        let bytes = request(Kind::NonConfirmable, id).to_vec();
        let input = Input::Group(GroupInput::Datagram { from: PEER, bytes: &bytes });
        server.handle(T0, input).expect("never fails");
        let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!() };
        let response = ResponseTemplate::new(Code::CONTENT).with_payload(vec![1; payload]);
        server.handle(T0, Input::Respond { exchange, response, handle: NAME }).expect("ok");
        wake(&mut server).0.since(T0)
    };
    for id in 0..10 {
        assert!(wait(Leisure::of_members(5), 73, id) < Duration::from_millis(400));
        assert!(wait(Leisure::Fixed(Duration::ZERO), 500, id).is_zero());
        // The same draw of another leisure.
        let ratio = wait(Leisure::default(), 0, id).as_secs_f64()
            / wait(Leisure::Fixed(DEFAULT_LEISURE * 2), 0, id).as_secs_f64();
        assert!((ratio - 0.5).abs() < 1e-6, "{ratio}");
    }
}

#[test]
fn a_challenge_reaches_a_client_by_multicast_unless_it_wants_no_errors() {
    for (id, no_response, answered) in [(1, None, true), (2, Some(8), false), (3, Some(0), true)] {
        let mut server = endpoint(Config::default());
        let mut get = request(Kind::NonConfirmable, id);
        if let Some(value) = no_response {
            get.options.insert_uint(OptionNumber::NO_RESPONSE, value);
        }
        let bytes = get.to_vec();
        let input = Input::Group(GroupInput::Datagram { from: PEER, bytes: &bytes });
        server.handle(T0, input).expect("never fails");
        let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!() };
        let response =
            ResponseTemplate::new(Code::UNAUTHORIZED).with_option(OptionNumber::ECHO, &[1, 2]);
        server.handle(T0, Input::Respond { exchange, response, handle: NAME }).expect("ok");
        assert_eq!(server.next_deadline().is_some(), answered, "{no_response:?}");
    }
}

#[test]
fn without_a_probing_rate_the_application_paces_requests_to_a_silent_group() {
    let config = Config { group_probing_rate: None, ..Config::default() };
    let mut client = endpoint(config);
    for second in 0..40 {
        let now = Instant::from_secs(second);
        let group = GroupInput::Request {
            group: GROUP,
            message: RequestTemplate::get("/t"),
            wait: Duration::ZERO,
            handle: NAME,
        };
        client.handle(now, Input::Group(group)).expect("acceptable");
        assert_eq!(sent(&outputs(&mut client)).len(), 1, "{second} s");
        assert_eq!(wake(&mut client), (now, vec![Output::Over { handle: NAME }]));
    }
}
