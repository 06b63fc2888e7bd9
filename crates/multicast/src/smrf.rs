//! Stateless Multicast RPL Forwarding (SMRF: Oikonomou and Phillips, PerCom workshops 2012) and its extension ESMRF (Abdel
//! Fadeel and El Sayed 2015), with the numbers of Contiki.
//!
//! ```text
//!   from the preferred parent? --no--> Dropped (a copy of another branch, or a loop)
//!     |  member: Deliver
//!     `- children registered: hop limit - 1, wait D or a multiple of it, then one broadcast or a copy to each child
//! ```
//!
//! A packet thus goes down only: SMRF sends what a node originates to its own sub-DODAG. With ESMRF a node that is not the
//! root puts the datagram into an ICMPv6 message to the root, which sends it to the whole DODAG.
//!
//! Waiting packets: `buffer` in total. All of them came from the parent or from this node, so no peer has a share; the next
//! packet takes the place of the oldest one, which leaves as [`DropReason::Superseded`].

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected};
use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::{Duration, Eui64, Instant, Rng};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, Header};

use crate::copies::Copies;
use crate::engine::{Engine, Event, NodeContext, Output, Reach, Receiver, Snapshot};
use crate::pacing;
use crate::packet::{dropped, lower_hop_limit, originated, routable};
use crate::params::{
    CHECK_INTERVAL_MAX, ESMRF_TYPE, SMRF_MAX_SPREAD, SMRF_MIN_DELAY, SMRF_SPREAD_TIME, TIME_MAX,
};

mod request;

const PARAMETERS: &[Parameter] = &[
    Parameter::time(
        "check_interval",
        Duration::ZERO,
        Duration::ZERO,
        CHECK_INTERVAL_MAX,
        "Time between two channel checks of a sleeping node; a forwarder waits for this time",
    )
    .source("Contiki 2014 with NullRDC; Contiki-NG has 125 ms"),
    Parameter::time(
        "min_delay",
        SMRF_MIN_DELAY,
        Duration::ZERO,
        TIME_MAX,
        "Fmin: the shortest wait before a packet is forwarded",
    )
    .source("Contiki, 4 ticks of 1/128 s"),
    Parameter::whole(
        "max_spread",
        SMRF_MAX_SPREAD,
        0,
        64,
        "Maximum wait as a multiple of the shortest wait; if the MAC has broadcast cells, as a number of these cells",
    )
    .source("Contiki; the cells are ours"),
    Parameter::time(
        "tick",
        Duration::ZERO,
        Duration::ZERO,
        TIME_MAX,
        "Period of the clock ticks of a node. A wait ends at a tick, so it is up to one period shorter",
    )
    .source("Contiki on an MSP430: 1/128 s, 7.8125 ms; 0 is a clock without ticks"),
    Parameter::whole("buffer", 1, 1, 64, "Maximum number of waiting packets")
        .unit("packets")
        .source("Contiki"),
    Copies::COPY,
    Copies::THRESHOLD,
];

/// The row of SMRF.
pub static SMRF: Row<dyn Engine> = Row {
    name: "smrf",
    summary: "Nodes forward packets from their preferred parent to subscribed children (SMRF, Contiki)",
    section: "multicast",
    parameters: PARAMETERS,
    make: |choice, rng| Box::new(Smrf::new(choice, rng, false)),
};

/// The row of ESMRF.
pub static ESMRF: Row<dyn Engine> = Row {
    name: "esmrf",
    summary: "As smrf; nodes other than the root ask the root to send (ESMRF, Contiki-NG)",
    section: "multicast",
    parameters: PARAMETERS,
    make: |choice, rng| Box::new(Smrf::new(choice, rng, true)),
};

/// A packet that waits, or leaves now.
#[derive(Debug)]
struct Onward {
    due: Instant,
    packet: Vec<u8>,
    receivers: Vec<Receiver>,
    handle: Handle,
}

/// SMRF or ESMRF at one node.
#[derive(Debug)]
pub struct Smrf {
    asks_root: bool,
    copies: Copies,
    delay: Duration,
    tick: Duration,
    spread: u32,
    /// Where the MAC has cells for broadcasts: cells among which it draws.
    cells: u32,
    buffer: usize,
    /// Oldest first.
    waiting: VecDeque<Onward>,
    requests: u64,
    refused: u64,
    rng: Rng,
    outbox: Outbox<Output>,
}

impl Smrf {
    fn new(choice: &Choice<dyn Engine>, rng: Rng, asks_root: bool) -> Self {
        let delay = choice.time("check_interval").max(choice.time("min_delay"));
        let steps =
            if delay.is_zero() { 0 } else { SMRF_SPREAD_TIME.as_nanos() / delay.as_nanos() };
        Self {
            asks_root,
            copies: Copies::of(choice),
            delay,
            tick: choice.time("tick"),
            spread: steps.min(choice.whole("max_spread")) as u32,
            cells: choice.whole("max_spread"),
            buffer: choice.whole("buffer"),
            waiting: VecDeque::new(),
            requests: 0,
            refused: 0,
            rng,
            outbox: Outbox::new(),
        }
    }

    fn originate(
        &mut self,
        packet: &[u8],
        handle: Handle,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        let header = originated(packet)?;
        let Some(root) = context.root() else {
            self.outbox.push(dropped(handle, DropReason::NotJoined));
            return Ok(());
        };
        if !self.asks_root || context.is_root() {
            self.send_down(packet.to_vec(), &header.destination, handle, context);
            return Ok(());
        }
        match request::ask(packet, context.address(), root) {
            Some(packet) => {
                self.requests += 1;
                self.outbox.push(Output::Route { packet, handle });
            }
            // The request has room for UDP alone.
            None => self.outbox.push(dropped(handle, DropReason::NoRoute)),
        }
        Ok(())
    }

