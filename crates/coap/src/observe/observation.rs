//! The observations of a server: the same request of any number of observers, and its latest state as long as an
//! observer waits for it.
//!
//! The host bounds the octets of these states (`STATES_MAX`) and of one request (`OBSERVED_REQUEST_MAX`); there are at
//! most as many observations as observers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Token};

use super::SEQUENCE_MODULUS;
use crate::PeerAddress;
use crate::blockwise::RequestKey;
use crate::event::ResponseTemplate;

/// Names an observation within its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId(u64);

/// The address of an observer, and the token of the request that registered it.
pub(super) type ObserverId<P> = (P, Token);

/// The same request of any number of observers.
#[derive(Debug)]
pub(super) struct Observation<P> {
    /// The request as the application answers it for all.
    pub(super) request: Message,
    /// Uri-Path of the request, to find it by.
    path: Vec<Vec<u8>>,
    /// The value of Observe of the latest state.
    sequence: u32,
    /// How often the state has changed, from 1.
    pub(super) version: u64,
    /// The version that the application was asked for last.
    asked: u64,
    /// The version of the latest state.
    pub(super) latest_version: u64,
    /// The latest state, as long as an observer waits to be notified of it.
    pub(super) latest: Option<ResponseTemplate>,
    /// Octets of the payload that the application gave last.
    state_len: usize,
    /// Observers that wait to be notified of it.
    waiting: usize,
    pub(super) observers: BTreeSet<ObserverId<P>>,
}

impl<P> Observation<P> {
    fn new(request: &Message) -> Self {
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
            latest_version: 1,
            latest: None,
            state_len: 0,
            waiting: 0,
            observers: BTreeSet::new(),
        }
    }
    /// The latest state as a notification for an observer whose first response had `format`, and whether
    /// it ends the observation.
    pub(super) fn response(&self, format: Option<u32>) -> Option<(ResponseTemplate, bool)> {
        let state = self.latest.as_ref()?;
        // RFC 7641 s4.2: an error ends the observation, and has no Observe option.
        if state.code.class() != Class::Success {
            return Some((state.clone(), true));
        }
        // RFC 7641 s4.2: a state in another Content-Format than the first one is 4.06.
        let changed = state.options.get_uint(OptionNumber::CONTENT_FORMAT) != format;
        if state.code == Code::CONTENT && changed {
            return Some((ResponseTemplate::new(Code::NOT_ACCEPTABLE), true));
        }
        let mut response = state.clone();
        response.options.set_uint(OptionNumber::OBSERVE, self.sequence);
        Some((response, false))
    }
    fn state_octets(&self) -> usize {
        self.latest.as_ref().map_or(0, |state| state.payload.len())
    }
}

/// All observations of a server.
#[derive(Debug)]
pub(super) struct Observations<P> {
    by_id: BTreeMap<ObservationId, Observation<P>>,
    by_key: BTreeMap<(RequestKey, Vec<u8>), ObservationId>,
    /// Octets of the states that are kept.
    octets: usize,
    serial: u64,
    /// The newest value of Observe. One sequence serves all, so that a client that registers again
    /// never sees it go back (RFC 7641 s4.4).
    sequence: u32,
}

