//! A packet and a root for the example of the crate.

use alloc::vec::Vec;

use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::Address;

use crate::engine::NodeContext;

/// An IPv6 header to ff05::1 without payload.
pub const PACKET: [u8; 40] = [
    0x60, 0, 0, 0, 0, 0, 59, 8, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 5, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
];

/// The root of a DODAG without children.
#[derive(Debug)]
pub struct Root;

impl NodeContext for Root {
    fn address(&self) -> Address {
        Address([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    }
    fn root(&self) -> Option<Address> {
        Some(self.address())
    }
    fn parent(&self) -> Option<Eui64> {
        None
    }
    fn children(&self, _group: &Address) -> Vec<Eui64> {
        Vec::new()
    }
    fn is_member(&self, _group: &Address) -> bool {
        false
    }
}
