//! A server keeps what protects notifications exactly as long as the host keeps the observer.

use lowmesh_units::Duration;
use lowmesh_wire::coap::MessageId;

use super::*;

/// How many observers the server takes.
const OBSERVERS_MAX: usize = 4;

/// A server on the open Internet, and the contexts that its clients share.
struct OpenServer {
    server: Host<u16, Protected<u16, Endpoint<u16>>>,
    clients: Contexts,
    now: Instant,
    sent: Vec<(u16, Message)>,
    message_id: u16,
}

impl OpenServer {
    fn new(folder: &Folder) -> Self {
        let limits = HostLimits { observers_max: OBSERVERS_MAX, ..HostLimits::default() };
        let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
        let protection = protection(folder.open(SERVER), SERVER, Plain::Refused);
        let server = over_datagrams(Config::default(), limits, Some(protection), rng);
        let clients = folder.open(CLIENT);
        let server = server.expect("possible");
        Self { server, clients, now: Instant::ZERO, sent: Vec::new(), message_id: 0 }
    }
    /// With one observer, peer 1.
    fn observed(folder: &Folder) -> Self {
        let mut site = Self::new(folder);
        assert!(observes(site.ask(1, 1, true)));
        site
    }
    /// A request of `peer` comes, and is answered; the answer, or `None` if it did not leave.
    fn ask(&mut self, peer: u16, token: u64, observe: bool) -> Option<Message> {
        Some(self.ask_with(peer, token, observe, None)?.0)
    }
    /// A client registers, and brings back an Echo value if it is challenged.
    fn register(&mut self, peer: u16) -> Option<Message> {
        let (answer, inner) = self.ask_with(peer, 1, true, None)?;
        match inner.options.get(OptionNumber::ECHO) {
            Some(value) if inner.code == Code::UNAUTHORIZED => {
                Some(self.ask_with(peer, 1, true, Some(value))?.0)
            }
            _ => Some(answer),
        }
    }
    /// A request with an Echo value or without: the answer, and what is inside.
    fn ask_with(
        &mut self,
        peer: u16,
        token: u64,
        observe: bool,
        echo: Option<&[u8]>,
    ) -> Option<(Message, StreamMessage)> {
        let mut get = StreamMessage::new(Code::GET);
        if let Some(value) = echo {
            get.options.insert(OptionNumber::ECHO, value);
        }
        get.options.insert_path("/t");
        if observe {
            get.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        let (outer, pending) = self.clients.protect_request(0, &get).expect("a disk");
        self.message_id += 1;
        let kind = Kind::NonConfirmable;
        let message_id = MessageId(self.message_id);
        let StreamMessage { code, options, payload, .. } = outer;
        let token = Token::from_number(token, 4);
        let message = Message { kind, message_id, code, token, options, payload };
        self.sent.clear();
        let input = Input::Datagram { from: peer, bytes: &message.to_vec() };
        self.server.handle(self.now, input).expect("never fails");
        self.settle();
        let (_, answer) = self.sent.iter().find(|(to, _)| *to == peer)?;
        let opened =
            self.clients.unprotect_response(0, &mut [pending], &StreamMessage::from(answer));
        match opened.expect("a disk").expect("our own server's") {
            Answer::Response(inner) => Some((answer.clone(), inner)),
            Answer::Again => panic!("no context was lost"),
        }
    }
    fn settle(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Request { exchange, .. } => {
                    let mut response = ResponseTemplate::new(Code::CONTENT);
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    self.server.handle(self.now, input).expect("acceptable");
                }
                Output::Send { to, bytes, .. } => {
                    self.sent.push((to, Message::parse(&bytes).expect("own bytes")));
                }
                _ => {}
            }
        }
    }
    /// The resource changes; the notifications that leave.
    fn change(&mut self) -> Vec<(u16, Message)> {
        self.sent.clear();
        self.server.changed("/t", self.now);
        self.settle();
        std::mem::take(&mut self.sent)
    }
    /// Time runs, and nothing comes.
    fn silence(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.server.next_deadline().filter(|due| *due <= end) {
            self.now = due;
            self.server.handle(due, Input::Deadline).expect("never fails");
            self.settle();
        }
        self.now = end;
    }
    fn kept(&self) -> usize {
        self.server.transport().observations()
    }
}

fn observes(answer: Option<Message>) -> bool {
    answer.is_some_and(|answer| answer.options.get(OptionNumber::OBSERVE).is_some())
}

#[test]
fn observers_that_others_have_displaced_leave_their_places() {
    let folder = Folder::new("observers-places");
    let mut site = OpenServer::new(&folder);
    let all = OBSERVERS_MAX as u16;
    for first in (0..96).step_by(2 * OBSERVERS_MAX) {
        // All places are taken without a proof; the next ones prove their addresses and take them over.
        for peer in first..first + 2 * all {
            assert!(observes(site.register(peer)), "observer {peer} finds no place");
            assert_eq!(site.kept(), site.server.observers());
        }
        assert_eq!(site.kept(), OBSERVERS_MAX);
        for peer in first + all..first + 2 * all {
            site.server.handle(site.now, Input::Unreachable { peer }).expect("never fails");
        }
        assert_eq!((site.server.observers(), site.kept()), (0, 0));
    }
}

#[test]
fn an_observer_that_rejects_its_notification_leaves_its_place() {
    let folder = Folder::new("observers-reset");
    let mut site = OpenServer::observed(&folder);
    let notification = site.change().remove(0).1;
    let reset = Message::new(Kind::Reset, Code::EMPTY, notification.message_id).to_vec();
    site.server.handle(site.now, Input::Datagram { from: 1, bytes: &reset }).expect("never fails");
    assert_eq!((site.server.observers(), site.kept()), (0, 0));
}

#[test]
fn an_unproven_observer_whose_notification_was_lost_gets_the_next_one_after_its_next_message() {
    let folder = Folder::new("observers-lost");
    let mut site = OpenServer::observed(&folder);
    assert_eq!(site.change().len(), 1);
    site.silence(Duration::from_secs(120));
    assert_eq!((site.server.observers(), site.kept()), (1, 1), "it waits");
    assert!(site.ask(1, 2, false).is_some());
    let registered = Token::from_number(1, 4);
    let mut sent = site.sent.clone();
    sent.extend(site.change());
    let notified = sent.iter().any(|(to, one)| *to == 1 && one.token == registered);
    assert!(notified, "{sent:?}");
}
