//! Queries: one request of a client becomes a request for each member, and their answers one response.
//!
//! A sub-entity is a query of its own, which runs at the same time as the others. Its answer is the answer of one member of
//! the entity above. So entities nest to any depth, without recursion here.
//!
//! ```text
//!   start ─► slots: waiting ─► asked ─► done          all done, enr answers, or the deadline ─► collect ─► client or parent
//!            of a group: one request, then perhaps repair of the silent ones
//! ```

mod requests;

use alloc::collections::btree_map;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, Message};

use crate::collector::{Outcome, Question, collect};
use crate::dispatch::Dispatch;
use crate::entity::{Entities, Entity, Member};
use crate::gate::{Repair, Sample};
use crate::outcome::{Answer, Reason, read};
use crate::output::{Owner, RequestId};
use crate::params::{DEADLINE_MAX, ROOT};
use crate::profile::{Draft, MessageType, Operation, Profile};
use crate::refusal::Refusal;
use crate::target::{Authority, Entry, Target};
pub(crate) use requests::overrides;
use requests::{ask, group_request, send};

/// Who gets the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Client(RequestId),
    Parent { query: u64, slot: usize },
}

impl Asker {
    const fn is_parent(self) -> bool {
        matches!(self, Self::Parent { .. })
    }
}

/// What all members are asked, shared by the queries of a tree.
#[derive(Debug)]
pub(crate) struct Content {
    /// The method.
    pub(crate) method: Code,
    /// The format of the payload, as the option's number.
    pub(crate) format: Option<u32>,
    /// The payload.
    pub(crate) payload: Vec<u8>,
    /// The Hop-Limit of requests for entities of other managers.
    pub(crate) hop_limit: u32,
}

impl Content {
    fn writes(&self) -> bool {
        matches!(self.method, Code::PUT | Code::POST)
    }
    /// Whether the same request twice does the same as once.
    fn is_idempotent(&self) -> bool {
        self.method != Code::POST
    }
}

/// The end of a query, for its client.
pub(crate) type Finished = (RequestId, Result<Answer, Refusal>);

#[derive(Debug)]
enum Progress {
    Waiting,
    Asked(u64),
    /// The request was given up before it left.
    Unsent,
    /// Another place asks the same member.
    Same,
    Below(u64),
    Done(Result<Answer, Reason>),
}

#[derive(Debug)]
struct Slot {
    member: u32,
    /// What results call the member.
    label: String,
    target: Target,
    progress: Progress,
}

/// The request to the group of a query.
#[derive(Debug)]
struct Round {
    exchange: u64,
    number: u8,
    group: Authority,
}

#[derive(Debug)]
struct Query {
    asker: Asker,
    entity: u64,
    question: Question,
    /// Answers that end the query before all have come.
    enough: Option<usize>,
    content: Arc<Content>,
    confirmable: bool,
    slots: Vec<Slot>,
    left: usize,
    good: usize,
    deadline: Instant,
    /// How long answers of a group are taken.
    wait: Duration,
    round: Option<Round>,
}

/// The place of a member in a query.
type Place = (u64, usize);

/// A query before it runs.
struct Order {
    asker: Asker,
    entity: u64,
    /// What the result above calls the entity; `None` at the top.
    label: Option<String>,
    draft: Draft,
    start: Instant,
    /// How long answers of groups are taken: as long as usual, or until a deadline that someone has chosen.
    wait: Duration,
}

/// Queries under way.
#[derive(Debug)]
pub(crate) struct Queries {
    all: BTreeMap<u64, Query>,
    /// Of equal times that of the newer query is first: a sub-query ends before the one above it.
    deadlines: BTreeSet<(Instant, Reverse<u64>)>,
    serial: u64,
    /// How long answers of groups are taken, unless a deadline says otherwise.
    group_wait: Duration,
    /// Places whose member is asked at another place of the same tree, by that place.
    sames: BTreeMap<Place, Vec<Place>>,
    /// Queries in which a place has got the outcome of another.
    touched: Vec<u64>,
}

