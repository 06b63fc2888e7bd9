//! One timeslot on the air: all who send in it, all who listen, and what each of them gets.
//!
//! ```text
//!   senders ── transmit ──> frames ── who listens on that channel? ──> candidates at each listener
//!                                                                          │ resolve (SINR, capture)
//!   senders <── finish ──── acknowledgements, which may be lost too <── receive
//! ```
//! Only nodes that may hear one of the frames are asked whether they listen. A slot in which nobody sends
//! does not exist.

use lowmesh_mac::frame::airtime;
use lowmesh_mac::params::{PHY_HEADER_OCTETS, TX_ACK_DELAY, TX_OFFSET};
use lowmesh_mac::tsch::Reception;
use lowmesh_machine::Handle;
use lowmesh_sixtop::params::HANDLE_FIRST;
use lowmesh_units::{Asn, Channel, Duration, Instant, NodeId};
use lowmesh_wire::ieee802154::FCS_OCTETS;

use crate::agenda::Kind;
use crate::air::{Noise, Piece, Resolution, Signal, reception_draw, resolve};
use crate::trace::Fact;
use crate::world::World;

use super::Driver;
use super::flight::{Arrival, Flight, Scratch};

/// The driver of nodes that keep timeslots.
#[derive(Debug)]
pub(crate) struct Slotted {
    /// Length of a timeslot, the same at every node.
    slot: Duration,
    scratch: Scratch,
}

impl Driver for Slotted {
    fn event(&mut self, world: &mut World, now: Instant, kind: Kind, node: NodeId) {
        debug_assert_eq!(kind, Kind::Slot, "nothing else is planned");
        self.timeslot(world, now, node);
    }

    fn plan(&mut self, world: &mut World, node: NodeId) {
        let next = world.nodes[node.index()].next_transmission();
        let next = next.filter(|_| !world.is_off(node));
        world.agenda.set(node, Kind::Slot, next);
    }

    // A timeslot is one event, so that nothing is on the air between two.

    fn stop(&mut self, world: &mut World, _: Instant, node: NodeId, _: bool) {
        self.plan(world, node);
    }

    fn resume(&mut self, world: &mut World, now: Instant, node: NodeId) {
        self.settle(world, now, node);
    }

    fn tune(&mut self, _: NodeId, _: Channel) {}

    fn change_links(&mut self, _: &mut World, _: Instant) {}
}

impl Slotted {
    /// A driver for slots of this length.
    pub(crate) fn new(slot: Duration) -> Self {
        Self { slot, scratch: Scratch::default() }
    }

