//! Requests to members: each waits for its time and for the gate of its domain, and ends once.
//!
//! If nodes that are down fail fast, a query shares the request of another that asks the same, or fails with a request that a
//! node which is known to be down would not answer ([`crate::health`]).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use core::net::IpAddr;

use lowmesh_coap::RequestTemplate;
use lowmesh_machine::{Outbox, earliest};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::uri::Host;

use crate::gate::{self, Gate, Path, Repair, Sample, Snapshot};
use crate::health::{Health, Miss, Standing, Verdict};
use crate::lane::{Lane, Open, ask_again, pump};
use crate::outcome::Reason;
use crate::output::{ExchangeId, Output, Owner};
use crate::params::{DOMAINS_MAX, PROBE_LIFE, SUSPECT_AFTER};
use crate::places::Places;
use crate::target::{Authority, Domain};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answer(Sample),
    /// No answer came.
    Lost,
    /// It failed otherwise, which says nothing about silence.
    Failed,
    Over,
}

/// Whose request has ended, and for which client it was.
pub(crate) type Ended = (Owner, Option<IpAddr>);

/// A request that is carried by another one.
#[derive(Debug)]
struct Follower {
    leader: u64,
    owner: Owner,
    client: Option<IpAddr>,
}

/// All requests that are not over.
#[derive(Debug)]
pub(crate) struct Dispatch {
    gate: Choice<dyn Gate>,
    outbox: Outbox<Output>,
    serial: u64,
    open: BTreeMap<u64, Open>,
    lanes: BTreeMap<Domain, Lane>,
    /// Those whose time has not come.
    later: BTreeSet<(Instant, u64)>,
    routes: BTreeMap<IpAddr, Path>,
    places: Places,
    /// Of nodes, if those that are down fail fast.
    health: Option<Health>,
    /// Open requests that others may share, by their nodes.
    shared: BTreeMap<Authority, BTreeSet<u64>>,
    followers: BTreeMap<u64, Follower>,
    /// Requests whose queries wait for a probe at most so long.
    waits: BTreeSet<(Instant, u64)>,
    /// When probes end.
    lives: BTreeSet<(Instant, u64)>,
    /// Requests that have ended without an event of the driver.
    ended: Vec<(Ended, Reason)>,
    /// The client for whom the manager asks now.
    client: Option<IpAddr>,
}

