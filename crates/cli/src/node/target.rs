//! Whom a verb of the node asks.

use lowmesh_wire::ipv6::Address;

use super::options::Options;
use crate::failure::Failure;

/// Refuses an address to which no packet would leave.
pub fn reachable(options: &Options, to: Address) -> Result<(), Failure> {
    if to.is_unspecified() {
        return Err(Failure::usage(format!("{to} is no node"), "give the IPv6 address of one"));
    }
    if options.is_own(&to) {
        let hint = "give the address of another node; a node sends nothing to itself";
        return Err(Failure::usage(format!("{to} is the address of this node"), hint));
    }
    if !options.reaches(&to) {
        let message = format!("no --route leads to {to}");
        let hint = format!("add --route {to}/128 via fe80::..., the neighbour towards it");
        return Err(Failure::Usage { message, hint: Some(hint) });
    }
    Ok(())
}
