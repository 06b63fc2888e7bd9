//! One frame from its first backoff to its end: IEEE 802.15.4-2015 s6.2.5.1 (access), s6.7.4.3
//! (retransmission), s6.2.4 (interframe space).

use lowmesh_machine::{DropReason, Dropped, Layer, Rejected};
use lowmesh_units::{Dbm, Duration, Eui64, Instant};
use lowmesh_wire::ieee802154::FCS_OCTETS;

use super::access::ChannelAccess;
use super::config::{Access, Acknowledgement, Config};
use super::event::Output;
use super::shared::Shared;
use crate::params::{LIFS, SIFS, SIFS_FRAME_OCTETS_MAX, TURNAROUND};
use crate::queue::QueuedFrame;

/// How far the frame on its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for the channel: a `Sense` is out.
    Access(ChannelAccess),
    /// The radio turns round or sends: a `Transmit` is out.
    OnAir,
    /// It is out, and the acknowledgement is not here.
    AckWait {
        /// When it is given up.
        until: Instant,
    },
}

/// The frame on its way.
#[derive(Clone, Debug)]
struct Outgoing {
    frame: QueuedFrame,
    progress: Progress,
}

/// What became of the frame that the transmitter holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It is still there, or none was.
    Same,
    /// It has come to its end, so another may have its turn.
    Over {
        /// Where it went.
        destination: Option<Eui64>,
        /// It left, and was acknowledged where that is asked.
        is_sent: bool,
    },
    /// This try failed, and the next one is not up to the transmitter.
    Deferred(QueuedFrame),
}

/// The sending half of the radio.
#[derive(Clone, Debug, Default)]
pub(super) struct Transmitter {
    outgoing: Option<Outgoing>,
    /// Before this nothing of one's own follows the last frame: the interframe space.
    spaced_until: Option<Instant>,
}

impl Transmitter {
    /// The frame on its way.
    pub fn frame(&self) -> Option<&QueuedFrame> {
        self.outgoing.as_ref().map(|outgoing| &outgoing.frame)
    }
    /// How far it is.
    pub fn progress(&self) -> Option<Progress> {
        self.outgoing.as_ref().map(|outgoing| outgoing.progress)
    }
    /// When the acknowledgement that is waited for is given up.
    pub fn deadline(&self) -> Option<Instant> {
        match self.progress()? {
            Progress::AckWait { until } => Some(until),
            Progress::Access(_) | Progress::OnAir => None,
        }
    }

    /// A frame has its turn.
    pub fn begin(&mut self, now: Instant, frame: QueuedFrame, shared: &mut Shared) {
        let access = ChannelAccess::new(&shared.config, 0);
        self.access(now, frame, access, shared);
    }

    /// Waits, then senses.
    fn access(
        &mut self,
        now: Instant,
        frame: QueuedFrame,
        access: ChannelAccess,
        shared: &mut Shared,
    ) {
        // s6.2.5.1: the backoff begins after the interframe space.
        let start = self.spaced_until.map_or(now, |until| now.max(until));
        let at = start + access.delay(&mut shared.rng);
        self.outgoing = Some(Outgoing { frame, progress: Progress::Access(access) });
        shared.outbox.push(Output::Sense { at });
    }

    /// The channel was sensed.
    pub fn on_sensed(
        &mut self,
        now: Instant,
        busy: bool,
        shared: &mut Shared,
    ) -> Result<After, Rejected> {
        let Some(Outgoing { frame, progress: Progress::Access(access) }) =
            self.outgoing.take_if(|outgoing| matches!(outgoing.progress, Progress::Access(_)))
        else {
            return Err(Rejected::WrongState { what: "sensed", why: "no CCA was asked for" });
        };
        shared.counters.sensed += 1;
        if !busy {
            self.transmit(now, frame, shared);
            return Ok(After::Same);
        }
        shared.counters.sensed_busy += 1;
        if shared.config.access != Access::Backoff {
            self.space(now, &frame);
            return Ok(After::Deferred(frame));
        }
        let Some(access) = access.after_busy(&shared.config) else {
            // s6.2.5.1: a channel access failure, for any copy of the frame.
            return Ok(self.give_up(now, &frame, DropReason::ChannelAccess, shared));
        };
        self.access(now, frame, access, shared);
        Ok(After::Same)
    }

    fn transmit(&mut self, now: Instant, mut frame: QueuedFrame, shared: &mut Shared) {
        frame.transmissions += 1;
        shared.counters.transmissions += 1;
        shared.note_airtime(frame.octets.len());
        shared.outbox.push(Output::Transmit {
            at: now + TURNAROUND,
            octets: frame.octets.clone(),
            destination: frame.destination,
            handle: frame.handle,
        });
        self.outgoing = Some(Outgoing { frame, progress: Progress::OnAir });
    }

