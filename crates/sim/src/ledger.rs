//! The book of packets: every IPv6 packet ends in exactly one of delivered, dropped, still queued.
//!
//! A packet may exist twice for a while (the receiver has it and the sender does not know yet), so the book
//! counts copies. Copies appear when a packet is born or accepted by the next node, and disappear when it is
//! passed on, delivered or dropped.

use std::collections::BTreeMap;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer};
use lowmesh_stack::event::Class;

use crate::record::Packets;

#[derive(Clone, Copy, Debug)]
struct Entry {
    class: Class,
    copies: i32,
    delivered: bool,
    drop: Option<(Layer, DropReason)>,
}

/// The packets of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<Handle, Entry>,
    /// Packets that are over, by class.
    closed: [Packets; Class::ALL.len()],
    drops: BTreeMap<(Layer, DropReason), u64>,
    /// The first thing that does not add up.
    fault: Option<String>,
}

impl Ledger {
    /// A node made a packet.
    pub fn born(&mut self, handle: Handle, class: Class) {
        let entry = Entry { class, copies: 1, delivered: false, drop: None };
        self.closed[class as usize].sent += 1;
        if self.entries.insert(handle, entry).is_some() {
            self.fault(handle, "was born twice");
        }
    }
    /// The next node has it too.
    pub fn accepted(&mut self, handle: Handle) {
        self.change(handle, "was accepted by a node", |entry| entry.copies += 1);
    }
    /// A node passed its copy on. Like the next two, true for the last copy of a packet to a group.
    pub fn passed_on(&mut self, handle: Handle) -> bool {
        self.change(handle, "was passed on", |entry| entry.copies -= 1)
    }
    /// It reached its destination.
    pub fn delivered(&mut self, handle: Handle) -> bool {
        self.change(handle, "was delivered", |entry| {
            entry.copies -= 1;
            entry.delivered = true;
        })
    }
    /// A copy ended.
    pub fn dropped(&mut self, dropped: Dropped) -> bool {
        self.change(dropped.handle, "was dropped", |entry| {
            entry.copies -= 1;
            entry.drop = Some((dropped.layer, dropped.reason));
        })
    }

    fn change(&mut self, handle: Handle, what: &str, change: impl FnOnce(&mut Entry)) -> bool {
        let Some(entry) = self.entries.get_mut(&handle) else {
            // A copy that comes back to life: the sender gave up, the receiver had it.
            self.fault(handle, &format!("{what} after all its copies were gone"));
            return false;
        };
        // An entry in the book has at least one copy, and each change takes at most one.
        change(entry);
        if entry.copies == 0 {
            let entry = *entry;
            self.entries.remove(&handle);
            if entry.class == Class::Group {
                // What became of it at each member is in a book of its own.
                return true;
            }
            self.close(entry);
        }
        false
    }

    fn close(&mut self, entry: Entry) {
        let packets = &mut self.closed[entry.class as usize];
        match entry.drop {
            _ if entry.delivered => packets.delivered += 1,
            Some(cause) => {
                packets.dropped += 1;
                packets.overflowed += u64::from(cause.1 == DropReason::QueueFull);
                *self.drops.entry(cause).or_default() += 1;
            }
            None => packets.delivered += 1,
        }
    }

    fn fault(&mut self, handle: Handle, what: &str) {
        self.fault.get_or_insert_with(|| format!("packet {:#x} {what}", handle.0));
    }

    /// Whether a copy of a packet is somewhere.
    pub fn is_under_way(&self, handle: Handle) -> bool {
        self.entries.contains_key(&handle)
    }

    /// Packets of a class, those still under way counted as queued.
    pub fn packets(&self, class: Class) -> Packets {
        let mut packets = self.closed[class as usize];
        for entry in self.entries.values().filter(|e| e.class == class) {
            if entry.delivered { packets.delivered += 1 } else { packets.queued += 1 }
        }
        packets
    }
    /// Ended packets by cause.
    pub const fn drops(&self) -> &BTreeMap<(Layer, DropReason), u64> {
        &self.drops
    }

