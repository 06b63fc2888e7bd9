//! The hops of a source route as SRH-6LoRH headers (RFC 8138 s4.3, s5.1, s5.4).
//!
//! ```text
//!   1 0 0 | size | type | size + 1 entries of 2^type octets | the next header, of another type ...
//! ```
//!
//! An entry replaces the last octets of an address that both ends know: for the first entry of all that of the source of
//! the packet, for each other one that of the entry before.

use alloc::vec::Vec;

use crate::ipv6::Address;
use crate::{DecodeError, Problem, Reader};

/// A header that a node must know (RFC 8138 s4.2).
pub(super) const CRITICAL: u8 = 0b1000_0000;
/// Types 0 to 4 of an SRH-6LoRH have entries of 1, 2, 4, 8 and 16 octets (RFC 8138 s5.1).
pub(super) const TYPE_MAX: u8 = 4;
const TYPES: usize = TYPE_MAX as usize + 1;
/// Size counts 1 to 32 entries in five bits.
pub(super) const SIZE_MASK: u8 = 0b0001_1111;
const ENTRIES_MAX: usize = SIZE_MASK as usize + 1;
/// Octets of a header before its entries.
const FIXED_OCTETS: usize = 2;

/// Octets of an entry.
const fn entry_octets(kind: usize) -> usize {
    1 << kind
}

/// The shortest type whose entry makes `address` out of `reference`.
fn shortest(reference: &Address, address: &Address) -> usize {
    let shared = reference.0.iter().zip(&address.0).take_while(|(a, b)| a == b).count();
    (0..TYPES).find(|kind| shared + entry_octets(*kind) >= 16).unwrap_or(TYPES - 1)
}

/// The types with which the entries of `path` and the headers around them take the fewest octets.
///
/// An entry may be longer than it has to be: a header of its own takes two octets more.
fn types(reference: &Address, path: &[Address]) -> Vec<usize> {
    const NEVER: usize = usize::MAX / 2;
    // For each entry and each type: octets from this entry on, and the type of the next one.
    let mut plan = alloc::vec![[(NEVER, 0); TYPES]; path.len()];
    for index in (0..path.len()).rev() {
        let before = index.checked_sub(1).map_or(reference, |before| &path[before]);
        let least = shortest(before, &path[index]);
        for kind in least..TYPES {
            let (rest, next) = match plan.get(index + 1) {
                None => (0, kind),
                Some(later) => (0..TYPES)
                    .map(|next| (later[next].0 + if next == kind { 0 } else { FIXED_OCTETS }, next))
                    // Of two encodings of equal length the one without another header.
                    .min_by_key(|(octets, next)| (*octets, *next != kind))
                    .unwrap_or((NEVER, kind)),
            };
            plan[index][kind] = (entry_octets(kind) + rest, next);
        }
    }
    let first = plan.first().and_then(|first| (0..TYPES).min_by_key(|kind| first[*kind].0));
    let mut kind = first.unwrap_or(0);
    let mut chosen = Vec::with_capacity(path.len());
    for step in &plan {
        chosen.push(kind);
        kind = step[kind].1;
    }
    chosen
}

/// Appends the SRH-6LoRH headers of a path.
pub(super) fn emit(reference: &Address, path: &[Address], out: &mut Vec<u8>) {
    let types = types(reference, path);
    let mut hops = path.iter();
    for run in types.chunk_by(|a, b| a == b) {
        for entries in run.chunks(ENTRIES_MAX) {
            let kind = entries[0];
            out.extend_from_slice(&[CRITICAL | (entries.len() - 1) as u8, kind as u8]);
            for hop in hops.by_ref().take(entries.len()) {
                out.extend_from_slice(&hop.0[16 - entry_octets(kind)..]);
            }
        }
    }
}

/// The entries of one header, still compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'a> {
    octets: &'a [u8],
    kind: usize,
}

impl<'a> Entries<'a> {
    /// Reads the entries of a header whose first two octets are read.
    pub fn read(reader: &mut Reader<'a>, size: u8, kind: u8) -> Result<Self, DecodeError> {
        let kind = usize::from(kind);
        let count = usize::from(size & SIZE_MASK) + 1;
        let octets = reader.take(count * entry_octets(kind), "SRH-6LoRH entries")?;
        Ok(Self { octets, kind })
    }
}

/// The path of which `headers` are all entries.
pub(super) fn expand(
    reference: &Address,
    headers: &[Entries<'_>],
    reader: &Reader<'_>,
) -> Result<Vec<Address>, DecodeError> {
    let mut path: Vec<Address> = Vec::new();
    let mut last = *reference;
    for entries in headers {
        for entry in entries.octets.chunks(entry_octets(entries.kind)) {
            last.0[16 - entry.len()..].copy_from_slice(entry);
            // RFC 6554 s4.2: no group is on a path.
            if last.is_multicast() {
                return Err(reader.error("SRH-6LoRH entries", Problem::Value));
            }
            path.push(last);
        }
    }
    Ok(path)
}
