//! Why a request came to nothing, and what would help.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lowmesh_coap::{ConfigError, Fault};
use lowmesh_machine::{DropReason, Rejected};
use lowmesh_wire::coap::Class;
use lowmesh_wire::coap::uri::UriError;

use super::response::Response;
use crate::dtls::KeyError;
use crate::oscore::StoreError;
use crate::resolve::ResolveError;
use crate::stream_transport::ConnectError;
use crate::udp::BindError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What should be a URI is none.
    #[error("{text:?} is not a CoAP URI: {error}")]
    Uri {
        /// The text.
        text: String,
        /// What is wrong with it.
        error: UriError,
    },
    /// The host leads nowhere.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// No socket can be had at the client's own address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No connection can be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A setting is not possible.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A pre-shared key is not possible.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The state of a security context cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `coaps` without a key.
    #[error("coaps needs a pre-shared key")]
    NoKey,
    /// The system has no route to the address.
    #[error("cannot send to {to}: {error}")]
    NoWay {
        /// The address.
        to: IpAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A group asked for what only one peer can give: one answer, an observation, a ping, security.
    #[error("{0} is a group, from which many answers may come")]
    Group(IpAddr),
    /// There is no room for one more connection.
    #[error("{0} connections are already open")]
    Crowded(usize),
    /// One peer asked as a group.
    #[error("{0} is not a group")]
    NoGroup(IpAddr),
    /// A group at the port of DTLS (RFC 10020 s3.4).
    #[error("{0}: port 5684 is for DTLS, which cannot reach a group")]
    SecurePort(SocketAddr),
    /// The request cannot be made.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Nothing came in time.
    #[error("no answer from {peer} within {} s", wait.as_secs_f64())]
    Silence {
        /// The peer that was asked.
        peer: String,
        /// How long it was waited for.
        wait: Duration,
    },
    /// The request said that it wants no answer (RFC 7967), and there was none.
    #[error("no answer, as the request demands")]
    Unwanted,
    /// The DTLS handshake came to nothing although the peer is there.
    #[error("{peer}: {reason}")]
    Handshake {
        /// The peer.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// An answer that OSCORE does not vouch for.
    #[error("no protected answer from {peer}: {reason}")]
    Unprotected {
        /// The peer that was asked.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The peer, or the path to it, ended the request.
    #[error("{}", failed(*peer, *reason).0)]
    Failed {
        /// The peer.
        peer: SocketAddr,
        /// The reason.
        reason: DropReason,
    },
    /// The peer is there, and what it answered was wrong.
    #[error("{peer} {fault}")]
    Fault {
        /// The peer.
        peer: SocketAddr,
        /// What it did.
        fault: Fault,
    },
    /// The rest of a notification has not come. The observation goes on, and the state is being asked for afresh.
    #[error("a new state could not be read whole: {0}; it is asked for afresh")]
    Missed(Box<Error>),
    /// The connection, the session or the socket is over.
    #[error("{peer}: {reason}")]
    Ended {
        /// The peer.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The answer is an error, 4.xx or 5.xx: what [`Response::ok`] says.
    #[error("{0}")]
    Answer(Box<Response>),
}

impl Error {
    /// A hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Uri { .. } => "write it as in coap://[::1]/hello",
            Self::Resolve(ResolveError::ZoneTooMany(..)) => {
                "only link-local addresses and groups have a zone"
            }
            Self::Resolve(ResolveError::Zone(_) | ResolveError::NoZone(_)) => {
                "add a network interface of this machine to the address, as in [ff02::fd%25eth0]"
            }
            Self::Resolve(_) => {
                "give a name that this machine can resolve, an IPv4 address, or [an IPv6 address]"
            }
            Self::Bind(_) => "choose another local address or port, or none",
            Self::Connect(ConnectError::Resolve(_)) => "is the name known here?",
            Self::Connect(ConnectError::Group(_)) => "use coap:// for a group",
            Self::Connect(ConnectError::NoTrust(_)) => {
                "set the trusted authorities with Builder::trust"
            }
            Self::Connect(ConnectError::Tls(error)) => error.hint(),
            Self::Connect(_) => "is a server running there, at this port and for this scheme?",
            Self::Settings(_) => "see the bounds of this setting",
            Self::Key(_) => "an identity has up to 128 octets and a key up to 64",
            Self::Store(_) => "the state of a security context is stored next to its file",
            Self::NoKey => "set a key with Builder::key",
            Self::NoWay { .. } => {
                "is the network up, and does it have addresses of this IP version?"
            }
            Self::Group(_) => "use Request::gather, with coap:// only",
            Self::Crowded(_) => "try again later, or allow more with Builder::connections_max",
            Self::SecurePort(_) => "port 5683 is that of all CoAP servers",
            Self::NoGroup(_) => "send it a unicast request; groups have multicast addresses",
            Self::Rejected(_) => "the server was not asked",
            Self::Silence { .. } => "is the server there? Request::within waits longer",
            Self::Unwanted => "leave No-Response out to get an answer",
            Self::Handshake { .. } => "does the server know this identity and key?",
            Self::Unprotected { reason, .. } => unprotected(reason),
            Self::Failed { reason, peer } => failed(*peer, *reason).1,
            Self::Fault { fault, .. } => fault_hint(fault),
            Self::Missed(cause) => cause.hint(),
            Self::Ended { .. } => "ask again",
            Self::Answer(_) => "the server has understood, and refuses",
        }
    }
}

impl Response {
    /// The response, unless its code is 4.xx or 5.xx.
    pub fn ok(self) -> Result<Self, Error> {
        match self.code().class() {
            Class::ClientError | Class::ServerError => Err(Error::Answer(Box::new(self))),
            _ => Ok(self),
        }
    }
}

/// What would help against an answer without protection, by the code in it (RFC 8613 s8.2) or by our own reason.
fn unprotected(reason: &str) -> &'static str {
    if reason.contains("4.00") || reason.contains("verify") {
        "are master_secret, master_salt and id_context the same at both ends?"
    } else if reason.contains("Replay") {
        "was the state next to the context's file restored or copied? make new keys"
    } else {
        "does the server have this context, with sender and recipient exchanged?"
    }
}

