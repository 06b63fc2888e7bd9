//! Validation of members before an entity is made of them (S002 s2.3, the sanity check).
//!
//! ```text
//!   GET /.well-known/core?href=PATH  lists it: its formats    silent: failed
//!                                    else: GET PATH           2.05: its format    4.05: there    else: failed
//! ```
//! Sub-entities are of this manager, and need no request. For multicast all members have the same path and port (S002 s4.2).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::resource::content_format;
use lowmesh_units::Instant;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::link_format::links;

use crate::collector::FORMATS;
use crate::dispatch::{Dispatch, Owner, RequestId};
use crate::outcome::Reason;
use crate::params::DEADLINE_MAX;
use crate::profile::{Communication, Profile};
use crate::refusal::Refusal;
use crate::target::{Authority, Target, request};

/// What is to happen when all members are there.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Create { name: String },
    Update { entity: u64 },
}

/// A validation.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) request: RequestId,
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
    pub(crate) targets: Vec<Target>,
    findings: Vec<Finding>,
    left: usize,
}

#[derive(Clone, Debug)]
enum Finding {
    Discovery,
    Probe,
    /// Its formats, none if they are not known; or why it cannot be a member.
    Done(Result<Vec<ContentFormat>, Reason>),
}

/// Validations under way.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    all: BTreeMap<u64, Check>,
    serial: u64,
}

impl Checks {
    /// Whether an entity of this name is about to be.
    pub(crate) fn reserves(&self, name: &str) -> bool {
        self.all
            .values()
            .any(|check| matches!(&check.plan, Plan::Create { name: one } if one == name))
    }
    /// Whether members of an entity are being validated.
    pub(crate) fn updates(&self, entity: u64) -> bool {
        self.all
            .values()
            .any(|check| matches!(check.plan, Plan::Update { entity: one } if one == entity))
    }
    /// Asks every member. The check comes back at once if there is nothing to ask.
    pub(crate) fn begin(
        &mut self,
        dispatch: &mut Dispatch,
        (request, plan): (RequestId, Plan),
        (profile, targets): (Profile, Vec<Target>),
        now: Instant,
    ) -> Option<Check> {
        self.serial += 1;
        let mut check = Check { request, plan, profile, targets, findings: Vec::new(), left: 0 };
        // A profile with a delay says that the members bear no burst; all are asked within the time of a query.
        let gap = check.profile.delay.min(DEADLINE_MAX / check.targets.len().max(1) as u64);
        for (slot, target) in check.targets.iter().enumerate() {
            let finding = match target {
                Target::Entity { .. } => Finding::Done(Ok(FORMATS.to_vec())),
                Target::Resource(uri) => {
                    let owner = Owner::Check { check: self.serial, slot };
                    let start = now + gap * slot as u64;
                    dispatch.ask(owner, Authority::of(uri), discovery(uri), start);
                    check.left += 1;
                    Finding::Discovery
                }
            };
            check.findings.push(finding);
        }
        if check.left == 0 {
            return Some(check);
        }
        self.all.insert(self.serial, check);
        None
    }
    /// A member has answered, or not. The check comes back when it is complete.
    pub(crate) fn end(
        &mut self,
        dispatch: &mut Dispatch,
        (number, slot): (u64, usize),
        answer: Result<&Message, Reason>,
        now: Instant,
    ) -> Option<Check> {
        let check = self.all.get_mut(&number)?;
        let Target::Resource(uri) = check.targets.get(slot)? else { return None };
        let finding = match (&check.findings[slot], answer) {
            (_, Err(reason)) => Finding::Done(Err(reason)),
            (Finding::Discovery, Ok(message)) => {
                if let Some(formats) = listed(uri, message) {
                    Finding::Done(Ok(formats))
                } else {
                    let owner = Owner::Check { check: number, slot };
                    dispatch.ask(owner, Authority::of(uri), request(Code::GET, uri), now);
                    Finding::Probe
                }
            }
            (_, Ok(message)) => Finding::Done(probed(message)),
        };
        if matches!(finding, Finding::Done(_)) {
            check.left -= 1;
        }
        check.findings[slot] = finding;
        if check.left > 0 { None } else { self.all.remove(&number) }
    }
}

