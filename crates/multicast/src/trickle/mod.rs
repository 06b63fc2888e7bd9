//! Trickle multicast as in draft-ietf-roll-trickle-mcast-01 with the numbers of Contiki, which calls it ROLL TM.
//!
//! One Trickle timer serves all packets of one set of parameters (the bit M); this node sends with the second set.
//!
//! ```text
//!   new packet ------> Deliver to members; must-send; the timer starts over
//!   at t in [I/2, I) -> the must-send packets; and, if fewer than k consistent lists came, the list of what this node holds
//!   list of a neighbour: it has what I lack, or lacks what I have (must-send) -> the timer starts over; else consistent
//!   Tactive, Tdwell --> a packet is no longer offered, no longer held
//! ```
//!
//! With k = 0 (never silent) a node sends all packets younger than Tactive at each moment, and no lists.

#[cfg(test)]
mod tests;
mod windows;

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected, earliest};
use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_trickle::{Expiry, Settings, Trickle as Timer};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{
    Address, HOP_LIMIT_OFFSET, Header, hop_by_hop_option, with_hop_by_hop_option,
    without_hop_by_hop_option,
};
use lowmesh_wire::trickle_multicast::{
    CONTROL_TYPE, DataOption, Parameters, Seed, SequenceList, emit_lists, parse_lists,
};

use crate::engine::{Engine, Event, NodeContext, Output, Reach, Receiver, Snapshot};
use crate::pacing;
use crate::packet::{control, dropped, lower_hop_limit, originated, routable};
use crate::params::{
    CONTROL_HOP_LIMIT, FIRST_ACTIVE, FIRST_DOUBLINGS, FIRST_DWELL, FIRST_IMIN, SECOND_ACTIVE,
    SECOND_DOUBLINGS, SECOND_DWELL, SECOND_IMIN, SECOND_REDUNDANCY, TIME_MAX,
};
use windows::{Held, Key, Windows, index, is_after};

/// The shortest interval of a timer: a bound of ours, so that no timer runs without rest.
const IMIN_LOW: Duration = Duration::from_millis(1);

/// The row of [`Trickle`].
pub static ROW: Row<dyn Engine> = Row {
    name: "trickle",
    summary: "One Trickle timer for all packets, and lists of what a node holds (ROLL TM of Contiki)",
    section: "multicast",
    parameters: &[
        Parameter::time(
            "imin",
            SECOND_IMIN,
            IMIN_LOW,
            TIME_MAX,
            "Shortest interval; at least ten broadcast cells, if the MAC has such cells",
        )
        .source("Contiki"),
        Parameter::whole(
            "doublings",
            SECOND_DOUBLINGS,
            0,
            16,
            "The longest interval, as doublings of the shortest",
        )
        .source("Contiki"),
        Parameter::whole(
            "k",
            SECOND_REDUNDANCY,
            0,
            255,
            "Received lists after which a node suppresses its own; 0 for never",
        )
        .source("Contiki"),
        Parameter::whole(
            "active",
            SECOND_ACTIVE,
            1,
            255,
            "Tactive: how long a packet is offered, in longest intervals",
        )
        .source("Contiki")
        .not_above("dwell"),
        Parameter::whole(
            "dwell",
            SECOND_DWELL,
            1,
            255,
            "Tdwell: how long a packet is held, in longest intervals",
        )
        .source("Contiki"),
        Parameter::whole("windows", 2, 1, 255, "Maximum number of remembered seeds")
            .unit("seeds")
            .source("Contiki"),
        Parameter::whole("buffers", 6, 1, 255, "Maximum number of stored packets")
            .unit("packets")
            .source("Contiki"),
    ],
    make: |choice, rng| Box::new(Trickle::new(choice, rng)),
};

/// One set of parameters with its timer.
#[derive(Debug)]
struct Set {
    timer: Timer,
    /// Its numbers, where a broadcast can leave at any time.
    settings: Settings,
    active: Duration,
}

/// Trickle multicast at one node.
#[derive(Debug)]
pub struct Trickle {
    sets: [Set; 2],
    windows: Windows,
    /// The time from one cell for broadcasts to the next.
    period: Option<Duration>,
    /// Of the next packet of this node; random at first.
    sequence: u16,
    sent: u64,
    refused: u64,
    rng: Rng,
    outbox: Outbox<Output>,
}

impl Trickle {
    fn new(choice: &Choice<dyn Engine>, mut rng: Rng) -> Self {
        let first = Settings { imin: FIRST_IMIN, doublings: FIRST_DOUBLINGS, redundancy: 0 };
        let second = Settings {
            imin: choice.time("imin"),
            doublings: choice.whole("doublings"),
            redundancy: choice.whole("k"),
        };
        let set = |settings: Settings, active| Set {
            timer: Timer::new(settings),
            settings,
            active: settings.imax().saturating_mul(active),
        };
        let dwells = [
            first.imax().saturating_mul(FIRST_DWELL),
            second.imax().saturating_mul(choice.whole("dwell")),
        ];
        Self {
            sets: [set(first, FIRST_ACTIVE), set(second, choice.whole("active"))],
            windows: Windows {
                open: Vec::new(),
                held: Vec::new(),
                open_max: choice.whole("windows"),
                held_max: choice.whole("buffers"),
                dwell: dwells,
            },
            period: None,
            sequence: rng.below(0x8000) as u16,
            sent: 0,
            refused: 0,
            rng,
            outbox: Outbox::new(),
        }
    }

