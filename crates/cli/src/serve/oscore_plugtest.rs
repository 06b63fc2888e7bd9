//! The resources of the OSCORE plugtests as aiocoap's client requests them, for testing any OSCORE client; and `/oscore`,
//! which Californium's checker requests.
//!
//! `/oscore/hello/coap` is asked in the open and `/oscore/hello/1` both protected and, at a server with `--oscore-only`,
//! in the open; the others are asked protected.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{EntityTag, Methods, Resource, State, check_conditions};
use lowmesh_net::server::{Changes, Handler, Server};
use lowmesh_wire::coap::{Code, OptionNumber};

use super::plugtest::put;
use super::reply::{code, error, text};

/// How long each state of an observed resource lasts.
const STATE_LASTS: Duration = Duration::from_secs(2);
/// How long an observed resource answers with the error that ends observations.
const ENDS_FOR: Duration = Duration::from_millis(100);
/// The Max-Age of `/oscore/hello/3`, seconds.
const MAX_AGE: u32 = 5;
/// The tags of `/oscore/hello/2` and `/oscore/hello/7`.
const TAGS: [&[u8]; 2] = [b"\x2b", b"\x7b"];

/// Adds them to a server.
pub fn resources(server: &mut Server) {
    hello(server);
    put(server, "/oscore/hello/6", Methods::POST, |request| ResponseTemplate {
        code: Code::CHANGED,
        ..text("").with_payload(request.payload().to_vec())
    });
    let tagged = Handler::new(|request| {
        let state = State::Present(EntityTag::new(TAGS[1]));
        match check_conditions(&request.message.options, state) {
            Err(refused) => code(refused),
            Ok(()) => code(Code::CHANGED),
        }
    });
    server.insert("/oscore/hello/7", Resource::new(Methods::PUT, tagged).conditional());
    put(server, "/oscore/test", Methods::DELETE, |_| code(Code::DELETED));
    put(server, "/oscore", Methods::GET | Methods::PUT | Methods::DELETE, |request| match request
        .method()
    {
        Code::GET => text("Hello World!"),
        Code::PUT => code(Code::CHANGED),
        _ => code(Code::DELETED),
    });
    for path in ["/oscore/observe1", "/oscore/observe2"] {
        observed(server, path, server.changes());
    }
}

/// The greetings.
fn hello(server: &mut Server) {
    for path in ["/oscore/hello/coap", "/oscore/hello/1"] {
        put(server, path, Methods::GET, |_| text("Hello World!"));
    }
    put(server, "/oscore/hello/2", Methods::GET, |request| {
        if !request.arguments().eq([b"first=1"]) {
            return error(Code::BAD_REQUEST, "ask for ?first=1");
        }
        text("Hello World!").with_option(OptionNumber::ETAG, TAGS[0])
    });
    put(server, "/oscore/hello/3", Methods::GET, |_| {
        let mut response = text("Hello World!");
        response.options.insert_uint(OptionNumber::MAX_AGE, MAX_AGE);
        response
    });
}

/// The states of an observed resource.
///
/// ```text
///   IDLE ── somebody observes ──► ONE ── 2 s ──► TWO ── 2 s ──► ENDS ── 0.1 s ──► IDLE
/// ```
const IDLE: u8 = 0;
const ONE: u8 = 1;
const TWO: u8 = 2;
const ENDS: u8 = 3;

/// A resource that says "one", then "two", and then ends its observations. Later observers join the current state.
fn observed(server: &mut Server, path: &'static str, changes: Changes) {
    let state = Arc::new(AtomicU8::new(IDLE));
    let changes = Arc::new(changes);
    let answer = Handler::new(move |request| {
        let observes = request.message.options.get(OptionNumber::OBSERVE).is_some();
        let starts = || state.compare_exchange(IDLE, ONE, Ordering::Relaxed, Ordering::Relaxed);
        // One at a time, however many observe.
        if observes && starts().is_ok() {
            tokio::spawn(run(Arc::clone(&state), Arc::clone(&changes), path));
        }
        match state.load(Ordering::Relaxed) {
            TWO => text("two"),
            ENDS => error(Code::INTERNAL_SERVER_ERROR, "Terminate Observe"),
            _ => text("one"),
        }
    });
    server.insert(path, Resource::new(Methods::GET, answer).observable());
}

async fn run(state: Arc<AtomicU8>, changes: Arc<Changes>, path: &'static str) {
    for (next, after) in [(TWO, STATE_LASTS), (ENDS, STATE_LASTS), (IDLE, ENDS_FOR)] {
        tokio::time::sleep(after).await;
        state.store(next, Ordering::Relaxed);
        if next != IDLE {
            changes.tell(path);
        }
    }
}
