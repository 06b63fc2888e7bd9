//! A capture of datagrams to the ZEP port, each in IPv4 and UDP headers of our making.

use std::io::{self, Write as _};
use std::path::Path;

use lowmesh_realtime::zep::PORT;

/// Raw IP, as libpcap numbers link types.
const LINKTYPE_RAW: u32 = 101;
const IPV4_OCTETS: usize = 20;
const UDP_OCTETS: usize = 8;

/// Writes the datagrams, a millisecond apart.
pub fn write(file: &Path, datagrams: &[Vec<u8>]) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(file)?);
    // Magic number, version 2.4, time zone, accuracy, longest packet.
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, LINKTYPE_RAW] {
        out.write_all(&word.to_le_bytes())?;
    }
    for (number, datagram) in datagrams.iter().enumerate() {
        let micros = number as u32 * 1_000;
        let length = (IPV4_OCTETS + UDP_OCTETS + datagram.len()) as u32;
        for word in [micros / 1_000_000, micros % 1_000_000, length, length] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&headers(datagram.len()))?;
        out.write_all(datagram)?;
    }
    out.flush()
}

/// IPv4 from 127.0.0.1 to itself, and UDP without checksum.
fn headers(octets: usize) -> [u8; IPV4_OCTETS + UDP_OCTETS] {
    let mut bytes = [0; IPV4_OCTETS + UDP_OCTETS];
    let total = (bytes.len() + octets) as u16;
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    (bytes[8], bytes[9]) = (64, 17);
    bytes[12..16].copy_from_slice(&[127, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[127, 0, 0, 1]);
    bytes[20..22].copy_from_slice(&PORT.to_be_bytes());
    bytes[22..24].copy_from_slice(&PORT.to_be_bytes());
    bytes[24..26].copy_from_slice(&((UDP_OCTETS + octets) as u16).to_be_bytes());
    bytes
}
