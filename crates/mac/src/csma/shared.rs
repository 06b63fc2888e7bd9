//! What the parts of a CSMA MAC have in common, lent to each for the length of a call.

use lowmesh_machine::Outbox;
use lowmesh_shares::Rate;
use lowmesh_units::{Dbm, Duration, Eui64, Instant, Rng};

use super::config::Config;
use super::event::Output;
use crate::frame::airtime;
use crate::link::{Link, LinkTable};
use crate::params::SILENT_COPIES;
use crate::queue::QueuedFrame;

/// What a MAC counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// CCAs.
    pub sensed: u64,
    /// Those that found the channel busy.
    pub sensed_busy: u64,
    /// Data frames on the air, retries included.
    pub transmissions: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Frames for this node that went up.
    pub accepted: u64,
    /// Frames that came once more; most MACs hold them back.
    pub duplicates: u64,
    /// Acknowledgements of frames of this node.
    pub acknowledged: u64,
    /// Frames for other nodes or networks, and those that mean nothing here.
    pub filtered: u64,
    /// Frames that do not decode, or are secured.
    pub malformed: u64,
    /// Frames given up without an acknowledgement after their last copy.
    pub no_ack: u64,
    /// Frames given up because the channel was busy each time.
    pub channel_access: u64,
    /// Frames that were not taken: the queue was full, they were too large, or the MAC was off.
    pub refused: u64,
}

/// Settings, the one stream of random numbers, neighbours, and what comes out.
#[derive(Debug)]
pub(super) struct Shared {
    pub config: Config,
    pub me: Eui64,
    pub rng: Rng,
    pub links: LinkTable,
    pub outbox: Outbox<Output>,
    pub counters: Counters,
    /// Copies to neighbours that do not acknowledge.
    pub silent_copies: Rate,
    /// Time for which the radio has sent.
    pub tx_time: Duration,
}

impl Shared {
    pub fn new(config: Config, me: Eui64, rng: Rng) -> Self {
        Self {
            config,
            me,
            rng,
            links: LinkTable::default(),
            outbox: Outbox::new(),
            counters: Counters::default(),
            silent_copies: Rate::new(SILENT_COPIES, Duration::from_secs(1)),
            tx_time: Duration::ZERO,
        }
    }

    /// Something was heard from `peer`.
    pub fn note_heard(&mut self, now: Instant, peer: Eui64, rssi: Dbm) {
        if self.links.note_heard(now, peer, rssi) {
            self.outbox.push(Output::NeighbourBack(peer));
        }
    }
    /// A copy of a frame to `peer` was not acknowledged.
    pub fn note_unanswered(&mut self, now: Instant, peer: Eui64) {
        if self.links.note_unanswered(now, peer) {
            self.outbox.push(Output::NeighbourGone(peer));
        }
    }

    /// Whether another copy of a frame may leave that was not acknowledged, by what is known of its destination.
    pub fn may_repeat(&mut self, now: Instant, frame: &QueuedFrame) -> bool {
        if frame.is_advice {
            return false;
        }
        let Some(peer) = frame.destination.filter(|_| self.config.shares_queue) else {
            return true;
        };
        let acknowledges = self.links.get(peer).is_some_and(Link::acknowledges);
        acknowledges || self.silent_copies.take(now)
    }

    /// A frame of `octets` leaves.
    pub fn note_airtime(&mut self, octets: usize) {
        self.tx_time += airtime(octets);
    }
}
