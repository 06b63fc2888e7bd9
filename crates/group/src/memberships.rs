//! Memberships of all entities: what is due, what is under way, and what follows for the entity.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use crate::clients::Clients;
use crate::dispatch::Dispatch;
use crate::entity::{Change, Entities, Entity, Member, Pending, Phase};
use crate::membership::{Membership, State, Step, listed};
use crate::outcome::Reason;
use crate::output::{Owner, RequestId};
use crate::params::{RECONCILE_INTERVAL, RESTART_GAP, ROOT};
use crate::profile::Profile;
use crate::refusal::Refusal;
use crate::target::Entry;

/// When which membership is due, by entity and member.
#[derive(Debug)]
pub(crate) struct Memberships {
    due: BTreeSet<(Instant, u64, u32)>,
    rng: Rng,
}

impl Memberships {
    pub(crate) const fn new(rng: Rng) -> Self {
        Self { due: BTreeSet::new(), rng }
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(due, ..)| *due)
    }
    /// Spreads what a start would send at once over a time that grows with the number of memberships, to a bound.
    pub(crate) fn spread(&mut self, entities: &mut Entities) {
        let count = entities.dues_mut().count() as u64;
        let most = RESTART_GAP.saturating_mul(count).min(RECONCILE_INTERVAL);
        for due in entities.dues_mut() {
            *due += self.rng.duration(Duration::ZERO, most);
        }
    }
    /// Notes when the memberships of an entity are due.
    pub(crate) fn schedule(&mut self, entities: &Entities, id: u64) {
        for member in entities.get(id).into_iter().flat_map(Entity::everyone) {
            let due = member.membership.as_ref().and_then(|membership| membership.due);
            self.due.extend(due.map(|due| (due, id, member.id)));
        }
    }
    /// Sends the requests whose time has come.
    pub(crate) fn advance(
        &mut self,
        entities: &mut Entities,
        dispatch: &mut Dispatch,
        now: Instant,
    ) {
        while let Some((due, id, number)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            let Some(entity) = entities.get_mut(id) else { continue };
            let Some(group) = entity.address() else { continue };
            let Some(member) = entity.member_mut(number) else { continue };
            let Some(authority) = member.authority() else { continue };
            let Some(membership) = member.membership.as_deref_mut() else { continue };
            if let Some(step) = membership.begin(now) {
                let owner = Owner::Membership { entity: id, member: number };
                let exchange = dispatch.ask(owner, authority, step.request(group), now);
                membership.step = Some((exchange, step));
            }
        }
    }
    /// A request of a membership has ended.
    pub(crate) fn end(
        &mut self,
        (entities, dispatch, clients): (&mut Entities, &mut Dispatch, &mut Clients),
        (id, number): (u64, u32),
        answer: Result<&Message, Reason>,
        now: Instant,
    ) {
        let Some(entity) = entities.get_mut(id) else { return };
        let Some(group) = entity.address() else { return };
        let is_arriving = entity.arriving.iter().any(|member| member.id == number);
        let Some(member) = entity.member_mut(number) else { return };
        let (node, listed) = (member.authority(), answer.as_ref().ok().and_then(|one| listed(one)));
        let Some(membership) = member.membership.as_deref_mut() else { return };
        let looks = membership.looks();
        membership.end(answer, group, now, &mut self.rng);
        if is_arriving {
            membership.stop_if_failed();
        }
        self.due.extend(membership.due.map(|due| (due, id, number)));
        if let (Some(node), Some(listed)) = (node, listed.filter(|_| looks)) {
            for stray in entities.strays(&node, &listed) {
                // Whether it has left, the next look shows.
                dispatch.ask(Owner::Nobody, node.clone(), Step::Leave.request(stray), now);
            }
        }
        self.settle((entities, dispatch, clients), id, now);
    }
    /// Makes members of a group of an entity that is new.
    pub(crate) fn gather(
        &mut self,
        entities: &mut Entities,
        id: u64,
        entries: Vec<Entry>,
        now: Instant,
    ) {
        // In the block of Ishaq et al. 2016 another manager may have the address, and theirs does not ask.
        let probes = entities.has_own_block();
        let Some(entity) = entities.get_mut(id) else { return };
        let wanted = if probes { Membership::probed(now) } else { Membership::wanted(now) };
        entity.arriving = entity.enlist(entries, Some(&wanted));
        entities.touch(id);
        self.schedule(entities, id);
    }
    /// Lets all members of an entity go; what is left of it ends with the last one.
    pub(crate) fn dissolve(
        &mut self,
        (entities, dispatch, clients): (&mut Entities, &mut Dispatch, &mut Clients),
        id: u64,
        pending: Option<Pending>,
        now: Instant,
    ) {
        let Some(entity) = entities.get_mut(id) else { return };
        entity.phase = Phase::Removing;
        entity.pending = pending;
        let mut leaving = core::mem::take(&mut entity.arriving);
        leaving.append(&mut entity.members);
        release(entity, leaving, now);
        entities.touch(id);
        self.schedule(entities, id);
        self.settle((entities, dispatch, clients), id, now);
    }
    /// Does what follows from where the memberships of an entity stand.
    pub(crate) fn settle(
        &mut self,
        (entities, dispatch, clients): (&mut Entities, &mut Dispatch, &mut Clients),
        id: u64,
        now: Instant,
    ) {
        let Some(entity) = entities.get_mut(id) else { return };
        let is_settled = |member: &Member| {
            member.membership.as_ref().is_none_or(|membership| membership.is_settled())
        };
        if !entity.arriving.is_empty() && entity.arriving.iter().all(is_settled) {
            self.arrive((&mut *entities, &mut *dispatch, &mut *clients), id, now);
        }
        let Some(entity) = entities.get_mut(id) else { return };
        let all_left = entity.former.iter().all(is_settled);
        let deletes = matches!(&entity.pending, Some(Pending { kind: Change::Delete, .. }));
        if entity.phase == Phase::Removing && all_left && deletes {
            let response = deleted(entity);
            if let Some(pending) = entity.pending.take() {
                clients.respond(dispatch, pending.request, response);
            }
        }
        let before = entity.former.len();
        // The client of a deletion gets a line for those that have left, too.
        if entity.pending.is_none() {
            entity.former.retain(|member| {
                member.membership.as_ref().is_some_and(|one| *one.state() != State::Gone)
            });
        }
        let (is_over, has_changed) = (
            entity.phase == Phase::Removing && entity.former.is_empty(),
            entity.former.len() != before,
        );
        if is_over {
            entities.erase(id);
        } else if has_changed {
            entities.touch(id);
        }
    }
    /// All attempts to join have come to an end: the change takes place, or nothing of it stays.
    fn arrive(
        &mut self,
        (entities, dispatch, clients): (&mut Entities, &mut Dispatch, &mut Clients),
        id: u64,
        now: Instant,
    ) {
        let Some(entity) = entities.get_mut(id) else { return };
        let arrived = core::mem::take(&mut entity.arriving);
        let has_joined =
            |member: &Member| member.membership.as_ref().is_none_or(|one| one.is_joined());
        let pending = entity.pending.take();
        let is_whole = arrived.iter().all(has_joined);
        let answer = match (is_whole, pending) {
            (true, Some(Pending { request, kind: Change::Update { order, profile } })) => {
                reorder(entity, arrived, &order, now);
                entity.profile = profile;
                Some((request, described(entity, Code::CHANGED)))
            }
            (true, pending) => {
                entity.members = arrived;
                entity.phase = Phase::Live;
                pending.map(|pending| (pending.request, described(entity, Code::CREATED)))
            }
            (false, pending) => {
                let refusal = not_joined(&arrived).into_response();
                release(entity, arrived, now);
                if entity.phase == Phase::Joining {
                    entity.phase = Phase::Removing;
                }
                pending.map(|pending| (pending.request, refusal))
            }
        };
        entities.touch(id);
        self.schedule(entities, id);
        if let Some((request, response)) = answer {
            clients.respond(dispatch, request, response);
        }
    }
    /// Changes the members and the profile of an entity. The answer comes when all new members have joined.
    pub(crate) fn update(
        &mut self,
        (entities, dispatch, clients): (&mut Entities, &mut Dispatch, &mut Clients),
        (id, request): (u64, RequestId),
        (order, profile): (Vec<Entry>, Profile),
        now: Instant,
    ) {
        let Some(entity) = entities.get_mut(id) else { return };
        let is_new = |new: &&Entry| !entity.members.iter().any(|one| one.stands_for(&new.target));
        let new: Vec<Entry> = order.iter().filter(is_new).cloned().collect();
        let wanted = entity.group.map(|_| Membership::wanted(now));
        let (mut arriving, new) = take_back(entity, new, now);
        arriving.extend(entity.enlist(new, wanted.as_ref()));
        if wanted.is_none() || arriving.is_empty() {
            reorder(entity, arriving, &order, now);
            entity.profile = profile;
            let response = described(entity, Code::CHANGED);
            clients.respond(dispatch, request, response);
        } else {
            entity.arriving = arriving;
            entity.pending = Some(Pending { request, kind: Change::Update { order, profile } });
        }
        entities.touch(id);
        self.schedule(entities, id);
        self.settle((entities, dispatch, clients), id, now);
    }
}

