//! Information elements of IEEE 802.15.4-2015 s7.4: header IEs, payload IEs, the nested MLME IEs that TSCH
//! needs, and the IETF IE that carries 6P (RFC 8480 s6.1).
//!
//! ```text
//!  header IE   | length 7 | element ID 8 | 0 |     payload IE | length 11 | group ID 4 | 1 |
//!  nested IE   | length 8 | sub-ID 7     | 0 |     (long)     | length 11 | sub-ID 4   | 1 |
//! ```

use alloc::vec::Vec;

use lowmesh_units::Asn;

use crate::{DecodeError, Problem, Reader};

/// Header IE element IDs, Table 7-7.
mod element {
    pub const TIME_CORRECTION: u8 = 0x1e;
    pub const TERMINATION_1: u8 = 0x7e;
    pub const TERMINATION_2: u8 = 0x7f;
}
/// Payload IE group IDs, Table 7-15.
mod group {
    pub const MLME: u8 = 1;
    pub const IETF: u8 = 5;
    pub const TERMINATION: u8 = 0xf;
}
/// Nested IE sub-IDs, Tables 7-16 and 7-17.
mod nested {
    pub const SYNCHRONIZATION: u8 = 0x1a;
    pub const SLOTFRAME_AND_LINK: u8 = 0x1b;
    pub const TIMESLOT: u8 = 0x1c;
    pub const CHANNEL_HOPPING: u8 = 0x09;
}
/// Sub-type of the IETF IE that holds a 6P message, as it is sent: 201, the number of the drafts, which
/// Contiki-NG and OpenWSN send and Wireshark knows. The registry of RFC 8137 has 1, which is read as well.
pub const IETF_SUBTYPE_6TOP: u8 = 0xc9;
/// The sub-type that RFC 8480 s7.1 registered.
pub const IETF_SUBTYPE_6TOP_REGISTERED: u8 = 0x01;

/// Header IEs as checked bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderIes<'a>(&'a [u8]);

/// Payload IEs as checked bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadIes<'a>(&'a [u8]);

/// Moves over the header IEs; tells whether payload IEs follow (termination 1) or not.
pub(crate) fn skip_header_ies<'a>(
    reader: &mut Reader<'a>,
) -> Result<(HeaderIes<'a>, bool), DecodeError> {
    let all = reader.peek_rest();
    let start = reader.position();
    loop {
        let end = reader.position() - start;
        if reader.is_empty() {
            return Ok((HeaderIes(&all[..end]), false));
        }
        let descriptor = reader.u16_le("header IE descriptor")?;
        let (length, id) = (usize::from(descriptor & 0x7f), (descriptor >> 7 & 0xff) as u8);
        if descriptor >> 15 == 1 {
            return Err(reader.error("header IE type", Problem::Value));
        }
        match id {
            element::TERMINATION_1 => return Ok((HeaderIes(&all[..end]), true)),
            element::TERMINATION_2 => return Ok((HeaderIes(&all[..end]), false)),
            _ => {
                reader.take(length, "header IE content")?;
            }
        }
    }
}

/// Moves over the payload IEs up to their termination or the end of the frame.
pub(crate) fn skip_payload_ies<'a>(reader: &mut Reader<'a>) -> Result<PayloadIes<'a>, DecodeError> {
    let all = reader.peek_rest();
    let start = reader.position();
    loop {
        let end = reader.position() - start;
        if reader.is_empty() {
            return Ok(PayloadIes(&all[..end]));
        }
        let descriptor = reader.u16_le("payload IE descriptor")?;
        let (length, id) = (usize::from(descriptor & 0x7ff), (descriptor >> 11 & 0xf) as u8);
        if descriptor >> 15 == 0 {
            return Err(reader.error("payload IE type", Problem::Value));
        }
        if id == group::TERMINATION {
            return Ok(PayloadIes(&all[..end]));
        }
        reader.take(length, "payload IE content")?;
    }
}

/// Cuts one element off the front: (ID field, content, rest). `None` at the end.
fn cut<const LENGTH_BITS: u32, const ID_BITS: u32>(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    let descriptor = u16::from_le_bytes(*head);
    let length = usize::from(descriptor & ((1 << LENGTH_BITS) - 1));
    let id = (descriptor >> LENGTH_BITS & ((1 << ID_BITS) - 1)) as u8;
    let (content, rest) = rest.split_at_checked(length)?;
    Some((id, content, rest))
}

impl<'a> HeaderIes<'a> {
    /// The elements as (ID, content).
    pub fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let (id, content, rest) = cut::<7, 8>(left)?;
            left = rest;
            Some((id, content))
        })
    }
    /// The ACK/NACK time correction (s7.4.2.7): microseconds by which the frame came too early, and whether it
    /// was refused.
    pub fn time_correction(self) -> Option<TimeCorrection> {
        let (_, content) = self.iter().find(|(id, _)| *id == element::TIME_CORRECTION)?;
        let info = u16::from_le_bytes(content.try_into().ok()?);
        // Twelve bits, two's complement.
        let micros = (info << 4).cast_signed() >> 4;
        Some(TimeCorrection { micros, nack: info & 0x8000 != 0 })
    }
}

