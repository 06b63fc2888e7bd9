//! The requests of one domain: those that wait for its gate, and those that are under way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use lowmesh_coap::RequestTemplate;
use lowmesh_machine::{Outbox, earliest};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;

use crate::gate::{Gate, Path, Permit};
use crate::health::Health;
use crate::output::{ExchangeId, Output, Owner};
use crate::params::{LOOK_AHEAD, UNDER_WAY_A_NODE_MAX};
use crate::places::{Places, Room};
use crate::target::{Authority, Domain};
use crate::turns::Turns;

/// A request that is not over.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) owner: Owner,
    /// For whom, if not for the manager itself.
    pub(crate) client: Option<IpAddr>,
    pub(crate) to: Authority,
    /// When its time comes.
    pub(crate) start: Instant,
    /// Until it leaves, and as long as it may be repeated.
    pub(crate) message: Option<RequestTemplate>,
    /// How often it was repeated, and when the next time is due.
    pub(crate) times: u8,
    pub(crate) again: Option<Instant>,
    /// Of a request to a group.
    pub(crate) wait: Option<Duration>,
    pub(crate) domain: Domain,
    pub(crate) path: Path,
    pub(crate) sent: Option<Instant>,
    /// Its turn in its domain, once its time has come.
    pub(crate) turn: u64,
    /// Whether it is repeated until it is answered, so that silence says something.
    pub(crate) confirmable: bool,
    /// Whether it finds out if its node is up again.
    pub(crate) is_probe: bool,
    /// What it asks, if others may share it.
    pub(crate) shared: Option<RequestTemplate>,
    /// Others that ask the same.
    pub(crate) followers: Vec<u64>,
}

impl Open {
    /// A request that has not left. It has no turn before its time comes.
    pub(crate) fn new(
        (owner, client): (Owner, Option<IpAddr>),
        to: Authority,
        message: RequestTemplate,
        start: Instant,
    ) -> Self {
        Self {
            owner,
            client,
            domain: to.domain(),
            to,
            start,
            confirmable: message.confirmable,
            is_probe: false,
            shared: None,
            followers: Vec::new(),
            message: Some(message),
            times: 0,
            again: None,
            wait: None,
            path: Path::default(),
            sent: None,
            turn: 0,
        }
    }
    /// Whether it changes nothing, while it has not left.
    pub(crate) fn reads(&self) -> bool {
        let code = self.message.as_ref().map(|message| message.code);
        matches!(code, Some(Code::GET | Code::FETCH))
    }
    /// Whether it leaves only if its node may be up.
    fn may_fail(&self) -> bool {
        matches!(self.owner, Owner::Query { .. }) && !self.is_probe
    }
    /// Whether it is idempotent and ends with its response (RFC 7252 s5.1: POST is not).
    fn may_repeat(&self) -> bool {
        let is_of_query = matches!(self.owner, Owner::Query { .. });
        let may = |message: &RequestTemplate| message.confirmable && message.code != Code::POST;
        is_of_query && self.message.as_ref().is_some_and(may)
    }
}

/// The requests of one domain.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) gate: Box<dyn Gate>,
    /// Those that wait for the gate, by their order, turn and name.
    pub(crate) ready: BTreeSet<(u8, u64, u64)>,
    /// Those that wait for other requests to their node.
    parked: BTreeMap<Authority, BTreeSet<(u8, u64, u64)>>,
    /// Whether some wait for requests to any nodes.
    pub(crate) is_short: bool,
    /// Those that take a place of the gate, by their time.
    pub(crate) holding: BTreeSet<(Instant, u64)>,
    /// Requests that are repeated if their members stay silent, by the time of the next copy.
    pub(crate) silent: BTreeSet<(Instant, u64)>,
    /// When the gate permits the next one.
    due: Option<Instant>,
    turns: Turns,
}

