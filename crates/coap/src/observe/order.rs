//! Which of two notifications is newer (RFC 7641 s3.4).

use lowmesh_units::Instant;

use crate::params::NOTIFICATION_ORDER_SPAN;

/// Sequence numbers have 24 bits (RFC 7641 s3.4).
pub const SEQUENCE_MODULUS: u32 = 1 << 24;

/// The position of a notification among those of its observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The value of its Observe option, 24 bits.
    pub sequence: u32,
    /// The time at which it arrived.
    pub arrived: Instant,
}

impl Place {
    /// Whether a notification with this place is news to an observer that has seen `newest`. `asked` is when the
    /// registration left whose answer is awaited, if one is.
    ///
    /// RFC 7641 s3.4 orders the notifications of one registration. The answer to a registration that left after the newest
    /// notification had come is newer, whatever its number: the server may have started again and count from the start,
    /// and s3.3.1 registers again to find that out.
    ///
    /// Without protection, nothing tells a separate answer (RFC 7252 s5.2.2) from a delayed notification of the earlier
    /// registration: s3.3.1 has both under one token. So a delayed one that comes in between is taken for the answer. It is
    /// shown until the answer in the ACK, the next notification or the end of its Max-Age, after which the client registers
    /// again. A new token for each registration would tell them apart, but fill two places at the server (s4.1).
    /// OSCORE binds each answer to its registration (RFC 8613 s7.3).
    pub fn is_news(self, newest: Option<Self>, asked: Option<Instant>) -> bool {
        let Some(newest) = newest else { return true };
        self.is_after(newest) || asked.is_some_and(|asked| newest.arrived < asked)
    }
    /// Whether this one is newer than the newest so far.
    ///
    /// ```
    /// use lowmesh_coap::observe::Place;
    /// use lowmesh_units::Instant;
    /// let place = |sequence, s| Place { sequence, arrived: Instant::from_secs(s) };
    /// assert!(place(2, 0).is_after(place(1, 0)));
    /// assert!(!place(1, 10).is_after(place(2, 0)));
    /// assert!(place(1, 129).is_after(place(2, 0)), "the server may have started again");
    /// ```
    pub fn is_after(self, newest: Self) -> bool {
        const HALF: u32 = SEQUENCE_MODULUS / 2;
        let (v1, v2) = (newest.sequence, self.sequence);
        // RFC 7641 s3.4: the three conditions, in its order.
        (v1 < v2 && v2 - v1 < HALF)
            || (v1 > v2 && v1 - v2 > HALF)
            || self.arrived.since(newest.arrived) > NOTIFICATION_ORDER_SPAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newer(v1: u32, v2: u32, seconds: u64) -> bool {
        let first = Place { sequence: v1, arrived: Instant::ZERO };
        Place { sequence: v2, arrived: Instant::from_secs(seconds) }.is_after(first)
    }

    #[test]
    fn the_sequence_wraps_at_24_bits() {
        assert!(newer(SEQUENCE_MODULUS - 1, 0, 0));
        assert!(!newer(0, SEQUENCE_MODULUS - 1, 0));
        assert!(newer(0, SEQUENCE_MODULUS / 2 - 1, 0));
        assert!(!newer(0, SEQUENCE_MODULUS / 2, 0));
    }

    #[test]
    fn the_same_number_is_not_newer_within_128_s() {
        assert!(!newer(5, 5, 128));
        assert!(newer(5, 5, 129));
    }
}
