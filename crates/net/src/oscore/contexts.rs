//! The security contexts of a program: read from one file, kept in others, shared by its transports.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_oscore::group;
use lowmesh_oscore::params::{GROUP_OVERHEAD, OSCORE_OVERHEAD};
use lowmesh_oscore::transport::{Answer, Failure, SecurityContexts, unprotect_with_any};
use lowmesh_oscore::{
    Configuration, Identity, Opened, Pending, Received, Refusal, ResponseError, State,
};
use lowmesh_wire::coap::stream::StreamMessage;
use zeroize::Zeroizing;

use super::error::OpenError;
use super::group::StoredGroup;
use super::key_file::{KeyFile, Locks};
use super::store::{FileStore, StoreError, folder, hex, sender_of};
use super::stored::{AfterLoss, StoredContext};
use crate::clock::fresh_octets;
use crate::params::LOSSES_MAX;

/// Security contexts whose state is stored in files. A clone is another hand on the same ones: two transports with one
/// context must count with one sequence number.
#[derive(Clone, Debug, Default)]
pub struct Contexts(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    all: Vec<StoredContext>,
    groups: Vec<StoredGroup>,
    /// Held as long as the contexts of a file are in use.
    lock: Option<Locks>,
    /// What was refused, for people.
    refusals: VecDeque<String>,
}

