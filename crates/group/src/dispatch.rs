//! Requests to members: each waits for its time and for the gate of its domain, and ends once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};

use core::net::IpAddr;

use lowmesh_coap::RequestTemplate;
use lowmesh_machine::{Outbox, earliest};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::uri::Host;

use crate::gate::{self, Gate, Path, Repair, Sample, Snapshot};
use crate::lane::{Lane, Open, ask_again, pump};
use crate::output::{ExchangeId, Output, Owner};
use crate::params::DOMAINS_MAX;
use crate::places::Places;
use crate::target::{Authority, Domain};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answer(Sample),
    Lost,
    Over,
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
    /// The client for whom the manager asks now.
    client: Option<IpAddr>,
}

impl Dispatch {
    pub(crate) fn new(gate: Choice<dyn Gate>) -> Self {
        Self {
            gate,
            outbox: Outbox::new(),
            serial: 0,
            open: BTreeMap::new(),
            lanes: BTreeMap::new(),
            later: BTreeSet::new(),
            routes: BTreeMap::new(),
            places: Places::default(),
            client: None,
        }
    }
    /// Sets the client for whom the next requests are.
    pub(crate) fn set_client(&mut self, client: Option<IpAddr>) {
        self.client = client;
    }
    /// The client for whom a request is.
    pub(crate) fn client(&self, number: u64) -> Option<IpAddr> {
        self.open.get(&number).and_then(|open| open.client)
    }
    /// Requests that are not over.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
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
    /// Ends a request.
    pub(crate) fn end(&mut self, number: u64, end: End, now: Instant) -> Option<Owner> {
        let open = self.open.remove(&number)?;
        if open.sent.is_some() && open.wait.is_none() {
            self.places.free(open.client, &open.to);
        }
        if let (Some(sent), Some(lane)) = (open.sent, self.lanes.get_mut(&open.domain)) {
            if let Some(again) = open.again {
                lane.silent.remove(&(again, number));
            }
            let has_place = lane.release(sent, number);
            match end {
                End::Answer(sample) if has_place => lane.gate.on_answer(&open.path, sample, now),
                End::Answer(sample) => lane.gate.on_late(&open.path, sample, now),
                End::Lost if has_place => lane.gate.on_lost(&open.path, now),
                End::Over if has_place => lane.gate.on_discarded(&open.path, now),
                End::Lost | End::Over => {}
            }
        }
        Some(open.owner)
    }
    /// Gives a request up; false if it has not left.
    pub(crate) fn cancel(&mut self, number: u64, now: Instant) -> bool {
        let Some(open) = self.open.get(&number) else { return true };
        let has_left = open.sent.is_some();
        if has_left {
            self.outbox.push(Output::Cancel { exchange: ExchangeId(number) });
        } else if let Some(lane) = self.lanes.get_mut(&open.domain) {
            lane.withdraw(number, open);
        }
        self.later.remove(&(open.start, number));
        self.end(number, End::Over, now);
        has_left
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
        while let Some((start, number)) = self.later.first().copied()
            && start <= now
        {
            self.later.pop_first();
            self.make_ready(number, now);
        }
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
                pump(lane, (&mut self.open, &mut self.places), &mut self.outbox, now);
            }
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
        earliest(lanes, self.later.first().map(|(start, _)| *start))
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
mod tests {
    use super::*;
    use alloc::vec::Vec;

    use lowmesh_registry::Registry;
    use lowmesh_wire::coap::Code;

    use crate::params::{UNDER_WAY_A_CLIENT_MAX, UNDER_WAY_A_NODE_MAX};

    const OWNER: Owner = Owner::Group { query: 1 };

    fn dispatch(gate: &str) -> Dispatch {
        Dispatch::new(Registry::<dyn Gate>::builtin().choose(gate).expect("a row"))
    }

    fn ask(dispatch: &mut Dispatch, node: u16, start: Instant) -> u64 {
        let to = format!("coap://[fd00::{node:x}]/").parse().expect("a URI");
        dispatch.ask(OWNER, Authority::of(&to), RequestTemplate::get("/t"), start)
    }

    fn sent(dispatch: &mut Dispatch, now: Instant) -> Vec<u64> {
        dispatch.advance(now);
        let number = |output| match output {
            Output::Request { exchange, .. } => exchange.0,
            other => panic!("{other:?}"),
        };
        core::iter::from_fn(|| dispatch.pop()).map(number).collect()
    }

    #[test]
    fn a_request_leaves_at_its_time_and_not_before() {
        let mut dispatch = dispatch("fixed");
        let first = ask(&mut dispatch, 1, Instant::ZERO);
        let second = ask(&mut dispatch, 2, Instant::from_millis(100));
        assert_eq!(sent(&mut dispatch, Instant::ZERO), [first]);
        assert_eq!(dispatch.next_deadline(), Some(Instant::from_millis(100)));
        assert_eq!(sent(&mut dispatch, Instant::from_millis(100)), [second]);
    }

