//! The destination of a verb, and what routers say about packets that do not get there.

use lowmesh_stack::event::Problem;
use lowmesh_wire::icmpv6::Unreachable;
use lowmesh_wire::ipv6::Address;

use super::options::Options;
use crate::failure::Failure;

/// Refuses an address to which no packet would leave.
pub fn reachable(options: &Options, to: Address) -> Result<(), Failure> {
    if to.is_unspecified() {
        return Err(Failure::usage(
            format!("{to} is not the address of a node"),
            "give an IPv6 address",
        ));
    }
    if to.is_multicast() {
        let hint = "give the address of each of its members";
        return Err(Failure::usage(format!("a node sends nothing to a group, such as {to}"), hint));
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

/// An ICMPv6 error in words (RFC 4443 s3).
pub fn words(problem: Problem) -> String {
    match problem {
        Problem::Unreachable(Unreachable::NoRoute) => "no route to the destination".to_owned(),
        Problem::Unreachable(Unreachable::Port) => "no program listens on the port".to_owned(),
        Problem::Unreachable(_) => "the destination is unreachable".to_owned(),
        Problem::TooBig => "the packet is too big".to_owned(),
        Problem::HopLimit => "the hop limit reached zero".to_owned(),
        Problem::Reassembly => "some fragments did not arrive in time".to_owned(),
        Problem::Parameter { code, pointer } => {
            format!("it does not recognise the field at octet {pointer} (code {code})")
        }
        Problem::Unknown { kind, code } => format!("ICMPv6 error {kind}, code {code}"),
    }
}
