//! Two hosts that derive contexts many times (RFC 8613 appendix B.2), and lose them.

use std::sync::atomic::{AtomicU16, Ordering};

use super::*;

/// The next node's number: each start draws other tokens and message IDs.
static STARTS: AtomicU16 = AtomicU16::new(10);
/// Where the state of the server is kept.
const SERVER_STATE: &str = "server.73-63.state";

impl Folder {
    /// An end that starts.
    fn start(&self, end: Peer) -> Side {
        let (ours, theirs) = if end == CLIENT { ("c", "s") } else { ("s", "c") };
        let more = "rfc8613_b_2,bool,true\n";
        let contexts = self.open_with(end, "0123456789abcdef", ours, theirs, more);
        let node = STARTS.fetch_add(1, Ordering::Relaxed);
        side(node, Some(protection(contexts, end, Plain::Refused)))
    }
    /// An end that starts without what it had stored.
    fn start_after_loss(&self, end: Peer) -> Side {
        let state = if end == CLIENT { "client.63-73.state" } else { SERVER_STATE };
        fs::remove_file(self.0.join(state)).expect("it was stored");
        self.start(end)
    }
    fn server_state(&self) -> String {
        fs::read_to_string(self.0.join(SERVER_STATE)).expect("it was stored")
    }
}

/// Stands in the place of an end that was killed, so that its files are free.
fn nobody() -> Side {
    side(3, None)
}

impl Pair {
    fn renewable(folder: &Folder) -> Self {
        let mut pair = Self::new(None, None);
        (pair.client, pair.server) = (folder.start(CLIENT), folder.start(SERVER));
        pair
    }
    /// How many datagrams a request takes.
    fn datagrams(&mut self) -> usize {
        self.wire.clear();
        let heard = self.ask(RequestTemplate::get("/t"));
        assert_eq!(payload(&heard), self.state);
        self.wire.len()
    }
    fn restart_client(&mut self, start: impl FnOnce() -> Side) {
        self.client = nobody();
        self.client = start();
    }
    fn restart_server(&mut self, start: impl FnOnce() -> Side) {
        self.server = nobody();
        self.server = start();
    }
}

#[test]
fn ends_without_state_come_to_a_context_and_keep_it() {
    let folder = Folder::new("renewal-first");
    let mut pair = Pair::renewable(&folder);
    assert!(!folder.0.join(SERVER_STATE).exists());
    assert_eq!(pair.datagrams(), 4, "requests and responses #1 and #2");
    assert_eq!(pair.asked.len(), 1, "request #1 is not served");
    assert!(folder.server_state().contains("id_context"));
    assert_eq!(pair.datagrams(), 2);
    for (_, bytes) in &pair.wire {
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET), "in the open");
    }
}

#[test]
fn ends_that_have_their_state_go_on_with_it() {
    let folder = Folder::new("renewal-resumed");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    pair.restart_client(|| folder.start(CLIENT));
    assert_eq!(pair.datagrams(), 2, "the client was killed");
    pair.restart_server(|| folder.start(SERVER));
    assert_eq!(pair.datagrams(), 4, "the server was killed: an Echo");
    assert_eq!(pair.datagrams(), 2);
}

#[test]
fn an_end_that_lost_its_state_gets_a_new_context_whichever_it_is() {
    let folder = Folder::new("renewal-lost");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    pair.restart_client(|| folder.start_after_loss(CLIENT));
    assert_eq!(pair.datagrams(), 4, "the client begins");
    pair.restart_server(|| folder.start_after_loss(SERVER));
    assert_eq!(pair.datagrams(), 4, "the server begins, with response #1");
    assert_eq!(pair.datagrams(), 2);
}

#[test]
fn a_long_body_survives_that_the_server_loses_its_context() {
    let folder = Folder::new("renewal-blocks");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    pair.restart_server(|| folder.start_after_loss(SERVER));
    let put = RequestTemplate::new(Code::PUT, "/t").with_payload(vec![7; 3000]);
    assert_eq!(payload(&pair.ask(put)), SECRET);
    assert_eq!(pair.asked.last().expect("served").payload, vec![7; 3000]);
}

#[test]
fn a_forged_error_makes_no_working_context_go_away() {
    let folder = Folder::new("renewal-forged");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    let before = folder.server_state();
    let message = RequestTemplate::get("/t");
    let input = Input::Request { peer: SERVER, message, handle: Handle(8) };
    pair.client.handle(pair.now, input).expect("acceptable");
    let sent = |client: &mut Side| loop {
        if let Output::Send { bytes, .. } = client.poll_output().expect("a datagram") {
            return Message::parse(&bytes).expect("valid");
        }
    };
    // Each time an attacker answers first, and nothing gets through to the server.
    for _ in 0..2 {
        let mut error = sent(&mut pair.client);
        (error.kind, error.code) = (Kind::Acknowledgement, Code::UNAUTHORIZED);
        (error.options, error.payload) = (Options::new(), Vec::new());
        pair.deliver(CLIENT, error.to_vec());
    }
    assert!(matches!(pair.settle()[..], [Output::Failed { handle: Handle(8), .. }]));
    assert_eq!(folder.server_state(), before);
    assert_eq!(pair.datagrams(), 2, "the context works on");
}

