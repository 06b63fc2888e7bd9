//! The headers of a packet, found in one pass over its bytes (RFC 8200 s4): what each layer then reads or edits in place.

use core::ops::Range;

use lowmesh_machine::DropReason;
use lowmesh_wire::ipv6::{
    Extension, ExtensionKind, Extensions, Header, NEXT_HEADER_OFFSET, UpperLayer,
};

use crate::params::{RPL_OPTION, RPL_OPTION_RFC9008};

/// The fixed header of a packet, and where the others stand.
///
/// ```
/// use lowmesh_ipv6::Headers;
/// use lowmesh_ipv6::packet::{Flow, udp};
/// use lowmesh_wire::ipv6::Address;
///
/// let (source, destination) = (Address([0xfd; 16]), Address([0xfe; 16]));
/// let flow = Flow { source, destination, source_port: 5683, destination_port: 5683 };
/// let packet = udp(&flow, 64, b"ping", |_| ());
/// let headers = Headers::of_packet(&packet).unwrap();
/// assert_eq!((headers.ip.destination, headers.rpl_option()), (destination, None));
/// assert_eq!(headers.upper_layer().unwrap().offset, 40);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The fixed header. Who edits the packet edits it too.
    pub ip: Header,
    rpl_option: Option<Range<usize>>,
    routing: Option<Range<usize>>,
    upper_layer_field: usize,
    upper_layer: Result<UpperLayer, DropReason>,
    unknown: UnknownOptions,
}

/// Options that are not known here and that a node does not skip (RFC 8200 s4.2), the first of each header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct UnknownOptions {
    hop_by_hop: Option<UnknownOption>,
    destination: Option<UnknownOption>,
}

/// An option whose type is not known, and what its type asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOption {
    /// Octets from the start of the packet to its type.
    pub offset: usize,
    /// An ICMPv6 error goes to the source, unless the packet is for a group.
    pub is_reported: bool,
}

impl Headers {
    /// The headers of a whole packet, whose payload length has to agree with its bytes.
    pub fn of_packet(packet: &[u8]) -> Result<Self, DropReason> {
        let ip = Header::parse_packet(packet).map_err(|_| DropReason::Malformed)?;
        Self::behind(ip, packet)
    }
    /// The headers at the beginning of a packet.
    pub fn of_beginning(beginning: &[u8]) -> Result<Self, DropReason> {
        let ip = Header::parse(beginning).map_err(|_| DropReason::Malformed)?;
        Self::behind(ip, beginning)
    }

    fn behind(ip: Header, packet: &[u8]) -> Result<Self, DropReason> {
        let mut chain = Extensions::new(packet).map_err(|_| DropReason::Malformed)?;
        let (mut rpl_option, mut routing) = (None, None);
        let mut unknown = UnknownOptions::default();
        let (mut upper_layer_field, mut is_whole, mut is_first) = (NEXT_HEADER_OFFSET, true, true);
        for extension in chain.by_ref() {
            let Ok(extension) = extension else {
                is_whole = false;
                break;
            };
            // RFC 8200 s4.3: hop-by-hop options stand directly behind the IPv6 header.
            if is_first && extension.kind == ExtensionKind::HopByHop {
                rpl_option = find_rpl_option(&extension);
                unknown.hop_by_hop = find_unknown(&extension);
            }
            if extension.kind == ExtensionKind::DestinationOptions {
                unknown.destination = unknown.destination.or_else(|| find_unknown(&extension));
            }
            if extension.kind == ExtensionKind::Routing && routing.is_none() {
                routing = Some(extension.offset..extension.offset + extension.bytes.len());
            }
            upper_layer_field = extension.offset;
            is_first = false;
        }
        let upper_layer =
            if is_whole { Ok(chain.upper_layer()) } else { Err(DropReason::Malformed) };
        Ok(Self { ip, rpl_option, routing, upper_layer_field, upper_layer, unknown })
    }

