//! Which of the frames that overlap at one receiver it gets. Pure functions: no state, no clock.
//!
//! Frames that overlap only in part count as overlapping whole. Chances are compared with one uniform
//! draw a frame and receiver ([`reception_draw`]), so a frame that would have been received stays
//! received when its SINR only grows.

use lowmesh_units::rng::draw_unit;
use lowmesh_units::{Instant, NodeId, Purpose, Seed};

use super::links::Link;
use super::modulation::log_success;
use super::overlap::Overlap;
use super::params::{CO_CHANNEL_LOSS, LOCK_SNR, SYNCHRONISATION_HEADER};
use super::pister_hack::{noise_mw, pdr_at_sinr};

/// One frame as it arrives at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// The time at which the frame starts.
    pub start: Instant,
    /// Received power, mW.
    pub power_mw: f64,
    /// The chance of an undisturbed frame, where the medium dictates one.
    pub pdr: Option<f64>,
}

impl Signal {
    /// A frame that starts at `start` and arrives over `link`.
    pub fn over(link: &Link, start: Instant) -> Self {
        Self { start, power_mw: link.power_mw, pdr: link.pdr }
    }
}

/// Interference from other sources than frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The receiver's own noise, mW.
    pub floor_mw: f64,
    /// Interferers, mW.
    pub extra_mw: f64,
}

/// A part of a frame under constant interference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Interferers, mW.
    pub extra_mw: f64,
    /// Length, in octets on the air.
    pub octets: f64,
}

impl Noise {
    /// A frame of `octets` under the same interference from its start to its end.
    pub fn whole(self, octets: usize) -> impl Iterator<Item = Piece> {
        core::iter::once(Piece { extra_mw: self.extra_mw, octets: octets as f64 })
    }
}

/// What happened at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The frame received, as an index of the candidates.
    pub received: Option<usize>,
    /// The frame the radio spent its time on, received or not.
    pub locked: Option<usize>,
    /// True if another frame overlapped the locked one.
    pub interfered: bool,
}

/// Decides among `candidates`, the frames that overlap at one receiver in order of their start.
///
/// `noise` is that at the start. `pieces` are the parts of candidate i's PHY header and PSDU, and `draw` is its
/// number in [0, 1). Only the pieces of the locked frame are asked for, once.
pub fn resolve<Pieces: Iterator<Item = Piece>>(
    rule: Overlap,
    candidates: &[Signal],
    noise: Noise,
    pieces: impl Fn(usize) -> Pieces,
    draw: impl Fn(usize) -> f64,
) -> Resolution {
    debug_assert!(candidates.is_sorted_by_key(|signal| signal.start), "in order of start");
    match rule {
        Overlap::Sinr | Overlap::Curve(_) | Overlap::DictatedPdr | Overlap::DictatedSinr => {
            let Some(locked) = lock(candidates, noise) else { return Resolution::default() };
            let others: f64 = sum_of_others(candidates, locked);
            let signal = candidates[locked];
            let chance = match (rule, signal.pdr) {
                (Overlap::DictatedSinr, Some(pdr)) => {
                    pdr * undisturbed(signal, others, pieces(locked))
                }
                (Overlap::Curve(curve), None) => {
                    let success = |piece: Piece| {
                        let disturbance_mw = others + piece.extra_mw;
                        curve(signal.power_mw / (noise.floor_mw + disturbance_mw), piece.octets)
                    };
                    pieces(locked).map(success).product()
                }
                _ => chance(signal, others, noise.floor_mw, pieces(locked)),
            };
            let received = (draw(locked) < chance).then_some(locked);
            Resolution { received, locked: Some(locked), interfered: others > 0.0 }
        }
        Overlap::Capture { threshold } => capture(candidates, threshold, |index| {
            draw(index) < chance(candidates[index], 0.0, noise.floor_mw, pieces(index))
        }),
        Overlap::Collision => match candidates {
            [] => Resolution::default(),
            [only] => {
                let passes = draw(0) < chance(*only, 0.0, noise.floor_mw, pieces(0));
                let locked = only.pdr.is_none_or(|pdr| pdr > 0.0).then_some(0);
                Resolution { received: passes.then_some(0), locked, interfered: false }
            }
            [_, _, ..] => Resolution { received: None, locked: Some(0), interfered: true },
        },
    }
}

