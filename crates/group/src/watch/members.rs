//! The members of one watch: what each has answered, and when it is asked again.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::observe::REGISTER;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use super::front::Front;
use crate::collector::{Outcome, Question, collect};
use crate::dispatch::Dispatch;
use crate::entity::Entity;
use crate::hops;
use crate::outcome::{Answer, MAX_AGE_DEFAULT_S, Reason};
use crate::output::Owner;
use crate::params::{POLL_MAX, POLL_MIN, WATCH_LEEWAY};
use crate::profile::{Draft, MessageType, Operation, Profile};
use crate::query::{Asked, counts, plan};
use crate::refusal::Refusal;
use crate::target::{Authority, Target, request};

#[derive(Debug)]
pub(super) enum Asker {
    Clients(Box<Front>),
    Parent { watch: u64, slot: usize },
}

#[derive(Debug)]
pub(super) struct Slot {
    /// What results call the member.
    pub(super) label: String,
    pub(super) target: Target,
    /// The request to the member, also while it brings notifications.
    pub(super) asked: Option<u64>,
    pub(super) below: Option<u64>,
    pub(super) latest: Option<Result<Answer, Reason>>,
    /// When the member is asked again.
    pub(super) ask_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Watch {
    pub(super) asker: Asker,
    pub(super) question: Question,
    /// Answers that suffice for the first result.
    pub(super) enough: Option<usize>,
    pub(super) settings: RequestSettings,
    pub(super) slots: Vec<Slot>,
    pub(super) result: Option<Result<Answer, Refusal>>,
    pub(super) due: Option<Instant>,
}

/// The settings of requests to members.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestSettings {
    pub(super) confirmable: bool,
    pub(super) hop_limit: u32,
}

/// A watch that is about to begin.
pub(super) struct Order {
    pub(super) asker: Asker,
    pub(super) entity: u64,
    /// What the result above calls the entity; `None` at the top.
    pub(super) label: Option<String>,
    pub(super) draft: Draft,
    pub(super) hop_limit: u32,
}

impl Watch {
    /// Whether there is a result, or can be one.
    pub(super) fn is_complete(&self) -> bool {
        let is_good = |slot: &&Slot| {
            slot.latest.as_ref().is_some_and(|latest| {
                latest.as_ref().is_ok_and(|answer| counts(&self.question, answer))
            })
        };
        let good = || self.slots.iter().filter(is_good).count();
        self.result.is_some()
            || self.slots.iter().all(|slot| slot.latest.is_some())
            || self.enough.is_some_and(|enough| good() >= enough)
    }
    /// Makes the result of what the members have answered.
    pub(super) fn collect(&mut self) {
        let outcome =
            |slot: &Slot| -> Option<Outcome> { Some((slot.label.clone(), slot.latest.clone()?)) };
        let outcomes = self.slots.iter().filter_map(outcome).collect();
        self.result = Some(collect(&self.question, outcomes));
    }
}

/// The watch of an order, with the profile that it runs with.
pub(super) fn open(entity: &Entity, order: Order) -> Result<(Watch, Profile), (Asker, Refusal)> {
    let Order { asker, label, draft, hop_limit, .. } = order;
    let plan = match plan(entity, label.as_deref(), &draft, false) {
        Ok(plan) => plan,
        Err(refusal) => return Err((asker, refusal)),
    };
    if let (Asker::Clients(front), Operation::List) = (&asker, plan.question.operation)
        && let Some(name) = front.condition.needs_number()
    {
        let refusal = Refusal::field(alloc::format!("{name}: it needs eo=avg, min or max"));
        return Err((asker, refusal));
    }
    let slot = |Asked { label, target, .. }| Slot {
        label,
        target,
        asked: None,
        below: None,
        latest: None,
        ask_at: None,
    };
    let watch = Watch {
        asker,
        enough: plan.profile.replies.map(usize::from),
        settings: RequestSettings {
            confirmable: plan.profile.message_type == MessageType::Confirmable,
            hop_limit,
        },
        question: plan.question,
        slots: plan.members.into_iter().map(slot).collect(),
        result: None,
        due: None,
    };
    Ok((watch, plan.profile))
}

pub(super) fn ask(
    slot: &mut Slot,
    (watch, place): (u64, usize),
    settings: RequestSettings,
    dispatch: &mut Dispatch,
    start: Instant,
) {
    slot.ask_at = None;
    let Target::Resource(uri) = &slot.target else { return };
    let mut template = request(Code::GET, uri);
    template.options.set_uint(OptionNumber::OBSERVE, REGISTER);
    template.confirmable = settings.confirmable;
    hops::limit(&mut template, uri, settings.hop_limit);
    let owner = Owner::Watch { watch, slot: place };
    slot.asked = Some(dispatch.ask(owner, Authority::of(uri), template, start));
}

/// After how long a member is asked again: when its answer is no longer fresh (RFC 7641 s3.3.1).
pub(super) fn renewal(message: &Message, observed: bool) -> Duration {
    let max_age_s = message.options.get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE_DEFAULT_S);
    let fresh = Duration::from_secs(max_age_s.into());
    if observed { fresh.max(POLL_MIN) + WATCH_LEEWAY } else { fresh.max(POLL_MIN).min(POLL_MAX) }
}
