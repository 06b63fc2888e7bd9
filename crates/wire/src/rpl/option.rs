//! Options of RPL control messages (RFC 6550 s6.7), and the ETX object of the metric container (RFC 6551).
//!
//! An option that this codec gives no name is kept as bytes: a receiver ignores it (RFC 6550 s6.7.1), a
//! forwarder may pass it on.

use alloc::vec::Vec;

use super::Address;
use crate::{DecodeError, Problem, Reader};

// Option types: RFC 6550 s20.4.
const PAD1: u8 = 0x00;
const PADN: u8 = 0x01;
const METRIC_CONTAINER: u8 = 0x02;
const ROUTE_INFORMATION: u8 = 0x03;
const DODAG_CONFIGURATION: u8 = 0x04;
const TARGET: u8 = 0x05;
const TRANSIT_INFORMATION: u8 = 0x06;
const SOLICITED_INFORMATION: u8 = 0x07;
const PREFIX_INFORMATION: u8 = 0x08;
const TARGET_DESCRIPTOR: u8 = 0x09;
/// Routing-MC-Type of the ETX object: RFC 6551 s4.3.2.
const METRIC_ETX: u8 = 7;

/// One option of a control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RplOption {
    /// One octet of padding.
    Pad1,
    /// Two octets of padding and this many zeros.
    PadN(u8),
    /// DAG Metric Container.
    MetricContainer(Vec<Metric>),
    /// Route Information.
    RouteInformation(RouteInformation),
    /// DODAG Configuration.
    DodagConfiguration(DodagConfiguration),
    /// RPL Target.
    Target(Target),
    /// Transit Information, for the targets just before it.
    TransitInformation(TransitInformation),
    /// Solicited Information.
    SolicitedInformation(SolicitedInformation),
    /// Prefix Information.
    PrefixInformation(PrefixInformation),
    /// RPL Target Descriptor: an opaque tag of the target just before it.
    TargetDescriptor(u32),
    /// Any other option.
    Other {
        /// The option type.
        kind: u8,
        /// The option data.
        data: Vec<u8>,
    },
}

/// One object of a metric container: RFC 6551 s2.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Routing-MC-Type.
    pub kind: u8,
    /// P, C, O, R, A and precedence, as on the air.
    pub flags: u16,
    /// The object's body.
    pub data: Vec<u8>,
}

/// A prefix that can be reached through the root: RFC 6550 s6.7.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInformation {
    /// Bits of the prefix, up to 128.
    pub prefix_length: u8,
    /// Prf, 0 to 3 as on the air.
    pub preference: u8,
    /// Seconds, 0xffffffff for ever.
    pub lifetime: u32,
    /// The prefix, zeros after it.
    pub prefix: Address,
}

/// What the root decides for the whole DODAG: RFC 6550 s6.7.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DodagConfiguration {
    /// The four flags before A, bit 0 of the octet as the highest: [`RPI_0X23`](Self::RPI_0X23) and others. A router passes
    /// all of them on, also those that it does not know.
    pub flags: u8,
    /// A: authentication is in use.
    pub authentication: bool,
    /// PCS, 0 to 7.
    pub path_control_size: u8,
    /// DIOIntervalDoublings.
    pub interval_doublings: u8,
    /// DIOIntervalMin: Imin is 2 to this power, in milliseconds.
    pub interval_min: u8,
    /// DIORedundancyConstant, 0 for no suppression.
    pub redundancy: u8,
    /// DAGMaxRankIncrease, 0 for no limit.
    pub max_rank_increase: u16,
    /// MinHopRankIncrease.
    pub min_hop_rank_increase: u16,
    /// Objective Code Point.
    pub objective_code_point: u16,
    /// Default lifetime of routes, in lifetime units; 0xff for ever.
    pub default_lifetime: u8,
    /// Lifetime unit in seconds.
    pub lifetime_unit: u16,
}

/// A destination: RFC 6550 s6.7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bits of the prefix, up to 128.
    pub prefix_length: u8,
    /// The prefix or address, zeros after it.
    pub prefix: Address,
}

