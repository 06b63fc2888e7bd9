//! Which registration of an observation a protected message answers (RFC 8613 s7.3, s7.4.1): each has a Partial IV of its
//! own, to which its answer and its notifications are bound.

use lowmesh_wire::coap::{Kind, MessageId};

use super::outer::{context, end};
use super::*;
use crate::{Received, SecurityContext};

const SERVER: u8 = 2;

/// A client that observes, and the keys of its server.
struct Observed {
    client: Side,
    server: SecurityContext,
    now: Instant,
    id: u16,
}

impl Observed {
    fn new() -> Self {
        let client = end("client", "server", OwnRequests::Context(0), Plain::Refused);
        let server = context("server", "client");
        Self { client, server, now: Instant::from_secs(1), id: 0x7000 }
    }
    /// The registration that leaves now.
    fn registration(&mut self) -> (Message, Received) {
        let sent = self.sent();
        let message = sent.into_iter().next().expect("a registration");
        let (request, received) =
            self.server.unprotect_request(&StreamMessage::from(&message)).expect("valid");
        assert_eq!(request.options.get_uint(OptionNumber::OBSERVE), Some(0));
        (message, received)
    }
    /// What leaves; what the application hears is put away.
    fn sent(&mut self) -> Vec<Message> {
        let outputs = core::iter::from_fn(|| self.client.poll_output());
        let sent = outputs.filter_map(|one| match one {
            Output::Send { bytes, .. } => Some(Message::parse(&bytes).expect("our own")),
            _ => None,
        });
        sent.collect()
    }
    /// A protected state under a registration.
    fn state(&mut self, received: &mut Received, code: Code, text: &str) -> StreamMessage {
        if let Some(reservation) = self.server.reservation_needed() {
            self.server.confirm(reservation);
        }
        let mut state = StreamMessage::new(code);
        if code == Code::CONTENT {
            state.options.insert(OptionNumber::OBSERVE, &[]);
        }
        state.payload = text.as_bytes().to_vec();
        self.server.protect_response(received, &state).expect("plain")
    }
    /// The payloads that the application hears when a message comes, in an ACK or by itself.
    fn hears(&mut self, to: &Message, state: &StreamMessage, acknowledges: bool) -> Vec<String> {
        let StreamMessage { code, options, payload, .. } = state.clone();
        self.id += 1;
        let (kind, message_id) = if acknowledges {
            (Kind::Acknowledgement, to.message_id)
        } else {
            (Kind::NonConfirmable, MessageId(self.id))
        };
        let message = Message { kind, message_id, code, token: to.token.clone(), options, payload };
        let bytes = message.to_vec();
        self.client.handle(self.now, Input::Datagram { from: SERVER, bytes: &bytes }).expect("ok");
        let outputs = core::iter::from_fn(|| self.client.poll_output());
        let heard = outputs.filter_map(|one| match one {
            Output::Notification { message, .. } | Output::Response { message, .. } => {
                Some(String::from_utf8(message.payload).expect("text"))
            }
            _ => None,
        });
        heard.collect()
    }
    /// The next messages that the client sends by itself.
    fn next_sent(&mut self) -> Vec<Message> {
        loop {
            let due = self.client.next_deadline().expect("something is due");
            self.now = self.now.max(due);
            self.client.handle(self.now, Input::Deadline).expect("never fails");
            let sent = self.sent();
            if !sent.is_empty() {
                return sent;
            }
        }
    }
    /// A registration that was answered, and the next one, which is not.
    fn registering_again(&mut self) -> ((Message, Received), (Message, Received)) {
        let mut get = RequestTemplate::get("/state");
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        let input = Input::Request { peer: SERVER, message: get, handle: Handle(7) };
        self.client.handle(self.now, input).expect("acceptable");
        let (first, mut under_first) = self.registration();
        let state = self.state(&mut under_first, Code::CONTENT, "first");
        assert_eq!(self.hears(&first, &state, true), ["first"]);
        let again = self.next_sent().remove(0);
        let (_, under_again) =
            self.server.unprotect_request(&StreamMessage::from(&again)).expect("valid");
        ((first, under_first), (again, under_again))
    }
}

#[test]
fn each_registration_of_an_observation_meets_a_challenge_in_the_open() {
    let mut world = Observed::new();
    let (_, (mut again, mut received)) = world.registering_again();
    for round in 0..2 {
        let mut challenge = StreamMessage::new(Code::UNAUTHORIZED);
        challenge.options.insert(OptionNumber::ECHO, &[round; 8]);
        assert!(world.hears(&again, &challenge, true).is_empty());
        // Here a copy of it; the first one has left at once.
        let met = world.next_sent().remove(0);
        assert_eq!(met.options.get(OptionNumber::ECHO), Some(&[round; 8][..]), "{round}");
        assert_eq!((&met.payload, &met.token), (&again.payload, &again.token));
        let answer = world.state(&mut received, Code::CONTENT, "here");
        assert_eq!(world.hears(&met, &answer, true), ["here"]);
        again = world.next_sent().remove(0);
        let outer = StreamMessage::from(&again);
        received = world.server.unprotect_request(&outer).expect("valid").1;
    }
}

#[test]
fn a_notification_of_an_earlier_registration_is_no_answer_to_the_next_one() {
    let mut world = Observed::new();
    let ((first, mut under_first), (again, mut under_again)) = world.registering_again();
    let delayed = world.state(&mut under_first, Code::CONTENT, "delayed");
    assert_eq!(world.hears(&first, &delayed, false), ["delayed"], "it is news");
    let copy = world.next_sent().remove(0);
    assert_eq!(copy, again, "the registration is still to be answered");
    let answer = world.state(&mut under_again, Code::CONTENT, "answer");
    assert_eq!(world.hears(&again, &answer, true), ["answer"]);
}

#[test]
fn an_error_of_an_earlier_registration_does_not_end_the_next_one() {
    let mut world = Observed::new();
    let ((first, mut under_first), (again, mut under_again)) = world.registering_again();
    let delayed = world.state(&mut under_first, Code::NOT_FOUND, "gone");
    assert!(world.hears(&first, &delayed, false).is_empty());
    let answer = world.state(&mut under_again, Code::CONTENT, "here again");
    assert_eq!(world.hears(&again, &answer, true), ["here again"]);
}

#[test]
fn what_an_earlier_registration_brought_is_older_than_the_answer_to_the_next_one() {
    let mut world = Observed::new();
    let ((first, mut under_first), (again, mut under_again)) = world.registering_again();
    let delayed = world.state(&mut under_first, Code::CONTENT, "delayed");
    let answer = world.state(&mut under_again, Code::CONTENT, "answer");
    assert_eq!(world.hears(&again, &answer, true), ["answer"]);
    assert!(world.hears(&first, &delayed, false).is_empty());
    let next = world.state(&mut under_again, Code::CONTENT, "next");
    assert_eq!(world.hears(&again, &next, false), ["next"]);
}
