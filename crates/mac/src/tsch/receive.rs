//! One timeslot at the receiver.

use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_units::{Asn, Channel, Eui64, Instant, PanId};
use lowmesh_wire::ie::TschBeacon;
use lowmesh_wire::ieee802154::{Address, Frame, FrameType};

use super::burst::Burst;
use super::cell::{CellId, CellOptions};
use super::event::{Output, Reception};
use super::membership::Membership;
use super::send::Sender;
use super::shared::Shared;
use crate::frame;
use crate::params::{DUPLICATE_WINDOW, RX_WAIT};

/// On which channel a node in a network listens in slot `asn`, when nothing is to be sent.
pub(super) fn listens(asn: Asn, shared: &Shared) -> Option<Channel> {
    if let Some((channel, _)) = shared.burst.and_then(|burst| burst.listens(asn)) {
        return Some(channel);
    }
    let (_, channel_offset) = shared.listening_cell(asn)?;
    Some(shared.config.hopping.channel(asn, channel_offset))
}

/// A beacon of the time source showed that the numbers of the node's slots are not those of its network.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfStep;

/// A frame was received in the slot that started at `slot_start`. Returns the acknowledgement to send.
pub(super) fn on_frame(
    slot_start: Instant,
    heard: Reception<'_>,
    sender: &Sender,
    membership: &mut Membership,
    shared: &mut Shared,
) -> Result<Option<Vec<u8>>, OutOfStep> {
    let is_scanning = matches!(membership, Membership::Scanning { .. });
    // A scan counts as a whole.
    if !is_scanning {
        shared.time.received(heard.octets.len());
        shared.time.listening_slots_used += 1;
    }
    // What does not decode, or is secured, is noise to this node.
    let Ok(frame) = Frame::parse(heard.octets) else { return Ok(None) };
    let Some(source) = frame.header.source.and_then(frame::node_of) else { return Ok(None) };
    let pans = [shared.config.pan, PanId::BROADCAST];
    if frame.header.destination_pan.is_some_and(|pan| !pans.contains(&pan)) {
        return Ok(None);
    }
    if !is_scanning {
        return on_neighbour(slot_start, (source, &frame), heard, sender, membership, shared);
    }
    if let Some(beacon) = beacon_in(&frame) {
        membership.hear(slot_start, source, &beacon, heard.rssi, shared);
    }
    if membership.is_synchronised() {
        shared.time.joined(heard.octets.len());
    }
    Ok(None)
}

/// What a beacon says of its network.
fn beacon_in(frame: &Frame<'_>) -> Option<TschBeacon> {
    let is_beacon = frame.header.frame_type == FrameType::Beacon;
    frame.payload_ies.tsch().ok().flatten().filter(|_| is_beacon)
}