    /// Goes through the slot that starts at `now`, in which `first` and perhaps others send.
    fn timeslot(&mut self, world: &mut World, now: Instant, first: NodeId) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.senders.clear();
        scratch.senders.push(first);
        while let Some(next) = pop_sender(world, now) {
            scratch.senders.push(next);
        }
        self.launch(world, now, &mut scratch);
        gather(world, now, &mut scratch);
        self.deliver(world, now, &mut scratch);
        self.conclude(world, now, &mut scratch);
        self.scratch = scratch;
    }

    fn asn(&self, now: Instant) -> Asn {
        Asn::containing(now, self.slot)
    }

    /// Takes what goes out.
    fn launch(&mut self, world: &mut World, now: Instant, scratch: &mut Scratch) {
        scratch.flights.clear();
        for &from in &scratch.senders {
            let Some(frame) = world.nodes[from.index()].transmit(now) else {
                self.settle(world, now, from);
                continue;
            };
            let lead_micros = world.clocks[from.index()].lead_micros(now);
            let start = shifted(now + TX_OFFSET, lead_micros);
            let asn = Some(self.asn(now));
            world.note_sent(now, start, from, asn, frame.channel, &frame.octets);
            world.books.note_carried(frame.handle);
            if let Some(to) = frame.destination {
                world.note_attempt(from, to, &frame.octets);
                world.books.outcome.frames.sent += 1;
                world.books.outcome.frames.sixtop += u64::from(frame.handle.0 >= HANDLE_FIRST);
            }
            scratch.flights.push(Flight { from, lead_micros, start, frame, ack: None });
        }
        // `resolve` wants frames in the order in which they start.
        scratch.flights.sort_by_key(|flight| (flight.start, flight.from));
    }

    /// Decides at each listener, and lets it receive.
    fn deliver(&mut self, world: &mut World, now: Instant, scratch: &mut Scratch) {
        let mut rest = scratch.arrivals.as_slice();
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|a| a.to == first.to).count();
            let (here, others) = rest.split_at(count);
            rest = others;
            let to = first.to;
            let (here, strays) = here.split_at(here.partition_point(|arrival| !arrival.stray));
            let strays_mw: f64 = strays.iter().map(|stray| stray.signal.power_mw).sum();
            let me = world.names.eui64(to);
            let for_it = |a: &&Arrival| scratch.flights[a.flight].frame.destination == Some(me);
            world.books.outcome.frames.faded += strays.iter().filter(for_it).count() as u64;
            scratch.signals.clear();
            scratch.signals.extend(here.iter().map(|a| a.signal));
            let flights = &scratch.flights;
            let channel = flights[first.flight].frame.channel;
            let about = |i: usize| {
                let flight = &flights[here[i].flight];
                (flight.from, flight.start, flight.frame.octets.len())
            };
            let resolution = judge(world, to, channel, now, (&scratch.signals, strays_mw), about);
            let chosen = resolution.received;
            for (i, signal) in scratch.signals.iter().enumerate() {
                if flights[here[i].flight].frame.destination != Some(world.names.eui64(to)) {
                    continue;
                }
                let alone = || {
                    let alone = judge(world, to, channel, now, (&[*signal], 0.0), |_| about(i));
                    alone.received.is_some()
                };
                let collided = chosen != Some(i) && count > 1 && alone();
                let frames = &mut world.books.outcome.frames;
                match chosen {
                    Some(received) if received == i => frames.received += 1,
                    _ if collided => frames.collided += 1,
                    _ => frames.faded += 1,
                }
            }
            let Some(chosen) = chosen.map(|i| here[i].flight) else {
                if let Some(lost) = resolution.locked {
                    let octets = flights[here[lost].flight].frame.octets.len();
                    world.nodes[to.index()].lose(octets);
                }
                continue;
            };
            self.receive(world, now, to, &mut scratch.flights[chosen]);
        }
    }

    fn receive(&mut self, world: &mut World, now: Instant, to: NodeId, flight: &mut Flight) {
        let lead = world.clocks[to.index()].lead_micros(now);
        let late = lead - flight.lead_micros;
        let synchronised = world.nodes[to.index()].is_synchronised();
        let link = world.links().get(flight.from, to, flight.frame.channel);
        let Some(rssi) = link.map(|link| link.rssi) else { return };
        let octets = flight.frame.octets.len();
        world.books.trace.note(
            now,
            to,
            Fact::Heard { from: flight.from, rssi_dbm: rssi.0, octets },
        );
        let heard = Reception {
            octets: &flight.frame.octets,
            rssi,
            late_micros: if synchronised { late.round() as i32 } else { 0 },
            handle: flight.frame.handle,
        };
        let ack = world.nodes[to.index()].receive(now, heard);
        if !synchronised && world.nodes[to.index()].is_synchronised() {
            // Joining sets the clock by the beacon's arrival.
            world.clocks[to.index()].set_lead(now, flight.lead_micros);
        }
        if let Some(octets) = ack {
            flight.ack = Some((to, octets));
        }
        // The receiver's books come first: a packet must be accepted before it is passed on.
        self.settle(world, now, to);
    }

    /// Carries the acknowledgements back and ends the slot at the senders.
    fn conclude(&mut self, world: &mut World, now: Instant, scratch: &mut Scratch) {
        for index in 0..scratch.flights.len() {
            let flight = &scratch.flights[index];
            let from = flight.from;
            let ack = match &flight.ack {
                Some((acker, octets)) => {
                    let end = flight.start + airtime(flight.frame.octets.len()) + TX_ACK_DELAY;
                    let asn = Some(self.asn(now));
                    world.note_sent(now, end, *acker, asn, flight.frame.channel, octets);
                    ack_arrives(world, now, index, &scratch.flights, &mut scratch.signals)
                }
                None => None,
            };
            if let Some((octets, _, false)) = ack {
                world.nodes[from.index()].lose(octets.len());
            }
            let received = ack.filter(|(_, _, received)| *received);
            let reception = received.map(|(octets, rssi, _)| Reception {
                octets,
                rssi,
                late_micros: 0,
                handle: Handle::NONE,
            });
            if flight.frame.destination.is_some() {
                world.books.trace.note(now, from, Fact::Answered { acked: reception.is_some() });
            }
            world.nodes[from.index()].finish(now, reception);
            self.settle(world, now, from);
        }
    }
}

/// The next node that sends in the slot that starts at `now`.
fn pop_sender(world: &mut World, now: Instant) -> Option<NodeId> {
    let (time, kind, node) = world.agenda.peek()?;
    if (time, kind) != (now, Kind::Slot) {
        return None;
    }
    world.agenda.pop();
    Some(node)
}

