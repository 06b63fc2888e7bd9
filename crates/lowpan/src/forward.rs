//! The virtual reassembly buffer: where the fragments of a datagram go on to (RFC 8930 s6).
//!
//! ```text
//!   (link source, its tag)  ->  (next hop, our tag)    until the datagram is through or its time is over
//! ```
//!
//! An entry holds no data of the datagram. What a fragment mode has to remember beside the two labels is its
//! `state`: `transit` for RFC 8930; RFC 8931 also carries acknowledgements in the other direction, from next hop to
//! link source.

use alloc::vec::Vec;

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::{Duration, Eui64, Instant};

/// What names a datagram on one link: RFC 8930 s4 needs no more than these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The neighbour on the link: who sent the fragment, or who gets it.
    pub neighbour: Eui64,
    /// The datagram_tag; of RFC 8931's, which has eight bits, the low octet.
    pub tag: u16,
}

/// A datagram whose fragments pass through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<S> {
    /// How fragments come.
    pub incoming: Label,
    /// How they go on.
    pub outgoing: Label,
    /// Names the packet.
    pub handle: Handle,
    /// What the fragment mode remembers.
    pub state: S,
    deadline: Instant,
}

/// All datagrams that pass through a node now, bounded in number and time.
#[derive(Clone, Debug)]
pub struct VirtualReassembly<S> {
    /// In the order of their deadlines.
    entries: Vec<Entry<S>>,
    entries_max: usize,
    timeout: Duration,
}

impl<S> VirtualReassembly<S> {
    /// Room for `entries_max` datagrams, each for `timeout`.
    pub const fn new(entries_max: usize, timeout: Duration) -> Self {
        Self { entries: Vec::new(), entries_max, timeout }
    }

    /// Takes a datagram in. `Err` when all entries are in use, or when this one has an entry.
    pub fn open(
        &mut self,
        now: Instant,
        incoming: Label,
        outgoing: Label,
        handle: Handle,
        state: S,
    ) -> Result<&mut Entry<S>, Rejected> {
        const WHAT: &str = "virtual reassembly buffer";
        if self.is_full() {
            return Err(Rejected::Full { what: WHAT, why: "every entry is in use" });
        }
        if self.position(incoming).is_some() {
            return Err(Rejected::Taken { what: WHAT, why: "the datagram has an entry" });
        }
        let deadline = now + self.timeout;
        let at = self.entries.partition_point(|other| other.deadline <= deadline);
        self.entries.insert(at, Entry { incoming, outgoing, handle, state, deadline });
        Ok(&mut self.entries[at])
    }

    /// The datagram that comes under this label.
    pub fn find(&mut self, incoming: Label) -> Option<&mut Entry<S>> {
        self.position(incoming).map(|at| &mut self.entries[at])
    }
    /// The datagram that goes on under this label: the reverse path of an acknowledgement (RFC 8931 s6.1.2).
    pub fn find_outgoing(&mut self, outgoing: Label) -> Option<&mut Entry<S>> {
        self.entries.iter_mut().find(|entry| entry.outgoing == outgoing)
    }
    /// The datagram of the packet `handle`, if its state is as wanted.
    pub fn find_handle(
        &mut self,
        handle: Handle,
        wanted: impl Fn(&S) -> bool,
    ) -> Option<&mut Entry<S>> {
        self.entries.iter_mut().find(|entry| entry.handle == handle && wanted(&entry.state))
    }

