//! Several nodes over a graph of lossy links, in virtual time. Messages cross it as bytes.

use std::collections::BTreeMap;

use lowmesh_machine::{DropReason, Machine};
use lowmesh_testkit::{Links, Next};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::rpl::{HopByHopOption, Message};

use crate::objective::OF0;
use crate::{
    Address, Config, Destination, Etx, ForwardContext, Input, Mode, NextHop, Output, Rpl, Verdict,
};

/// Attempts that the link layer makes for a unicast frame.
const ATTEMPTS: u32 = 8;

pub(super) fn link_local(node: usize) -> Address {
    let mut address = [0; 16];
    (address[0], address[1], address[15]) = (0xfe, 0x80, node as u8);
    address
}
pub(super) fn global(node: usize) -> Address {
    let mut address = link_local(node);
    (address[0], address[1]) = (0xfd, 0);
    address
}
pub(super) fn node_of(address: &Address) -> usize {
    address[15].into()
}
pub(super) fn rng(node: usize, seed: u64) -> Rng {
    Rng::stream(Seed(seed), NodeId(node as u16), Purpose::Rpl)
}

#[derive(Debug)]
struct Flying {
    to: usize,
    from: Address,
    multicast: bool,
    code: u8,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Network {
    pub(super) nodes: Vec<Rpl>,
    /// Expected transmissions of each link, both ways.
    links: BTreeMap<(usize, usize), f64>,
    /// Since when frames over a link that is not there fail, and how many have.
    failing: BTreeMap<(usize, usize), (Instant, u16)>,
    /// How long they do until the link layer says that the neighbour is unreachable.
    pub(super) patience: Duration,
    flying: Links<Flying>,
    /// All outputs but messages.
    pub(super) events: Vec<(Instant, usize, Output)>,
    /// Messages sent, by name.
    pub(super) sent: BTreeMap<&'static str, usize>,
    /// Loses the next messages of this name.
    pub(super) lose: Option<(&'static str, usize)>,
}

impl Network {
    /// Node 0 is the root; every node starts at once.
    pub(super) fn new(count: usize, links: &[(usize, usize, f64)], seed: u64) -> Self {
        Self::with(count, links, seed, |config| config)
    }

    pub(super) fn with(
        count: usize,
        links: &[(usize, usize, f64)],
        seed: u64,
        change: impl Fn(Config) -> Config,
    ) -> Self {
        let node = |id| {
            let config = if id == 0 {
                Config::root(link_local(0), global(0))
            } else {
                Config::router(link_local(id))
            };
            Rpl::new(change(config), rng(id, seed))
        };
        let mut network = Self {
            nodes: (0..count).map(node).collect(),
            links: links.iter().map(|(a, b, etx)| ((*a.min(b), *a.max(b)), *etx)).collect(),
            failing: BTreeMap::new(),
            patience: Duration::ZERO,
            flying: Links::with(Rng::stream(Seed(seed), NodeId(0xffff), Purpose::Reception)),
            events: Vec::new(),
            sent: BTreeMap::new(),
            lose: None,
        };
        for id in 0..count {
            network.input(id, Input::Start);
        }
        network
    }

    pub(super) fn non_storing(config: Config) -> Config {
        config.with_mode(Mode::NonStoring)
    }
    pub(super) fn of0(config: Config) -> Config {
        config.with_objective(&OF0)
    }

    pub(super) fn set_link(&mut self, a: usize, b: usize, etx: f64) {
        self.links.insert((a.min(b), a.max(b)), etx);
        for (here, there) in [(a, b), (b, a)] {
            let neighbour = link_local(there);
            self.input(here, Input::LinkEtx { neighbour, etx: Etx::from_f64(etx), fresh: true });
        }
    }
    pub(super) fn cut(&mut self, a: usize, b: usize) {
        self.links.remove(&(a.min(b), a.max(b)));
        for (here, there) in [(a, b), (b, a)] {
            self.input(here, Input::NeighbourUnreachable { neighbour: link_local(there) });
        }
    }
    /// Cuts a link of which the link layer learns by frames that fail.
    pub(super) fn fade(&mut self, a: usize, b: usize) {
        self.links.remove(&(a.min(b), a.max(b)));
    }
    /// Every node sends a frame to its parent.
    pub(super) fn keep_alive(&mut self) {
        for node in 1..self.nodes.len() {
            if let Some(parent) = self.nodes[node].preferred_parent() {
                self.unicast(node, node_of(&parent));
            }
        }
    }
    /// Takes a node off the air without a word.
    pub(super) fn kill(&mut self, node: usize) {
        self.input(node, Input::Stop);
        let around: Vec<(usize, usize)> =
            self.links.keys().copied().filter(|(a, b)| *a == node || *b == node).collect();
        for (a, b) in around {
            self.links.remove(&(a, b));
            let other = if a == node { b } else { a };
            let neighbour = link_local(node);
            self.input(other, Input::NeighbourUnreachable { neighbour });
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.flying.now()
    }
    pub(super) fn input(&mut self, node: usize, input: Input) {
        self.nodes[node]
            .handle(self.flying.now(), input)
            .expect("the script asks for what is possible");
        while let Some(output) = self.nodes[node].poll_output() {
            match output {
                Output::Send { to, message } => self.send(node, to, &message),
                event => self.events.push((self.now(), node, event)),
            }
        }
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now() + span;
        loop {
            let deadlines = self.nodes.iter().enumerate();
            let timer = deadlines.filter_map(|(id, node)| Some((node.next_deadline()?, id))).min();
            match (self.flying.next(timer.map(|(at, _)| at), end), timer) {
                (Some(Next::Event(frame)), _) => {
                    let Flying { from, multicast, code, bytes, to } = frame;
                    let message = Message::parse(code, &bytes).expect("own bytes decode");
                    self.input(to, Input::Message { from, multicast, message: &message });
                }
                (Some(Next::Deadline), Some((_, id))) => self.input(id, Input::Deadline),
                (Some(Next::Deadline) | None, _) => break,
            }
        }
    }

    fn send(&mut self, node: usize, to: Destination, message: &Message) {
        *self.sent.entry(message.name()).or_insert(0) += 1;
        if let Some((name, left)) = &mut self.lose
            && *name == message.name()
            && *left > 0
        {
            *left -= 1;
            return;
        }
        match to {
            Destination::AllRplNodes => {
                for other in 0..self.nodes.len() {
                    if let Some(etx) = self.etx(node, other)
                        && self.flying.rng().chance(1.0 / etx)
                    {
                        self.fly(other, link_local(node), true, message);
                    }
                }
            }
            Destination::Unicast(to) if to[0] == 0xfe => {
                if self.unicast(node, node_of(&to)) {
                    self.fly(node_of(&to), link_local(node), false, message);
                }
            }
            Destination::Unicast(to) => {
                if self.route(node, node_of(&to)) {
                    self.fly(node_of(&to), global(node), false, message);
                }
            }
        }
    }

    /// One frame with its retries; the sender's link layer learns the ETX.
    fn unicast(&mut self, from: usize, to: usize) -> bool {
        let neighbour = link_local(to);
        let Some(etx) = self.etx(from, to) else {
            let now = self.now();
            let (since, frames) = self.failing.entry((from, to)).or_insert((now, 0));
            *frames += 1;
            let etx = Etx::from_f64(1.0 + 2.0 * f64::from(*frames));
            let input = if now.since(*since) >= self.patience {
                Input::NeighbourUnreachable { neighbour }
            } else {
                Input::LinkEtx { neighbour, etx, fresh: true }
            };
            self.input(from, input);
            return false;
        };
        let arrives = (0..ATTEMPTS).any(|_| self.flying.rng().chance(1.0 / etx));
        self.input(from, Input::LinkEtx { neighbour, etx: Etx::from_f64(etx), fresh: true });
        arrives
    }

    /// A packet over several hops, up the parents or along the source route.
    fn route(&mut self, from: usize, to: usize) -> bool {
        let hops: Vec<usize> = if from == 0 {
            let route = self.nodes[0].source_route(&global(to)).unwrap_or_default();
            route.iter().map(node_of).collect()
        } else {
            self.path_to_root(from).unwrap_or_default()[1..].to_vec()
        };
        let mut here = from;
        for hop in hops {
            if !self.unicast(here, hop) {
                return false;
            }
            here = hop;
        }
        here == to
    }

    fn fly(&mut self, to: usize, from: Address, multicast: bool, message: &Message) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let delay =
            self.flying.rng().duration(Duration::from_millis(10), Duration::from_millis(500));
        let frame = Flying { to, from, multicast, code: message.code(), bytes };
        self.flying.after(delay, frame);
    }

    fn etx(&self, a: usize, b: usize) -> Option<f64> {
        self.links.get(&(a.min(b), a.max(b))).copied()
    }

    /// From `node` along preferred parents; `None` when that does not end at the root.
    pub(super) fn path_to_root(&self, node: usize) -> Option<Vec<usize>> {
        let mut path = vec![node];
        while path[path.len() - 1] != 0 {
            let here = &self.nodes[path[path.len() - 1]];
            let parent = node_of(&here.preferred_parent()?);
            if path.contains(&parent) {
                return None;
            }
            path.push(parent);
        }
        Some(path)
    }

    pub(super) fn all_joined(&self) -> bool {
        self.nodes.iter().all(Rpl::is_joined)
    }
    pub(super) fn routes_at_root(&self) -> usize {
        self.nodes[0].routes().count()
    }

    /// Sends a data packet through `check_forward` of every hop: the path, and why it ended if not arrived.
    pub(super) fn packet(&mut self, from: usize, to: usize) -> (Vec<usize>, Option<DropReason>) {
        let (mut path, mut before): (_, Option<usize>) = (vec![from], None);
        let mut option: Option<HopByHopOption> = None;
        for _ in 0..64 {
            let here = path[path.len() - 1];
            if here == to {
                return (path, None);
            }
            let context = ForwardContext {
                from: before.map(link_local),
                target: global(to),
                source_routed: false,
                option,
            };
            let next = match self.nodes[here].check_forward(self.flying.now(), &context) {
                Verdict::Forward { next: NextHop { address, .. }, option: renewed } => {
                    option = Some(renewed);
                    address
                }
                Verdict::ForwardingError { to, option: renewed } => {
                    option = Some(renewed);
                    to
                }
                Verdict::Drop(reason) => return (path, Some(reason)),
            };
            before = Some(here);
            path.push(node_of(&next));
        }
        (path, Some(DropReason::HopLimit))
    }
}
