//! ICMPv6 messages (RFC 4443): errors, echo, neighbour discovery (RFC 4861), RPL control messages (type 155, RFC 6550
//! s6) and MPL control messages (type 159, RFC 7731 s6.2).
//!
//! The checksum covers the IPv6 pseudo header, so both faces ask for the addresses. What an error means
//! to whom is left to the IPv6 layer; an unknown type is kept as bytes, since RFC 4443 s2.4 tells unknown
//! errors (to be passed up) from unknown queries (to be dropped) only by their number.
//!
//! ```text
//!   0        8        16               32
//!   | type   | code   | checksum       |
//!   | body ...
//! ```

use alloc::vec::Vec;

use crate::checksum::pseudo_header_checksum;
use crate::mpl;
use crate::neighbour::{Advertisement, Solicitation};
use crate::router::{RouterAdvertisement, RouterSolicitation};
use crate::rpl;
use crate::{DecodeError, Problem, Reader};

/// IPv6 next header value of ICMPv6: RFC 4443 s1.
pub const NEXT_HEADER: u8 = 58;
/// Octets of type, code and checksum: RFC 4443 s2.1.
pub const HEADER_LENGTH: usize = 4;
/// The most octets of an invoking packet that an error carries: RFC 4443 s2.4 (c), the whole error shall
/// not exceed the minimum IPv6 MTU of 1280 octets (40 of IPv6 header, 8 of ICMPv6).
pub const INVOKING_MAX: usize = 1280 - 40 - 8;

const HEADER: &str = "ICMPv6";
// Types: RFC 4443 s3 and s4, RFC 4861 s4.1 to s4.4, RFC 6550 s6.
const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const RPL_CONTROL: u8 = 155;

/// Identifier, sequence number and data of an echo: RFC 4443 s4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Tells one pinging program from another.
    pub identifier: u16,
    /// Tells one ping from another.
    pub sequence: u16,
    /// Comes back unchanged.
    pub data: Vec<u8>,
}

/// Why a destination is unreachable: the codes of RFC 4443 s3.1, and RFC 6550 s20.18 for 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the destination.
    NoRoute,
    /// Communication is administratively prohibited.
    Prohibited,
    /// Beyond the scope of the source address.
    BeyondScope,
    /// Address unreachable: the last hop failed.
    Address,
    /// Nobody listens on the port.
    Port,
    /// Error in the source routing header: a hop of it cannot be reached.
    SourceRoute,
    /// A code that this codec gives no name.
    Other(u8),
}

impl Unreachable {
    /// The code on the air.
    pub const fn code(self) -> u8 {
        match self {
            Self::NoRoute => 0,
            Self::Prohibited => 1,
            Self::BeyondScope => 2,
            Self::Address => 3,
            Self::Port => 4,
            Self::SourceRoute => 7,
            Self::Other(code) => code,
        }
    }
    /// The reason that `code` stands for.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::NoRoute,
            1 => Self::Prohibited,
            2 => Self::BeyondScope,
            3 => Self::Address,
            4 => Self::Port,
            7 => Self::SourceRoute,
            other => Self::Other(other),
        }
    }
}

/// An ICMPv6 message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Icmpv6 {
    /// Type 1: a packet could not be delivered.
    DestinationUnreachable {
        /// Why not.
        reason: Unreachable,
        /// As much of the packet as fits.
        invoking: Vec<u8>,
    },
    /// Type 2: a packet does not fit the next link.
    PacketTooBig {
        /// Octets that would fit.
        mtu: u32,
        /// As much of the packet as fits.
        invoking: Vec<u8>,
    },
    /// Type 3: hop limit (code 0) or reassembly time (code 1) exceeded.
    TimeExceeded {
        /// 0 or 1.
        code: u8,
        /// As much of the packet as fits.
        invoking: Vec<u8>,
    },
    /// Type 4: a header could not be processed.
    ParameterProblem {
        /// 0 erroneous field, 1 unknown next header, 2 unknown option.
        code: u8,
        /// Octet in the invoking packet where the problem lies.
        pointer: u32,
        /// As much of the packet as fits.
        invoking: Vec<u8>,
    },
    /// Type 128.
    EchoRequest(Echo),
    /// Type 129.
    EchoReply(Echo),
    /// Type 133.
    RouterSolicitation(RouterSolicitation),
    /// Type 134.
    RouterAdvertisement(RouterAdvertisement),
    /// Type 135.
    NeighbourSolicitation(Solicitation),
    /// Type 136.
    NeighbourAdvertisement(Advertisement),
    /// Type 155.
    Rpl(rpl::Message),
    /// Type 159.
    Mpl(mpl::Control),
    /// Any other type.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
        /// All that follows the checksum.
        body: Vec<u8>,
    },
}

