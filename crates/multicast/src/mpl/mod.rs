//! The Multicast Protocol for Low-Power and Lossy Networks (MPL, RFC 7731), one domain.
//!
//! ```text
//!   data message (option 0x6d) --new--> Deliver to members; buffer; its Trickle timer sends it up to 3 times (proactive)
//!                              --held-> consistent: neighbours have it
//!   control message (ICMPv6 159) -----> a neighbour has what I lack: I say what I have
//!                                       I have what a neighbour lacks: its Trickle timer starts again (reactive)
//!                                       neither: consistent
//! ```
//!
//! Packets of this node to another address than that of the domain, or from another source, travel in a packet to the
//! domain (s9.1). A node is seed and forwarder at once.

mod row;
mod sets;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected, earliest};
use lowmesh_registry::Choice;
use lowmesh_trickle::{Expiry, Settings, Trickle};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{
    Address, HOP_LIMIT_OFFSET, Header, Scope, hop_by_hop_option, with_hop_by_hop_option,
    without_hop_by_hop_option,
};
use lowmesh_wire::mpl::{Control, DataOption, SeedId, SeedInfo};

use crate::engine::{Engine, Event, NodeContext, Output, Reach, Receiver, Snapshot};
use crate::pacing;
use crate::packet::{
    control, decapsulate, dropped, encapsulate, lower_hop_limit, originated, routable,
};
use crate::params::CONTROL_HOP_LIMIT;
pub use row::ROW;
use sets::{Message, Sets, is_after};

/// MPL at one node.
#[derive(Debug)]
pub struct Mpl {
    domain: Address,
    is_proactive: bool,
    data: Settings,
    /// Of the control timer.
    control_settings: Settings,
    /// The time from one cell for broadcasts to the next.
    period: Option<Duration>,
    data_expirations: u64,
    control_expirations: u64,
    seed_id: SeedForm,
    /// Of the next message of this node; random at first, since a node that restarts does not know its last one.
    sequence: u8,
    sets: Sets,
    control: Trickle,
    /// e of the control timer.
    expirations: u64,
    sent: u64,
    refused: u64,
    rng: Rng,
    outbox: Outbox<Output>,
}

/// What names this node.
#[derive(Clone, Copy, Debug)]
enum SeedForm {
    Source,
    Short,
    Extended,
}

impl SeedForm {
    fn of(self, address: Address) -> SeedId {
        let extended = address.interface_identifier();
        match self {
            Self::Source => SeedId::Source,
            Self::Short => SeedId::Short(u16::from_be_bytes([extended[6], extended[7]])),
            Self::Extended => SeedId::Extended(extended),
        }
    }
}

/// RFC 6206 s4.1 gives Imax as doublings of Imin: as many as stay within `imax`.
fn settings(imin: Duration, imax: Duration, redundancy: u8) -> Settings {
    let doublings = (imax.as_nanos() / imin.as_nanos().max(1)).max(1).ilog2();
    Settings { imin, doublings: doublings as u8, redundancy }
}

impl Mpl {
    fn new(choice: &Choice<dyn Engine>, mut rng: Rng) -> Self {
        let data = ("data_imin", "data_imax", "data_k");
        let control = ("control_imin", "control_imax", "control_k");
        let settings = |(imin, imax, k): (&str, &str, &str)| {
            settings(choice.time(imin), choice.time(imax), choice.whole(k))
        };
        let control = settings(control);
        Self {
            domain: Address::ALL_MPL_FORWARDERS,
            is_proactive: choice.flag("proactive"),
            data: settings(data),
            control_settings: control,
            period: None,
            data_expirations: choice.whole("data_expirations"),
            control_expirations: choice.whole("control_expirations"),
            seed_id: match choice.text("seed_id").as_str() {
                "short" => SeedForm::Short,
                "extended" => SeedForm::Extended,
                _ => SeedForm::Source,
            },
            sequence: rng.below(256) as u8,
            sets: Sets {
                seeds: Vec::new(),
                messages: Vec::new(),
                seeds_max: choice.whole("seeds"),
                messages_max: choice.whole("messages"),
                lifetime: choice.time("seed_lifetime"),
            },
            control: Trickle::new(control),
            expirations: 0,
            sent: 0,
            refused: 0,
            rng,
            outbox: Outbox::new(),
        }
    }

