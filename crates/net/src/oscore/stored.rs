//! A security context and the store that it outlives a restart in (RFC 8613 appendix B.1).
//!
//! No message comes out of here whose sequence number is not stored as used, so a crash at any time lets no nonce be
//! used twice. While the store fails nothing that needs a number comes out; each attempt tries to store again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lowmesh_oscore::transport::Answer;
use lowmesh_oscore::{
    Challenge, Header, Pending, ProtectError, Received, Refusal, Renewal, RenewalNonce,
    ResponseError, SecurityContext, State, StoredWindow,
};
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::stream::StreamMessage;
use zeroize::Zeroizing;

use super::store::{FileStore, Store, StoreError};
use crate::clock::fresh_octets;

/// A security context whose state is in a [`Store`].
#[derive(Debug)]
pub struct StoredContext {
    context: SecurityContext,
    store: Box<dyn Store>,
    /// The end of all sequence numbers that are reserved under the Sender Key, by this context and others.
    reserved: Arc<AtomicU64>,
    renewal: Option<Renewing>,
}

/// What a context needs that may be derived again (RFC 8613 appendix B.2).
#[derive(Debug)]
struct Renewing {
    renewal: Renewal,
    /// The context of requests #1, while there is another.
    first: Option<SecurityContext>,
    /// The context has been stored. Else it is the first context of a client, and in memory only.
    stored: bool,
}

/// What happens after a replay window was lost in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// The first request is challenged with an Echo option (RFC 8613 appendix B.1.2).
    Challenge,
    /// An empty window: replays of what came before the crash are taken, and each response has a Partial IV of its
    /// own from then on, since the nonce of a request may be used already.
    Trust,
}