    fn originate(&mut self, now: Instant, packet: &[u8], handle: Handle) -> Result<(), Rejected> {
        let header = originated(packet)?;
        if packet[HOP_LIMIT_OFFSET] == 0 {
            self.outbox.push(dropped(handle, DropReason::HopLimit));
            return Ok(());
        }
        let parameters = Parameters::Second;
        let option = DataOption { seed: None, parameters, sequence: self.sequence };
        let mut octets = Vec::new();
        option.emit(&mut octets);
        let Ok(packet) = with_hop_by_hop_option(packet, &octets) else {
            self.outbox.push(dropped(handle, DropReason::TooLarge));
            return Ok(());
        };
        let held = Held {
            key: (Seed::Address(header.source.0), parameters),
            sequence: option.sequence,
            packet: packet.clone(),
            handle,
            since: now,
            must_send: false,
            is_spent: false,
            was_sent: true,
        };
        if self.accept(now, held) {
            self.sequence = self.sequence.wrapping_add(1) & 0x7fff;
            self.outbox.push(Output::Send { packet, to: Receiver::Broadcast, handle });
        }
        Ok(())
    }

    fn receive(&mut self, now: Instant, packet: &[u8], handle: Handle, context: &dyn NodeContext) {
        let (header, option) = match read(packet) {
            Ok(read) => read,
            Err(reason) => {
                self.outbox.push(dropped(handle, reason));
                return;
            }
        };
        let is_own = header.source == context.address();
        if is_own && !is_after(self.sequence, option.sequence) {
            // This node restarted: it goes on above what it sent before.
            self.sequence = option.sequence.wrapping_add(1) & 0x7fff;
        }
        let mut onward = packet.to_vec();
        let is_spent = !lower_hop_limit(&mut onward);
        let seed = option.seed.map_or(Seed::Address(header.source.0), Seed::Short);
        let held = Held {
            key: (seed, option.parameters),
            sequence: option.sequence,
            packet: onward,
            handle,
            since: now,
            must_send: !is_spent,
            is_spent,
            was_sent: false,
        };
        if self.accept(now, held) {
            if is_spent {
                self.outbox.push(dropped(handle, DropReason::HopLimit));
            }
            let plain = without_hop_by_hop_option(packet, DataOption::TYPE).ok();
            if let Some(packet) =
                plain.filter(|_| !is_own && context.is_member(&header.destination))
            {
                self.outbox.push(Output::Deliver { packet, handle });
            }
        }
    }

    /// Takes a packet into its window if it is new; true if so.
    fn accept(&mut self, now: Instant, held: Held) -> bool {
        let (handle, (_, parameters)) = (held.handle, held.key);
        match self.windows.insert(now, held) {
            Ok(evicted) => evicted.into_iter().for_each(|held| self.end(&held)),
            Err(reason) => {
                self.outbox.push(dropped(handle, reason));
                return false;
            }
        }
        self.restart(now, index(parameters));
        true
    }

    /// Resets or starts the timer of a set of parameters.
    fn restart(&mut self, now: Instant, set: usize) {
        let Set { timer, settings, .. } = &mut self.sets[set];
        if timer.is_running() {
            timer.hear_inconsistent(now, &mut self.rng);
        } else if self.windows.open.iter().any(|window| index(window.key.1) == set) {
            timer.configure(pacing::spread(*settings, self.period));
            timer.start(now, &mut self.rng);
        }
    }

    /// The lists of a neighbour.
    fn compare(&mut self, now: Instant, lists: &[SequenceList]) {
        let mut is_inconsistent = [false; 2];
        for list in lists {
            let key: Key = (list.seed, list.parameters);
            let lacks = match self.windows.window(key) {
                // Contiki takes an unknown seed for news, which the draft does not say; without room it is none.
                None => self.windows.open.len() < self.windows.open_max,
                Some(window) => list.sequences.iter().any(|sequence| {
                    !is_after(window.lower, *sequence) && !self.windows.holds(key, *sequence)
                }),
            };
            is_inconsistent[index(list.parameters)] |= lacks;
        }
        let missing: Vec<usize> = (0..self.windows.held.len())
            .filter(|at| self.is_missing(now, &self.windows.held[*at], lists))
            .collect();
        for at in missing {
            let held = &mut self.windows.held[at];
            held.must_send = true;
            is_inconsistent[index(held.key.1)] = true;
        }
        for (set, is_inconsistent) in is_inconsistent.into_iter().enumerate() {
            if is_inconsistent {
                self.restart(now, set);
            } else {
                self.sets[set].timer.hear_consistent();
            }
        }
    }

