//! `--group-oscore FILE`: requests that a member of a group protects for the others (RFC 10021).
//!
//! A request to one server is for one member, in pairwise mode. It is named, or the only other member of the file.

use std::path::{Path, PathBuf};

use lowmesh_net::client::Builder;
use lowmesh_net::oscore::{Contexts, Identity, ToOne};

use crate::diagnostic::hex;
use crate::failure::Failure;
use crate::secret_file;

/// The member of a group that makes the requests.
#[derive(Debug, clap::Args)]
#[group(id = "member_of_group")]
pub struct Member {
    /// Member of a group for Group OSCORE; the state is stored next to the file
    #[arg(
        id = "group_oscore",
        long = "group-oscore",
        value_name = "FILE",
        conflicts_with = "oscore"
    )]
    file: Option<PathBuf>,
    /// Sender ID of the server, for requests in pairwise mode; as text, or as 0x and hexadecimal digits
    #[arg(id = "to_member", long = "to-member", value_name = "ID", requires = "group_oscore")]
    to: Option<String>,
    /// Protect a request to one server in group mode: an attacker can send it on to another member, which accepts it too
    #[arg(long, requires = "group_oscore", conflicts_with = "to_member")]
    group_mode: bool,
}

impl Member {
    /// Whether requests are protected.
    pub const fn is_given(&self) -> bool {
        self.file.is_some()
    }
    /// Lets a client protect its requests. The state is in the folder `state`, by default next to the file.
    pub fn protect(&self, builder: Builder, state: Option<&Path>) -> Result<Builder, Failure> {
        let Some(file) = &self.file else { return Ok(builder) };
        let contexts = Contexts::default();
        secret_file::look_at(file);
        let group = contexts.add_group_in(file, state)?;
        let to_one = match &self.to {
            Some(text) => ToOne::Member(named(text, &contexts.members(group))?),
            None if self.group_mode => ToOne::GroupMode,
            None => ToOne::Answered,
        };
        Ok(builder.protect_with_group(contexts, group, to_one))
    }
}

/// The other member with this Sender ID.
fn named(text: &str, members: &[Identity]) -> Result<Identity, Failure> {
    let is_named = |one: &&Identity| {
        one.as_bytes() == text.as_bytes()
            || text
                .strip_prefix("0x")
                .is_some_and(|digits| digits.eq_ignore_ascii_case(&hex(one.as_bytes())))
    };
    members.iter().find(is_named).copied().ok_or_else(|| {
        let message = format!("the group has no other member {text:?}");
        Failure::usage(message, "--to-member takes a member_id of the file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_its_id_as_text_and_as_digits() {
        let members = [&b"lamp1"[..], b"\x00\xab"].map(|id| Identity::new(id).expect("short"));
        for (text, place) in [("lamp1", 0), ("0x6c616d7031", 0), ("0x00ab", 1), ("0x00AB", 1)] {
            assert_eq!(named(text, &members).expect("a member"), members[place], "{text}");
        }
        for text in ["", "lamp2", "0x", "6c616d7031", "0x00a"] {
            assert!(named(text, &members).is_err(), "{text}");
        }
    }
}
