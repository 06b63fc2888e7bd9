//! A node that nobody planned a network for: its name, address and routes are given one by one, as to a host
//! that joins a link of strangers.

use lowmesh_ipv6::params::ROUTES;
use lowmesh_ipv6::{Addresses, RouteTable};
use lowmesh_machine::Rejected;
use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::{Address, Prefix};
use lowmesh_wire::lowpan::Contexts;

/// The addresses of a node, and the routes that it knows.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(crate) addresses: Addresses,
    pub(crate) routes: RouteTable,
    pub(crate) contexts: Contexts,
}

impl Identity {
    /// A node with a link-local address alone, which reaches its neighbours and nobody else.
    pub fn new(node: Eui64) -> Self {
        let link_local = Address::link_local(node);
        let mut addresses = Addresses::new(node, link_local.prefix());
        // RFC 4291 s2.7.1 and RFC 7252 s8: it forwards packets and serves CoAP.
        for group in [Address::ALL_ROUTERS, Address::ALL_COAP_NODES] {
            addresses.join(group).expect("it is in no other group yet");
        }
        Self { addresses, routes: RouteTable::new(ROUTES), contexts: Contexts::new() }
    }
    /// With this global address.
    pub fn with_address(mut self, address: Address) -> Self {
        self.addresses = self.addresses.with_global(address);
        self
    }
    /// With this prefix as 6LoWPAN's context 0, which all nodes of the link must share.
    pub fn with_context(mut self, prefix: [u8; 8]) -> Self {
        self.contexts = Contexts::new().with(0, prefix);
        self
    }
    /// With a route: `prefix` is behind the neighbour `via`, whose link-local address is made of its EUI-64.
    pub fn with_route(mut self, prefix: Prefix, via: Address) -> Result<Self, Rejected> {
        const WHAT: &str = "route";
        if !via.is_link_local() {
            let why =
                "the next hop must be a link-local address: the EUI-64 in it is where frames go";
            return Err(Rejected { what: WHAT, why });
        }
        self.routes.insert_prefix(prefix, via)?;
        Ok(self)
    }
}
