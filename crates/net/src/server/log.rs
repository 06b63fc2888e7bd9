//! What a server says of each request that it has answered, for a log.
//!
//! A request is one line however many blocks its bodies take. So is a request that OSCORE refuses, and a DTLS handshake that
//! fails. What else is answered below the resources is not seen here: later blocks, duplicates, and what breaks the rules of
//! CoAP. The state that observers are told is not a request.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::blockwise::Block;
use lowmesh_coap::observe::{DEREGISTER, REGISTER};
use lowmesh_coap::{IncomingId, ResponseTemplate};
use lowmesh_wire::coap::uri::Scheme;
use lowmesh_wire::coap::{Code, Message, OptionNumber};
use tokio::time::Instant;

use crate::params::LOGGED_PATH_MAX;
use crate::peer::Peer;

/// A request and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// The client.
    pub peer: Peer,
    /// What the request came over.
    pub scheme: Scheme,
    /// The method.
    pub method: Code,
    /// The path and the query, of a request for a proxy the whole URI. It has printable ASCII only, the rest is
    /// percent-encoded; what is longer than 256 octets ends in `...`.
    pub path: String,
    /// Octets of the body of the request.
    pub request_len: usize,
    /// The code of the response; `None` without a response.
    pub code: Option<Code>,
    /// Octets of the body of the response.
    pub response_len: usize,
    /// From the whole request to its response.
    pub took: Duration,
    /// The last block of the body of the request, if that came in blocks (RFC 7959).
    pub block1: Option<Block>,
    /// The first block of the body of the response, or the later one that was asked for, if it leaves in blocks.
    pub block2: Option<Block>,
    /// What the request did to an observation.
    pub observation: Option<Observation>,
    /// The key by which the client is known: the kid of OSCORE, or the identity of DTLS.
    pub identity: Option<String>,
    /// Why the request came to no resource: OSCORE refused it, or the DTLS handshake before it failed. A handshake has
    /// neither method nor path.
    pub refused: Option<String>,
}

/// The effect of a request on an observation (RFC 7641).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Its client observes the resource from now on.
    Registered,
    /// Its client does not observe the resource any more.
    Deregistered,
}

type Write = dyn Fn(&Served) + Send + Sync;

/// A function that is called with each request that a server has answered. It must not wait: nothing else is served
/// meanwhile.
#[derive(Clone)]
pub struct RequestLog(Arc<Write>);

impl RequestLog {
    /// Calls `write`, from the task of each UDP address and connection.
    pub fn new(write: impl Fn(&Served) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestLog")
    }
}

/// A request that is answered and not written yet.
pub(super) struct Entry(Served, Instant);

/// The requests of one attendant that wait for their answers. Each has a place among the pending answers, so these are
/// as many as those at most.
pub(super) struct Journal {
    log: Option<RequestLog>,
    scheme: Scheme,
    open: BTreeMap<IncomingId, (Served, Instant)>,
}

