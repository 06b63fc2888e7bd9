//! Observations of entities (RFC 7641): clients get a notification when the result of a query changes.
//!
//! A watch observes each member, and asks members that cannot be observed again when their answer is no longer fresh. All
//! clients with the same request share one watch. A sub-entity has a watch of its own, whose result is the answer of one
//! member of the watch above. The members of a group are observed one by one.
//!
//! ```text
//!   member: answer, notification, failure ─► slot ─► result ─► slot of the watch above ... ─► Condition ─► change
//!   change ─► the host of the driver asks for the state of its observers ─► latest result
//!          └► nobody asks: the watch ends
//! ```

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use lowmesh_coap::blockwise::RequestKey;
use lowmesh_machine::earliest;
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber};

use crate::condition::{Condition, Verdict};
use crate::dispatch::Dispatch;
use crate::entity::Entities;
use crate::outcome::{Answer, Reason, read};
use crate::output::{ExchangeId, Output, RequestId};
use crate::params::{
    DEADLINE_MAX, WATCH_HEARD, WATCH_RETRY, WATCHED_A_CLIENT_MAX, WATCHED_MAX,
    WATCHES_A_CLIENT_MAX, WATCHES_MAX,
};
use crate::profile::{Draft, Profile};
use crate::query::{Finished, overrides};
use crate::refusal::Refusal;
use crate::target::{Authority, Target};

mod front;
mod members;

use front::{Front, state};
use members::{Asker, Order, Slot, Watch, ask, open, renewal};

/// A request that registers an observer.
pub(crate) struct Registration {
    pub(crate) request: RequestId,
    pub(crate) client: IpAddr,
    pub(crate) entity: u64,
    pub(crate) draft: Draft,
    pub(crate) condition: Condition,
    /// Of requests for entities of other managers.
    pub(crate) hop_limit: u32,
    pub(crate) message: Message,
}

/// All observations of entities.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    all: BTreeMap<u64, Watch>,
    keys: BTreeMap<RequestKey, u64>,
    /// Requests to members that bring notifications.
    observed: BTreeMap<u64, (u64, usize)>,
    due: BTreeSet<(Instant, u64)>,
    changes: VecDeque<Message>,
    serial: u64,
}

