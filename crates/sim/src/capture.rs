//! Writing frames to a pcap file that Wireshark opens: link type 283, IEEE 802.15.4 TAP, which keeps the
//! channel, the level and the slot beside each frame.
//!
//! The TAP header is a list of type-length-value fields, all little-endian (interoperability facts: Wireshark reads them).

use std::io::{self, Write};

use lowmesh_units::{Asn, Channel, Dbm, Instant};
use lowmesh_wire::ieee802154::fcs;
use lowmesh_wire::pcap;

/// LINKTYPE_IEEE802_15_4_TAP in the registry of link types.
const LINK_TYPE: u32 = 283;
/// Longest record: the TAP header and a PHY packet.
const SNAP_LENGTH: u32 = 256;

/// TLV types of the TAP header.
mod tlv {
    pub const FCS_TYPE: u16 = 0;
    pub const RSS: u16 = 1;
    pub const CHANNEL: u16 = 3;
    pub const ASN: u16 = 7;
}

/// A pcap file being written.
pub struct Capture {
    out: Box<dyn Write + Send>,
    record: Vec<u8>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

/// What is known of a frame on the air.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The time at which the frame started.
    pub at: Instant,
    /// In which slot, under TSCH.
    pub asn: Option<Asn>,
    /// On which channel.
    pub channel: Channel,
    /// How strong it was sent.
    pub level: Dbm,
    /// The frame without FCS.
    pub octets: &'a [u8],
}

impl Capture {
    /// Writes the file header.
    pub fn new(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        out.write_all(&pcap::file_header(LINK_TYPE, SNAP_LENGTH))?;
        Ok(Self { out, record: Vec::with_capacity(256) })
    }

    /// Adds a frame, with its FCS.
    pub fn write(&mut self, frame: Captured<'_>) -> io::Result<()> {
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(&[0; 4]);
        // Value 1: a 16-bit FCS follows the frame.
        put(record, tlv::FCS_TYPE, &[1]);
        put(record, tlv::RSS, &(frame.level.0 as f32).to_le_bytes());
        let channel = u16::from(frame.channel.number()).to_le_bytes();
        put(record, tlv::CHANNEL, &[channel[0], channel[1], 0]);
        if let Some(asn) = frame.asn {
            put(record, tlv::ASN, &asn.0.to_le_bytes());
        }
        let length = record.len() as u16;
        record[2..4].copy_from_slice(&length.to_le_bytes());
        record.extend_from_slice(frame.octets);
        record.extend_from_slice(&fcs(frame.octets).to_le_bytes());
        self.out.write_all(&pcap::record_header(frame.at.as_nanos(), record.len() as u32))?;
        self.out.write_all(record)
    }

    /// Writes what is still in a buffer.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Appends a TLV: type, length, value padded to four octets.
fn put(record: &mut Vec<u8>, tlv: u16, value: &[u8]) {
    record.extend_from_slice(&tlv.to_le_bytes());
    record.extend_from_slice(&(value.len() as u16).to_le_bytes());
    record.extend_from_slice(value);
    record.resize(record.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_record_holds_the_frame_its_fcs_and_its_place() {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let mut capture = Capture::new(Box::new(Shared(bytes.clone()))).expect("memory");
        let octets = [0x02, 0x00, 0x6a];
        let channel = Channel::new(15).expect("in the band");
        let (at, asn, level) = (Instant::from_millis(1_500), Some(Asn(150)), Dbm(0.0));
        capture.write(Captured { at, asn, channel, level, octets: &octets }).expect("memory");
        capture.finish().expect("memory");
        let bytes = bytes.lock().expect("one thread");
        let record = &bytes[24..];
        assert_eq!(record[0..4], 1_u32.to_le_bytes());
        assert_eq!(record[4..8], 500_000_000_u32.to_le_bytes());
        let tap_length = u16::from_le_bytes([record[18], record[19]]) as usize;
        assert_eq!(record[16 + tap_length..], [0x02, 0x00, 0x6a, 0xe4, 0x79]);
        assert!(record[16..].windows(3).any(|w| w == [15, 0, 0]));
    }
}
