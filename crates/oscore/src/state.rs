//! What outlives a restart (RFC 8613 s7.5), in the style of the configuration file.
//!
//! ```text
//!   id_context,hex,"0a1b2c"         if it was derived many times (appendix B.2)
//!   sender_sequence,integer,64      while running, and in the end
//!   replay_end,integer,17           in the end only: the number after the last that came
//!   replay_seen,hex,"000000000000ffff"
//!   replay_trusted,bool,true        if an earlier loss was not made good by an Echo
//! ```
//! While a context is in use only the lines before the window are stored: after a crash the window is lost, and
//! the Echo option stands in for it.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::hex::unhex;
use crate::params::{ID_CONTEXT_LEN_MAX, SEQUENCE_MAX};

/// The part of a security context that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The ID Context, if it is a random one (RFC 8613 appendix B.2).
    pub id_context: Option<Vec<u8>>,
    /// The first sequence number that was never used.
    pub sequence: u64,
    /// The replay window; `None` if it is not known.
    pub window: Option<StoredWindow>,
}

/// A replay window, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredWindow {
    /// The number after the last that came.
    pub end: u64,
    /// Which of the 64 numbers before `end` came, the latest in the lowest bit.
    pub seen: u64,
    /// True if the window before it was lost without an Echo in its place: what it admits may have
    /// been answered before, so the nonce of a request protects no response.
    pub trusted: bool,
}

impl StoredWindow {
    /// An empty window in the place of one that was lost.
    pub const TRUSTED: Self = Self { end: 0, seen: 0, trusted: true };
}

impl State {
    /// What is stored for a [`crate::Reservation`], up to its end.
    pub const fn reserved(sequence: u64) -> Self {
        Self { id_context: None, sequence, window: None }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id_context) = &self.id_context {
            f.write_str("id_context,hex,\"")?;
            id_context.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            f.write_str("\"\n")?;
        }
        writeln!(f, "sender_sequence,integer,{}", self.sequence)?;
        if let Some(StoredWindow { end, seen, trusted }) = self.window {
            writeln!(f, "replay_end,integer,{end}")?;
            writeln!(f, "replay_seen,hex,\"{seen:016x}\"")?;
            if trusted {
                writeln!(f, "replay_trusted,bool,true")?;
            }
        }
        Ok(())
    }
}

/// A stored state that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored OSCORE state is damaged at line {line}; if you delete it, replace its keys too"
)]
pub struct StateError {
    /// The line, from 1.
    pub line: usize,
}

impl FromStr for State {
    type Err = StateError;

    fn from_str(text: &str) -> Result<Self, StateError> {
        let (mut sequence, mut end, mut seen, mut trusted) = (None, None, None, None);
        let mut id_context = None;
        for (place, line) in text.lines().enumerate() {
            if let Some(("id_context,hex", value)) = line.trim().rsplit_once(',') {
                let octets = unhex(value.trim_matches('"'));
                let fits = octets.filter(|octets| octets.len() <= ID_CONTEXT_LEN_MAX);
                if fits.is_none() || id_context.is_some() {
                    return Err(StateError { line: place + 1 });
                }
                id_context = fits;
                continue;
            }
            let (slot, value) = match line.trim().rsplit_once(',') {
                Some(("sender_sequence,integer", value)) => (&mut sequence, value.parse().ok()),
                Some(("replay_end,integer", value)) => (&mut end, value.parse().ok()),
                Some(("replay_seen,hex", value)) => {
                    let bits = u64::from_str_radix(value.trim_matches('"'), 16);
                    (&mut seen, bits.ok())
                }
                Some(("replay_trusted,bool", "true")) => (&mut trusted, Some(1)),
                _ => return Err(StateError { line: place + 1 }),
            };
            if value.is_none() || slot.is_some() {
                return Err(StateError { line: place + 1 });
            }
            *slot = value;
        }
        let whole = |number: &u64| *number <= SEQUENCE_MAX + 1;
        let trusted = trusted.is_some();
        match (sequence.filter(whole), end, seen) {
            (Some(sequence), None, None) if !trusted => {
                Ok(Self { id_context, sequence, window: None })
            }
            (Some(sequence), Some(end), Some(seen)) if whole(&end) => {
                let window = Some(StoredWindow { end, seen, trusted });
                Ok(Self { id_context, sequence, window })
            }
            _ => Err(StateError { line: text.lines().count().max(1) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back() {
        for state in [
            State::reserved(0),
            State::reserved(SEQUENCE_MAX + 1),
            State {
                id_context: Some(vec![0, 0xab]),
                sequence: 7,
                window: Some(StoredWindow { end: 12, seen: u64::MAX, trusted: false }),
            },
            State { window: Some(StoredWindow::TRUSTED), ..State::reserved(7) },
        ] {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
    }

    #[test]
    fn a_damaged_state_is_refused_with_its_line() {
        for (text, line) in [
            ("", 1),
            ("sender_sequence,integer,-1", 1),
            ("sender_sequence,integer,1\nreplay_end,integer,3\n", 2),
            ("sender_sequence,integer,1\nsender_sequence,integer,2", 2),
            ("id_context,hex,\"0\"\nsender_sequence,integer,1", 1),
            ("sender_sequence,integer,1\nwhat", 2),
            ("sender_sequence,integer,1\nreplay_trusted,bool,true", 2),
            ("sender_sequence,integer,1099511627777", 1),
        ] {
            assert_eq!(text.parse::<State>(), Err(StateError { line }), "{text}");
        }
    }
}
