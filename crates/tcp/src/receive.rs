//! The receiving half: data in order for the application, data out of order in ranges, the window, and the blocks of
//! SACK (RFC 9293 s3.8.6, RFC 2018, RFC 2883).
//!
//! Memory: what is not read and what is out of order lie within the receive window, so both together stay within the
//! receive buffer, and ranges within [`OUT_OF_ORDER_MAX`].

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::params::OUT_OF_ORDER_MAX;

/// A stretch of data behind a hole; empty for a lone FIN.
#[derive(Clone, Debug)]
struct Range {
    start: i64,
    data: Vec<u8>,
}

impl Range {
    fn end(&self) -> i64 {
        self.start + self.data.len() as i64
    }
}

/// What a segment with data or FIN turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// New data for the application, or the FIN.
    pub(crate) is_in_order: bool,
    /// A hole was filled, and nothing is out of order any more.
    pub(crate) fills_hole: bool,
    /// Everything was known already, or lies behind a hole.
    pub(crate) wants_ack_now: bool,
    /// The peer sends no more.
    pub(crate) finishes: bool,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    capacity: u32,
    window_max: u32,
    segment_octets: u32,
    next: i64,
    buffer: VecDeque<u8>,
    out_of_order: Vec<Range>,
    /// Starts of ranges, the one that grew last first.
    recent: Vec<i64>,
    duplicate: Option<(i64, i64)>,
    fin: Option<i64>,
    right_edge: i64,
    acknowledged: i64,
    /// Segments with data that had all arrived before.
    repeats: u64,
}