impl Contexts {
    /// Opens the contexts of a file in libcoap's format (coap-oscore-conf(5)); one for each recipient in the file.
    ///
    /// What changes of each is kept beside it: of `keys.conf` with the sender `01` and the recipient `02` in
    /// `keys.conf.01-02.state`. Relative paths and symbolic links to one file lead to one state and one lock.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_in(path, None)
    }
    /// The same with the state in another folder, as for a file in a folder that cannot be written.
    ///
    /// A second state would use the nonces of the first again. So the folder is recorded next to the file, as in
    /// `keys.conf.01.state-in`, and later opens use the recorded folder, or fail if another is given. Where the record
    /// cannot be written, each program has to name the folder.
    pub fn open_in(path: &Path, state_folder: Option<&Path>) -> Result<Self, OpenError> {
        let file = KeyFile::open(path)?;
        let configuration = Configuration::parse(file.text())
            .map_err(|error| OpenError::Configuration { path: path.to_owned(), error })?;
        let after_loss =
            if configuration.echo_after_loss() { AfterLoss::Challenge } else { AfterLoss::Trust };
        let sender = configuration.sender_id();
        // A context that is derived many times needs no old state: a new one has new keys.
        let may_lose = configuration.derives_many_times();
        let states = file.states(sender, state_folder, may_lose)?;
        let place = states.place();
        let state = |recipient| FileStore::open(&state_of(place, sender, recipient)).map(Box::new);
        let all: Result<_, StoreError> = if configuration.derives_many_times() {
            let key = || fresh_octets().map(Zeroizing::new).map_err(StoreError::Random);
            let stored = configuration.renewals(key)?.into_iter().map(|renewal| {
                let store = state(renewal.recipient_id())?;
                StoredContext::renewable(renewal, store, after_loss)
            });
            stored.collect()
        } else {
            let used = numbers_used(place, sender)?;
            let stored = configuration.contexts().into_iter().map(|context| {
                let store = state(context.recipient_id())?;
                let stored = StoredContext::resume(context, store, after_loss)?;
                stored.skip_numbers(used);
                Ok(stored)
            });
            stored.collect()
        };
        let contexts = Self::new(all?);
        contexts.lock().lock = Some(states.record()?);
        Ok(contexts)
    }
    /// These, numbered from 0. Those with one Sender Key share its sequence numbers.
    pub fn new(all: Vec<StoredContext>) -> Self {
        let mut sharing: Vec<StoredContext> = Vec::with_capacity(all.len());
        for mut context in all {
            sharing.iter().any(|other| context.share_numbers(other));
            sharing.push(context);
        }
        Self(Arc::new(Mutex::new(Inner { all: sharing, ..Inner::default() })))
    }
    /// Adds the group of a file (RFC 10021; see [`lowmesh_oscore::group::Configuration`]), and returns its number. What
    /// changes is kept beside it, of `floor.conf` with the sender `01` in `floor.conf.01-group.state`.
    pub fn add_group(&self, path: &Path) -> Result<usize, OpenError> {
        self.add_group_in(path, None)
    }
    /// The same with the state in another folder, as for [`Contexts::open_in`].
    pub fn add_group_in(
        &self,
        path: &Path,
        state_folder: Option<&Path>,
    ) -> Result<usize, OpenError> {
        let group = StoredGroup::open(path, state_folder)?;
        let mut inner = self.lock();
        // A request says its Gid, and one Gid leads to one group.
        let taken = |one: &StoredGroup| one.group().group_id() == group.group().group_id();
        if inner.groups.iter().any(taken) {
            return Err(OpenError::SameGroup { path: path.to_owned() });
        }
        inner.groups.push(group);
        Ok(inner.groups.len() - 1)
    }
    /// The other members of a group.
    pub fn members(&self, group: usize) -> Vec<Identity> {
        self.lock().groups.get(group).map_or_else(Vec::new, |one| one.group().members().collect())
    }
    /// The number of contexts, without groups.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }
    /// True without contexts of two, as after [`Contexts::close`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Why a message was refused, oldest first; when nobody asks the oldest are forgotten.
    pub fn take_refusal(&self) -> Option<String> {
        self.lock().refusals.pop_front()
    }
    /// Shuts down cleanly: stores the replay windows too, so that nothing is challenged after the next start. Nothing
    /// is protected or opened afterwards, through no clone.
    pub fn close(&self) -> Result<(), StoreError> {
        let (all, groups, lock) = {
            let mut inner = self.lock();
            let groups = std::mem::take(&mut inner.groups);
            (std::mem::take(&mut inner.all), groups, inner.lock.take())
        };
        // One that cannot be stored keeps no other from being stored.
        let closed = all.into_iter().map(StoredContext::close);
        let closed: Vec<_> = closed.chain(groups.into_iter().map(StoredGroup::close)).collect();
        drop(lock);
        closed.into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No method leaves a context half changed when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecurityContexts for Contexts {
    /// See [`StoredContext::protect_request`].
    fn protect_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), Failure> {
        Ok(self.lock().context(context)?.protect_request(request)?)
    }
    /// See [`StoredContext::protect_first_request`].
    fn protect_first_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), Failure> {
        Ok(self.lock().context(context)?.protect_first_request(request)?)
    }
    /// Whether a context can be replaced by a new one (RFC 8613 appendix B.2).
    fn derives_many_times(&self, context: usize) -> bool {
        self.lock().all.get(context).is_some_and(StoredContext::derives_many_times)
    }
    /// See [`StoredContext::unprotect_response`]. With an older request of the same observation: a notification that was
    /// under way while it was registered again belongs to that.
    fn unprotect_response(
        &self,
        context: usize,
        requests: &mut [Pending],
        outer: &StreamMessage,
    ) -> Result<Result<Answer, ResponseError>, Failure> {
        let mut inner = self.lock();
        let context = inner.context(context)?;
        let result =
            unprotect_with_any(requests, |pending| context.unprotect_response(pending, outer))?;
        match &result {
            // Nobody vouches for what it says, but people may want to know.
            Err(error @ ResponseError::Unprotected) => {
                let code = outer.code;
                inner.note(format!("{error}: {code} {}", outer.payload.escape_ascii()));
            }
            Err(error) => inner.note(error.to_string()),
            Ok(_) => {}
        }
        Ok(result)
    }
    /// Opens a request with the context that it names. Where several have the same kid and the request says no kid
    /// context, each is tried (RFC 8613 s12.2).
    fn unprotect_request(&self, outer: &StreamMessage) -> Result<Result<Opened, Refusal>, Failure> {
        let mut inner = self.lock();
        let mut refusal = Refusal::UnknownContext;
        for (context, stored) in inner.all.iter_mut().enumerate() {
            match stored.unprotect_request(outer)? {
                Ok((request, received)) => return Ok(Ok(Opened { request, received, context })),
                Err(Refusal::UnknownContext) => {}
                // Not of this context, or a replay in it: another may have the key.
                Err(other @ (Refusal::Forged | Refusal::Replay)) => refusal = other,
                Err(other) => {
                    refusal = other;
                    break;
                }
            }
        }
        inner.note(refusal.to_string());
        Ok(Err(refusal))
    }
    /// See [`StoredContext::protect_response`].
    fn protect_response(
        &self,
        context: usize,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, Failure> {
        Ok(self.lock().context(context)?.protect_response(received, response)?)
    }
    fn group_of(&self, outer: &StreamMessage) -> Option<usize> {
        self.lock().groups.iter().position(|one| one.group().is_meant_by(outer))
    }
    fn protect_group_request(
        &self,
        group: usize,
        to: Option<Identity>,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, group::Pending), Failure> {
        Ok(self.lock().group(group)?.protect_request(to, request)?)
    }
    fn unprotect_group_response(
        &self,
        group: usize,
        pending: &mut group::Pending,
        outer: &StreamMessage,
        may_check: group::MayCheck<'_>,
    ) -> Result<Result<group::Answer, ResponseError>, Failure> {
        let mut inner = self.lock();
        let result = inner.group(group)?.unprotect_response(pending, outer, may_check);
        if let Err(error) = &result {
            inner.note(error.to_string());
        }
        Ok(result)
    }
    fn unprotect_group_request(
        &self,
        group: usize,
        outer: &StreamMessage,
        may_check: group::MayCheck<'_>,
    ) -> Result<Result<(StreamMessage, group::Received), Refusal>, Failure> {
        let mut inner = self.lock();
        let result = inner.group(group)?.unprotect_request(outer, may_check)?;
        if let Err(refusal) = &result {
            inner.note(refusal.to_string());
        }
        Ok(result)
    }
    fn protect_group_response(
        &self,
        group: usize,
        received: &mut group::Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, Failure> {
        Ok(self.lock().group(group)?.protect_response(received, response)?)
    }
    fn overhead(&self) -> usize {
        if self.lock().groups.is_empty() { OSCORE_OVERHEAD } else { GROUP_OVERHEAD }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Protect(error) => Self::Protect(error),
            StoreError::Closed => Self::Closed,
            _ => Self::Storage,
        }
    }
}