/// A frame of a neighbour came while the node is in a network.
fn on_neighbour(
    slot_start: Instant,
    (source, frame): (Eui64, &Frame<'_>),
    heard: Reception<'_>,
    sender: &Sender,
    membership: &mut Membership,
    shared: &mut Shared,
) -> Result<Option<Vec<u8>>, OutOfStep> {
    let asn = shared.asn(slot_start);
    shared.next_slot = shared.next_slot.max(asn + 1);
    let channel = listens(asn, shared);
    let cell = used_cell(asn, shared);
    shared.note_heard(slot_start, source, heard.rssi);
    let broadcast = match frame.header.destination {
        Some(Address::BROADCAST) => true,
        Some(to) if frame::is_mine(to, shared.me, shared.config.short) => false,
        _ => return Ok(None),
    };
    let keeps_time = cell.is_some_and(|cell| keeps_time(cell, shared));
    if keeps_time && let Some(beacon) = beacon_in(frame).filter(|beacon| beacon.asn == asn) {
        membership.consider(slot_start, source, &beacon, shared);
    }
    if membership.takes_time_from(source) {
        if beacon_in(frame).is_some_and(|beacon| beacon.asn != asn) {
            // Its slots have other numbers, so its channels are others: the node's network is gone. Contiki-NG leaves, too.
            return Err(OutOfStep);
        }
        // s6.5.4.2: the clock follows the time source in links with the option Timekeeping.
        if keeps_time {
            membership.correct_clock(slot_start, -heard.late_micros, shared);
        }
    }
    if frame.header.frame_type != FrameType::Data {
        return Ok(None);
    }
    let is_copy = |shared: &Shared| {
        let (links, sequence) = (&shared.links, frame.header.sequence);
        sequence.is_some_and(|s| links.has_sequence(slot_start, source, s, DUPLICATE_WINDOW))
    };
    // A frame that is refused comes again with this number: it must not look like a copy then.
    let is_refused = !broadcast
        && frame.header.ack_request
        && is_passed_on(frame)
        && sender.refuses(source, membership, &shared.config)
        && !is_copy(shared);
    if is_refused {
        return Ok(Some(acknowledge(source, frame.header.sequence, heard, true, shared)));
    }
    // s6.7.2: without a sequence number (RFC 8180 s4.5.1: it MAY be elided) no frame is known as a repetition.
    let mut is_duplicate = || {
        let (links, rssi) = (&mut shared.links, heard.rssi);
        frame.header.sequence.is_some_and(|sequence| {
            links.is_duplicate(slot_start, source, sequence, rssi, DUPLICATE_WINDOW)
        })
    };
    if broadcast || !is_duplicate() {
        shared.outbox.extend(delivered(source, cell, broadcast, frame, heard.handle));
    }
    // s6.7.4.2: a repetition is acknowledged too, since its acknowledgement was lost.
    if broadcast || !frame.header.ack_request {
        return Ok(None);
    }
    if frame.header.frame_pending
        && let Some(channel) = channel
    {
        stay_on(asn, channel, cell, shared);
    }
    Ok(Some(acknowledge(source, frame.header.sequence, heard, false, shared)))
}

fn acknowledge(
    source: Eui64,
    sequence: Option<u8>,
    heard: Reception<'_>,
    nack: bool,
    shared: &mut Shared,
) -> Vec<u8> {
    let ack = frame::ack(source, sequence, -heard.late_micros, nack);
    shared.time.acknowledged(ack.len());
    ack
}

/// True of a frame that may have to wait in a queue of this node: not of keepalives and 6P.
fn is_passed_on(frame: &Frame<'_>) -> bool {
    !frame.payload.is_empty() && frame.payload_ies.sixtop().is_none()
}

fn keeps_time(cell: CellId, shared: &Shared) -> bool {
    shared.schedule.get(cell).is_some_and(|cell| cell.options.has(CellOptions::TIMEKEEPING))
}

/// The cell of a frame in slot `asn`; the use of the cell that a burst began in is counted already.
fn used_cell(asn: Asn, shared: &mut Shared) -> Option<CellId> {
    if let Some((_, cell)) = shared.burst.and_then(|burst| burst.listens(asn)) {
        return cell;
    }
    let (cell, _) = shared.listening_cell(asn)?;
    shared.schedule.note_use(cell, |u| u.received += 1);
    Some(cell)
}

/// A frame for this node in slot `asn` said that more follow.
fn stay_on(asn: Asn, channel: Channel, cell: Option<CellId>, shared: &mut Shared) {
    // A slot in which the schedule has the node listen is counted already.
    if shared.listening_cell(asn + 1).is_none() {
        shared.time.rx += RX_WAIT;
    }
    shared.burst = Some(Burst::heard(asn, channel, cell));
}

/// What a frame brings to the layers above; nothing for a keepalive.
fn delivered(
    source: Eui64,
    cell: Option<CellId>,
    broadcast: bool,
    frame: &Frame<'_>,
    handle: Handle,
) -> Option<Output> {
    if let Some(message) = frame.payload_ies.sixtop() {
        return Some(Output::Sixtop { source, cell, message: message.to_vec() });
    }
    let payload = frame.payload.to_vec();
    (!payload.is_empty()).then_some(Output::Received { source, cell, broadcast, payload, handle })
}