/// How the targets just before are reached: RFC 6550 s6.7.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransitInformation {
    /// E: the targets lie outside the RPL network.
    pub external: bool,
    /// I: the common ancestor of the old path and the new one ends the old one by a DCO (RFC 9009 s4.2).
    pub invalidates: bool,
    /// Preferences among parents.
    pub path_control: u8,
    /// Grows when the targets' owner has news.
    pub path_sequence: u8,
    /// In lifetime units; 0 is a No-Path, 0xff for ever.
    pub path_lifetime: u8,
    /// The parent, in non-storing mode.
    pub parent: Option<Address>,
}

/// Which DODAG a DIS asks for: RFC 6550 s6.7.9. `None` is a predicate that is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SolicitedInformation {
    /// V: only this version.
    pub version: Option<u8>,
    /// I: only this instance.
    pub instance: Option<u8>,
    /// D: only this DODAG.
    pub dodag_id: Option<Address>,
}

/// A prefix for addresses: RFC 6550 s6.7.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// Bits of the prefix, up to 128.
    pub prefix_length: u8,
    /// L: all addresses of the prefix are on this link.
    pub on_link: bool,
    /// A: addresses may be made from this prefix.
    pub autonomous: bool,
    /// R: `prefix` is the whole address of the sender.
    pub router_address: bool,
    /// Seconds, 0xffffffff for ever.
    pub valid_lifetime: u32,
    /// Seconds, 0xffffffff for ever.
    pub preferred_lifetime: u32,
    /// The prefix, or the address of the sender.
    pub prefix: Address,
}

impl Metric {
    /// An ETX metric of `value`, which is 128 times the ETX (RFC 6551 s4.3.2), aggregated by addition.
    pub fn etx(value: u16) -> Self {
        Self { kind: METRIC_ETX, flags: 0, data: value.to_be_bytes().to_vec() }
    }
    /// 128 times the ETX, if this is a well-formed ETX object.
    pub fn as_etx(&self) -> Option<u16> {
        let value = <[u8; 2]>::try_from(self.data.as_slice()).ok()?;
        (self.kind == METRIC_ETX).then(|| u16::from_be_bytes(value))
    }
}

impl RplOption {
    /// Reads options to the end.
    pub(super) fn parse_all(reader: &mut Reader) -> Result<Vec<Self>, DecodeError> {
        let mut options = Vec::new();
        while !reader.is_empty() {
            options.push(Self::parse(reader)?);
        }
        Ok(options)
    }
    /// Appends all `options`.
    pub(super) fn emit_all(options: &[Self], out: &mut Vec<u8>) {
        for option in options {
            option.emit(out);
        }
    }

    fn parse(outer: &mut Reader) -> Result<Self, DecodeError> {
        let kind = outer.u8("option type")?;
        if kind == PAD1 {
            return Ok(Self::Pad1);
        }
        let length = outer.u8("option length")?;
        let mut data = Reader::new("RPL option", outer.take(length.into(), "option data")?);
        let option = match kind {
            PADN => {
                data.rest();
                Self::PadN(length)
            }
            METRIC_CONTAINER => Self::MetricContainer(parse_metrics(&mut data)?),
            ROUTE_INFORMATION => Self::RouteInformation(RouteInformation::parse(&mut data)?),
            DODAG_CONFIGURATION => Self::DodagConfiguration(DodagConfiguration::parse(&mut data)?),
            TARGET => Self::Target(Target::parse(&mut data)?),
            TRANSIT_INFORMATION => Self::TransitInformation(TransitInformation::parse(&mut data)?),
            SOLICITED_INFORMATION => {
                Self::SolicitedInformation(SolicitedInformation::parse(&mut data)?)
            }
            PREFIX_INFORMATION => Self::PrefixInformation(PrefixInformation::parse(&mut data)?),
            TARGET_DESCRIPTOR => Self::TargetDescriptor(data.u32_be("descriptor")?),
            _ => Self::Other { kind, data: data.rest().to_vec() },
        };
        if data.is_empty() { Ok(option) } else { Err(data.error("option length", Problem::Length)) }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        if *self == Self::Pad1 {
            out.push(PAD1);
            return;
        }
        out.extend_from_slice(&[self.kind(), 0]);
        let start = out.len();
        match self {
            Self::Pad1 => {}
            Self::PadN(length) => out.resize(start + usize::from(*length), 0),
            Self::MetricContainer(metrics) => {
                for metric in metrics {
                    out.push(metric.kind);
                    out.extend_from_slice(&metric.flags.to_be_bytes());
                    out.push(metric.data.len() as u8);
                    out.extend_from_slice(&metric.data);
                }
            }
            Self::RouteInformation(route) => route.emit(out),
            Self::DodagConfiguration(configuration) => configuration.emit(out),
            Self::Target(target) => {
                out.extend_from_slice(&[0, target.prefix_length]);
                emit_prefix(&target.prefix, target.prefix_length, out);
            }
            Self::TransitInformation(transit) => transit.emit(out),
            Self::SolicitedInformation(solicited) => solicited.emit(out),
            Self::PrefixInformation(prefix) => prefix.emit(out),
            Self::TargetDescriptor(descriptor) => out.extend_from_slice(&descriptor.to_be_bytes()),
            Self::Other { data, .. } => out.extend_from_slice(data),
        }
        debug_assert!(out.len() - start <= 255, "an option has at most 255 octets of data");
        out[start - 1] = (out.len() - start) as u8;
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Pad1 => PAD1,
            Self::PadN(_) => PADN,
            Self::MetricContainer(_) => METRIC_CONTAINER,
            Self::RouteInformation(_) => ROUTE_INFORMATION,
            Self::DodagConfiguration(_) => DODAG_CONFIGURATION,
            Self::Target(_) => TARGET,
            Self::TransitInformation(_) => TRANSIT_INFORMATION,
            Self::SolicitedInformation(_) => SOLICITED_INFORMATION,
            Self::PrefixInformation(_) => PREFIX_INFORMATION,
            Self::TargetDescriptor(_) => TARGET_DESCRIPTOR,
            Self::Other { kind, .. } => *kind,
        }
    }
}

