//! What follows the header and token: options, then perhaps the payload marker and a payload (RFC
//! 7252 s3.1).
//!
//! ```text
//!    0   1   2   3   4   5   6   7
//!  +---------------+---------------+
//!  |  Option Delta | Option Length |   13: one octet more, 14: two octets more, 15: not allowed
//!  +---------------+---------------+      (0xff as a whole is the payload marker)
//!  /  extended delta (0-2 octets)  /
//!  /  extended length (0-2 octets) /
//!  /  value                        /
//!  +-------------------------------+
//! ```

use super::{HEADER, PAYLOAD_MARKER};
use crate::{DecodeError, Problem};

/// First value that needs one octet more.
const ONE_OCTET_FROM: u16 = 13;
/// First value that needs two octets more.
const TWO_OCTETS_FROM: u16 = 269;

/// The two parts of a body, both checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    pub options: &'a [u8],
    /// The number of the last option, 0 if there is none.
    pub last: u16,
    pub payload: &'a [u8],
}

/// Splits and checks a body that starts `start` octets after the start of the message.
pub(super) fn split(body: &[u8], start: usize) -> Result<Body<'_>, DecodeError> {
    let mut at = 0;
    let mut number: u32 = 0;
    while at < body.len() {
        if body[at] == PAYLOAD_MARKER {
            // RFC 7252 s3: a marker that a zero-length payload follows MUST be a message format
            // error.
            if at + 1 == body.len() {
                return Err(error("payload", start + at + 1, Problem::Length));
            }
            let (options, payload) = (&body[..at], &body[at + 1..]);
            return Ok(Body { options, last: number as u16, payload });
        }
        let (delta, _, next) = read(body, at, start)?;
        number += u32::from(delta);
        if number > u32::from(u16::MAX) {
            return Err(error("option number", start + at, Problem::Value));
        }
        at = next;
    }
    Ok(Body { options: body, last: number as u16, payload: &[] })
}

/// The option at `at`: its delta, where its value starts, and where it ends.
#[inline]
fn read(body: &[u8], at: usize, start: usize) -> Result<(u16, usize, usize), DecodeError> {
    let first = body[at];
    let (delta, length) = (u16::from(first >> 4), u16::from(first & 0x0f));
    let mut value = at + 1;
    let (delta, length) = if delta < ONE_OCTET_FROM && length < ONE_OCTET_FROM {
        (delta, length)
    } else {
        let delta = extended(body, delta, &mut value)
            .map_err(|problem| error("option delta", start + value, problem))?;
        let length = extended(body, length, &mut value)
            .map_err(|problem| error("option length", start + value, problem))?;
        (delta, length)
    };
    let end = value + usize::from(length);
    if end > body.len() {
        return Err(error("option value", start + value, Problem::Truncated));
    }
    Ok((delta, value, end))
}

/// The value of a nibble with its extension at `at`, which moves on.
fn extended(body: &[u8], nibble: u16, at: &mut usize) -> Result<u16, Problem> {
    match nibble {
        0..=12 => Ok(nibble),
        13 => {
            let octet = *body.get(*at).ok_or(Problem::Truncated)?;
            *at += 1;
            Ok(u16::from(octet) + ONE_OCTET_FROM)
        }
        14 => {
            let octets = body.get(*at..*at + 2).ok_or(Problem::Truncated)?;
            *at += 2;
            u16::from_be_bytes([octets[0], octets[1]])
                .checked_add(TWO_OCTETS_FROM)
                .ok_or(Problem::Value)
        }
        // RFC 7252 s3.1: 15 is reserved for the payload marker; elsewhere a message format error.
        _ => Err(Problem::Value),
    }
}

/// The option at the start of options that [`split`] has checked: (delta, value, rest).
#[inline]
pub(super) fn next_checked(options: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    if options.is_empty() {
        return None;
    }
    let (delta, value, end) = read(options, 0, 0).ok()?;
    Some((delta, &options[value..end], &options[end..]))
}

/// Writes an option over `out`, which has [`option_len`] octets; `value` must not be longer than 65,804.
pub(super) fn write_option(delta: u16, value: &[u8], out: &mut [u8]) {
    let length = value.len() as u32;
    let (head, tail) = out.split_at_mut(out.len() - value.len());
    head[0] = nibble(u32::from(delta)) << 4 | nibble(length);
    let mut at = 1;
    for part in [u32::from(delta), length] {
        match nibble(part) {
            13 => {
                head[at] = (part - u32::from(ONE_OCTET_FROM)) as u8;
                at += 1;
            }
            14 => {
                let extension = (part - u32::from(TWO_OCTETS_FROM)) as u16;
                head[at..at + 2].copy_from_slice(&extension.to_be_bytes());
                at += 2;
            }
            _ => {}
        }
    }
    tail.copy_from_slice(value);
}

/// Octets of an option with a value of so many octets.
pub(super) const fn option_len(delta: u16, value_len: usize) -> usize {
    1 + extension_len(delta as usize) + extension_len(value_len) + value_len
}

const fn extension_len(value: usize) -> usize {
    match value {
        0..=12 => 0,
        13..=268 => 1,
        _ => 2,
    }
}

const fn nibble(value: u32) -> u8 {
    match value {
        0..=12 => value as u8,
        13..=268 => 13,
        _ => 14,
    }
}

const fn error(field: &'static str, offset: usize, problem: Problem) -> DecodeError {
    DecodeError { header: HEADER, field, offset, problem }
}