impl<'a> PayloadIes<'a> {
    /// The elements as (group ID, content).
    pub fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let (id, content, rest) = cut::<11, 4>(left)?;
            left = rest;
            Some((id, content))
        })
    }
    /// The 6P message of the 6top IE, if there is one.
    pub fn sixtop(self) -> Option<&'a [u8]> {
        self.iter().filter(|(id, _)| *id == group::IETF).find_map(|(_, content)| {
            let (subtype, message) = content.split_first()?;
            matches!(*subtype, IETF_SUBTYPE_6TOP | IETF_SUBTYPE_6TOP_REGISTERED).then_some(message)
        })
    }
    /// What an enhanced beacon says of its TSCH network.
    pub fn tsch(self) -> Result<Option<TschBeacon>, DecodeError> {
        let Some((_, mut left)) = self.iter().find(|(id, _)| *id == group::MLME) else {
            return Ok(None);
        };
        let mut beacon = None;
        let mut links = Vec::new();
        let (mut timeslot_id, mut hopping_id) = (0, 0);
        while let Some((id, long, content, rest)) = cut_nested(left) {
            left = rest;
            let mut reader = Reader::new("MLME IE", content);
            match (id, long) {
                (nested::SYNCHRONIZATION, false) => {
                    let asn: [u8; 5] = reader.array("ASN")?;
                    let mut wide = [0; 8];
                    wide[..5].copy_from_slice(&asn);
                    beacon = Some((Asn(u64::from_le_bytes(wide)), reader.u8("join metric")?));
                }
                (nested::SLOTFRAME_AND_LINK, false) => links = parse_slotframes(&mut reader)?,
                (nested::TIMESLOT, false) => timeslot_id = reader.u8("timeslot ID")?,
                (nested::CHANNEL_HOPPING, true) => hopping_id = reader.u8("hopping sequence ID")?,
                _ => {}
            }
        }
        Ok(beacon.map(|(asn, join_metric)| TschBeacon {
            asn,
            join_metric,
            timeslot_id,
            hopping_id,
            slotframes: links,
        }))
    }
}

/// Cuts one nested IE off the front: (sub-ID, long form?, content, rest).
fn cut_nested(bytes: &[u8]) -> Option<(u8, bool, &[u8], &[u8])> {
    let long = bytes.get(1)? & 0x80 != 0;
    let (id, content, rest) = if long { cut::<11, 4>(bytes)? } else { cut::<8, 7>(bytes)? };
    Some((id, long, content, rest))
}

/// What the acknowledgement of a TSCH frame says of its timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCorrection {
    /// Microseconds from the start of the frame to the moment at which its receiver expected it, -2048 to 2047:
    /// positive when the frame came early. Contiki-NG (`estimated_drift` in tsch-slot-operation.c) and OpenWSN
    /// have the same sign.
    pub micros: i16,
    /// The receiver heard the frame and had no room for it.
    pub nack: bool,
}

/// The TSCH part of an enhanced beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TschBeacon {
    /// Slot in which the beacon is sent.
    pub asn: Asn,
    /// Join metric (join priority): hops to the network's coordinator, in some unit of its own.
    pub join_metric: u8,
    /// Which timing of slots; 0 is the default of s8.4.3.3.3.
    pub timeslot_id: u8,
    /// Which hopping sequence; 0 is the default of s6.2.10.
    pub hopping_id: u8,
    /// The slotframes that a joining node is to install.
    pub slotframes: Vec<SlotframeSpec>,
}

/// A slotframe in a beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotframeSpec {
    /// Its handle.
    pub handle: u8,
    /// Slots in it.
    pub length: u16,
    /// Its cells.
    pub links: Vec<LinkSpec>,
}

/// A cell in a beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Slot in the slotframe.
    pub slot: u16,
    /// Channel offset.
    pub channel_offset: u16,
    /// Link options: bit 0 Tx, 1 Rx, 2 shared, 3 timekeeping.
    pub options: u8,
}

fn parse_slotframes(reader: &mut Reader<'_>) -> Result<Vec<SlotframeSpec>, DecodeError> {
    let count = reader.u8("number of slotframes")?;
    let mut slotframes = Vec::new();
    for _ in 0..count {
        let handle = reader.u8("slotframe handle")?;
        let length = reader.u16_le("slotframe size")?;
        let cells = reader.u8("number of links")?;
        let mut links = Vec::new();
        for _ in 0..cells {
            links.push(LinkSpec {
                slot: reader.u16_le("link timeslot")?,
                channel_offset: reader.u16_le("link channel offset")?,
                options: reader.u8("link options")?,
            });
        }
        slotframes.push(SlotframeSpec { handle, length, links });
    }
    Ok(slotframes)
}

