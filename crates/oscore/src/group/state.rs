//! What of a group's contexts outlives a restart: the sequence number and the replay windows.
//!
//! ```text
//!   sender_sequence,integer,64
//!   window,hex,"01",7,00000000000000ff       a member, the number after its last, and which of the 64 before came
//! ```
//! As for one peer, a running member stores the numbers alone, and the windows at an orderly end: without them each other
//! member is challenged once.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::hex::unhex;
use crate::params::{GROUP_MEMBERS_MAX, SEQUENCE_MAX};
use crate::{Identity, StateError};

/// The part of a group's contexts that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// The first sequence number that was never used.
    pub sequence: u64,
    /// The replay windows that are known.
    pub windows: Vec<MemberWindow>,
}

/// The replay window of a member, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberWindow {
    /// The member.
    pub member: Identity,
    /// The number after the last that came.
    pub end: u64,
    /// Which of the 64 numbers before `end` came, the latest in the lowest bit.
    pub seen: u64,
}

impl GroupState {
    /// What is stored for a [`crate::Reservation`], up to its end.
    pub const fn reserved(sequence: u64) -> Self {
        Self { sequence, windows: Vec::new() }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sender_sequence,integer,{}", self.sequence)?;
        for MemberWindow { member, end, seen } in &self.windows {
            f.write_str("window,hex,\"")?;
            member.as_bytes().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            writeln!(f, "\",{end},{seen:016x}")?;
        }
        Ok(())
    }
}

impl FromStr for GroupState {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        let mut sequence = None;
        let mut windows: Vec<MemberWindow> = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let error = StateError { line: place + 1 };
            let line = line.trim();
            if let Some(number) = line.strip_prefix("sender_sequence,integer,") {
                let number = number.parse().ok().filter(|number| *number <= SEQUENCE_MAX + 1);
                if number.is_none() || sequence.is_some() {
                    return Err(error);
                }
                sequence = number;
                continue;
            }
            let window = line.strip_prefix("window,hex,").and_then(window).ok_or(error)?;
            let again = windows.iter().any(|one| one.member == window.member);
            if again || windows.len() == GROUP_MEMBERS_MAX {
                return Err(error);
            }
            windows.push(window);
        }
        let last = StateError { line: text.lines().count().max(1) };
        Ok(Self { sequence: sequence.ok_or(last)?, windows })
    }
}

fn window(text: &str) -> Option<MemberWindow> {
    let (member, numbers) = text.split_once(',')?;
    let (end, seen) = numbers.split_once(',')?;
    let member = Identity::new(&unhex(member.strip_prefix('"')?.strip_suffix('"')?)?)?;
    let end = end.parse().ok().filter(|end| *end <= SEQUENCE_MAX + 1)?;
    let seen = u64::from_str_radix(seen, 16).ok()?;
    Some(MemberWindow { member, end, seen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use alloc::vec;

    #[test]
    fn a_state_reads_back() {
        let id = |octets: &[u8]| Identity::new(octets).expect("short");
        for state in [
            GroupState::reserved(0),
            GroupState::reserved(SEQUENCE_MAX + 1),
            GroupState {
                sequence: 7,
                windows: vec![
                    MemberWindow { member: id(b""), end: 0, seen: 0 },
                    MemberWindow { member: id(b"\x00\xab"), end: 12, seen: u64::MAX },
                ],
            },
        ] {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
    }

    #[test]
    fn a_damaged_state_is_refused_with_its_line() {
        for (text, line) in [
            ("", 1),
            ("sender_sequence,integer,-1", 1),
            ("sender_sequence,integer,1099511627777", 1),
            ("sender_sequence,integer,1\nsender_sequence,integer,2", 2),
            ("window,hex,\"01\",7,ff", 1),
            ("sender_sequence,integer,1\nwindow,hex,01,7,ff", 2),
            ("sender_sequence,integer,1\nwindow,hex,\"01\",7", 2),
            ("sender_sequence,integer,1\nwindow,hex,\"01\",7,fg", 2),
            ("sender_sequence,integer,1\nwindow,hex,\"0102030405060708\",7,ff", 2),
            ("sender_sequence,integer,1\nwindow,hex,\"01\",7,ff\nwindow,hex,\"01\",7,ff", 3),
        ] {
            assert_eq!(text.parse::<GroupState>(), Err(StateError { line }), "{text}");
        }
    }
}
