//! IP packets as an end sees them, in a file for Wireshark.

use std::io::{self, Write};

use lowmesh_units::Instant;
use lowmesh_wire::pcap;

use crate::params::EMULATED_PACKET_OCTETS_MAX;

/// LINKTYPE_RAW in the registry of link types: packets begin with the header of IP.
const LINK_TYPE: u32 = 101;

/// A capture file that is being written.
pub struct Capture(Box<dyn Write + Send>);

impl Capture {
    /// Writes the header of the file.
    pub fn new(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        out.write_all(&pcap::file_header(LINK_TYPE, EMULATED_PACKET_OCTETS_MAX as u32))?;
        Ok(Self(out))
    }
    pub(super) fn write(&mut self, at: Instant, packet: &[u8]) -> io::Result<()> {
        self.0.write_all(&pcap::record_header(at.as_nanos(), packet.len() as u32))?;
        self.0.write_all(packet)
    }
}
