//! A server of ours on loopback for as long as a test runs, and the built command.

use std::net::SocketAddr;
use std::process::{Command, Output as Ended};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_coap::{Config, Endpoint, Host, HostLimits, Input, Output, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::dtls::{Keys, Sessions};
use lowmesh_net::peer::Peer;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

/// How often `/count` changes.
pub const PERIOD: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
enum Thing {
    Echo,
    Json,
    Large,
    Broken,
    Count,
    Token,
    /// Observable, and never changes.
    Still,
}

fn router() -> Router<Thing> {
    let mut router = Router::new();
    router.insert("/echo", Resource::new(Methods::ALL, Thing::Echo));
    router.insert("/json", Resource::new(Methods::GET, Thing::Json));
    router.insert("/large", Resource::new(Methods::GET, Thing::Large));
    router.insert("/broken", Resource::new(Methods::GET, Thing::Broken));
    router.insert("/count", Resource::new(Methods::GET, Thing::Count));
    router.insert("/token", Resource::new(Methods::GET, Thing::Token));
    router.insert("/still", Resource::new(Methods::GET, Thing::Still));
    router
}

fn perform(thing: Thing, request: &Message, count: usize) -> ResponseTemplate {
    let content =
        |payload: &[u8]| ResponseTemplate::new(Code::CONTENT).with_payload(payload.into());
    match thing {
        Thing::Echo => content(&[&[b'0' + request.code.0][..], &request.payload].concat()),
        Thing::Json => {
            let mut response = content(b"{\"a\":1}");
            let format = ContentFormat::JSON.0.into();
            response.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
            response
        }
        Thing::Large => content(&[b'x'; 5000]),
        Thing::Broken => ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR),
        Thing::Count => {
            let mut response = content(count.to_string().as_bytes());
            response.options.insert_uint(OptionNumber::OBSERVE, 0);
            response
        }
        Thing::Still => {
            let mut response = content(b"still");
            response.options.insert_uint(OptionNumber::OBSERVE, 0);
            response
        }
        Thing::Token => content(request.token.as_bytes()),
    }
}

/// A server that lives as long as the test.
pub struct Server {
    pub address: SocketAddr,
    observers: Arc<AtomicUsize>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(None)
    }
    /// Over DTLS.
    pub fn secure(identity: &str, key: &str) -> Self {
        let keys = Keys::new().with(identity.as_bytes(), key.as_bytes());
        Self::start_with(Some(Sessions::server(keys.expect("a short key"), None)))
    }
    fn start_with(sessions: Option<Sessions>) -> Self {
        let (tell, told) = mpsc::channel();
        let observers = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&observers);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(serve(sessions, tell, shared));
        });
        Self { address: told.recv().expect("the server has a port"), observers }
    }
    pub fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }
    /// How many observe something, some while after something happened.
    pub fn observers(&self) -> usize {
        std::thread::sleep(2 * PERIOD);
        self.observers.load(Ordering::Relaxed)
    }
}

async fn serve(
    sessions: Option<Sessions>,
    address: mpsc::Sender<SocketAddr>,
    observers: Arc<AtomicUsize>,
) {
    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    let host = Host::over_datagrams(Config::default(), HostLimits::default(), rng);
    let host = host.expect("the defaults are possible");
    let udp = Udp::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    address.send(udp.local_addr()).expect("the test waits");
    let mut driver = match sessions {
        Some(sessions) => Driver::secure(udp, sessions, host),
        None => Driver::new(udp, host),
    };
    let router = router();
    let mut ticks = tokio::time::interval(PERIOD);
    let mut count = 0;
    loop {
        tokio::select! {
            output = driver.next() => answer(&mut driver, &router, output.expect("a socket"), count),
            _ = ticks.tick() => {
                count += 1;
                let now = driver.now();
                driver.change(|host| host.changed("/count", now));
            }
        }
        observers.store(driver.machine().observers(), Ordering::Relaxed);
    }
}

fn answer(
    driver: &mut Driver<Host<Peer, Endpoint<Peer>>>,
    router: &Router<Thing>,
    output: Output<Peer>,
    count: usize,
) {
    let Output::Request { exchange, message, multicast, .. } = output else { return };
    let response = match router.route(&message, multicast) {
        Route::Resource { resource, .. } => perform(*resource.value(), &message, count),
        Route::Answer(response) => response,
        Route::Ignore => return,
    };
    let respond = Input::Respond { exchange, response, handle: Handle::NONE };
    // An observer's exchange is over when the resource has changed again.
    let _unless_it_has_changed = driver.handle(respond);
}

pub fn lowmesh(args: &[&str]) -> Ended {
    Command::new(env!("CARGO_BIN_EXE_lowmesh")).args(args).output().expect("the command was built")
}

pub fn stderr(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}
