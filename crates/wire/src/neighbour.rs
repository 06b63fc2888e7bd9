//! Neighbour Solicitation and Advertisement (RFC 4861 s4.3, s4.4) with the options of a link with EUI-64
//! addresses (RFC 4944 s8) and address registration (RFC 6775 s4.1, RFC 8505 s4.1). Here is what is behind the checksum; the rest
//! is [`icmpv6`](crate::icmpv6). What the messages mean is left to the crate `ipv6`.
//!
//! ```text
//!   solicitation      | reserved 32                      | target 128 | options ...
//!   advertisement     |R|S|O| reserved 29                | target 128 | options ...
//!
//!   link-layer address    | type 1, 2 | length 2 | EUI-64 | padding 48 |
//!   address registration  | type 33   | length 2 | status 8 | opaque 8 | flags 8 | TID 8 | lifetime 16, in minutes | EUI-64 |
//! ```

use alloc::vec::Vec;

use lowmesh_units::{Eui64, Sequence, ShortAddr};

use crate::ipv6::Address;
use crate::{DecodeError, Problem, Reader};

const SOLICITATION: &str = "Neighbour Solicitation";
const ADVERTISEMENT: &str = "Neighbour Advertisement";

// Option types: RFC 4861 s4.6.1, RFC 6775 s4.1.
pub(crate) const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
const ADDRESS_REGISTRATION: u8 = 33;

/// An option's length counts units of eight octets: RFC 4861 s4.6.
pub(crate) const UNIT: usize = 8;
/// Units of a short link-layer address: RFC 4944 s8.
const SHORT_UNITS: u8 = 1;
/// Units of a link-layer address of eight octets (RFC 4944 s8) and of an address registration (RFC 6775 s4.1).
pub(crate) const UNITS: u8 = 2;

/// The address registration option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Zero in a request; in an answer what became of it (RFC 8505 s4.1, table 1).
    pub status: u8,
    /// Comes back unchanged (RFC 8505 s4.1).
    pub opaque: u8,
    /// I, R and T (RFC 8505 s4.1); zero in the option of RFC 6775.
    pub flags: u8,
    /// Counts the registrations of the address, if T is set (RFC 8505 s4.1).
    pub transaction_id: u8,
    /// Minutes that the router is to keep the address.
    pub lifetime_minutes: u16,
    /// Whose address it is.
    pub node: Eui64,
}

/// A Neighbour Solicitation: who has `target`?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solicitation {
    /// The address asked for.
    pub target: Address,
    /// The link-layer address of the node that asks.
    pub source_node: Option<Eui64>,
    /// The sender registers its source address.
    pub registration: Option<Registration>,
}

/// A Neighbour Advertisement: `target` is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// The sender forwards packets.
    pub router: bool,
    /// It answers a solicitation.
    pub solicited: bool,
    /// What was known of the target is to be forgotten.
    pub overriding: bool,
    /// The address asked for.
    pub target: Address,
    /// Its link-layer address.
    pub target_node: Option<Eui64>,
    /// The answer to a registration.
    pub registration: Option<Registration>,
}

impl Registration {
    /// T of RFC 8505 s4.1: the sender counts its registrations, and registers the target of its solicitation instead of
    /// its source.
    pub const COUNTS: u8 = 1;
    /// R of RFC 8505 s4.1: the sender wants its address announced to the routing protocol; in an answer, it is (RFC 9010 s9.2.2).
    pub const ROUTED: u8 = 2;
    /// The flags that are not reserved: I, R and T (RFC 8505 s4.1).
    pub const FLAGS: u8 = 0x0f;

    /// The address that a solicitation with this option from `source` for `target` registers.
    pub const fn subject(&self, source: Address, target: Address) -> Address {
        if self.is_extended() { target } else { source }
    }
    /// True for the option of RFC 8505, which has a number.
    pub const fn is_extended(&self) -> bool {
        self.flags & Self::COUNTS != 0
    }
    /// True with the flag R in the option of RFC 8505.
    pub const fn is_routed(&self) -> bool {
        self.is_extended() && self.flags & Self::ROUTED != 0
    }
    /// The number of the registration, in the option of RFC 8505 (TID).
    pub fn number(&self) -> Option<Sequence> {
        self.is_extended().then_some(Sequence(self.transaction_id))
    }
}

