//! A member of a group, and the store that its numbers and windows outlive a restart in (RFC 10021 s2.6.1).
//!
//! As for one peer, no message comes out of here whose sequence number is not stored as used. While the member runs, the store
//! has its numbers alone; at an orderly end it has the replay windows too. Without them each other member is challenged once.

use std::io;
use std::path::{Path, PathBuf};

use lowmesh_oscore::group::{
    Answer, Configuration, Group, GroupState, MayCheck, Pending, Received,
};
use lowmesh_oscore::{Challenge, Identity, ProtectError, Refusal, ResponseError};
use lowmesh_wire::coap::stream::StreamMessage;

use super::error::OpenError;
use super::key_file::{KeyFile, Locks};
use super::store::{FileStore, Store, StoreError, sender_of};
use crate::clock::fresh_octets;

/// A member of a group whose changing part is in a [`Store`].
#[derive(Debug)]
pub(super) struct StoredGroup {
    group: Group,
    store: Box<dyn Store>,
    /// Held as long as the file is in use.
    lock: Option<Locks>,
}

impl StoredGroup {
    /// The member of a file (see [`Configuration`]); what changes is kept in `FILE.SENDER-group.state`.
    pub(super) fn open(path: &Path, state_folder: Option<&Path>) -> Result<Self, OpenError> {
        let file = KeyFile::open(path)?;
        let configuration = Configuration::parse(file.text())
            .map_err(|error| OpenError::Group { path: path.to_owned(), error })?;
        let group = configuration.group();
        let states = file.states(group.sender_id(), state_folder, false)?;
        let mut state = sender_of(states.place(), group.sender_id()).into_os_string();
        state.push("-group.state");
        let store = FileStore::open(&PathBuf::from(state)).map(Box::new)?;
        let mut stored = Self::resume(group, store)?;
        stored.lock = Some(states.record()?);
        Ok(stored)
    }
    /// Goes on with what is stored; in an empty store the group must never have been used.
    pub(super) fn resume(group: Group, store: Box<dyn Store>) -> Result<Self, StoreError> {
        let mut stored = Self { group, store, lock: None };
        let path = || stored.store.place().to_owned();
        let text = stored.store.load().map_err(|error| StoreError::File { path: path(), error })?;
        let state = text.map(|text| text.parse::<GroupState>()).transpose();
        let state = state.map_err(|error| StoreError::Damaged { path: path(), error })?;
        if let Some(state) = state {
            // Drawn before they are used, since drawing may fail.
            let challenges: Result<Vec<_>, io::Error> =
                stored.group.members().map(|_| fresh_octets()).collect();
            let mut challenges = challenges.map_err(StoreError::Random)?.into_iter();
            stored.group.resume(&state, || {
                Challenge(challenges.next().expect("there is one for each member"))
            });
        }
        // The store says that the group is in use, so that a crash loses the windows.
        stored.save(&GroupState::reserved(stored.group.reserved()))?;
        Ok(stored)
    }
    /// The member.
    pub(super) const fn group(&self) -> &Group {
        &self.group
    }
    /// See [`Group::protect_request`].
    pub(super) fn protect_request(
        &mut self,
        to: Option<Identity>,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), StoreError> {
        self.reserve()?;
        Ok(self.group.protect_request(to, request)?)
    }
    /// See [`Group::unprotect_response_if`].
    pub(super) fn unprotect_response(
        &self,
        pending: &mut Pending,
        outer: &StreamMessage,
        may_check: MayCheck<'_>,
    ) -> Result<Answer, ResponseError> {
        self.group.unprotect_response_if(pending, outer, may_check)
    }
    /// See [`Group::unprotect_request_if`].
    pub(super) fn unprotect_request(
        &mut self,
        outer: &StreamMessage,
        may_check: MayCheck<'_>,
    ) -> Result<Result<(StreamMessage, Received), Refusal>, StoreError> {
        match self.group.unprotect_request_if(outer, may_check) {
            // A challenge needs a number too. Nothing is taken note of yet.
            Err(Refusal::Unreserved) => {
                self.reserve()?;
                Ok(self.group.unprotect_request_if(outer, may_check))
            }
            other => Ok(other),
        }
    }
    /// See [`Group::protect_response`].
    pub(super) fn protect_response(
        &mut self,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, StoreError> {
        match self.group.protect_response(received, response) {
            Err(ProtectError::Unreserved) => {
                self.reserve()?;
                Ok(self.group.protect_response(received, response)?)
            }
            other => Ok(other?),
        }
    }
    /// Stores the windows too: nothing is lost.
    pub(super) fn close(mut self) -> Result<(), StoreError> {
        let state = self.group.state();
        self.save(&state)
    }
    /// Makes sure that there is a number which is stored as used.
    fn reserve(&mut self) -> Result<(), StoreError> {
        let Some(reservation) = self.group.reservation_needed() else { return Ok(()) };
        self.save(&GroupState::reserved(reservation.end()))?;
        self.group.confirm(reservation);
        Ok(())
    }
    fn save(&mut self, state: &GroupState) -> Result<(), StoreError> {
        let saved = self.store.save(&state.to_string());
        saved.map_err(|error| StoreError::File { path: self.store.place().to_owned(), error })
    }
}
