//! What can be set about a MAC.

use lowmesh_units::{Duration, PanId, ShortAddr};

use crate::params;
use crate::tsch::hopping::HoppingSequence;

/// Settings of a TSCH MAC; the defaults are those of [`params`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The network.
    pub pan: PanId,
    /// A short address beside the EUI-64, under which neighbours may send to this node: macShortAddress.
    pub short: Option<ShortAddr>,
    /// Channels and their order.
    pub hopping: HoppingSequence,
    /// Length of a timeslot.
    pub slot: Duration,
    /// Half the time that a receiver listens for a frame to start.
    pub guard: Duration,
    /// Data frames held for the air.
    pub queue_frames_max: usize,
    /// Of them for one neighbour or for broadcast; the time source may have three quarters of all.
    pub queue_per_neighbour: usize,
    /// Does a node whose queue is full refuse data by a negative acknowledgement?
    pub nack_full: bool,
    /// Copies after the first.
    pub retries_max: u8,
    /// Frames in a row that one cell may start; 0 or 1 for no bursts.
    pub burst_frames_max: u8,
    /// Smallest backoff exponent in shared cells.
    pub be_min: u8,
    /// Largest backoff exponent in shared cells.
    pub be_max: u8,
    /// Longest time between beacons.
    pub eb_period: Duration,
    /// Minimal cells between two beacons or broadcasts, for the node and each neighbour; 0 for no rule.
    pub broadcast_spacing: u8,
    /// Longest time without hearing the time source.
    pub keepalive: Duration,
    /// When the clock is given up.
    pub desynchronise: Duration,
    /// Time on a channel while scanning.
    pub scan_period: Duration,
    /// Neighbours whose beacons a joining node waits for, to choose its time source among them; 0 is taken as 1.
    pub join_neighbours: u8,
    /// How long it waits for others after the first.
    pub join_wait: Duration,
    /// How long a coordinator that lost its memory listens for its network; zero to begin a new one at once.
    pub resume: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pan: PanId(0xabcd),
            short: None,
            hopping: HoppingSequence::sixteen(),
            slot: params::SLOT,
            guard: params::RX_WAIT / 2,
            queue_frames_max: params::QUEUE_FRAMES_MAX,
            queue_per_neighbour: params::QUEUE_PER_NEIGHBOUR,
            nack_full: params::NACK_FULL,
            retries_max: params::RETRIES_MAX,
            burst_frames_max: params::BURST_FRAMES_MAX,
            be_min: params::BE_MIN,
            be_max: params::BE_MAX,
            eb_period: params::EB_PERIOD,
            broadcast_spacing: params::BROADCAST_SPACING,
            keepalive: params::KEEPALIVE,
            desynchronise: params::DESYNCHRONISE,
            scan_period: params::SCAN_PERIOD,
            join_neighbours: 1,
            join_wait: params::JOIN_WAIT,
            resume: params::RESUME_WAIT,
        }
    }
}