impl Receiver {
    pub(crate) fn new(capacity: u32, window_max: u32, segment_octets: u32) -> Self {
        Self {
            capacity,
            window_max,
            segment_octets,
            next: 1,
            buffer: VecDeque::new(),
            out_of_order: Vec::new(),
            recent: Vec::new(),
            duplicate: None,
            fin: None,
            right_edge: 1 + i64::from(window_max),
            acknowledged: 1,
            repeats: 0,
        }
    }
    /// The next position that is expected, behind the FIN once it came.
    pub(crate) fn next(&self) -> i64 {
        self.next
    }
    /// What the last acknowledgement said.
    pub(crate) const fn acknowledged(&self) -> i64 {
        self.acknowledged
    }
    pub(crate) const fn right_edge(&self) -> i64 {
        self.right_edge
    }
    pub(crate) fn unread(&self) -> usize {
        self.buffer.len()
    }
    pub(crate) fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }
    /// Octets that it holds, read or not.
    pub(crate) fn held(&self) -> usize {
        self.buffer.len() + self.out_of_order.iter().map(|range| range.data.len()).sum::<usize>()
    }
    /// Segments with data of which every octet had arrived before.
    pub(crate) const fn repeats(&self) -> u64 {
        self.repeats
    }
    /// The window in octets. Its right edge never goes back, and forward by a segment at least (RFC 9293 s3.8.6.2.2).
    pub(crate) fn window(&mut self) -> i64 {
        let edge = self.edge();
        let step = i64::from(self.segment_octets.min(self.window_max / 2));
        if edge - self.right_edge >= step {
            self.right_edge = edge;
        }
        (self.right_edge - self.next).max(0)
    }
    /// The right edge that the buffer allows.
    fn edge(&self) -> i64 {
        let free = i64::from(self.capacity) - self.buffer.len() as i64;
        self.next + free.min(i64::from(self.window_max))
    }
    /// True when reading has opened the window so far that the peer should know.
    pub(crate) fn opens(&self, window_sent: i64) -> bool {
        let edge = self.edge();
        let sent_edge = self.acknowledged + window_sent;
        edge - sent_edge >= i64::from(self.window_max / 2).min(2 * i64::from(self.segment_octets))
    }
    /// An acknowledgement leaves.
    pub(crate) fn on_acknowledged(&mut self) {
        self.acknowledged = self.next;
        self.duplicate = None;
    }
    /// Data, and perhaps a FIN behind it.
    pub(crate) fn accept(&mut self, start: i64, data: &[u8], fin: bool) -> Arrival {
        let end = start + data.len() as i64;
        let mut arrival = Arrival::default();
        if end + i64::from(fin) <= self.next {
            self.refuse(start, data.len(), fin);
            arrival.wants_ack_now = true;
            return arrival;
        }
        if let Some(known) = self.known_part(start, end + i64::from(fin)) {
            self.duplicate = Some(known);
        }
        let had_holes = self.has_holes();
        if fin && end <= self.right_edge && self.fin.is_none() {
            self.fin = Some(end);
        }
        // What lies outside of the window is cut off.
        let last = end.min(self.right_edge).min(self.fin.unwrap_or(i64::MAX));
        let first = start.max(self.next);
        let is_lone_fin = data.is_empty() && first > self.next && self.fin == Some(first);
        if first < last || is_lone_fin {
            let data = &data[(first - start) as usize..(last - start) as usize];
            if first == self.next {
                self.append(data);
                arrival.is_in_order = true;
            } else {
                self.keep(first, data);
                arrival.wants_ack_now = true;
            }
        }
        self.join();
        if self.fin == Some(self.next) {
            self.next += 1;
            arrival.is_in_order = true;
            arrival.finishes = true;
        }
        arrival.fills_hole = had_holes && !self.has_holes();
        arrival.wants_ack_now |= had_holes || self.has_holes() || first > last;
        arrival
    }
    /// A segment that is not taken: the acknowledgement that answers it reports what had arrived of it.
    pub(crate) fn refuse(&mut self, start: i64, octets: usize, fin: bool) {
        let end = start + octets as i64 + i64::from(fin);
        self.repeats += u64::from(octets > 0 && end <= self.next);
        if start < self.next.min(end) {
            self.duplicate = Some((start, end.min(self.next)));
        }
    }
    /// RFC 2883 s4 and s4.2: the first stretch of a segment that had arrived before, all of it or a part.
    fn known_part(&self, start: i64, end: i64) -> Option<(i64, i64)> {
        if start < self.next {
            return Some((start, end.min(self.next)));
        }
        let mut blocks = self.out_of_order.iter().map(|range| self.block(range));
        let (left, right) = blocks.find(|(left, right)| *left < end && start < *right)?;
        Some((left.max(start), right.min(end)))
    }
    /// The positions of a range, with the FIN behind it.
    fn block(&self, range: &Range) -> (i64, i64) {
        (range.start, range.end() + i64::from(self.fin == Some(range.end())))
    }
    fn append(&mut self, data: &[u8]) {
        self.buffer.extend(data);
        self.next += data.len() as i64;
    }
    /// Keeps data behind a hole, without what is there already. A FIN behind a hole is a range without data, or the end of
    /// one with data.
    fn keep(&mut self, start: i64, data: &[u8]) {
        let end = start + data.len() as i64;
        let known = |range: &Range| range.start <= start && end <= range.end();
        if let Some(range) = self.out_of_order.iter().find(|range| known(range)) {
            // RFC 2883 s4, rule 3: the range that holds a duplicate is named next.
            let start = range.start;
            self.recent.retain(|recent| *recent != start);
            self.recent.insert(0, start);
            self.repeats += u64::from(!data.is_empty());
            return;
        }
        let mut merged = Range { start, data: data.to_vec() };
        let (touching, apart): (Vec<Range>, Vec<Range>) = core::mem::take(&mut self.out_of_order)
            .into_iter()
            .partition(|range| range.start <= end && start <= range.end());
        for range in touching {
            self.recent.retain(|start| *start != range.start);
            merged = union(&merged, &range);
        }
        self.out_of_order = apart;
        let place = self.out_of_order.partition_point(|range| range.start < merged.start);
        self.recent.insert(0, merged.start);
        self.out_of_order.insert(place, merged);
        if self.out_of_order.len() > OUT_OF_ORDER_MAX
            && let Some(farthest) = self.out_of_order.pop()
        {
            self.recent.retain(|start| *start != farthest.start);
        }
    }
    /// Takes ranges that are in order now.
    fn join(&mut self) {
        while self.out_of_order.first().is_some_and(|range| range.start <= self.next) {
            let range = self.out_of_order.remove(0);
            self.recent.retain(|start| *start != range.start);
            let known = (self.next - range.start) as usize;
            if known < range.data.len() {
                self.append(&range.data[known..]);
            }
        }
    }
    /// Takes up to `most` octets out.
    pub(crate) fn read(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.buffer.len());
        self.buffer.drain(..count).collect()
    }
    /// The blocks for an acknowledgement: a duplicate first (RFC 2883), then the range that grew last (RFC 2018 s4).
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let ranges = self.recent.iter().filter_map(|start| {
            let range = self.out_of_order.iter().find(|range| range.start == *start)?;
            Some(self.block(range))
        });
        self.duplicate.into_iter().chain(ranges)
    }
}

