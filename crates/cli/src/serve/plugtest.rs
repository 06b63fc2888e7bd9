//! The resources that the ETSI CoAP plugtests require of a server (test descriptions TD_COAP_CORE, LINK, BLOCK and OBS),
//! for testing any client.
//!
//! `/obs-non` always notifies with NON; the others with the type of the request. A POST to `/obs-reset` ends its own
//! observations, and `/obs` sends nothing for a while, like a server that restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::resource::{Methods, Resource, State, check_conditions};
use lowmesh_net::server::{Handler, Request, Server};
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};
use tokio::time::Instant;

use super::demo::tick;
use super::reply::{Document, code, error, lock, text, unavailable};

/// How often `/obs` and its relatives change; their representations are fresh for as long.
const PERIOD: Duration = Duration::from_secs(5);
/// How long `/separate` takes: longer than the second after which a request is acknowledged without its answer.
const SEPARATE_AFTER: Duration = Duration::from_millis(1500);
/// Bodies that `/large-create` keeps.
const CREATED_MAX: usize = 8;
/// How long `/obs-reset` answers with the error that ends observations.
const RESET_FOR: Duration = Duration::from_millis(100);
/// How long `/obs` is silent after a POST to `/obs-reset`: its Max-Age passes, and one notification is left out.
const SILENT_FOR: Duration = Duration::from_millis(7_500);

/// Adds them to a server.
pub fn resources(server: &mut Server) {
    core(server);
    conditional(server);
    links(server);
    large(server);
    observable(server);
}

/// Adds a resource that a function answers for.
pub(super) fn put(
    server: &mut Server,
    path: &str,
    methods: Methods,
    answer: impl Fn(&Request) -> ResponseTemplate + Send + Sync + 'static,
) {
    server.insert(path, Resource::new(methods, Handler::new(answer)));
}

/// A text in octets.
const fn plain(body: Vec<u8>) -> Document {
    Document { body, format: ContentFormat::TEXT_PLAIN }
}

/// Lines of 64 octets, `len` octets in all.
fn lines(len: usize) -> Vec<u8> {
    let line = |number: usize| format!("{number:>4} {:-<58}\n", "what a large body is made of ");
    (1..).flat_map(|number| line(number).into_bytes()).take(len).collect()
}

fn core(server: &mut Server) {
    put(
        server,
        "/test",
        Methods::GET | Methods::POST | Methods::PUT | Methods::DELETE,
        |request| {
            match request.method() {
                Code::GET => text(format!("{} bytes of payload", request.payload().len())),
                // TD_COAP_CORE_16: a place of three segments.
                Code::POST => ["location1", "location2", "location3"].iter().fold(
                    code(Code::CREATED),
                    |response, segment| {
                        response.with_option(OptionNumber::LOCATION_PATH, segment.as_bytes())
                    },
                ),
                Code::PUT => code(Code::CHANGED),
                _ => code(Code::DELETED),
            }
        },
    );
    put(server, "/seg1/seg2/seg3", Methods::GET, |_| text("three segments"));
    put(server, "/query", Methods::GET, |request| {
        let arguments: Vec<_> = request.arguments().map(String::from_utf8_lossy).collect();
        // Californium's checker sends no arguments but expects a payload.
        text(if arguments.is_empty() { "no arguments".into() } else { arguments.join("\n") })
    });
    put(server, "/location-query", Methods::POST, |_| {
        ["first=1", "second=2"].iter().fold(code(Code::CREATED), |response, argument| {
            response.with_option(OptionNumber::LOCATION_QUERY, argument.as_bytes())
        })
    });
    let separate = Handler::later(async |_| {
        tokio::time::sleep(SEPARATE_AFTER).await;
        text("an answer of its own")
    });
    server
        .insert("/separate", Resource::new(Methods::GET | Methods::PUT | Methods::POST, separate));
    let formats = Handler::new(|request| {
        let wanted = |(format, _): &&(ContentFormat, _)| request.accept() == Some(*format);
        let (format, body) = *FORMATS.iter().find(wanted).unwrap_or(&FORMATS[0]);
        Document { body: body.to_vec(), format }.content()
    });
    let resource = Resource::new(Methods::GET, formats);
    let resource = FORMATS.iter().fold(resource, |all, (format, _)| all.format(*format));
    server.insert("/multi-format", resource);
}