/// The number in [0, 1) that decides about the frame that `tx` starts at `start`, at `rx`. It depends on
/// nothing else, so runs that differ in their protocols share the air.
pub fn reception_draw(seed: Seed, tx: NodeId, rx: NodeId, start: Instant) -> f64 {
    let link = u64::from(tx.0) << 16 | u64::from(rx.0);
    draw_unit(seed, Purpose::Reception, link, start.as_nanos())
}

/// The frame whose preamble the radio finds: the strongest among those that start before the first
/// one's synchronisation header ends. What came later finds the radio busy.
fn lock(candidates: &[Signal], noise: Noise) -> Option<usize> {
    let floor = (noise.floor_mw + noise.extra_mw) * LOCK_SNR;
    let mut best: Option<(usize, Instant)> = None;
    for (index, signal) in candidates.iter().enumerate() {
        let audible = match signal.pdr {
            Some(pdr) => pdr > 0.0,
            None => signal.power_mw >= floor,
        };
        match best {
            _ if !audible => {}
            None => best = Some((index, signal.start)),
            Some((_, first)) if signal.start > first + SYNCHRONISATION_HEADER => break,
            Some((held, first)) if signal.power_mw > candidates[held].power_mw => {
                best = Some((index, first));
            }
            Some(_) => {}
        }
    }
    best.map(|(index, _)| index)
}

fn sum_of_others(candidates: &[Signal], locked: usize) -> f64 {
    // A sum in order, not a total less one: no rounding leaves interference where there is none.
    let powers = candidates.iter().enumerate().filter(|(index, _)| *index != locked);
    powers.map(|(_, signal)| signal.power_mw).sum()
}

/// The SINR at which annex E gives what a real receiver gets of a frame of `power_mw` over `floor_mw` of its own
/// noise, under `disturbance_mw` of other frames and interferers: the one rule of all media without a measured table.
///
/// The receiver's own loss is in its noise already ([`NOISE_DBM`](super::params::NOISE_DBM)); against what else is on
/// the channel it comes on top.
pub(super) fn sinr(power_mw: f64, floor_mw: f64, disturbance_mw: f64) -> f64 {
    power_mw / (floor_mw + CO_CHANNEL_LOSS * disturbance_mw)
}

/// The chance of `signal` under `others_mw` of other frames and the interference of its `pieces`.
fn chance(
    signal: Signal,
    others_mw: f64,
    floor_mw: f64,
    pieces: impl Iterator<Item = Piece>,
) -> f64 {
    let Some(pdr) = signal.pdr else {
        let log_chance = |piece: Piece| {
            let disturbance_mw = others_mw + piece.extra_mw;
            log_success(sinr(signal.power_mw, floor_mw, disturbance_mw), piece.octets)
        };
        return libm::exp(pieces.map(log_chance).sum());
    };
    let disturbance_mw = others_mw + pieces.map(|piece| piece.extra_mw).fold(0.0, f64::max);
    if disturbance_mw <= 0.0 {
        return pdr;
    }
    // The table is measured, so it has the receiver's loss in it.
    pdr * pdr_at_sinr(signal.power_mw / (noise_mw() + disturbance_mw))
}

/// What `others_mw` of other frames and the interference of its `pieces` leave of a frame that passes alone.
fn undisturbed(signal: Signal, others_mw: f64, pieces: impl Iterator<Item = Piece>) -> f64 {
    let log_chance = |piece: Piece| {
        let disturbance_mw = others_mw + piece.extra_mw;
        if disturbance_mw <= 0.0 {
            return 0.0;
        }
        log_success(sinr(signal.power_mw, 0.0, disturbance_mw), piece.octets)
    };
    libm::exp(pieces.map(log_chance).sum())
}