/// Puts members into an order. Those that are not in it leave.
fn reorder(entity: &mut Entity, arrived: Vec<Member>, order: &[Entry], now: Instant) {
    let mut all = core::mem::take(&mut entity.members);
    all.extend(arrived);
    for Entry { name, target } in order {
        if let Some(place) = all.iter().position(|member| member.stands_for(target)) {
            let (name, target) = (name.clone(), target.clone());
            let member = Member { name, target, ..all.swap_remove(place) };
            entity.members.push(member);
        }
    }
    release(entity, all, now);
}

/// Of members that are to join, those that are still leaving, and the others: one request to leave must not follow
/// another to join.
fn take_back(entity: &mut Entity, new: Vec<Entry>, now: Instant) -> (Vec<Member>, Vec<Entry>) {
    let (mut back, mut others) = (Vec::new(), Vec::new());
    for entry in new {
        let is_same = |member: &Member| member.stands_for(&entry.target);
        let Some(place) = entity.former.iter().position(is_same) else {
            others.push(entry);
            continue;
        };
        let Entry { name, target } = entry;
        let mut member = Member { name, target, ..entity.former.remove(place) };
        if let Some(membership) = member.membership.as_deref_mut() {
            membership.want(now);
        }
        back.push(member);
    }
    (back, others)
}

