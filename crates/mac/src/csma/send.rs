//! One frame from its first backoff to its end: IEEE 802.15.4-2015 s6.2.5.1 (access), s6.7.4.3
//! (retransmission), s6.2.4 (interframe space).

use lowmesh_machine::{DropReason, Dropped, Layer, Rejected};
use lowmesh_units::{Dbm, Duration, Eui64, Instant};
use lowmesh_wire::ieee802154::FCS_OCTETS;

use super::access::ChannelAccess;
use super::config::Acknowledgement;
use super::event::Output;
use super::machine::{Csma, Outgoing, Progress, Receiver};
use crate::frame::airtime;
use crate::params::{LIFS, SIFS, SIFS_FRAME_OCTETS_MAX, TURNAROUND};
use crate::queue::QueuedFrame;

impl Csma {
    /// True when frames to `destination` are to be acknowledged.
    pub(super) fn expects_ack(&self, destination: Option<Eui64>) -> bool {
        destination.is_some() && self.config.acknowledgement != Acknowledgement::None
    }

    /// When the acknowledgement that is waited for is given up.
    pub(super) fn ack_deadline(&self) -> Option<Instant> {
        match self.outgoing.as_ref()?.progress {
            Progress::AckWait { until } => Some(until),
            Progress::Access(_) | Progress::OnAir => None,
        }
    }

    /// Waits, then senses.
    pub(super) fn access(&mut self, now: Instant, frame: QueuedFrame, access: ChannelAccess) {
        // s6.2.5.1: the backoff begins after the interframe space.
        let at = now.max(self.spaced_until) + access.delay(&mut self.rng);
        self.outgoing = Some(Outgoing { frame, progress: Progress::Access(access) });
        self.outbox.push(Output::Sense { at });
    }

    pub(super) fn on_sensed(&mut self, now: Instant, busy: bool) -> Result<(), Rejected> {
        let Some(Outgoing { frame, progress: Progress::Access(access) }) =
            self.outgoing.take_if(|outgoing| matches!(outgoing.progress, Progress::Access(_)))
        else {
            return Err(Rejected::WrongState { what: "sensed", why: "no CCA was asked for" });
        };
        self.counters.sensed += 1;
        // A radio in the middle of a frame, in or out, has its answer without measuring.
        if !busy && self.receiver == Receiver::Open {
            self.transmit(now, frame);
            return Ok(());
        }
        self.counters.sensed_busy += 1;
        match access.after_busy(&self.config) {
            Some(access) => self.access(now, frame, access),
            // s6.2.5.1: a channel access failure, for any copy of the frame.
            None => self.give_up(now, &frame, DropReason::ChannelAccess),
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant, mut frame: QueuedFrame) {
        frame.transmissions += 1;
        self.counters.transmissions += 1;
        self.tx_time += airtime(frame.octets.len());
        self.outbox.push(Output::Transmit {
            at: now + TURNAROUND,
            octets: frame.octets.clone(),
            destination: frame.destination,
            handle: frame.handle,
        });
        self.outgoing = Some(Outgoing { frame, progress: Progress::OnAir });
    }

    pub(super) fn on_sent(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.receiver == Receiver::Acknowledging {
            self.receiver = Receiver::Open;
            self.start_next(now);
            return Ok(());
        }
        let Some(Outgoing { frame, .. }) =
            self.outgoing.take_if(|outgoing| outgoing.progress == Progress::OnAir)
        else {
            return Err(Rejected::WrongState { what: "sent", why: "nothing was to be sent" });
        };
        if self.expects_ack(frame.destination) {
            let progress = Progress::AckWait { until: now + self.ack_wait() };
            self.outgoing = Some(Outgoing { frame, progress });
        } else {
            self.finish(now, &frame);
        }
        Ok(())
    }

    fn ack_wait(&self) -> Duration {
        match self.config.acknowledgement {
            Acknowledgement::Software { delay } => self.config.ack_wait + (delay - TURNAROUND),
            Acknowledgement::Hardware | Acknowledgement::None => self.config.ack_wait,
        }
    }

    /// An acknowledgement came: for the frame that waits for one, if the number is the same.
    pub(super) fn on_ack(&mut self, now: Instant, sequence: Option<u8>, rssi: Dbm) {
        let Some(Outgoing { frame, .. }) = self.outgoing.take_if(|outgoing| {
            // The sequence number is the third octet of the frames that this MAC makes.
            let expected = outgoing.frame.octets.get(2).copied();
            matches!(outgoing.progress, Progress::AckWait { .. }) && expected == sequence
        }) else {
            self.counters.filtered += 1;
            return;
        };
        self.counters.acknowledged += 1;
        if let Some(peer) = frame.destination {
            // An immediate acknowledgement names no node, but only this one was asked.
            self.links.note_heard(now, peer, rssi);
            self.note_link(peer, frame.transmissions, true);
        }
        self.finish(now, &frame);
    }

    pub(super) fn on_ack_timeout(&mut self, now: Instant) {
        let Some(Outgoing { frame, .. }) = self.outgoing.take() else { return };
        // s6.7.4.3: macMaxFrameRetries copies follow the first, each after a channel access of its own.
        if frame.transmissions <= self.config.retries_max {
            let access = ChannelAccess::new(&self.config, frame.transmissions);
            self.access(now, frame, access);
            return;
        }
        if let Some(peer) = frame.destination {
            self.note_link(peer, frame.transmissions, false);
        }
        self.give_up(now, &frame, DropReason::NoAck);
    }

    fn finish(&mut self, now: Instant, frame: &QueuedFrame) {
        let (handle, destination, transmissions) =
            (frame.handle, frame.destination, frame.transmissions);
        self.outbox.push(Output::Sent { handle, destination, transmissions });
        self.end(now, frame);
    }

    fn give_up(&mut self, now: Instant, frame: &QueuedFrame, reason: DropReason) {
        self.counters.no_ack += u64::from(reason == DropReason::NoAck);
        self.counters.channel_access += u64::from(reason == DropReason::ChannelAccess);
        let dropped = Dropped { handle: frame.handle, layer: Layer::Mac, reason };
        let (destination, transmissions) = (frame.destination, frame.transmissions);
        self.outbox.push(Output::Dropped { dropped, destination, transmissions });
        self.end(now, frame);
    }

    fn end(&mut self, now: Instant, frame: &QueuedFrame) {
        let short = frame.octets.len() + FCS_OCTETS <= SIFS_FRAME_OCTETS_MAX;
        // s6.2.4: the receiver needs time for a frame before the next from the same node.
        self.spaced_until = now + if short { SIFS } else { LIFS };
        self.start_next(now);
    }

    fn note_link(&mut self, peer: Eui64, transmissions: u8, acked: bool) {
        if let Some(etx) = self.links.note_sent(peer, transmissions, acked) {
            self.outbox.push(Output::LinkEtx { peer, etx });
        }
    }
}
