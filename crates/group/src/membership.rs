//! The membership of one member in the group of its entity.
//!
//! ```text
//!   wanted --POST /mc?act=add--> joining --2.xx, and GET /mc lists it--> joined --15 min, 3 misses--> stale
//!      ^                            | 4.xx, 5.xx, silent                   ^                           |
//!      |                            v                                      +------- GET /mc lists it --+
//!      +--30 s x 2^n, 1 h at most-- failed                  wanted <------- GET /mc does not list it --+
//!
//!   any --removed from the entity--> leaving --POST /mc?act=del 2.xx or 4.04--> gone
//! ```
//! In a block of its own the manager probes an address before its first member joins: `GET /mc` of a member of a new entity must
//! not list it yet. A group of the block that a member lists, and that no entity wants there, the member has to leave.
//!
//! A member that was never asked to join is gone at once. One that was asked and stayed silent may have joined, so it has to
//! leave; after a week of silence it counts as gone. A request that is under way ends before the next one leaves: they cannot overtake each other.

use core::fmt;
use core::net::Ipv6Addr;

use alloc::format;
use alloc::vec::Vec;

use lowmesh_coap::RequestTemplate;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};

use crate::outcome::Reason;
use crate::params::{
    JITTER, LEAVE_ATTEMPTS_MAX, MEMBERSHIPS, MISSES_MAX, RECONCILE_INTERVAL, RETRY_MAX, RETRY_MIN,
};

/// The state of a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The member is to join.
    Wanted,
    /// It was asked to join.
    Joining,
    /// It has joined.
    Joined,
    /// It has not joined; the next attempt comes.
    Failed(Reason),
    /// It may have forgotten the group, and is asked.
    Stale,
    /// It is to leave.
    Leaving,
    /// It has left, or never joined.
    Gone,
}

/// What a request of a membership is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Whether the address is free.
    Probe,
    Join,
    Verify,
    Look,
    Leave,
}

/// The membership of a member.
#[derive(Clone, Debug)]
pub struct Membership {
    pub(crate) state: State,
    /// The request under way.
    pub(crate) step: Option<(u64, Step)>,
    /// When there is something to do.
    pub(crate) due: Option<Instant>,
    attempts: u8,
    misses: u8,
    /// Whether a request to join has left since the member was last known to be outside.
    asked: bool,
    /// Whether the address is to be probed first.
    probes: bool,
}

