//! What can be set about a CSMA MAC, and the combinations that others have.

use lowmesh_units::{Duration, PanId, ShortAddr};

use crate::frame::{IMMEDIATE_ACK_OCTETS, PAYLOAD_OCTETS_MAX, airtime};
use crate::params::{
    BE_LIMIT, CONTIKI_BACKOFF_UNIT, CONTIKI_NEIGHBOUR_QUEUES, CONTIKI_RETRIES_MAX,
    CSMA_BACKOFFS_MAX, CSMA_BE_MAX, CSMA_BE_MIN, CSMA_QUEUE_FRAMES_MAX, CSMA_RETRIES_MAX,
    IMM_ACK_WAIT, RETRIES_LIMIT, THIN_BUSY_MAX, THIN_PAYLOAD_OCTETS_MAX, THIN_QUEUE_FRAMES_MAX,
    THIN_REQUEUE, TURNAROUND,
};

/// Who confirms frames to a single neighbour, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// The radio, one turnaround after the frame's end.
    Hardware,
    /// The processor.
    Software {
        /// From the frame's end to the acknowledgement's start, at least one turnaround; senders wait as
        /// much longer.
        delay: Duration,
    },
    /// Nobody: a frame that is sent counts as delivered, and none is repeated.
    None,
}

/// What the radio and its driver can do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radio {
    /// The receiver is on whenever nothing is being sent, backoff included; a frame that came leaves the radio
    /// at once.
    Open,
    /// A radio that runs CSMA and retries by itself and has one buffer for both directions, under a driver
    /// that waits for it (Lenders et al. 2021, sections III-A and IV-C; AT86RF231 with RIOT):
    ///
    /// - from the first backoff of a frame to its acknowledgement, or the end of its retries, nothing but
    ///   acknowledgements is heard;
    /// - after a frame came, the buffer is occupied for a time: nothing is heard, and so nothing acknowledged;
    /// - a frame to be sent waits until the radio is free, and is tried again at the next sign of it.
    Thin {
        /// The buffer is occupied for a time drawn uniformly from zero to this.
        busy_max: Duration,
        /// A waiting frame is tried again not later than this after it was put back: some ends of being busy
        /// (a broken frame, a frame for others) give no sign.
        requeue: Duration,
    },
}

/// How frames wait, and when a copy is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One frame after the other, a backoff before each copy (IEEE 802.15.4-2015 s6.2.5.1).
    Backoff,
    /// Contiki before NG over NullRDC: a queue for each neighbour, no backoff before the first copy, then delays of
    /// `unit` and more. `be_min`, `be_max` and `backoffs_max` are 0 with it.
    Neighbours {
        /// Neighbours that have a queue at a time.
        queues_max: usize,
        /// The least delay between two tries.
        unit: Duration,
    },
}

/// Settings of a CSMA MAC; the defaults are those of the standard, for the 2.4 GHz O-QPSK PHY.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The network.
    pub pan: PanId,
    /// A short address beside the EUI-64, under which neighbours may send to this node: macShortAddress.
    pub short: Option<ShortAddr>,
    /// Octets that a frame between extended addresses can carry: up to [`PAYLOAD_OCTETS_MAX`]. Each short address adds 6.
    pub payload_octets_max: usize,
    /// Data frames held for the air, beside the one that is on its way.
    pub queue_frames_max: usize,
    /// How frames wait.
    pub access: Access,
    /// Whether neighbours share the queue (`turns`); else it is one line, first come, first served.
    pub shares_queue: bool,
    /// Copies after the first: macMaxFrameRetries.
    pub retries_max: u8,
    /// First backoff exponent: macMinBe.
    pub be_min: u8,
    /// Largest backoff exponent: macMaxBe.
    pub be_max: u8,
    /// What each copy adds to the first backoff exponent of the next: 0 by the standard; with 1 the window doubles
    /// with every transmission, as in Contiki's CSMA before NG.
    pub be_growth: u8,
    /// macMaxCsmaBackoffs: backoffs after the first one before a channel access failure.
    pub backoffs_max: u8,
    /// Who confirms.
    pub acknowledgement: Acknowledgement,
    /// How long an acknowledgement that comes one turnaround after the frame is waited for: macAckWaitDuration.
    pub ack_wait: Duration,
    /// Whether a frame that came before is acknowledged and no more (s6.7.2), or goes up again.
    pub rejects_duplicates: bool,
    /// What goes on at the same time.
    pub radio: Radio,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pan: PanId(0xabcd),
            short: None,
            payload_octets_max: PAYLOAD_OCTETS_MAX,
            queue_frames_max: CSMA_QUEUE_FRAMES_MAX,
            access: Access::Backoff,
            shares_queue: false,
            retries_max: CSMA_RETRIES_MAX,
            be_min: CSMA_BE_MIN,
            be_max: CSMA_BE_MAX,
            be_growth: 0,
            backoffs_max: CSMA_BACKOFFS_MAX,
            acknowledgement: Acknowledgement::Hardware,
            ack_wait: IMM_ACK_WAIT,
            rejects_duplicates: true,
            radio: Radio::Open,
        }
    }
}

