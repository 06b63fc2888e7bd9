//! RPL control messages (RFC 6550 s6), the RPL option of data packets (RFC 6553) and the source routing
//! header (RFC 6554).
//!
//! The messages travel as the body of ICMPv6 type 155, their kind in the ICMPv6 code. Secured variants
//! (codes 0x80 and up) are not supported: link-layer security covers the same hop.

mod message;
mod option;
mod packet_information;
mod source_route;

pub use message::{Dao, DaoAck, DaoStatus, Dco, DcoAck, Dio, Dis, Message, Mode};
pub use option::{
    DodagConfiguration, Metric, PrefixInformation, RouteInformation, RplOption,
    SolicitedInformation, Target, TransitInformation,
};
pub use packet_information::HopByHopOption;
pub use source_route::{Advance, SourceRoute};

/// An IPv6 address as RPL sees it: sixteen octets.
pub type Address = [u8; 16];

/// ff02::1a, the link-local group of all RPL nodes: RFC 6550 s20.19.
pub const ALL_RPL_NODES: Address = [0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a];
