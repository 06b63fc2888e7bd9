//! The numbers that a connection starts with: drawn, or out of a secret and the names of both ends (RFC 6528).

use lowmesh_units::Instant;
use lowmesh_wire::tcp::Ends;
use sha2::{Digest as _, Sha256};

use crate::params::ISN_TICK;

/// The initial sequence numbers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialNumbers {
    /// The initial sequence number (RFC 9293 s3.4.1).
    pub sequence: u32,
    /// What is added to the milliseconds of the clock for timestamps (RFC 7323 s5.4).
    pub clock: u32,
}

impl InitialNumbers {
    /// The numbers of RFC 6528 s3: a clock, and a hash of addresses, ports and a secret that the host keeps to itself. A
    /// later connection of the same four starts behind the one before, so that TIME-WAIT can end early (RFC 6191). The
    /// clock of timestamps is hashed from the addresses alone, as in Linux.
    pub fn of(secret: &[u8; 32], ends: &Ends, ports: (u16, u16), now: Instant) -> Self {
        let hash = |ports: &[u16]| {
            let mut hash = Sha256::new();
            hash.update(secret);
            match ends {
                Ends::V6(own, peer) => {
                    hash.update(own.0);
                    hash.update(peer.0);
                }
                Ends::V4(own, peer) => {
                    hash.update(own);
                    hash.update(peer);
                }
            }
            for port in ports {
                hash.update(port.to_be_bytes());
            }
            let digest = hash.finalize();
            u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
        };
        let ticks = (now.as_nanos() / ISN_TICK.as_nanos()) as u32;
        Self { sequence: hash(&[ports.0, ports.1]).wrapping_add(ticks), clock: hash(&[]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Ends = Ends::V4([10, 9, 0, 1], [10, 9, 0, 2]);

    fn numbers(secret: u8, ends: Ends, ports: (u16, u16), second: u64) -> InitialNumbers {
        InitialNumbers::of(&[secret; 32], &ends, ports, Instant::from_secs(second))
    }

    #[test]
    fn a_later_connection_of_the_same_ends_starts_behind_the_earlier_one() {
        let (early, late) = (numbers(1, ENDS, (1, 2), 5), numbers(1, ENDS, (1, 2), 8));
        // RFC 6528 s3: a tick is 4 us.
        assert_eq!(late.sequence.wrapping_sub(early.sequence), 750_000);
        assert_eq!(late.clock, early.clock);
    }

    #[test]
    fn another_secret_address_or_port_starts_elsewhere_and_the_clock_depends_on_no_port() {
        let base = numbers(1, ENDS, (1, 2), 5);
        let other = Ends::V4([10, 9, 0, 1], [10, 9, 0, 3]);
        for numbers in [numbers(2, ENDS, (1, 2), 5), numbers(1, other, (1, 2), 5)] {
            assert_ne!(numbers.sequence, base.sequence);
            assert_ne!(numbers.clock, base.clock);
        }
        let port = numbers(1, ENDS, (1, 3), 5);
        assert_ne!(port.sequence, base.sequence);
        assert_eq!(port.clock, base.clock);
    }
}