impl Icmpv6 {
    /// Reads a message that came from `src` to `dst`, and checks its checksum.
    pub fn parse(bytes: &[u8], src: &[u8; 16], dst: &[u8; 16]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let kind = reader.u8("type")?;
        let code = reader.u8("code")?;
        let checksum_field = reader.error("checksum", Problem::Checksum);
        reader.u16_be("checksum")?;
        if pseudo_header_checksum(src, dst, NEXT_HEADER, bytes) != 0 {
            return Err(checksum_field);
        }
        let message = match kind {
            DESTINATION_UNREACHABLE => {
                reader.u32_be("unused")?;
                let reason = Unreachable::from_code(code);
                Self::DestinationUnreachable { reason, invoking: reader.rest().to_vec() }
            }
            PACKET_TOO_BIG => {
                let mtu = reader.u32_be("MTU")?;
                Self::PacketTooBig { mtu, invoking: reader.rest().to_vec() }
            }
            TIME_EXCEEDED => {
                reader.u32_be("unused")?;
                Self::TimeExceeded { code, invoking: reader.rest().to_vec() }
            }
            PARAMETER_PROBLEM => {
                let pointer = reader.u32_be("pointer")?;
                Self::ParameterProblem { code, pointer, invoking: reader.rest().to_vec() }
            }
            ECHO_REQUEST => Self::EchoRequest(Echo::parse(&mut reader)?),
            ECHO_REPLY => Self::EchoReply(Echo::parse(&mut reader)?),
            // RFC 4861 s6.1.1, s6.1.2, s7.1.1, s7.1.2: the code is 0.
            ROUTER_SOLICITATION if code == 0 => {
                Self::RouterSolicitation(RouterSolicitation::parse(reader.rest())?)
            }
            ROUTER_ADVERTISEMENT if code == 0 => {
                Self::RouterAdvertisement(RouterAdvertisement::parse(reader.rest())?)
            }
            NEIGHBOUR_SOLICITATION if code == 0 => {
                Self::NeighbourSolicitation(Solicitation::parse(reader.rest())?)
            }
            NEIGHBOUR_ADVERTISEMENT if code == 0 => {
                Self::NeighbourAdvertisement(Advertisement::parse(reader.rest())?)
            }
            RPL_CONTROL => Self::Rpl(rpl::Message::parse(code, reader.rest())?),
            // RFC 7731 s6.2: the code is 0.
            mpl::Control::TYPE if code == 0 => Self::Mpl(mpl::Control::parse(reader.rest())?),
            _ => Self::Other { kind, code, body: reader.rest().to_vec() },
        };
        Ok(message)
    }

    /// Appends the message, with the checksum that it has between `src` and `dst`.
    pub fn emit(&self, src: &[u8; 16], dst: &[u8; 16], out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, code) = self.kind_and_code();
        out.extend_from_slice(&[kind, code, 0, 0]);
        match self {
            Self::DestinationUnreachable { invoking, .. } | Self::TimeExceeded { invoking, .. } => {
                emit_error(0, invoking, out);
            }
            Self::PacketTooBig { mtu: word, invoking }
            | Self::ParameterProblem { pointer: word, invoking, .. } => {
                emit_error(*word, invoking, out);
            }
            Self::EchoRequest(echo) | Self::EchoReply(echo) => {
                out.extend_from_slice(&echo.identifier.to_be_bytes());
                out.extend_from_slice(&echo.sequence.to_be_bytes());
                out.extend_from_slice(&echo.data);
            }
            Self::RouterSolicitation(message) => message.emit(out),
            Self::RouterAdvertisement(message) => message.emit(out),
            Self::NeighbourSolicitation(message) => message.emit(out),
            Self::NeighbourAdvertisement(message) => message.emit(out),
            Self::Rpl(message) => message.emit(out),
            Self::Mpl(message) => message.emit(out),
            Self::Other { body, .. } => out.extend_from_slice(body),
        }
        let checksum = pseudo_header_checksum(src, dst, NEXT_HEADER, &out[start..]);
        out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// True for an error message: RFC 4443 s2.1, types below 128. An error is never answered with an error.
    pub const fn is_error(&self) -> bool {
        self.kind_and_code().0 < 128
    }

