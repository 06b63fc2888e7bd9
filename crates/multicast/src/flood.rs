//! Plain flooding: every node sends every packet once, after a random wait. A baseline without routes and control messages.
//!
//! A packet is known by a digest of all its octets but the hop limit, so nothing is added to it.
//!
//! Remembered packets: `seen` in total; the packets of one source take half of the places at most. The next packet of a
//! source without a place, or the next one when all are taken, is neither delivered nor forwarded
//! ([`DropReason::BufferFull`]): a node that forgot a packet too early would take its copies for new ones. A place is free
//! again after `memory`. Waiting packets are among the remembered ones, so the same bound holds for them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected, earliest};
use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET};

use crate::engine::{Engine, Event, NodeContext, Output, Reach, Receiver, Snapshot};
use crate::pacing;
use crate::packet::{dropped, lower_hop_limit, originated, routable};
use crate::params::{FLOOD_CELLS, FLOOD_JITTER, FLOOD_MEMORY, TIME_MAX};

/// The row of [`Flood`].
pub static ROW: Row<dyn Engine> = Row {
    name: "flood",
    summary: "Every node sends every packet once, after a random wait",
    section: "multicast",
    parameters: &[
        Parameter::time(
            "jitter",
            FLOOD_JITTER,
            Duration::ZERO,
            TIME_MAX,
            "The longest wait of a forwarder",
        )
        .source("ours"),
        Parameter::whole(
            "cells",
            FLOOD_CELLS,
            1,
            64,
            "Number of broadcast cells among which a forwarder draws its wait, if the MAC has such cells",
        )
        .unit("cells")
        .source("ours"),
        Parameter::time(
            "memory",
            FLOOD_MEMORY,
            Duration::ZERO,
            TIME_MAX,
            "How long a packet is remembered",
        )
        .source("ours"),
        Parameter::whole("seen", 64, 2, 4096, "Maximum number of remembered packets")
            .unit("packets")
            .source("ours"),
    ],
    make: |choice, rng| Box::new(Flood::new(choice, rng)),
};

/// A packet that was seen, for a time.
#[derive(Debug)]
struct Seen {
    source: Address,
    digest: u64,
    until: Instant,
}

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    due: Instant,
    packet: Vec<u8>,
    handle: Handle,
}

/// Flooding at one node.
#[derive(Debug)]
pub struct Flood {
    jitter: Duration,
    cells: u32,
    memory: Duration,
    seen_max: usize,
    /// Oldest first.
    seen: Vec<Seen>,
    waiting: Vec<Waiting>,
    rng: Rng,
    outbox: Outbox<Output>,
}

impl Flood {
    fn new(choice: &Choice<dyn Engine>, rng: Rng) -> Self {
        let jitter = choice.time("jitter");
        Self {
            jitter,
            cells: choice.whole("cells"),
            // A packet that waits is remembered for longer than it waits.
            memory: choice.time("memory").max(jitter * 2),
            seen_max: choice.whole("seen"),
            seen: Vec::new(),
            waiting: Vec::new(),
            rng,
            outbox: Outbox::new(),
        }
    }

    /// Notes that a packet was seen; the error says why it goes no further.
    fn note(&mut self, now: Instant, source: Address, packet: &[u8]) -> Result<(), DropReason> {
        let digest = digest(packet);
        if self.seen.iter().any(|seen| (seen.source, seen.digest) == (source, digest)) {
            return Err(DropReason::Duplicate);
        }
        let of_source = self.seen.iter().filter(|seen| seen.source == source).count();
        if self.seen.len() >= self.seen_max || of_source >= self.seen_max / 2 {
            return Err(DropReason::BufferFull);
        }
        self.seen.push(Seen { source, digest, until: now + self.memory });
        Ok(())
    }

    fn originate(&mut self, now: Instant, packet: &[u8], handle: Handle) -> Result<(), Rejected> {
        let header = originated(packet)?;
        let note = self.note(now, header.source, packet);
        self.outbox.push(match note {
            Ok(()) => Output::Send { packet: packet.to_vec(), to: Receiver::Broadcast, handle },
            Err(reason) => dropped(handle, reason),
        });
        Ok(())
    }

    fn receive(&mut self, now: Instant, packet: &[u8], handle: Handle, context: &dyn NodeContext) {
        let Some(header) = routable(packet) else {
            self.outbox.push(dropped(handle, DropReason::Malformed));
            return;
        };
        if header.source == context.address() {
            // The memory of a packet of this node may have ended, or the node restarted.
            self.outbox.push(dropped(handle, DropReason::Duplicate));
            return;
        }
        if let Err(reason) = self.note(now, header.source, packet) {
            self.outbox.push(dropped(handle, reason));
            return;
        }
        if context.is_member(&header.destination) {
            self.outbox.push(Output::Deliver { packet: packet.to_vec(), handle });
        }
        let mut packet = packet.to_vec();
        if lower_hop_limit(&mut packet) {
            let due = now + self.wait(context);
            self.waiting.push(Waiting { due, packet, handle });
        } else {
            self.outbox.push(dropped(handle, DropReason::HopLimit));
        }
    }

