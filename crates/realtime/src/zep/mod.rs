//! A node over ZEP: IEEE 802.15.4 frames in UDP, to a dispatcher that is the air between native builds of RIOT and
//! others, or to one other node.
//!
//! | file | holds |
//! |---|---|
//! | `frame` | the datagrams |
//! | `host` | one node, its socket and its clock |
//! | `reader` | the thread at the socket |
//! | `event` | what happens to the node |
//! | `counters` | how often |
//! | `settings` | what a node in real time has other than a simulated one |

mod counters;
mod event;
pub mod frame;
mod host;
mod reader;
mod settings;

pub use counters::{Counters, Fragments, Frames, Packets};
pub use event::{Event, Loss};
pub use frame::{Content, DATAGRAM_OCTETS_MAX, Datagram, PORT};
pub use host::{Host, Remote, Settings, Step};
pub use settings::RealTime;