    /// Gives the datagram a whole timeout again.
    pub fn refresh(&mut self, incoming: Label, now: Instant) {
        self.expire_at(incoming, now + self.timeout);
    }
    /// Lets the datagram's time end at `deadline`.
    pub fn expire_at(&mut self, incoming: Label, deadline: Instant) {
        if let Some(at) = self.position(incoming) {
            let entry = Entry { deadline, ..self.entries.remove(at) };
            let place = self.entries.partition_point(|other| other.deadline <= deadline);
            self.entries.insert(place, entry);
        }
    }
    /// Forgets the datagram.
    pub fn close(&mut self, incoming: Label) -> Option<Entry<S>> {
        self.position(incoming).map(|at| self.entries.remove(at))
    }
    /// Takes one datagram whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Entry<S>> {
        (self.next_deadline()? <= now).then(|| self.entries.remove(0))
    }
    /// When the next datagram's time is over.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.entries.first().map(|entry| entry.deadline)
    }

    /// True when no datagram more can pass through.
    pub const fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max
    }
    /// The datagrams that pass through, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<S>> {
        self.entries.iter()
    }

    fn position(&self, incoming: Label) -> Option<usize> {
        self.entries.iter().position(|entry| entry.incoming == incoming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn label(node: u16, tag: u16) -> Label {
        Label { neighbour: NodeId(node).eui64(), tag }
    }
    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }
    /// Datagrams 1 to n of node 1, one a second, go on to node 9 under ten times their tag.
    fn buffer(n: u16) -> VirtualReassembly<u16> {
        let mut buffer = VirtualReassembly::new(3, TIMEOUT);
        for tag in 1..=n {
            let (from, to) = (label(1, tag), label(9, 10 * tag));
            let handle = Handle(tag.into());
            buffer.open(at(tag.into()), from, to, handle, tag).expect("an entry is free");
        }
        buffer
    }

    #[test]
    fn a_label_leads_to_the_next_hop_and_back() {
        let mut buffer = buffer(2);
        assert_eq!(buffer.find(label(1, 2)).map(|entry| entry.outgoing), Some(label(9, 20)));
        assert_eq!(buffer.find_outgoing(label(9, 20)).map(|e| e.incoming), Some(label(1, 2)));
        for other in [label(1, 3), label(2, 2), label(9, 2)] {
            assert_eq!(buffer.find(other), None);
        }
    }

    #[test]
    fn the_same_tag_of_another_neighbour_is_another_datagram() {
        let mut buffer = buffer(1);
        buffer.open(at(1), label(2, 1), label(9, 11), Handle(7), 7).expect("an entry is free");
        assert_eq!(buffer.find(label(1, 1)).map(|entry| entry.state), Some(1));
        assert_eq!(buffer.find(label(2, 1)).map(|entry| entry.state), Some(7));
    }

    #[test]
    fn there_are_no_more_entries_than_there_is_room_for() {
        let mut buffer = buffer(3);
        assert!(buffer.is_full());
        assert!(buffer.open(at(4), label(1, 4), label(9, 40), Handle(4), 4).is_err());
        assert!(buffer.close(label(1, 1)).is_some());
        assert!(buffer.open(at(4), label(1, 2), label(9, 40), Handle(4), 4).is_err());
        assert!(buffer.open(at(4), label(1, 4), label(9, 40), Handle(4), 4).is_ok());
    }

    #[test]
    fn an_entry_ends_with_its_time_unless_refreshed() {
        let mut buffer = buffer(2);
        assert_eq!(buffer.next_deadline(), Some(at(11)));
        buffer.refresh(label(1, 1), at(5));
        assert_eq!(buffer.next_deadline(), Some(at(12)));
        assert_eq!(buffer.expire(at(11)), None);
        assert_eq!(buffer.expire(at(15)).map(|entry| entry.handle), Some(Handle(2)));
        assert_eq!(buffer.expire(at(15)).map(|entry| entry.handle), Some(Handle(1)));
        assert_eq!((buffer.expire(at(15)), buffer.next_deadline()), (None, None));
    }

    #[test]
    fn an_entry_whose_time_is_cut_short_ends_before_older_ones() {
        let mut buffer = buffer(3);
        buffer.expire_at(label(1, 3), at(5));
        assert_eq!(buffer.next_deadline(), Some(at(5)));
        assert_eq!(buffer.expire(at(5)).map(|entry| entry.handle), Some(Handle(3)));
        assert_eq!(buffer.next_deadline(), Some(at(11)));
    }

    #[test]
    fn a_packet_is_found_by_its_name_and_state() {
        let mut buffer = buffer(3);
        assert!(buffer.find_handle(Handle(2), |state| *state == 2).is_some());
        assert!(buffer.find_handle(Handle(2), |state| *state == 3).is_none());
        assert_eq!(buffer.iter().map(|entry| entry.state).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
