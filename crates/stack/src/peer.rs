//! A UDP endpoint of another node.

use lowmesh_wire::ipv6::Address;

/// A UDP endpoint.
pub type Peer = (Address, u16);
