//! The lollipop counters of RFC 6550 s7.2 and RFC 8505 s5.2.1: they start on a straight stick (128 to 255), so that a node that
//! lost its memory is told from one that counted on, then go round (0 to 127).

/// SEQUENCE_WINDOW: RFC 6550 s7.2, 16.
const WINDOW: u16 = 16;

/// A counter of versions, DAOs or paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence(pub u8);

/// How one value stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It came later.
    Newer,
    /// It is the same.
    Same,
    /// It came earlier.
    Older,
    /// Too far apart to say.
    Incomparable,
}

impl Sequence {
    /// Where a counter starts: RFC 6550 s7.2, 256 - SEQUENCE_WINDOW.
    pub const START: Self = Self(240);

    /// The value after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0 {
            127 | 255 => Self(0),
            value => Self(value + 1),
        }
    }

    /// How this value stands to `other`.
    pub const fn order(self, other: Self) -> Order {
        let (a, b) = (self.0 as u16, other.0 as u16);
        match (a >= 128, b >= 128) {
            _ if a == b => Order::Same,
            // RFC 6550 s7.2 (1): one on the stick, one on the ring.
            (true, false) if 256 + b - a <= WINDOW => Order::Older,
            (true, false) => Order::Newer,
            (false, true) if 256 + a - b <= WINDOW => Order::Newer,
            (false, true) => Order::Older,
            // RFC 6550 s7.2 (2): both on the same part, within the window.
            (true, true) if a.abs_diff(b) <= WINDOW => {
                if a > b {
                    Order::Newer
                } else {
                    Order::Older
                }
            }
            (false, false) if (a + 128 - b) % 128 <= WINDOW => Order::Newer,
            (false, false) if (b + 128 - a) % 128 <= WINDOW => Order::Older,
            _ => Order::Incomparable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_newer_than_the_one_before_all_the_way_round() {
        let mut value = Sequence::START;
        for _ in 0..300 {
            assert_eq!(value.next().order(value), Order::Newer, "{value:?}");
            assert_eq!(value.order(value.next()), Order::Older, "{value:?}");
            value = value.next();
        }
        assert!(value.0 < 128, "the stick is left once and for all");
    }

    #[test]
    fn a_restart_is_newer_than_a_far_place_on_the_ring() {
        assert_eq!(Sequence::START.order(Sequence(5)), Order::Newer);
        assert_eq!(Sequence(5).order(Sequence::START), Order::Older);
    }

    #[test]
    fn values_half_a_ring_apart_cannot_be_compared() {
        assert_eq!(Sequence(0).order(Sequence(64)), Order::Incomparable);
        assert_eq!(Sequence(128).order(Sequence(200)), Order::Incomparable);
    }

    #[test]
    fn order_is_never_the_same_both_ways() {
        for a in 0..=255 {
            for b in 0..=255 {
                let (there, back) =
                    (Sequence(a).order(Sequence(b)), Sequence(b).order(Sequence(a)));
                let expected = match there {
                    Order::Newer => Order::Older,
                    Order::Older => Order::Newer,
                    same => same,
                };
                assert_eq!(back, expected, "{a} {b}");
            }
        }
    }
}