impl StoredContext {
    /// Continues with the state in the file `path`; without a file the context must never have been used.
    pub fn open(
        context: SecurityContext,
        path: &Path,
        after_loss: AfterLoss,
    ) -> Result<Self, StoreError> {
        Self::resume(context, Box::new(FileStore::open(path)?), after_loss)
    }
    /// Continues with the stored state; if the store is empty, the context must never have been used.
    pub fn resume(
        context: SecurityContext,
        store: Box<dyn Store>,
        after_loss: AfterLoss,
    ) -> Result<Self, StoreError> {
        let reserved = Arc::new(AtomicU64::new(0));
        let mut stored = Self { context, store, reserved, renewal: None };
        if let Some(mut state) = stored.load()? {
            if state.id_context.is_some() {
                return Err(StoreError::Renewed(stored.store.place().to_owned()));
            }
            if after_loss == AfterLoss::Trust {
                state.window = state.window.or(Some(StoredWindow::TRUSTED));
            }
            stored.context.resume(&state, Challenge(random()?));
        }
        stored.start()?;
        Ok(stored)
    }
    /// Goes on with what is stored of a context that is derived many times; without it both roles begin with a new
    /// context (RFC 8613 appendix B.2).
    ///
    /// A window that was lost is challenged, or is a lost context where `after_loss` says no challenge.
    pub fn renewable(
        renewal: Renewal,
        store: Box<dyn Store>,
        after_loss: AfterLoss,
    ) -> Result<Self, StoreError> {
        let context = renewal.first(RenewalNonce(random()?));
        let renewing = Renewing { renewal, first: None, stored: false };
        let reserved = Arc::new(AtomicU64::new(0));
        let mut stored = Self { context, store, reserved, renewal: Some(renewing) };
        let challenge = Challenge(random()?);
        if let Some(state) = stored.load()?
            && (state.window.is_some() || after_loss == AfterLoss::Challenge)
            && let Some(id_context) = &state.id_context
            && let Some(renewing) = &mut stored.renewal
        {
            stored.context = renewing.renewal.context(id_context);
            stored.context.resume(&state, challenge);
            renewing.stored = true;
            stored.start()?;
        }
        Ok(stored)
    }
    /// The context, for reading.
    pub const fn context(&self) -> &SecurityContext {
        &self.context
    }
    /// See [`SecurityContext::protect_request`].
    pub fn protect_request(
        &mut self,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), StoreError> {
        // RFC 8613 s7.2.1: SHOULD acquire a new security context when the numbers are used up.
        if self.context.is_exhausted() && self.renewal.as_ref().is_some_and(|one| one.stored) {
            return self.protect_first_request(request);
        }
        self.reserve()?;
        Ok(self.context.protect_request(request)?)
    }
    /// Protects a request with a first context, for a server that does not know the context there is (RFC 8613 appendix
    /// B.2 step 1). That one stays until the server has answered. If contexts are derived once, it is the one there is.
    pub fn protect_first_request(
        &mut self,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), StoreError> {
        let Some(renewing) = self.renewal.as_mut().filter(|renewing| renewing.stored) else {
            return self.protect_request(request);
        };
        let first = match &mut renewing.first {
            Some(first) => first,
            None => renewing.first.insert(renewing.renewal.first(RenewalNonce(random()?))),
        };
        Ok(first.protect_request(request)?)
    }
    /// Whether the context can be replaced by a new one (RFC 8613 appendix B.2).
    pub const fn derives_many_times(&self) -> bool {
        self.renewal.is_some()
    }
    /// See [`SecurityContext::unprotect_response`]; with response #1 of a server that has lost its context there is a
    /// new one.
    pub fn unprotect_response(
        &mut self,
        pending: &mut Pending,
        outer: &StreamMessage,
    ) -> Result<Result<Answer, ResponseError>, StoreError> {
        let result = self.context.unprotect_response(pending, outer).map(Answer::Response);
        let (Err(ResponseError::Forged), Some(renewing)) = (&result, &self.renewal) else {
            return Ok(result);
        };
        // RFC 8613 appendix B.2 step 3. A request of before another response #1 has the new context already.
        let of_first = renewing.first.as_ref().is_some_and(|first| pending.is_of(first));
        if !of_first && !pending.is_of(&self.context) {
            let verified = renewing.renewal.verify_first_response(pending, outer);
            return Ok(verified.map(|_| Answer::Again));
        }
        match renewing.renewal.third(pending, outer, || random().map(RenewalNonce))? {
            Ok(third) => {
                self.replace(third)?;
                Ok(Ok(Answer::Again))
            }
            Err(error) => Ok(Err(error)),
        }
    }
    /// See [`SecurityContext::unprotect_request`]. A request #2 replaces the context.
    pub fn unprotect_request(
        &mut self,
        outer: &StreamMessage,
    ) -> Result<Result<(StreamMessage, Received), Refusal>, StoreError> {
        if self.is_in_memory_only() && !names_context(outer) {
            return Ok(Err(Refusal::UnknownContext));
        }
        let opened = self.open_request(outer)?;
        let (Err(Refusal::UnknownContext), Some(renewing)) = (&opened, &mut self.renewal) else {
            return Ok(opened);
        };
        match renewing.renewal.unprotect_request(outer, || random().map(RenewalNonce))? {
            Ok(renewed) => {
                let key = Zeroizing::new(random()?);
                // RFC 8613 appendix B.2 step 4: stored first, or the request is as if it had not come.
                self.replace(renewed.context)?;
                if let Some(renewing) = &mut self.renewal {
                    renewing.renewal.complete(key);
                }
                Ok(Ok((renewed.request, renewed.received)))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }
    fn open_request(
        &mut self,
        outer: &StreamMessage,
    ) -> Result<Result<(StreamMessage, Received), Refusal>, StoreError> {
        match self.context.unprotect_request(outer) {
            // A challenge needs a number too. Nothing is taken note of yet.
            Err(Refusal::Unreserved) => {
                self.reserve()?;
                Ok(self.context.unprotect_request(outer))
            }
            other => Ok(other),
        }
    }
    /// See [`SecurityContext::protect_response`].
    pub fn protect_response(
        &mut self,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, StoreError> {
        match self.context.protect_response(received, response) {
            Err(ProtectError::Unreserved) => {
                self.reserve()?;
                Ok(self.context.protect_response(received, response)?)
            }
            other => Ok(other?),
        }
    }
    /// Stores the replay window too, so that nothing is lost.
    pub fn close(mut self) -> Result<(), StoreError> {
        if self.is_in_memory_only() {
            return Ok(());
        }
        let state = State { id_context: self.stored_id(), ..self.context.state() };
        self.save(&state)
    }

    /// Lets the two count with one sequence if they have one Sender Key (RFC 8613 s7.2); true if they do.
    pub(super) fn share_numbers(&mut self, other: &Self) -> bool {
        let shares = self.context.shares_sender_key(&other.context);
        if shares {
            other.skip_numbers(self.reserved.load(Ordering::Relaxed));
            self.reserved = Arc::clone(&other.reserved);
        }
        shares
    }
    /// Takes no number below one that may be used already.
    pub(super) fn skip_numbers(&self, used: u64) {
        self.reserved.fetch_max(used, Ordering::Relaxed);
    }

    /// Says in the store that the context is in use, so that a crash loses the window.
    fn start(&mut self) -> Result<(), StoreError> {
        let sequence = self.context.reserved();
        self.reserved.store(sequence, Ordering::Relaxed);
        self.save(&State { id_context: self.stored_id(), ..State::reserved(sequence) })
    }
    /// Takes a new context, of which nothing has left, once it is stored.
    fn replace(&mut self, context: SecurityContext) -> Result<(), StoreError> {
        let id_context = context.id_context().map(<[u8]>::to_vec);
        self.save(&State { id_context, ..State::reserved(0) })?;
        self.context = context;
        self.reserved = Arc::new(AtomicU64::new(0));
        if let Some(renewing) = &mut self.renewal {
            // RFC 8613 appendix B.2 step 5: the first and second contexts are deleted.
            renewing.first = None;
            renewing.stored = true;
        }
        Ok(())
    }
    fn is_in_memory_only(&self) -> bool {
        self.renewal.as_ref().is_some_and(|renewing| !renewing.stored)
    }
    /// The ID Context that the store has to say, since the file does not.
    fn stored_id(&self) -> Option<Vec<u8>> {
        self.renewal.as_ref()?;
        self.context.id_context().map(<[u8]>::to_vec)
    }
    /// Makes sure that there is a number which is stored as used.
    fn reserve(&mut self) -> Result<(), StoreError> {
        let Some(needed) = self.context.reservation_needed() else { return Ok(()) };
        let reservation = needed.not_before(self.reserved.load(Ordering::Relaxed));
        // RFC 8613 appendix B.1.1: stored before it is used. What an error leaves unconfirmed is asked for again.
        self.save(&State { id_context: self.stored_id(), ..State::reserved(reservation.end()) })?;
        self.reserved.store(reservation.end(), Ordering::Relaxed);
        self.context.confirm(reservation);
        Ok(())
    }
    fn load(&self) -> Result<Option<State>, StoreError> {
        let path = || self.store.place().to_owned();
        let text = self.store.load().map_err(|error| StoreError::File { path: path(), error })?;
        let state = text.map(|text| text.parse()).transpose();
        state.map_err(|error| StoreError::Damaged { path: path(), error })
    }
    fn save(&mut self, state: &State) -> Result<(), StoreError> {
        let saved = self.store.save(&state.to_string());
        saved.map_err(|error| StoreError::File { path: self.store.place().to_owned(), error })
    }
}

/// True if a request says a kid context.
fn names_context(outer: &StreamMessage) -> bool {
    let value = outer.options.get(OptionNumber::OSCORE);
    let header = value.and_then(|value| Header::parse(value).ok());
    header.is_some_and(|header| header.kid_context.is_some())
}

fn random<const LEN: usize>() -> Result<[u8; LEN], StoreError> {
    fresh_octets().map_err(StoreError::Random)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use lowmesh_oscore::Configuration;
    use lowmesh_wire::coap::{Code, OptionNumber};

    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);
    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("lowmesh-oscore-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a place for files");
            Self(folder)
        }
        fn open(&self, role: &str) -> Result<StoredContext, StoreError> {
            let (ours, theirs) = if role == "client" { ("c", "s") } else { ("s", "c") };
            let text = format!(
                "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{ours}\n\
                 recipient_id,ascii,{theirs}\nssn_freq,integer,4"
            );
            let context = Configuration::parse(&text).expect("our own").contexts().remove(0);
            StoredContext::open(context, &self.0.join(role), AfterLoss::Challenge)
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _left_behind = fs::remove_dir_all(&self.0);
        }
    }