impl Lane {
    pub(crate) fn new(gate: Box<dyn Gate>) -> Self {
        let (ready, holding, silent) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (parked, turns) = (BTreeMap::new(), Turns::default());
        Self { gate, ready, parked, is_short: false, holding, silent, due: None, turns }
    }
    /// Lets a request wait for the gate.
    pub(crate) fn enqueue(&mut self, number: u64, open: &mut Open) {
        open.turn = self.turns.next(open.client);
        self.ready.insert((self.gate.order(&open.path), open.turn, number));
    }
    /// Forgets a request that waits.
    pub(crate) fn withdraw(&mut self, number: u64, open: &Open) {
        let place = (self.gate.order(&open.path), open.turn, number);
        if self.ready.remove(&place) {
            return;
        }
        if let Some(parked) = self.parked.get_mut(&open.to) {
            parked.remove(&place);
            if parked.is_empty() {
                self.parked.remove(&open.to);
            }
        }
    }
    /// Lets requests wait for the gate that have waited for a node.
    pub(crate) fn unpark(&mut self, node: &Authority) {
        let Some(parked) = self.parked.get_mut(node) else { return };
        for _ in 0..UNDER_WAY_A_NODE_MAX {
            self.ready.extend(parked.pop_first());
        }
        if parked.is_empty() {
            self.parked.remove(node);
        }
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty()
            && self.parked.is_empty()
            && self.holding.is_empty()
            && self.silent.is_empty()
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let oldest = self.holding.first().map(|(sent, _)| *sent);
        let patience = oldest.and_then(|sent| Some(sent + self.gate.patience()?));
        let again = self.silent.first().map(|(due, _)| *due);
        let next = earliest(patience, self.due.filter(|_| !self.ready.is_empty()));
        earliest(next, again)
    }
    /// Frees the place of a request; false if it had none.
    pub(crate) fn release(&mut self, sent: Instant, number: u64) -> bool {
        self.holding.remove(&(sent, number))
    }
}

/// Repeats requests whose members are silent for too long. Each keeps its name, and its place if it has one.
pub(crate) fn ask_again(
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

/// What happens next in a lane.
enum Next {
    /// A request leaves.
    Leaves((u8, u64, u64)),
    /// A request waits for others to its node.
    Waits((u8, u64, u64), Authority),
    /// The node of a request is down.
    Fails((u8, u64, u64)),
    Nothing,
}

fn next_of(
    lane: &mut Lane,
    open: &BTreeMap<u64, Open>,
    (places, health): (&Places, Option<&Health>),
    now: Instant,
) -> Next {
    for place in lane.ready.iter().take(LOOK_AHEAD) {
        let Some(one) = open.get(&place.2) else { continue };
        // It may have waited for another request that showed it.
        if one.may_fail() && health.is_some_and(|health| health.standing(&one.to).is_down) {
            return Next::Fails(*place);
        }
        match places.room(one.client, &one.to, now) {
            Room::Free => {}
            Room::Node => return Next::Waits(*place, one.to.clone()),
            Room::Others => {
                lane.is_short = true;
                continue;
            }
        }
        match lane.gate.permits(&one.path, now) {
            Permit::Now => return Next::Leaves(*place),
            Permit::At(at) => lane.due = Some(at),
            Permit::OtherPath => continue,
            Permit::Blocked => {}
        }
        break;
    }
    Next::Nothing
}

/// Sends what the gate of a lane permits. Those in `given_up` have lost their places to it, and the nodes of those in `failed`
/// are down.
pub(crate) fn pump(
    lane: &mut Lane,
    (open, places, health): (&mut BTreeMap<u64, Open>, &mut Places, Option<&Health>),
    (outbox, given_up, failed): (&mut Outbox<Output>, &mut Vec<u64>, &mut Vec<u64>),
    now: Instant,
) {
    (lane.due, lane.is_short) = (None, false);
    loop {
        let place = match next_of(lane, open, (places, health), now) {
            Next::Leaves(place) => place,
            Next::Waits(place, node) => {
                lane.ready.remove(&place);
                lane.parked.entry(node).or_default().insert(place);
                continue;
            }
            Next::Fails(place) => {
                lane.ready.remove(&place);
                failed.push(place.2);
                continue;
            }
            Next::Nothing => return,
        };
        lane.ready.remove(&place);
        let (_, turn, number) = place;
        let Some(one) = open.get_mut(&number) else { continue };
        lane.turns.serve(turn);
        if let Some(oldest) = places.gives_way(one.client) {
            places.free(oldest);
            given_up.push(oldest);
        }
        places.take(number, one.client, &one.to, now);
        one.sent = Some(now);
        lane.gate.on_sent(&one.path, now);
        lane.holding.insert((now, number));
        one.again =
            lane.gate.again(&one.path, 0).filter(|_| one.may_repeat()).map(|wait| now + wait);
        let message = match one.again {
            Some(again) => {
                lane.silent.insert((again, number));
                one.message.clone()
            }
            None => one.message.take(),
        };
        let message = message.expect("a request that waits has its message");
        outbox.push(Output::Request { exchange: ExchangeId(number), to: one.to.clone(), message });
    }
}