/// Finds who hears what: for each listener all frames on its channel.
fn gather(world: &mut World, now: Instant, scratch: &mut Scratch) {
    scratch.arrivals.clear();
    for (index, flight) in scratch.flights.iter().enumerate() {
        let channel = flight.frame.channel;
        // Not `World::links`, which would borrow the books too.
        let links = world.overlay.links(world.medium.links());
        for (to, link) in links.heard(flight.from, channel) {
            let busy = scratch.senders.contains(&to);
            let mut sends = scratch.flights.iter().map(|other| other.from);
            if busy
                && flight.frame.destination == Some(world.names.eui64(to))
                && sends.any(|from| from == to)
            {
                world.books.outcome.frames.deaf += 1;
            }
            let off = busy || world.is_off(to);
            if !off && world.nodes[to.index()].listens(now) == Some(channel) {
                let signal = Signal::over(link, flight.start);
                let stray = is_stray(world, now, to, flight.lead_micros);
                scratch.arrivals.push(Arrival { to, flight: index, signal, stray });
            }
        }
    }
    // Stable: the frames at one listener stay in the order of their start, strays last.
    scratch.arrivals.sort_by_key(|arrival| (arrival.to, arrival.stray));
}

/// True where the clocks differ so much that a frame starts outside the guard time of `to`. A scanning node's
/// receiver is open all the time.
fn is_stray(world: &World, now: Instant, to: NodeId, lead_micros: f64) -> bool {
    let late = world.clocks[to.index()].lead_micros(now) - lead_micros;
    let guard_micros = world.parts[to.index()].guard.as_nanos() as f64 / 1e3;
    late.abs() > guard_micros && world.nodes[to.index()].is_synchronised()
}

/// Which of `signals` the node gets, under strays of `strays_mw`; `about` tells a frame's sender, start and octets.
fn judge(
    world: &World,
    to: NodeId,
    channel: Channel,
    now: Instant,
    (signals, strays_mw): (&[Signal], f64),
    about: impl Fn(usize) -> (NodeId, Instant, usize),
) -> Resolution {
    let extra_mw = world.interference.extra_noise_mw(to, channel, now) + strays_mw;
    let noise = Noise { floor_mw: world.noise_mw, extra_mw };
    let pieces = |i| {
        let (_, start, octets) = about(i);
        let octets = octets + FCS_OCTETS + PHY_HEADER_OCTETS as usize;
        let pieces = world.interference.pieces(to, channel, start, octets);
        pieces.map(move |piece| Piece { extra_mw: piece.extra_mw + strays_mw, ..piece })
    };
    // Drawn by the slot, not by the exact start: drift must not shift the air's dice.
    let draw = |i| reception_draw(world.seed, about(i).0, to, now);
    resolve(world.overlap, signals, noise, pieces, draw)
}

/// The acknowledgement of flight `index` and whether its sender gets it, if that finds any among all that are on
/// the channel.
fn ack_arrives<'a>(
    world: &World,
    now: Instant,
    index: usize,
    flights: &'a [Flight],
    signals: &mut Vec<Signal>,
) -> Option<(&'a [u8], lowmesh_units::Dbm, bool)> {
    let flight = &flights[index];
    let channel = flight.frame.channel;
    let (acker, octets) = flight.ack.as_ref()?;
    let link = world.links().get(*acker, flight.from, channel)?;
    signals.clear();
    // All acknowledgements of a slot start within the senders' drift: one moment for all.
    signals.push(Signal::over(link, now));
    let mut ackers = vec![*acker];
    for (other, rival) in flights.iter().enumerate() {
        let Some((rival_acker, _)) = &rival.ack else { continue };
        if other == index || rival.frame.channel != channel {
            continue;
        }
        if let Some(link) = world.links().get(*rival_acker, flight.from, channel) {
            signals.push(Signal::over(link, now));
            ackers.push(*rival_acker);
        }
    }
    let about = |i: usize| (ackers[i], now, octets.len());
    let resolution = judge(world, flight.from, channel, now, (signals, 0.0), about);
    resolution.locked?;
    Some((octets, link.rssi, resolution.received == Some(0)))
}

/// The moment at which a clock that is ahead by `lead_micros` shows `nominal`.
fn shifted(nominal: Instant, lead_micros: f64) -> Instant {
    let nanos = nominal.as_nanos() as f64 - lead_micros * 1e3;
    Instant::from_nanos(nanos.max(0.0) as u64)
}