    fn get() -> StreamMessage {
        let mut get = StreamMessage::new(Code::GET);
        get.options.insert_path("/a");
        get
    }

    #[test]
    fn after_a_crash_no_sequence_number_comes_again() {
        let folder = Folder::new("crash");
        let mut last = None;
        for _ in 0..3 {
            let mut client = folder.open("client").expect("free");
            for _ in 0..6 {
                let (_, pending) = client.protect_request(&get()).expect("plain");
                assert!(Some(pending.partial_iv()) > last);
                last = Some(pending.partial_iv());
            }
        }
    }

    #[test]
    fn after_a_crash_a_server_challenges_and_after_an_orderly_end_it_does_not() {
        let folder = Folder::new("window");
        let mut client = folder.open("client").expect("free");
        let mut ask = |server: &mut StoredContext| {
            let (outer, _) = client.protect_request(&get()).expect("plain");
            server.unprotect_request(&outer).expect("a disk")
        };
        let mut server = folder.open("server").expect("free");
        assert!(ask(&mut server).is_ok());
        server.close().expect("a disk");
        let mut server = folder.open("server").expect("free");
        assert!(ask(&mut server).is_ok());
        drop(server);
        let mut server = folder.open("server").expect("free");
        let Err(Refusal::Challenged(answer)) = ask(&mut server) else { panic!("not challenged") };
        assert!(answer.options.get(OptionNumber::OSCORE).is_some());
    }