impl Solicitation {
    /// Reads what is behind the checksum.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(SOLICITATION, body);
        reader.u32_be("reserved")?;
        let target = target(&mut reader)?;
        let wrong = reader.error("length of the registration", Problem::Length);
        let options = Options::parse(&mut reader)?;
        // RFC 6775 s6.5: the whole solicitation is ignored then. Longer options carry the proofs of RFC 8928.
        if options.odd_registration {
            return Err(wrong);
        }
        Ok(Self { target, source_node: options.source_node, registration: options.registration })
    }
    /// Appends what is behind the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.target.0);
        emit_node(SOURCE_LINK_LAYER_ADDRESS, self.source_node, out);
        emit_registration(self.registration, out);
    }
}

impl Advertisement {
    /// Reads what is behind the checksum.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(ADVERTISEMENT, body);
        let flags = reader.u32_be("flags")?;
        let target = target(&mut reader)?;
        let options = Options::parse(&mut reader)?;
        Ok(Self {
            router: flags >> 31 == 1,
            solicited: flags >> 30 & 1 == 1,
            overriding: flags >> 29 & 1 == 1,
            target,
            target_node: options.target_node,
            registration: options.registration,
        })
    }
    /// Appends what is behind the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = u32::from(self.router) << 31
            | u32::from(self.solicited) << 30
            | u32::from(self.overriding) << 29;
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&self.target.0);
        emit_node(TARGET_LINK_LAYER_ADDRESS, self.target_node, out);
        emit_registration(self.registration, out);
    }
}

fn target(reader: &mut Reader<'_>) -> Result<Address, DecodeError> {
    let wrong = reader.error("target", Problem::Value);
    let target = Address(reader.array("target")?);
    // RFC 4861 s7.1.1, s7.1.2: the target is not a multicast address.
    if target.is_multicast() { Err(wrong) } else { Ok(target) }
}

#[derive(Default)]
struct Options {
    source_node: Option<Eui64>,
    target_node: Option<Eui64>,
    registration: Option<Registration>,
    /// A registration of another length came.
    odd_registration: bool,
}

impl Options {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut options = Self::default();
        while !reader.is_empty() {
            let kind = reader.u8("option type")?;
            let wrong = reader.error("option length", Problem::Length);
            let units = reader.u8("option length")?;
            // RFC 4861 s7.1.1, s7.1.2: every option has a length greater than zero.
            let octets = (usize::from(units) * UNIT).checked_sub(2).ok_or(wrong)?;
            let mut body = Reader::new("option", reader.take(octets, "option")?);
            let of_a_node = units == UNITS;
            match kind {
                SOURCE_LINK_LAYER_ADDRESS => options.source_node = parse_node(units, &mut body)?,
                TARGET_LINK_LAYER_ADDRESS => options.target_node = parse_node(units, &mut body)?,
                ADDRESS_REGISTRATION if of_a_node => {
                    let status = body.u8("status")?;
                    let [opaque, flags, transaction_id] = body.array("flags")?;
                    let lifetime_minutes = body.u16_be("registration lifetime")?;
                    let node = Eui64(body.array("EUI-64")?);
                    options.registration = Some(Registration {
                        status,
                        opaque,
                        flags,
                        transaction_id,
                        lifetime_minutes,
                        node,
                    });
                }
                ADDRESS_REGISTRATION => options.odd_registration = true,
                // RFC 4861 s4.6: what is not known is skipped.
                _ => {}
            }
        }
        Ok(options)
    }
}

/// The node that a link-layer address option names: RFC 4944 s8, one unit for a short address, two for an EUI-64. None for
/// the short addresses 0xffff and 0xfffe, which name no node.
pub(crate) fn parse_node(units: u8, body: &mut Reader<'_>) -> Result<Option<Eui64>, DecodeError> {
    Ok(match units {
        SHORT_UNITS => match ShortAddr(body.u16_be("link-layer address")?) {
            ShortAddr::BROADCAST | ShortAddr::NONE => None,
            short => Some(short.eui64()),
        },
        UNITS => Some(Eui64(body.array("link-layer address")?)),
        _ => None,
    })
}

pub(crate) fn emit_node(kind: u8, node: Option<Eui64>, out: &mut Vec<u8>) {
    if let Some(Eui64(octets)) = node {
        out.extend_from_slice(&[kind, UNITS]);
        out.extend_from_slice(&octets);
        out.extend_from_slice(&[0; 6]);
    }
}

