//! What a request costs a server without its sockets: from the datagram of a confirmable GET to that
//! of its piggybacked response, deduplication on, 64 peers. Nanoseconds, the best and the median of
//! fifteen rounds. `cargo xtask bench server` runs it.

use std::hint::black_box;
use std::time;

use lowmesh_coap::exchange::{self, Name};
use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_coap::{Config, Endpoint, Host, HostLimits, Input, Output, ResponseTemplate};
use lowmesh_machine::{Handle, Machine};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

const ROUNDS: usize = 15;
const REQUESTS: u32 = 20_000;
const PEERS: u64 = 64;
/// Between requests: about what one core serves.
const PACE: Duration = Duration::from_micros(10);

/// What a server does with a datagram: it hands a request up, and sends what answers it.
trait Server {
    /// Takes a datagram; the request in it is answered with `answer`. Returns octets sent.
    fn serve(&mut self, now: Instant, from: u64, datagram: &[u8], answer: Answer<'_>) -> usize;
}

/// Makes the response to a request.
type Answer<'a> = &'a dyn Fn(&Message) -> ResponseTemplate;

impl Server for Endpoint<u64> {
    fn serve(&mut self, now: Instant, from: u64, datagram: &[u8], answer: Answer<'_>) -> usize {
        let input = exchange::Input::Datagram { from, bytes: datagram };
        self.handle(now, input).expect("datagrams never fail");
        let mut octets = 0;
        while let Some(output) = self.poll_output() {
            match output {
                exchange::Output::Send { bytes, .. } => octets += bytes.len(),
                exchange::Output::Request { exchange, message, .. } => {
                    let (response, handle) = (answer(&message), Name::NONE);
                    let input = exchange::Input::Respond { exchange, response, handle };
                    self.handle(now, input).expect("acceptable");
                }
                _ => {}
            }
        }
        octets
    }
}

impl Server for Host<u64, Endpoint<u64>> {
    fn serve(&mut self, now: Instant, from: u64, datagram: &[u8], answer: Answer<'_>) -> usize {
        let input = Input::Datagram { from, bytes: datagram };
        self.handle(now, input).expect("datagrams never fail");
        let mut octets = 0;
        while let Some(output) = self.poll_output() {
            match output {
                Output::Send { bytes, .. } => octets += bytes.len(),
                Output::Request { exchange, message, .. } => {
                    let (response, handle) = (answer(&message), Handle::NONE);
                    let input = Input::Respond { exchange, response, handle };
                    self.handle(now, input).expect("acceptable");
                }
                _ => {}
            }
        }
        octets
    }
}

/// A server under load.
struct Load<S> {
    server: S,
    router: Router<&'static [u8]>,
    sent: u64,
    datagram: [u8; 14],
}

impl<S: Server> Load<S> {
    fn new(server: S) -> Self {
        let mut router = Router::new();
        let hello = Resource::new(Methods::GET, &b"hello world"[..]);
        router.insert("/hello", hello.format(ContentFormat::TEXT_PLAIN));
        let datagram = *b"\x44\x01\x00\x00\xde\xad\xbe\xef\xb5hello";
        Self { server, router, sent: 0, datagram }
    }
    /// One request with a message ID that its peer has not used lately; returns octets sent.
    fn request(&mut self) -> usize {
        let peer = self.sent % PEERS;
        let id = (self.sent / PEERS) as u16;
        self.datagram[2..4].copy_from_slice(&id.to_be_bytes());
        let now = Instant::ZERO + PACE * self.sent;
        self.sent += 1;
        let router = &self.router;
        self.server.serve(now, peer, &self.datagram, &|message| {
            let Route::Resource { resource, .. } = router.route(message, false) else {
                panic!("the resource is there")
            };
            let mut response = ResponseTemplate::new(Code::CONTENT);
            response.payload = resource.value().to_vec();
            response.options.insert_uint(OptionNumber::CONTENT_FORMAT, 0);
            response
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn measure(name: &str, server: impl Server) {
    let mut load = Load::new(server);
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = time::Instant::now();
            for _ in 0..REQUESTS {
                assert!(black_box(load.request()) > 0);
            }
            start.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:<10} {:>8.0} {:>8.0}", rounds[0], rounds[ROUNDS / 2]);
}

fn main() {
    let rng = |node| Rng::stream(Seed(1), NodeId(node), Purpose::Coap);
    println!("{:<10} {:>8} {:>8}   ns a request", "", "best", "median");
    measure("endpoint", Endpoint::new(Config::default(), rng(1)).expect("possible"));
    let host = Host::over_datagrams(Config::default(), HostLimits::default(), rng(2));
    measure("host", host.expect("possible"));
}
