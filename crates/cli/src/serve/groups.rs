//! The groups of a server: which it joins, how it answers them, and whether clients may change that.

use std::net::IpAddr;

use lowmesh_coap::params::SECURED_LEISURE;
use lowmesh_coap::{Leisure, membership};
use lowmesh_net::multicast::{GroupError, Interface};
use lowmesh_net::server::{Limits, Server};
use lowmesh_units::Duration;

use crate::console::say;
use crate::duration;
use crate::failure::Failure;
use crate::serve::folder::{Access, Usage};

/// Groups that a server joins.
#[derive(Debug, clap::Args)]
#[group(id = "membership")]
pub struct Args {
    /// Join a group (repeatable), such as `ff35::30:1%eth0` or `224.0.1.200%eth0`; without %INTERFACE at every interface.
    /// Files of the folder then respond to group requests
    #[arg(long = "group", value_name = "ADDRESS[%INTERFACE]", value_parser = membership)]
    groups: Vec<Membership>,
    /// Let clients make the server join and leave groups, with POST /mc. Files of the folder then respond to group
    /// requests
    #[arg(long)]
    mc: bool,
    /// Let group requests write and delete files of the folder
    #[arg(long, requires = "writable", conflicts_with = "demo")]
    group_writable: bool,
    /// Time over which the server spreads its responses to group requests; by default 5 s, and 20 s with
    /// --group-oscore
    #[arg(long, value_name = "TIME", value_parser = duration::wait, conflicts_with = "group_size")]
    leisure: Option<Duration>,
    /// Members of a group; the server computes the leisure from them and the length of the response, at 1000 octets per second
    #[arg(long, value_name = "MEMBERS")]
    group_size: Option<u32>,
    /// Send full responses to group requests only to clients that have proven their address (4.01 with Echo)
    #[arg(long)]
    group_echo: bool,
}

/// A group to join, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Membership {
    group: IpAddr,
    interface: Option<Interface>,
}

fn membership(text: &str) -> Result<Membership, String> {
    let (address, interface) = match text.split_once('%') {
        Some((address, name)) => (address, Some(name)),
        None => (text, None),
    };
    let group = address.trim_matches(['[', ']']).parse::<IpAddr>();
    let group = group.ok().filter(IpAddr::is_multicast);
    let group = group.ok_or("a group is a multicast address, as ff35::30:1 or 224.0.1.200")?;
    let interface = interface.map(Interface::named).transpose();
    Ok(Membership { group, interface: interface.map_err(|error| error.to_string())? })
}

impl Args {
    /// The limits of a server, with the answers to groups that are asked for.
    pub fn limits(&self, is_secured: bool, mut limits: Limits) -> Limits {
        if let Some(leisure) = self.leisure {
            limits.datagrams.leisure = Leisure::Fixed(leisure);
        } else if let Some(members) = self.group_size {
            limits.datagrams.leisure = Leisure::of_members(members);
        } else if is_secured {
            // RFC 10020: DEFAULT_LEISURE of groups whose requests Group OSCORE protects.
            limits.datagrams.leisure = Leisure::Fixed(SECURED_LEISURE);
        }
        limits.host.challenge_groups = self.group_echo;
        limits
    }
    /// What clients may do with the files of a folder: group requests read them if the server belongs to groups that its
    /// owner or a client names. The groups of all CoAP nodes alone are no reason to send files to everybody.
    pub fn access(&self, writable: bool, max: Usage) -> Access {
        let groups = self.mc || !self.groups.is_empty();
        Access { writable, groups, groups_write: self.group_writable, max }
    }
    /// Adds the resource by which clients change the groups.
    pub fn resources(&self, server: &mut Server) {
        if self.mc {
            server.insert(membership::PATH, server.groups().resource(None));
        }
    }
    /// Joins the groups, with a server that listens.
    pub fn join(&self, server: &Server) -> Result<(), Failure> {
        for Membership { group, interface } in &self.groups {
            server.groups().join(*group, *interface).map_err(|error| {
                let hint = match &error {
                    GroupError::NoSocket(_) => "leave --address out, or give it :: or 0.0.0.0",
                    _ => "`ip maddress` lists the groups of each interface",
                };
                Failure::usage(error, hint)
            })?;
            say!("member of {group}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_an_address_and_perhaps_an_interface() {
        let loopback = Interface::named("lo").expect("every machine has it");
        for (text, interface) in [
            ("ff35::30:1", None),
            ("[ff35::30:1]", None),
            ("224.0.1.200%lo", Some(loopback)),
            ("ff02::fd%lo", Some(loopback)),
        ] {
            assert_eq!(membership(text).expect(text).interface, interface, "{text}");
        }
    }

    #[test]
    fn what_is_no_group_is_refused_with_an_example() {
        for (text, says) in [
            ("fd00::1", "multicast"),
            ("lights", "multicast"),
            ("ff02::fd%nowhere", "the interfaces are"),
        ] {
            let error = membership(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
