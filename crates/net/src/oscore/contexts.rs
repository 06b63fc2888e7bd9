//! The security contexts of a program: read from one file, kept in others, shared by its transports.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_oscore::{
    Configuration, ConfigurationError, Identity, Pending, Received, Refusal, ResponseError,
};
use lowmesh_wire::coap::stream::StreamMessage;

use super::stored::{AfterLoss, StoreError, StoredContext};
use crate::params::LOSSES_MAX;

/// Contexts whose changing parts are in files. A clone is another hand on the same ones: two transports with one
/// context must count with one sequence number.
#[derive(Clone, Debug)]
pub struct Contexts(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    all: Vec<StoredContext>,
    /// What was refused, for people.
    refusals: VecDeque<String>,
}

/// A request, and whose it was.
#[derive(Debug)]
pub struct Opened {
    /// The request as its client made it.
    pub request: StreamMessage,
    /// What its responses need.
    pub received: Received,
    /// The number of the context.
    pub context: usize,
}

/// A file of contexts that does not serve.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not of the form.
    #[error("{}: {error}", path.display())]
    Configuration {
        /// Which.
        path: PathBuf,
        /// Where, and what is wrong.
        error: ConfigurationError,
    },
    /// What changes of a context cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Contexts {
    /// Those of a file in the syntax of libcoap (coap-oscore-conf(5)); one for each recipient in it.
    ///
    /// What changes of each is kept beside it: of `keys.conf` with the sender `01` and the recipient `02` in
    /// `keys.conf.01-02.state`.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let text = fs::read_to_string(path)
            .map_err(|error| OpenError::Read { path: path.to_owned(), error })?;
        let configuration = Configuration::parse(&text)
            .map_err(|error| OpenError::Configuration { path: path.to_owned(), error })?;
        let after_loss =
            if configuration.echo_after_loss() { AfterLoss::Challenge } else { AfterLoss::Trust };
        let stored = configuration.contexts().into_iter().map(|context| {
            let state = state_of(path, context.sender_id(), context.recipient_id());
            StoredContext::open(context, &state, after_loss)
        });
        Ok(Self::new(stored.collect::<Result<_, _>>()?))
    }
    /// These, numbered from 0.
    pub fn new(all: Vec<StoredContext>) -> Self {
        Self(Arc::new(Mutex::new(Inner { all, refusals: VecDeque::new() })))
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }
    /// True without contexts, as after [`Contexts::close`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Why a message was refused, oldest first; when nobody asks the oldest are forgotten.
    pub fn take_refusal(&self) -> Option<String> {
        self.lock().refusals.pop_front()
    }
    /// The orderly end: stores the windows too, so that nothing is challenged after the next start. Nothing is
    /// protected or opened afterwards, through no clone.
    pub fn close(&self) -> Result<(), StoreError> {
        let all = std::mem::take(&mut self.lock().all);
        all.into_iter().try_for_each(StoredContext::close)
    }

    /// See [`StoredContext::protect_request`].
    pub(super) fn protect_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), StoreError> {
        self.lock().context(context)?.protect_request(request)
    }
    /// See [`StoredContext::unprotect_response`]. With an older request of the same observation: a notification that was
    /// under way while it was registered again belongs to that.
    pub(super) fn unprotect_response(
        &self,
        context: usize,
        requests: &mut [Pending],
        outer: &StreamMessage,
    ) -> Result<StreamMessage, ResponseError> {
        let mut inner = self.lock();
        let Ok(context) = inner.context(context) else { return Err(ResponseError::Forged) };
        let mut result = Err(ResponseError::Forged);
        for pending in requests {
            result = context.unprotect_response(pending, outer);
            if result != Err(ResponseError::Forged) {
                break;
            }
        }
        match &result {
            // Nobody vouches for what it says, but people may want to know.
            Err(error @ ResponseError::Unprotected) => {
                let code = outer.code;
                inner.note(format!("{error}: {code} {}", outer.payload.escape_ascii()));
            }
            Err(error) => inner.note(error.to_string()),
            Ok(_) => {}
        }
        result
    }
    /// Opens a request with the context that it names. Where several have the same kid and the request says no kid
    /// context, each is tried (RFC 8613 s12.2).
    pub(super) fn unprotect_request(
        &self,
        outer: &StreamMessage,
    ) -> Result<Result<Opened, Refusal>, StoreError> {
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
    pub(super) fn protect_response(
        &self,
        context: usize,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, StoreError> {
        self.lock().context(context)?.protect_response(received, response)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No method leaves a context half changed when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn context(&mut self, number: usize) -> Result<&mut StoredContext, StoreError> {
        self.all.get_mut(number).ok_or(StoreError::Closed)
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
    let hex = |identity: Identity| {
        let digits = identity.as_bytes().iter().map(|octet| format!("{octet:02x}"));
        digits.collect::<String>()
    };
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.state", hex(sender), hex(recipient)));
    name.into()
}
