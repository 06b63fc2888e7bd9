//! An entity as a client wants it: read from a request and checked, before any member is asked.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use lowmesh_coap::resource::content_format;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::entity::{Entities, Entity, Member};
use crate::hops;
use crate::params::WRITE_MAX;
use crate::prefix::{self, Prefix};
use crate::profile::document::{Field, fields, query};
use crate::profile::{Communication, Draft, Profile, Use};
use crate::query::{Content, overrides};
use crate::refusal::Refusal;
use crate::reply::not_found;
use crate::route::selection;
use crate::target::{Authority, Entry, Target};

/// What happens once all members are valid.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    Create { name: String },
    Update { entity: u64 },
}

/// A profile and members that a client wants.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) goal: Goal,
    pub(crate) profile: Profile,
    pub(crate) members: Vec<Entry>,
    /// Whether members may be silent when they are checked.
    pub(crate) allows_missing: bool,
}

impl Proposal {
    /// The new entity that a POST request of `/e` describes. `is_taken` says whether an entity has a name or will have it.
    pub(crate) fn creation(
        (client, message): (IpAddr, &Message),
        authorities: &[Authority],
        entities: &Entities,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<Self, Refusal> {
        let mut all = fields(content_format(&message.options), &message.payload)?;
        all.extend(query(&message.options)?);
        let mut draft = draft(authorities, all, Use::Creation)?;
        let Some(members) = draft.members.take() else {
            return Err(Refusal::field("er: the list of the URIs of members is missing"));
        };
        let name = match draft.name.take() {
            Some(name) if is_taken(&name) => {
                let detail = format!(
                    "name: the entity {name:?} exists already, or its members are still leaving"
                );
                return Err(Refusal::new(Code::CONFLICT, "name taken", detail));
            }
            Some(name) => name,
            None => entities.free_name(is_taken),
        };
        entities.check_room(client)?;
        let profile = draft.over(&Profile::default());
        draft.check(&profile, members.len())?;
        let allows_missing = draft.allows_missing(&profile)?;
        Ok(Self { goal: Goal::Create { name }, profile, members, allows_missing })
    }
    /// An entity after a PUT or iPATCH request of its profile. PUT sets what it does not name to the default.
    pub(crate) fn update(
        message: &Message,
        authorities: &[Authority],
        (id, entity): (u64, &Entity),
    ) -> Result<Self, Refusal> {
        let all = fields(content_format(&message.options), &message.payload)?;
        let mut draft = draft(authorities, all, Use::Update)?;
        let (communication, scope) = (entity.profile.communication, entity.profile.scope);
        let old = match message.code {
            Code::IPATCH => entity.profile.clone(),
            _ => Profile { communication, scope, ..Profile::default() },
        };
        let current = || entity.members.iter().map(Member::entry).collect();
        let members = draft.members.take().unwrap_or_else(current);
        let profile = draft.over(&old);
        draft.check(&profile, members.len())?;
        let allows_missing = draft.allows_missing(&profile)?;
        Ok(Self { goal: Goal::Update { entity: id }, profile, members, allows_missing })
    }
    /// Whether the entity has exactly these members now, whatever their names.
    pub(crate) fn keeps_members(&self, entity: &Entity) -> bool {
        let now = entity.members.iter().map(|one| &one.target);
        self.members.iter().map(|one| &one.target).eq(now)
    }
    fn targets(&self) -> Vec<Target> {
        self.members.iter().map(|member| member.target.clone()).collect()
    }
    /// Checks what needs no request to a member.
    pub(crate) fn check(&self, entities: &Entities, allowed: &[Prefix]) -> Result<(), Refusal> {
        let targets = self.targets();
        prefix::check(allowed, &targets)?;
        check_paths(&self.profile, &targets)?;
        self.check_nesting(entities)?;
        for target in &targets {
            if let Target::Entity { query, .. } = target {
                overrides(query)?;
            }
        }
        Ok(())
    }
    /// Checks that no entity contains itself, that the updated entity still exists, and that not too many members are
    /// leaving it.
    pub(crate) fn check_nesting(&self, entities: &Entities) -> Result<(), Refusal> {
        let name = match &self.goal {
            Goal::Create { name } => name.as_str(),
            Goal::Update { entity } => &entities.get(*entity).ok_or_else(not_found)?.name,
        };
        entities.check_leaving(name, self.members.len())?;
        entities.check_nesting(name, &self.targets())
    }
}

/// The settings of fields.
fn draft(
    authorities: &[Authority],
    fields: Vec<(String, Field)>,
    use_: Use,
) -> Result<Draft, Refusal> {
    let mut draft = Draft::default();
    for (key, field) in fields {
        draft.set(&key, &field, use_, authorities)?;
    }
    Ok(draft)
}

/// The settings that the query of a request has.
pub(crate) fn settings(message: &Message, authorities: &[Authority]) -> Result<Draft, Refusal> {
    draft(authorities, query(&message.options)?, Use::Query)
}

/// What GET, FETCH, PUT or POST of an entity asks its members.
pub(crate) fn question(
    message: &Message,
    authorities: &[Authority],
    entity: &Entity,
) -> Result<(Draft, Content), Refusal> {
    let mut draft = settings(message, authorities)?;
    let hop_limit = hops::onward(&message.options)?;
    let mut content = Content { method: Code::GET, format: None, payload: Vec::new(), hop_limit };
    match message.code {
        Code::FETCH => draft.only = Some(selection(entity, message)?),
        Code::PUT | Code::POST => {
            check_length(&message.payload)?;
            content.method = message.code;
            content.format = message.options.get_uint(OptionNumber::CONTENT_FORMAT);
            content.payload.clone_from(&message.payload);
        }
        _ => {}
    }
    Ok((draft, content))
}

/// 4.13: each member gets a copy of what a client writes.
fn check_length(payload: &[u8]) -> Result<(), Refusal> {
    if payload.len() <= WRITE_MAX {
        return Ok(());
    }
    let detail = format!("{} octets; {WRITE_MAX} are allowed", payload.len());
    Err(Refusal::new(Code::REQUEST_ENTITY_TOO_LARGE, "payload too long", detail))
}

/// With multicast, the members have one path and one port, and none is an entity (S002 s4.2).
pub(crate) fn check_paths(profile: &Profile, targets: &[Target]) -> Result<(), Refusal> {
    if profile.communication != Communication::Multicast {
        return Ok(());
    }
    let refuse = |title, detail| Err(Refusal::new(Code::CONFLICT, title, detail));
    let mut first: Option<(&Target, &Uri)> = None;
    for target in targets {
        let Target::Resource(uri) = target else {
            let detail = format!("er: {target} is an entity, which ect=multicast cannot reach");
            return refuse("entity in a group", detail);
        };
        if uri.scheme != Scheme::Coap {
            return refuse(
                "scheme of a group",
                format!("er: {target} is not coap:// (RFC 7252 s8)"),
            );
        }
        let (one, with) = *first.get_or_insert((target, uri));
        if one.local_part() != target.local_part() || with.port() != uri.port() {
            let detail = format!("er: {target} has another path or port than {one}");
            return refuse("mixed paths", detail);
        }
    }
    // A group has an IPv6 address, so a response has one too, and the manager knows its member by nothing else.
    let is_named = |target: &&Target| matches!(target, Target::Resource(uri) if !matches!(uri.host, Host::V6(..)));
    if let Some(target) = targets.iter().find(is_named) {
        let detail = format!("er: with ect=multicast, {target} needs the IPv6 address of its host");
        return refuse("host of a group", detail);
    }
    Ok(())
}
