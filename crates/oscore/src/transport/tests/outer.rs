//! Protected messages that a proxy cuts into blocks (RFC 8613 s4.1.3.4.2): a client, a proxy without keys, and a server.

use lowmesh_coap::blockwise::{Block, Exponent};
use lowmesh_coap::proxy::{back, forward};
use lowmesh_wire::coap::{Kind, MessageId};

use super::*;
use crate::params::MAX_UNFRAGMENTED_SIZE;

const PROXY: u8 = 1;
const SERVER: u8 = 2;

/// A context of two.
pub(super) fn context(ours: &str, theirs: &str) -> crate::SecurityContext {
    let text =
        format!("master_secret,ascii,secret\nsender_id,ascii,{ours}\nrecipient_id,ascii,{theirs}");
    let contexts = crate::Configuration::parse(&text).expect("our own").contexts();
    contexts.into_iter().next().expect("one")
}

/// One end of a context of two.
pub(super) fn end(ours: &str, theirs: &str, own_requests: OwnRequests<u8>, plain: Plain) -> Side {
    let limits = HostLimits { amplification_max: None, ..HostLimits::default() };
    end_with(ours, theirs, own_requests, plain, limits)
}

fn end_with(
    ours: &str,
    theirs: &str,
    own_requests: OwnRequests<u8>,
    plain: Plain,
    limits: HostLimits,
) -> Side {
    let contexts = VolatileContexts::new(Contexts::new(vec![context(ours, theirs)]));
    let protection = Protection { contexts, own_requests, plain_requests: plain };
    let rng = Rng::stream(Seed(6), NodeId(ours.len() as u16), Purpose::Coap);
    over_datagrams(Config::default(), limits, Some(protection), rng).expect("possible")
}

type Plainly = Host<u8, Endpoint<u8>>;

/// A side of a proxy: it lets what is protected pass.
fn half(exponent: Exponent, amplification_max: Option<usize>) -> Plainly {
    let config =
        Config { extensions: vec![OptionNumber::OSCORE], proxy: true, ..Config::default() };
    let limits = HostLimits { exponent, amplification_max, ..HostLimits::default() };
    let rng = Rng::stream(Seed(7), NodeId(3), Purpose::Coap);
    Host::over_datagrams(config, limits, rng).expect("possible")
}

/// What goes through a proxy.
struct Relayed {
    client: Side,
    /// Towards the client and towards the server.
    proxy: [Plainly; 2],
    server: Side,
    now: Instant,
    state: Vec<u8>,
    /// What the proxy was asked and has not answered, by the handle of its own request.
    asked: BTreeMap<Handle, IncomingId>,
    /// What the application of the server was asked.
    served: Vec<Message>,
    /// Messages with a block option outside: to the client, and to the server.
    blocks: [usize; 2],
    /// Requests that the client has sent.
    requests: usize,
    /// The block of a request that the server answers with a challenge in the open, once.
    challenged: Option<u32>,
}