    #[test]
    fn a_window_lets_the_next_request_leave_with_an_answer_or_after_its_patience() {
        let mut dispatch = dispatch("gate-aimd");
        let all: Vec<u64> = (1..=4).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
        assert_eq!(sent(&mut dispatch, Instant::ZERO), all[..2]);
        let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
        let now = Instant::from_millis(10);
        assert_eq!(dispatch.end(all[0], End::Answer(sample), now), Some(OWNER));
        assert_eq!(sent(&mut dispatch, now), all[2..3]);
        // Two requests are silent: their places are free after a while, and the last one leaves.
        let later = dispatch.next_deadline().expect("patience");
        assert_eq!(sent(&mut dispatch, later + Duration::from_secs(1)), all[3..]);
        assert_eq!(dispatch.len(), 3);
    }

    #[test]
    fn what_is_cancelled_takes_no_place() {
        let mut dispatch = dispatch("gate-aimd");
        let all: Vec<u64> = (1..=3).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
        dispatch.cancel(all[0], Instant::ZERO);
        assert_eq!(sent(&mut dispatch, Instant::ZERO), all[1..]);
        dispatch.cancel(all[1], Instant::ZERO);
        assert_eq!(dispatch.pop(), Some(Output::Cancel { exchange: ExchangeId(all[1]) }));
        assert_eq!(dispatch.len(), 1);
    }

    #[test]
    fn a_silent_member_of_a_query_is_asked_again_under_the_same_name_but_never_by_post() {
        let mut dispatch = dispatch("gate-climb");
        let owner = Owner::Query { query: 1, slot: 0 };
        let to = |node: u16| {
            let uri = format!("coap://[fd00::{node:x}]/").parse().expect("a URI");
            Authority::of(&uri)
        };
        let first = dispatch.ask(owner, to(1), RequestTemplate::get("/t"), Instant::ZERO);
        assert_eq!(sent(&mut dispatch, Instant::ZERO), [first]);
        let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
        let now = Instant::from_millis(10);
        dispatch.end(first, End::Answer(sample), now);
        let second = dispatch.ask(owner, to(3), RequestTemplate::get("/t"), now);
        assert_eq!(sent(&mut dispatch, now), [second]);
        let mut events = Vec::new();
        let mut now = now;
        while let Some(next) = dispatch.next_deadline() {
            now = next.max(now);
            dispatch.advance(now);
            events.extend(core::iter::from_fn(|| dispatch.pop()).map(|output| match output {
                Output::Cancel { exchange } => (exchange.0, "cancel"),
                Output::Request { exchange, .. } => (exchange.0, "request"),
                other => panic!("{other:?}"),
            }));
        }
        let pair = [(second, "cancel"), (second, "request")];
        assert_eq!(events, [pair, pair, pair].concat());
        assert_eq!(dispatch.end(second, End::Answer(sample), now), Some(owner));
        let posted = dispatch.ask(owner, to(2), RequestTemplate::new(Code::POST, "/t"), now);
        assert_eq!(sent(&mut dispatch, now), [posted]);
        while let Some(next) = dispatch.next_deadline() {
            assert!(sent(&mut dispatch, next.max(now)).is_empty());
        }
    }

    #[test]
    fn a_node_and_a_client_have_their_shares_and_clients_take_turns() {
        let mut dispatch = dispatch("fixed");
        let client = |last| Some(IpAddr::from([192, 0, 2, last]));
        dispatch.set_client(client(1));
        let one: Vec<u64> =
            (0..=UNDER_WAY_A_NODE_MAX).map(|_| ask(&mut dispatch, 1, Instant::ZERO)).collect();
        assert_eq!(sent(&mut dispatch, Instant::ZERO), one[..UNDER_WAY_A_NODE_MAX]);
        let free = UNDER_WAY_A_CLIENT_MAX - UNDER_WAY_A_NODE_MAX;
        let more: Vec<u64> =
            (2..1000).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
        assert_eq!(sent(&mut dispatch, Instant::ZERO), more[..free]);
        dispatch.set_client(client(2));
        let other = ask(&mut dispatch, 7, Instant::ZERO);
        assert_eq!(sent(&mut dispatch, Instant::ZERO), [other]);
        // The end of one lets the next one leave.
        dispatch.end(one[0], End::Over, Instant::ZERO);
        assert_eq!(sent(&mut dispatch, Instant::ZERO), one[UNDER_WAY_A_NODE_MAX..]);
        // With a window, the request of another client does not wait for all of the first.
        let mut dispatch = self::dispatch("gate-aimd");
        dispatch.set_client(client(1));
        let many: Vec<u64> =
            (1..1000).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
        assert_eq!(sent(&mut dispatch, Instant::ZERO), many[..2]);
        dispatch.set_client(client(2));
        let other = ask(&mut dispatch, 2000, Instant::ZERO);
        dispatch.advance(Instant::ZERO);
        let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
        let (mut left, mut now) = (many[..2].to_vec(), Instant::ZERO);
        for _ in 0..2 {
            now += Duration::from_millis(10);
            dispatch.end(left.remove(0), End::Answer(sample), now);
            left.extend(sent(&mut dispatch, now));
        }
        assert!(left.contains(&other), "{left:?}");
    }
}