fn emit_registration(registration: Option<Registration>, out: &mut Vec<u8>) {
    if let Some(one) = registration {
        let Registration { status, opaque, flags, transaction_id, .. } = one;
        let head = [ADDRESS_REGISTRATION, UNITS, status, opaque, flags, transaction_id];
        out.extend_from_slice(&head);
        out.extend_from_slice(&one.lifetime_minutes.to_be_bytes());
        out.extend_from_slice(&one.node.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    const NODE: Eui64 = NodeId(7).eui64();

    const REGISTRATION: Registration = Registration {
        status: 2,
        opaque: 9,
        flags: 1,
        transaction_id: 77,
        lifetime_minutes: 60,
        node: NODE,
    };

    fn solicitation() -> Solicitation {
        let target = Address::link_local(NODE);
        Solicitation { target, source_node: Some(NODE), registration: Some(REGISTRATION) }
    }
    fn advertisement() -> Advertisement {
        Advertisement {
            router: true,
            solicited: false,
            overriding: true,
            target: Address::link_local(NODE),
            target_node: Some(NODE),
            registration: Some(REGISTRATION),
        }
    }

    #[test]
    fn messages_come_back_as_they_were() {
        for source_node in [None, Some(NODE)] {
            let message = Solicitation { source_node, registration: None, ..solicitation() };
            let mut body = Vec::new();
            message.emit(&mut body);
            assert_eq!(body.len() % UNIT, 4, "options fill whole units behind the 20 octets");
            assert_eq!(Solicitation::parse(&body), Ok(message));
        }
        for bits in 0..8_u8 {
            let [router, solicited, overriding] = [1, 2, 4].map(|bit| bits & bit != 0);
            let message = Advertisement { router, solicited, overriding, ..advertisement() };
            let mut body = Vec::new();
            message.emit(&mut body);
            assert_eq!(Advertisement::parse(&body), Ok(message));
        }
    }

    #[test]
    fn a_beginning_is_an_error_unless_it_ends_between_options() {
        let mut body = Vec::new();
        solicitation().emit(&mut body);
        for end in 0..body.len() {
            let whole = end == 20 || end == 36;
            assert_eq!(Solicitation::parse(&body[..end]).is_ok(), whole, "cut at {end}");
        }
        let mut body = Vec::new();
        advertisement().emit(&mut body);
        for end in 0..20 {
            assert!(Advertisement::parse(&body[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn an_option_without_length_is_refused_and_an_unknown_one_skipped() {
        let mut body = Vec::new();
        solicitation().emit(&mut body);
        let mut endless = body.clone();
        endless.extend_from_slice(&[14, 0, 0, 0, 0, 0, 0, 0]);
        let error = Solicitation::parse(&endless).expect_err("length 0");
        assert_eq!((error.field, error.problem), ("option length", Problem::Length));
        body.extend_from_slice(&[14, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Solicitation::parse(&body), Ok(solicitation()));
    }

    #[test]
    fn a_registration_of_another_length_spoils_a_solicitation_and_no_advertisement() {
        for units in [1_u8, 3, 5] {
            let mut option = vec![0; usize::from(units) * UNIT];
            option[..2].copy_from_slice(&[ADDRESS_REGISTRATION, units]);
            let mut body = Vec::new();
            Solicitation { registration: None, ..solicitation() }.emit(&mut body);
            body.extend_from_slice(&option);
            let error = Solicitation::parse(&body).expect_err("not two units");
            assert_eq!(error.problem, Problem::Length);
            let mut body = Vec::new();
            let plain = Advertisement { registration: None, ..advertisement() };
            plain.emit(&mut body);
            body.extend_from_slice(&option);
            assert_eq!(Advertisement::parse(&body), Ok(plain));
        }
    }

    #[test]
    fn a_short_address_names_its_node() {
        let mut body = Vec::new();
        Solicitation { source_node: None, registration: None, ..solicitation() }.emit(&mut body);
        body.extend_from_slice(&[1, 1, 0x12, 0x34, 0, 0, 0, 0]);
        let message = Solicitation::parse(&body).expect("one unit");
        assert_eq!(message.source_node, Some(ShortAddr(0x1234).eui64()));
    }

    #[test]
    fn nobody_asks_for_a_group() {
        let message = Solicitation { target: Address::ALL_NODES, ..solicitation() };
        let mut body = Vec::new();
        message.emit(&mut body);
        assert_eq!(Solicitation::parse(&body).map_err(|e| e.field), Err("target"));
    }
}