/// What a peer that did not answer is told as, and what would help.
fn failed(peer: SocketAddr, reason: DropReason) -> (String, &'static str) {
    match reason {
        DropReason::NoRoute if peer.ip().is_multicast() => (
            format!("cannot send to the group {}", peer.ip()),
            "name an interface with multicast, as in [ff02::fd%25eth0]",
        ),
        DropReason::NoRoute => (
            format!("{peer} cannot be reached"),
            "is a server running there, at this port? is there a route?",
        ),
        DropReason::Reset => (format!("{peer} rejected the message"), "is it a CoAP server?"),
        DropReason::QueueFull => (
            format!("too many requests to {peer} wait already"),
            "wait for an answer before the next request",
        ),
        DropReason::TooLarge => {
            (format!("the message is too long for {peer}"), "choose smaller blocks")
        }
        DropReason::Malformed => (
            format!("{peer} sent an answer that cannot be read"),
            "is it a CoAP server, and does it protect its answers?",
        ),
        _ => (format!("no answer from {peer}"), "is the server there?"),
    }
}

/// What would help against a peer that answers wrongly.
const fn fault_hint(fault: &Fault) -> &'static str {
    match fault {
        Fault::CriticalOption(_) => "the server must not send it to a client that does not know it",
        Fault::DotSegment => "the server must not send such a location (RFC 7252 s5.10.7)",
        Fault::WrongBlock => "the server's block-wise transfer (RFC 7959) is faulty",
        Fault::TooLong => "ask for a part of the resource",
        Fault::KeepsChanging => "ask again when the resource is at rest, or for a part of it",
        Fault::PartlyTaken => "send a body of one block, or use a server with RFC 7959",
        Fault::Narrow => "choose smaller blocks, or fewer and shorter options",
        Fault::Aborted(_) => "the server's log may say more",
    }
}
