//! Two connections over two links in virtual time; segments cross as octets.

use std::collections::BTreeMap;

use lowmesh_machine::{Machine, earliest};
use lowmesh_tcp::{Config, Connection, Ending, Input, Output, Profile, State, Transmit};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::tcp::{Ends, Segment};
use lowmesh_wired::{self as wired, Link, Loss};

/// Octets of an IPv4 header on the link.
const IP_OCTETS: usize = 20;
const CLIENT: [u8; 4] = [10, 9, 0, 2];
const SERVER: [u8; 4] = [10, 9, 0, 1];

/// The link of Pesola 2020: down 30 kbit/s and 400 ms, up 60 kbit/s and 200 ms.
pub fn nb_iot(queue_octets_max: u64, loss: Loss) -> [wired::Config; 2] {
    let config = |rate_bits_per_second, delay_ms| wired::Config {
        rate_bits_per_second,
        delay: Duration::from_millis(delay_ms),
        jitter: (Duration::from_millis(10), Duration::from_millis(20)),
        queue_octets_max,
        loss,
        samples_max: 0,
    };
    [config(60_000, 200), config(30_000, 400)]
}

/// A fast and short link.
pub fn fast(loss: f64) -> [wired::Config; 2] {
    let loss = if loss > 0.0 { Loss::Independent { probability: loss } } else { Loss::None };
    [wired::Config {
        rate_bits_per_second: 10_000_000,
        delay: Duration::from_millis(5),
        jitter: (Duration::ZERO, Duration::from_millis(2)),
        queue_octets_max: 1_000_000,
        loss,
        samples_max: 0,
    }; 2]
}

/// One end with its application.
pub struct End {
    pub connection: Connection,
    pub to_send: Vec<u8>,
    pub written: usize,
    /// Octets of one write.
    pub write_octets: usize,
    pub closes: bool,
    pub reads: bool,
    pub received: Vec<u8>,
    pub peer_closed: bool,
    pub ending: Option<Ending>,
    has_closed: bool,
}

impl End {
    fn new(profile: Profile, ports: (u16, u16), rng: &mut Rng) -> Self {
        let config = Config::new(profile, ports.0, ports.1);
        Self {
            connection: Connection::new(config, rng).expect("a valid profile"),
            to_send: Vec::new(),
            written: 0,
            write_octets: 262,
            closes: true,
            reads: true,
            received: Vec::new(),
            peer_closed: false,
            ending: None,
            has_closed: false,
        }
    }
}

/// End 0 is the client; link 0 is its uplink.
pub struct Pair {
    pub now: Instant,
    pub ends: [End; 2],
    pub links: [Link<Vec<u8>>; 2],
    pub reorders: f64,
    pub duplicates: f64,
    /// Every segment that left: when, from which end, and its octets.
    pub log: Vec<(Instant, usize, Vec<u8>)>,
    mss: usize,
    /// Data segments of the client that are lost, by their count from 0.
    pub loses: Vec<usize>,
    data_count: usize,
    /// What would arrive in this time arrives at its end, in order.
    pub pause: Option<(Instant, Instant)>,
    late: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    late_count: u64,
    rng: Rng,
    /// Called when a request has arrived at the server: octets to answer for octets received.
    pub answer: Option<(usize, usize)>,
}

