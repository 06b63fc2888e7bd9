//! The value of Block1 and Block2 (RFC 7959 s2.2).
//!
//! ```text
//!    0 1 2 3 4 5 6 7      NUM: 4, 12 or 20 bits, as the value has 1, 2 or 3 octets
//!   +-+-+-+-+-+-+-+-+     M: more blocks follow
//!   |  NUM  |M| SZX |     SZX: blocks have 2^(SZX + 4) octets; 7 is BERT on reliable transports
//!   +-+-+-+-+-+-+-+-+          and reserved on UDP
//! ```

use lowmesh_wire::coap::{OptionNumber, Options, OptionsIter, decode_uint};

/// Largest block number: RFC 7959 s2.2, 20 bits.
const NUMBER_MAX: u32 = (1 << 20) - 1;

/// The size of blocks, by its exponent SZX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exponent(u8);

impl Exponent {
    /// Blocks of 16 octets.
    pub const MIN: Self = Self(0);
    /// Blocks of 1024 octets, the largest on UDP.
    pub const MAX: Self = Self(6);
    /// Several blocks of 1024 octets in one message (RFC 8323 s6).
    pub const BERT: Self = Self(7);

    /// The exponent with this number; `None` above 7.
    pub const fn new(szx: u8) -> Option<Self> {
        if szx <= 7 { Some(Self(szx)) } else { None }
    }
    /// The largest whose blocks fit into `octets`, but no BERT; the smallest if none does.
    pub const fn fitting(octets: usize) -> Self {
        let mut szx = 6;
        while szx > 0 && 1 << (szx + 4) > octets {
            szx -= 1;
        }
        Self(szx)
    }
    /// The number in the option.
    pub const fn szx(self) -> u8 {
        self.0
    }
    /// Octets of a block; with BERT of one of the blocks that a message holds.
    pub const fn size(self) -> usize {
        let szx = if self.0 > 6 { 6 } else { self.0 };
        1 << (szx + 4)
    }
    /// Whether this is BERT.
    pub const fn is_bert(self) -> bool {
        self.0 == Self::BERT.0
    }
}

/// A block option: the part of a body that a message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number, from 0, in blocks of its size.
    pub number: u32,
    /// More blocks follow.
    pub more: bool,
    /// The size of blocks.
    pub exponent: Exponent,
}

impl Block {
    /// Reads the option among `options`: `Ok(None)` if it is not there, `Err` if its value has more
    /// than three octets.
    ///
    /// ```
    /// use lowmesh_coap::blockwise::Block;
    /// use lowmesh_wire::coap::{OptionNumber, Options};
    /// let mut options = Options::new();
    /// options.insert_uint(OptionNumber::BLOCK2, 0x2e);
    /// let block = Block::read(options.iter(), OptionNumber::BLOCK2).unwrap().unwrap();
    /// assert_eq!((block.number, block.more, block.exponent.size()), (2, true, 1024));
    /// ```
    pub fn read(options: OptionsIter<'_>, option: OptionNumber) -> Result<Option<Self>, BadBlock> {
        let Some(value) = options.values(option).next() else { return Ok(None) };
        let value = decode_uint(value).filter(|_| value.len() <= 3).ok_or(BadBlock)?;
        Ok(Some(Self::from_value(value)))
    }
    /// The block that a value of three octets stands for.
    pub const fn from_value(value: u32) -> Self {
        let exponent = Exponent(value as u8 & 7);
        Self { number: value >> 4, more: value & 8 != 0, exponent }
    }
    /// The block of this size that begins at `offset`, if it has a number.
    pub fn at(offset: usize, more: bool, exponent: Exponent) -> Option<Self> {
        let number = u32::try_from(offset / exponent.size()).ok()?;
        (number <= NUMBER_MAX).then_some(Self { number, more, exponent })
    }
    /// The value of the option.
    pub const fn value(self) -> u32 {
        self.number << 4 | (self.more as u32) << 3 | self.exponent.0 as u32
    }
    /// Sets the option among `options` to this block.
    pub fn write(self, options: &mut Options, option: OptionNumber) {
        options.set_uint(option, self.value());
    }
    /// The offset of the block in the body, in octets.
    pub const fn offset(self) -> usize {
        self.number as usize * self.exponent.size()
    }
    /// Whether `len` octets can be this block's: all of it, unless it is the last (RFC 7959 s2.2);
    /// with BERT any number of whole blocks (RFC 8323 s6).
    pub const fn admits(self, len: usize) -> bool {
        let size = self.exponent.size();
        match (self.exponent.is_bert(), self.more) {
            (false, true) => len == size,
            (false, false) => len <= size,
            (true, true) => len > 0 && len.is_multiple_of(size),
            (true, false) => true,
        }
    }
}

/// A block option whose value has more than three octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBlock;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &[u8]) -> Result<Option<Block>, BadBlock> {
        let mut options = Options::new();
        options.insert(OptionNumber::BLOCK1, value);
        Block::read(options.iter(), OptionNumber::BLOCK1)
    }

    #[test]
    fn the_examples_of_rfc_7959_s2_2_read_as_they_say() {
        // "NUM = 0, M = 0, SZX = 0" is the empty value; 33 is NUM 2, M 0, SZX 1: the third block of
        // 32; 59 is NUM 3, M 1, SZX 3: the fourth of 128.
        let block = |number, more, szx| Block { number, more, exponent: Exponent(szx) };
        assert_eq!(read(&[]), Ok(Some(block(0, false, 0))));
        assert_eq!(read(&[33]), Ok(Some(block(2, false, 1))));
        assert_eq!(read(&[59]), Ok(Some(block(3, true, 3))));
        assert_eq!(read(&[0, 0, 0, 59]), Err(BadBlock));
    }

    #[test]
    fn the_largest_block_that_fits_is_found() {
        for (octets, size) in [(0, 16), (16, 16), (63, 32), (64, 64), (1024, 1024), (9999, 1024)] {
            assert_eq!(Exponent::fitting(octets).size(), size);
        }
    }

    #[test]
    fn a_block_in_the_middle_is_whole_and_the_last_may_be_short() {
        let block = |more, szx| Block { number: 0, more, exponent: Exponent(szx) };
        assert!(block(true, 2).admits(64) && !block(true, 2).admits(63));
        assert!(block(false, 2).admits(0) && !block(false, 2).admits(65));
        assert!(block(true, 7).admits(3072) && !block(true, 7).admits(3000));
        assert!(!block(true, 7).admits(0) && block(false, 7).admits(3000));
    }

    #[test]
    fn an_offset_past_the_last_number_has_no_block() {
        let last = NUMBER_MAX as usize * 16;
        assert!(Block::at(last, false, Exponent::MIN).is_some());
        assert_eq!(Block::at(last + 16, false, Exponent::MIN), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in 0..=NUMBER_MAX, more: bool, szx in 0_u8..8) {
            let block = Block { number, more, exponent: Exponent(szx) };
            let mut options = Options::new();
            block.write(&mut options, OptionNumber::BLOCK2);
            prop_assert_eq!(Block::read(options.iter(), OptionNumber::BLOCK2), Ok(Some(block)));
            prop_assert_eq!(Block::at(block.offset(), more, block.exponent), Some(block));
        }
    }
}
