//! The CSMA MAC under any driver, and three of them on one air that loses frames.

use std::collections::BTreeMap;

use lowmesh_machine::{Handle, Machine};
use lowmesh_testkit::{Links, Next};
use lowmesh_units::{Dbm, Duration, Instant, NodeId, Purpose, Rng, Seed};
use proptest::prelude::*;

use super::bench::{RSSI, frame_from};
use crate::csma::{Access, Acknowledgement, Config, Csma, Input, Output, Radio};
use crate::frame::{airtime, immediate_ack};
use crate::params::{CCA, QUEUE_CONTROL_RESERVE};
use crate::queue::Priority;

fn configs() -> impl Strategy<Value = Config> {
    let acknowledgements = prop_oneof![
        Just(Acknowledgement::Hardware),
        Just(Acknowledgement::Software { delay: Duration::from_micros(900) }),
        Just(Acknowledgement::None),
    ];
    let accesses = prop_oneof![3 => Just(Access::Backoff), 1 => Just(Config::contiki2014().access)];
    let settings =
        (0..=3_u8, 0..=3_u8, 0..=4_u8, 1..5_usize, any::<bool>(), acknowledgements, accesses);
    settings.prop_map(|(be_min, more, backoffs_max, queue, thin, acknowledgement, access)| {
        let radio = if thin { Config::thin().radio } else { Radio::Open };
        Config {
            be_min,
            be_max: be_min + more,
            backoffs_max,
            queue_frames_max: queue,
            acknowledgement,
            access,
            radio,
            ..Config::default()
        }
    })
}

/// What the driver owes the MAC.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owed {
    Sensed,
    Sent,
}

/// A MAC under a driver that does its duty, and otherwise what chance says.
struct Driver {
    now: Instant,
    mac: Csma,
    owed: Vec<(Instant, Owed)>,
    on_air: Option<u8>,
    open: BTreeMap<u64, u32>,
    incoming: bool,
    rng: Rng,
}

impl Driver {
    fn new(config: Config, seed: u64) -> Self {
        let stream = |purpose| Rng::stream(Seed(seed), NodeId(0), purpose);
        let mac = Csma::new(config, NodeId(0).eui64(), stream(Purpose::Mac));
        let mut driver = Self {
            now: Instant::ZERO,
            mac,
            owed: Vec::new(),
            on_air: None,
            open: BTreeMap::new(),
            incoming: false,
            rng: stream(Purpose::Traffic),
        };
        driver.tell(Input::Start);
        driver
    }

    fn tell(&mut self, input: Input<'_>) {
        self.mac.handle(self.now, input).expect("the driver knows its duty");
        while let Some(output) = self.mac.poll_output() {
            self.note(output);
        }
        let bound = self.mac.queue_frames_max() + QUEUE_CONTROL_RESERVE;
        assert!(self.mac.queued() <= bound);
        assert!(self.mac.next_deadline().is_none_or(|due| due >= self.now));
    }

    fn note(&mut self, output: Output) {
        let owes = |driver: &Self, what| driver.owed.iter().any(|(_, owed)| *owed == what);
        match output {
            Output::Sense { at } => {
                assert!(at >= self.now && !owes(self, Owed::Sensed));
                self.owed.push((at + CCA, Owed::Sensed));
            }
            Output::Transmit { at, octets, .. } => {
                assert!(at >= self.now && !owes(self, Owed::Sent) && !self.incoming);
                self.on_air = Some(octets[2]);
                self.owed.push((at + airtime(octets.len()), Owed::Sent));
            }
            Output::Acknowledge { at, octets, .. } => {
                assert!(at >= self.now && !owes(self, Owed::Sent));
                self.owed.push((at + airtime(octets.len()), Owed::Sent));
            }
            Output::Sent { handle, .. } => *self.open.entry(handle.0).or_default() += 1,
            Output::Dropped { dropped, .. } => {
                *self.open.entry(dropped.handle.0).or_default() += 1;
            }
            Output::Received { .. }
            | Output::LinkEtx { .. }
            | Output::NeighbourGone(_)
            | Output::NeighbourBack(_) => {}
        }
    }

