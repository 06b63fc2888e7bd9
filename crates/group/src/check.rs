//! Validation of members before an entity is made of them (S002 s2.3, the sanity check).
//!
//! ```text
//!   GET /.well-known/core?href=PATH  lists it: its formats    silent: failed
//!                                    else: GET PATH           2.05: its format    4.05: there    else: failed
//! ```
//! Sub-entities belong to this manager and need no request.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::params::HOP_LIMIT_DEFAULT;
use lowmesh_coap::resource::content_format;
use lowmesh_units::Instant;
use lowmesh_wire::coap::uri::{Host, Uri};
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::link_format::links;

use crate::collector::FORMATS;
use crate::dispatch::Dispatch;
use crate::hops;
use crate::outcome::Reason;
use crate::output::{Owner, RequestId};
use crate::params::{CHECK_MAX, DEADLINE_MAX, LIST_MAX};
use crate::proposal::{Goal, Proposal};
use crate::refusal::Refusal;
use crate::target::{Authority, Entry, Target, request};

/// A validation.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) request: RequestId,
    pub(crate) proposal: Proposal,
    findings: Vec<Finding>,
    left: usize,
    deadline: Instant,
}

#[derive(Clone, Debug)]
enum Finding {
    /// The request under way.
    Discovery(u64),
    Probe(u64),
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
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        // Checks begin in the order of their numbers, and all take the same time at most.
        self.all.values().next().map(|check| check.deadline)
    }
    /// Ends the checks whose time is over. A member that has not answered counts as failed.
    pub(crate) fn expire(&mut self, dispatch: &mut Dispatch, now: Instant) -> Vec<Check> {
        let mut over = Vec::new();
        while let Some(entry) = self.all.first_entry().filter(|entry| entry.get().deadline <= now) {
            let mut check = entry.remove();
            for finding in &mut check.findings {
                if let Finding::Discovery(exchange) | Finding::Probe(exchange) = *finding {
                    let has_left = dispatch.cancel(exchange, now);
                    let reason = if has_left { Reason::Silent } else { Reason::NotAsked };
                    *finding = Finding::Done(Err(reason));
                }
            }
            over.push(check);
        }
        over
    }
    /// Whether an entity of this name is about to be.
    pub(crate) fn reserves(&self, name: &str) -> bool {
        self.goals().any(|goal| matches!(goal, Goal::Create { name: one } if one == name))
    }
    /// Whether members of an entity are being validated.
    pub(crate) fn updates(&self, entity: u64) -> bool {
        self.goals().any(|goal| matches!(goal, Goal::Update { entity: one } if *one == entity))
    }
    fn goals(&self) -> impl Iterator<Item = &Goal> {
        self.all.values().map(|check| &check.proposal.goal)
    }
    /// Asks every member. The check comes back at once if there is nothing to ask.
    pub(crate) fn begin(
        &mut self,
        dispatch: &mut Dispatch,
        request: RequestId,
        proposal: Proposal,
        now: Instant,
    ) -> Option<Check> {
        self.serial += 1;
        let deadline = now + CHECK_MAX;
        let mut check = Check { request, proposal, findings: Vec::new(), left: 0, deadline };
        let Proposal { profile, members, .. } = &check.proposal;
        // A profile with a delay says that the members bear no burst; all are asked within the time of a query.
        let gap = profile.delay.min(DEADLINE_MAX / members.len().max(1) as u64);
        for (slot, member) in members.iter().enumerate() {
            let finding = match &member.target {
                Target::Entity { .. } => Finding::Done(Ok(FORMATS.to_vec())),
                Target::Resource(uri) => {
                    let owner = Owner::Check { check: self.serial, slot };
                    let start = now + gap * slot as u64;
                    let exchange = dispatch.ask(owner, Authority::of(uri), discovery(uri), start);
                    check.left += 1;
                    Finding::Discovery(exchange)
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
        let Target::Resource(uri) = &check.proposal.members.get(slot)?.target else { return None };
        let finding = match (&check.findings[slot], answer) {
            (_, Err(reason)) => Finding::Done(Err(reason)),
            (Finding::Discovery(_), Ok(message)) => {
                if let Some(formats) = listed(uri, message) {
                    Finding::Done(Ok(formats))
                } else {
                    let owner = Owner::Check { check: number, slot };
                    let mut template = request(Code::GET, uri);
                    hops::limit(&mut template, uri, HOP_LIMIT_DEFAULT);
                    Finding::Probe(dispatch.ask(owner, Authority::of(uri), template, now))
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
        let mut failed = self.reasons();
        if self.proposal.allows_missing {
            // What does not answer may be there later. What answers has to be right.
            failed.retain(|(_, reason)| reason.code() != Code::GATEWAY_TIMEOUT);
        }
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
    fn reasons(&self) -> Vec<(&Entry, &Reason)> {
        let reason = |(member, finding)| match finding {
            &Finding::Done(Err(ref reason)) => Some((member, reason)),
            _ => None,
        };
        self.proposal.members.iter().zip(&self.findings).filter_map(reason).collect()
    }
    /// Each member with what was found, those that failed first.
    fn listing(&self) -> String {
        let failed = self
            .reasons()
            .into_iter()
            .map(|(member, reason)| format!("{}: {} {reason}", member.label(), reason.code()));
        let valid = |(member, finding): (&Entry, &Finding)| match finding {
            Finding::Done(Ok(formats)) => {
                let numbers: Vec<String> = formats.iter().map(|one| format!("{}", one.0)).collect();
                let formats = if numbers.is_empty() { "?".into() } else { numbers.join(" ") };
                Some(format!("{}: valid, ct {formats}", member.label()))
            }
            _ => None,
        };
        let valid = self.proposal.members.iter().zip(&self.findings).filter_map(valid);
        failed.chain(valid).collect::<Vec<_>>().join("; ")
    }
}

fn path(uri: &Uri) -> String {
    uri.path.iter().fold(String::new(), |path, segment| path + "/" + segment)
}

fn discovery(uri: &Uri) -> RequestTemplate {
    let mut template = RequestTemplate::get("/.well-known/core").with_body_max(LIST_MAX);
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
