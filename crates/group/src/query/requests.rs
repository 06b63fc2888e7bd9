//! The requests of a query: one for each member, or one for a group.

use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_units::Instant;
use lowmesh_wire::coap::uri::{Host, Scheme};
use lowmesh_wire::coap::{Code, OptionNumber};

use super::{Asker, Content, Order, Progress, Query, Round, Slot};
use crate::dispatch::Dispatch;
use crate::entity::{Entities, Entity};
use crate::hops;
use crate::outcome::Reason;
use crate::output::Owner;
use crate::params::{ANSWER_MAX, DEADLINE_MAX};
use crate::profile::document::arguments;
use crate::profile::{Communication, Draft, Profile, Use};
use crate::refusal::Refusal;
use crate::target::{Authority, Target, request};

/// Sends the requests of a query, each a delay after the one before (S002 s2.3.1). Sub-entities become orders.
pub(super) fn send(
    query: &mut Query,
    number: u64,
    (entities, dispatch): (&Entities, &mut Dispatch),
    profile: &Profile,
    orders: &mut Vec<Order>,
    start: Instant,
) {
    let entity = entities.get(query.entity);
    let is_whole = entity.is_some_and(|entity| entity.members.len() == query.slots.len());
    // A group whose members have been asked in part is asked as with unicast.
    let is_new = !query.slots.iter().any(|slot| matches!(slot.progress, Progress::Same));
    let group = entity.and_then(Entity::address).filter(|_| is_whole && is_new);
    if let (Communication::Multicast, Some(group)) = (profile.communication, group)
        && let Target::Resource(uri) = &query.slots[0].target
    {
        let group =
            Authority { scheme: Scheme::Coap, host: Host::V6(group, None), port: uri.port() };
        let template = group_request(&query.content, &query.slots[0].target);
        let wait = query.wait.min(query.deadline.since(start));
        let owner = Owner::Group { query: number };
        let exchange = dispatch.ask_group(owner, group.clone(), template, wait, start);
        query.round = Some(Round { exchange, number: 1, group });
        return;
    }
    // Some of the members of a group are asked as with unicast.
    let confirmable = query.confirmable || profile.communication == Communication::Multicast;
    for (place, slot) in query.slots.iter_mut().enumerate() {
        if matches!(slot.progress, Progress::Same) {
            continue;
        }
        let start = start + profile.delay * place as u64;
        let below = match &slot.target {
            Target::Resource(_) => None,
            Target::Entity { name, query } => Some((entities.live(name), query)),
        };
        match below {
            None => ask(slot, (number, place), &query.content, confirmable, dispatch, start),
            Some((Some((entity, _)), arguments)) => {
                let asker = Asker::Parent { query: number, slot: place };
                let mut draft = overrides(arguments).unwrap_or_default();
                let most = query.deadline.since(start).min(DEADLINE_MAX);
                draft.deadline = Some(draft.deadline.map_or(most, |own| own.min(most)));
                let (wait, label) = (query.wait, Some(slot.label.clone()));
                orders.push(Order { asker, entity, label, draft, start, wait });
            }
            Some((None, _)) => {
                let reason = Reason::Refused { code: Code::NOT_FOUND, detail: String::new() };
                slot.progress = Progress::Done(Err(reason));
                query.left -= 1;
            }
        }
    }
}

/// What the query of a member's URI overrides of the profile of a sub-entity.
pub(crate) fn overrides(query: &[String]) -> Result<Draft, Refusal> {
    let mut draft = Draft::default();
    for (key, field) in arguments(query)? {
        draft.set(&key, &field, Use::Query, &[])?;
    }
    Ok(draft)
}

pub(super) fn ask(
    slot: &mut Slot,
    (query, place): (u64, usize),
    content: &Content,
    confirmable: bool,
    dispatch: &mut Dispatch,
    start: Instant,
) {
    let Target::Resource(uri) = &slot.target else { return };
    let mut template = filled(request(content.method, uri), content);
    template.confirmable = confirmable;
    hops::limit(&mut template, uri, content.hop_limit);
    let owner = Owner::Query { query, slot: place };
    slot.progress = Progress::Asked(dispatch.ask(owner, Authority::of(uri), template, start));
}

/// The request for all members of a group: the path of any.
pub(super) fn group_request(content: &Content, member: &Target) -> RequestTemplate {
    let mut template =
        RequestTemplate::new(content.method, "/").non_confirmable().with_body_max(ANSWER_MAX);
    let (path, query) = member.local_part();
    for segment in path {
        template.options.insert(OptionNumber::URI_PATH, segment.as_bytes());
    }
    for argument in query {
        template.options.insert(OptionNumber::URI_QUERY, argument.as_bytes());
    }
    filled(template, content)
}

fn filled(mut template: RequestTemplate, content: &Content) -> RequestTemplate {
    if let Some(format) = content.format {
        template.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
    }
    template.with_payload(content.payload.clone())
}
