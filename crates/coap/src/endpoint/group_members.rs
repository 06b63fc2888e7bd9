//! Who has answered a request to a group, and how often.
//!
//! ```text
//!   total     GROUP_MEMBERS_MAX members a request
//!   share     of one source GROUP_MEMBERS_PER_SOURCE; of one member GROUP_RESPONSES_PER_MEMBER responses
//!   newcomer  its response is dropped as `Discard::Overloaded`
//! ```
//! Notifications have no count: [`Place::is_news`] says which one is to be delivered (RFC 7641 s3.4).

use alloc::collections::BTreeMap;

use lowmesh_units::Instant;

use crate::PeerAddress;
use crate::exchange::ExchangeId;
use crate::observe::Place;
use crate::params::{GROUP_MEMBERS_MAX, GROUP_MEMBERS_PER_SOURCE, GROUP_RESPONSES_PER_MEMBER};

/// What a response of a member is to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// One to deliver.
    News,
    /// A notification that is older than one that came.
    Stale,
    /// One past a bound.
    Excess,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    responses: usize,
    newest: Option<Place>,
}

/// The members that have answered one request.
#[derive(Debug)]
struct Members<P> {
    /// When the request left once more for all members to answer.
    asked: Option<Instant>,
    all: BTreeMap<P, Member>,
}

impl<P> Default for Members<P> {
    fn default() -> Self {
        Self { asked: None, all: BTreeMap::new() }
    }
}

/// The members that have answered the open requests.
#[derive(Debug)]
pub(super) struct GroupMembers<P>(BTreeMap<ExchangeId, Members<P>>);

impl<P: PeerAddress> GroupMembers<P> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }
    /// A member has answered; a notification has a place in their order.
    pub(super) fn take(&mut self, id: ExchangeId, from: P, place: Option<Place>) -> Standing {
        let Members { asked, all } = self.0.entry(id).or_default();
        if !all.contains_key(&from) && !has_room(all, from) {
            return Standing::Excess;
        }
        let member = all.entry(from).or_default();
        if let Some(place) = place {
            if !place.is_news(member.newest, *asked) {
                return Standing::Stale;
            }
            member.newest = Some(place);
            return Standing::News;
        }
        if member.responses >= GROUP_RESPONSES_PER_MEMBER {
            return Standing::Excess;
        }
        member.responses += 1;
        Standing::News
    }
    /// All members are asked again: what each answers first is newer than what it has said before.
    pub(super) fn ask_again(&mut self, id: ExchangeId, now: Instant) {
        if let Some(members) = self.0.get_mut(&id) {
            members.asked = Some(now);
        }
    }
    /// A request is over.
    pub(super) fn forget(&mut self, id: ExchangeId) {
        self.0.remove(&id);
    }
}

fn has_room<P: PeerAddress>(members: &BTreeMap<P, Member>, from: P) -> bool {
    let source = from.source();
    // No address of the source is less than the source itself.
    let of_source = members.range(source..).take_while(|(peer, _)| peer.source() == source);
    members.len() < GROUP_MEMBERS_MAX && of_source.count() < GROUP_MEMBERS_PER_SOURCE
}
