//! The octets of one datagram, and which of them have arrived.

use alloc::vec;
use alloc::vec::Vec;

/// A fragment that arrived: the octets from `start` to `end`, and what its header says besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<T = ()> {
    /// Offset of its first octet.
    pub start: usize,
    /// Offset after its last octet.
    pub end: usize,
    /// What its header says besides, such as a sequence number.
    pub tag: T,
}

/// How a fragment lies to those that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// None of its octets has arrived.
    New,
    /// A fragment with the same place and length has arrived.
    Duplicate,
    /// Some of its octets have arrived in another fragment.
    Overlap,
}

/// A datagram with holes.
#[derive(Clone, Debug, Default)]
pub struct PartialDatagram<T = ()> {
    bytes: Vec<u8>,
    /// Ordered by their starts.
    arrived: Vec<Arrival<T>>,
}

impl<T: Copy> PartialDatagram<T> {
    /// A datagram of `octets`, of which none has arrived; it grows when a fragment lies beyond them.
    pub fn new(octets: usize) -> Self {
        Self { bytes: vec![0; octets], arrived: Vec::new() }
    }

    /// Octets that are set aside.
    pub const fn octets(&self) -> usize {
        self.bytes.len()
    }
    /// The fragments that have arrived, ordered by their starts.
    pub fn arrived(&self) -> &[Arrival<T>] {
        &self.arrived
    }

    /// How `octets` octets at `start` lie to what has arrived.
    pub fn fit(&self, start: usize, octets: usize) -> Fit {
        let end = start + octets;
        let mut fit = Fit::New;
        for arrival in &self.arrived {
            if (arrival.start, arrival.end) == (start, end) {
                return Fit::Duplicate;
            }
            if start < arrival.end && arrival.start < end {
                fit = Fit::Overlap;
            }
        }
        fit
    }

    /// True when `data` at `start` has the octets of `arrival` where both lie.
    pub fn agrees(&self, arrival: &Arrival<T>, start: usize, data: &[u8]) -> bool {
        let (from, to) = (start.max(arrival.start), (start + data.len()).min(arrival.end));
        from >= to || self.bytes[from..to] == data[from - start..to - start]
    }

    /// Puts `data` where it belongs.
    pub fn insert(&mut self, start: usize, data: &[u8], tag: T) {
        let end = start + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(data);
        let place = self.arrived.partition_point(|other| other.start <= start);
        self.arrived.insert(place, Arrival { start, end, tag });
    }

    /// True when the first `octets` octets have all arrived, and none beyond them.
    pub fn covers(&self, octets: usize) -> bool {
        let reach = |reached: usize, arrival: &Arrival<T>| {
            if arrival.start <= reached { reached.max(arrival.end) } else { reached }
        };
        self.arrived.iter().fold(0, reach) == octets
    }
    /// True when every octet that is set aside has arrived.
    pub fn is_whole(&self) -> bool {
        self.covers(self.bytes.len())
    }

    /// The octets; holes are zero.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
    /// The octets; holes are zero.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_new_a_copy_or_overlaps() {
        let mut partial = PartialDatagram::new(32);
        partial.insert(8, &[1; 8], ());
        for (start, octets, fit) in [
            (0, 8, Fit::New),
            (16, 8, Fit::New),
            (8, 8, Fit::Duplicate),
            (8, 16, Fit::Overlap),
            (0, 9, Fit::Overlap),
            (15, 1, Fit::Overlap),
        ] {
            assert_eq!(partial.fit(start, octets), fit, "{octets} octets at {start}");
        }
    }

    #[test]
    fn octets_agree_where_both_fragments_lie() {
        let mut partial = PartialDatagram::new(32);
        partial.insert(8, &[1; 8], 0);
        let arrival = partial.arrived()[0];
        assert!(
            partial.agrees(&arrival, 0, &[7; 8]) && partial.agrees(&arrival, 12, &[1, 1, 1, 1, 7])
        );
        assert!(!partial.agrees(&arrival, 0, &[7; 9]));
    }

    proptest::proptest! {
        #[test]
        fn a_datagram_is_whole_when_no_octet_is_missing(
            fragments in proptest::collection::vec((0usize..24, 1usize..9), 0..12),
        ) {
            let mut partial = PartialDatagram::new(24);
            let mut marks = [false; 24];
            for (start, octets) in fragments {
                let end = (start + octets).min(24);
                partial.insert(start, &vec![9; end - start], ());
                marks[start..end].fill(true);
                proptest::prop_assert_eq!(partial.is_whole(), marks.iter().all(|mark| *mark));
            }
            let bytes = partial.into_bytes();
            proptest::prop_assert!(bytes.iter().zip(marks).all(|(byte, mark)| (*byte == 9) == mark));
        }
    }
}