impl Config {
    /// The thin MAC: RIOT's GNRC over an AT86RF231, as in Lenders et al. 2021.
    pub fn thin() -> Self {
        Self {
            payload_octets_max: THIN_PAYLOAD_OCTETS_MAX,
            queue_frames_max: THIN_QUEUE_FRAMES_MAX,
            radio: Radio::Thin { busy_max: THIN_BUSY_MAX, requeue: THIN_REQUEUE },
            ..Self::default()
        }
    }

    /// CSMA over a null duty-cycling driver: no acknowledgements, no retries.
    pub fn null() -> Self {
        Self { acknowledgement: Acknowledgement::None, ..Self::default() }
    }

    /// CSMA over NullRDC of Contiki in 2014, the platform of Ishaq et al. 2016.
    pub fn contiki2014() -> Self {
        let (queues_max, unit) = (CONTIKI_NEIGHBOUR_QUEUES, CONTIKI_BACKOFF_UNIT);
        let access = Access::Neighbours { queues_max, unit };
        let retries_max = CONTIKI_RETRIES_MAX;
        Self { access, retries_max, be_min: 0, be_max: 0, backoffs_max: 0, ..Self::default() }
    }

    /// Says which value is not possible.
    pub fn check(&self) -> Result<(), ConfigError> {
        let be = usize::from(self.be_max);
        within("be_max", be, 0, BE_LIMIT.into())?;
        within("be_min", self.be_min.into(), 0, be)?;
        within("retries_max", self.retries_max.into(), 0, RETRIES_LIMIT.into())?;
        within("payload_octets_max", self.payload_octets_max, 1, PAYLOAD_OCTETS_MAX)?;
        let least = TURNAROUND + airtime(IMMEDIATE_ACK_OCTETS);
        if self.ack_wait < least {
            return Err(ConfigError { key: "ack_wait", allowed: Allowed::AtLeast(least) });
        }
        if let Acknowledgement::Software { delay } = self.acknowledgement
            && delay < TURNAROUND
        {
            let allowed = Allowed::AtLeast(TURNAROUND);
            return Err(ConfigError { key: "acknowledgement.delay", allowed });
        }
        if let Access::Neighbours { queues_max, unit } = self.access {
            within("access.queues_max", queues_max, 1, usize::MAX)?;
            if unit.is_zero() {
                let allowed = Allowed::AtLeast(Duration::from_micros(1));
                return Err(ConfigError { key: "access.unit", allowed });
            }
        }
        if let Radio::Thin { requeue, .. } = self.radio
            && requeue.is_zero()
        {
            let allowed = Allowed::AtLeast(Duration::from_micros(1));
            return Err(ConfigError { key: "radio.requeue", allowed });
        }
        Ok(())
    }
}

fn within(key: &'static str, value: usize, low: usize, high: usize) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ConfigError { key, allowed: Allowed::Between(low, high) })
}

/// A setting that is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be {allowed}")]
pub struct ConfigError {
    /// Which setting.
    pub key: &'static str,
    /// What it may be.
    pub allowed: Allowed,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// From the first to the second.
    Between(usize, usize),
    /// This or longer.
    AtLeast(Duration),
}

impl core::fmt::Display for Allowed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Between(low, high) => write!(f, "between {low} and {high}"),
            Self::AtLeast(span) => write!(f, "at least {span}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_made_settings_are_possible() {
        for config in [Config::default(), Config::thin(), Config::null(), Config::contiki2014()] {
            assert_eq!(config.check(), Ok(()));
        }
    }

    #[test]
    fn what_is_not_possible_is_named_with_what_is() {
        let default = Config::default();
        let told = |config: Config| config.check().map_err(|error| std::format!("{error}"));
        let below = Config { be_min: 6, ..default.clone() };
        assert_eq!(told(below), Err("`be_min` must be between 0 and 5".into()));
        let large = Config { payload_octets_max: 105, ..default.clone() };
        assert_eq!(told(large), Err("`payload_octets_max` must be between 1 and 104".into()));
        let delay = Duration::from_micros(191);
        let deaf = Config { ack_wait: Duration::from_micros(543), ..default.clone() };
        assert_eq!(told(deaf), Err("`ack_wait` must be at least 544us".into()));
        let hasty = Config { acknowledgement: Acknowledgement::Software { delay }, ..default };
        assert_eq!(told(hasty), Err("`acknowledgement.delay` must be at least 192us".into()));
    }
}
