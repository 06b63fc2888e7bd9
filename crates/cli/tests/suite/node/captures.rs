//! A reader of captures: pcap with IEEE 802.15.4 TAP, as the simulator and a node write them.

use std::path::Path;

use lowmesh_wire::ieee802154::fcs;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const FCS: usize = 2;

/// A frame of a capture.
pub struct Captured {
    /// Since 1970.
    pub seconds: u32,
    /// Without FCS.
    pub octets: Vec<u8>,
}

impl Captured {
    /// True for anything but an acknowledgement, which has three octets.
    pub fn is_data(&self) -> bool {
        self.octets.len() > 3
    }
}

/// Reads all frames; each FCS must be right.
pub fn read(file: &Path) -> Vec<Captured> {
    let bytes = std::fs::read(file).expect("the capture is there");
    let number = |at: usize| {
        let octets: [u8; 4] = bytes[at..at + 4].try_into().expect("four octets");
        u32::from_le_bytes(octets)
    };
    assert_eq!((number(0), number(20)), (0xa1b2_3c4d, 283), "nanoseconds, IEEE 802.15.4 TAP");
    let (mut at, mut frames) = (FILE_HEADER, Vec::new());
    while at < bytes.len() {
        let (seconds, length) = (number(at), number(at + 8) as usize);
        let record = &bytes[at + RECORD_HEADER..][..length];
        let tap = usize::from(u16::from_le_bytes([record[2], record[3]]));
        let (octets, sum) = record[tap..].split_at(length - tap - FCS);
        assert_eq!(fcs(octets).to_le_bytes(), sum, "the FCS of {octets:02x?}");
        frames.push(Captured { seconds, octets: octets.to_vec() });
        at += RECORD_HEADER + length;
    }
    frames
}