impl Membership {
    /// A member that is to join now.
    pub(crate) const fn wanted(now: Instant) -> Self {
        let (state, due) = (State::Wanted, Some(now));
        Self { state, step: None, due, attempts: 0, misses: 0, asked: false, probes: false }
    }
    /// A member that is to join a group that is new, if its address is free.
    pub(crate) const fn probed(now: Instant) -> Self {
        let mut membership = Self::wanted(now);
        membership.probes = true;
        membership
    }
    /// A member of an entity that was stored: it is asked whether it still belongs.
    pub(crate) fn stored(due: Instant) -> Self {
        Self { state: State::Stale, asked: true, ..Self::wanted(due) }
    }
    /// The state of the membership.
    pub const fn state(&self) -> &State {
        &self.state
    }
    /// Whether it has joined, as far as is known.
    pub(crate) const fn is_joined(&self) -> bool {
        matches!(self.state, State::Joined | State::Stale)
    }
    /// Whether an attempt has come to its end, whichever it is.
    pub(crate) const fn is_settled(&self) -> bool {
        match self.state {
            State::Joined | State::Failed(_) | State::Gone => true,
            State::Leaving => self.attempts > 0,
            _ => false,
        }
    }
    /// The member is to leave.
    pub(crate) fn leave(&mut self, at: Instant) {
        if self.state == State::Gone || self.state == State::Leaving {
            return;
        }
        self.attempts = 0;
        let outside = matches!(self.state, State::Failed(Reason::Refused { .. })) || !self.asked;
        self.state = if outside { State::Gone } else { State::Leaving };
        self.due = (!outside && self.step.is_none()).then_some(at);
    }
    /// A member that leaves is to join again. A request that is under way ends first.
    pub(crate) fn want(&mut self, now: Instant) {
        self.attempts = 0;
        self.state = State::Wanted;
        self.due = self.step.is_none().then_some(now);
    }
    /// A failure that decides on the change is not repaired by another attempt.
    pub(crate) fn stop_if_failed(&mut self) {
        if matches!(self.state, State::Failed(_)) {
            self.due = None;
        }
    }
    /// What is to be sent now, if its time has come.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Step> {
        if self.step.is_some() || self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        let step = match self.state {
            State::Wanted | State::Failed(_) if self.probes => {
                self.state = State::Joining;
                Step::Probe
            }
            State::Wanted | State::Failed(_) => {
                self.state = State::Joining;
                self.asked = true;
                Step::Join
            }
            State::Joining => Step::Verify,
            State::Joined | State::Stale => {
                self.state = State::Stale;
                Step::Look
            }
            State::Leaving => Step::Leave,
            State::Gone => return None,
        };
        Some(step)
    }
    /// Whether the request under way asks for the groups of the member.
    pub(crate) const fn looks(&self) -> bool {
        matches!(self.step, Some((_, Step::Probe | Step::Verify | Step::Look)))
    }
    /// A request of this membership has ended.
    pub(crate) fn end(
        &mut self,
        answer: Result<&Message, Reason>,
        group: Ipv6Addr,
        now: Instant,
        rng: &mut Rng,
    ) {
        let Some((_, step)) = self.step.take() else { return };
        let has_turned = match self.state {
            State::Leaving => step != Step::Leave,
            State::Wanted => true,
            _ => false,
        };
        if has_turned {
            self.due = Some(now);
            return;
        }
        match step {
            Step::Probe => self.on_probed(answer, group, now, rng),
            Step::Join => self.on_join(answer, now, rng),
            Step::Verify => self.on_verified(&answer, group, now, rng),
            Step::Look => self.on_look(&answer, group, now, rng),
            Step::Leave => self.on_left(&answer, now, rng),
        }
    }
    fn on_probed(
        &mut self,
        answer: Result<&Message, Reason>,
        group: Ipv6Addr,
        now: Instant,
        rng: &mut Rng,
    ) {
        if self.state != State::Joining {
            return;
        }
        match answer {
            Ok(message) if lists(message, group) == Some(true) => {
                self.fail(Reason::Unusable("it has been in the group before"), now, rng);
            }
            Ok(_) => {
                self.probes = false;
                self.state = State::Wanted;
                self.due = Some(now);
            }
            Err(reason) => self.fail(reason, now, rng),
        }
    }
    fn on_join(&mut self, answer: Result<&Message, Reason>, now: Instant, rng: &mut Rng) {
        let refused = match answer {
            Ok(message) if message.code.class() == Class::Success => {
                self.due = Some(now);
                return;
            }
            Ok(message) => Reason::of_error(message),
            Err(reason) => reason,
        };
        self.fail(refused, now, rng);
    }
    fn on_verified(
        &mut self,
        answer: &Result<&Message, Reason>,
        group: Ipv6Addr,
        now: Instant,
        rng: &mut Rng,
    ) {
        // S002 s2.3.2: the manager verifies that members have joined. One that cannot list its groups is believed.
        if answer.as_ref().ok().and_then(|message| lists(message, group)) == Some(false) {
            self.fail(Reason::Unusable("it accepts the group, but does not list it"), now, rng);
        } else {
            self.confirm(now, rng);
        }
    }
    fn on_look(
        &mut self,
        answer: &Result<&Message, Reason>,
        group: Ipv6Addr,
        now: Instant,
        rng: &mut Rng,
    ) {
        match answer {
            Ok(message) if lists(message, group) == Some(false) => {
                self.state = State::Wanted;
                self.asked = false;
                self.due = Some(now);
            }
            // A member that answers and cannot list its groups is believed.
            Ok(_) => self.confirm(now, rng),
            Err(_) => self.retry(now, rng),
        }
    }
    fn on_left(&mut self, answer: &Result<&Message, Reason>, now: Instant, rng: &mut Rng) {
        let left = answer.as_ref().is_ok_and(|message| {
            message.code.class() == Class::Success || message.code == Code::NOT_FOUND
        });
        if left || self.attempts >= LEAVE_ATTEMPTS_MAX {
            self.state = State::Gone;
        } else {
            self.retry(now, rng);
        }
    }
    fn confirm(&mut self, now: Instant, rng: &mut Rng) {
        self.state = State::Joined;
        (self.attempts, self.misses) = (0, 0);
        self.due = Some(now + jittered(RECONCILE_INTERVAL, rng));
    }
    fn fail(&mut self, reason: Reason, now: Instant, rng: &mut Rng) {
        self.state = State::Failed(reason);
        self.retry(now, rng);
    }
    fn retry(&mut self, now: Instant, rng: &mut Rng) {
        let wait = RETRY_MIN.saturating_mul(1 << self.attempts.min(7)).min(RETRY_MAX);
        self.attempts = self.attempts.saturating_add(1);
        self.due = Some(now + jittered(wait, rng));
    }
    /// The member answered a request to the group, or did not.
    pub(crate) fn heard(&mut self, answered: bool, now: Instant) {
        self.misses = if answered { 0 } else { self.misses.saturating_add(1) };
        if self.misses >= MISSES_MAX && self.state == State::Joined && self.step.is_none() {
            self.misses = 0;
            self.due = Some(now);
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wanted => f.write_str("wanted"),
            Self::Joining => f.write_str("joining"),
            Self::Joined => f.write_str("joined"),
            Self::Failed(reason) => write!(f, "failed({} {reason})", reason.code()),
            Self::Stale => f.write_str("stale"),
            Self::Leaving => f.write_str("leaving"),
            Self::Gone => f.write_str("gone"),
        }
    }
}

