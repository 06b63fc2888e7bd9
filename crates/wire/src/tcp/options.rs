//! The options of a TCP header: maximum segment size (RFC 9293 s3.2), window scale and timestamps (RFC 7323), SACK
//! permitted and SACK (RFC 2018). Unknown options are skipped (RFC 9293 s3.2, MUST-6).

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// Octets that options may take: a data offset of 15 words without the fixed header (RFC 9293 s3.1).
pub const OPTIONS_OCTETS_MAX: usize = 40;
/// SACK blocks in one header: RFC 2018 s3, 4; with timestamps 3 fit.
pub const SACK_BLOCKS_MAX: usize = 4;

/// End of option list.
const END: u8 = 0;
/// No operation.
const NOP: u8 = 1;
/// Maximum segment size.
const MSS: u8 = 2;
/// Window scale.
const WINDOW_SCALE: u8 = 3;
/// SACK permitted.
const SACK_PERMITTED: u8 = 4;
/// SACK.
const SACK: u8 = 5;
/// Timestamps.
const TIMESTAMPS: u8 = 8;

/// The timestamps of RFC 7323 s3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the clock of the sender.
    pub value: u32,
    /// TSecr: the echo of the peer's clock, where ACK is set.
    pub echo: u32,
}

/// Data that arrived out of order: from the first octet to the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// The left edge.
    pub left: u32,
    /// The right edge.
    pub right: u32,
}

/// Up to [`SACK_BLOCKS_MAX`] blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; SACK_BLOCKS_MAX],
    count: u8,
}

impl SackBlocks {
    /// Adds a block, and says whether there was room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *place = block;
        self.count += 1;
        true
    }
    /// The blocks in the order of the header.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
    /// True without a block.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The options that this codec knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The largest segment that the sender accepts, in octets; in a SYN.
    pub mss: Option<u16>,
    /// The shift of the window; in a SYN. The codec takes any value (RFC 7323 s2.3: above 14 counts as 14).
    pub window_scale: Option<u8>,
    /// The sender accepts SACK; in a SYN.
    pub sack_permitted: bool,
    /// The timestamps.
    pub timestamps: Option<Timestamps>,
    /// What arrived out of order.
    pub sack: SackBlocks,
}

impl Options {
    /// Reads the octets between the fixed header and the data. Of an option that occurs twice the last one counts.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("TCP options", bytes);
        let mut options = Self::default();
        while !reader.is_empty() {
            match reader.u8("kind")? {
                END => break,
                NOP => {}
                kind => options.parse_one(kind, &mut reader)?,
            }
        }
        Ok(options)
    }
    fn parse_one(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let length = usize::from(reader.u8("length")?);
        if length < 2 {
            // RFC 9293 s3.2, MUST-7: an illegal length must not crash the receiver.
            return Err(reader.error("length", Problem::Value));
        }
        let value = reader.take(length - 2, "value")?;
        let wrong = |field| Err(reader.error(field, Problem::Length));
        match (kind, value) {
            (MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (MSS, _) => return wrong("maximum segment size"),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (WINDOW_SCALE, _) => return wrong("window scale"),
            (SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (SACK_PERMITTED, _) => return wrong("SACK permitted"),
            (TIMESTAMPS, value) if value.len() == 8 => {
                self.timestamps = Some(Timestamps { value: word(value, 0), echo: word(value, 4) });
            }
            (TIMESTAMPS, _) => return wrong("timestamps"),
            (SACK, value) if !value.is_empty() && value.len() % 8 == 0 => {
                self.sack = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    self.sack.push(SackBlock { left: word(block, 0), right: word(block, 4) });
                }
            }
            (SACK, _) => return wrong("SACK"),
            _ => {}
        }
        Ok(())
    }
    /// Writes the options and their padding; blocks of SACK that do not fit are left out.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if self.sack_permitted {
            // With timestamps the two octets take the place of their padding.
            let padding = if self.timestamps.is_some() { &[][..] } else { &[NOP, NOP] };
            out.extend_from_slice(padding);
            out.extend_from_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            if !self.sack_permitted {
                out.extend_from_slice(&[NOP, NOP]);
            }
            out.extend_from_slice(&[TIMESTAMPS, 10]);
            out.extend_from_slice(&timestamps.value.to_be_bytes());
            out.extend_from_slice(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        let blocks = self.blocks_that_fit();
        if !blocks.is_empty() {
            out.extend_from_slice(&[NOP, NOP, SACK, (2 + 8 * blocks.len()) as u8]);
            for block in blocks {
                out.extend_from_slice(&block.left.to_be_bytes());
                out.extend_from_slice(&block.right.to_be_bytes());
            }
        }
        debug_assert_eq!(out.len() - start, self.octets());
    }
    /// Octets of the options with their padding, a multiple of four.
    pub fn octets(&self) -> usize {
        let blocks = self.blocks_that_fit().len();
        self.octets_without_sack() + if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }
    fn octets_without_sack(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let timestamps_and_permitted = match (self.timestamps, self.sack_permitted) {
            (Some(_), _) => 12,
            (None, true) => 4,
            (None, false) => 0,
        };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        mss + timestamps_and_permitted + scale
    }
    pub(super) fn blocks_that_fit(&self) -> &[SackBlock] {
        let room = OPTIONS_OCTETS_MAX.saturating_sub(self.octets_without_sack() + 4) / 8;
        let blocks = self.sack.as_slice();
        &blocks[..blocks.len().min(room)]
    }
}

/// The four octets of `value` from `at`, which are there.
fn word(value: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]])
}
