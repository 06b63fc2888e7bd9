//! Messages as they come and go, for a log, a capture or a test.

use std::fmt;
use std::sync::Arc;

use lowmesh_wire::coap::stream::Framing;

use crate::peer::Peer;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

/// One message, without the protection of DTLS or TLS, and with that of OSCORE.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'b> {
    /// Whether it comes or leaves.
    pub direction: Direction,
    /// The peer.
    pub peer: Peer,
    /// How it lies on a connection; `None` for a datagram (RFC 7252 s3).
    pub framing: Option<Framing>,
    /// Its octets.
    pub bytes: &'b [u8],
}

type See = dyn Fn(Traffic<'_>) + Send + Sync;

/// A function that sees messages. A clone is the same tap.
#[derive(Clone)]
pub struct Tap(Arc<See>);

impl Tap {
    /// Calls `see` with each message, before it is sent and before it is processed.
    pub fn new(see: impl Fn(Traffic<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// Shows a message to a tap, if there is one.
pub(crate) fn show(
    tap: Option<&Tap>,
    direction: Direction,
    peer: Peer,
    framing: Option<Framing>,
    bytes: &[u8],
) {
    if let Some(Tap(see)) = tap {
        see(Traffic { direction, peer, framing, bytes });
    }
}