impl Queries {
    pub(crate) fn new(group_wait: Duration) -> Self {
        Self {
            all: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            serial: 0,
            group_wait,
            sames: BTreeMap::new(),
            touched: Vec::new(),
        }
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
    /// The entity of a query.
    pub(crate) fn entity(&self, number: u64) -> Option<u64> {
        self.all.get(&number).map(|query| query.entity)
    }
    /// Starts the query of a client, with its sub-queries.
    pub(crate) fn start(
        &mut self,
        (entities, dispatch): (&Entities, &mut Dispatch),
        (request, entity): (RequestId, u64),
        draft: Draft,
        content: Content,
        now: Instant,
    ) -> Result<(), Refusal> {
        let content = Arc::new(content);
        let asker = Asker::Client(request);
        let chosen = entities.get(entity).and_then(|entity| entity.profile.deadline);
        let wait = draft.deadline.or(chosen).unwrap_or(self.group_wait);
        let mut orders = vec![Order { asker, entity, label: None, draft, start: now, wait }];
        // RFC 7252 s5.1: POST is not idempotent, so it reaches a member once, by whatever entities of the tree.
        let mut posted: Option<BTreeMap<String, Place>> =
            (!content.is_idempotent()).then(BTreeMap::new);
        while let Some(order) = orders.pop() {
            let Some(entity) = entities.get(order.entity) else { continue };
            self.serial += 1;
            let (number, is_top) = (self.serial, order.asker == asker);
            let (asker, start) = (order.asker, order.start);
            match prepare(entity, order, content.clone(), now) {
                Ok((mut query, profile)) => {
                    if let Some(posted) = &mut posted {
                        self.share(&mut query, number, posted);
                    }
                    send(
                        &mut query,
                        number,
                        (entities, &mut *dispatch),
                        &profile,
                        &mut orders,
                        start,
                    );
                    self.deadlines.insert((query.deadline, Reverse(number)));
                    if let Asker::Parent { query, slot } = asker
                        && let Some(parent) = self.all.get_mut(&query)
                    {
                        parent.slots[slot].progress = Progress::Below(number);
                    }
                    self.all.insert(number, query);
                }
                Err(refusal) if is_top => return Err(refusal),
                Err(refusal) => {
                    let Asker::Parent { query, slot } = asker else { continue };
                    let reason = Reason::Refused { code: refusal.code, detail: refusal.detail };
                    self.conclude((query, slot), Err(reason));
                    self.end_if_complete(query, now);
                }
            }
        }
        Ok(())
    }
    /// Lets places wait for others that ask the same member.
    fn share(&mut self, query: &mut Query, number: u64, posted: &mut BTreeMap<String, Place>) {
        for (place, slot) in query.slots.iter_mut().enumerate() {
            if !matches!(slot.target, Target::Resource(_)) {
                continue;
            }
            match posted.entry(slot.target.to_string()) {
                btree_map::Entry::Vacant(entry) => _ = entry.insert((number, place)),
                btree_map::Entry::Occupied(first) => {
                    slot.progress = Progress::Same;
                    self.sames.entry(*first.get()).or_default().push((number, place));
                }
            }
        }
    }
    /// A query without open members ends with this step.
    fn end_if_complete(&mut self, number: u64, now: Instant) {
        if let Some(query) = self.all.get_mut(&number).filter(|query| query.left == 0) {
            self.deadlines.remove(&(query.deadline, Reverse(number)));
            query.deadline = now;
            self.deadlines.insert((now, Reverse(number)));
        }
    }
    /// A member has answered, or not.
    pub(crate) fn end(
        &mut self,
        dispatch: &mut Dispatch,
        place: (u64, usize),
        answer: Result<(&Message, Sample), Reason>,
        now: Instant,
    ) -> Option<Finished> {
        let query = self.all.get_mut(&place.0)?;
        let label = query.slots.get(place.1)?.label.clone();
        let outcome = answer.and_then(|(message, sample)| read(&label, message, Some(sample.rtt)));
        self.conclude(place, outcome);
        self.finish(dispatch, place.0, now)
    }
    /// A member of a group has answered.
    pub(crate) fn hear(
        &mut self,
        (entities, dispatch): (&mut Entities, &mut Dispatch),
        number: u64,
        (from, message): (&Authority, &Message),
        now: Instant,
    ) -> Option<Finished> {
        let query = self.all.get_mut(&number)?;
        let is_from = |slot: &Slot| {
            let of_node = matches!(&slot.target, Target::Resource(uri) if from.may_be_of(uri));
            of_node && matches!(slot.progress, Progress::Waiting)
        };
        let slot = query.slots.iter().position(is_from)?;
        let member = query.slots[slot].member;
        if let Target::Resource(uri) = &query.slots[slot].target {
            dispatch.on_member(&Authority::of(uri), now);
        }
        let outcome = read(&query.slots[slot].label, message, None);
        let entity = query.entity;
        mark(entities, entity, member, true, now);
        self.conclude((number, slot), outcome);
        self.finish(dispatch, number, now)
    }
    /// The time for answers of a group is over: silent members are asked again, or count as silent.
    pub(crate) fn over(
        &mut self,
        (entities, dispatch): (&mut Entities, &mut Dispatch),
        number: u64,
        now: Instant,
    ) -> Option<Finished> {
        let query = self.all.get_mut(&number)?;
        let round = query.round.take()?;
        let is_silent = |slot: &&mut Slot| matches!(slot.progress, Progress::Waiting);
        let silent: Vec<&mut Slot> = query.slots.iter_mut().filter(is_silent).collect();
        let (count, asked) = (silent.len(), query.left + query.good);
        let node = silent.first().and_then(|slot| match &slot.target {
            Target::Resource(uri) => Some(Authority::of(uri)),
            Target::Entity { .. } => None,
        });
        let repair = match node {
            Some(node) if query.content.is_idempotent() => {
                dispatch.repair(&node, count, asked.max(count), round.number)
            }
            _ => Repair::None,
        };
        match repair {
            Repair::Group => {
                let template = group_request(&query.content, &query.slots[0].target);
                let owner = Owner::Group { query: number };
                let wait = query.wait.min(query.deadline.since(now));
                let group = round.group;
                let exchange = dispatch.ask_group(owner, group.clone(), template, wait, now);
                query.round = Some(Round { exchange, number: round.number + 1, group });
                return None;
            }
            Repair::Unicast => {
                for (place, slot) in query.slots.iter_mut().enumerate() {
                    if matches!(slot.progress, Progress::Waiting) {
                        mark(entities, query.entity, slot.member, false, now);
                        ask(slot, (number, place), &query.content, true, dispatch, now);
                    }
                }
                return None;
            }
            Repair::None => {}
        }
        for slot in 0..query.slots.len() {
            let Some(query) = self.all.get(&number) else { break };
            if matches!(query.slots[slot].progress, Progress::Waiting) {
                mark(entities, query.entity, query.slots[slot].member, false, now);
                self.conclude((number, slot), Err(Reason::Silent));
            }
        }
        self.finish(dispatch, number, now)
    }
    /// Ends queries whose time is over.
    pub(crate) fn expire(&mut self, dispatch: &mut Dispatch, now: Instant) -> Vec<Finished> {
        let mut finished = Vec::new();
        while let Some((deadline, Reverse(number))) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.deadlines.pop_first();
            if let Some(query) = self.all.get_mut(&number) {
                query.left = 0;
                finished.extend(self.finish(dispatch, number, now));
            }
        }
        finished
    }

