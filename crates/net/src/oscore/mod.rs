//! OSCORE under a host: security contexts in files, and requests and responses that are protected with them (RFC
//! 8613).
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
mod protected;
mod store;
mod stored;

pub use contexts::{Contexts, OpenError, Opened};
pub use protected::{Plain, Protected, Protection, over_connections, over_datagrams};
pub use store::{FileStore, Store, StoreError};
pub use stored::{AfterLoss, Answer, StoredContext};