    /// Checks that the copies in the book are the copies in the nodes; `held` lists the latter.
    pub fn check(&self, held: impl Iterator<Item = Handle>) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut found: BTreeMap<Handle, i32> = BTreeMap::new();
        for handle in held {
            *found.entry(handle).or_default() += 1;
        }
        let booked = self.entries.iter().map(|(h, e)| (*h, e.copies)).collect::<BTreeMap<_, _>>();
        if found == booked {
            return Ok(());
        }
        let odd = booked
            .iter()
            .find(|(h, n)| found.get(h) != Some(n))
            .or_else(|| found.iter().find(|(h, n)| booked.get(h) != Some(n)));
        let (handle, _) = odd.expect("unequal maps differ in an entry");
        Err(format!(
            "packet {:#x}: {} copies in the book, {} in the nodes",
            handle.0,
            booked.get(handle).unwrap_or(&0),
            found.get(handle).unwrap_or(&0)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Handle = Handle(7);

    fn dropped(reason: DropReason) -> Dropped {
        Dropped { handle: PACKET, layer: Layer::Mac, reason }
    }
    fn born() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.born(PACKET, Class::Request);
        ledger
    }
    fn check(ledger: &Ledger, held: &[Handle]) -> Result<(), String> {
        ledger.check(held.iter().copied())
    }

    #[test]
    fn a_packet_over_two_hops_is_delivered_once() {
        let mut ledger = born();
        for _ in 0..2 {
            ledger.accepted(PACKET);
            ledger.passed_on(PACKET);
        }
        assert_eq!(check(&ledger, &[PACKET]), Ok(()));
        ledger.delivered(PACKET);
        let delivered = Packets { sent: 1, delivered: 1, ..Packets::default() };
        assert_eq!(ledger.packets(Class::Request), delivered);
        assert_eq!(check(&ledger, &[]), Ok(()));
    }

    #[test]
    fn a_sender_that_gives_up_after_the_receiver_has_it_does_not_undo_the_delivery() {
        for first_delivered in [true, false] {
            let mut ledger = born();
            ledger.accepted(PACKET);
            if first_delivered {
                ledger.delivered(PACKET);
            }
            ledger.dropped(dropped(DropReason::NoAck));
            if !first_delivered {
                ledger.delivered(PACKET);
            }
            let packets = ledger.packets(Class::Request);
            assert_eq!((packets.delivered, packets.dropped), (1, 0));
            assert!(ledger.drops().is_empty(), "no drop of a packet that arrived");
        }
    }

    #[test]
    fn a_packet_dropped_at_both_ends_counts_once_with_its_last_reason() {
        let mut ledger = born();
        ledger.accepted(PACKET);
        ledger.dropped(dropped(DropReason::NoAck));
        ledger.dropped(dropped(DropReason::QueueFull));
        let packets = ledger.packets(Class::Request);
        assert_eq!((packets.sent, packets.dropped), (1, 1));
        let drops = BTreeMap::from([((Layer::Mac, DropReason::QueueFull), 1)]);
        assert_eq!(ledger.drops(), &drops);
    }

    #[test]
    fn packets_under_way_are_queued_in_their_own_class() {
        let ledger = born();
        let queued = Packets { sent: 1, queued: 1, ..Packets::default() };
        assert_eq!(ledger.packets(Class::Request), queued);
        assert_eq!(ledger.packets(Class::Response), Packets::default());
    }

    #[test]
    fn what_was_delivered_but_is_still_with_its_sender_is_delivered() {
        let mut ledger = born();
        ledger.accepted(PACKET);
        ledger.delivered(PACKET);
        let delivered = Packets { sent: 1, delivered: 1, ..Packets::default() };
        assert_eq!(ledger.packets(Class::Request), delivered);
        assert_eq!(check(&ledger, &[PACKET]), Ok(()));
    }

    #[test]
    fn a_copy_that_no_node_has_is_told_with_both_counts() {
        let message = check(&born(), &[]).expect_err("the packet is lost");
        assert_eq!(message, "packet 0x7: 1 copies in the book, 0 in the nodes");
    }

    #[test]
    fn a_copy_that_is_not_in_the_book_is_told_with_both_counts() {
        let message = check(&born(), &[PACKET, PACKET]).expect_err("one copy too many");
        assert_eq!(message, "packet 0x7: 1 copies in the book, 2 in the nodes");
        let message = check(&Ledger::default(), &[PACKET]).expect_err("a packet out of nothing");
        assert_eq!(message, "packet 0x7: 0 copies in the book, 1 in the nodes");
    }

    #[test]
    fn a_packet_that_lives_on_after_its_last_copy_is_a_fault() {
        let mut ledger = born();
        ledger.dropped(dropped(DropReason::NoRoute));
        ledger.delivered(PACKET);
        let message = check(&ledger, &[]).expect_err("it was gone");
        assert_eq!(message, "packet 0x7 was delivered after all its copies were gone");
    }

    #[test]
    fn a_name_given_twice_is_a_fault() {
        let mut ledger = born();
        ledger.born(PACKET, Class::Control);
        assert_eq!(check(&ledger, &[PACKET]), Err("packet 0x7 was born twice".to_owned()));
    }
}