/// Lets members go.
fn release(entity: &mut Entity, leaving: Vec<Member>, now: Instant) {
    for mut member in leaving {
        if let Some(membership) = member.membership.as_deref_mut() {
            membership.leave(now);
            entity.former.push(member);
        }
    }
}

/// The response that describes an entity: its profile, as text.
pub(crate) fn described(entity: &Entity, code: Code) -> ResponseTemplate {
    let payload = crate::profile::document::to_text(&entity.fields());
    let mut response =
        ResponseTemplate::new(code).with_format(ContentFormat::TEXT_PLAIN).with_payload(payload);
    if code == Code::CREATED {
        response = response
            .with_option(OptionNumber::LOCATION_PATH, ROOT.as_bytes())
            .with_option(OptionNumber::LOCATION_PATH, entity.name.as_bytes());
    }
    response
}

/// 2.02 with a line for each member: whether it has left.
fn deleted(entity: &Entity) -> ResponseTemplate {
    let line = |(member, stands): (&Member, String)| format!("{} {stands}\n", member.label());
    let lines: Vec<String> = entity.standing().into_iter().map(line).collect();
    ResponseTemplate::new(Code::DELETED)
        .with_format(ContentFormat::TEXT_PLAIN)
        .with_payload(lines.concat().into_bytes())
}

fn not_joined(members: &[Member]) -> Refusal {
    // S002 s5.1.1: the entity is made only if all have joined. A member that refuses is in conflict with the request.
    let mut code = Code::CONFLICT;
    let (mut failed, mut joined) = (Vec::new(), Vec::new());
    for member in members {
        let label = member.label();
        match member.membership.as_ref().map(|membership| membership.state()) {
            Some(State::Failed(reason)) => {
                if reason.code() == Code::GATEWAY_TIMEOUT {
                    code = Code::GATEWAY_TIMEOUT;
                }
                failed.push(format!("{label}: {} {reason}", reason.code()));
            }
            Some(state) => joined.push(format!("{label}: {state}")),
            None => {}
        }
    }
    failed.append(&mut joined);
    Refusal::new(code, "members did not join", failed.join("; "))
}