impl Check {
    /// Whether all are there and have a format in common; else what to answer, with each member and its reason.
    pub(crate) fn verdict(&self) -> Result<(), Refusal> {
        let failed = self.reasons();
        if let Some(code) = failed.iter().map(|(_, reason)| reason.code()).max_by_key(|code| {
            // A member that is not there says more than one that is silent.
            (*code == Code::NOT_FOUND, code.0)
        }) {
            return Err(Refusal::new(code, "members not valid", self.listing()));
        }
        let mut common: Option<Vec<ContentFormat>> = None;
        for finding in &self.findings {
            if let Finding::Done(Ok(formats)) = finding
                && !formats.is_empty()
            {
                let both = |one: &ContentFormat| formats.contains(one);
                let before = common.unwrap_or_else(|| formats.clone());
                common = Some(before.into_iter().filter(both).collect());
            }
        }
        if common.is_some_and(|common| common.is_empty()) {
            let detail = format!("the members have no common format; {}", self.listing());
            return Err(Refusal::new(Code::NOT_ACCEPTABLE, "no common format", detail));
        }
        Ok(())
    }
    fn reasons(&self) -> Vec<(&Target, &Reason)> {
        let reason = |(target, finding)| match finding {
            &Finding::Done(Err(ref reason)) => Some((target, reason)),
            _ => None,
        };
        self.targets.iter().zip(&self.findings).filter_map(reason).collect()
    }
    /// Each member with what was found, those that failed first.
    fn listing(&self) -> String {
        let failed = self
            .reasons()
            .into_iter()
            .map(|(target, reason)| format!("{}: {} {reason}", target.label(), reason.code()));
        let valid = |(target, finding): (&Target, &Finding)| match finding {
            Finding::Done(Ok(formats)) => {
                let numbers: Vec<String> = formats.iter().map(|one| format!("{}", one.0)).collect();
                let formats = if numbers.is_empty() { "?".into() } else { numbers.join(" ") };
                Some(format!("{}: valid, ct {formats}", target.label()))
            }
            _ => None,
        };
        let valid = self.targets.iter().zip(&self.findings).filter_map(valid);
        failed.chain(valid).collect::<Vec<_>>().join("; ")
    }
}

/// Checks what needs no request: with multicast, one path, one port, and nodes only.
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
    Ok(())
}

fn path(uri: &Uri) -> String {
    uri.path.iter().fold(String::new(), |path, segment| path + "/" + segment)
}

fn discovery(uri: &Uri) -> RequestTemplate {
    let mut template = RequestTemplate::get("/.well-known/core");
    template.options.insert_query(&format!("href={}", path(uri)));
    if let Host::Name(name) = &uri.host {
        template.options.insert(OptionNumber::URI_HOST, name.as_bytes());
    }
    template
}

/// The formats of the resource in the list of a node, if the list has it.
fn listed(uri: &Uri, message: &Message) -> Option<Vec<ContentFormat>> {
    if message.code != Code::CONTENT {
        return None;
    }
    let document = core::str::from_utf8(&message.payload).ok()?;
    let path = path(uri);
    let link = links(document).map_while(Result::ok).find(|link| link.target == path)?;
    let formats = link.attribute("ct").unwrap_or_default();
    Some(formats.split(' ').filter_map(|one| one.parse().ok().map(ContentFormat)).collect())
}

fn probed(message: &Message) -> Result<Vec<ContentFormat>, Reason> {
    if message.code.class() == Class::Success {
        return Ok(content_format(&message.options).into_iter().collect());
    }
    match message.code {
        // It is there, and has no GET.
        Code::METHOD_NOT_ALLOWED => Ok(Vec::new()),
        _ => Err(Reason::of_error(message)),
    }
}
