//! A notification of a server, from the decision to send it to its end (RFC 7641 s4.5).

use lowmesh_units::Instant;
use lowmesh_wire::coap::Token;

use crate::blockwise::BodyKey;
use crate::event::ResponseTemplate;

/// A notification to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification<P> {
    /// The observer.
    pub peer: P,
    /// The token of the request that registered it.
    pub token: Token,
    /// CON or NON.
    pub confirmable: bool,
    /// What the request and those for later blocks of the state have in common, and what protects them.
    pub key: BodyKey,
    /// The Block2 option of the request, which says what size of blocks the client prefers.
    pub block: Option<u32>,
    /// The state, Observe option included.
    pub response: ResponseTemplate,
    /// Octets of credit that were set aside for it, headers included.
    pub reserve: usize,
    /// The observer has acknowledged one before, which proves its address.
    pub acknowledged: bool,
}

/// How a notification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The observer has acknowledged it.
    Delivered,
    /// The observer does not want it, or is not there.
    Gone,
    /// It did not leave for want of room.
    Deferred,
    /// An unproven address did not acknowledge what its credit allowed to be sent.
    Unheard,
}

/// What an observer's address may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The peer has shown that it receives at its address.
    pub proven: bool,
    /// Octets that may leave to it, headers included.
    pub credit: usize,
    /// When there is room for its notification; `None` means now.
    pub room_at: Option<Instant>,
}
