//! What can go wrong, by who is to blame: us, a peer's request, a peer's response.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber};

/// Why a message of ours cannot be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtectError {
    /// It is protected already (RFC 8613 s4.1.3.7).
    #[error("the message has an OSCORE option already")]
    Nested,
    /// Neither a request nor a response, whichever was wanted.
    #[error("a message with code {0} cannot be protected")]
    Code(Code),
    /// A Proxy-Uri that is not a URI with an authority, or not percent-encoded.
    #[error("Proxy-Uri is not a URI with an authority, so it cannot be split")]
    ProxyUri,
    /// The next sequence number is not stored as used (RFC 8613 appendix B.1.1). After
    /// [`SecurityContext::confirm`](crate::SecurityContext::confirm) the same message can be
    /// protected.
    #[error("no sequence number is stored as used yet, so none may be used")]
    Unreserved,
    /// The context of the request has been replaced (RFC 8613 appendix B.2).
    #[error("the security context of the request has been replaced")]
    Replaced,
    /// The group has no member of this identity.
    #[error("the group has no such member")]
    UnknownMember,
    /// All 2^40 sequence numbers are used (RFC 8613 s7.2.1).
    #[error("the security context has no sequence number left; it needs new keys")]
    Exhausted,
    /// More octets than the algorithm takes: 65,535.
    #[error("the message is too long for the algorithm")]
    TooLong,
}

/// Why a peer's request comes to nothing; a plain response may be given to most (RFC 8613 s8.2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has no OSCORE option.
    #[error("the request is not protected")]
    Unprotected,
    /// Its OSCORE option or, once decrypted, its inside does not decode.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// A request says its Partial IV and kid.
    #[error("the OSCORE option of the request has no Partial IV or no kid")]
    Incomplete,
    /// Nobody here has a context for its kid.
    #[error("there is no security context for the request's kid")]
    UnknownContext,
    /// Its Partial IV has come before, or is too old to tell.
    #[error("the request is a replay")]
    Replay,
    /// Its tag is wrong.
    #[error("the request does not verify")]
    Forged,
    /// Its tag is right, and its signature is not that of its member: another holder of the group's secrets has made it.
    #[error("the signature of the request does not verify")]
    BadSignature,
    /// Its inside is not a request, or is protected again.
    #[error("the decrypted message is not a request")]
    NoRequest,
    /// It verifies, but may be a replay since the window is lost: here is what to answer.
    #[error("the client must repeat the request with the Echo value of the response")]
    Challenged(Box<StreamMessage>),
    /// It verifies under an ID Context that is not that of the context here: here is what to answer
    /// (RFC 8613 appendix B.2 step 2).
    #[error("the client must repeat the request with a new security context")]
    Renewing(Box<StreamMessage>),
    /// It verifies and has to be challenged, but no sequence number is stored as used. After
    /// [`SecurityContext::confirm`](crate::SecurityContext::confirm) it can be opened again.
    #[error("no sequence number is stored as used yet, so none may be used")]
    Unreserved,
    /// It verifies and has to be challenged, but no sequence number is left to do so.
    #[error("the security context has no sequence number left; it needs new keys")]
    Exhausted,
}

impl Refusal {
    /// The response that RFC 8613 s8.2 proposes, to be sent with the request's token.
    pub fn response(&self) -> Option<StreamMessage> {
        let (code, diagnostic) = match self {
            Self::Unprotected | Self::Unreserved | Self::Exhausted => return None,
            Self::Challenged(response) | Self::Renewing(response) => {
                return Some((**response).clone());
            }
            Self::Malformed(_) | Self::Incomplete => (Code::BAD_OPTION, "Failed to decode COSE"),
            Self::UnknownContext => (Code::UNAUTHORIZED, "Security context not found"),
            Self::Replay => (Code::UNAUTHORIZED, "Replay detected"),
            Self::Forged | Self::BadSignature | Self::NoRequest => {
                (Code::BAD_REQUEST, "Decryption failed")
            }
        };
        let mut response = StreamMessage::new(code);
        // RFC 8613 s7.4: Max-Age 0 tells proxies not to cache it.
        response.options.insert_uint(OptionNumber::MAX_AGE, 0);
        response.payload = Vec::from(diagnostic);
        Some(response)
    }
}

/// Why a response comes to nothing; the request stays open (RFC 8613 s8.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// It has no OSCORE option: perhaps an error of the peer's OSCORE, of a proxy, or of an
    /// attacker.
    #[error("the response is not protected")]
    Unprotected,
    /// Its OSCORE option or, once decrypted, its inside does not decode.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// The tag is wrong.
    #[error("the response does not verify")]
    Forged,
    /// The tag is right, and the signature is not that of the member: another holder of the group's secrets has made it.
    #[error("the signature of the response does not verify")]
    BadSignature,
    /// A notification not newer than one before, or a second response.
    #[error("the response is a replay")]
    Replay,
    /// The inside is not a response, is protected again, or notifies of what was not asked.
    #[error("the decrypted message is not a response to the request")]
    NoResponse,
}