#[test]
fn requests_1_from_before_are_answered_and_change_nothing() {
    let folder = Folder::new("renewal-flood");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    let first = Message::parse(&pair.wire[0].1).expect("request #1");
    let before = folder.server_state();
    for round in 1_u16..50 {
        let mut replay = first.clone();
        replay.message_id.0 ^= 0x4000 | round;
        replay.token = Token::new(&round.to_be_bytes()).expect("two octets");
        pair.deliver(SERVER, replay.to_vec());
        pair.settle();
    }
    assert_eq!(pair.asked.len(), 1, "none of them is served");
    assert_eq!(folder.server_state(), before, "nothing is written for them");
    assert_eq!(pair.datagrams(), 2, "the context works on");
}

#[test]
fn an_observation_ends_with_the_context_that_it_was_made_under() {
    let folder = Folder::new("renewal-observe");
    let mut pair = Pair::renewable(&folder);
    assert_eq!(payload(&pair.ask(observe())), SECRET);
    assert_eq!(pair.server.observers(), 1);
    pair.restart_client(|| folder.start_after_loss(CLIENT));
    assert_eq!(pair.datagrams(), 4);
    pair.state = b"news".to_vec();
    pair.server.changed("/t", pair.now);
    pair.settle();
    assert_eq!(pair.server.observers(), 0, "the earlier context notifies nobody");
}

#[test]
fn a_new_context_that_cannot_be_stored_is_not_used() {
    let folder = Folder::new("renewal-full");
    let mut pair = Pair::renewable(&folder);
    let blocked = folder.0.join(format!("{SERVER_STATE}.new"));
    fs::create_dir(&blocked).expect("a disk");
    let heard = pair.ask(RequestTemplate::get("/t"));
    assert!(matches!(heard[..], [Output::Failed { .. }]), "{heard:?}");
    assert!(pair.asked.is_empty() && !folder.0.join(SERVER_STATE).exists());
    fs::remove_dir(&blocked).expect("a disk");
    pair.datagrams();
    assert!(folder.server_state().contains("id_context"));
}

#[test]
fn a_context_whose_numbers_are_used_up_is_renewed() {
    let folder = Folder::new("renewal-exhausted");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    pair.client = nobody();
    let state = folder.0.join("client.63-73.state");
    let text = fs::read_to_string(&state).expect("it was stored");
    let used_up = text.replace("integer,100\n", "integer,1099511627776\n");
    assert_ne!(text, used_up);
    fs::write(&state, used_up).expect("a disk");
    pair.restart_client(|| folder.start(CLIENT));
    assert_eq!(pair.datagrams(), 4);
    assert_eq!(pair.datagrams(), 2);
}

#[test]
fn the_state_of_a_renewed_context_is_refused_once_renewal_is_off() {
    let folder = Folder::new("renewal-off");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    drop(pair);
    let file = folder.0.join(CLIENT);
    let text = fs::read_to_string(&file).expect("our own");
    fs::write(&file, text.replace("true", "false")).expect("a disk");
    let error = Contexts::open(&file).expect_err("of another key").to_string();
    assert!(error.contains("rfc8613_b_2"), "{error}");
}

#[test]
fn an_observation_whose_context_goes_before_its_first_answer_ends_with_the_next_change() {
    let folder = Folder::new("renewal-unanswered");
    let mut pair = Pair::renewable(&folder);
    pair.datagrams();
    // The request reaches the server, whose application takes its time.
    let input = Input::Request { peer: SERVER, message: observe(), handle: Handle(7) };
    pair.client.handle(pair.now, input).expect("acceptable");
    while let Some(output) = pair.client.poll_output() {
        if let Output::Send { bytes, .. } = output {
            pair.deliver(SERVER, bytes);
        }
    }
    let (exchange, message) = loop {
        let output = pair.server.poll_output().expect("the application is asked");
        if let Output::Request { exchange, message, .. } = output {
            break (exchange, message);
        }
    };
    pair.restart_client(|| folder.start_after_loss(CLIENT));
    assert_eq!(pair.datagrams(), 4);
    pair.answer(exchange, message);
    pair.settle();
    pair.server.changed("/t", pair.now);
    pair.settle();
    assert_eq!(pair.server.observers(), 0, "nothing can be sent to it");
}
