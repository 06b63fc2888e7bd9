//! A server over datagrams: what comes to it, what leaves, and an application that answers.

use super::*;

pub(super) type Server<P> = Host<P, Endpoint<P>>;

/// What a server wants now: requests for its application, and the messages that leave.
pub(super) type Wants<P> = (Vec<(IncomingId, P)>, Vec<(P, Message)>);

/// A request under a token of its own.
pub(super) fn get(kind: Kind, id: u16, path: &str) -> Message {
    let mut get = Message::new(kind, Code::GET, MessageId(id));
    get.token = Token::from_number(id.into(), 4);
    get.options.insert_path(path);
    get
}

/// A request that observes, under a token of its own.
pub(super) fn register(kind: Kind, path: &str, token: u64) -> Message {
    let mut get = get(kind, token as u16, path);
    get.token = Token::from_number(token, 8);
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    get
}

/// A response that agrees to an observation.
pub(super) fn state(payload: &[u8]) -> ResponseTemplate {
    let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(payload.to_vec());
    response.options.insert_uint(OptionNumber::OBSERVE, 0);
    response
}

pub(super) fn hear<P: PeerAddress>(
    server: &mut Server<P>,
    from: P,
    message: &Message,
    now: Instant,
) {
    let bytes = message.to_vec();
    server.handle(now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
}

/// A client acknowledges a message.
pub(super) fn acknowledge<P: PeerAddress>(
    server: &mut Server<P>,
    from: P,
    message: &Message,
    now: Instant,
) {
    hear(server, from, &Message::new(Kind::Acknowledgement, Code::EMPTY, message.message_id), now);
}

pub(super) fn wants<P: PeerAddress>(server: &mut Server<P>) -> Wants<P> {
    let (mut asked, mut sent) = (Vec::new(), Vec::new());
    while let Some(output) = server.poll_output() {
        match output {
            Output::Request { exchange, from, .. } => asked.push((exchange, from)),
            Output::Send { to, bytes, .. } => {
                sent.push((to, Message::parse(&bytes).expect("own bytes")));
            }
            _ => {}
        }
    }
    (asked, sent)
}

/// The only request that the application gets now, before anything leaves.
pub(super) fn asked<P: PeerAddress>(server: &mut Server<P>) -> IncomingId {
    let (asked, sent) = wants(server);
    assert_eq!((asked.len(), sent.len()), (1, 0));
    asked[0].0
}

/// The application answers.
pub(super) fn respond<P: PeerAddress>(
    server: &mut Server<P>,
    exchange: IncomingId,
    response: ResponseTemplate,
    now: Instant,
) {
    let input = Input::Respond { exchange, response, handle: Handle::NONE };
    server.handle(now, input).expect("acceptable");
}

/// Answers every request, until the application is asked nothing more; returns what leaves.
pub(super) fn answer_with<P: PeerAddress>(
    server: &mut Server<P>,
    response: &ResponseTemplate,
    now: Instant,
) -> Vec<(P, Message)> {
    let mut sent = Vec::new();
    loop {
        let (asked, left) = wants(server);
        sent.extend(left);
        if asked.is_empty() {
            return sent;
        }
        for (exchange, _) in asked {
            respond(server, exchange, response.clone(), now);
        }
    }
}

/// Answers every request with a state.
pub(super) fn answer_all<P: PeerAddress>(
    server: &mut Server<P>,
    payload: &[u8],
    now: Instant,
) -> Vec<(P, Message)> {
    answer_with(server, &state(payload), now)
}