fn parse_metrics(data: &mut Reader) -> Result<Vec<Metric>, DecodeError> {
    let mut metrics = Vec::new();
    while !data.is_empty() {
        let kind = data.u8("Routing-MC-Type")?;
        let flags = data.u16_be("metric flags")?;
        let length = data.u8("metric length")?;
        metrics.push(Metric { kind, flags, data: data.take(length.into(), "metric")?.to_vec() });
    }
    Ok(metrics)
}

/// Reads a prefix of `bits`, in as many whole octets as it takes; octets after it are allowed, bits after
/// it are ignored (RFC 6550 s6.7.5 and s6.7.7).
fn parse_prefix(data: &mut Reader, bits: u8) -> Result<Address, DecodeError> {
    if bits > 128 {
        return Err(data.error("prefix length", Problem::Value));
    }
    let octets = usize::from(bits.div_ceil(8));
    let mut prefix = [0; 16];
    prefix[..octets].copy_from_slice(data.take(octets, "prefix")?);
    if !bits.is_multiple_of(8) {
        prefix[octets - 1] &= 0xff << (8 - bits % 8);
    }
    data.rest();
    Ok(prefix)
}

fn emit_prefix(prefix: &Address, bits: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&prefix[..usize::from(bits.min(128).div_ceil(8))]);
}

impl RouteInformation {
    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        let prefix_length = data.u8("prefix length")?;
        let preference = data.u8("preference")? >> 3 & 0x03;
        let lifetime = data.u32_be("route lifetime")?;
        Ok(Self { prefix_length, preference, lifetime, prefix: parse_prefix(data, prefix_length)? })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.prefix_length, (self.preference & 0x03) << 3]);
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        emit_prefix(&self.prefix, self.prefix_length, out);
    }
}