    /// True if the neighbour with these lists lacks a packet that this node still offers.
    fn is_missing(&self, now: Instant, held: &Held, lists: &[SequenceList]) -> bool {
        if held.is_spent || held.since + self.sets[index(held.key.1)].active <= now {
            return false;
        }
        let list = lists.iter().find(|list| (list.seed, list.parameters) == held.key);
        let Some(list) = list else { return true };
        // A packet below the least one that both hold is too old for the neighbour.
        let common =
            list.sequences.iter().copied().filter(|one| self.windows.holds(held.key, *one));
        let least = common.reduce(|least, next| if is_after(least, next) { next } else { least });
        !list.sequences.contains(&held.sequence)
            && least.is_some_and(|least| is_after(held.sequence, least))
    }

    /// Does what is due at `now`.
    fn expire(&mut self, now: Instant, address: Address) {
        for held in self.windows.expire(now) {
            self.end(&held);
        }
        for set in 0..self.sets.len() {
            if !self.windows.open.iter().any(|window| index(window.key.1) == set) {
                self.sets[set].timer.stop();
            } else if let Some(expiry) = self.sets[set].timer.expire(now, &mut self.rng) {
                self.transmit(now, set, expiry, address);
            }
        }
    }

    /// The moment t of a timer.
    fn transmit(&mut self, now: Instant, set: usize, expiry: Expiry, address: Address) {
        let Set { timer, active, .. } = &self.sets[set];
        let is_never_silent = timer.settings().redundancy == 0;
        for held in &mut self.windows.held {
            let is_active = held.since + *active > now;
            let is_due = if is_never_silent { is_active } else { held.must_send };
            if index(held.key.1) != set || held.is_spent || !is_due {
                continue;
            }
            (held.must_send, held.was_sent) = (false, true);
            let (packet, handle) = (held.packet.clone(), held.handle);
            self.outbox.push(Output::Send { packet, to: Receiver::Broadcast, handle });
        }
        if !is_never_silent && expiry == Expiry::Transmit {
            let mut body = Vec::new();
            emit_lists(&self.windows.lists(), &mut body);
            let message = Icmpv6::Other { kind: CONTROL_TYPE, code: 0, body };
            self.outbox.push(control(address, Address::ALL_ROUTERS, &message));
            self.sent += 1;
        }
    }

    /// A packet leaves its window.
    fn end(&mut self, held: &Held) {
        if !held.was_sent && !held.is_spent {
            self.outbox.push(dropped(held.handle, DropReason::Suppressed));
        }
    }
}

/// The header and the option of a packet.
fn read(packet: &[u8]) -> Result<(Header, DataOption), DropReason> {
    let header = routable(packet).ok_or(DropReason::Malformed)?;
    let found = hop_by_hop_option(packet, DataOption::TYPE).map_err(|_| DropReason::Malformed)?;
    let (_, octets) = found.ok_or(DropReason::NotForUs)?;
    let option = DataOption::parse(octets).map_err(|_| DropReason::Malformed)?;
    Ok((header, option))
}

/// The lists in a control message, if it is one.
fn lists_of(header: &Header, message: &Icmpv6) -> Option<Vec<SequenceList>> {
    let Icmpv6::Other { kind: CONTROL_TYPE, code: 0, body } = message else { return None };
    let to_neighbours = [Address::ALL_ROUTERS, Address::ALL_NODES].contains(&header.destination);
    let is_from_neighbour = header.hop_limit == CONTROL_HOP_LIMIT && to_neighbours;
    parse_lists(body).ok().filter(|_| is_from_neighbour)
}

impl Engine for Trickle {
    fn handle(
        &mut self,
        now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        self.period = context.broadcast_period();
        self.expire(now, context.address());
        match event {
            Event::Originate { packet, handle } => self.originate(now, packet, handle)?,
            Event::Received { packet, handle, .. } => {
                self.receive(now, packet, handle, context);
            }
            Event::Control { header, message, handle } => {
                if let Some(lists) = lists_of(header, message) {
                    self.compare(now, &lists);
                } else {
                    self.refused += 1;
                    self.outbox.push(dropped(handle, DropReason::Malformed));
                }
            }
            Event::Deadline => {}
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let timers = self.sets.iter().filter_map(|set| set.timer.next_deadline()).min();
        earliest(self.windows.next_deadline(), timers)
    }
    fn handles(&self) -> Vec<Handle> {
        let held = self.windows.held.iter().filter(|held| !held.is_spent);
        held.map(|held| held.handle).collect()
    }
    fn listens(&self) -> &'static [Address] {
        &[Address::ALL_ROUTERS]
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            packets: self.windows.held.len(),
            packets_max: self.windows.held_max,
            entries: self.windows.open.len(),
            entries_max: self.windows.open_max,
            controls_sent: self.sent,
            controls_refused: self.refused,
        }
    }
    fn reach(&self) -> Reach {
        Reach::Mesh
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}