    /// Where RPL's hop-by-hop option stands, type and length included; `None` without one.
    ///
    /// The bytes in the range may be edited in place; their number is fixed.
    pub fn rpl_option(&self) -> Option<Range<usize>> {
        self.rpl_option.clone()
    }
    /// Where the first routing header stands, whatever its type and what is left of its route.
    pub fn routing(&self) -> Option<Range<usize>> {
        self.routing.clone()
    }
    /// What follows the extension headers, unless one of them is bad.
    pub const fn upper_layer(&self) -> Result<UpperLayer, DropReason> {
        self.upper_layer
    }
    /// The hop-by-hop option for which every node discards the packet.
    pub const fn unknown_hop_by_hop(&self) -> Option<UnknownOption> {
        self.unknown.hop_by_hop
    }
    /// The option for which the destination discards the packet.
    pub fn unknown_option(&self) -> Option<UnknownOption> {
        self.unknown.hop_by_hop.or(self.unknown.destination)
    }
    /// The offset of the Next Header field that names the upper layer.
    pub const fn upper_layer_field(&self) -> usize {
        self.upper_layer_field
    }
}

fn find_rpl_option(hop_by_hop: &Extension<'_>) -> Option<Range<usize>> {
    let is_rpl = |kind| matches!(kind, RPL_OPTION | RPL_OPTION_RFC9008);
    let option = hop_by_hop.options().map_while(Result::ok).find(|option| is_rpl(option.kind))?;
    let start = hop_by_hop.offset + 2 + option.offset;
    Some(start..start + option.octets())
}

/// RFC 8200 s4.2: the two highest bits of an option's type tell what a node does that does not know it: 0 skips the
/// option, 1 discards the packet, 2 and 3 tell the source too.
fn find_unknown(extension: &Extension<'_>) -> Option<UnknownOption> {
    let is_hop_by_hop = extension.kind == ExtensionKind::HopByHop;
    let is_known = |kind| is_hop_by_hop && matches!(kind, RPL_OPTION | RPL_OPTION_RFC9008);
    let mut options = extension.options().map_while(Result::ok);
    let option = options.find(|option| option.kind >> 6 != 0 && !is_known(option.kind))?;
    let offset = extension.offset + 2 + option.offset;
    Some(UnknownOption { offset, is_reported: option.kind >> 6 >= 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::plain;
    use crate::source_route;
    use lowmesh_wire::ipv6::{Address, next_header};

    const FROM: Address = Address([0xfd; 16]);
    const TO: Address = Address([0xfc; 16]);

    fn packet(next_header: u8, options: &[u8]) -> Vec<u8> {
        plain(FROM, TO, next_header, 1, &[155, 1], |out| out.extend_from_slice(options))
    }
    fn rpl_option(options: &[u8]) -> Option<Range<usize>> {
        Headers::of_packet(&packet(next_header::NONE, options)).expect("own packet").rpl_option()
    }

    #[test]
    fn rpls_option_is_found_behind_padding_and_only_there() {
        assert_eq!(rpl_option(&[0, 1, 1, 0, RPL_OPTION_RFC9008, 1, 7]), Some(46..49));
        assert_eq!(rpl_option(&[0x1e, 2, RPL_OPTION, 0]), None);
        assert_eq!(rpl_option(&[]), None);
    }

    #[test]
    fn one_pass_finds_option_route_and_upper_layer() {
        let mut bytes = packet(next_header::ICMPV6, &[RPL_OPTION, 4, 0, 0, 1, 0]);
        assert!(source_route::insert(&mut bytes, &[FROM]));
        let headers = Headers::of_packet(&bytes).expect("own packet");
        assert_eq!(headers.ip.destination, FROM);
        assert_eq!((headers.rpl_option(), headers.routing()), (Some(42..48), Some(48..72)));
        let upper = UpperLayer { next_header: next_header::ICMPV6, offset: 72 };
        assert_eq!((headers.upper_layer(), headers.upper_layer_field()), (Ok(upper), 48));
    }

    #[test]
    fn a_bad_header_hides_what_is_behind_it_and_nothing_before() {
        let mut bytes = packet(next_header::ICMPV6, &[RPL_OPTION, 4, 0, 0, 1, 0]);
        assert!(source_route::insert(&mut bytes, &[FROM]));
        // The routing header claims more octets than the packet has.
        bytes[49] = 99;
        let headers = Headers::of_packet(&bytes).expect("its fixed header is good");
        assert_eq!((headers.rpl_option(), headers.routing()), (Some(42..48), None));
        assert_eq!(headers.upper_layer(), Err(DropReason::Malformed));
        assert_eq!(Headers::of_packet(&bytes[..60]), Err(DropReason::Malformed));
        assert!(Headers::of_beginning(&bytes[..60]).is_ok());
        assert_eq!(Headers::of_beginning(&bytes[..39]), Err(DropReason::Malformed));
    }
}
