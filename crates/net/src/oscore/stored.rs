//! A security context and the file that it outlives a restart in (RFC 8613 appendix B.1).
//!
//! Nothing that was protected comes out of here before what has to be stored is on the disk, so a crash at any time
//! lets no nonce be used twice.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lowmesh_oscore::{
    Challenge, Pending, ProtectError, Received, Refusal, ResponseError, SecurityContext, State,
    StateError,
};
use lowmesh_wire::coap::stream::StreamMessage;

use crate::clock::fresh_seed;

/// A security context whose changing part is in a file.
#[derive(Debug)]
pub struct StoredContext {
    context: SecurityContext,
    path: PathBuf,
    /// Held as long as the context is in use: two processes with one context would use its nonces
    /// twice.
    _lock: File,
}

/// A file that does not serve.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("{} is in use by another process; a security context serves one at a time", .0.display())]
    InUse(PathBuf),
    /// It cannot be read or written.
    #[error("cannot keep the state of OSCORE in {}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is damaged.
    #[error("{}: {error}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where.
        error: StateError,
    },
    /// The contexts have been closed, or there is none of this number.
    #[error("there is no such security context any more")]
    Closed,
    /// The message cannot be protected.
    #[error(transparent)]
    Protect(#[from] ProtectError),
}

/// What becomes of a replay window that was lost in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// The first request is challenged with an Echo option (RFC 8613 appendix B.1.2).
    Challenge,
    /// An empty window: replays of what came before the crash are taken.
    Trust,
}

impl StoredContext {
    /// Goes on with what is stored at `path`; without a file the context must never have been used.
    pub fn open(
        context: SecurityContext,
        path: &Path,
        after_loss: AfterLoss,
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::File { path: path.to_owned(), error };
        let lock = File::create(beside(path, "lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut stored = Self { context, path: path.to_owned(), _lock: lock };
        match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(text) => {
                let damaged = |error| StoreError::Damaged { path: path.to_owned(), error };
                let mut state: State = text.parse().map_err(damaged)?;
                if after_loss == AfterLoss::Trust {
                    state.window = state.window.or(Some((0, 0)));
                }
                stored.context.resume(&state, Challenge(fresh_seed().0.to_be_bytes()));
            }
        }
        // From now on the file says that the context is in use, so a crash loses the window.
        stored.save(&State::reserved(stored.context.state().sequence))?;
        Ok(stored)
    }
    /// The context, to look at.
    pub const fn context(&self) -> &SecurityContext {
        &self.context
    }
    /// See [`SecurityContext::protect_request`].
    pub fn protect_request(
        &mut self,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), StoreError> {
        let protected = self.context.protect_request(request)?;
        self.reserve()?;
        Ok(protected)
    }
    /// See [`SecurityContext::unprotect_response`].
    pub fn unprotect_response(
        &self,
        pending: &mut Pending,
        outer: &StreamMessage,
    ) -> Result<StreamMessage, ResponseError> {
        self.context.unprotect_response(pending, outer)
    }
    /// See [`SecurityContext::unprotect_request`]. A refusal may be answered only after this has
    /// returned.
    pub fn unprotect_request(
        &mut self,
        outer: &StreamMessage,
    ) -> Result<Result<(StreamMessage, Received), Refusal>, StoreError> {
        let opened = self.context.unprotect_request(outer);
        // A challenge uses a number too.
        self.reserve()?;
        Ok(opened)
    }
    /// See [`SecurityContext::protect_response`].
    pub fn protect_response(
        &mut self,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, StoreError> {
        let protected = self.context.protect_response(received, response)?;
        self.reserve()?;
        Ok(protected)
    }
    /// Stores the window too: nothing is lost.
    pub fn close(self) -> Result<(), StoreError> {
        self.save(&self.context.state())
    }

    fn reserve(&mut self) -> Result<(), StoreError> {
        match self.context.take_reservation() {
            Some(sequence) => self.save(&State::reserved(sequence)),
            None => Ok(()),
        }
    }
    /// The old state stays whole until the new one is.
    fn save(&self, state: &State) -> Result<(), StoreError> {
        let new = beside(&self.path, "new");
        let write = || {
            let mut file = File::create(&new)?;
            write!(file, "{state}")?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error| StoreError::File { path: self.path.clone(), error })
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
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
}
