//! One receiver in continuous time: frames begin and end whenever their senders like, and the radio stays with
//! the first one that it finds.
//!
//! ```text
//!   locked frame   |----------------------------|       chance = product over pieces of constant disturbance
//!   another             |-----------|
//!   pieces         | 1  |     2     |     3     |
//! ```
//! [`resolve`](super::resolve) judges frames that overlap whole, as in a timeslot. Here only the part that is
//! disturbed suffers. The rules and the draws are the same: a frame alone on the air fares the same way in both.

use lowmesh_mac::params::OCTET;
use lowmesh_units::{Duration, Instant};

use super::modulation::log_success;
use super::overlap::Overlap;
use super::params::{LOCK_SNR, SYNCHRONISATION_HEADER};
use super::pister_hack::{noise_mw, pdr_at_sinr};
use super::reception::{Noise, Signal};

/// Names a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId(pub u64);

/// A frame as it begins at a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Which.
    pub frame: FrameId,
    /// Its start and strength.
    pub signal: Signal,
    /// The number in [0, 1) that decides about it here.
    pub draw: f64,
}

/// What became of a frame at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The radio was with it, and it is whole.
    Received,
    /// The radio was with it, and it is broken.
    Broken,
    /// The radio was not with it.
    Unheard,
}

/// The frame that the radio stays with.
#[derive(Clone, Copy, Debug)]
struct Lock {
    arrival: Arrival,
    /// When the piece with the present disturbance began.
    since: Instant,
    /// Logarithm of the chance of the pieces that are over.
    log_chance: f64,
    /// The largest disturbance so far, mW.
    worst_mw: f64,
    /// Another frame destroyed it.
    ruined: bool,
}

/// What one radio hears.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// All frames on the air here, in the order of their start.
    arriving: Vec<Arrival>,
    lock: Option<Lock>,
    /// The last moment at which the channel was busy and no longer is.
    busy_until: Option<Instant>,
}

impl Receiver {
    /// A frame begins. `listening`: the radio is free to find it. True when the radio now stays with it and was
    /// free before.
    pub fn begin(
        &mut self,
        rule: Overlap,
        noise: Noise,
        arrival: Arrival,
        listening: bool,
    ) -> bool {
        let now = arrival.signal.start;
        self.account(rule, noise, now);
        let others_mw = self.power_mw();
        self.arriving.push(arrival);
        let audible = is_audible(rule, &arrival, others_mw, noise);
        let Some(lock) = &mut self.lock else {
            if !listening || !audible {
                return false;
            }
            self.lock =
                Some(Lock::new(arrival, now, rule == Overlap::Collision && others_mw > 0.0));
            return true;
        };
        let held_mw = lock.arrival.signal.power_mw;
        let takes_over = match rule {
            // Until the synchronisation header ends a stronger frame takes the receiver.
            Overlap::Sinr | Overlap::DictatedPdr => {
                now <= lock.arrival.signal.start + SYNCHRONISATION_HEADER
                    && arrival.signal.power_mw > held_mw
                    && is_audible(rule, &arrival, 0.0, noise)
            }
            Overlap::Capture { threshold } => {
                audible && arrival.signal.power_mw >= held_mw * threshold
            }
            Overlap::Collision => {
                lock.ruined = true;
                false
            }
        };
        if takes_over {
            *lock = Lock::new(arrival, now, false);
        }
        false
    }

    /// A frame ends.
    pub fn end(&mut self, rule: Overlap, noise: Noise, frame: FrameId, now: Instant) -> Fate {
        self.account(rule, noise, now);
        self.arriving.retain(|arrival| arrival.frame != frame);
        self.busy_until = Some(now);
        let Some(lock) = self.lock.take_if(|lock| lock.arrival.frame == frame) else {
            return Fate::Unheard;
        };
        if lock.arrival.draw < lock.chance() { Fate::Received } else { Fate::Broken }
    }

    /// The radio leaves the frame that it was with, if any.
    pub fn abandon(&mut self) {
        self.lock = None;
    }

    /// The frame that the radio stays with.
    pub fn locked(&self) -> Option<FrameId> {
        self.lock.map(|lock| lock.arrival.frame)
    }