impl Dispatch {
    pub(crate) fn new(gate: Choice<dyn Gate>, fail_fast: bool) -> Self {
        Self {
            gate,
            outbox: Outbox::new(),
            serial: 0,
            open: BTreeMap::new(),
            lanes: BTreeMap::new(),
            later: BTreeSet::new(),
            routes: BTreeMap::new(),
            places: Places::new(fail_fast),
            health: fail_fast.then(Health::default),
            shared: BTreeMap::new(),
            followers: BTreeMap::new(),
            waits: BTreeSet::new(),
            lives: BTreeSet::new(),
            ended: Vec::new(),
            client: None,
        }
    }
    /// Sets the client for whom the next requests are.
    pub(crate) fn set_client(&mut self, client: Option<IpAddr>) {
        self.client = client;
    }
    /// Requests that are not over.
    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.followers.len()
    }
    /// What is known of a node.
    pub(crate) fn standing(&self, node: &Authority) -> Standing {
        self.health.as_ref().map(|health| health.standing(node)).unwrap_or_default()
    }
    /// The nodes whose latest requests had no answer.
    pub(crate) fn failing(&self) -> impl Iterator<Item = (&Authority, Standing)> {
        self.health.iter().flat_map(Health::failing)
    }
    /// How many nodes are known, and how many of them are down.
    pub(crate) fn count_nodes(&self) -> (usize, usize) {
        self.health.as_ref().map_or((0, 0), Health::count)
    }
    /// Requests that have ended without an event of the driver.
    pub(crate) fn take_ended(&mut self) -> Vec<(Ended, Reason)> {
        core::mem::take(&mut self.ended)
    }
    pub(crate) fn push(&mut self, output: Output) {
        self.outbox.push(output);
    }
    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    /// The state of each gate, with a name of its domain.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = (String, Snapshot)> {
        self.lanes.iter().map(|(domain, lane)| (domain.to_string(), lane.gate.snapshot()))
    }
    /// Records the route to a node.
    pub(crate) fn set_route(&mut self, host: IpAddr, path: Path) {
        self.routes.insert(host, path);
    }
    /// Asks a node, at `start` or later.
    pub(crate) fn ask(
        &mut self,
        owner: Owner,
        to: Authority,
        message: RequestTemplate,
        start: Instant,
    ) -> u64 {
        let path = address(&to.host).and_then(|host| self.routes.get(&host).copied());
        let open = Open::new((owner, self.client), to, message, start);
        self.insert(Open { path: path.unwrap_or_default(), ..open })
    }
    /// Asks a group, at `start`. It takes no place of a gate.
    pub(crate) fn ask_group(
        &mut self,
        owner: Owner,
        to: Authority,
        message: RequestTemplate,
        wait: Duration,
        start: Instant,
    ) -> u64 {
        let open = Open::new((owner, self.client), to, message, start);
        self.insert(Open { wait: Some(wait), ..open })
    }
    fn insert(&mut self, open: Open) -> u64 {
        self.serial += 1;
        self.later.insert((open.start, self.serial));
        self.open.insert(self.serial, open);
        self.serial
    }
    /// Whose request it is, if it is not over.
    pub(crate) fn owner(&self, number: u64) -> Option<Owner> {
        self.open.get(&number).map(|open| open.owner)
    }
    /// Ends a request, and those that share it.
    pub(crate) fn end(&mut self, number: u64, end: End, now: Instant) -> Vec<Ended> {
        let Some(open) = self.open.remove(&number) else { return Vec::new() };
        let first = self.places.since(number).unwrap_or(now);
        self.places.free(number);
        if let Some(shared) = self.shared.get_mut(&open.to) {
            shared.remove(&number);
            if shared.is_empty() {
                self.shared.remove(&open.to);
            }
        }
        if let Some(health) = self.health.as_mut().filter(|_| open.wait.is_none()) {
            match end {
                End::Answer(_) => health.on_answer(&open.to, now),
                End::Lost if open.confirmable => health.on_miss(&open.to, Miss::Whole, first, now),
                End::Lost => health.on_miss(&open.to, Miss::Part, first, now),
                End::Failed | End::Over => {}
            }
            health.on_end(&open.to, number);
        }
        if let Some(lane) = self.lanes.get_mut(&open.domain) {
            lane.unpark(&open.to);
        }
        if let (Some(sent), Some(lane)) = (open.sent, self.lanes.get_mut(&open.domain)) {
            if let Some(again) = open.again {
                lane.silent.remove(&(again, number));
            }
            let has_place = lane.release(sent, number);
            match end {
                End::Answer(sample) if has_place => lane.gate.on_answer(&open.path, sample, now),
                End::Answer(sample) => lane.gate.on_late(&open.path, sample, now),
                End::Lost | End::Failed if has_place => lane.gate.on_lost(&open.path, now),
                End::Over if has_place => lane.gate.on_discarded(&open.path, now),
                End::Lost | End::Failed | End::Over => {}
            }
        }
        let followers = open.followers.iter().filter_map(|one| self.followers.remove(one));
        let followers = followers.map(|one| (one.owner, one.client));
        core::iter::once((open.owner, open.client)).chain(followers).collect()
    }
    /// Gives a request up; false if it has not left.
    pub(crate) fn cancel(&mut self, number: u64, now: Instant) -> bool {
        if let Some(follower) = self.followers.remove(&number) {
            return self.forsake(number, &follower, now);
        }
        let Some(open) = self.open.get_mut(&number) else { return true };
        let has_left = open.sent.is_some();
        if !open.followers.is_empty() {
            // The others still want it.
            open.owner = Owner::Nobody;
            return has_left;
        }
        if has_left {
            self.outbox.push(Output::Cancel { exchange: ExchangeId(number) });
        } else if let Some(lane) = self.lanes.get_mut(&open.domain) {
            lane.withdraw(number, open);
        }
        self.later.remove(&(open.start, number));
        self.miss(number, now);
        self.end(number, End::Over, now);
        has_left
    }
    /// A request ends before its time. That says something of its node if the node is suspect.
    fn miss(&mut self, number: u64, now: Instant) {
        let first = self.places.since(number).filter(|first| *first + SUSPECT_AFTER <= now);
        if let (Some(first), Some(open), Some(health)) =
            (first, self.open.get(&number), &mut self.health)
        {
            health.on_miss(&open.to, Miss::Part, first, now);
        }
    }
    /// The node of a request shows that it is there.
    pub(crate) fn on_sign(&mut self, number: u64, now: Instant) {
        let node = self.open.get(&number).filter(|open| open.wait.is_none()).map(|open| &open.to);
        if let (Some(node), Some(health)) = (node, &mut self.health) {
            health.on_sign(node, now);
        }
    }
    /// A member of a group shows that it is there.
    pub(crate) fn on_member(&mut self, member: &Authority, now: Instant) {
        if let Some(health) = &mut self.health {
            health.on_sign(member, now);
        }
    }
    /// A request gives the one up that it shares; false if that has not left.
    fn forsake(&mut self, number: u64, follower: &Follower, now: Instant) -> bool {
        let Some(open) = self.open.get_mut(&follower.leader) else { return true };
        open.followers.retain(|one| *one != number);
        let has_left = open.sent.is_some();
        if open.owner == Owner::Nobody
            && open.followers.is_empty()
            && !self.is_probe(follower.leader)
        {
            self.cancel(follower.leader, now);
        }
        has_left
    }
    fn is_probe(&self, number: u64) -> bool {
        let open = self.open.get(&number);
        let probe = open.and_then(|open| self.health.as_ref()?.probe(&open.to));
        probe == Some(number)
    }
    /// The request that a query shares, waits for or does without; true if it has to leave itself.
    fn judge(&mut self, number: u64, now: Instant) -> bool {
        let (Some(health), Some(open)) = (&mut self.health, self.open.get(&number)) else {
            return true;
        };
        if !matches!(open.owner, Owner::Query { .. }) || open.wait.is_some() {
            return true;
        }
        let node = open.to.clone();
        let wait = match health.judge(&node, number, now) {
            Verdict::Fail => {
                self.fail(number, now);
                return false;
            }
            Verdict::Ask => None,
            Verdict::Join { wait } => Some(wait),
            Verdict::Probe { wait, end } => {
                self.begin_probe(number, wait, end, now);
                None
            }
        };
        if self.share(number) {
            self.waits.extend(wait.map(|wait| (wait, number)));
            // The request that it shares is under way instead of a probe.
            if let Some(health) = &mut self.health {
                health.on_end(&node, number);
            }
            return false;
        }
        // What is to leave beside a probe would be another probe.
        if wait.is_some() {
            self.fail(number, now);
            return false;
        }
        true
    }
    fn begin_probe(&mut self, number: u64, wait: Instant, end: Option<Instant>, now: Instant) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.is_probe = true;
        let (mut wait, mut end) = (wait, end);
        if !open.reads() {
            // No node does what its client was told has failed: a write ends with its query.
            wait = if end.is_some() { wait } else { now + PROBE_LIFE };
            end = Some(wait);
        }
        self.waits.insert((wait, number));
        self.lives.extend(end.map(|end| (end, number)));
    }
    /// Lets a request share one that is open and asks the same (as a proxy may: RFC 7252 s5.7.1).
    fn share(&mut self, number: u64) -> bool {
        let Some(open) = self.open.get(&number) else { return false };
        let Some(message) = open.message.as_ref().filter(|_| open.reads()) else { return false };
        let others = self.shared.get(&open.to).into_iter().flatten();
        let is_same = |other: &&u64| {
            let other = self.open.get(other).and_then(|other| other.shared.as_ref());
            other == Some(message)
        };
        if let Some(leader) = others.copied().find(|other| is_same(&other)) {
            let Some(open) = self.open.remove(&number) else { return false };
            let follower = Follower { leader, owner: open.owner, client: open.client };
            self.followers.insert(number, follower);
            if let Some(leader) = self.open.get_mut(&leader) {
                leader.followers.push(number);
            }
            return true;
        }
        let (node, message) = (open.to.clone(), message.clone());
        self.shared.entry(node).or_default().insert(number);
        if let Some(open) = self.open.get_mut(&number) {
            open.shared = Some(message);
        }
        false
    }
    /// Ends a request that has not left, since its node is down.
    fn fail(&mut self, number: u64, now: Instant) {
        let ended = self.end(number, End::Failed, now);
        self.ended.extend(ended.into_iter().map(|ended| (ended, Reason::Down)));
    }
    /// Queries do without probes that are silent for too long, and probes end.
    fn expire(&mut self, now: Instant) {
        while let Some((due, number)) = self.waits.first().copied()
            && due <= now
        {
            self.waits.pop_first();
            if let Some(Follower { leader, owner, client }) = self.followers.remove(&number) {
                self.ended.push(((owner, client), Reason::Silent));
                if let Some(leader) = self.open.get_mut(&leader) {
                    leader.followers.retain(|one| *one != number);
                }
            } else if let Some(open) = self.open.get_mut(&number)
                && open.owner != Owner::Nobody
            {
                let owner = core::mem::replace(&mut open.owner, Owner::Nobody);
                self.ended.push(((owner, open.client), Reason::Silent));
            }
        }
        while let Some((due, number)) = self.lives.first().copied()
            && due <= now
        {
            self.lives.pop_first();
            self.cancel(number, now);
        }
    }
    /// Ends a request whose place another one has taken.
    fn give_up(&mut self, number: u64, now: Instant) {
        self.outbox.push(Output::Cancel { exchange: ExchangeId(number) });
        self.miss(number, now);
        let ended = self.end(number, End::Over, now);
        self.ended.extend(ended.into_iter().map(|ended| (ended, Reason::Silent)));
    }
    /// What the gate of a domain says about silent members of a group.
    pub(crate) fn repair(
        &self,
        member: &Authority,
        silent: usize,
        asked: usize,
        rounds: u8,
    ) -> Repair {
        let lane = self.lanes.get(&member.domain());
        lane.map_or_else(
            || gate::make(&self.gate).repair(silent, asked, rounds),
            |lane| lane.gate.repair(silent, asked, rounds),
        )
    }
    /// Sends what may leave.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.expire(now);
        while let Some((start, number)) = self.later.first().copied()
            && start <= now
        {
            self.later.pop_first();
            if self.judge(number, now) {
                self.make_ready(number, now);
            }
        }
        self.places.age(now);
        let (mut given_up, mut failed) = (Vec::new(), Vec::new());
        for lane in self.lanes.values_mut() {
            ask_again(lane, &mut self.open, &mut self.outbox, now);
            if let Some(patience) = lane.gate.patience() {
                while let Some((sent, number)) = lane.holding.first().copied()
                    && sent + patience <= now
                {
                    lane.holding.pop_first();
                    if let Some(open) = self.open.get(&number) {
                        lane.gate.on_lost(&open.path, now);
                    }
                }
            }
            if !lane.ready.is_empty() {
                let parts = (&mut self.open, &mut self.places, self.health.as_ref());
                let outputs = (&mut self.outbox, &mut given_up, &mut failed);
                pump(lane, parts, outputs, now);
            }
        }
        for number in given_up {
            self.give_up(number, now);
        }
        for number in failed {
            self.fail(number, now);
        }
    }
    fn make_ready(&mut self, number: u64, now: Instant) {
        let Some(open) = self.open.get_mut(&number) else { return };
        if let Some(wait) = open.wait {
            open.sent = Some(now);
            let message = open.message.take().expect("a request leaves once");
            let (exchange, to) = (ExchangeId(number), open.to.clone());
            self.outbox.push(Output::Group { exchange, to, message, wait });
            return;
        }
        let domain = open.domain.clone();
        if !self.lanes.contains_key(&domain) {
            self.make_room();
        }
        let gate = &self.gate;
        let lane = self.lanes.entry(domain).or_insert_with(|| Lane::new(gate::make(gate)));
        if let Some(open) = self.open.get_mut(&number) {
            lane.enqueue(number, open);
        }
    }
    /// Forgets the gate of an idle domain if there are many.
    fn make_room(&mut self) {
        if self.lanes.len() >= DOMAINS_MAX {
            let idle = self.lanes.iter().find(|(_, lane)| lane.is_idle());
            if let Some(domain) = idle.map(|(domain, _)| domain.clone()) {
                self.lanes.remove(&domain);
            }
        }
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let lanes = self.lanes.values().map(Lane::next_deadline).fold(None, earliest);
        let is_short = self.lanes.values().any(|lane| lane.is_short);
        let room = self.places.next_suspect().filter(|_| is_short);
        let first = |set: &BTreeSet<(Instant, u64)>| set.first().map(|(at, _)| *at);
        let others = [&self.later, &self.waits, &self.lives].map(first);
        others.into_iter().fold(earliest(lanes, room), earliest)
    }
}

fn address(host: &Host) -> Option<IpAddr> {
    match host {
        Host::V4(address) => Some((*address).into()),
        Host::V6(address, _) => Some((*address).into()),
        Host::Name(_) => None,
    }
}

#[cfg(test)]
mod tests;
