//! Block-wise bodies of several senders behind one address, as a proxy has them (RFC 7959 s2.5, RFC 9175 s3.5.1): their blocks
//! are put together within one security context.

use lowmesh_coap::blockwise::{Block, Exponent};
use lowmesh_wire::coap::{Kind, MessageId};

use super::*;
use crate::SecurityContext;

/// The address of the proxy in front of all senders.
const PROXY: u8 = 1;

/// Who sends a request through the proxy.
enum Sender {
    /// One end of a context of two.
    Of(Box<SecurityContext>),
    /// A member of a group.
    In(Box<Group>),
    /// Nobody vouches for it.
    Openly,
}

impl Sender {
    fn protect(&mut self, request: &StreamMessage) -> StreamMessage {
        match self {
            Self::Of(context) => {
                if let Some(reservation) = context.reservation_needed() {
                    context.confirm(reservation);
                }
                context.protect_request(request).expect("plain").0
            }
            Self::In(group) => {
                if let Some(reservation) = group.reservation_needed() {
                    group.confirm(reservation);
                }
                group.protect_request(None, request).expect("plain").0
            }
            Self::Openly => request.clone(),
        }
    }
}

/// The ends of a context of two with this client.
fn ends(client: &str) -> [SecurityContext; 2] {
    [("server", client), (client, "server")].map(|(ours, theirs)| {
        let (ours, theirs) = (hex(&ours.as_bytes()[..1]), hex(&theirs.as_bytes()[..1]));
        let text = format!(
            "master_secret,ascii,secret of {client}\nsender_id,hex,{ours}\nrecipient_id,hex,{theirs}"
        );
        let contexts = crate::Configuration::parse(&text).expect("our own").contexts();
        contexts.into_iter().next().expect("one")
    })
}

/// A server, and all senders behind one proxy: two with a context each, two members of a group, and one without keys.
struct Behind {
    server: Side,
    senders: [Sender; 5],
    sent: u16,
    /// The bodies that the application got.
    bodies: Vec<Vec<u8>>,
    state: Vec<u8>,
}

impl Behind {
    fn new() -> Self {
        let [[at_server, a], [also_at_server, b]] = ["a", "b"].map(ends);
        let contexts = VolatileContexts::new(Contexts::new(vec![at_server, also_at_server]));
        let contexts = contexts.with_groups(vec![member(1, 4, "secret", "")]);
        let (own_requests, plain_requests) = (OwnRequests::Plain, Plain::Served);
        let protection = Protection { contexts, own_requests, plain_requests };
        let rng = Rng::stream(Seed(8), NodeId(1), Purpose::Coap);
        let limits = HostLimits { amplification_max: None, ..HostLimits::default() };
        let server = over_datagrams(Config::default(), limits, Some(protection), rng);
        let in_group = |number| Sender::In(Box::new(member(number, 4, "secret", "")));
        let senders = [
            Sender::Of(Box::new(a)),
            Sender::Of(Box::new(b)),
            in_group(2),
            in_group(3),
            Sender::Openly,
        ];
        let (bodies, state) = (Vec::new(), Vec::new());
        Self { server: server.expect("possible"), senders, sent: 0, bodies, state }
    }
    /// A request of a sender, and what the application answers to whole ones.
    fn send(&mut self, sender: usize, request: &StreamMessage) {
        let now = Instant::from_secs(1);
        let StreamMessage { code, options, payload, .. } = self.senders[sender].protect(request);
        self.sent += 1;
        let token = request.token.clone();
        let (kind, message_id) = (Kind::Confirmable, MessageId(self.sent));
        let message = Message { kind, message_id, code, token, options, payload };
        let bytes = message.to_vec();
        self.server.handle(now, Input::Datagram { from: PROXY, bytes: &bytes }).expect("taken");
        self.serve();
    }
    fn serve(&mut self) {
        let now = Instant::from_secs(1);
        while let Some(output) = self.server.poll_output() {
            if let Output::Request { exchange, message, .. } = output {
                self.bodies.push(message.payload);
                let response =
                    ResponseTemplate::new(Code::CONTENT).with_payload(self.state.clone());
                let response = response.with_option(OptionNumber::OBSERVE, &[]);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                self.server.handle(now, input).expect("acceptable");
            }
        }
    }
    /// A request with a token of its own.
    fn request(&self, code: Code) -> StreamMessage {
        let token = Token::new(&self.sent.to_be_bytes()).expect("short");
        let mut request = StreamMessage { token, ..StreamMessage::new(code) };
        request.options.insert_path("/large");
        request
    }
    fn upload(&mut self, sender: usize, number: u32, more: bool) {
        let mut request = self.request(Code::PUT);
        let block = Block { number, more, exponent: Exponent::MIN };
        block.write(&mut request.options, OptionNumber::BLOCK1);
        request.payload = vec![sender as u8; 16];
        self.send(sender, &request);
    }
    fn download(&mut self, sender: usize, number: u32) {
        let mut request = self.request(Code::GET);
        let block = Block { number, more: false, exponent: Exponent::MIN };
        block.write(&mut request.options, OptionNumber::BLOCK2);
        self.send(sender, &request);
    }
    /// Registers, or ends an observation, under one token for all senders.
    fn observe(&mut self, sender: usize, value: u32) {
        let mut request = self.request(Code::GET);
        request.token = Token::new(b"one").expect("short");
        request.options.insert_uint(OptionNumber::OBSERVE, value);
        let block = Block { number: 0, more: false, exponent: Exponent::MIN };
        block.write(&mut request.options, OptionNumber::BLOCK2);
        self.send(sender, &request);
    }
    fn observers(&self) -> [usize; 2] {
        [self.server.observers(), self.server.transport().observations()]
    }
}

