//! Whole exchanges: one asks all, all answer, and who has said what is known.

use super::*;
use crate::{Header, ProtectError, Refusal, ResponseError};

/// What the OSCORE option of a message says.
fn header(message: &StreamMessage) -> Header<'_> {
    let value = message.options.get(OptionNumber::OSCORE).expect("a protected message");
    Header::parse(value).expect("our own")
}

#[test]
fn all_members_answer_one_request_and_each_answer_has_its_member() {
    for algorithm in SignatureAlgorithm::ALL {
        for responses in [Mode::Group, Mode::Pairwise] {
            let all = |number| member(algorithm, number, 4, responses);
            let mut client = all(0);
            let (request, mut pending) = client.protect_request(None, &get("/t")).expect("plain");
            assert!(header(&request).group && header(&request).kid_context == Some(b"group"));
            for number in [3, 1, 2] {
                let mut server = all(number);
                let (opened, mut received) = server.unprotect_request(&request).expect("fresh");
                assert_eq!((opened, received.from()), (get("/t"), identity(0)));
                let answer = content(&[number]);
                let outer = server.protect_response(&mut received, &answer).expect("plain");
                // RFC 10021 s3.2: the kid of a response to a request in group mode.
                assert_eq!(header(&outer).kid, Some(&[number][..]));
                assert_eq!(header(&outer).group, responses == Mode::Group);
                assert_eq!(header(&outer).partial_iv, None, "the first one needs none");
                let opened = client.unprotect_response(&mut pending, &outer).expect("fresh");
                assert_eq!((opened.from, opened.response), (identity(number), answer));
            }
        }
    }
}

#[test]
fn a_request_in_pairwise_mode_is_for_one_member_who_alone_can_open_it() {
    let (mut client, mut servers) = group(2);
    let (request, mut pending) =
        client.protect_request(Some(identity(1)), &get("/t")).expect("a member");
    assert!(!header(&request).group);
    assert_eq!(servers[1].unprotect_request(&request).expect_err("for another"), Refusal::Forged);
    let (_, mut received) = servers[0].unprotect_request(&request).expect("fresh");
    let outer = servers[0].protect_response(&mut received, &content(b"1")).expect("plain");
    assert_eq!(header(&outer).kid, None, "the client knows whom it has asked");
    let answer = client.unprotect_response(&mut pending, &outer).expect("fresh");
    assert_eq!(answer.from, identity(1));
    // To one member there is one response.
    let outer = servers[0].protect_response(&mut received, &content(b"2")).expect("plain");
    assert_eq!(client.unprotect_response(&mut pending, &outer), Err(ResponseError::Replay));
    let nobody = client.protect_request(Some(identity(9)), &get("/t"));
    assert_eq!(nobody.expect_err("no member"), ProtectError::UnknownMember);
}

#[test]
fn a_pairwise_response_is_64_octets_shorter() {
    let len = |responses| {
        let mut client = member(SignatureAlgorithm::EdDsa, 0, 2, responses);
        let mut server = member(SignatureAlgorithm::EdDsa, 1, 2, responses);
        let (request, _) = client.protect_request(None, &get("/t")).expect("plain");
        let (_, mut received) = server.unprotect_request(&request).expect("fresh");
        server.protect_response(&mut received, &content(b"1")).expect("plain").payload.len()
    };
    assert_eq!(len(Mode::Group) - len(Mode::Pairwise), 64);
}

#[test]
fn later_responses_of_a_member_have_numbers_and_come_in_their_order() {
    let (mut client, mut servers) = group(2);
    let (request, mut pending) = client.protect_request(None, &get("/t")).expect("plain");
    let (_, mut received) = servers[0].unprotect_request(&request).expect("fresh");
    let mut answer =
        |server: &mut Group| server.protect_response(&mut received, &content(b"1")).expect("plain");
    let [first, second, third] = [(); 3].map(|()| answer(&mut servers[0]));
    assert!(header(&first).partial_iv.is_none() && header(&second).partial_iv.is_some());
    let mut take = |outer: &StreamMessage| client.unprotect_response(&mut pending, outer).is_ok();
    assert!(take(&first));
    assert!(!take(&first), "a replay");
    assert!(take(&third));
    assert!(!take(&third) && !take(&second), "a replay, and an older one");
    // The other member has numbers of its own.
    let (_, mut received) = servers[1].unprotect_request(&request).expect("fresh");
    let other = servers[1].protect_response(&mut received, &content(b"2")).expect("plain");
    assert!(take(&other));
}

#[test]
fn the_members_of_a_group_are_observed_each_in_its_order() {
    let (mut client, mut servers) = group(2);
    let (request, mut pending) =
        client.protect_request(None, &observe(get("/t"), 0)).expect("plain");
    for (number, server) in (1..).zip(&mut servers) {
        let (opened, mut received) = server.unprotect_request(&request).expect("fresh");
        assert_eq!(opened.options.get_uint(OptionNumber::OBSERVE), Some(0));
        let mut tell = |value| {
            let state = observe(content(&[number]), value);
            server.protect_response(&mut received, &state).expect("plain")
        };
        let [first, second, third] = [7, 8, 9].map(&mut tell);
        let mut take = |outer: &StreamMessage| client.unprotect_response(&mut pending, outer);
        let order = |answer: Result<crate::group::Answer, ResponseError>| {
            answer.map(|one| one.response.options.get_uint(OptionNumber::OBSERVE))
        };
        assert_eq!(order(take(&first)), Ok(Some(1)));
        assert_eq!(order(take(&third)), Ok(Some(2)));
        assert_eq!(order(take(&second)), Err(ResponseError::Replay));
        // What is no notification ends the observation of this member.
        let last = server.protect_response(&mut received, &content(b"end")).expect("plain");
        assert!(client.unprotect_response(&mut pending, &last).is_ok());
        let late = server.protect_response(&mut received, &content(b"late")).expect("plain");
        assert_eq!(client.unprotect_response(&mut pending, &late), Err(ResponseError::Replay));
    }
}

#[test]
fn a_message_of_the_other_context_is_not_taken() {
    let (mut client, mut servers) = group(1);
    let text = "master_secret,hex,07070707070707070707070707070707\nid_context,ascii,group\n\
                sender_id,hex,01\nrecipient_id,hex,00\n";
    let mut alone = crate::Configuration::parse(text).expect("our own").contexts().remove(0);
    let (request, _) = client.protect_request(None, &get("/t")).expect("plain");
    assert_eq!(
        alone.unprotect_request(&request).expect_err("in group mode"),
        Refusal::UnknownContext
    );
    let (request, _) = client.protect_request(Some(identity(1)), &get("/t")).expect("a member");
    assert_eq!(alone.unprotect_request(&request).expect_err("other keys"), Refusal::Forged);
    // The member's own request, in the group: it is no recipient.
    let (own, _) = servers[0].protect_request(None, &get("/t")).expect("plain");
    assert_eq!(servers[0].unprotect_request(&own).expect_err("its own"), Refusal::UnknownContext);
}
