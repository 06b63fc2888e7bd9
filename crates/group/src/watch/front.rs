//! What observers see of a watch, and when they get it.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use lowmesh_coap::blockwise::RequestKey;
use lowmesh_machine::earliest;
use lowmesh_units::Instant;
use lowmesh_wire::coap::Message;

use crate::collector::response;
use crate::condition::{Condition, State};
use crate::outcome::Answer;
use crate::output::RequestId;
use crate::params::{WATCH_HEARD, WATCH_KEEP};
use crate::refusal::Refusal;

/// What observers see of a watch.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) key: RequestKey,
    pub(super) message: Message,
    pub(super) client: IpAddr,
    /// Members that are observed for it.
    pub(super) members: usize,
    pub(super) condition: Condition,
    /// Requests that came before there was a result.
    pub(super) waiting: Vec<RequestId>,
    /// Until when the first result waits for silent members.
    pub(super) first_by: Instant,
    /// The state that observers have got, and when.
    pub(super) shown: Option<(State, Instant)>,
    /// The entity has changed, so observers ask again once they have a result.
    pub(super) is_outdated: bool,
    /// When a change was announced that nobody has asked about yet.
    pub(super) announced: Option<Instant>,
    /// When a change that came too early is looked at again.
    pub(super) again: Option<Instant>,
}

impl Front {
    /// When observers get the state even if it has not changed.
    pub(super) fn keep_at(&self) -> Option<Instant> {
        let span = self.condition.pmax().unwrap_or(WATCH_KEEP);
        self.shown.as_ref().map(|(_, at)| *at + span)
    }
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if let Some(at) = self.announced {
            return Some(at + WATCH_HEARD);
        }
        if self.shown.is_none() {
            return Some(self.first_by);
        }
        earliest(self.again, self.keep_at())
    }
}

/// What observers see of a result.
pub(super) fn state(result: &Result<Answer, Refusal>) -> State {
    match result {
        Err(_) => State::Missing,
        Ok(answer) => match &answer.readings[..] {
            [only] if answer.is_combined => only.number().map_or(State::Missing, State::Number),
            _ => {
                let text = response(answer, None).payload;
                State::Text(String::from_utf8_lossy(&text).into_owned())
            }
        },
    }
}
