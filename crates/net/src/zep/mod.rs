//! A node over ZEP: IEEE 802.15.4 frames in UDP, to a dispatcher that is the air between native builds of RIOT and
//! others, or to one other node.
//!
//! | file | holds |
//! |---|---|
//! | `frame` | the datagrams |
//! | `host` | one node, its socket and its clock |

pub mod frame;
mod host;

use lowmesh_mac::csma;
use lowmesh_units::{Duration, PanId};

pub use frame::{Content, DATAGRAM_OCTETS_MAX, Datagram, PORT};
pub use host::{Host, Remote, Settings};

/// How long an acknowledgement is waited for: ours. The air takes 864 us; between two processes stand two schedulers.
pub const ACK_WAIT: Duration = Duration::from_millis(20);

/// The MAC of a node on a socket: CSMA with the standard's numbers, but more patience.
pub fn csma(pan: PanId) -> csma::Config {
    csma::Config { pan, ack_wait: ACK_WAIT, ..csma::Config::default() }
}