    #[test]
    fn a_context_in_use_and_a_damaged_file_are_refused() {
        let folder = Folder::new("refused");
        let first = folder.open("client").expect("free");
        assert!(matches!(folder.open("client"), Err(StoreError::InUse(_))));
        drop(first);
        fs::write(folder.0.join("client"), "sender_sequence,integer,x").expect("a disk");
        let error = folder.open("client").expect_err("damaged").to_string();
        assert!(error.contains("client") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn after_a_failed_write_nothing_leaves_until_one_succeeds() {
        let folder = Folder::new("full");
        let mut client = folder.open("client").expect("free");
        let mut sent = Vec::new();
        let blocked = folder.0.join("client.new");
        fs::create_dir(&blocked).expect("a disk");
        for _ in 0..8 {
            if let Ok((_, pending)) = client.protect_request(&get()) {
                sent.push(pending.partial_iv());
            }
        }
        assert_eq!(sent, [], "no number is stored");
        fs::remove_dir(&blocked).expect("a disk");
        for _ in 0..6 {
            sent.push(client.protect_request(&get()).expect("it works again").1.partial_iv());
        }
        drop(client);
        let mut client = folder.open("client").expect("free");
        let (_, pending) = client.protect_request(&get()).expect("plain");
        assert!(!sent.contains(&pending.partial_iv()));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_place_of_the_new_file_and_of_the_lock_change_nothing_that_they_lead_to() {
        let folder = Folder::new("links");
        let other = folder.0.join("other");
        fs::write(&other, "its own").expect("a disk");
        for name in ["client.new", "client.lock"] {
            std::os::unix::fs::symlink(&other, folder.0.join(name)).expect("a disk");
        }
        let mut client = folder.open("client").expect("free");
        client.protect_request(&get()).expect("it is stored");
        assert_eq!(fs::read_to_string(&other).expect("a disk"), "its own");
        assert!(folder.0.join("client").symlink_metadata().expect("a disk").is_file());
        // A lock that leads to nothing makes no file there.
        drop(client);
        fs::remove_file(folder.0.join("client.lock")).expect("a disk");
        let nowhere = folder.0.join("nowhere");
        std::os::unix::fs::symlink(&nowhere, folder.0.join("client.lock")).expect("a disk");
        assert!(folder.open("client").is_err());
        assert!(!nowhere.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_process_whose_lock_was_removed_reserves_no_more_numbers() {
        let folder = Folder::new("removed");
        let mut first = folder.open("client").expect("free");
        first.protect_request(&get()).expect("it is stored");
        fs::remove_file(folder.0.join("client.lock")).expect("a disk");
        let mut second = folder.open("client").expect("no lock keeps it out");
        let (_, pending) = second.protect_request(&get()).expect("it is stored");
        // What the first has reserved before is still its own; it gets no more.
        let error = loop {
            match first.protect_request(&get()) {
                Ok((_, own)) => assert_ne!(own.partial_iv(), pending.partial_iv()),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("client.lock was removed"), "{error}");
    }
}