    /// Sends a packet that starts here to the sub-DODAG of this node, without a wait.
    fn send_down(
        &mut self,
        packet: Vec<u8>,
        group: &Address,
        handle: Handle,
        context: &dyn NodeContext,
    ) {
        let receivers = self.copies.receivers(&context.children(group));
        if receivers.is_empty() {
            self.outbox.push(dropped(handle, DropReason::NoRoute));
        }
        self.emit(Onward { due: Instant::ZERO, packet, receivers, handle });
    }

    fn receive(
        &mut self,
        now: Instant,
        packet: &[u8],
        from: Eui64,
        handle: Handle,
        context: &dyn NodeContext,
    ) {
        let Some(header) = routable(packet) else {
            self.outbox.push(dropped(handle, DropReason::Malformed));
            return;
        };
        if context.parent() != Some(from) {
            let joined = context.root().is_some();
            let reason = if joined { DropReason::NotFromParent } else { DropReason::NotJoined };
            self.outbox.push(dropped(handle, reason));
            return;
        }
        let group = header.destination;
        // What this node sent through the root comes back to it from above.
        let is_own = header.source == context.address();
        let is_delivered = context.is_member(&group) && !is_own;
        if is_delivered {
            self.outbox.push(Output::Deliver { packet: packet.to_vec(), handle });
        }
        let children = context.children(&group);
        let mut packet = packet.to_vec();
        if children.is_empty() {
            if !is_delivered {
                let reason = if is_own { DropReason::Duplicate } else { DropReason::NotForUs };
                self.outbox.push(dropped(handle, reason));
            }
        } else if lower_hop_limit(&mut packet) {
            let receivers = self.copies.receivers(&children);
            let period = context.broadcast_period();
            let period = period.filter(|_| receivers.contains(&Receiver::Broadcast));
            let due = now + self.wait(period);
            self.keep(Onward { due, packet, receivers, handle });
        } else {
            self.outbox.push(dropped(handle, DropReason::HopLimit));
        }
    }

    /// D, or a multiple of it by chance; of a broadcast in cells, whole cells.
    fn wait(&mut self, period: Option<Duration>) -> Duration {
        if let Some(period) = period {
            return pacing::wait(&mut self.rng, period, self.cells);
        }
        let steps = if self.spread == 0 { 0 } else { self.rng.below(self.spread) };
        let wait = self.delay.saturating_mul(1 + u64::from(steps));
        if self.tick.is_zero() {
            return wait;
        }
        // The packet comes between two ticks of a clock that is in step with no other.
        wait.saturating_sub(self.rng.duration(Duration::ZERO, self.tick))
    }

    fn keep(&mut self, onward: Onward) {
        if self.waiting.len() >= self.buffer
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.outbox.push(dropped(oldest.handle, DropReason::Superseded));
        }
        self.waiting.push_back(onward);
    }

    fn emit(&mut self, onward: Onward) {
        let Onward { packet, receivers, handle, .. } = onward;
        for to in receivers {
            self.outbox.push(Output::Send { packet: packet.clone(), to, handle });
        }
    }

    fn expire(&mut self, now: Instant) {
        let all = core::mem::take(&mut self.waiting);
        let (due, waiting): (VecDeque<_>, _) =
            all.into_iter().partition(|onward| onward.due <= now);
        self.waiting = waiting;
        for onward in due {
            self.emit(onward);
        }
    }

    /// A request of a node to the root.
    fn take_request(
        &mut self,
        header: &Header,
        message: &Icmpv6,
        handle: Handle,
        context: &dyn NodeContext,
    ) {
        let request = match message {
            Icmpv6::Other { kind: ESMRF_TYPE, code: 0, body } if self.asks_root => {
                request::packet_of(body, header.source)
            }
            _ => None,
        };
        let Some((group, packet)) = request.filter(|_| context.is_root()) else {
            self.refused += 1;
            self.outbox.push(dropped(handle, DropReason::Malformed));
            return;
        };
        if context.is_member(&group) {
            self.outbox.push(Output::Deliver { packet: packet.clone(), handle });
        }
        self.send_down(packet, &group, handle, context);
    }
}

impl Engine for Smrf {
    fn handle(
        &mut self,
        now: Instant,
        event: Event<'_>,
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        match event {
            Event::Originate { packet, handle } => self.originate(packet, handle, context)?,
            Event::Received { packet, from, handle } => {
                self.receive(now, packet, from, handle, context);
            }
            Event::Control { header, message, handle } => {
                self.take_request(header, message, handle, context);
            }
            Event::Deadline => {}
        }
        self.expire(now);
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|onward| onward.due).min()
    }
    fn handles(&self) -> Vec<Handle> {
        self.waiting.iter().map(|onward| onward.handle).collect()
    }
    fn needs_registrations(&self) -> bool {
        true
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            packets: self.waiting.len(),
            packets_max: self.buffer,
            controls_sent: self.requests,
            controls_refused: self.refused,
            ..Snapshot::default()
        }
    }
    fn reach(&self) -> Reach {
        if self.asks_root { Reach::Mesh } else { Reach::SubDodag }
    }
    fn name(&self) -> &'static str {
        if self.asks_root { ESMRF.name } else { SMRF.name }
    }
}

#[cfg(test)]
mod tests;