impl Relayed {
    /// A proxy that sends blocks of these sizes to the client and to the server.
    fn new(to_client: Exponent, to_server: Exponent) -> Self {
        Self {
            client: end("client", "server", OwnRequests::Context(0), Plain::Refused),
            proxy: [half(to_client, None), half(to_server, None)],
            server: end("server", "client", OwnRequests::Plain, Plain::Refused),
            now: Instant::from_secs(1),
            state: Vec::new(),
            asked: BTreeMap::new(),
            served: Vec::new(),
            blocks: [0; 2],
            requests: 0,
            challenged: None,
        }
    }
    fn ask(&mut self, message: RequestTemplate) -> Vec<Output<u8>> {
        let mut message = message;
        message.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
        message.options.insert(OptionNumber::URI_HOST, b"server");
        let input = Input::Request { peer: PROXY, message, handle: Handle(7) };
        self.client.handle(self.now, input).expect("acceptable");
        self.settle()
    }
    fn count(&mut self, receiver: usize, bytes: &[u8]) {
        let message = Message::parse(bytes).expect("our own");
        let options = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];
        self.blocks[receiver] +=
            usize::from(options.iter().any(|option| message.options.get(*option).is_some()));
    }
    /// Lets all happen that happens at once; what the client hears.
    fn settle(&mut self) -> Vec<Output<u8>> {
        let (now, mut heard) = (self.now, Vec::new());
        loop {
            if let Some(output) = self.client.poll_output() {
                match output {
                    Output::Send { bytes, .. } => {
                        self.requests += 1;
                        let input = Input::Datagram { from: CLIENT, bytes: &bytes };
                        self.proxy[0].handle(now, input).expect("never fails");
                    }
                    Output::Started { .. } | Output::Acknowledged { .. } => {}
                    other => heard.push(other),
                }
            } else if let Some(output) = self.proxy[0].poll_output() {
                match output {
                    Output::Send { bytes, .. } => {
                        self.count(0, &bytes);
                        let input = Input::Datagram { from: PROXY, bytes: &bytes };
                        self.client.handle(now, input).expect("never fails");
                    }
                    Output::Request { exchange, message, .. } => self.relay(exchange, &message),
                    _ => {}
                }
            } else if let Some(output) = self.proxy[1].poll_output() {
                match output {
                    Output::Send { bytes, .. } => {
                        self.count(1, &bytes);
                        if let Some(challenge) = self.challenge(&bytes) {
                            let input = Input::Datagram { from: SERVER, bytes: &challenge };
                            self.proxy[1].handle(now, input).expect("never fails");
                            continue;
                        }
                        let input = Input::Datagram { from: PROXY, bytes: &bytes };
                        self.server.handle(now, input).expect("never fails");
                    }
                    Output::Response { handle, message, .. } => {
                        let response = back(message, |_| false).expect("nothing unsafe");
                        let exchange = self.asked.remove(&handle).expect("it was asked");
                        let input = Input::Respond { exchange, response, handle: Handle::NONE };
                        self.proxy[0].handle(now, input).expect("acceptable");
                    }
                    Output::Failed { reason, .. } => panic!("the proxy: {}", reason.name()),
                    _ => {}
                }
            } else if let Some(output) = self.server.poll_output() {
                match output {
                    Output::Send { bytes, .. } => {
                        let input = Input::Datagram { from: SERVER, bytes: &bytes };
                        self.proxy[1].handle(now, input).expect("never fails");
                    }
                    Output::Request { exchange, message, .. } => {
                        self.served.push(message);
                        let response =
                            ResponseTemplate::new(Code::CONTENT).with_payload(self.state.clone());
                        let input = Input::Respond { exchange, response, handle: Handle::NONE };
                        self.server.handle(now, input).expect("acceptable");
                    }
                    _ => {}
                }
            } else {
                return heard;
            }
        }
    }
    /// What a server that wants a proof first answers to a block.
    fn challenge(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let request = Message::parse(bytes).expect("our own");
        let block = Block::read(request.options.iter(), OptionNumber::BLOCK1).expect("proper")?;
        self.challenged = Some(self.challenged?).filter(|number| *number != block.number);
        if self.challenged.is_some() {
            return None;
        }
        let kind = Kind::Acknowledgement;
        let mut challenge = Message::new(kind, Code::UNAUTHORIZED, request.message_id);
        challenge.token = request.token;
        challenge.options.insert(OptionNumber::ECHO, b"value");
        Some(challenge.to_vec())
    }
    fn relay(&mut self, exchange: IncomingId, message: &Message) {
        let handle = Handle(100 + self.asked.len() as u64);
        self.asked.insert(handle, exchange);
        let message = forward(message, |_| false).expect("it names a target").request;
        let input = Input::Request { peer: SERVER, message, handle };
        self.proxy[1].handle(self.now, input).expect("acceptable");
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| at as u8).collect()
}

