//! Block-wise transfer: bodies larger than a message (RFC 7959), with the long blocks of reliable
//! transports (BERT, RFC 8323 s6) and the Request-Tag of RFC 9175.
//!
//! A client drives one [`Transfer`] per request: it says which request to send next and puts the
//! responses together. A server keeps [`Assemblies`] of request bodies that are on their way and
//! [`Representations`] whose later blocks will be asked for; both are bounded in number and octets.
//!
//! Left to others: sending, retransmitting and matching, and telling peers apart.

mod assembly;
mod block;
mod key;
mod representation;
mod transfer;

pub use assembly::{Arrival, Assembled, Assemblies};
pub use block::{Block, Exponent};
pub use key::{BodyKey, RequestKey};
pub use representation::{Repeatable, Representations};
pub(crate) use transfer::protected_surplus;
pub use transfer::{Limits, Progress, Transfer, TransferError};
