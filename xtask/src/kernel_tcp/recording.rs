//! A recording of one sender: a line for each segment with its microseconds, its direction, its header and the octets of
//! its data.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

/// Octets of the headers of a pcap file and of its records.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// The server's address, which tells the directions apart.
const SERVER: [u8; 4] = [10, 9, 0, 2];
/// The protocol number of TCP.
const TCP: u8 = 6;

/// The lines of a capture of raw IPv4 packets with times in nanoseconds.
pub fn of(pcap: &[u8]) -> Result<String> {
    ensure!(
        pcap.starts_with(&0xa1b2_3c4d_u32.to_le_bytes()),
        "this is no pcap file with nanoseconds"
    );
    let mut rest = &pcap[FILE_HEADER..];
    let mut lines = String::new();
    let mut start = None;
    while !rest.is_empty() {
        let (header, behind) = rest.split_at_checked(RECORD_HEADER).context("half a record")?;
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (packet, behind) =
            behind.split_at_checked(field(8) as usize).context("half a packet")?;
        rest = behind;
        let at_us = u64::from(field(0)) * 1_000_000 + u64::from(field(4)) / 1_000;
        if let Some(line) = line(packet, at_us - *start.get_or_insert(at_us)) {
            writeln!(lines, "{line}").expect("a string takes all");
        }
    }
    Ok(lines)
}

fn line(packet: &[u8], at_us: u64) -> Option<String> {
    let ip_octets = usize::from(packet.first()? & 0xf) * 4;
    if *packet.get(9)? != TCP {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let segment = packet.get(ip_octets..total)?;
    let header_octets = usize::from(segment.get(12)? >> 4) * 4;
    let header = segment.get(..header_octets)?;
    let direction = if packet[12..16] == SERVER { "out" } else { "in" };
    let hex = header.iter().fold(String::new(), |text, octet| format!("{text}{octet:02x}"));
    Some(format!("{at_us} {direction} {hex} {}", segment.len() - header_octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_becomes_a_line_with_its_time_direction_header_and_length() {
        let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        packet
            .extend([0xa2, 0x18, 0x16, 0x33, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        packet.extend([b'r'; 4]);
        let mut pcap = vec![0; FILE_HEADER];
        pcap[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        for seconds in [5_u32, 6] {
            for field in [seconds, 7_000, packet.len() as u32, packet.len() as u32] {
                pcap.extend(field.to_le_bytes());
            }
            pcap.extend(&packet);
        }
        let header = "a21816330000000100000002501001000000 0000".replace(' ', "");
        let expected = format!("0 in {header} 4\n1000000 in {header} 4\n");
        assert_eq!(of(&pcap).expect("a whole file"), expected);
        assert!(of(&pcap[..pcap.len() - 1]).is_err());
    }
}
