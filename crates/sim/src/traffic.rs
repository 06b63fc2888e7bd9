//! The application: clients that report readings, and the collector that takes them.

use std::collections::VecDeque;

use lowmesh_machine::Handle;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

/// When and what clients send.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// No client sends before this.
    pub start: Duration,
    /// Time between two requests of a client; zero is no traffic at all.
    pub period: Duration,
    /// Share of the period by which each gap varies: uniform in [1 - jitter, 1 + jitter].
    pub jitter: f64,
    /// Octets of payload in a request or datagram.
    pub payload_octets: usize,
    /// What carries the readings.
    pub application: Application,
    /// Readings of a client; without a bound it goes on to the end.
    pub readings_max: Option<u64>,
    /// Requests of a client from the oldest that is not over to the newest; a reading that finds no room among
    /// them is left out.
    pub window: Option<usize>,
    /// Which border router takes the readings of a node.
    pub collector: Collector,
    /// How long the collector takes to answer a request.
    pub service: Duration,
    /// Nodes that are no clients.
    pub silent: Vec<NodeId>,
    /// Only nodes at least so many hops below the root are clients, where routes are given.
    pub hops_min: u16,
}

impl Config {
    /// A CoAP request of 20 octets every half minute, from the sixth minute on: the defaults of a scenario.
    pub fn readings() -> Self {
        Self {
            start: Duration::from_secs(360),
            period: Duration::from_secs(30),
            jitter: 0.1,
            payload_octets: 20,
            application: Application::Coap { confirmable: true, path: "sensor".to_owned() },
            readings_max: None,
            window: None,
            collector: Collector::Own,
            service: Duration::ZERO,
            silent: Vec::new(),
            hops_min: 0,
        }
    }

    /// No traffic at all.
    pub fn silent() -> Self {
        Self { period: Duration::ZERO, ..Self::readings() }
    }
}

/// Which border router takes the readings of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Collector {
    /// That of its own PAN.
    #[default]
    Own,
    /// The one with the lowest number, over the backbone where there are several.
    First,
}

/// What carries the readings.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// CoAP requests.
    Coap {
        /// Confirmable or not.
        confirmable: bool,
        /// The collector's resource, with slashes between segments.
        path: String,
    },
    /// UDP datagrams of [`DATAGRAM_OCTETS_MIN`] octets or more, which nobody answers.
    Datagrams,
}

/// Octets by which the collector tells one datagram from another.
pub const DATAGRAM_OCTETS_MIN: usize = 4;

/// One client's clockwork. Its phase is random, so that clients do not send in step.
#[derive(Debug)]
pub struct Client {
    rng: Rng,
    next: Option<Instant>,
    issued: u64,
    active: bool,
    /// Its requests from the oldest that is not over on, and which of them are over.
    open: VecDeque<(Handle, bool)>,
}

impl Client {
    /// The client of `node`; silent until [`Client::activate`].
    pub fn new(seed: Seed, node: NodeId) -> Self {
        let rng = Rng::stream(seed, node, Purpose::Traffic);
        Self { rng, next: None, issued: 0, active: false, open: VecDeque::new() }
    }

    /// The node has joined: from now on, and from the start of traffic on, it sends.
    pub fn activate(&mut self, now: Instant, config: &Config) {
        if !self.active && !config.period.is_zero() {
            self.active = true;
            let phase = config.period.mul_f64(self.rng.unit());
            self.next = Some(now.max(Instant::ZERO + config.start) + phase);
        }
    }

    /// When the next request is due.
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A request of this client is under way.
    pub fn began(&mut self, handle: Handle) {
        self.open.push_back((handle, false));
    }

    /// A request is over, in one way or another.
    pub fn ended(&mut self, handle: Handle) {
        if let Some(entry) = self.open.iter_mut().find(|(open, _)| *open == handle) {
            entry.1 = true;
        }
        while self.open.front().is_some_and(|(_, over)| *over) {
            self.open.pop_front();
        }
    }

    /// Takes the reading that is due at `now`: its payload; none is due, or it found no room.
    pub fn take(&mut self, now: Instant, config: &Config) -> Option<Vec<u8>> {
        let due = self.next.filter(|due| *due <= now)?;
        let factor = self.rng.between(1.0 - config.jitter, 1.0 + config.jitter);
        self.issued += 1;
        let more = config.readings_max.is_none_or(|max| self.issued < max);
        self.next = more.then(|| due + config.period.mul_f64(factor));
        let room = config.window.is_none_or(|window| self.open.len() < window);
        room.then(|| reading(self.issued, config.payload_octets))
    }
}

/// A text of just `octets` octets that starts with the reading's number.
fn reading(number: u64, octets: usize) -> Vec<u8> {
    let mut text = number.to_string().into_bytes();
    text.resize(octets, b'.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            collector: Collector::Own,
            start: Duration::from_secs(60),
            period: Duration::from_secs(10),
            jitter: 0.1,
            payload_octets: 20,
            application: Application::Coap { confirmable: true, path: "sensor".into() },
            readings_max: None,
            window: None,
            service: Duration::ZERO,
            silent: Vec::new(),
            hops_min: 0,
        }
    }

    #[test]
    fn a_client_sends_once_a_period_from_the_start_on() {
        let config = config();
        let mut client = Client::new(Seed(1), NodeId(3));
        assert_eq!(client.next(), None);
        client.activate(Instant::from_secs(1), &config);
        let mut times = Vec::new();
        while let Some(due) = client.next().filter(|due| *due < Instant::from_secs(1_060)) {
            let payload = client.take(due, &config).expect("due");
            assert_eq!(payload.len(), 20);
            times.push(due);
        }
        assert!(times[0] >= Instant::from_secs(60));
        assert!((95..=105).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|w| w[1].since(w[0]) >= Duration::from_secs(9)));
    }

    #[test]
    fn a_bounded_client_falls_silent_after_its_last_reading() {
        let config = Config { readings_max: Some(3), ..config() };
        let mut client = Client::new(Seed(1), NodeId(3));
        client.activate(Instant::ZERO, &config);
        let readings = core::iter::from_fn(|| client.take(client.next()?, &config));
        assert_eq!(readings.count(), 3);
    }

    #[test]
    fn a_window_stays_shut_until_its_oldest_request_is_over() {
        let config = Config { window: Some(2), ..config() };
        let mut client = Client::new(Seed(1), NodeId(3));
        client.activate(Instant::ZERO, &config);
        let first = client.next().expect("no bound");
        assert!(client.take(first, &config).is_some());
        client.began(Handle(1));
        client.began(Handle(2));
        client.ended(Handle(2));
        let second = client.next().expect("no bound");
        assert_eq!(client.take(second, &config), None, "left out, not kept for later");
        client.ended(Handle(1));
        let third = client.next().expect("no bound");
        assert!(third > second && client.take(third, &config).is_some());
    }

    #[test]
    fn without_a_period_there_is_no_traffic() {
        let mut client = Client::new(Seed(1), NodeId(3));
        client.activate(Instant::ZERO, &Config { period: Duration::ZERO, ..config() });
        assert_eq!(client.next(), None);
    }
}