impl Inner {
    fn context(&mut self, number: usize) -> Result<&mut StoredContext, StoreError> {
        self.all.get_mut(number).ok_or(StoreError::Closed)
    }
    fn group(&mut self, number: usize) -> Result<&mut StoredGroup, StoreError> {
        self.groups.get_mut(number).ok_or(StoreError::Closed)
    }
    fn note(&mut self, refusal: String) {
        if self.refusals.len() == LOSSES_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back(refusal);
    }
}

/// Where the state of a context is kept.
fn state_of(path: &Path, sender: Identity, recipient: Identity) -> PathBuf {
    let mut name = sender_of(path, sender).into_os_string();
    name.push(format!("-{}.state", hex(recipient)));
    name.into()
}

/// The end of the sequence numbers that are used with the Sender Key of a file, according to all states of the file. The
/// states of recipients that have been removed from the file count too.
fn numbers_used(path: &Path, sender: Identity) -> Result<u64, OpenError> {
    let prefix = sender_of(path, sender);
    let prefix = prefix.file_name().unwrap_or_default().as_encoded_bytes();
    let mut used = 0;
    let failed = |path: &Path, error| StoreError::File { path: path.to_owned(), error };
    for entry in fs::read_dir(folder(path)).map_err(|error| failed(path, error))? {
        let entry = entry.map_err(|error| failed(path, error))?;
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(prefix);
        if !rest.is_some_and(|rest| rest.starts_with(b"-") && rest.ends_with(b".state")) {
            continue;
        }
        let path = entry.path();
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let state = text.parse::<State>();
        let state = state.map_err(|error| StoreError::Damaged { path: path.clone(), error })?;
        // A random ID Context has a Sender Key of its own.
        if state.id_context.is_none() {
            used = used.max(state.sequence);
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::symlink;

    use lowmesh_oscore::PartialIv;
    use lowmesh_wire::coap::Code;

    use super::*;

    /// A folder that goes with the test, with a key file in it.
    struct Folder(PathBuf);
    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("lowmesh-contexts-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a place for files");
            Self(folder)
        }
        fn keys(&self, recipients: &[&str]) -> PathBuf {
            let text = "master_secret,ascii,0123456789abcdef\nsender_id,ascii,s\n\
                            ssn_freq,integer,3\n"
                .to_owned();
            let recipients = recipients.iter().map(|one| format!("recipient_id,ascii,{one}\n"));
            let text = text + &recipients.collect::<Vec<_>>().concat();
            let keys = self.0.join("keys");
            fs::write(&keys, text).expect("a disk");
            keys
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _left_behind = fs::remove_dir_all(&self.0);
        }
    }

    fn number(contexts: &Contexts, context: usize) -> PartialIv {
        let get = StreamMessage::new(Code::GET);
        contexts.protect_request(context, &get).expect("plain").1.partial_iv()
    }

    #[test]
    fn recipients_of_one_file_share_the_numbers_of_their_sender_key() {
        let folder = Folder::new("shared");
        let mut used = BTreeSet::new();
        // The recipient that goes away has used the highest numbers.
        for recipients in [&["a", "b"][..], &["a", "b"], &["a"], &["c", "a"]] {
            let contexts = Contexts::open(&folder.keys(recipients)).expect("our own");
            for round in 0..10 {
                let piv = number(&contexts, (round + 1) % recipients.len());
                assert!(used.insert(piv), "{piv:?} twice under one Sender Key");
            }
        }
    }

    #[test]
    fn all_paths_to_one_key_file_lead_to_one_state_and_one_lock() {
        let folder = Folder::new("paths");
        let keys = folder.keys(&["a"]);
        let (link, elsewhere) = (folder.0.join("link"), Folder::new("elsewhere"));
        let far = elsewhere.0.join("far");
        symlink(&keys, &link).expect("a disk");
        symlink(&link, &far).expect("a disk");
        let roundabout =
            folder.0.join("..").join(folder.0.file_name().expect("named")).join("keys");
        let mut used = BTreeSet::new();
        for path in [&keys, &link, &far, &roundabout] {
            let contexts = Contexts::open(path).expect("free");
            for other in [&keys, &link, &far, &roundabout] {
                let second = Contexts::open(other).expect_err("in use").to_string();
                assert!(second.contains("in use"), "{second}");
            }
            assert!(used.insert(number(&contexts, 0)), "{} has a state of its own", path.display());
        }
        assert_eq!(fs::read_dir(&elsewhere.0).expect("a folder").count(), 1, "the link alone");
    }

    #[test]
    fn a_key_file_with_two_hard_links_is_refused() {
        let folder = Folder::new("hard");
        let keys = folder.keys(&["a"]);
        fs::hard_link(&keys, folder.0.join("other")).expect("a disk");
        let error = Contexts::open(&keys).expect_err("two names").to_string();
        assert!(error.contains("2 hard links"), "{error}");
    }

    #[test]
    fn one_context_that_cannot_be_stored_keeps_no_other_from_its_orderly_end() {
        let folder = Folder::new("close");
        let keys = folder.keys(&["a", "b"]);
        let contexts = Contexts::open(&keys).expect("our own");
        fs::create_dir(folder.0.join("keys.73-61.state.new")).expect("a disk");
        assert!(contexts.close().is_err(), "the state of a cannot be written");
        let stored = |state: &str| {
            let text = fs::read_to_string(folder.0.join(state)).expect("a state");
            text.parse::<State>().expect("our own")
        };
        assert!(stored("keys.73-62.state").window.is_some(), "that of b is");
        assert!(stored("keys.73-61.state").window.is_none());
    }
}
