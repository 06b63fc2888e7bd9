//! Requests to members: each waits for its time and for the gate of its domain, and ends once.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};

use core::net::IpAddr;

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_machine::{Outbox, earliest};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Host;

use crate::gate::{self, Gate, Path, Permit, Repair, Sample, Snapshot};
use crate::params::{DOMAINS_MAX, LOOK_AHEAD};
use crate::target::{Authority, Domain};

/// Names a request of the manager to a member or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub u64);

/// Names a request of a client, which the driver chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An action that a manager requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask a node. It ends with `Input::Response` or `Input::Failed`. After `Output::Cancel` a request may be asked again
    /// with the same name and a new message ID. Of a request with Observe notifications may follow
    /// the response, each as `Input::Notification`, until `Input::Over`, `Input::Failed` or `Output::Cancel`.
    Request {
        /// The name of the request.
        exchange: ExchangeId,
        /// The node.
        to: Authority,
        /// The request.
        message: RequestTemplate,
    },
    /// Ask a group. It ends with `Input::Over` or `Input::Failed`.
    Group {
        /// The name of the request.
        exchange: ExchangeId,
        /// The address of the group.
        to: Authority,
        /// The request.
        message: RequestTemplate,
        /// How long answers are taken.
        wait: Duration,
    },
    /// The end of a request is no longer of interest.
    Cancel {
        /// The name of the request.
        exchange: ExchangeId,
    },
    /// Answer a client.
    Respond {
        /// The request of the client.
        request: RequestId,
        /// The answer.
        response: ResponseTemplate,
    },
}

/// Which part of the manager a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// One member of a query.
    Query { query: u64, slot: usize },
    /// The group of a query.
    Group { query: u64 },
    /// One member of an observation.
    Watch { watch: u64, slot: usize },
    /// One member of a validation.
    Check { check: u64, slot: usize },
    /// The membership of a member.
    Membership { entity: u64, member: u32 },
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answer(Sample),
    Lost,
    Over,
}

#[derive(Debug)]
struct Open {
    owner: Owner,
    to: Authority,
    /// When its time comes.
    start: Instant,
    /// Until it leaves, and as long as it may be repeated.
    message: Option<RequestTemplate>,
    /// How often it was repeated, and when the next time is due.
    times: u8,
    again: Option<Instant>,
    /// Of a request to a group.
    wait: Option<Duration>,
    domain: Domain,
    path: Path,
    sent: Option<Instant>,
}

impl Open {
    /// Whether it is idempotent and ends with its response (RFC 7252 s5.1: POST is not).
    fn may_repeat(&self) -> bool {
        let is_of_query = matches!(self.owner, Owner::Query { .. });
        let may = |message: &RequestTemplate| message.confirmable && message.code != Code::POST;
        is_of_query && self.message.as_ref().is_some_and(may)
    }
}

/// The requests of one domain.
#[derive(Debug)]
struct Lane {
    gate: Box<dyn Gate>,
    /// Those that wait for the gate, by their order.
    ready: BTreeSet<(u8, u64)>,
    /// Those that take a place of the gate, by their time.
    holding: BTreeSet<(Instant, u64)>,
    /// Requests that are repeated if their members stay silent, by the time of the next copy.
    silent: BTreeSet<(Instant, u64)>,
    /// When the gate permits the next one.
    due: Option<Instant>,
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.holding.is_empty() && self.silent.is_empty()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let oldest = self.holding.first().map(|(sent, _)| *sent);
        let patience = oldest.and_then(|sent| Some(sent + self.gate.patience()?));
        let again = self.silent.first().map(|(due, _)| *due);
        let next = earliest(patience, self.due.filter(|_| !self.ready.is_empty()));
        earliest(next, again)
    }
    /// Frees the place of a request; false if it had none.
    fn release(&mut self, sent: Instant, number: u64) -> bool {
        self.holding.remove(&(sent, number))
    }
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
        }
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
        let (domain, path) = (to.domain(), path.unwrap_or_default());
        let message = Some(message);
        let (wait, sent, times, again) = (None, None, 0, None);
        self.insert(Open { owner, to, start, message, times, again, wait, domain, path, sent })
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
        let (domain, path) = (to.domain(), Path::default());
        let (message, wait) = (Some(message), Some(wait));
        let (sent, times, again) = (None, 0, None);
        self.insert(Open { owner, to, start, message, times, again, wait, domain, path, sent })
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
            lane.ready.remove(&(lane.gate.order(&open.path), number));
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
                pump(lane, &mut self.open, &mut self.outbox, now);
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
        let (domain, path) = (open.domain.clone(), open.path);
        if !self.lanes.contains_key(&domain) {
            self.make_room();
        }
        let gate = &self.gate;
        let lane = self.lanes.entry(domain).or_insert_with(|| Lane {
            gate: gate::make(gate),
            ready: BTreeSet::new(),
            holding: BTreeSet::new(),
            silent: BTreeSet::new(),
            due: None,
        });
        lane.ready.insert((lane.gate.order(&path), number));
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

/// Repeats requests whose members are silent for too long. Each keeps its name, and its place if it has one.
fn ask_again(
    lane: &mut Lane,
    open: &mut BTreeMap<u64, Open>,
    outbox: &mut Outbox<Output>,
    now: Instant,
) {
    while let Some((due, number)) = lane.silent.first().copied()
        && due <= now
    {
        lane.silent.pop_first();
        let Some(one) = open.get_mut(&number) else { continue };
        if let Some(sent) = one.sent.replace(now)
            && lane.release(sent, number)
        {
            lane.holding.insert((now, number));
        }
        one.times += 1;
        lane.gate.on_again(&one.path, now);
        one.again = lane.gate.again(&one.path, one.times).map(|wait| now + wait);
        if let Some(again) = one.again {
            lane.silent.insert((again, number));
        }
        let message = if one.again.is_some() { one.message.clone() } else { one.message.take() };
        let message = message.expect("a request that is asked again has its message");
        let (exchange, to) = (ExchangeId(number), one.to.clone());
        outbox.push(Output::Cancel { exchange });
        outbox.push(Output::Request { exchange, to, message });
    }
}

/// Sends what the gate of a lane permits.
fn pump(
    lane: &mut Lane,
    open: &mut BTreeMap<u64, Open>,
    outbox: &mut Outbox<Output>,
    now: Instant,
) {
    lane.due = None;
    loop {
        let mut chosen = None;
        for place in lane.ready.iter().take(LOOK_AHEAD) {
            let Some(one) = open.get(&place.1) else { continue };
            match lane.gate.permits(&one.path, now) {
                Permit::Now => chosen = Some(*place),
                Permit::At(at) => lane.due = Some(at),
                Permit::OtherPath => continue,
                Permit::Blocked => {}
            }
            break;
        }
        let Some(place) = chosen else { return };
        lane.ready.remove(&place);
        let Some(one) = open.get_mut(&place.1) else { continue };
        one.sent = Some(now);
        lane.gate.on_sent(&one.path, now);
        lane.holding.insert((now, place.1));
        one.again =
            lane.gate.again(&one.path, 0).filter(|_| one.may_repeat()).map(|wait| now + wait);
        let message = match one.again {
            Some(again) => {
                lane.silent.insert((again, place.1));
                one.message.clone()
            }
            None => one.message.take(),
        };
        let message = message.expect("a request that waits has its message");
        outbox.push(Output::Request { exchange: ExchangeId(place.1), to: one.to.clone(), message });
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
    use lowmesh_registry::Registry;

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
}
