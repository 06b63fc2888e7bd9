//! What the exchange engines refuse of an application, the same over datagrams and connections (RFC 7252 s5.3.1, s5.8, s5.9).

use lowmesh_machine::Rejected;
use lowmesh_wire::coap::{Code, TOKEN_LEN_MAX, Token};

/// A token that would make two responses look the same.
pub(crate) const TOKEN_IN_USE: Rejected =
    Rejected::Taken { what: "token", why: "another request to this peer has it (RFC 7252 s5.3.1)" };

/// A request that the application can no longer answer.
pub(crate) const ANSWERED: Rejected = Rejected::Gone {
    what: "response",
    why: "its request is answered or has expired, or its connection has ended",
};

/// Refuses a token that not every peer takes.
pub(crate) fn check_token(token: &Token) -> Result<(), Rejected> {
    if token.len() > TOKEN_LEN_MAX {
        return Err(Rejected::Invalid { what: "token", why: "longer than 8 octets (RFC 7252 s3)" });
    }
    Ok(())
}

/// Refuses a request that asks for nothing.
pub(crate) const fn check_method(code: Code) -> Result<(), Rejected> {
    if code.is_request() {
        return Ok(());
    }
    Err(Rejected::Invalid { what: "request", why: "its code is not a method (0.01 to 0.31)" })
}

/// Refuses a response or notification that is none.
pub(crate) const fn check_response(what: &'static str, code: Code) -> Result<(), Rejected> {
    if code.is_response() {
        return Ok(());
    }
    Err(Rejected::Invalid { what, why: "its code is not 2.xx, 4.xx or 5.xx" })
}
