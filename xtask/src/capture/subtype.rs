//! A copy of a capture in which 6P is marked as tshark 4.0 expects it.
//!
//! RFC 8480 s6.1 gave 6P the IETF IE sub-type 1, which is what our frames say. That version of tshark still
//! looks for 0xc9, the number used before the assignment, and leaves anything else unread. The messages behind it
//! are the same, so a copy with the old number shows whether they read well.

/// IETF IE sub-type of 6P: RFC 8480 s6.1.
const ASSIGNED: u8 = 1;
/// What was used before.
const BEFORE: u8 = 0xc9;

/// pcap: octets of the file's header and of a record's.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// 802.15.4 TAP: where its own length stands.
const TAP_LENGTH_AT: usize = 2;
const FCS_OCTETS: usize = 2;

/// Header Termination 1 IE, little-endian: payload IEs follow (IEEE 802.15.4-2015 s7.4.2.17).
const HEADER_TERMINATION_1: [u8; 2] = [0x00, 0x3f];
/// The upper five bits of a payload IE's descriptor: type payload, group 5, IETF (RFC 8137 s3).
const IETF_GROUP: u8 = 0x15;

/// The capture with every 6P message marked the old way, and how many there are.
pub fn with_former_subtype(capture: &[u8]) -> (Vec<u8>, u64) {
    let mut copy = capture.to_vec();
    let mut messages = 0;
    let mut at = FILE_HEADER;
    while let Some(length) = record_length(&copy, at) {
        let start = at + RECORD_HEADER;
        let end = start + length;
        let Some(record) = copy.get_mut(start..end) else { break };
        messages += u64::from(mark(record));
        at = end;
    }
    (copy, messages)
}

fn record_length(capture: &[u8], at: usize) -> Option<usize> {
    let octets = capture.get(at + 8..at + 12)?;
    Some(u32::from_le_bytes(octets.try_into().ok()?) as usize)
}

/// Changes the sub-type and the FCS of a frame with 6P in it; false for any other.
fn mark(record: &mut [u8]) -> bool {
    let Some(&tap) = record.get(TAP_LENGTH_AT) else { return false };
    let Some(frame) = record.get_mut(usize::from(tap)..) else { return false };
    let Some(body_length) = frame.len().checked_sub(FCS_OCTETS) else { return false };
    let (body, fcs) = frame.split_at_mut(body_length);
    let Some(place) = subtype_place(body) else { return false };
    body[place] = BEFORE;
    fcs.copy_from_slice(&checksum(body).to_le_bytes());
    true
}

fn subtype_place(body: &[u8]) -> Option<usize> {
    let pattern =
        |w: &[u8]| w[..2] == HEADER_TERMINATION_1 && w[3] >> 3 == IETF_GROUP && w[4] == ASSIGNED;
    body.windows(5).position(pattern).map(|at| at + 4)
}

/// The 802.15.4 FCS (IEEE 802.15.4-2015 s7.2.11): CRC-16 of ITU-T, reflected, from zero.
fn checksum(octets: &[u8]) -> u16 {
    let shift = |crc: u16| if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
    octets.iter().fold(0, |crc, octet| (0..8).fold(crc ^ u16::from(*octet), |crc, _| shift(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(frame: &[u8]) -> Vec<u8> {
        let mut file = vec![0; FILE_HEADER];
        let tap = [0, 0, 4, 0];
        let length = (tap.len() + frame.len() + FCS_OCTETS) as u32;
        file.extend([0; 8]);
        file.extend(length.to_le_bytes());
        file.extend([0; 4]);
        file.extend(tap);
        file.extend(frame);
        file.extend(checksum(frame).to_le_bytes());
        file
    }

    #[test]
    fn the_checksum_is_the_catalogues() {
        // CRC-16/KERMIT of the usual nine digits.
        assert_eq!(checksum(b"123456789"), 0x2189);
    }

    #[test]
    fn a_6p_message_is_marked_and_its_frame_stays_whole() {
        let frame = [0x21, 0xee, 7, 0x00, 0x3f, 0x05, 0xa8, 1, 0, 1, 0xf0, 0];
        let (copy, messages) = with_former_subtype(&capture(&frame));
        let mut expected = frame;
        expected[7] = BEFORE;
        assert_eq!((copy, messages), (capture(&expected), 1));
    }

    #[test]
    fn other_frames_and_broken_files_are_left_alone() {
        let plain = capture(&[0x41, 0xdc, 1, 2, 3]);
        assert_eq!(with_former_subtype(&plain), (plain.clone(), 0));
        for length in 0..plain.len() {
            assert_eq!(with_former_subtype(&plain[..length]), (plain[..length].to_vec(), 0));
        }
    }
}