    const fn kind_and_code(&self) -> (u8, u8) {
        match self {
            Self::DestinationUnreachable { reason, .. } => (DESTINATION_UNREACHABLE, reason.code()),
            Self::PacketTooBig { .. } => (PACKET_TOO_BIG, 0),
            Self::TimeExceeded { code, .. } => (TIME_EXCEEDED, *code),
            Self::ParameterProblem { code, .. } => (PARAMETER_PROBLEM, *code),
            Self::EchoRequest(_) => (ECHO_REQUEST, 0),
            Self::EchoReply(_) => (ECHO_REPLY, 0),
            Self::RouterSolicitation(_) => (ROUTER_SOLICITATION, 0),
            Self::RouterAdvertisement(_) => (ROUTER_ADVERTISEMENT, 0),
            Self::NeighbourSolicitation(_) => (NEIGHBOUR_SOLICITATION, 0),
            Self::NeighbourAdvertisement(_) => (NEIGHBOUR_ADVERTISEMENT, 0),
            Self::Rpl(message) => (RPL_CONTROL, message.code()),
            Self::Mpl(_) => (mpl::Control::TYPE, 0),
            Self::Other { kind, code, .. } => (*kind, *code),
        }
    }
}

impl Echo {
    fn parse(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            identifier: reader.u16_be("identifier")?,
            sequence: reader.u16_be("sequence number")?,
            data: reader.rest().to_vec(),
        })
    }
}

fn emit_error(word: u32, invoking: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&word.to_be_bytes());
    // RFC 4443 s2.4 (c): as much of the invoking packet as possible without exceeding the minimum MTU.
    out.extend_from_slice(&invoking[..invoking.len().min(INVOKING_MAX)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::Address;

    const SRC: [u8; 16] = [0xfd; 16];
    const DST: [u8; 16] = [0xfe; 16];

    fn examples() -> Vec<Icmpv6> {
        let invoking = vec![0x60, 0, 0, 0, 1, 2, 3];
        let echo = Echo { identifier: 7, sequence: 9, data: vec![1, 2, 3] };
        vec![
            Icmpv6::DestinationUnreachable {
                reason: Unreachable::Port,
                invoking: invoking.clone(),
            },
            Icmpv6::DestinationUnreachable { reason: Unreachable::Other(6), invoking: Vec::new() },
            Icmpv6::PacketTooBig { mtu: 1280, invoking: invoking.clone() },
            Icmpv6::TimeExceeded { code: 1, invoking: invoking.clone() },
            Icmpv6::ParameterProblem { code: 2, pointer: 40, invoking },
            Icmpv6::EchoRequest(echo.clone()),
            Icmpv6::EchoReply(echo),
            Icmpv6::Rpl(rpl::Message::Dis(rpl::Dis::default())),
            Icmpv6::NeighbourSolicitation(Solicitation {
                target: Address(SRC),
                source_node: None,
                registration: None,
            }),
            Icmpv6::NeighbourAdvertisement(Advertisement {
                router: false,
                solicited: true,
                overriding: false,
                target: Address(SRC),
                target_node: None,
                registration: None,
            }),
            Icmpv6::Other { kind: 137, code: 0, body: vec![5; 20] },
            Icmpv6::RouterSolicitation(RouterSolicitation { source_node: None }),
            Icmpv6::Mpl(mpl::Control { seeds: vec![mpl::SeedInfo::new(mpl::SeedId::Short(7), 3)] }),
        ]
    }

    fn bytes_of(message: &Icmpv6) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.emit(&SRC, &DST, &mut bytes);
        bytes
    }

    #[test]
    fn every_message_comes_back_as_it_was() {
        for message in examples() {
            assert_eq!(Icmpv6::parse(&bytes_of(&message), &SRC, &DST), Ok(message));
        }
    }

    #[test]
    fn no_prefix_of_a_message_passes() {
        for message in examples() {
            let bytes = bytes_of(&message);
            for end in 0..bytes.len() {
                // A prefix may sum up right by chance only where what was cut sums to its own length: not here.
                assert!(Icmpv6::parse(&bytes[..end], &SRC, &DST).is_err(), "{message:?} at {end}");
            }
        }
    }

    #[test]
    fn a_message_to_another_address_fails_its_checksum() {
        let bytes = bytes_of(&examples()[5]);
        let error = Icmpv6::parse(&bytes, &SRC, &[0xfc; 16]).expect_err("another destination");
        assert_eq!((error.field, error.problem), ("checksum", Problem::Checksum));
    }

    #[test]
    fn an_error_never_exceeds_the_minimum_mtu() {
        let message = Icmpv6::TimeExceeded { code: 0, invoking: vec![0; 2000] };
        assert_eq!(bytes_of(&message).len() + 40, 1280);
    }

    #[test]
    fn errors_are_told_from_queries() {
        let errors: Vec<bool> = examples().iter().map(Icmpv6::is_error).collect();
        assert_eq!(
            errors,
            [true, true, true, true, true, false, false, false, false, false, false, false, false]
        );
    }
}