    /// How long a packet waits that goes on.
    fn wait(&mut self, context: &dyn NodeContext) -> Duration {
        match context.broadcast_period() {
            Some(period) => pacing::wait(&mut self.rng, period, self.cells),
            None => self.rng.duration(Duration::ZERO, self.jitter),
        }
    }

    fn expire(&mut self, now: Instant) {
        self.seen.retain(|seen| seen.until > now);
        self.waiting.sort_by_key(|waiting| waiting.due);
        let count = self.waiting.iter().take_while(|waiting| waiting.due <= now).count();
        for Waiting { packet, handle, .. } in self.waiting.drain(..count) {
            self.outbox.push(Output::Send { packet, to: Receiver::Broadcast, handle });
        }
    }
}

/// FNV-1a with 64 bits over the packet, with a hop limit of zero.
fn digest(packet: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    packet.iter().enumerate().fold(BASIS, |hash, (at, octet)| {
        let octet = if at == HOP_LIMIT_OFFSET { 0 } else { *octet };
        (hash ^ u64::from(octet)).wrapping_mul(PRIME)
    })
}

impl Engine for Flood {
    fn handle(
        &mut self,
        now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        self.expire(now);
        match event {
            Event::Originate { packet, handle } => self.originate(now, packet, handle)?,
            Event::Received { packet, handle, .. } => {
                self.receive(now, packet, handle, context);
            }
            // Flooding has no control messages.
            Event::Control { handle, .. } => {
                self.outbox.push(dropped(handle, DropReason::NotForUs));
            }
            Event::Deadline => {}
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().map(|waiting| waiting.due).min();
        earliest(waiting, self.seen.iter().map(|seen| seen.until).min())
    }
    fn handles(&self) -> Vec<Handle> {
        self.waiting.iter().map(|waiting| waiting.handle).collect()
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            packets: self.waiting.len(),
            packets_max: self.seen_max,
            entries: self.seen.len(),
            entries_max: self.seen_max,
            ..Snapshot::default()
        }
    }
    fn reach(&self) -> Reach {
        Reach::Mesh
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{PACKET, Root};
    use lowmesh_units::{Eui64, NodeId, Purpose, Seed};

    fn engine(choice: &Choice<dyn Engine>) -> Flood {
        Flood::new(choice, Rng::stream(Seed(1), NodeId(0), Purpose::Multicast))
    }

    fn packet(source: u8, number: u8) -> Vec<u8> {
        let mut packet = PACKET.to_vec();
        (packet[3], packet[23]) = (number, source);
        packet
    }

    fn receive(engine: &mut Flood, now: Instant, packet: &[u8]) -> Option<Output> {
        let event = Event::Received { packet, from: Eui64([1; 8]), handle: Handle(1) };
        engine.handle(now, event, &Root).expect("any packet is accepted");
        engine.poll_output()
    }

    #[test]
    fn a_packet_goes_on_once_within_the_jitter() {
        let mut engine = engine(&(&ROW).into());
        assert_eq!(receive(&mut engine, Instant::ZERO, &packet(9, 0)), None);
        let mut again = packet(9, 0);
        again[HOP_LIMIT_OFFSET] -= 1;
        let duplicate = dropped(Handle(1), DropReason::Duplicate);
        assert_eq!(receive(&mut engine, Instant::ZERO, &again), Some(duplicate));
        let due = engine.next_deadline().expect("a packet waits");
        assert!(due <= Instant::ZERO + FLOOD_JITTER);
        engine.handle(due, Event::Deadline, &Root).expect("a deadline is accepted");
        let Some(Output::Send { packet, to, .. }) = engine.poll_output() else {
            panic!("it is due")
        };
        assert_eq!(
            (packet[HOP_LIMIT_OFFSET], to),
            (PACKET[HOP_LIMIT_OFFSET] - 1, Receiver::Broadcast)
        );
        assert_eq!(engine.poll_output(), None);
    }

    #[test]
    fn a_source_has_half_of_the_places_and_gets_them_back_later() {
        let choice = Choice::from(&ROW).with("seen", 4_u64).expect("within bounds");
        let mut engine = engine(&choice);
        let full = Some(dropped(Handle(1), DropReason::BufferFull));
        for number in 0..2 {
            assert_eq!(receive(&mut engine, Instant::ZERO, &packet(9, number)), None);
        }
        assert_eq!(receive(&mut engine, Instant::ZERO, &packet(9, 2)), full);
        for source in [7, 8] {
            assert_eq!(receive(&mut engine, Instant::ZERO, &packet(source, 0)), None);
        }
        assert_eq!(receive(&mut engine, Instant::ZERO, &packet(6, 0)), full);
        let later = Instant::ZERO + FLOOD_MEMORY;
        engine.handle(later, Event::Deadline, &Root).expect("a deadline is accepted");
        assert_eq!(engine.snapshot().entries, 0);
        while engine.poll_output().is_some() {}
        assert_eq!(receive(&mut engine, later, &packet(6, 0)), None);
    }
}