impl Watches {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }
    /// A request whose observers need its new state.
    pub(crate) fn pop_change(&mut self) -> Option<Message> {
        self.changes.pop_front()
    }
    /// Registers an observer, or gives the state that an observer is to be notified of.
    pub(crate) fn register(
        &mut self,
        parts: (&Entities, &mut Dispatch),
        registration: Registration,
        now: Instant,
    ) -> Result<Vec<Finished>, Refusal> {
        let key = RequestKey::of(&registration.message);
        let Some(number) = self.keys.get(&key).copied() else {
            let members = parts.0.requests(registration.entity);
            self.check_room(registration.client, members)?;
            return self.begin(parts, registration, (key, members), now);
        };
        let request = registration.request;
        let Some(watch) = self.all.get_mut(&number) else { return Ok(Vec::new()) };
        let Asker::Clients(front) = &mut watch.asker else { return Ok(Vec::new()) };
        front.announced = None;
        let finished = watch.result.clone().map(|result| (request, result));
        if finished.is_none() {
            front.waiting.push(request);
        }
        self.schedule(number);
        Ok(finished.into_iter().collect())
    }
    fn check_room(&self, client: IpAddr, members: usize) -> Result<(), Refusal> {
        let (mut all, mut of_client, mut share) = (members, members, 0);
        for watch in self.all.values() {
            let Asker::Clients(front) = &watch.asker else { continue };
            all += front.members;
            if front.client == client {
                of_client += front.members;
                share += 1;
            }
        }
        let has_place = self.keys.len() < WATCHES_MAX && share < WATCHES_A_CLIENT_MAX;
        if has_place && all <= WATCHED_MAX && of_client <= WATCHED_A_CLIENT_MAX {
            return Ok(());
        }
        let detail = "end an observation first, or ask without Observe";
        Err(Refusal::new(Code::SERVICE_UNAVAILABLE, "too many observations", detail))
    }

    fn begin(
        &mut self,
        (entities, dispatch): (&Entities, &mut Dispatch),
        registration: Registration,
        (key, members): (RequestKey, usize),
        now: Instant,
    ) -> Result<Vec<Finished>, Refusal> {
        let Registration { request, client, entity, draft, condition, hop_limit, message } =
            registration;
        let chosen = entities.get(entity).and_then(|entity| entity.profile.deadline);
        let wait = draft.deadline.or(chosen).unwrap_or(DEADLINE_MAX);
        let front = Front {
            key: key.clone(),
            message,
            client,
            members,
            condition,
            waiting: vec![request],
            first_by: now + wait,
            shown: None,
            is_outdated: false,
            announced: None,
            again: None,
        };
        let asker = Asker::Clients(Box::new(front));
        let mut orders = vec![Order { asker, entity, label: None, draft, hop_limit }];
        let (top, mut finished) = (self.serial + 1, Vec::new());
        while let Some(order) = orders.pop() {
            let Some(entity) = entities.get(order.entity) else { continue };
            self.serial += 1;
            let number = self.serial;
            match open(entity, order) {
                Ok((watch, profile)) => {
                    if let Asker::Parent { watch: above, slot } = watch.asker
                        && let Some(above) = self.all.get_mut(&above)
                    {
                        above.slots[slot].below = Some(number);
                    }
                    self.all.insert(number, watch);
                    self.ask_all((entities, &mut *dispatch), number, &profile, &mut orders, now);
                }
                Err((Asker::Clients(_), refusal)) => return Err(refusal),
                Err((Asker::Parent { watch, slot }, refusal)) => {
                    let reason = Reason::Refused { code: refusal.code, detail: refusal.detail };
                    finished.extend(self.conclude((watch, slot), Err(reason), now));
                }
            }
        }
        self.keys.insert(key, top);
        self.schedule(top);
        Ok(finished)
    }
    /// Asks the members of a new watch, each a delay after the one before. Sub-entities become orders.
    fn ask_all(
        &mut self,
        (entities, dispatch): (&Entities, &mut Dispatch),
        number: u64,
        profile: &Profile,
        orders: &mut Vec<Order>,
        now: Instant,
    ) {
        let Some(watch) = self.all.get_mut(&number) else { return };
        let settings = watch.settings;
        for (place, slot) in watch.slots.iter_mut().enumerate() {
            let Target::Entity { name, query } = &slot.target else {
                let start = now + profile.delay * place as u64;
                ask(slot, (number, place), settings, dispatch, start);
                continue;
            };
            if let Some((entity, _)) = entities.live(name) {
                let draft = overrides(query).unwrap_or_default();
                let asker = Asker::Parent { watch: number, slot: place };
                let (label, hop_limit) = (Some(slot.label.clone()), settings.hop_limit);
                orders.push(Order { asker, entity, label, draft, hop_limit });
            } else {
                let reason = Reason::Refused { code: Code::NOT_FOUND, detail: String::new() };
                slot.latest = Some(Err(reason));
            }
        }
    }

    /// A member has answered a request of a watch, or not.
    pub(crate) fn end(
        &mut self,
        place: (u64, usize),
        answer: Result<&Message, Reason>,
        now: Instant,
    ) -> Vec<Finished> {
        let Some(slot) = self.slot(place) else { return Vec::new() };
        let label = slot.label.clone();
        let asked = slot.asked;
        let observed = answer.as_ref().is_ok_and(|message| {
            message.options.get(OptionNumber::OBSERVE).is_some()
                && message.code.class() == Class::Success
        });
        slot.ask_at = Some(now + answer.as_ref().map_or(WATCH_RETRY, |one| renewal(one, observed)));
        if !observed {
            slot.asked = None;
        }
        if let (true, Some(exchange)) = (observed, asked) {
            self.observed.insert(exchange, place);
        }
        let outcome = answer.and_then(|message| read(&label, message, None));
        self.conclude(place, outcome, now)
    }
    /// A member notifies.
    pub(crate) fn hear(&mut self, exchange: u64, message: &Message, now: Instant) -> Vec<Finished> {
        let Some(place) = self.observed.get(&exchange).copied() else { return Vec::new() };
        let Some(slot) = self.slot(place) else { return Vec::new() };
        let goes_on = message.code.class() == Class::Success;
        slot.ask_at = Some(now + if goes_on { renewal(message, true) } else { WATCH_RETRY });
        let label = slot.label.clone();
        if !goes_on {
            // RFC 7641 s4.2: an error ends the observation.
            slot.asked = None;
            self.observed.remove(&exchange);
        }
        self.conclude(place, read(&label, message, None), now)
    }
    /// The node of an observation.
    pub(crate) fn node(&self, exchange: u64) -> Option<Authority> {
        let (watch, slot) = self.observed.get(&exchange)?;
        match &self.all.get(watch)?.slots.get(*slot)?.target {
            Target::Resource(uri) => Some(Authority::of(uri)),
            Target::Entity { .. } => None,
        }
    }
    /// A member notifies no more. Its latest answer counts until it is asked again. False if it was not observed.
    pub(crate) fn on_over(&mut self, exchange: u64, now: Instant) -> bool {
        let Some(place) = self.observed.remove(&exchange) else { return false };
        if let Some(slot) = self.slot(place) {
            slot.asked = None;
            slot.ask_at = Some(now + WATCH_RETRY);
        }
        self.schedule(place.0);
        true
    }
    fn slot(&mut self, (watch, slot): (u64, usize)) -> Option<&mut Slot> {
        self.all.get_mut(&watch)?.slots.get_mut(slot)
    }

    /// Notes the outcome of a member, and what follows from it for the watches above.
    fn conclude(
        &mut self,
        place: (u64, usize),
        outcome: Result<Answer, Reason>,
        now: Instant,
    ) -> Vec<Finished> {
        let (mut place, mut outcome) = (place, outcome);
        loop {
            let Some(watch) = self.all.get_mut(&place.0) else { return Vec::new() };
            watch.slots[place.1].latest = Some(outcome);
            if watch.is_complete() {
                watch.collect();
            }
            let next = match (&watch.asker, &watch.result) {
                (Asker::Parent { watch, slot }, Some(result)) => {
                    Some(((*watch, *slot), result.clone()))
                }
                _ => None,
            };
            let number = place.0;
            let Some((above, result)) = next else {
                let finished = self.show(number, now);
                self.schedule(number);
                return finished;
            };
            self.schedule(number);
            place = above;
            outcome = result
                .map_err(|refusal| Reason::Refused { code: refusal.code, detail: refusal.detail });
        }
    }
    /// Gives a new result to those who wait for it, or announces it if it is worth it.
    fn show(&mut self, number: u64, now: Instant) -> Vec<Finished> {
        let Some(watch) = self.all.get_mut(&number) else { return Vec::new() };
        let (Asker::Clients(front), Some(result)) = (&mut watch.asker, &watch.result) else {
            return Vec::new();
        };
        let state = state(result);
        let Some((before, last)) = &front.shown else {
            front.shown = Some((state, now));
            front.again = front.is_outdated.then_some(now);
            let waiting = core::mem::take(&mut front.waiting);
            return waiting.into_iter().map(|request| (request, result.clone())).collect();
        };
        match front.condition.verdict(&state, (before, *last), now) {
            Verdict::Now => self.announce(number, now),
            Verdict::At(at) => front.again = Some(at),
            Verdict::Not => front.again = None,
        }
        Vec::new()
    }
    /// Says that observers of a watch need its state.
    fn announce(&mut self, number: u64, now: Instant) {
        let Some(watch) = self.all.get_mut(&number) else { return };
        let (Asker::Clients(front), Some(result)) = (&mut watch.asker, &watch.result) else {
            return;
        };
        front.shown = Some((state(result), now));
        front.again = None;
        // A request in flight gets the newest state.
        if front.announced.is_none() {
            front.announced = Some(now);
            self.changes.push_back(front.message.clone());
        }
    }

    /// Does what is due: members are asked again, and watches without observers end.
    pub(crate) fn expire(&mut self, dispatch: &mut Dispatch, now: Instant) -> Vec<Finished> {
        let mut finished = Vec::new();
        while let Some((due, number)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            self.ask_again(dispatch, number, now);
            finished.extend(self.advance(dispatch, number, now));
            self.schedule(number);
        }
        finished
    }
    fn ask_again(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) {
        let Some(watch) = self.all.get_mut(&number) else { return };
        watch.due = None;
        let settings = watch.settings;
        for (place, slot) in watch.slots.iter_mut().enumerate() {
            if slot.ask_at.is_none_or(|at| at > now) {
                continue;
            }
            if let Some(exchange) = slot.asked.take()
                && self.observed.remove(&exchange).is_some()
            {
                dispatch.push(Output::Cancel { exchange: ExchangeId(exchange) });
            }
            ask(slot, (number, place), settings, dispatch, now);
        }
    }
    /// The times of a watch itself.
    fn advance(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) -> Vec<Finished> {
        let Some(watch) = self.all.get_mut(&number) else { return Vec::new() };
        let Asker::Clients(front) = &mut watch.asker else { return Vec::new() };
        if front.announced.is_some_and(|at| at + WATCH_HEARD <= now) {
            self.remove(dispatch, number, now);
        } else if front.shown.is_none() && front.first_by <= now {
            for slot in watch.slots.iter_mut().filter(|slot| slot.latest.is_none()) {
                slot.latest = Some(Err(Reason::Silent));
            }
            watch.collect();
            return self.show(number, now);
        } else if front.is_outdated && front.shown.is_some() {
            self.replace(dispatch, number, now);
        } else if front.again.is_some_and(|at| at <= now) {
            return self.show(number, now);
        } else if front.keep_at().is_some_and(|at| at <= now) {
            self.announce(number, now);
        }
        Vec::new()
    }
    /// Computes when there is something to do for a watch.
    fn schedule(&mut self, number: u64) {
        let Some(watch) = self.all.get_mut(&number) else { return };
        let of_members = watch.slots.iter().map(|slot| slot.ask_at).fold(None, earliest);
        let of_clients = match &watch.asker {
            Asker::Parent { .. } => None,
            Asker::Clients(front) => front.next_deadline(),
        };
        if let Some(due) = watch.due.take() {
            self.due.remove(&(due, number));
        }
        watch.due = earliest(of_members, of_clients);
        self.due.extend(watch.due.map(|due| (due, number)));
    }

    /// The members or the profile of an entity have changed, or it has gone: its observers ask again.
    pub(crate) fn on_entity_changed(&mut self, dispatch: &mut Dispatch, name: &str, now: Instant) {
        let is_of_entity = |(_, watch): &(&u64, &Watch)| watch.question.name == name;
        let affected: Vec<u64> =
            self.all.iter().filter(is_of_entity).map(|(number, _)| *number).collect();
        for mut number in affected {
            while let Some(Asker::Parent { watch, .. }) =
                self.all.get(&number).map(|one| &one.asker)
            {
                number = *watch;
            }
            if let Some(Asker::Clients(front)) = self.all.get_mut(&number).map(|one| &mut one.asker)
            {
                front.is_outdated = true;
                self.replace(dispatch, number, now);
            }
        }
    }
    /// Ends an outdated watch whose observers have a result; they ask again.
    fn replace(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) {
        let Some(Asker::Clients(front)) = self.all.get(&number).map(|one| &one.asker) else {
            return;
        };
        if front.is_outdated && front.shown.is_some() {
            self.changes.push_back(front.message.clone());
            self.remove(dispatch, number, now);
        }
    }
    /// Ends a watch with all below it.
    fn remove(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) {
        let mut waiting = vec![number];
        while let Some(one) = waiting.pop() {
            let Some(watch) = self.all.remove(&one) else { continue };
            if let Asker::Clients(front) = &watch.asker {
                self.keys.remove(&front.key);
            }
            if let Some(due) = watch.due {
                self.due.remove(&(due, one));
            }
            for slot in watch.slots {
                waiting.extend(slot.below);
                let Some(exchange) = slot.asked else { continue };
                if self.observed.remove(&exchange).is_some() {
                    dispatch.push(Output::Cancel { exchange: ExchangeId(exchange) });
                } else {
                    dispatch.cancel(exchange, now);
                }
            }
        }
    }
}
