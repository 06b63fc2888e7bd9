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
    closed: [Packets; 3],
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
    /// A node passed its copy on.
    pub fn passed_on(&mut self, handle: Handle) {
        self.change(handle, "was passed on", |entry| entry.copies -= 1);
    }
    /// It reached its destination.
    pub fn delivered(&mut self, handle: Handle) {
        self.change(handle, "was delivered", |entry| {
            entry.copies -= 1;
            entry.delivered = true;
        });
    }
    /// A copy ended.
    pub fn dropped(&mut self, dropped: Dropped) {
        self.change(dropped.handle, "was dropped", |entry| {
            entry.copies -= 1;
            entry.drop = Some((dropped.layer, dropped.reason));
        });
    }

    fn change(&mut self, handle: Handle, what: &str, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.entries.get_mut(&handle) else {
            // A copy that comes back to life: the sender gave up, the receiver had it.
            self.fault(handle, &format!("{what} after all its copies were gone"));
            return;
        };
        // An entry in the book has at least one copy, and each change takes at most one.
        change(entry);
        if entry.copies == 0 {
            let entry = *entry;
            self.entries.remove(&handle);
            self.close(entry);
        }
    }

    fn close(&mut self, entry: Entry) {
        let packets = &mut self.closed[entry.class as usize];
        match entry.drop {
            _ if entry.delivered => packets.delivered += 1,
            Some(cause) => {
                packets.dropped += 1;
                *self.drops.entry(cause).or_default() += 1;
            }
            None => packets.delivered += 1,
        }
    }

    fn fault(&mut self, handle: Handle, what: &str) {
        self.fault.get_or_insert_with(|| format!("packet {:#x} {what}", handle.0));
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