/// The formats of `/multi-format`; the first is the default. TD_COAP_CORE_20 requests the first two, Californium's
/// checker all.
const FORMATS: [(ContentFormat, &[u8]); 4] = [
    (ContentFormat::TEXT_PLAIN, b"as text"),
    (ContentFormat::XML, b"<answer>as XML</answer>"),
    (ContentFormat::JSON, br#"{"answer":"as JSON"}"#),
    // {"answer": "as CBOR"}
    (ContentFormat::CBOR, b"\xa1\x66answer\x67as CBOR"),
];

/// Resources whose existence or tag a request can make its condition.
fn conditional(server: &mut Server) {
    let document = Mutex::new(Document::text("a text with a tag"));
    let validate = Handler::new(move |request| {
        let mut document = lock(&document);
        let state = State::Present(Some(document.tag()));
        match (check_conditions(&request.message.options, state), request.method()) {
            (Err(refused), _) => code(refused),
            (Ok(()), Code::PUT) => {
                *document = Document::of(request);
                code(Code::CHANGED).with_option(OptionNumber::ETAG, document.tag().as_bytes())
            }
            (Ok(()), _) => document.clone().tagged(),
        }
    });
    server.insert("/validate", Resource::new(Methods::GET | Methods::PUT, validate).conditional());
    for path in ["/create1", "/create2", "/create3"] {
        let place: Mutex<Option<Document>> = Mutex::new(None);
        let create = Handler::new(move |request| create(&mut lock(&place), request));
        let create = Resource::new(Methods::GET | Methods::PUT | Methods::DELETE, create);
        server.insert(path, create.conditional());
    }
}

/// The answers of a place that is empty at first.
fn create(place: &mut Option<Document>, request: &Request) -> ResponseTemplate {
    let state = place.as_ref().map_or(State::Absent, |here| State::Present(Some(here.tag())));
    if let Err(refused) = check_conditions(&request.message.options, state) {
        return code(refused);
    }
    match request.method() {
        Code::PUT => {
            let new = place.replace(Document::of(request)).is_none();
            code(if new { Code::CREATED } else { Code::CHANGED })
        }
        // RFC 7252 s5.8.4: 2.02 whether it was there or not.
        Code::DELETE => {
            *place = None;
            code(Code::DELETED)
        }
        _ => place.clone().map_or(code(Code::NOT_FOUND), Document::tagged),
    }
}

/// Resources for the filters of discovery.
fn links(server: &mut Server) {
    for (path, types, interface) in [
        ("/link1", "Type1 Type2", "If1"),
        ("/link2", "Type2 Type3", "If2"),
        ("/link3", "Type1 Type3", "foo"),
    ] {
        let link = Resource::new(Methods::GET, Handler::new(move |_| text(path)));
        server.insert(path, link.attribute("rt", types).attribute("if", interface));
    }
    let path = Handler::new(|_| {
        let body = b"</path/sub1>,</path/sub2>,</path/sub3>".to_vec();
        Document { body, format: ContentFormat::LINK_FORMAT }.content()
    });
    server.insert("/path", Resource::new(Methods::GET, path).format(ContentFormat::LINK_FORMAT));
    for path in ["/path/sub1", "/path/sub2", "/path/sub3"] {
        put(server, path, Methods::GET, move |_| text(path));
    }
}

/// Bodies that take several blocks.
fn large(server: &mut Server) {
    let body = lines(2000);
    let len = body.len().to_string();
    let large = Handler::new(move |_| plain(body.clone()).tagged());
    server.insert("/large", Resource::new(Methods::GET, large).attribute("sz", &len));
    let document = Mutex::new(plain(lines(1500)));
    put(server, "/large-update", Methods::GET | Methods::PUT, move |request| {
        let mut document = lock(&document);
        if request.method() == Code::PUT {
            *document = Document::of(request);
            return code(Code::CHANGED);
        }
        document.clone().tagged()
    });
    put(server, "/large-post", Methods::POST, |request| {
        // TD_COAP_BLOCK_05: a large body comes, and a large one goes with 2.04.
        let answer = plain(request.payload().to_ascii_uppercase()).content();
        ResponseTemplate { code: Code::CHANGED, ..answer }
    });
    let created: Mutex<(usize, Vec<(usize, Document)>)> = Mutex::new((0, Vec::new()));
    let create = Handler::new(move |request| {
        let (last, all) = &mut *lock(&created);
        let place = request.below().next().map(|place| String::from_utf8_lossy(place).parse());
        match (request.method(), place) {
            (Code::POST, None) => {
                *last += 1;
                if all.len() == CREATED_MAX {
                    all.remove(0);
                }
                all.push((*last, Document::of(request)));
                code(Code::CREATED)
                    .with_option(OptionNumber::LOCATION_PATH, b"large-create")
                    .with_option(OptionNumber::LOCATION_PATH, last.to_string().as_bytes())
            }
            (Code::GET, None) => text(format!("{} bodies; POST one more", all.len())),
            (Code::GET, Some(place)) => {
                let found = all.iter().find(|(number, _)| Ok(*number) == place);
                found.map_or(code(Code::NOT_FOUND), |(_, document)| document.clone().tagged())
            }
            _ => error(Code::METHOD_NOT_ALLOWED, "POST goes to /large-create itself"),
        }
    });
    let create = Resource::new(Methods::GET | Methods::POST, create);
    server.insert("/large-create", create.subtree());
}

/// Resources that change.
fn observable(server: &mut Server) {
    let [obs, non, large] =
        [0, 0, 2000].map(|len| Arc::new(Mutex::new(Observed::new(plain(lines(len))))));
    reset(server, obs.clone());
    for (path, observed) in [("/obs", obs), ("/obs-non", non), ("/obs-large", large)] {
        let changes = server.changes();
        let ticking = observed.clone();
        let handler = Handler::new(move |request| {
            let answer = lock(&observed).answer(request);
            if request.method() != Code::GET {
                changes.tell(path);
            }
            answer
        });
        let methods = Methods::GET | Methods::PUT | Methods::DELETE;
        let resource = Resource::new(methods, handler);
        let resource =
            if path == "/obs-non" { resource.notify_non() } else { resource.observable() };
        server.insert(path, resource);
        tick(server, path, PERIOD, move || lock(&ticking).advance());
    }
}

/// A resource that changes by itself and can be changed.
struct Observed {
    /// What it is at first, and when it comes back.
    first: Document,
    /// Empty: the state is its number.
    now: Presence,
    /// How often it has changed by itself. Requests do not count.
    number: u32,
    /// Until then observers are not notified of changes by itself.
    silent_until: Option<Instant>,
}

/// ```text
///   Here ── DELETE ──► Gone: observers get 4.04 ── after a period, or for a new observer ──► Here, as at first
///     ▲── PUT ──────────┘
/// ```
enum Presence {
    Here(Document),
    Gone { since: Instant },
}

impl Observed {
    fn new(first: Document) -> Self {
        Self { now: Presence::Here(first.clone()), first, number: 1, silent_until: None }
    }
    /// A period has passed. Returns whether to notify observers.
    fn advance(&mut self) -> bool {
        self.number += 1;
        // A deleted resource returns, so that the next test finds it.
        if let Presence::Gone { since } = self.now
            && since.elapsed() >= PERIOD
        {
            self.now = Presence::Here(self.first.clone());
        }
        self.silent_until.is_none_or(|until| until <= Instant::now())
    }
    /// Observers hear nothing for a while, as if the server restarted.
    fn fall_silent(&mut self) {
        self.silent_until = Some(Instant::now() + SILENT_FOR);
    }
    fn answer(&mut self, request: &Request) -> ResponseTemplate {
        match request.method() {
            Code::PUT => {
                self.now = Presence::Here(Document::of(request));
                code(Code::CHANGED)
            }
            Code::DELETE => {
                self.now = Presence::Gone { since: Instant::now() };
                code(Code::DELETED)
            }
            _ => {
                // The next test begins with an observation, right after the test with the DELETE.
                let observes =
                    request.message.options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER);
                if observes && !request.refresh && matches!(self.now, Presence::Gone { .. }) {
                    self.now = Presence::Here(self.first.clone());
                }
                self.state()
            }
        }
    }
    fn state(&self) -> ResponseTemplate {
        let Presence::Here(document) = &self.now else { return code(Code::NOT_FOUND) };
        let mut response = if document.body.is_empty() {
            text(format!("state {}", self.number))
        } else {
            document.clone().content()
        };
        // Fresh until the next change.
        response.options.insert_uint(OptionNumber::MAX_AGE, PERIOD.as_secs() as u32);
        response
    }
}