impl Journal {
    pub(super) const fn new(log: Option<RequestLog>, scheme: Scheme) -> Self {
        Self { log, scheme, open: BTreeMap::new() }
    }
    /// A request has come.
    pub(super) fn asked(
        &mut self,
        exchange: IncomingId,
        peer: Peer,
        request: &Message,
        identity: impl FnOnce() -> Option<String>,
    ) {
        if self.log.is_none() || exchange.is_refresh() {
            return;
        }
        let observation = match request.options.get_uint(OptionNumber::OBSERVE) {
            Some(REGISTER) => Some(Observation::Registered),
            Some(DEREGISTER) => Some(Observation::Deregistered),
            _ => None,
        };
        let served =
            Served { observation, identity: identity(), ..self.entry(peer, Some(request)) };
        self.open.insert(exchange, (served, Instant::now()));
    }
    /// What a request says, or nothing of one.
    fn entry(&self, peer: Peer, request: Option<&Message>) -> Served {
        Served {
            peer,
            scheme: self.scheme,
            method: request.map_or(Code::EMPTY, |request| request.code),
            path: request.map_or_else(|| "-".to_owned(), path),
            request_len: request.map_or(0, |request| request.payload.len()),
            code: None,
            response_len: 0,
            took: Duration::ZERO,
            block1: None,
            block2: None,
            observation: None,
            identity: None,
            refused: None,
        }
    }
    /// A request came to no resource.
    pub(super) fn refused(
        &self,
        peer: Peer,
        request: Option<&Message>,
        code: Option<Code>,
        why: String,
    ) {
        if let Some(RequestLog(write)) = &self.log {
            write(&Served { code, refused: Some(why), ..self.entry(peer, request) });
        }
    }
    /// It is answered, with what the resource and the server have made: what to [write](Self::write) of it.
    pub(super) fn answered(
        &mut self,
        exchange: IncomingId,
        response: &ResponseTemplate,
    ) -> Option<Entry> {
        let (mut served, begun) = self.open.remove(&exchange)?;
        served.code = Some(response.code);
        served.response_len = response.payload.len();
        // RFC 7641 s4.1: only an answer with Observe registers.
        let registers = response.options.get(OptionNumber::OBSERVE).is_some();
        served.observation.take_if(|one| *one == Observation::Registered && !registers);
        Some(Entry(served, begun))
    }
    /// It stays without an answer.
    pub(super) fn declined(&mut self, exchange: IncomingId) {
        if let Some((served, begun)) = self.open.remove(&exchange) {
            self.write(Entry(Served { observation: None, ..served }, begun), None, None);
        }
    }
    /// Tells the log of a request, of whose bodies these blocks were the last and the first.
    pub(super) fn write(&self, entry: Entry, block1: Option<Block>, block2: Option<Block>) {
        let Entry(served, begun) = entry;
        if let Some(RequestLog(write)) = &self.log {
            write(&Served { took: begun.elapsed(), block1, block2, ..served });
        }
    }
}

impl Drop for Journal {
    /// What the end of the connection or of the server has left without an answer.
    fn drop(&mut self) {
        while let Some((exchange, _)) = self.open.first_key_value() {
            let exchange = *exchange;
            self.declined(exchange);
        }
    }
}

/// The target of a request as one word.
fn path(request: &Message) -> String {
    let mut text = String::new();
    let value = |number| request.options.get(number);
    if let Some(uri) = value(OptionNumber::PROXY_URI) {
        push(&mut text, uri, b"/?&");
        return cut(text);
    }
    if let Some(scheme) = value(OptionNumber::PROXY_SCHEME) {
        push(&mut text, scheme, b"");
        text.push_str("://");
        push(&mut text, value(OptionNumber::URI_HOST).unwrap_or_default(), b"");
    }
    for segment in request.options.iter().values(OptionNumber::URI_PATH) {
        text.push('/');
        push(&mut text, segment, b"&");
        if text.len() > LOGGED_PATH_MAX {
            return cut(text);
        }
    }
    if text.is_empty() {
        text.push('/');
    }
    let mut mark = '?';
    for argument in request.options.iter().values(OptionNumber::URI_QUERY) {
        text.push(mark);
        push(&mut text, argument, b"/?");
        mark = '&';
        if text.len() > LOGGED_PATH_MAX {
            break;
        }
    }
    cut(text)
}