    fn conclude(&mut self, (number, slot): (u64, usize), outcome: Result<Answer, Reason>) {
        let Some(query) = self.all.get_mut(&number) else { return };
        if matches!(query.slots[slot].progress, Progress::Done(_)) {
            return;
        }
        query.good +=
            usize::from(outcome.as_ref().is_ok_and(|answer| counts(&query.question, answer)));
        query.left = query.left.saturating_sub(1);
        let sames = self.sames.remove(&(number, slot));
        let sames = sames.into_iter().flatten();
        let sames: Vec<_> = sames.map(|place| (place, outcome.clone())).collect();
        query.slots[slot].progress = Progress::Done(outcome);
        for (place, outcome) in sames {
            self.touched.push(place.0);
            self.conclude(place, outcome);
        }
    }
    /// Collects a query that is complete, those in which its members are too, and those above. The result is that of a client.
    fn finish(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) -> Option<Finished> {
        while let Some(touched) = self.touched.pop() {
            if let Some(finished) = self.finish_one(dispatch, touched, now) {
                self.touched.clear();
                return Some(finished);
            }
        }
        self.finish_one(dispatch, number, now)
    }
    fn finish_one(
        &mut self,
        dispatch: &mut Dispatch,
        number: u64,
        now: Instant,
    ) -> Option<Finished> {
        let mut number = number;
        loop {
            let query = self.all.get(&number)?;
            if query.left > 0 && query.enough.is_none_or(|enough| query.good < enough) {
                return None;
            }
            let query = self.remove(dispatch, number, now)?;
            let outcome = |slot: Slot| -> Outcome {
                let label = slot.label;
                match slot.progress {
                    Progress::Done(outcome) => (label, outcome),
                    Progress::Unsent => (label, Err(Reason::NotAsked)),
                    _ => (label, Err(Reason::Silent)),
                }
            };
            // What is not needed any more has not failed.
            let is_early = query.left > 0;
            let slots = query.slots.into_iter();
            let slots =
                slots.filter(|slot| !is_early || matches!(slot.progress, Progress::Done(_)));
            let result = collect(&query.question, slots.map(outcome).collect());
            match query.asker {
                Asker::Client(request) => return Some((request, result)),
                Asker::Parent { query, slot } => {
                    let outcome = result.map_err(|refusal| Reason::Refused {
                        code: refusal.code,
                        detail: refusal.detail,
                    });
                    self.conclude((query, slot), outcome);
                    number = query;
                }
            }
        }
    }
    /// Takes a query out with all below it, and gives up what they still ask.
    fn remove(&mut self, dispatch: &mut Dispatch, number: u64, now: Instant) -> Option<Query> {
        let (mut waiting, mut top) = (vec![number], None);
        while let Some(one) = waiting.pop() {
            let Some(mut query) = self.all.remove(&one) else { continue };
            self.deadlines.remove(&(query.deadline, Reverse(one)));
            if let Some(round) = &query.round {
                dispatch.cancel(round.exchange, now);
            }
            for (place, slot) in query.slots.iter_mut().enumerate() {
                self.sames.remove(&(one, place));
                match slot.progress {
                    Progress::Asked(exchange) if !dispatch.cancel(exchange, now) => {
                        slot.progress = Progress::Unsent;
                    }
                    Progress::Below(below) => waiting.push(below),
                    _ => {}
                }
            }
            if one == number {
                top = Some(query);
            }
        }
        top
    }
}

