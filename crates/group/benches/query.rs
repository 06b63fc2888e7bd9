//! A thousand entities of fifty members: processor time of the manager for one query, and memory for an entity.
//! `cargo xtask bench groups` runs it; it fails if a query costs a millisecond or more, or if a member costs more memory
//! among many entities than among few.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant as Clock};

use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Input, Manager, Output, RequestId};
use lowmesh_machine::Machine as _;
use lowmesh_units::{Duration as Span, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, MessageId, OptionNumber};

const MEMBERS: u32 = 50;
/// Numbers of entities at which memory is measured.
const STAGES: [u32; 3] = [250, 500, 1000];
/// Issue: the overhead of the manager is below this.
const TARGET: Duration = Duration::from_millis(1);
/// A member takes at most so many times the memory that it takes with the fewest entities.
const GROWTH_MAX: f64 = 1.25;

struct Bench {
    manager: Manager,
    serial: u64,
    now: Instant,
}

impl Bench {
    fn request(&mut self, code: Code, path: &str, payload: String) -> Message {
        let mut message = Message::new(Kind::Confirmable, code, MessageId(0));
        message.options.insert_path(path);
        message.payload = payload.into_bytes();
        self.serial += 1;
        let (request, client) = (RequestId(self.serial), Ipv6Addr::LOCALHOST.into());
        self.handle(Input::Request { request, client, message });
        loop {
            match self.manager.poll_output().expect("the request is not answered yet") {
                Output::Request { exchange, message, .. } => {
                    let message = answer(message.options.get(OptionNumber::URI_PATH));
                    let (rtt, retransmissions) = (Span::from_millis(20), 0);
                    self.handle(Input::Response { exchange, message, rtt, retransmissions });
                }
                Output::Respond { response, .. } => {
                    let mut message =
                        Message::new(Kind::Acknowledgement, response.code, MessageId(0));
                    message.payload = response.payload;
                    return message;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    fn handle(&mut self, input: Input) {
        self.manager.handle(self.now, input).expect("accepted");
    }
}

/// What a node answers: its list of resources, or its value.
fn answer(path: Option<&[u8]>) -> Message {
    let mut message = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(0));
    if path == Some(b".well-known") {
        let format = u32::from(ContentFormat::LINK_FORMAT.0);
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
        message.payload = b"</s/t>;ct=0".to_vec();
    } else {
        message.payload = b"21.5".to_vec();
    }
    message
}

fn members(entity: u32) -> String {
    let node = |member: u32| {
        let host =
            Ipv6Addr::new(0xfd00, 0, 0, (entity % 8) as u16, 0, 0, entity as u16, member as u16);
        format!("\"coap://{}/s/t\"", SocketAddr::new(host.into(), 5683))
    };
    (0..MEMBERS).map(node).collect::<Vec<_>>().join(",")
}

/// Octets of memory that the program has.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilo| kilo * 1024)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn main() {
    let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Coap);
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, rng, Instant::ZERO).expect("empty");
    let mut bench = Bench { manager, serial: 0, now: Instant::ZERO };
    let (before, mut made) = (resident(), 0);
    let mut first = None;
    for stage in STAGES {
        while made < stage {
            let document = format!("{{\"name\":\"e{made}\",\"er\":[{}]}}", members(made));
            let response = bench.request(Code::POST, "e", document);
            assert_eq!(response.code, Code::CREATED);
            made += 1;
        }
        if let (Some(before), Some(now)) = (before, resident()) {
            let each = now.saturating_sub(before) / u64::from(stage) / u64::from(MEMBERS);
            println!(
                "{stage:5} entities of {MEMBERS} members: {each} octets a member, with its record in the store"
            );
            let growth = each as f64 / *first.get_or_insert(each) as f64;
            assert!(
                growth < GROWTH_MAX,
                "a member takes {growth:.2} times the memory of the first"
            );
        }
    }
    let mut times: Vec<Duration> = (0..made)
        .map(|entity| {
            let start = Clock::now();
            let response = bench.request(Code::GET, &format!("e/e{entity}"), String::new());
            assert_eq!(response.code, Code::CONTENT);
            start.elapsed()
        })
        .collect();
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "one query of {MEMBERS} members among {made} entities: median {median:?}, 99 % below {worst:?}"
    );
    assert!(median < TARGET, "a query costs {median:?}, and {TARGET:?} is the bound");
}
