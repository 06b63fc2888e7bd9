//! The requests of one domain: those that wait for its gate, and those that are under way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;

use lowmesh_coap::RequestTemplate;
use lowmesh_machine::{Outbox, earliest};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;

use crate::gate::{Gate, Path, Permit};
use crate::output::{ExchangeId, Output, Owner};
use crate::params::LOOK_AHEAD;
use crate::places::Places;
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
            message: Some(message),
            times: 0,
            again: None,
            wait: None,
            path: Path::default(),
            sent: None,
            turn: 0,
        }
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
        Self { gate, ready, holding, silent, due: None, turns: Turns::default() }
    }
    /// Lets a request wait for the gate.
    pub(crate) fn enqueue(&mut self, number: u64, open: &mut Open) {
        open.turn = self.turns.next(open.client);
        self.ready.insert((self.gate.order(&open.path), open.turn, number));
    }
    /// Forgets a request that waits.
    pub(crate) fn withdraw(&mut self, number: u64, open: &Open) {
        self.ready.remove(&(self.gate.order(&open.path), open.turn, number));
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.holding.is_empty() && self.silent.is_empty()
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

/// Sends what the gate of a lane permits.
pub(crate) fn pump(
    lane: &mut Lane,
    (open, places): (&mut BTreeMap<u64, Open>, &mut Places),
    outbox: &mut Outbox<Output>,
    now: Instant,
) {
    lane.due = None;
    loop {
        let mut chosen = None;
        for place in lane.ready.iter().take(LOOK_AHEAD) {
            let Some(one) = open.get(&place.2) else { continue };
            if !places.has_room(one.client, &one.to) {
                continue;
            }
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
        let (_, turn, number) = place;
        let Some(one) = open.get_mut(&number) else { continue };
        lane.turns.serve(turn);
        places.take(one.client, &one.to);
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
