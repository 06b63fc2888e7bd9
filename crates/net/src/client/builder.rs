//! How a client comes about.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::{Config, CongestionControl, ConnectionLimits, HostLimits, Output};
use zeroize::Zeroizing;

use super::error::Error;
use super::pool::ConnectionPool;
use super::settings::{Key, Settings, Watcher};
use super::{Client, Inner};
use crate::multicast::Interface;
use crate::oscore::{Contexts, ToOne};
use crate::peer::Peer;
use crate::tap::Tap;
use crate::tls::TlsClient;

/// The settings of a client. Everything has a default that suits a public server.
#[derive(Clone, Debug, Default)]
pub struct Builder(Settings);

impl Builder {
    /// Timer and window of every destination over UDP and DTLS: `CongestionControl::new("cocoa")?`, for one. The default
    /// is that of RFC 7252.
    pub fn congestion(mut self, congestion: CongestionControl) -> Self {
        self.0.congestion = Some(congestion);
        self
    }
    /// The pre-shared key for `coaps`, and its identity.
    pub fn key(mut self, identity: &[u8], key: &[u8]) -> Self {
        self.0.key = Some(Key { identity: identity.to_vec(), key: Zeroizing::new(key.to_vec()) });
        self
    }
    /// The authorities to trust with `coaps+tcp` and `coaps+ws`.
    pub fn trust(mut self, authorities: TlsClient) -> Self {
        self.0.trust = Some(authorities);
        self
    }
    /// Protects every request with the first of these OSCORE contexts (RFC 8613). [`Client::close`] keeps what lets the
    /// next client go on.
    pub fn protect(mut self, contexts: Contexts) -> Self {
        self.0.contexts = Some(contexts);
        self
    }
    /// Protects every request with a group of these contexts (RFC 10021): those to groups in group mode, and those to one
    /// server as `to_one` says. [`ToOne::Answered`] is the only other member, if the group has no more.
    pub fn protect_with_group(mut self, contexts: Contexts, group: usize, to_one: ToOne) -> Self {
        let to_one = match (to_one, &contexts.members(group)[..]) {
            (ToOne::Answered, [only]) => ToOne::Member(*only),
            (to_one, _) => to_one,
        };
        self.0.contexts = Some(contexts);
        self.0.security_group = Some((group, to_one));
        self
    }
    /// The largest blocks of long bodies (RFC 7959), both ways: a GET, FETCH or POST says the size to the server with its
    /// Block2 option. A server that knows no blocks refuses such a request with 4.02.
    pub fn block(mut self, exponent: Exponent) -> Self {
        self.0.block = Some(exponent);
        self
    }
    /// The client's own address and port over UDP and DTLS; any by default.
    pub fn local(mut self, address: SocketAddr) -> Self {
        self.0.local = Some(address);
        self
    }
    /// The interface by which requests to groups leave whose URI names none, and how many hops they go; unless it is said,
    /// the system chooses the interface, and they stay on the link.
    pub fn groups(mut self, interface: Interface, hops: u8) -> Self {
        self.0.groups = Some((interface, hops));
        self
    }
    /// The time to wait for a response unless a request sets its own: [`params::PATIENCE`](crate::params::PATIENCE).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.0.patience = patience;
        self
    }
    /// All settings of the endpoint for UDP and DTLS. What [`Builder::congestion`] says, before or after, holds against
    /// them.
    pub fn datagrams(mut self, config: Config) -> Self {
        self.0.datagrams = config;
        self
    }
    /// All settings of each connection.
    pub fn connection(mut self, limits: ConnectionLimits) -> Self {
        self.0.connection = limits;
        self
    }
    /// The number of simultaneous connections; a request that needs one more fails.
    pub fn connections_max(mut self, connections_max: usize) -> Self {
        self.0.connections_max = connections_max;
        self
    }
    /// Bounds of bodies, and of the client's cache (RFC 7252 s5.6), which keeps nothing unless it is said. What
    /// [`Builder::block`] says, before or after, holds against them.
    pub fn limits(mut self, limits: HostLimits) -> Self {
        self.0.host = limits;
        self
    }
    /// Sets a function that gets every event of the endpoints, for example for a log.
    pub fn watch(mut self, watch: impl Fn(&Output<Peer>) + Send + Sync + 'static) -> Self {
        self.0.watcher = Some(Watcher(Arc::new(watch)));
        self
    }
    /// Sets a function that gets every message.
    pub fn tap(mut self, tap: Tap) -> Self {
        self.0.tap = Some(tap);
        self
    }
    /// Builds the client. It opens a socket or a connection when it is asked for something there.
    pub fn build(self) -> Result<Client, Error> {
        let settings = self.0.resolved();
        settings.datagrams.check()?;
        if settings.key.is_some() {
            // A key that is not possible shows at once.
            settings.sessions()?;
        }
        let (pool, serial) = (ConnectionPool::default(), 0.into());
        Ok(Client(Arc::new(Inner { settings, pool, serial })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_settings_makes_no_difference() {
        let congestion = || CongestionControl::new("cocoa").expect("a listed name");
        let datagrams = || Config { peers_max: 7, ..Config::default() };
        let block = Exponent::new(2).expect("a size of RFC 7959");
        let limits = || HostLimits { body_max: 9, ..HostLimits::default() };
        let one = Builder::default().congestion(congestion()).datagrams(datagrams());
        let other = Builder::default().datagrams(datagrams()).congestion(congestion());
        let (one, other) = (one.block(block).limits(limits()), other.limits(limits()).block(block));
        for builder in [one, other] {
            let settings = builder.0.resolved();
            assert_eq!(settings.datagrams.congestion, congestion());
            assert_eq!(settings.datagrams.peers_max, 7);
            assert_eq!((settings.host.exponent, settings.host.body_max), (block, 9));
        }
    }
}
