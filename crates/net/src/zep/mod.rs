//! A node over ZEP: IEEE 802.15.4 frames in UDP, to a dispatcher that is the air between native builds of RIOT and
//! others, or to one other node.
//!
//! | file | holds |
//! |---|---|
//! | `frame` | the datagrams |
//! | `host` | one node, its socket and its clock |
//! | `settings` | what a node in real time has other than a simulated one |

pub mod frame;
mod host;
mod settings;

pub use frame::{Content, DATAGRAM_OCTETS_MAX, Datagram, PORT};
pub use host::{Host, Remote, Settings};
pub use settings::RealTime;