/// The only response that has come.
fn response(heard: &[Output<u8>]) -> &Message {
    match heard {
        [Output::Response { message, .. }] => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bodies_of_any_length_go_through_a_proxy_that_cuts_what_is_protected() {
    let sizes = [Exponent::MIN, Exponent::new(3).expect("small"), Exponent::MAX];
    for (len, size) in
        [0, 600, 1024, 1025, 5000].into_iter().flat_map(|len| sizes.map(|one| (len, one)))
    {
        let mut world = Relayed::new(size, size);
        world.state = body(len);
        let put = RequestTemplate::new(Code::PUT, "/large").with_payload(body(len));
        assert_eq!(response(&world.ask(put)).payload, body(len), "{len} in {size:?}");
        let get = RequestTemplate::get("/large");
        assert_eq!(response(&world.ask(get)).payload, body(len), "{len} in {size:?}");
        let methods: Vec<Code> = world.served.iter().map(|one| one.code).collect();
        assert_eq!(methods, [Code::PUT, Code::GET], "each once");
        assert_eq!(world.served[0].payload, body(len));
        // Whether the shortest ones are cut depends on their options.
        if len >= 600 {
            // A block of the largest size inside leaves no second datagram, as it did not between client and proxy.
            let cut = len.min(1024) + 60 > size.size() && size != Exponent::MAX;
            assert_eq!(world.blocks.map(|count| count > 0), [cut; 2], "{len} in {size:?}");
        }
    }
}

#[test]
fn a_client_whose_address_is_not_proven_gets_small_blocks_and_a_challenge_of_the_proxy() {
    for len in [600, 5000] {
        let mut world = Relayed::new(Exponent::MAX, Exponent::MAX);
        world.proxy[0] = half(Exponent::MAX, Some(3));
        world.state = body(len);
        let heard = world.ask(RequestTemplate::get("/large"));
        assert_eq!(response(&heard).payload, body(len));
        assert!(world.blocks[0] > 0);
        assert!(world.proxy[0].is_proven(CLIENT), "the challenge was answered");
    }
}

#[test]
fn a_proxy_has_proven_its_address_before_a_message_in_blocks_is_whole() {
    let mut world = Relayed::new(Exponent::MAX, Exponent::MIN);
    let limits = HostLimits::default();
    world.server = end_with("server", "client", OwnRequests::Plain, Plain::Refused, limits);
    world.state = body(900);
    let put = RequestTemplate::new(Code::PUT, "/large").with_payload(body(900));
    assert_eq!(response(&world.ask(put)).payload, body(900));
    // Its client has been asked for nothing, and has sent the message once.
    assert_eq!((world.served.len(), world.requests), (1, 1));
    assert!(world.server.transport().is_proven(PROXY));
}

#[test]
fn the_challenge_of_a_server_in_place_of_the_answer_to_a_block_is_met_by_the_proxy() {
    for challenged in [0, 3] {
        let mut world = Relayed::new(Exponent::MAX, Exponent::MIN);
        world.challenged = Some(challenged);
        let put = RequestTemplate::new(Code::PUT, "/large").with_payload(body(900));
        assert_eq!(response(&world.ask(put)).code, Code::CONTENT);
        assert_eq!((world.served.len(), world.challenged), (1, None));
        assert_eq!(world.served[0].payload, body(900));
    }
}

#[test]
fn the_challenge_of_a_proxy_in_place_of_an_answer_is_met_with_the_same_octets() {
    let mut world = Relayed::new(Exponent::MAX, Exponent::MAX);
    let mut get = RequestTemplate::get("/large");
    get.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
    get.options.insert(OptionNumber::URI_HOST, b"server");
    let input = Input::Request { peer: PROXY, message: get, handle: Handle(7) };
    world.client.handle(world.now, input).expect("acceptable");
    let mut requests = Vec::new();
    for _ in 0..2 {
        let sent = core::iter::from_fn(|| world.client.poll_output()).find_map(|one| match one {
            Output::Send { bytes, .. } => Some(Message::parse(&bytes).expect("our own")),
            _ => None,
        });
        let sent = sent.expect("a request");
        let challenge = Message::new(Kind::Acknowledgement, Code::UNAUTHORIZED, sent.message_id);
        let mut challenge = Message { token: sent.token.clone(), ..challenge };
        challenge.options.insert(OptionNumber::ECHO, b"value");
        requests.push(sent);
        let bytes = challenge.to_vec();
        let input = Input::Datagram { from: PROXY, bytes: &bytes };
        world.client.handle(world.now, input).expect("never fails");
    }
    assert_eq!(requests[0].payload, requests[1].payload);
    assert_eq!(requests[1].options.get(OptionNumber::ECHO), Some(&b"value"[..]));
    // A second challenge ends it.
    let heard: Vec<Output<u8>> = core::iter::from_fn(|| world.client.poll_output()).collect();
    assert!(heard.iter().any(|one| matches!(one, Output::Failed { .. })), "{heard:?}");
}

/// A block of a message that claims to be protected.
fn outer(id: u16, token: u8, block: Option<(OptionNumber, Block)>, payload: Vec<u8>) -> Vec<u8> {
    let mut message = Message::new(Kind::Confirmable, Code::POST, MessageId(id));
    message.token = Token::new(&[token]).expect("short");
    message.options.insert(OptionNumber::OSCORE, &[9, 1, b'x']);
    if let Some((option, block)) = block {
        block.write(&mut message.options, option);
    }
    message.payload = payload;
    message.to_vec()
}

/// The code that a server answers with.
fn answered(server: &mut Side, bytes: &[u8]) -> Option<Code> {
    let now = Instant::from_secs(1);
    server.handle(now, Input::Datagram { from: PROXY, bytes }).expect("never fails");
    core::iter::from_fn(|| server.poll_output()).find_map(|output| match output {
        Output::Send { bytes, .. } => Some(Message::parse(&bytes).expect("our own").code),
        _ => None,
    })
}

#[test]
fn a_message_whose_blocks_have_all_come_leaves_nothing_behind() {
    let mut context = context("client", "server");
    if let Some(reservation) = context.reservation_needed() {
        context.confirm(reservation);
    }
    let mut put = StreamMessage::new(Code::PUT);
    put.payload = body(20);
    let sealed = context.protect_request(&put).expect("plain").0;
    let option = sealed.options.get(OptionNumber::OSCORE).expect("protected");
    for payload in [sealed.payload.clone(), vec![7; 30]] {
        // Its address is not proven, so a challenge outside could have the last block repeated.
        let limits = HostLimits::default();
        let mut server = end_with("server", "client", OwnRequests::Plain, Plain::Refused, limits);
        for (number, part) in payload.chunks(16).enumerate() {
            let (number, more) = (number as u32, 16 * (number + 1) < payload.len());
            let block =
                Some((OptionNumber::BLOCK1, Block { number, more, exponent: Exponent::MIN }));
            let mut message =
                Message::parse(&outer(number as u16, 1, block, part.to_vec())).expect("own");
            message.options.set(OptionNumber::OSCORE, option);
            let code = answered(&mut server, &message.to_vec());
            assert_eq!(code == Some(Code::CONTINUE), more, "{code:?}");
            assert_eq!(server.transport().outer.octets() > 0, more);
        }
    }
}

#[test]
fn blocks_that_are_too_many_together_are_refused_and_those_that_are_missing_are_asked_for() {
    let mut server = end("server", "client", OwnRequests::Plain, Plain::Refused);
    let block = |number, more| Block { number, more, exponent: Exponent::MAX };
    let mut send = |number: u32, more| {
        let block = (OptionNumber::BLOCK1, block(number, more));
        answered(&mut server, &outer(number as u16, 1, Some(block), vec![7; 1024]))
    };
    let most = (MAX_UNFRAGMENTED_SIZE / 1024) as u32;
    for number in 0..most {
        assert_eq!(send(number, true), Some(Code::CONTINUE), "{number}");
    }
    assert_eq!(send(most, true), Some(Code::REQUEST_ENTITY_TOO_LARGE));
    assert_eq!(send(most + 1, true), Some(Code::REQUEST_ENTITY_INCOMPLETE));
}

#[test]
fn what_strangers_send_in_blocks_takes_no_more_memory_than_its_bounds() {
    let mut server = end("server", "client", OwnRequests::Plain, Plain::Refused);
    let now = Instant::from_secs(1);
    for from in 3..=255_u8 {
        for number in 0..40 {
            let block = Block { number, more: true, exponent: Exponent::MAX };
            let block = Some((OptionNumber::BLOCK1, block));
            let bytes = outer(number as u16, from, block, vec![7; 1024]);
            server.handle(now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
            while server.poll_output().is_some() {}
        }
    }
    assert!(server.transport().outer.octets() <= crate::params::OUTER_BLOCKS_MAX);
}

#[test]
fn a_proxy_may_ask_for_a_response_in_blocks_and_for_later_ones_without_a_replay() {
    let mut world = Relayed::new(Exponent::MAX, Exponent::MAX);
    world.state = body(600);
    // The request as the proxy passes it on, with a block option of its own.
    let get = RequestTemplate::get("/large");
    let input = Input::Request { peer: PROXY, message: get, handle: Handle(7) };
    world.client.handle(world.now, input).expect("acceptable");
    let sent = core::iter::from_fn(|| world.client.poll_output()).find_map(|one| match one {
        Output::Send { bytes, .. } => Some(Message::parse(&bytes).expect("our own")),
        _ => None,
    });
    let request = sent.expect("a request");
    let exponent = Exponent::new(2).expect("64 octets");
    let mut whole = Vec::new();
    let mut number = 0;
    loop {
        let mut message = request.clone();
        message.message_id = MessageId(1000 + number as u16);
        Block { number, more: false, exponent }.write(&mut message.options, OptionNumber::BLOCK2);
        if number > 0 {
            message.payload.clear();
        }
        let bytes = message.to_vec();
        let input = Input::Datagram { from: PROXY, bytes: &bytes };
        world.server.handle(world.now, input).expect("never fails");
        let mut part = None;
        while let Some(output) = world.server.poll_output() {
            match output {
                Output::Send { bytes, .. } => part = Some(Message::parse(&bytes).expect("ours")),
                Output::Request { exchange, .. } => {
                    let response =
                        ResponseTemplate::new(Code::CONTENT).with_payload(world.state.clone());
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    world.server.handle(world.now, input).expect("acceptable");
                    world.served.push(message.clone());
                }
                _ => {}
            }
        }
        let part = part.expect("an answer");
        assert_eq!(part.code, Code::CHANGED);
        whole.extend_from_slice(&part.payload);
        let block = Block::read(part.options.iter(), OptionNumber::BLOCK2);
        if !block.expect("proper").expect("present").more {
            break;
        }
        number += 1;
    }
    assert_eq!((world.served.len(), whole.len() > 600), (1, true));
    // Without what is kept there is no later block, and nothing is opened a second time.
    let later = Block { number: 3, more: false, exponent };
    let later = outer(9, 9, Some((OptionNumber::BLOCK2, later)), Vec::new());
    assert_eq!(answered(&mut world.server, &later), Some(Code::REQUEST_ENTITY_INCOMPLETE));
}

#[test]
fn blocks_that_an_endpoint_on_a_connection_has_cut_inside_are_taken_over_datagrams() {
    // RFC 8323 s6: several blocks in one message, which a proxy has brought here in smaller ones.
    let mut world = Relayed::new(Exponent::MAX, Exponent::MAX);
    let mut put = RequestTemplate::new(Code::PUT, "/large").with_payload(body(2048));
    Block { number: 0, more: true, exponent: Exponent::BERT }
        .write(&mut put.options, OptionNumber::BLOCK1);
    let sealed = {
        let protection = world.client.transport().protection.as_ref().expect("protected");
        let plain = StreamMessage {
            code: put.code,
            token: Token::EMPTY,
            options: put.options.clone(),
            payload: put.payload.clone(),
        };
        protection.contexts.protect_request(0, &plain).expect("fresh").0
    };
    for (number, part) in sealed.payload.chunks(1024).enumerate() {
        let more = (number + 1) * 1024 < sealed.payload.len();
        let mut message = Message::new(Kind::Confirmable, sealed.code, MessageId(number as u16));
        message.options = sealed.options.clone();
        let block = Block { number: number as u32, more, exponent: Exponent::MAX };
        block.write(&mut message.options, OptionNumber::BLOCK1);
        message.payload = part.to_vec();
        let code = answered(&mut world.server, &message.to_vec());
        // The answer to the whole is protected: 2.31 is inside of 2.04.
        let wanted = if more { Code::CONTINUE } else { Code::CHANGED };
        assert_eq!(code, Some(wanted), "{number}");
    }
}
