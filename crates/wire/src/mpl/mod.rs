//! The Multicast Protocol for Low-Power and Lossy Networks (MPL, RFC 7731): the option in the hop-by-hop header of data
//! messages (s6.1) and the control message with its seed infos (s6.2, s6.3).
//!
//! Which messages a node holds, and when it sends what, is left to the crate `multicast`.

mod control;
mod option;
mod seed;

pub use control::{BITMAP_OCTETS_MAX, Control, SeedInfo};
pub use option::DataOption;
pub use seed::SeedId;