impl Step {
    /// The request of this step (S002 table 4): the address as 16 octets.
    pub(crate) fn request(self, group: Ipv6Addr) -> RequestTemplate {
        let action = match self {
            Self::Probe | Self::Verify | Self::Look => return RequestTemplate::get(MEMBERSHIPS),
            Self::Join => "act=add",
            Self::Leave => "act=del",
        };
        let mut template = RequestTemplate::new(Code::POST, MEMBERSHIPS);
        template.options.insert_query(action);
        let format = u32::from(ContentFormat::OCTET_STREAM.0);
        template.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
        template.with_payload(group.octets().to_vec())
    }
}

fn jittered(span: Duration, rng: &mut Rng) -> Duration {
    span.mul_f64(rng.between(1.0 - JITTER, 1.0 + JITTER))
}

/// Whether a list of groups has an address. `None` if it is no such list.
fn lists(message: &Message, group: Ipv6Addr) -> Option<bool> {
    listed(message).map(|all| all.contains(&group))
}

/// The groups that a member lists: 16 octets each, or text. `None` if it is no such list.
pub(crate) fn listed(message: &Message) -> Option<Vec<Ipv6Addr>> {
    if message.code != Code::CONTENT {
        return None;
    }
    let payload = &message.payload[..];
    let words = || core::str::from_utf8(payload).ok();
    let text: Option<Vec<Ipv6Addr>> = words().and_then(|text| {
        let separators = |one: char| one.is_whitespace() || ",;[]\"<>".contains(one);
        let words = text.split(separators).filter(|word| !word.is_empty());
        words.map(|word| word.parse().ok()).collect()
    });
    if text.is_some() {
        return text;
    }
    let (addresses, rest) = payload.as_chunks::<16>();
    rest.is_empty().then(|| addresses.iter().copied().map(Ipv6Addr::from).collect())
}