fn capture(candidates: &[Signal], threshold: f64, passes: impl Fn(usize) -> bool) -> Resolution {
    let mut resolution = Resolution::default();
    for (index, signal) in candidates.iter().enumerate().filter(|(index, _)| passes(*index)) {
        if let Some(held) = resolution.received {
            resolution.interfered = true;
            if signal.power_mw < candidates[held].power_mw * threshold {
                continue;
            }
        }
        resolution.received = Some(index);
    }
    resolution.locked = resolution.received;
    resolution
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Dbm, Duration};

    use super::*;

    const NOISE: Noise = Noise { floor_mw: 1e-10, extra_mw: 0.0 };

    fn at(us: u64, dbm: f64, pdr: Option<f64>) -> Signal {
        let start = Instant::ZERO + Duration::from_micros(us);
        Signal { start, power_mw: Dbm(dbm).milliwatts(), pdr }
    }
    fn judge(rule: Overlap, candidates: &[Signal]) -> Resolution {
        resolve(rule, candidates, NOISE, |_| NOISE.whole(50), |_| 0.5)
    }

    #[test]
    fn a_lone_strong_frame_is_received() {
        let one = judge(Overlap::Sinr, &[at(0, -80.0, None)]);
        assert_eq!(one, Resolution { received: Some(0), locked: Some(0), interfered: false });
    }

    #[test]
    fn a_frame_under_the_noise_is_not_even_found() {
        assert_eq!(judge(Overlap::Sinr, &[at(0, -104.0, None)]), Resolution::default());
    }

    #[test]
    fn of_two_at_once_the_stronger_is_captured_and_equals_destroy_each_other() {
        let stronger = judge(Overlap::Sinr, &[at(0, -80.0, None), at(0, -74.0, None)]);
        assert_eq!((stronger.received, stronger.interfered), (Some(1), true));
        let equal = [at(0, -80.0, None), at(0, -80.0, None)];
        assert_eq!(judge(Overlap::Sinr, &equal).received, None);
    }

    #[test]
    fn a_frame_needs_three_decibels_over_another_to_survive_it() {
        // The CC2420's co-channel rejection: 20 octets, 1 % lost.
        let decide = |db, draw| {
            let pair = [at(0, -60.0, None), at(0, -60.0 - db, None)];
            resolve(Overlap::Sinr, &pair, NOISE, |_| NOISE.whole(20), |_| draw).received
        };
        assert_eq!(decide(3.1, 0.985), Some(0));
        assert_eq!(decide(2.0, 0.985), None);
        // One in six frames as short as an acknowledgement survives an equal one.
        assert_eq!(decide(0.0, 0.25), None);
    }

    #[test]
    fn a_stronger_frame_after_the_header_destroys_but_is_not_received() {
        let late = judge(Overlap::Sinr, &[at(0, -80.0, None), at(500, -70.0, None)]);
        assert_eq!(late, Resolution { received: None, locked: Some(0), interfered: true });
        let early = judge(Overlap::Sinr, &[at(0, -80.0, None), at(100, -70.0, None)]);
        assert_eq!(early.received, Some(1));
    }

    #[test]
    fn a_dictated_pdr_decides_alone_without_interference() {
        let chance = |pdr| judge(Overlap::DictatedPdr, &[at(0, -90.0, Some(pdr))]).received;
        assert_eq!(chance(0.51), Some(0));
        assert_eq!(chance(0.49), None);
    }

    #[test]
    fn interference_multiplies_the_dictated_pdr_by_that_of_the_sinr() {
        // SINR about 15 dB stands for -90 dBm, PDR 0.8603.
        let pair = [at(0, -60.0, Some(1.0)), at(0, -75.0, Some(1.0))];
        let decide = |draw| {
            resolve(Overlap::DictatedPdr, &pair, NOISE, |_| NOISE.whole(50), |_| draw).received
        };
        assert_eq!(decide(0.85), Some(0));
        assert_eq!(decide(0.87), None);
    }

    #[test]
    fn a_dictated_frame_survives_a_weaker_one_and_not_an_equal_one() {
        let own = Some(0.9);
        let decide = |others: &[f64], draw| {
            let mut frames = vec![at(0, -60.0, own)];
            frames.extend(others.iter().map(|dbm| at(300, *dbm, own)));
            resolve(Overlap::DictatedSinr, &frames, NOISE, |_| NOISE.whole(50), |_| draw).received
        };
        assert_eq!(decide(&[], 0.89), Some(0));
        assert_eq!(decide(&[-64.0], 0.89), Some(0));
        assert_eq!(decide(&[], 0.91), None);
        assert_eq!(decide(&[-60.0], 0.5), None);
    }

    #[test]
    fn an_interferer_disturbs_every_rule() {
        let loud = Noise { floor_mw: 1e-10, extra_mw: Dbm(-60.0).milliwatts() };
        let rules = [
            (Overlap::Sinr, None),
            (Overlap::DictatedPdr, Some(1.0)),
            (Overlap::DictatedSinr, Some(1.0)),
            (Overlap::Capture { threshold: 0.5 }, Some(1.0)),
            (Overlap::Collision, Some(1.0)),
        ];
        for (rule, pdr) in rules {
            let lone = [at(0, -70.0, pdr)];
            assert_eq!(judge(rule, &lone).received, Some(0), "{rule:?}");
            let drowned = resolve(rule, &lone, loud, |_| loud.whole(50), |_| 0.5);
            assert_eq!(drowned.received, None, "{rule:?}");
        }
    }

    #[test]
    fn an_interferer_breaks_the_part_of_a_frame_that_it_meets() {
        let lone = [at(0, -70.0, None)];
        let received = |disturbed_octets: f64| {
            let pieces = [
                Piece { extra_mw: 0.0, octets: 50.0 - disturbed_octets },
                Piece { extra_mw: Dbm(-70.0).milliwatts(), octets: disturbed_octets },
            ];
            resolve(Overlap::Sinr, &lone, NOISE, |_| pieces.into_iter(), |_| 0.5).received
        };
        assert_eq!([0.0, 1.0, 9.0].map(received), [Some(0), Some(0), None]);
    }

    #[test]
    fn mrm_capture_loses_one_frame_and_keeps_the_other() {
        let rule = Overlap::Capture { threshold: libm::pow(10.0, -0.3) };
        let pass = Some(1.0);
        let takes = judge(rule, &[at(0, -70.0, pass), at(900, -72.0, pass)]);
        assert_eq!(takes.received, Some(1));
        let keeps = judge(rule, &[at(0, -70.0, pass), at(900, -74.0, pass)]);
        assert_eq!((keeps.received, keeps.interfered), (Some(0), true));
        let absent = judge(rule, &[at(0, -70.0, pass), at(900, -60.0, Some(0.1))]);
        assert_eq!((absent.received, absent.interfered), (Some(0), false));
    }

    #[test]
    fn a_collision_on_the_unit_disk_spares_nobody() {
        let pair = [at(0, -20.0, Some(1.0)), at(0, -99.0, Some(0.0))];
        assert_eq!(judge(Overlap::Collision, &pair).received, None);
        assert_eq!(judge(Overlap::Collision, &pair[..1]).received, Some(0));
    }

    #[test]
    fn draws_depend_on_seed_link_and_time_only() {
        let draw = |seed, tx, rx, ms| {
            reception_draw(Seed(seed), NodeId(tx), NodeId(rx), Instant::from_millis(ms))
        };
        let base = draw(1, 2, 3, 4).to_bits();
        assert_eq!(base, draw(1, 2, 3, 4).to_bits());
        for other in [draw(2, 2, 3, 4), draw(1, 3, 2, 4), draw(1, 2, 3, 5)] {
            assert_ne!(base, other.to_bits());
        }
    }
}
