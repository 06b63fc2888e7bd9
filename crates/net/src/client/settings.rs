//! What a client is told before it asks.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::{Config, CongestionControl, ConnectionLimits, HostLimits, Output};
use zeroize::Zeroizing;

use super::error::Error;
use crate::dtls::Sessions;
use crate::multicast::Interface;
use crate::oscore::{Contexts, OwnRequests, Plain, Protection, ToOne};
use crate::params::{CLIENT_CONNECTIONS_MAX, HANDSHAKE_MAX, PATIENCE};
use crate::peer::Peer;
use crate::tap::Tap;
use crate::tls::TlsClient;

/// An identity and its key.
#[derive(Clone)]
pub(super) struct Key {
    pub identity: Vec<u8>,
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

type Watch = dyn Fn(&Output<Peer>) + Send + Sync;

/// A function that sees all outputs of the endpoints, as for a log.
#[derive(Clone)]
pub(super) struct Watcher(pub Arc<Watch>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// What [`Builder`](super::Builder) collects.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub datagrams: Config,
    /// What holds against that of `datagrams`.
    pub congestion: Option<CongestionControl>,
    pub connection: ConnectionLimits,
    pub host: HostLimits,
    /// What holds against that of `host`.
    pub block: Option<Exponent>,
    pub key: Option<Key>,
    pub trust: Option<TlsClient>,
    pub contexts: Option<Contexts>,
    /// The group of `contexts` that protects requests, and how those to one server are protected.
    pub security_group: Option<(usize, ToOne)>,
    pub local: Option<SocketAddr>,
    /// Where requests to groups leave, and how many hops they go.
    pub groups: Option<(Interface, u8)>,
    pub connections_max: usize,
    /// How long the opening of a connection may take.
    pub opening_max: Duration,
    pub patience: Duration,
    pub watcher: Option<Watcher>,
    pub tap: Option<Tap>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            datagrams: Config::default(),
            congestion: None,
            connection: ConnectionLimits::default(),
            host: HostLimits::default(),
            block: None,
            key: None,
            trust: None,
            contexts: None,
            security_group: None,
            local: None,
            groups: None,
            connections_max: CLIENT_CONNECTIONS_MAX,
            opening_max: HANDSHAKE_MAX,
            patience: PATIENCE,
            watcher: None,
            tap: None,
        }
    }
}

impl Settings {
    /// The same with what was said apart in its place, in whatever order it was said.
    pub fn resolved(mut self) -> Self {
        if let Some(congestion) = self.congestion.take() {
            self.datagrams.congestion = congestion;
        }
        if let Some(block) = self.block.take() {
            self.host.exponent = block;
            self.host.negotiates = true;
        }
        self
    }
    /// DTLS with the key.
    pub fn sessions(&self) -> Result<Sessions, Error> {
        let Key { identity, key } = self.key.as_ref().ok_or(Error::NoKey)?;
        Ok(Sessions::client(identity, key)?)
    }
    /// OSCORE for what is asked.
    pub fn protection(&self) -> Option<Protection> {
        let contexts = self.contexts.clone()?;
        let own_requests = match self.security_group {
            Some((group, to_one)) => OwnRequests::Group(group, to_one),
            None => OwnRequests::Context(0),
        };
        Some(Protection { contexts, own_requests, plain_requests: Plain::Refused })
    }
}