impl DodagConfiguration {
    /// Bit 3 of the flags: new RPL options in packets have the type 0x23 (RFC 9008 s4.1.3, s11.2).
    pub const RPI_0X23: u8 = 0b0001;
    /// T, bit 2 of the flags: the source of a packet compresses RPL's headers with 6LoRH (RFC 9035 s3).
    pub const SIXLORH: u8 = 0b0010;

    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        let flags = data.u8("flags, A, PCS")?;
        let interval_doublings = data.u8("DIOIntervalDoublings")?;
        let interval_min = data.u8("DIOIntervalMin")?;
        let redundancy = data.u8("DIORedundancyConstant")?;
        let max_rank_increase = data.u16_be("MaxRankIncrease")?;
        let min_hop_rank_increase = data.u16_be("MinHopRankIncrease")?;
        let objective_code_point = data.u16_be("OCP")?;
        data.u8("reserved")?;
        Ok(Self {
            flags: flags >> 4,
            authentication: flags & 0x08 != 0,
            path_control_size: flags & 0x07,
            interval_doublings,
            interval_min,
            redundancy,
            max_rank_increase,
            min_hop_rank_increase,
            objective_code_point,
            default_lifetime: data.u8("default lifetime")?,
            lifetime_unit: data.u16_be("lifetime unit")?,
        })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags =
            self.flags << 4 | u8::from(self.authentication) << 3 | (self.path_control_size & 0x07);
        out.extend_from_slice(&[flags, self.interval_doublings, self.interval_min]);
        out.push(self.redundancy);
        out.extend_from_slice(&self.max_rank_increase.to_be_bytes());
        out.extend_from_slice(&self.min_hop_rank_increase.to_be_bytes());
        out.extend_from_slice(&self.objective_code_point.to_be_bytes());
        out.extend_from_slice(&[0, self.default_lifetime]);
        out.extend_from_slice(&self.lifetime_unit.to_be_bytes());
    }
}

impl Target {
    /// The target that is one node: all 128 bits of `address`.
    pub const fn host(address: Address) -> Self {
        Self { prefix_length: 128, prefix: address }
    }
    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        data.u8("flags")?;
        let prefix_length = data.u8("prefix length")?;
        Ok(Self { prefix_length, prefix: parse_prefix(data, prefix_length)? })
    }
}

impl TransitInformation {
    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        let flags = data.u8("E, I, flags")?;
        let (external, invalidates) = (flags & 0x80 != 0, flags & 0x40 != 0);
        let path_control = data.u8("path control")?;
        let path_sequence = data.u8("path sequence")?;
        let path_lifetime = data.u8("path lifetime")?;
        let parent = if data.is_empty() { None } else { Some(data.array("parent address")?) };
        Ok(Self { external, invalidates, path_control, path_sequence, path_lifetime, parent })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.external) << 7 | u8::from(self.invalidates) << 6;
        out.extend_from_slice(&[flags, self.path_control]);
        out.extend_from_slice(&[self.path_sequence, self.path_lifetime]);
        out.extend_from_slice(self.parent.as_ref().map_or(&[][..], |parent| &parent[..]));
    }
}

impl SolicitedInformation {
    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        let instance = data.u8("RPLInstanceID")?;
        let flags = data.u8("V, I, D")?;
        let dodag_id = data.array("DODAGID")?;
        let version = data.u8("version number")?;
        Ok(Self {
            version: (flags & 0x80 != 0).then_some(version),
            instance: (flags & 0x40 != 0).then_some(instance),
            dodag_id: (flags & 0x20 != 0).then_some(dodag_id),
        })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.version.is_some()) << 7
            | u8::from(self.instance.is_some()) << 6
            | u8::from(self.dodag_id.is_some()) << 5;
        out.extend_from_slice(&[self.instance.unwrap_or(0), flags]);
        out.extend_from_slice(&self.dodag_id.unwrap_or([0; 16]));
        out.push(self.version.unwrap_or(0));
    }
}

impl PrefixInformation {
    fn parse(data: &mut Reader) -> Result<Self, DecodeError> {
        let prefix_length = data.u8("prefix length")?;
        if prefix_length > 128 {
            return Err(data.error("prefix length", Problem::Value));
        }
        let flags = data.u8("L, A, R")?;
        let valid_lifetime = data.u32_be("valid lifetime")?;
        let preferred_lifetime = data.u32_be("preferred lifetime")?;
        data.u32_be("reserved")?;
        Ok(Self {
            prefix_length,
            on_link: flags & 0x80 != 0,
            autonomous: flags & 0x40 != 0,
            router_address: flags & 0x20 != 0,
            valid_lifetime,
            preferred_lifetime,
            prefix: data.array("prefix")?,
        })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.on_link) << 7
            | u8::from(self.autonomous) << 6
            | u8::from(self.router_address) << 5;
        out.extend_from_slice(&[self.prefix_length, flags]);
        out.extend_from_slice(&self.valid_lifetime.to_be_bytes());
        out.extend_from_slice(&self.preferred_lifetime.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.prefix);
    }
}
