//! OSCORE under a host: security contexts and groups in files, and requests and responses that are protected with them (RFC
//! 8613, RFC 10021).
//!
//! ```text
//!   Host          bodies in blocks, observers, Echo
//!     |               each block is protected by itself (s4.1.3.4.1)
//!   Protected     requests and responses sealed and opened
//!     |               with Contexts, which several transports share; each a StoredContext and its Store
//!   Endpoint or Connections
//! ```

mod contexts;
#[cfg(test)]
mod crash;
mod error;
mod group;
mod key_file;
mod store;
mod stored;

use lowmesh_oscore::transport;

use crate::peer::Peer;

pub use contexts::Contexts;
pub use error::OpenError;
pub use lowmesh_oscore::transport::{
    Answer, NO_MEMBER, OwnRequests, Plain, ToOne, over_connections, over_datagrams,
};
pub use lowmesh_oscore::{Identity, Opened};
pub use store::{FileStore, Store, StoreError, folder};
pub use stored::{AfterLoss, StoredContext};

/// A transport whose contexts are stored in files.
pub type Protected<P, T> = transport::Protected<P, T, Contexts>;
/// Protection whose contexts are stored in files.
pub type Protection<P = Peer> = transport::Protection<P, Contexts>;

#[cfg(test)]
mod tests;