#[test]
fn blocks_of_two_senders_behind_one_address_never_become_one_body() {
    for (first, other) in (0..5).flat_map(|one| (0..5).map(move |other| (one, other))) {
        let mut behind = Behind::new();
        behind.upload(first, 0, true);
        behind.upload(other, 1, false);
        let whole = if first == other { vec![[first as u8; 32].to_vec()] } else { Vec::new() };
        assert_eq!(behind.bodies, whole, "{first} and {other}");
    }
}

#[test]
fn the_bodies_of_all_senders_behind_one_address_arrive_whole_at_the_same_time() {
    let mut behind = Behind::new();
    for number in 0..3 {
        (0..5).for_each(|sender| behind.upload(sender, number, number < 2));
    }
    assert_eq!(behind.bodies, [0, 1, 2, 3, 4].map(|sender| vec![sender; 48]));
}

#[test]
fn a_later_block_is_of_a_response_to_the_same_sender() {
    for other in 0..5 {
        let mut behind = Behind::new();
        behind.state = vec![7; 40];
        behind.download(0, 0);
        assert_eq!(behind.bodies.len(), 1);
        // The application is asked again unless the server keeps the response for this sender.
        behind.download(other, 1);
        assert_eq!(behind.bodies.len(), if other == 0 { 1 } else { 2 }, "{other}");
    }
}

#[test]
fn a_later_block_of_a_notification_is_for_its_observer() {
    for other in 0..5 {
        let mut behind = Behind::new();
        behind.state = vec![7; 40];
        behind.observe(0, 0);
        behind.state = vec![8; 40];
        behind.server.changed("/large", Instant::from_secs(1));
        behind.serve();
        assert_eq!(behind.bodies.len(), 2, "a question for the state");
        behind.download(other, 1);
        assert_eq!(behind.bodies.len(), if other == 0 { 2 } else { 3 }, "{other}");
    }
}

#[test]
fn a_request_under_another_association_neither_ends_nor_replaces_an_observation() {
    for (first, other) in (0..5).flat_map(|one| (0..5).map(move |other| (one, other))) {
        let mut behind = Behind::new();
        behind.observe(first, 0);
        behind.observe(other, 1);
        let left = usize::from(first != other);
        assert_eq!(behind.observers(), [left; 2], "{first} and {other}");
        behind.observe(other, 0);
        assert_eq!(behind.observers(), [1; 2], "{first} and {other}");
        behind.observe(first, 1);
        assert_eq!(behind.observers(), [0; 2], "{first} and {other}");
    }
}
