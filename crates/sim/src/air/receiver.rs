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

use super::cca::Cca;
use super::modulation::log_success;
use super::overlap::Overlap;
use super::params::{LOCK_SNR, SYNCHRONISATION_HEADER};
use super::pister_hack::{noise_mw, pdr_at_sinr};
use super::reception::{Noise, Signal, sinr};

/// Names a frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId(pub u64);

/// A frame as it begins at a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The frame that is received.
    pub frame: FrameId,
    /// Its start and strength.
    pub signal: Signal,
    /// The number in [0, 1) that decides about it here.
    pub draw: f64,
}

/// The outcome of a frame at a receiver.
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

/// The reception state of one radio.
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
        self.pass(rule, noise, now);
        let others_mw = self.power_mw();
        self.arriving.push(arrival);
        let audible = is_audible(rule, &arrival, others_mw, noise);
        let Some(lock) = &mut self.lock else {
            if !listening || !audible {
                return false;
            }
            self.lock = Some(Lock::new(
                arrival,
                now,
                matches!(rule, Overlap::Collision) && others_mw > 0.0,
            ));
            return true;
        };
        let held_mw = lock.arrival.signal.power_mw;
        let takes_over = match rule {
            // Until the synchronisation header ends a stronger frame takes the receiver.
            Overlap::Sinr | Overlap::Curve(_) | Overlap::DictatedPdr | Overlap::DictatedSinr => {
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

    /// A frame ends; `cca` tells whether the channel was busy with it.
    pub fn end(
        &mut self,
        rule: Overlap,
        noise: Noise,
        cca: Cca,
        frame: FrameId,
        now: Instant,
    ) -> Fate {
        self.pass(rule, noise, now);
        if self.is_busy_now(noise, cca) {
            self.busy_until = Some(now);
        }
        self.arriving.retain(|arrival| arrival.frame != frame);
        let Some(lock) = self.lock.take_if(|lock| lock.arrival.frame == frame) else {
            return Fate::Unheard;
        };
        if lock.arrival.draw < lock.chance(rule) { Fate::Received } else { Fate::Broken }
    }

    /// The radio leaves the frame that it was with, if any.
    pub fn abandon(&mut self) {
        self.lock = None;
    }

    /// The time up to which the frame that the radio is with is judged, if there is one.
    pub fn judged_until(&self) -> Option<Instant> {
        self.lock.as_ref().map(|lock| lock.since)
    }

    /// Power of all frames on the air here, mW.
    fn power_mw(&self) -> f64 {
        // A sum in order, not a running total: no rounding leaves power where there is no frame.
        self.arriving.iter().map(|arrival| arrival.signal.power_mw).sum()
    }

    /// Whether a clear channel assessment that began at `from` and ends now finds the channel busy.
    pub fn is_busy(&self, noise: Noise, cca: Cca, from: Instant) -> bool {
        self.is_busy_now(noise, cca) || self.busy_until.is_some_and(|until| until > from)
    }

    fn is_busy_now(&self, noise: Noise, cca: Cca) -> bool {
        let carrier_mw = (noise.floor_mw + noise.extra_mw) * LOCK_SNR;
        let carrier = |arrival: &Arrival| match arrival.signal.pdr {
            Some(pdr) => pdr > 0.0,
            None => arrival.signal.power_mw >= carrier_mw,
        };
        cca.is_busy(self.arriving.iter().any(carrier), self.power_mw() + noise.extra_mw)
    }

    /// Closes the piece that lasted until `now` under `noise`.
    pub fn pass(&mut self, rule: Overlap, noise: Noise, now: Instant) {
        let Some(lock) = &mut self.lock else { return };
        let held = lock.arrival.frame;
        let others = self.arriving.iter().filter(|arrival| arrival.frame != held);
        let others_mw = others.map(|arrival| arrival.signal.power_mw).sum();
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
        let power_mw = self.arrival.signal.power_mw;
        let ratio = match (self.arrival.signal.pdr, rule) {
            (None, Overlap::Curve(curve)) => {
                let ratio = power_mw / (noise.floor_mw + disturbance_mw);
                self.log_chance += libm::log(curve(ratio, octets(piece)));
                return;
            }
            (None, _) => sinr(power_mw, noise.floor_mw, disturbance_mw),
            (Some(_), Overlap::DictatedSinr) if disturbance_mw > 0.0 => {
                sinr(power_mw, 0.0, disturbance_mw)
            }
            (Some(_), _) => return,
        };
        self.log_chance += log_success(ratio, octets(piece));
    }

    /// The chance of the whole frame.
    fn chance(&self, rule: Overlap) -> f64 {
        if self.ruined {
            return 0.0;
        }
        match (rule, self.arrival.signal.pdr) {
            (Overlap::DictatedSinr, Some(pdr)) => pdr * libm::exp(self.log_chance),
            _ => dictated(self.arrival.signal, self.worst_mw)
                .unwrap_or_else(|| libm::exp(self.log_chance)),
        }
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

#[cfg(test)]
mod tests {
    use lowmesh_units::Dbm;

    use super::*;
    use crate::air::CcaMode;

    const NOISE: Noise = Noise { floor_mw: 1e-10, extra_mw: 0.0 };
    const CCA: Cca = Cca { mode: CcaMode::Either, energy_mw: 2e-8 };

    /// Frame `id` from `us` on; every draw is one half.
    fn frame(id: u64, us: u64, dbm: f64, pdr: Option<f64>) -> Arrival {
        let signal = Signal { start: at(us), power_mw: Dbm(dbm).milliwatts(), pdr };
        Arrival { frame: FrameId(id), signal, draw: 0.5 }
    }
    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }
    fn end(receiver: &mut Receiver, rule: Overlap, id: u64, us: u64) -> Fate {
        receiver.end(rule, NOISE, CCA, FrameId(id), at(us))
    }

    #[test]
    fn a_lone_frame_fares_as_in_a_timeslot() {
        for (dbm, expected) in
            [(-95.0, Fate::Received), (-102.0, Fate::Broken), (-104.0, Fate::Unheard)]
        {
            let mut receiver = Receiver::default();
            let found = receiver.begin(Overlap::Sinr, NOISE, frame(1, 0, dbm, None), true);
            assert_eq!(found, expected != Fate::Unheard);
            assert_eq!(end(&mut receiver, Overlap::Sinr, 1, 1_600), expected, "{dbm} dBm");
        }
    }

    #[test]
    fn a_frame_suffers_by_the_part_that_is_disturbed() {
        // Less the co-channel loss, 3 dB cost 7e-5 of the bits, so 100 octets pass with 0.95; of two equal
        // frames neither does.
        for (second, length, expected) in [
            (-83.0, 3_200, Fate::Received),
            (-80.0, 3_200, Fate::Broken),
            (-80.0, 50, Fate::Received),
        ] {
            let mut receiver = Receiver::default();
            receiver.begin(Overlap::Sinr, NOISE, frame(1, 0, -80.0, None), true);
            receiver.begin(Overlap::Sinr, NOISE, frame(2, 300, second, None), true);
            assert_eq!(end(&mut receiver, Overlap::Sinr, 2, 300 + length), Fate::Unheard);
            let fate = end(&mut receiver, Overlap::Sinr, 1, 4_000);
            assert_eq!(fate, expected, "{second} dBm for {length} us");
        }
    }

    #[test]
    fn a_radio_stays_with_the_first_frame_unless_a_stronger_one_comes_within_its_header() {
        for (late, first, second) in
            [(100, Fate::Unheard, Fate::Received), (200, Fate::Broken, Fate::Unheard)]
        {
            let mut receiver = Receiver::default();
            assert!(receiver.begin(Overlap::Sinr, NOISE, frame(1, 0, -80.0, None), true));
            assert!(!receiver.begin(Overlap::Sinr, NOISE, frame(2, late, -70.0, None), true));
            assert_eq!(end(&mut receiver, Overlap::Sinr, 1, 3_000), first);
            assert_eq!(end(&mut receiver, Overlap::Sinr, 2, 3_000 + late), second);
        }
    }

    #[test]
    fn a_radio_that_sends_finds_nothing_and_what_it_left_is_lost() {
        let mut receiver = Receiver::default();
        assert!(!receiver.begin(Overlap::Sinr, NOISE, frame(1, 0, -60.0, None), false));
        assert_eq!(end(&mut receiver, Overlap::Sinr, 1, 1_000), Fate::Unheard);
        receiver.begin(Overlap::Sinr, NOISE, frame(2, 2_000, -60.0, None), true);
        receiver.abandon();
        assert_eq!(end(&mut receiver, Overlap::Sinr, 2, 3_000), Fate::Unheard);
    }

    #[test]
    fn two_frames_on_the_unit_disk_destroy_each_other_and_one_after_the_other_do_not() {
        let rule = Overlap::Collision;
        let mut receiver = Receiver::default();
        receiver.begin(rule, NOISE, frame(1, 0, -60.0, Some(1.0)), true);
        receiver.begin(rule, NOISE, frame(2, 900, -99.0, Some(0.0)), true);
        assert_eq!(end(&mut receiver, rule, 1, 1_000), Fate::Broken);
        receiver.begin(rule, NOISE, frame(3, 1_100, -60.0, Some(1.0)), true);
        assert_eq!(end(&mut receiver, rule, 2, 1_900), Fate::Unheard);
        assert_eq!(end(&mut receiver, rule, 3, 2_100), Fate::Broken);
        receiver.begin(rule, NOISE, frame(4, 2_200, -60.0, Some(1.0)), true);
        assert_eq!(end(&mut receiver, rule, 4, 3_000), Fate::Received);
    }

    #[test]
    fn mrm_lets_a_frame_that_is_not_much_weaker_take_the_receiver_over() {
        let rule = Overlap::Capture { threshold: libm::pow(10.0, -0.3) };
        for (second, expected) in
            [(-72.0, [Fate::Unheard, Fate::Received]), (-74.0, [Fate::Received, Fate::Unheard])]
        {
            let mut receiver = Receiver::default();
            receiver.begin(rule, NOISE, frame(1, 0, -70.0, Some(1.0)), true);
            receiver.begin(rule, NOISE, frame(2, 900, second, Some(1.0)), true);
            let fates = [end(&mut receiver, rule, 1, 1_000), end(&mut receiver, rule, 2, 1_900)];
            assert_eq!(fates, expected, "{second} dBm");
        }
    }

    #[test]
    fn the_channel_is_busy_while_a_frame_can_be_found_and_in_a_window_that_saw_one_end() {
        let mut receiver = Receiver::default();
        let busy = |receiver: &Receiver, from| receiver.is_busy(NOISE, CCA, at(from));
        assert!(!busy(&receiver, 0));
        receiver.begin(Overlap::Sinr, NOISE, frame(1, 100, -90.0, None), true);
        assert!(busy(&receiver, 0));
        end(&mut receiver, Overlap::Sinr, 1, 1_000);
        assert!(busy(&receiver, 900) && !busy(&receiver, 1_000));
        // Under the noise: no carrier, and no energy either.
        receiver.begin(Overlap::Sinr, NOISE, frame(2, 2_000, -110.0, None), true);
        assert!(!busy(&receiver, 1_900));
        let loud = Noise { extra_mw: 3e-8, ..NOISE };
        assert!(receiver.is_busy(loud, CCA, at(1_900)));
    }

    #[test]
    fn a_weak_frame_makes_the_channel_busy_by_its_carrier_and_noise_by_its_energy() {
        let mut receiver = Receiver::default();
        receiver.begin(Overlap::Sinr, NOISE, frame(1, 100, -90.0, None), true);
        let deaf = Noise { floor_mw: 1e-6, extra_mw: 3e-8 };
        for (mode, weak, noisy) in [
            (CcaMode::Energy, false, true),
            (CcaMode::Carrier, true, false),
            (CcaMode::Either, true, true),
        ] {
            let cca = Cca { mode, ..CCA };
            assert_eq!(receiver.is_busy(NOISE, cca, at(500)), weak, "{mode:?}");
            assert_eq!(receiver.is_busy(deaf, cca, at(500)), noisy, "{mode:?}");
        }
    }
}
