//! The fixed parts of a capture file that Wireshark opens: the header of the file and the header of a record
//! (draft-ietf-opsawg-pcap), little-endian, with times in nanoseconds.

/// The mark of a file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The version of the format: 2.4.
const VERSION: (u16, u16) = (2, 4);
/// Octets of the header of a file.
pub const FILE_HEADER_OCTETS: usize = 24;
/// Octets of the header of a record.
pub const RECORD_HEADER_OCTETS: usize = 16;

/// The header of a file whose records hold at most `snap_length` octets each.
pub fn file_header(link_type: u32, snap_length: u32) -> [u8; FILE_HEADER_OCTETS] {
    let mut header = [0; FILE_HEADER_OCTETS];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..6].copy_from_slice(&VERSION.0.to_le_bytes());
    header[6..8].copy_from_slice(&VERSION.1.to_le_bytes());
    header[16..20].copy_from_slice(&snap_length.to_le_bytes());
    header[20..].copy_from_slice(&link_type.to_le_bytes());
    header
}

/// The header of a record of `octets` octets, `nanoseconds` after the start.
pub fn record_header(nanoseconds: u64, octets: u32) -> [u8; RECORD_HEADER_OCTETS] {
    const SECOND: u64 = 1_000_000_000;
    let mut header = [0; RECORD_HEADER_OCTETS];
    header[..4].copy_from_slice(&((nanoseconds / SECOND) as u32).to_le_bytes());
    header[4..8].copy_from_slice(&((nanoseconds % SECOND) as u32).to_le_bytes());
    header[8..12].copy_from_slice(&octets.to_le_bytes());
    header[12..].copy_from_slice(&octets.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_have_the_octets_that_the_draft_draws() {
        let file = file_header(101, 2_048);
        assert_eq!(file[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(file[8..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 101, 0, 0, 0]);
        let record = record_header(2_000_000_005, 300);
        assert_eq!(record, [2, 0, 0, 0, 5, 0, 0, 0, 0x2c, 1, 0, 0, 0x2c, 1, 0, 0]);
    }
}