impl Pair {
    pub fn new(profiles: [Profile; 2], links: [wired::Config; 2], seed: u64) -> Self {
        let stream = |node| Rng::stream(Seed(seed), NodeId(node), Purpose::Wired);
        let mut rng = Rng::stream(Seed(seed), NodeId(9), Purpose::Tcp);
        let ends = [
            End::new(profiles[0], (40_000, 5_683), &mut rng),
            End::new(profiles[1], (5_683, 40_000), &mut rng),
        ];
        let link = |which: usize| Link::new(links[which], stream(which as u16)).expect("valid");
        Self {
            now: Instant::ZERO,
            ends,
            links: [link(0), link(1)],
            reorders: 0.0,
            duplicates: 0.0,
            log: Vec::new(),
            mss: profiles.iter().map(|profile| usize::from(profile.mss)).min().expect("two"),
            loses: Vec::new(),
            data_count: 0,
            pause: None,
            late: BTreeMap::new(),
            late_count: 0,
            rng,
            answer: None,
        }
    }
    /// The server listens, the client connects.
    pub fn connect(&mut self) {
        self.input(1, Input::Listen);
        self.input(0, Input::Open);
    }
    pub fn input(&mut self, end: usize, input: Input<'_>) {
        self.ends[end].connection.handle(self.now, input).expect("an input that fits the state");
        self.settle(end);
    }
    /// Takes the outputs of an end and lets its application act, until both are quiet.
    fn settle(&mut self, end: usize) {
        loop {
            while let Some(output) = self.ends[end].connection.poll_output() {
                self.take(end, output);
            }
            if !self.act(end) {
                return;
            }
        }
    }
    fn take(&mut self, end: usize, output: Output) {
        match output {
            Output::Segment(segment) => self.send(end, &segment),
            Output::Data(data) => self.ends[end].received.extend(data),
            Output::PeerClosed => self.ends[end].peer_closed = true,
            Output::Closed(ending) => self.ends[end].ending = Some(ending),
            Output::Established | Output::Readable => {}
        }
    }
    /// True when the application of an end did something.
    fn act(&mut self, which: usize) -> bool {
        let (now, answer) = (self.now, self.answer);
        let end = &mut self.ends[which];
        if end.reads && end.connection.readable() > 0 {
            end.connection.handle(now, Input::Read(usize::MAX)).expect("there is data");
            return true;
        }
        if let (1, Some((request, response))) = (which, answer) {
            let due = end.received.len() / request * response;
            end.to_send.resize(due.max(end.to_send.len()), b'd');
        }
        let count = (end.to_send.len() - end.written).min(end.write_octets);
        if count > 0 && end.connection.room() >= count {
            let data = end.to_send[end.written..end.written + count].to_vec();
            end.connection.handle(now, Input::Write(&data)).expect("there is room");
            end.written += count;
            return true;
        }
        let is_open = matches!(end.connection.state(), State::Established | State::CloseWait);
        if end.closes && is_open && !end.has_closed && end.written == end.to_send.len() {
            end.connection.handle(now, Input::Close).expect("it is open");
            end.has_closed = true;
            return true;
        }
        false
    }
    fn addresses(end: usize) -> Ends {
        if end == 0 { Ends::V4(CLIENT, SERVER) } else { Ends::V4(SERVER, CLIENT) }
    }
    pub fn send(&mut self, end: usize, segment: &Transmit) {
        let mut bytes = Vec::new();
        let segment = Segment { header: segment.header, payload: &segment.payload };
        segment.emit(&Self::addresses(end), &mut bytes);
        // RFC 6691: options and data together stay within the MSS.
        assert!(
            bytes.len() <= 20 + self.mss || segment.header.control.syn,
            "{} octets",
            bytes.len()
        );
        self.log.push((self.now, end, bytes.clone()));
        if end == 0 && !segment.payload.is_empty() {
            self.data_count += 1;
            if self.loses.contains(&(self.data_count - 1)) {
                return;
            }
        }
        let octets = (bytes.len() + IP_OCTETS) as u32;
        let input = wired::Input::Packet { packet: bytes, octets };
        self.links[end].handle(self.now, input).expect("a link takes all");
        self.drain_link(end);
    }
    fn drain_link(&mut self, from: usize) {
        while let Some(output) = self.links[from].poll_output() {
            let wired::Output::Arrived(bytes) = output else { continue };
            if let Some((_, end)) =
                self.pause.filter(|(start, end)| (*start..*end).contains(&self.now))
            {
                self.late_count += 1;
                self.late.insert((end, self.late_count), (1 - from, bytes));
                continue;
            }
            if self.rng.chance(self.duplicates) {
                self.hold(1 - from, bytes.clone());
            }
            if self.rng.chance(self.reorders) {
                self.hold(1 - from, bytes);
            } else {
                self.arrive(1 - from, &bytes);
            }
        }
    }
    fn hold(&mut self, end: usize, bytes: Vec<u8>) {
        let late = Duration::from_millis(u64::from(self.rng.below(40)));
        self.late_count += 1;
        self.late.insert((self.now + late, self.late_count), (end, bytes));
    }
    /// Octets come to an end.
    pub fn arrive(&mut self, end: usize, bytes: &[u8]) {
        let segment = Segment::parse(&Self::addresses(1 - end), bytes).expect("our own octets");
        let input = Input::Segment { header: &segment.header, payload: segment.payload };
        self.ends[end].connection.handle(self.now, input).expect("segments are never rejected");
        self.settle(end);
    }
    fn next_deadline(&self) -> Option<Instant> {
        let links = earliest(self.links[0].next_deadline(), self.links[1].next_deadline());
        let ends = &self.ends;
        let connections =
            earliest(ends[0].connection.next_deadline(), ends[1].connection.next_deadline());
        let late = self.late.keys().next().map(|(at, _)| *at);
        earliest(earliest(links, connections), late)
    }
    /// One event; false when nothing is left before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        let Some(due) = self.next_deadline().filter(|due| *due <= until) else { return false };
        assert!(due >= self.now, "time goes back");
        self.now = due;
        for link in 0..2 {
            if self.links[link].next_deadline().is_some_and(|at| at <= due) {
                self.links[link].handle(due, wired::Input::Deadline).expect("accepted");
                self.drain_link(link);
            }
        }
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= due) {
            let (end, bytes) = entry.remove();
            self.arrive(end, &bytes);
        }
        for end in 0..2 {
            if self.ends[end].connection.next_deadline().is_some_and(|at| at <= due) {
                self.input(end, Input::Deadline);
            }
        }
        true
    }
    pub fn run(&mut self, until: Instant) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }
    /// Runs until `done`, or panics at `limit`.
    pub fn run_until(&mut self, limit: Instant, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            assert!(
                self.step(limit),
                "not done at {limit}: {:?} {:?}",
                self.ends[0].connection,
                self.ends[1].connection
            );
        }
    }
}