    /// Goes to what is due next: a duty, or the MAC's deadline. False when nothing is.
    fn advance(&mut self) -> bool {
        let duty = (0..self.owed.len()).min_by_key(|i| self.owed[*i].0);
        let duty_due = duty.map(|i| self.owed[i].0);
        let deadline = self.mac.next_deadline();
        if let Some(due) = deadline
            && duty_due.is_none_or(|other| due <= other)
        {
            self.now = due;
            self.tell(Input::Deadline);
            assert!(self.mac.next_deadline().is_none_or(|next| next > due), "the same deadline");
            return true;
        }
        let Some(place) = duty else { return false };
        let (due, owed) = self.owed.swap_remove(place);
        self.now = due;
        match owed {
            Owed::Sensed => {
                let busy = self.rng.chance(0.3);
                self.tell(Input::Sensed { busy });
            }
            Owed::Sent => self.tell(Input::Sent),
        }
        true
    }

    fn happen(&mut self, what: u8, handle: u64) {
        let peers = [None, Some(NodeId(1).eui64()), Some(NodeId(2).eui64())];
        let peer = peers[self.rng.below(3) as usize];
        match what {
            0 | 1 => {
                self.open.insert(handle, 0);
                let priority = if what == 0 { Priority::Data } else { Priority::Control };
                let (destination, handle) = (peer, Handle(handle));
                self.tell(Input::Send {
                    destination,
                    payload: &[1, 2],
                    priority,
                    is_advice: false,
                    handle,
                });
            }
            2 if self.incoming => {
                self.incoming = false;
                self.tell(Input::Lost);
            }
            2 if self.mac.listens() => {
                self.incoming = true;
                self.tell(Input::Incoming);
            }
            3 => {
                self.incoming = false;
                let octets = immediate_ack(self.on_air.unwrap_or_default());
                self.hear(&octets);
            }
            4 => {
                self.incoming = false;
                let me = Some(NodeId(0).eui64()).filter(|_| peer.is_some());
                let number = self.rng.below(4) as u8;
                self.hear(&frame_from(NodeId(1).eui64(), me, number));
            }
            5 => {
                self.incoming = false;
                let mut noise = [0; 30];
                self.rng.fill(&mut noise);
                self.hear(&noise);
            }
            _ => {
                self.advance();
            }
        }
    }

    fn hear(&mut self, octets: &[u8]) {
        self.tell(Input::Received { octets, rssi: RSSI, handle: Handle::NONE });
    }
}

proptest! {
    #[test]
    fn every_frame_ends_once_and_no_deadline_is_past(
        config in configs(),
        seed: u64,
        happenings in prop::collection::vec(0_u8..12, 0..300),
    ) {
        let mut driver = Driver::new(config, seed);
        for (number, what) in happenings.into_iter().enumerate() {
            driver.happen(what, number as u64 + 1);
        }
        if core::mem::take(&mut driver.incoming) {
            driver.tell(Input::Lost);
        }
        let mut steps = 0;
        while driver.advance() {
            steps += 1;
            prop_assert!(steps < 10_000, "it never comes to rest");
        }
        prop_assert_eq!(driver.mac.handles().count(), 0);
        for (handle, ends) in &driver.open {
            prop_assert_eq!(*ends, 1, "frame {}", handle);
        }
    }

    #[test]
    fn what_counts_as_delivered_is_delivered_and_nothing_twice(seed: u64, thin: bool, loss in 0.0..0.6) {
        let mut air = Air::new(seed, thin, loss);
        air.run();
        for (handle, sent) in &air.outcome {
            let delivered = air.delivered.get(handle).copied().unwrap_or(0);
            prop_assert!(delivered <= 1, "frame {} came {} times", handle, delivered);
            prop_assert!(!*sent || delivered == 1, "frame {} was acknowledged and is not there", handle);
        }
        prop_assert_eq!(air.outcome.len(), 60);
    }
}

/// What happens on the air of three nodes that all hear each other.
#[derive(Clone, Debug)]
enum Event {
    Send(usize, u64),
    Sense(usize),
    Begin(usize, Vec<u8>, Handle),
    End(usize),
}

/// One channel: two frames at once destroy each other, and one alone is lost by chance.
struct Air {
    macs: Vec<Csma>,
    links: Links<Event>,
    /// Who sends: what, its name, who listens to it, and whether another frame spoilt it.
    flying: BTreeMap<usize, (Vec<u8>, Handle, Vec<usize>, bool)>,
    loss: f64,
    delivered: BTreeMap<u64, u32>,
    outcome: BTreeMap<u64, bool>,
}