/// Two ranges that touch, as one; where they overlap, what came first stays.
fn union(new: &Range, old: &Range) -> Range {
    if new.start < old.start {
        let before = (old.start - new.start) as usize;
        let mut data = new.data[..before].to_vec();
        data.extend_from_slice(&old.data);
        let end = old.end();
        if new.end() > end {
            data.extend_from_slice(&new.data[(end - new.start) as usize..]);
        }
        return Range { start: new.start, data };
    }
    let mut data = old.data.clone();
    if new.end() > old.end() {
        data.extend_from_slice(&new.data[(old.end() - new.start) as usize..]);
    }
    Range { start: old.start, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn receiver() -> Receiver {
        Receiver::new(1_000, 1_000, 100)
    }

    #[test]
    fn data_behind_a_hole_waits_and_blocks_name_the_range_that_grew_last_first() {
        let mut receiver = receiver();
        assert!(receiver.accept(11, b"klmno", false).wants_ack_now);
        receiver.accept(21, b"uvwxy", false);
        receiver.accept(16, b"p", false);
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(11, 17), (21, 26)]);
        let arrival = receiver.accept(1, b"abcdefghij", false);
        assert!(arrival.is_in_order && arrival.wants_ack_now && !arrival.fills_hole);
        assert_eq!(receiver.read(100), b"abcdefghijklmnop");
        assert!(receiver.accept(17, b"qrst", false).fills_hole);
    }

    #[test]
    fn a_duplicate_is_reported_once() {
        let mut receiver = receiver();
        receiver.accept(1, b"abc", false);
        receiver.accept(1, b"", true);
        assert_eq!(receiver.repeats(), 0);
        assert!(receiver.accept(1, b"abc", false).wants_ack_now);
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(1, 4)]);
        receiver.on_acknowledged();
        assert_eq!(receiver.blocks().count(), 0);
        // Behind a hole, too; the range that holds it follows.
        receiver.accept(8, b"hij", false);
        receiver.accept(20, b"t", false);
        receiver.accept(8, b"hi", false);
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(8, 10), (8, 11), (20, 21)]);
        assert_eq!(receiver.repeats(), 2);
    }

    #[test]
    fn of_a_segment_with_old_and_new_octets_the_first_old_stretch_is_reported() {
        let mut receiver = receiver();
        receiver.accept(1, b"abc", false);
        receiver.accept(2, b"bcdef", false);
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(2, 4)]);
        receiver.on_acknowledged();
        // Two ranges and the octets around them in one segment.
        receiver.accept(10, b"jk", false);
        receiver.accept(14, b"no", false);
        receiver.accept(9, b"ijklmnop", false);
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(10, 12), (9, 17)]);
        assert_eq!((receiver.repeats(), receiver.read(100)), (0, b"abcdef".to_vec()));
    }

    #[test]
    fn a_fin_counts_when_everything_before_it_came() {
        let mut receiver = receiver();
        assert!(!receiver.accept(4, b"d", true).finishes);
        // RFC 2018: its number is in the block.
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(4, 6)]);
        assert!(receiver.accept(1, b"abc", false).finishes);
        assert_eq!(receiver.next(), 6);
    }

    #[test]
    fn a_fin_without_data_behind_a_hole_is_a_range_of_its_own() {
        let mut receiver = receiver();
        for _ in 0..2 {
            assert!(receiver.accept(4, b"", true).wants_ack_now);
        }
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(4, 5), (4, 5)]);
        receiver.accept(3, b"c", false);
        receiver.on_acknowledged();
        assert_eq!(receiver.blocks().collect::<Vec<_>>(), [(3, 5)]);
        assert!(receiver.accept(1, b"ab", false).finishes);
        assert_eq!((receiver.next(), receiver.repeats()), (5, 0));
    }

    #[test]
    fn the_window_closes_and_opens_by_a_segment_at_least() {
        let mut receiver = receiver();
        receiver.accept(1, &[7; 1_200], false);
        assert_eq!((receiver.window(), receiver.unread()), (0, 1_000));
        receiver.on_acknowledged();
        receiver.read(99);
        assert_eq!(receiver.window(), 0);
        receiver.read(1);
        assert_eq!(receiver.window(), 100);
        assert!(!receiver.opens(100));
        receiver.read(300);
        assert!(receiver.opens(100));
    }

    #[test]
    fn out_of_order_ranges_are_bounded_and_the_farthest_goes() {
        let mut receiver = Receiver::new(100_000, 100_000, 100);
        for range in 0..OUT_OF_ORDER_MAX as i64 + 10 {
            receiver.accept(10 + range * 2, b"x", false);
        }
        assert_eq!(receiver.out_of_order.len(), OUT_OF_ORDER_MAX);
        assert_eq!(receiver.recent.len(), OUT_OF_ORDER_MAX);
    }

    proptest! {
        #[test]
        fn the_stream_is_put_together_whatever_the_order(
            pieces in prop::collection::vec((0usize..500, 1usize..80), 1..60),
        ) {
            let stream: Vec<u8> = (0..600).map(|i| (i * 7 % 251) as u8).collect();
            let mut receiver = Receiver::new(1_000, 1_000, 100);
            for (start, length) in pieces {
                receiver.accept(1 + start as i64, &stream[start..start + length], false);
                prop_assert!(receiver.held() <= 1_000);
            }
            let read = receiver.read(1_000);
            prop_assert_eq!(&read[..], &stream[..read.len()]);
            receiver.accept(1 + read.len() as i64, &stream[read.len()..], true);
            prop_assert_eq!(&receiver.read(1_000)[..], &stream[read.len()..]);
            prop_assert_eq!(receiver.next(), 602);
        }
    }
}
