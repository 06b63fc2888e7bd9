//! The addresses of a server. A proxy needs them to recognise requests that would come back to itself.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An address, and whether connections are taken there, or datagrams.
type Address = (SocketAddr, bool);

/// All addresses at which a server listens. A clone knows those that are added later too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listening(Arc<Mutex<Vec<Address>>>);

impl Listening {
    pub(super) fn add(&self, address: SocketAddr, reliable: bool) {
        self.lock().push((address, reliable));
    }
    /// Those of connections, or those of datagrams.
    pub(crate) fn all(&self, reliable: bool) -> Vec<SocketAddr> {
        let all = self.lock();
        all.iter().filter(|(_, one)| *one == reliable).map(|(address, _)| *address).collect()
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Address>> {
        // The list is whole between any two operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