/// Adds octets of a peer so that they change nothing of a terminal, a line or a string.
fn push(text: &mut String, octets: &[u8], more: &[u8]) {
    for octet in octets {
        if octet.is_ascii_alphanumeric()
            || b"-._~!$'()*+,;=:@".contains(octet)
            || more.contains(octet)
        {
            text.push(char::from(*octet));
        } else {
            write!(text, "%{octet:02X}").expect("a String takes everything");
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LOGGED_PATH_MAX {
        text.truncate(LOGGED_PATH_MAX);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use lowmesh_coap::blockwise::Exponent;
    use lowmesh_coap::resource::{Methods, Resource};
    use lowmesh_wire::coap::{Kind, MessageId};
    use tokio::sync::mpsc;

    use crate::client::Client;
    use crate::server::{Handler, Limits, Server};

    use super::*;

    fn get(options: &[(OptionNumber, &[u8])]) -> Message {
        let mut message = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        for (number, value) in options {
            message.options.insert(*number, value);
        }
        message
    }

    #[test]
    fn a_path_is_one_bounded_word_whatever_its_octets() {
        use OptionNumber as Number;
        let (segment, argument) = (Number::URI_PATH, Number::URI_QUERY);
        for (options, told) in [
            (&[][..], "/"),
            (
                &[(segment, &b"a"[..]), (segment, b""), (argument, b"x=1"), (argument, b"y")],
                "/a/?x=1&y",
            ),
            (&[(segment, b"a b\n\x1b[2J\"\\\xff")], "/a%20b%0A%1B%5B2J%22%5C%FF"),
            (&[(segment, b"a/b")], "/a%2Fb"),
            (&[(Number::PROXY_URI, b"coap://h/a?b")], "coap://h/a?b"),
            (
                &[(Number::PROXY_SCHEME, b"coap"), (Number::URI_HOST, b"h"), (segment, b"a")],
                "coap://h/a",
            ),
        ] {
            assert_eq!(path(&get(options)), told);
        }
        let long = [b'\n'; 255];
        let told = path(&get(&[(segment, &long), (segment, &long), (argument, &long)]));
        assert!(told.len() == LOGGED_PATH_MAX + 3 && told.ends_with("..."), "{told}");
    }

    /// A server on loopback that logs, and the lines.
    fn logged() -> (SocketAddr, mpsc::UnboundedReceiver<Served>) {
        let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
        let mut server = Server::new(limits).expect("the defaults");
        let (tell, told) = mpsc::unbounded_channel();
        server.log(RequestLog::new(move |served| _ = tell.send(served.clone())));
        let long =
            Handler::new(|_| ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; 2500]));
        server.insert("/long", Resource::new(Methods::GET, long));
        let hello = Handler::new(|_| {
            ResponseTemplate::new(Code::CONTENT).with_payload(b"hello world".to_vec())
        });
        server.insert("/hello", Resource::new(Methods::GET | Methods::PUT, hello).observable());
        let never = Handler::later(|_| std::future::pending());
        server.insert("/never", Resource::new(Methods::GET, never));
        let (changes, loopback) = (server.changes(), "127.0.0.1:0".parse().expect("an address"));
        let address = server.listen_udp(loopback).expect("a free port");
        tokio::spawn(async move {
            let stop = async {
                for _ in 0..20 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    changes.tell("/hello");
                }
            };
            server.run(stop).await
        });
        (address, told)
    }

    #[tokio::test]
    async fn each_request_is_told_once_with_what_became_of_it() {
        let (address, mut told) = logged();
        let uri = |path: &str| format!("coap://{address}{path}");
        let client = Client::builder().build().expect("the defaults");
        client.put(uri("/hello")).payload(vec![7; 3000]).await.expect("an answer");
        let served = told.recv().await.expect("a line");
        assert_eq!(
            (served.method, &*served.path, served.scheme),
            (Code::PUT, "/hello", Scheme::Coap)
        );
        assert_eq!((served.request_len, served.response_len), (3000, 11));
        let block = |number, more| Some(Block { number, more, exponent: Exponent::MAX });
        assert_eq!((served.block1, served.block2), (block(2, false), None));
        assert_eq!((served.code, served.observation), (Some(Code::CONTENT), None));
        assert!(served.took < Duration::from_secs(1));
        client.get(uri("/long")).await.expect("an answer");
        let long = told.recv().await.expect("a line");
        assert_eq!((long.block1, long.block2, long.response_len), (None, block(0, true), 2500));
        // The states that an observer gets are no requests.
        let mut states = client.get(uri("/hello")).observe().await.expect("it is observable");
        for _ in 0..3 {
            states.next().await.expect("it changes").expect("a state");
        }
        let registered = told.recv().await.expect("a line");
        assert_eq!(registered.observation, Some(Observation::Registered));
        states.end().await;
        let deregistered = told.recv().await.expect("a line");
        assert_eq!(deregistered.observation, Some(Observation::Deregistered));
        let missing = client.get(uri("/none")).await.expect("an answer");
        assert_eq!(missing.code(), Code::NOT_FOUND);
        assert_eq!(told.recv().await.expect("a line").code, Some(Code::NOT_FOUND));
        // The end of the server leaves this one without an answer.
        let never = uri("/never");
        let asking = client.get(&never).within(Duration::from_secs(20));
        let unanswered = async { told.recv().await.expect("a line") };
        tokio::select! {
            answer = asking => panic!("{answer:?}"),
            served = unanswered => assert_eq!((&*served.path, served.code), ("/never", None)),
        }
    }
}