/// A resource on which a POST ends its observations and silences `/obs`.
fn reset(server: &mut Server, obs: Arc<Mutex<Observed>>) {
    let changes = server.changes();
    let over = Arc::new(AtomicBool::new(false));
    let reset = Handler::new(move |request| {
        if request.method() == Code::POST {
            // TD_COAP_OBS_04: the client notices by Max-Age that notifications stopped, and registers again.
            lock(&obs).fall_silent();
            over.store(true, Ordering::Relaxed);
            changes.tell("/obs-reset");
            let over = over.clone();
            tokio::spawn(async move {
                tokio::time::sleep(RESET_FOR).await;
                over.store(false, Ordering::Relaxed);
            });
            return code(Code::CHANGED);
        }
        // RFC 7641 s4.2: an error ends the observations.
        if over.load(Ordering::Relaxed) {
            return unavailable("observe again", RESET_FOR.as_secs().max(1) as u32);
        }
        text("POST ends all observations")
    });
    let reset = Resource::new(Methods::GET | Methods::POST, reset);
    server.insert("/obs-reset", reset.observable());
}

#[cfg(test)]
mod tests {
    use lowmesh_net::client::{Client, Error};
    use lowmesh_net::server::Limits;

    use super::*;

    #[tokio::test]
    async fn the_error_that_ends_observations_says_when_to_observe_again() {
        let mut server = Server::new(Limits::default()).expect("the defaults");
        resources(&mut server);
        let address = server.listen_udp("127.0.0.1:0".parse().expect("an address")).expect("free");
        let running = tokio::spawn(server.run(std::future::pending()));
        let client = Client::builder().build().expect("the defaults");
        let uri = format!("coap://{address}/obs-reset");
        let mut observation = client.get(&uri).observe().await.expect("it is observable");
        observation.next().await.expect("a state").expect("a success");
        client.post(&uri).await.expect("an answer");
        let end = observation.next().await.expect("the end").expect_err("an error");
        let Error::Answer(end) = end else { panic!("{end}") };
        assert_eq!(end.code(), Code::SERVICE_UNAVAILABLE);
        assert_eq!(end.message.options.get_uint(OptionNumber::MAX_AGE), Some(1));
        running.abort();
    }
}