/// Whether an answer is one of those that `enr` asks for.
pub(crate) fn counts(question: &Question, answer: &Answer) -> bool {
    let has_number = || answer.readings.iter().any(|reading| reading.number().is_some());
    question.writes || question.operation == Operation::List || has_number()
}

/// What a query of an entity asks whom.
pub(crate) struct Plan {
    /// The profile of the entity, with what the query replaces.
    pub(crate) profile: Profile,
    pub(crate) question: Question,
    /// The members that it asks.
    pub(crate) members: Vec<Asked>,
}

/// A member that a query asks.
pub(crate) struct Asked {
    /// Its number in the entity.
    pub(crate) member: u32,
    /// What results call it.
    pub(crate) label: String,
    pub(crate) target: Target,
}

/// The plan of a query. `above` is what the result above calls the entity, if one contains it: names that the entity gives to
/// its members follow it there, because two entities may give the same one.
pub(crate) fn plan(
    entity: &Entity,
    above: Option<&str>,
    draft: &Draft,
    writes: bool,
) -> Result<Plan, Refusal> {
    let profile = draft.over(&entity.profile);
    let entries: Vec<Entry> = entity.members.iter().map(Member::entry).collect();
    for choice in draft.only.iter().flatten() {
        if !entries.iter().any(|entry| choice.is(entry)) {
            let detail = alloc::format!("er: {choice} is not a member of {:?}", entity.name);
            return Err(Refusal::new(Code::NOT_FOUND, "unknown member", detail));
        }
    }
    let mut members = Vec::new();
    for (member, entry) in entity.members.iter().zip(entries) {
        let is_chosen =
            draft.only.as_ref().is_none_or(|only| only.iter().any(|choice| choice.is(&entry)));
        if is_chosen {
            let label = match (above, &entry.name) {
                (Some(above), Some(name)) => alloc::format!("{above}/{name}"),
                _ => entry.label(),
            };
            members.push(Asked { member: member.id, label, target: entry.target });
        }
    }
    draft.check(&profile, members.len())?;
    let question = Question {
        name: entity.name.clone(),
        label: above.map_or_else(|| alloc::format!("{ROOT}/{}", entity.name), String::from),
        operation: profile.operations[0],
        replies: profile.replies.map_or(1, usize::from),
        writes,
    };
    Ok(Plan { profile, question, members })
}

/// The query of an order, with the profile that it runs with.
fn prepare(
    entity: &Entity,
    order: Order,
    content: Arc<Content>,
    now: Instant,
) -> Result<(Query, Profile), Refusal> {
    let Order { asker, draft, entity: id, label, start, wait } = order;
    let Plan { profile, question, members } =
        plan(entity, label.as_deref(), &draft, content.writes())?;
    let slot = |Asked { member, label, target }| Slot {
        member,
        label,
        target,
        progress: Progress::Waiting,
    };
    let slots: Vec<Slot> = members.into_iter().map(slot).collect();
    // Every member is written to, however many must have done it.
    let enough = profile.replies.map(usize::from).filter(|_| !question.writes);
    // A sub-entity has no more time than the query above it.
    let own = entity.profile.deadline.filter(|_| asker.is_parent()).unwrap_or(DEADLINE_MAX);
    let deadline = start.max(now) + profile.deadline.unwrap_or(DEADLINE_MAX).min(own);
    let confirmable = profile.message_type == MessageType::Confirmable;
    let left = slots.len();
    let round = None;
    let query = Query {
        asker,
        entity: id,
        question,
        enough,
        content,
        confirmable,
        slots,
        left,
        good: 0,
        deadline,
        wait,
        round,
    };
    Ok((query, profile))
}

/// Notes that a member of a group has answered, or not.
fn mark(entities: &mut Entities, entity: u64, member: u32, answered: bool, now: Instant) {
    let member = entities.get_mut(entity).and_then(|entity| entity.member_mut(member));
    if let Some(membership) = member.and_then(|member| member.membership.as_deref_mut()) {
        membership.heard(answered, now);
    }
}
