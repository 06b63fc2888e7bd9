//! Tokens that an application chooses for its requests, on any transport (RFC 7252 s5.3.1).

use lowmesh_machine::Rejected;
use lowmesh_wire::coap::{TOKEN_LEN_MAX, Token};

/// A token that would make two responses look the same.
pub(crate) const TOKEN_IN_USE: Rejected =
    Rejected::Taken { what: "token", why: "another request to this peer has it (RFC 7252 s5.3.1)" };

/// Refuses what not every peer takes.
pub(crate) fn check_len(token: &Token) -> Result<(), Rejected> {
    if token.len() > TOKEN_LEN_MAX {
        return Err(Rejected::Invalid { what: "token", why: "longer than 8 octets (RFC 7252 s3)" });
    }
    Ok(())
}