/// The URI of the resource that all members of a group have (`mcastURI`, S002 s4.2).
pub(crate) fn group_uri(group: Ipv6Addr, path: &str) -> alloc::string::String {
    format!("coap://[{group}]{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};
    use lowmesh_wire::coap::{Kind, MessageId};

    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0x89, 1);

    struct Script {
        membership: Membership,
        now: Instant,
        rng: Rng,
    }

    impl Script {
        fn new() -> Self {
            let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
            Self { membership: Membership::wanted(Instant::ZERO), now: Instant::ZERO, rng }
        }
        /// Waits for the next step, and ends it.
        fn step(&mut self, answer: Result<&Message, Reason>) -> Option<Step> {
            self.now = self.membership.due.map_or(self.now, |due| due.max(self.now));
            let step = self.membership.begin(self.now)?;
            self.membership.step = Some((1, step));
            self.membership.end(answer, GROUP, self.now, &mut self.rng);
            Some(step)
        }
    }

    fn message(code: Code, payload: &[u8]) -> Message {
        let mut message = Message::new(Kind::Acknowledgement, code, MessageId(1));
        message.payload = payload.to_vec();
        message
    }

    #[test]
    fn a_member_joins_is_verified_and_looked_at_again() {
        let (changed, list) =
            (message(Code::CHANGED, b""), message(Code::CONTENT, &GROUP.octets()));
        let mut script = Script::new();
        assert_eq!(script.step(Ok(&changed)), Some(Step::Join));
        assert_eq!(script.step(Ok(&list)), Some(Step::Verify));
        assert_eq!(script.membership.state, State::Joined);
        assert_eq!(script.step(Ok(&list)), Some(Step::Look));
        assert!(script.now >= Instant::from_secs(720), "{}", script.now);
        // It restarted, and has forgotten the group.
        assert_eq!(script.step(Ok(&message(Code::CONTENT, b""))), Some(Step::Look));
        assert_eq!(script.membership.state, State::Wanted);
        assert_eq!(script.step(Ok(&changed)), Some(Step::Join));
    }

    #[test]
    fn a_member_that_has_a_new_address_already_does_not_join() {
        let mut script = Script::new();
        script.membership = Membership::probed(Instant::ZERO);
        let none = message(Code::CONTENT, b"");
        assert_eq!(script.step(Ok(&message(Code::CONTENT, &GROUP.octets()))), Some(Step::Probe));
        assert_eq!(
            script.membership.state.to_string(),
            "failed(5.02 it has been in the group before)"
        );
        // It was not asked to join, and need not leave.
        script.membership.leave(script.now);
        assert_eq!(script.membership.state, State::Gone);
        script.membership = Membership::probed(script.now);
        assert_eq!(script.step(Ok(&none)), Some(Step::Probe));
        assert_eq!(script.step(Ok(&message(Code::CHANGED, b""))), Some(Step::Join));
        assert_eq!(script.step(Ok(&message(Code::CONTENT, &GROUP.octets()))), Some(Step::Verify));
        assert_eq!(script.membership.state, State::Joined);
        // A list that cannot be read says nothing.
        script.membership = Membership::probed(script.now);
        assert_eq!(script.step(Ok(&message(Code::NOT_FOUND, b""))), Some(Step::Probe));
        assert_eq!(script.step(Ok(&message(Code::CHANGED, b""))), Some(Step::Join));
    }

    #[test]
    fn a_member_that_lies_or_refuses_has_failed_and_is_asked_again() {
        let mut script = Script::new();
        script.step(Ok(&message(Code::CHANGED, b"")));
        script.step(Ok(&message(Code::CONTENT, b"ff02::1 ff02::2")));
        assert!(matches!(script.membership.state, State::Failed(Reason::Unusable(_))));
        let full = message(Code::REQUEST_ENTITY_TOO_LARGE, b"table full");
        assert_eq!(script.step(Ok(&full)), Some(Step::Join));
        assert_eq!(script.membership.state.to_string(), "failed(4.13 table full)");
        assert!(script.now >= Instant::from_secs(24));
        script.membership.leave(script.now);
        assert_eq!(script.membership.state, State::Gone);
    }

    #[test]
    fn a_silent_member_has_to_leave_until_it_answers() {
        let mut script = Script::new();
        script.step(Err(Reason::Silent));
        script.membership.leave(script.now);
        assert_eq!(script.membership.state, State::Leaving);
        assert_eq!(script.step(Err(Reason::Silent)), Some(Step::Leave));
        assert_eq!(script.membership.state, State::Leaving);
        assert_eq!(script.step(Ok(&message(Code::NOT_FOUND, b""))), Some(Step::Leave));
        assert_eq!(script.membership.state, State::Gone);
    }

    #[test]
    fn a_member_that_is_silent_for_a_week_counts_as_gone() {
        let mut script = Script::new();
        script.step(Err(Reason::Silent));
        script.membership.leave(script.now);
        while script.membership.state == State::Leaving {
            assert_eq!(script.step(Err(Reason::Silent)), Some(Step::Leave));
        }
        assert_eq!(script.membership.state, State::Gone);
        let days = script.now.as_secs_f64() / 86_400.0;
        assert!((6.0..8.0).contains(&days), "{days}");
    }

    #[test]
    fn a_member_that_is_wanted_again_joins_after_the_request_to_leave_has_ended() {
        let mut script = Script::new();
        let changed = message(Code::CHANGED, b"");
        script.step(Ok(&changed));
        script.membership.leave(script.now);
        let step = script.membership.begin(script.now).expect("to leave");
        script.membership.step = Some((1, step));
        script.membership.want(script.now);
        assert_eq!(script.membership.begin(script.now), None);
        script.membership.end(Ok(&changed), GROUP, script.now, &mut script.rng);
        assert_eq!(script.step(Ok(&changed)), Some(Step::Join));
    }

    #[test]
    fn a_member_that_was_never_asked_is_gone_at_once() {
        let mut script = Script::new();
        script.membership.leave(script.now);
        assert_eq!(script.membership.state, State::Gone);
        assert_eq!(script.step(Err(Reason::Silent)), None);
    }

    #[test]
    fn a_request_under_way_ends_before_the_one_to_leave() {
        let mut script = Script::new();
        let step = script.membership.begin(script.now).expect("to join");
        script.membership.step = Some((1, step));
        script.membership.leave(script.now);
        assert_eq!(script.membership.begin(script.now), None);
        let changed = message(Code::CHANGED, b"");
        script.membership.end(Ok(&changed), GROUP, script.now, &mut script.rng);
        assert_eq!(script.step(Ok(&changed)), Some(Step::Leave));
    }

    #[test]
    fn three_misses_in_a_row_make_the_manager_look() {
        let mut script = Script::new();
        script.step(Ok(&message(Code::CHANGED, b"")));
        script.step(Ok(&message(Code::NOT_FOUND, b"")));
        assert_eq!(script.membership.state, State::Joined);
        let now = script.now;
        script.membership.heard(false, now);
        script.membership.heard(true, now);
        (0..2).for_each(|_| script.membership.heard(false, now));
        assert_eq!(script.membership.begin(now), None);
        script.membership.heard(false, now);
        assert_eq!(script.membership.begin(now), Some(Step::Look));
    }

    #[test]
    fn a_member_that_is_lost_can_miss_any_number_of_requests() {
        let mut script = Script::new();
        script.step(Ok(&message(Code::CHANGED, b"")));
        script.step(Ok(&message(Code::NOT_FOUND, b"")));
        // The member is gone: each look fails, and each query misses it.
        script.step(Err(Reason::Silent));
        assert_eq!(script.membership.state, State::Stale);
        (0..300).for_each(|_| script.membership.heard(false, script.now));
        assert_eq!(script.membership.state, State::Stale);
    }

    #[test]
    fn the_requests_are_those_of_table_4() {
        let join = Step::Join.request(GROUP);
        assert_eq!(join.code, Code::POST);
        assert_eq!(join.options.get(OptionNumber::URI_PATH), Some(&b"mc"[..]));
        assert_eq!(join.options.get(OptionNumber::URI_QUERY), Some(&b"act=add"[..]));
        assert_eq!(join.payload, GROUP.octets());
        assert_eq!(Step::Look.request(GROUP).code, Code::GET);
    }
}