    /// Power of all frames on the air here, mW.
    pub fn power_mw(&self) -> f64 {
        // A sum in order, not a running total: no rounding leaves power where there is no frame.
        self.arriving.iter().map(|arrival| arrival.signal.power_mw).sum()
    }

    /// Whether a clear channel assessment that began at `from` and ends now finds the channel busy: a frame strong
    /// enough to be found, or energy of `energy_mw` or more (IEEE 802.15.4-2015 s10.2.7, mode 3 with OR).
    pub fn is_busy(&self, noise: Noise, energy_mw: f64, from: Instant) -> bool {
        let carrier_mw = (noise.floor_mw + noise.extra_mw) * LOCK_SNR;
        let carrier = |arrival: &Arrival| arrival.signal.power_mw >= carrier_mw;
        self.arriving.iter().any(carrier)
            || self.power_mw() + noise.extra_mw >= energy_mw
            || self.busy_until.is_some_and(|until| until > from)
    }

    /// Whether a frame other than `frame` is on the air here.
    pub fn is_disturbed(&self, frame: FrameId) -> bool {
        self.arriving.iter().any(|arrival| arrival.frame != frame)
    }

    /// Closes the piece that lasted until `now`.
    fn account(&mut self, rule: Overlap, noise: Noise, now: Instant) {
        let others = |held: FrameId| -> f64 {
            let others = self.arriving.iter().filter(|arrival| arrival.frame != held);
            others.map(|arrival| arrival.signal.power_mw).sum()
        };
        let Some(lock) = &self.lock else { return };
        let others_mw = others(lock.arrival.frame);
        let lock = self.lock.as_mut().expect("it was there a line ago");
        lock.pass(rule, others_mw, noise, now);
    }
}

impl Lock {
    const fn new(arrival: Arrival, now: Instant, ruined: bool) -> Self {
        Self { arrival, since: now, log_chance: 0.0, worst_mw: 0.0, ruined }
    }

    /// A piece under `others_mw` of other frames is over.
    fn pass(&mut self, rule: Overlap, others_mw: f64, noise: Noise, now: Instant) {
        let disturbance_mw = match rule {
            // Which of two frames is held is decided when the later one begins.
            Overlap::Capture { .. } => noise.extra_mw,
            _ => others_mw + noise.extra_mw,
        };
        let piece = now.since(self.since);
        self.since = now;
        if piece.is_zero() {
            return;
        }
        self.worst_mw = self.worst_mw.max(disturbance_mw);
        if self.arrival.signal.pdr.is_none() {
            let sinr = self.arrival.signal.power_mw / (noise.floor_mw + disturbance_mw);
            self.log_chance += log_success(sinr, octets(piece));
        }
    }

    /// The chance of the whole frame.
    fn chance(&self) -> f64 {
        if self.ruined {
            return 0.0;
        }
        dictated(self.arrival.signal, self.worst_mw).unwrap_or_else(|| libm::exp(self.log_chance))
    }
}

/// The chance of a frame under `disturbance_mw`, where the medium dictates one.
fn dictated(signal: Signal, disturbance_mw: f64) -> Option<f64> {
    let pdr = signal.pdr?;
    if disturbance_mw <= 0.0 {
        return Some(pdr);
    }
    Some(pdr * pdr_at_sinr(signal.power_mw / (noise_mw() + disturbance_mw)))
}

/// Octets that are on the air in `span`, as a number with a fraction.
fn octets(span: Duration) -> f64 {
    span.as_nanos() as f64 / OCTET.as_nanos() as f64
}

/// Whether a radio that is free finds the frame under `others_mw` of other frames.
fn is_audible(rule: Overlap, arrival: &Arrival, others_mw: f64, noise: Noise) -> bool {
    let signal = arrival.signal;
    match (rule, signal.pdr) {
        // A frame that fails its own draw is not there.
        (Overlap::Capture { .. }, Some(_)) => {
            dictated(signal, noise.extra_mw).is_some_and(|chance| arrival.draw < chance)
        }
        (_, Some(pdr)) if pdr <= 0.0 => false,
        (_, Some(_)) => signal.power_mw >= others_mw * LOCK_SNR,
        (_, None) => signal.power_mw >= (noise.floor_mw + noise.extra_mw + others_mw) * LOCK_SNR,
    }
}
