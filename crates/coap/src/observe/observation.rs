//! One observation: the same request of any number of observers.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use lowmesh_wire::coap::{Message, OptionNumber, Token};

use crate::event::ResponseTemplate;

/// Names an observation within its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId(pub(super) u64);

/// The same request of any number of observers.
#[derive(Debug)]
pub(super) struct Observation<P> {
    /// The request as the application answers it for all.
    pub(super) request: Message,
    /// Uri-Path of the request, to find it by.
    pub(super) path: Vec<Vec<u8>>,
    /// The value of Observe of the latest state.
    pub(super) sequence: u32,
    /// How often the state has changed, from 1.
    pub(super) version: u64,
    /// The version that the application was asked for last.
    pub(super) asked: u64,
    /// The version of the latest state.
    pub(super) told: u64,
    /// The latest state, as long as somebody waits to be notified of it.
    pub(super) latest: Option<ResponseTemplate>,
    /// Octets of the state that the application told last.
    pub(super) state_len: usize,
    /// Observers that wait to be notified of it.
    pub(super) waiting: usize,
    pub(super) observers: BTreeSet<(P, Token)>,
}

impl<P> Observation<P> {
    pub(super) fn new(request: &Message) -> Self {
        let path = request.options.iter().values(OptionNumber::URI_PATH);
        let mut shared = request.clone();
        // What one client has already, or prefers, is not for all.
        for own in [OptionNumber::ETAG, OptionNumber::BLOCK2, OptionNumber::ECHO] {
            shared.options.remove(own);
        }
        Self {
            request: shared,
            path: path.map(<[u8]>::to_vec).collect(),
            sequence: 0,
            version: 1,
            asked: 1,
            told: 1,
            latest: None,
            state_len: 0,
            waiting: 0,
            observers: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
impl ObservationId {
    /// Any name, for tests of what keeps them.
    pub(crate) const fn for_test(number: u64) -> Self {
        Self(number)
    }
}