/// Appends the time correction IE (s7.4.2.7); an enhanced acknowledgement needs no termination after it.
pub fn emit_time_correction(correction: TimeCorrection, out: &mut Vec<u8>) {
    out.extend_from_slice(&(2 | u16::from(element::TIME_CORRECTION) << 7).to_le_bytes());
    let info = correction.micros.cast_unsigned() & 0x0fff | u16::from(correction.nack) << 15;
    out.extend_from_slice(&info.to_le_bytes());
}

/// Appends the end of an empty header IE list that payload IEs follow.
fn emit_termination_1(out: &mut Vec<u8>) {
    out.extend_from_slice(&(u16::from(element::TERMINATION_1) << 7).to_le_bytes());
}

fn emit_payload_descriptor(length: usize, id: u8, out: &mut Vec<u8>) {
    let descriptor = length as u16 & 0x7ff | u16::from(id) << 11 | 0x8000;
    out.extend_from_slice(&descriptor.to_le_bytes());
}

/// Appends the IEs of a frame that carries only a 6P `message`: termination 1, then the IETF IE.
///
/// The frame ends with the IE, so no payload termination is needed (s7.4.1).
pub fn emit_sixtop(message: &[u8], out: &mut Vec<u8>) {
    emit_termination_1(out);
    emit_payload_descriptor(message.len() + 1, group::IETF, out);
    out.push(IETF_SUBTYPE_6TOP);
    out.extend_from_slice(message);
}

/// Appends the IEs of an enhanced beacon: termination 1, then the MLME IE with its nested four.
pub fn emit_tsch(beacon: &TschBeacon, out: &mut Vec<u8>) {
    emit_termination_1(out);
    let mut content = Vec::with_capacity(32);
    let short = |length: usize, id: u8| (length as u16 & 0xff | u16::from(id) << 8).to_le_bytes();
    content.extend_from_slice(&short(6, nested::SYNCHRONIZATION));
    content.extend_from_slice(&beacon.asn.0.to_le_bytes()[..5]);
    content.push(beacon.join_metric);
    content.extend_from_slice(&short(1, nested::TIMESLOT));
    content.push(beacon.timeslot_id);
    let hopping = 1 | u16::from(nested::CHANNEL_HOPPING) << 11 | 0x8000;
    content.extend_from_slice(&hopping.to_le_bytes());
    content.push(beacon.hopping_id);
    let octets: usize = 1 + beacon.slotframes.iter().map(|s| 4 + 5 * s.links.len()).sum::<usize>();
    content.extend_from_slice(&short(octets, nested::SLOTFRAME_AND_LINK));
    content.push(beacon.slotframes.len() as u8);
    for slotframe in &beacon.slotframes {
        content.push(slotframe.handle);
        content.extend_from_slice(&slotframe.length.to_le_bytes());
        content.push(slotframe.links.len() as u8);
        for link in &slotframe.links {
            content.extend_from_slice(&link.slot.to_le_bytes());
            content.extend_from_slice(&link.channel_offset.to_le_bytes());
            content.push(link.options);
        }
    }
    emit_payload_descriptor(content.len(), group::MLME, out);
    out.extend_from_slice(&content);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beacon() -> TschBeacon {
        let link = LinkSpec { slot: 0, channel_offset: 0, options: 0x0f };
        TschBeacon {
            asn: Asn(0x12_3456_789a),
            join_metric: 3,
            timeslot_id: 0,
            hopping_id: 0,
            slotframes: Vec::from([SlotframeSpec {
                handle: 0,
                length: 101,
                links: Vec::from([link]),
            }]),
        }
    }

    #[test]
    fn a_beacon_reads_back_and_never_reads_differently_when_cut() {
        let mut bytes = Vec::new();
        emit_tsch(&beacon(), &mut bytes);
        let mut reader = Reader::new("test", &bytes);
        let (_, payload_ies_follow) = skip_header_ies(&mut reader).expect("own output");
        assert!(payload_ies_follow);
        let ies = skip_payload_ies(&mut reader).expect("own output");
        assert_eq!(ies.tsch(), Ok(Some(beacon())));
        for end in 3..bytes.len() {
            let mut cut = Reader::new("test", &bytes[2..end]);
            assert!(skip_payload_ies(&mut cut).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn time_corrections_keep_their_sign() {
        for micros in [-2048, -1, 0, 1, 500, 2047] {
            for nack in [false, true] {
                let correction = TimeCorrection { micros, nack };
                let mut bytes = Vec::new();
                emit_time_correction(correction, &mut bytes);
                assert_eq!(HeaderIes(&bytes).time_correction(), Some(correction));
            }
        }
    }

    #[test]
    fn a_6p_message_is_found_behind_other_elements() {
        let mut bytes = Vec::new();
        emit_payload_descriptor(3, 2, &mut bytes);
        bytes.extend_from_slice(&[1, 2, 3]);
        let mut sixtop = Vec::new();
        emit_sixtop(&[9, 8, 7], &mut sixtop);
        bytes.extend_from_slice(&sixtop[2..]);
        assert_eq!(PayloadIes(&bytes).sixtop(), Some(&[9, 8, 7][..]));
    }
}