impl<P: PeerAddress> Observations<P> {
    pub(super) const fn new() -> Self {
        Self { by_id: BTreeMap::new(), by_key: BTreeMap::new(), octets: 0, serial: 0, sequence: 0 }
    }
    pub(super) fn get(&self, id: ObservationId) -> Option<&Observation<P>> {
        self.by_id.get(&id)
    }
    /// Every observation.
    pub(super) fn ids(&self) -> Vec<ObservationId> {
        self.by_id.keys().copied().collect()
    }
    /// The observations of a path.
    pub(super) fn on_path(&self, path: &[&[u8]]) -> Vec<ObservationId> {
        let matching = self.by_id.iter().filter(|(_, one)| one.path == path);
        matching.map(|(id, _)| *id).collect()
    }
    /// The observation that `request` would join.
    pub(super) fn like(&self, request: &Message) -> Option<ObservationId> {
        self.by_key.get(&(RequestKey::of(request), request.payload.clone())).copied()
    }
    /// Octets of the states that are kept.
    pub(super) const fn state_octets(&self) -> usize {
        self.octets
    }
    /// Forgets all states.
    pub(super) fn forget_states(&mut self) {
        for observation in self.by_id.values_mut() {
            observation.latest = None;
        }
        self.octets = 0;
    }
    /// Octets of the requests that are kept.
    #[cfg(test)]
    pub(super) fn request_octets(&self) -> usize {
        let all = self.by_id.values().map(|one| &one.request);
        all.map(|one| one.options.as_bytes().len() + one.payload.len()).sum()
    }
    /// True if no table has an entry.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.by_key.is_empty() && self.octets == 0
    }
    /// Octets of the payload that the application gave last for an observation.
    pub(super) fn state_len(&self, id: ObservationId) -> usize {
        self.by_id.get(&id).map_or(0, |one| one.state_len)
    }
    /// Whether a state fits: all states that are kept have `octets_max` octets together, but one alone may be of any
    /// length. Its length is noted.
    pub(super) fn has_room_for(
        &mut self,
        id: ObservationId,
        state: &ResponseTemplate,
        octets_max: usize,
    ) -> bool {
        let Some(observation) = self.by_id.get_mut(&id) else { return true };
        observation.state_len = state.payload.len();
        let others = self.octets - observation.state_octets();
        others == 0 || others + state.payload.len() <= octets_max
    }
    /// Adds an observer to the observation of its request, whose state has `state_len` octets. Returns the observation
    /// and the version of its state.
    pub(super) fn join(
        &mut self,
        request: &Message,
        observer: ObserverId<P>,
        state_len: usize,
    ) -> (ObservationId, u64) {
        let id = self.like(request).unwrap_or_else(|| {
            self.serial += 1;
            let id = ObservationId(self.serial);
            self.by_key.insert((RequestKey::of(request), request.payload.clone()), id);
            id
        });
        let observation = self.by_id.entry(id).or_insert_with(|| Observation::new(request));
        observation.observers.insert(observer);
        observation.state_len = state_len;
        (id, observation.version)
    }
    /// Takes an observer out. An observation without observers is forgotten.
    pub(super) fn leave(&mut self, id: ObservationId, observer: &ObserverId<P>) {
        let Some(observation) = self.by_id.get_mut(&id) else { return };
        observation.observers.remove(observer);
        if observation.observers.is_empty()
            && let Some(gone) = self.by_id.remove(&id)
        {
            self.octets -= gone.state_octets();
            self.by_key.remove(&(RequestKey::of(&gone.request), gone.request.payload));
        }
    }
    /// The state has changed.
    pub(super) fn change(&mut self, id: ObservationId) -> Option<&Observation<P>> {
        let observation = self.by_id.get_mut(&id)?;
        observation.version += 1;
        Some(observation)
    }
    /// The application is asked for the state as it is now.
    pub(super) fn ask(&mut self, id: ObservationId) -> Option<&Observation<P>> {
        let observation = self.by_id.get_mut(&id)?;
        observation.asked = observation.version;
        Some(observation)
    }
    /// The application has given the state that it was asked for.
    pub(super) fn keep_state(
        &mut self,
        id: ObservationId,
        state: ResponseTemplate,
    ) -> Option<&Observation<P>> {
        let sequence = self.next_sequence();
        let observation = self.by_id.get_mut(&id)?;
        self.octets += state.payload.len();
        self.octets -= observation.state_octets();
        observation.latest = Some(state);
        observation.sequence = sequence;
        observation.latest_version = observation.asked;
        Some(observation)
    }
    /// One more observer waits to be notified.
    pub(super) fn add_waiting(&mut self, id: ObservationId) {
        if let Some(observation) = self.by_id.get_mut(&id) {
            observation.waiting += 1;
        }
    }
    /// One observer fewer waits to be notified.
    pub(super) fn remove_waiting(&mut self, id: ObservationId) {
        if let Some(observation) = self.by_id.get_mut(&id) {
            observation.waiting -= 1;
        }
        self.drop_unused_state(id);
    }
    /// Drops the state of an observation if no observer waits for it.
    pub(super) fn drop_unused_state(&mut self, id: ObservationId) {
        if let Some(observation) = self.by_id.get_mut(&id)
            && observation.waiting == 0
            && let Some(state) = observation.latest.take()
        {
            self.octets -= state.payload.len();
        }
    }
    /// The next value of Observe.
    pub(super) const fn next_sequence(&mut self) -> u32 {
        self.sequence = (self.sequence + 1) % SEQUENCE_MODULUS;
        self.sequence
    }
}

#[cfg(test)]
impl ObservationId {
    /// Any name, for tests of what keeps them.
    pub(crate) const fn for_test(number: u64) -> Self {
        Self(number)
    }
}
