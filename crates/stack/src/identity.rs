//! A node that nobody planned a network for: its name, address and routes are given one by one, as to a host
//! that joins a link of strangers.

use lowmesh_ipv6::params::ROUTES;
use lowmesh_ipv6::{Addresses, Global, RouteTable};
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
    /// A node with only a link-local address, which reaches only its neighbours.
    pub fn new(node: Eui64) -> Self {
        let mut addresses = Addresses::on_link(node);
        // RFC 7252 s8: it serves CoAP.
        addresses.join(Address::ALL_COAP_NODES).expect("it is in no other group yet");
        Self { addresses, routes: RouteTable::new(ROUTES), contexts: Contexts::new() }
    }
    /// The same with one more global address, whose link has a prefix of `bits` bits. Packets leave from the first,
    /// unless another one is nearer to their destination.
    pub fn with_address(mut self, address: Address, bits: u8) -> Result<Self, Rejected> {
        let why = "it is a group, link-local or unspecified, or its prefix has more than 128 bits";
        let global =
            Global::new(address, bits).ok_or(Rejected::Invalid { what: "global address", why })?;
        self.addresses.add(global)?;
        Ok(self)
    }
    /// The same with this prefix as 6LoWPAN's context `index`, up to 15, which all nodes of the link must share.
    pub fn with_context(mut self, index: u8, prefix: [u8; 8]) -> Self {
        self.contexts = self.contexts.with(index, prefix);
        self
    }
    /// The same with a route: `prefix` is behind the neighbour `via`, whose link-local address contains its EUI-64.
    pub fn with_route(mut self, prefix: Prefix, via: Address) -> Result<Self, Rejected> {
        const WHAT: &str = "route";
        if !via.is_link_local() {
            let why =
                "the next hop must be a link-local address: the EUI-64 in it is where frames go";
            return Err(Rejected::Invalid { what: WHAT, why });
        }
        self.routes.insert_prefix(prefix, via)?;
        Ok(self)
    }
}