    fn originate(
        &mut self,
        now: Instant,
        packet: &[u8],
        handle: Handle,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        let header = originated(packet)?;
        if packet[HOP_LIMIT_OFFSET] == 0 {
            self.outbox.push(dropped(handle, DropReason::HopLimit));
            return Ok(());
        }
        let address = context.address();
        let seed = self.seed_id.of(address);
        let option = DataOption { seed, is_largest: true, sequence: self.sequence };
        let mut octets = Vec::new();
        option.emit(&mut octets);
        // RFC 7731 s9.1: the message itself goes out if it is to the domain and from here; else IPv6-in-IPv6 MUST be used.
        let message = if header.destination == self.domain && header.source == address {
            with_hop_by_hop_option(packet, &octets)
        } else {
            encapsulate(packet, address, self.domain, &octets)
        };
        let Ok(message) = message else {
            self.outbox.push(dropped(handle, DropReason::TooLarge));
            return Ok(());
        };
        let seed = seed.resolve(address);
        // A seed set that is full would keep this node from ever sending: its own message is dropped then, as any other.
        if self.accept(now, seed, option.sequence, message, handle, false) {
            // RFC 7731 s8: the sequence number MUST be incremented for each message.
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(())
    }

    fn receive(&mut self, now: Instant, packet: &[u8], handle: Handle, context: &dyn NodeContext) {
        let (header, option) = match self.read(packet) {
            Ok(read) => read,
            Err(reason) => {
                self.outbox.push(dropped(handle, reason));
                return;
            }
        };
        let address = context.address();
        let seed = option.seed.resolve(header.source);
        self.hear(now, seed, &option);
        let is_own = seed == self.seed_id.of(address).resolve(address);
        if is_own && !is_after(self.sequence, option.sequence) {
            // This node restarted: it goes on above what it sent before.
            self.sequence = option.sequence.wrapping_add(1);
        }
        let mut onward = packet.to_vec();
        let is_spent = !lower_hop_limit(&mut onward);
        if self.accept(now, seed, option.sequence, onward, handle, is_spent) && !is_own {
            self.deliver(packet, handle, context);
        }
    }

    /// The header and the MPL option of a data message of this domain.
    fn read(&self, packet: &[u8]) -> Result<(Header, DataOption), DropReason> {
        let header = routable(packet).ok_or(DropReason::Malformed)?;
        // RFC 7731 s12: messages of a domain that the interface does not subscribe to MUST NOT be accepted.
        if header.destination != self.domain {
            return Err(DropReason::NotForUs);
        }
        let found = hop_by_hop_option(packet, DataOption::TYPE);
        let (_, octets) = found.map_err(|_| DropReason::Malformed)?.ok_or(DropReason::NotForUs)?;
        let option = DataOption::parse(octets).map_err(|_| DropReason::Malformed)?;
        Ok((header, option))
    }

    /// Updates the timers of data messages (RFC 7731 s9.2).
    fn hear(&mut self, now: Instant, seed: SeedId, option: &DataOption) {
        for message in self.sets.messages.iter_mut().filter(|message| message.seed == seed) {
            if message.sequence == option.sequence {
                message.timer.hear_consistent();
            } else if option.is_largest
                && is_after(message.sequence, option.sequence)
                && message.timer.is_running()
            {
                message.timer.hear_inconsistent(now, &mut self.rng);
                message.expirations = 0;
            }
        }
    }

    /// Takes a message into the sets if it is new (RFC 7731 s9.3); true if so.
    fn accept(
        &mut self,
        now: Instant,
        seed: SeedId,
        sequence: u8,
        packet: Vec<u8>,
        handle: Handle,
        is_spent: bool,
    ) -> bool {
        let option = hop_by_hop_option(&packet, DataOption::TYPE).ok().flatten();
        let Some((option_at, _)) = option else { return false };
        match self.sets.admit(now, seed, sequence) {
            Ok(evicted) => evicted.into_iter().for_each(|message| self.end(&message)),
            Err(reason) => {
                self.outbox.push(dropped(handle, reason));
                return false;
            }
        }
        if is_spent {
            self.outbox.push(dropped(handle, DropReason::HopLimit));
        }
        let mut timer = Trickle::new(pacing::spread(self.data, self.period));
        if self.is_proactive && !is_spent {
            timer.start(now, &mut self.rng);
        }
        self.sets.messages.push(Message {
            seed,
            sequence,
            packet,
            flags_at: option_at + FLAGS_OFFSET,
            handle,
            timer,
            expirations: 0,
            is_spent,
            was_sent: false,
            since: now,
        });
        self.restart_control(now);
        true
    }

    /// Gives a message to the applications as its sender made it.
    fn deliver(&mut self, packet: &[u8], handle: Handle, context: &dyn NodeContext) {
        let Ok(plain) = without_hop_by_hop_option(packet, DataOption::TYPE) else { return };
        let (header, packet) = match decapsulate(&plain) {
            Some((header, inner)) => (header, inner.to_vec()),
            None => match Header::parse_packet(&plain) {
                Ok(header) => (header, plain),
                Err(_) => return,
            },
        };
        if context.is_member(&header.destination) {
            self.outbox.push(Output::Deliver { packet, handle });
        }
    }

    /// A control message of a neighbour (RFC 7731 s10.3).
    fn compare(&mut self, now: Instant, theirs: &Control, source: Address) {
        let lacks = theirs.seeds.iter().any(|info| {
            let id = info.seed.resolve(source);
            match self.sets.seed(id) {
                // A node without room for another seed could not take what it asks for.
                None => self.sets.seeds.len() < self.sets.seeds_max,
                // RFC 7731 s10.3 has only sequence numbers above MinSequence here; s7.3 and s9.3 accept MinSequence too.
                Some(seed) => info.sequences().any(|sequence| {
                    !is_after(seed.min_sequence, sequence) && !self.sets.holds(id, sequence)
                }),
            }
        });
        let mut offers = false;
        for message in self.sets.messages.iter_mut().filter(|message| !message.is_spent) {
            let has_it = theirs.of(message.seed, source).is_some_and(|info| {
                is_after(info.min_sequence, message.sequence) || info.contains(message.sequence)
            });
            if !has_it {
                offers = true;
                message.expirations = 0;
                if message.timer.is_running() {
                    message.timer.hear_inconsistent(now, &mut self.rng);
                } else {
                    message.timer.start(now, &mut self.rng);
                }
            }
        }
        if lacks || offers {
            self.restart_control(now);
        } else {
            self.control.hear_consistent();
        }
    }

    /// Resets or starts the control timer.
    fn restart_control(&mut self, now: Instant) {
        self.expirations = 0;
        if self.control.is_running() {
            self.control.hear_inconsistent(now, &mut self.rng);
        } else if self.control_expirations > 0 {
            self.control.configure(pacing::spread(self.control_settings, self.period));
            self.control.start(now, &mut self.rng);
        }
    }

    /// The control message of this node (RFC 7731 s10.1).
    fn send_control(&mut self, address: Address) {
        let info = |seed: &sets::Seed| {
            let is_own = seed.id == SeedId::Long(address.0);
            let id = if is_own { SeedId::Source } else { seed.id };
            let mut info = SeedInfo::new(id, seed.min_sequence);
            let held = self.sets.messages.iter().filter(|message| message.seed == seed.id);
            held.for_each(|message| info.insert(message.sequence));
            info
        };
        let message = Icmpv6::Mpl(Control { seeds: self.sets.seeds.iter().map(info).collect() });
        self.outbox.push(control(address, self.domain.in_scope(Scope::LINK_LOCAL), &message));
        self.sent += 1;
    }

    /// Does what is due at `now`.
    fn expire(&mut self, now: Instant, address: Address) {
        for message in &mut self.sets.messages {
            let Some(expiry) = message.timer.expire(now, &mut self.rng) else { continue };
            message.expirations += 1;
            // RFC 7731 s9.2: after so many moments the timer MUST be disabled.
            if message.expirations >= self.data_expirations {
                message.timer.stop();
            }
            if expiry == Expiry::Transmit {
                let seeds = &self.sets.seeds;
                let largest =
                    seeds.iter().find(|seed| seed.id == message.seed).map(|seed| seed.largest);
                let is_largest = largest == Some(message.sequence);
                let flags = &mut message.packet[message.flags_at];
                *flags = *flags & !LARGEST | if is_largest { LARGEST } else { 0 };
                message.was_sent = true;
                let (packet, handle) = (message.packet.clone(), message.handle);
                self.outbox.push(Output::Send { packet, to: Receiver::Broadcast, handle });
            }
        }
        if let Some(expiry) = self.control.expire(now, &mut self.rng) {
            self.expirations += 1;
            if self.expirations >= self.control_expirations {
                self.control.stop();
            }
            if expiry == Expiry::Transmit {
                self.send_control(address);
            }
        }
        let mut ended = Vec::new();
        // RFC 7731 s10.2: a MinSequence that rises is an event that resets the timer; one that is disabled stays so.
        if self.sets.expire(now, &mut ended) && self.control.is_running() {
            self.restart_control(now);
        }
        for message in &ended {
            self.end(message);
        }
    }

    /// A message leaves the set.
    fn end(&mut self, message: &Message) {
        if !message.was_sent && !message.is_spent {
            self.outbox.push(dropped(message.handle, DropReason::Suppressed));
        }
    }
}

/// The flags stand behind type and length of the MPL option.
const FLAGS_OFFSET: usize = 2;
/// M in the flags.
const LARGEST: u8 = 0x20;

impl Engine for Mpl {
    fn handle(
        &mut self,
        now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        self.period = context.broadcast_period();
        self.expire(now, context.address());
        match event {
            Event::Originate { packet, handle } => {
                self.originate(now, packet, handle, context)?;
            }
            Event::Received { packet, handle, .. } => {
                self.receive(now, packet, handle, context);
            }
            Event::Control { header, message: Icmpv6::Mpl(message), .. }
                if header.hop_limit == CONTROL_HOP_LIMIT
                    && header.destination == self.domain.in_scope(Scope::LINK_LOCAL)
                    && !header.source.is_multicast() =>
            {
                self.compare(now, message, header.source);
            }
            Event::Control { handle, .. } => {
                self.refused += 1;
                self.outbox.push(dropped(handle, DropReason::Malformed));
            }
            Event::Deadline => {}
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.sets.next_deadline(), self.control.next_deadline())
    }
    fn handles(&self) -> Vec<Handle> {
        let held = self.sets.messages.iter().filter(|message| !message.is_spent);
        held.map(|message| message.handle).collect()
    }
    fn listens(&self) -> &'static [Address] {
        &[Address::ALL_MPL_FORWARDERS, Address::ALL_LINK_MPL_FORWARDERS]
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            packets: self.sets.messages.len(),
            packets_max: self.sets.messages_max,
            entries: self.sets.seeds.len(),
            entries_max: self.sets.seeds_max,
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
