//! Pre-shared keys and the identities that name them (RFC 4279).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use dimpl::PskResolver;
use zeroize::Zeroizing;

use crate::params::{IDENTITY_LEN_MAX, KEY_LEN_MAX};

/// Pre-shared keys by identity; wiped when dropped, and never printed.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<Vec<u8>, Zeroizing<Vec<u8>>>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} identities)", self.0.len())
    }
}

/// Keys that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Longer than others take.
    #[error("an identity has at most {IDENTITY_LEN_MAX} octets")]
    Identity,
    /// Empty, or longer than others take.
    #[error("a pre-shared key has 1 to {KEY_LEN_MAX} octets")]
    Key,
}

impl Keys {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }
    /// True without a key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The same with one more key.
    pub fn with(mut self, identity: &[u8], key: &[u8]) -> Result<Self, KeyError> {
        if identity.len() > IDENTITY_LEN_MAX {
            return Err(KeyError::Identity);
        }
        if key.is_empty() || key.len() > KEY_LEN_MAX {
            return Err(KeyError::Key);
        }
        self.0.insert(identity.to_vec(), Zeroizing::new(key.to_vec()));
        Ok(self)
    }
}

/// Keys, and the identity that was looked up last: the client that shakes hands now.
#[derive(Default)]
pub(super) struct Clients {
    keys: Keys,
    latest: Mutex<Option<Vec<u8>>>,
}

impl Clients {
    pub(super) fn new(keys: Keys) -> Self {
        Self { keys, latest: Mutex::default() }
    }
    /// The identity that was looked up since the last call.
    pub(super) fn take_latest(&self) -> Option<Vec<u8>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PskResolver for Clients {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(identity[..identity.len().min(IDENTITY_LEN_MAX)].to_vec());
        self.keys.resolve(identity)
    }
}

impl PskResolver for Keys {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        self.0.get(identity).map(|key| key.to_vec())
    }
}
