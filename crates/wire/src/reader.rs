//! A cursor over bytes that names the header and field in its errors.

use crate::{DecodeError, Problem};

/// Reads fields one after the other; every read names the field, so that an error can.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    header: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`, which should hold a `header`.
    pub const fn new(header: &'static str, bytes: &'a [u8]) -> Self {
        Self { header, bytes, at: 0 }
    }
    /// Octets read so far.
    pub const fn position(&self) -> usize {
        self.at
    }
    /// Octets left.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }
    /// True when everything is read.
    pub const fn is_empty(&self) -> bool {
        self.remaining() == 0
    }
    /// All octets left, without moving.
    pub fn peek_rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }
    /// All octets left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }
    /// The next `n` octets.
    pub fn take(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        if self.remaining() < n {
            return Err(self.error(field, Problem::Truncated));
        }
        let taken = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(taken)
    }
    /// The next `N` octets as an array.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, field)?);
        Ok(array)
    }
    /// The next octet.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }
    /// Two octets, most significant first.
    pub fn u16_be(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array(field)?))
    }
    /// Two octets, least significant first.
    pub fn u16_le(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }
    /// Four octets, most significant first.
    pub fn u32_be(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }
    /// An error about `field` at the cursor.
    pub const fn error(&self, field: &'static str, problem: Problem) -> DecodeError {
        DecodeError { header: self.header, field, offset: self.at, problem }
    }
}