impl Air {
    fn new(seed: u64, thin: bool, loss: f64) -> Self {
        let config = if thin { Config::thin() } else { Config::default() };
        let config = Config { queue_frames_max: 64, ..config };
        let mac = |node: u16| {
            let rng = Rng::stream(Seed(seed), NodeId(node), Purpose::Mac);
            let mut mac = Csma::new(config.clone(), NodeId(node).eui64(), rng);
            mac.handle(Instant::ZERO, Input::Start).expect("it was off");
            mac
        };
        let mut air = Self {
            macs: (0..3).map(mac).collect(),
            links: Links::with(Rng::stream(Seed(seed), NodeId(9), Purpose::Reception)),
            flying: BTreeMap::new(),
            loss,
            delivered: BTreeMap::new(),
            outcome: BTreeMap::new(),
        };
        for handle in 1..=60 {
            let at =
                Instant::ZERO + Duration::from_micros(u64::from(air.links.rng().below(400_000)));
            air.links.at(at, Event::Send(handle as usize % 3, handle));
        }
        air
    }

    fn run(&mut self) {
        for _ in 0..100_000 {
            let deadline = (0..3).filter_map(|i| Some((self.macs[i].next_deadline()?, i))).min();
            match (self.links.next(deadline.map(|(due, _)| due), Instant::FAR_FUTURE), deadline) {
                (Some(Next::Event(event)), _) => self.happen(event),
                (Some(Next::Deadline), Some((_, who))) => self.tell(who, Input::Deadline),
                (Some(Next::Deadline) | None, _) => return,
            }
        }
        panic!("the air never falls silent");
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Send(who, handle) => {
                let destination = Some(NodeId((who as u16 + 1) % 3).eui64());
                let payload = &handle.to_be_bytes()[..];
                let (priority, handle) = (Priority::Data, Handle(handle));
                self.tell(
                    who,
                    Input::Send { destination, payload, priority, is_advice: false, handle },
                );
            }
            Event::Sense(who) => {
                let busy = !self.flying.is_empty();
                self.tell(who, Input::Sensed { busy });
            }
            Event::Begin(who, octets, handle) => {
                let collides = !self.flying.is_empty();
                for (.., spoilt) in self.flying.values_mut() {
                    *spoilt = true;
                }
                let mut listeners = Vec::new();
                for other in (0..3).filter(|other| *other != who) {
                    if !collides && self.macs[other].listens() {
                        self.tell(other, Input::Incoming);
                        listeners.push(other);
                    }
                }
                let end = self.links.now() + airtime(octets.len());
                self.flying.insert(who, (octets, handle, listeners, collides));
                self.links.at(end, Event::End(who));
            }
            Event::End(who) => {
                let (octets, handle, listeners, spoilt) =
                    self.flying.remove(&who).expect("it flies");
                self.tell(who, Input::Sent);
                for listener in listeners {
                    if spoilt || self.links.rng().chance(self.loss) {
                        self.tell(listener, Input::Lost);
                    } else {
                        let (octets, rssi) = (&octets[..], Dbm(-60.0));
                        self.tell(listener, Input::Received { octets, rssi, handle });
                    }
                }
            }
        }
    }

    fn tell(&mut self, who: usize, input: Input<'_>) {
        self.macs[who].handle(self.links.now(), input).expect("the air knows its duty");
        while let Some(output) = self.macs[who].poll_output() {
            match output {
                Output::Sense { at } => self.links.at(at + CCA, Event::Sense(who)),
                Output::Transmit { at, octets, handle, .. } => {
                    self.links.at(at, Event::Begin(who, octets, handle));
                }
                Output::Acknowledge { at, octets, .. } => {
                    self.links.at(at, Event::Begin(who, octets, Handle::NONE));
                }
                Output::Received { handle, payload, .. } => {
                    assert_eq!(handle.0.to_be_bytes()[..], payload[..]);
                    *self.delivered.entry(handle.0).or_default() += 1;
                }
                Output::Sent { handle, .. } => self.end(handle, true),
                Output::Dropped { dropped, .. } => self.end(dropped.handle, false),
                Output::LinkEtx { .. } | Output::NeighbourGone(_) | Output::NeighbourBack(_) => {}
            }
        }
    }

    fn end(&mut self, handle: Handle, sent: bool) {
        assert_eq!(self.outcome.insert(handle.0, sent), None, "it ended already");
    }
}