    /// The frame is out.
    pub fn on_sent(&mut self, now: Instant, shared: &mut Shared) -> Result<After, Rejected> {
        let Some(Outgoing { frame, .. }) =
            self.outgoing.take_if(|outgoing| outgoing.progress == Progress::OnAir)
        else {
            return Err(Rejected::WrongState { what: "sent", why: "nothing was to be sent" });
        };
        if !shared.config.expects_ack(frame.destination) {
            return Ok(self.finish(now, &frame, shared));
        }
        let progress = Progress::AckWait { until: now + shared.config.ack_wait_in_all() };
        self.outgoing = Some(Outgoing { frame, progress });
        Ok(After::Same)
    }

    /// An acknowledgement came: for the frame that waits for one, if the number is the same.
    pub fn on_ack(
        &mut self,
        now: Instant,
        sequence: Option<u8>,
        rssi: Dbm,
        shared: &mut Shared,
    ) -> After {
        let Some(Outgoing { frame, .. }) = self.outgoing.take_if(|outgoing| {
            // The sequence number is the third octet of the frames that this MAC makes.
            let expected = outgoing.frame.octets.get(2).copied();
            matches!(outgoing.progress, Progress::AckWait { .. }) && expected == sequence
        }) else {
            shared.counters.filtered += 1;
            return After::Same;
        };
        shared.counters.acknowledged += 1;
        if let Some(peer) = frame.destination {
            // An immediate acknowledgement names no node, but only this one was asked.
            shared.note_heard(now, peer, rssi);
            note_link(now, peer, frame.transmissions, true, shared);
        }
        self.finish(now, &frame, shared)
    }

    /// No acknowledgement came.
    pub fn on_ack_timeout(&mut self, now: Instant, shared: &mut Shared) -> After {
        let Some(Outgoing { frame, .. }) = self.outgoing.take() else { return After::Same };
        if let Some(peer) = frame.destination {
            shared.note_unanswered(now, peer);
        }
        // s6.7.4.3: macMaxFrameRetries copies follow the first, each after a channel access of its own.
        if frame.transmissions <= shared.config.retries_max && shared.may_repeat(now, &frame) {
            if shared.config.access != Access::Backoff {
                self.space(now, &frame);
                return After::Deferred(frame);
            }
            let access = ChannelAccess::new(&shared.config, frame.transmissions);
            self.access(now, frame, access, shared);
            return After::Same;
        }
        if let Some(peer) = frame.destination {
            note_link(now, peer, frame.transmissions, false, shared);
        }
        self.give_up(now, &frame, DropReason::NoAck, shared)
    }

    fn finish(&mut self, now: Instant, frame: &QueuedFrame, shared: &mut Shared) -> After {
        let (handle, destination, transmissions) =
            (frame.handle, frame.destination, frame.transmissions);
        shared.outbox.push(Output::Sent { handle, destination, transmissions });
        self.space(now, frame);
        After::Over { destination, is_sent: true }
    }

    fn give_up(
        &mut self,
        now: Instant,
        frame: &QueuedFrame,
        reason: DropReason,
        shared: &mut Shared,
    ) -> After {
        shared.counters.no_ack += u64::from(reason == DropReason::NoAck);
        shared.counters.channel_access += u64::from(reason == DropReason::ChannelAccess);
        let dropped = Dropped { handle: frame.handle, layer: Layer::Mac, reason };
        let (destination, transmissions) = (frame.destination, frame.transmissions);
        shared.outbox.push(Output::Dropped { dropped, destination, transmissions });
        self.space(now, frame);
        After::Over { destination, is_sent: false }
    }

    /// s6.2.4: the receiver needs time for a frame before the next from the same node.
    fn space(&mut self, now: Instant, frame: &QueuedFrame) {
        let short = frame.octets.len() + FCS_OCTETS <= SIFS_FRAME_OCTETS_MAX;
        self.spaced_until = Some(now + if short { SIFS } else { LIFS });
    }
}

fn note_link(now: Instant, peer: Eui64, transmissions: u8, acked: bool, shared: &mut Shared) {
    if let Some(etx) = shared.links.note_sent(now, peer, transmissions, acked) {
        shared.outbox.push(Output::LinkEtx { peer, etx });
    }
}

impl Config {
    /// True when frames to `destination` are to be acknowledged.
    pub(super) fn expects_ack(&self, destination: Option<Eui64>) -> bool {
        destination.is_some() && self.acknowledgement != Acknowledgement::None
    }

    /// How long an acknowledgement is waited for, with the time that its sender takes.
    fn ack_wait_in_all(&self) -> Duration {
        match self.acknowledgement {
            Acknowledgement::Software { delay } => self.ack_wait + (delay - TURNAROUND),
            Acknowledgement::Hardware | Acknowledgement::None => self.ack_wait,
        }
    }
}
