//! What else is on the band: Wi-Fi stations and bursts, as pure functions of (seed, time, channel), so
//! that they cost no event and every protocol compared meets the same ones.
//!
//! - [`Interferer::Wifi`]: time is cut into occupations of 1.5 ms, each taken with the chance
//!   `duty_cycle`. The station covers the 802.15.4 channels within half its 22 MHz, none else.
//! - [`Interferer::GilbertElliott`]: a chain of two states a channel. Its state at a step is either kept
//!   or, with chance a + b, drawn from its long-run shares; so looking back to the last such draw
//!   gives the state without playing the chain from its start:
//!
//! ```text
//!              a = step / mean_good
//!      good  ----------------------->  bad       share of bad = a / (a + b)
//!            <-----------------------
//!              b = step / mean_bad
//! ```

use lowmesh_units::rng::draw_unit;
use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId, Purpose, Seed};

use super::error::ConfigError;
use super::params::{GILBERT_ELLIOTT_STEPS, WIFI_BURST, WIFI_WIDTH_MHZ};
use super::pathloss::PathLoss;
use super::position::Position;

/// How loud an interferer is at the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loudness {
    /// The same at every node.
    Everywhere(Dbm),
    /// A transmitter at a place; power falls by `path_loss` (without shadowing).
    At {
        /// Where it stands.
        position: Position,
        /// Its power within one 802.15.4 channel.
        tx_power: Dbm,
        /// How its power falls with distance.
        path_loss: PathLoss,
    },
}

/// One source of interference, as a scenario says it.
#[derive(Clone, Debug, PartialEq)]
pub enum Interferer {
    /// A Wi-Fi station.
    Wifi {
        /// Wi-Fi channel, 1 to 13.
        channel: u8,
        /// Part of the time it is on air, 0 to 1.
        duty_cycle: f64,
        /// How loud it is.
        loudness: Loudness,
    },
    /// Bursts, independent on each of some channels.
    GilbertElliott {
        /// The channels it visits.
        channels: Vec<Channel>,
        /// Mean length of quiet.
        mean_good: Duration,
        /// Mean length of a burst.
        mean_bad: Duration,
        /// How loud a burst is.
        loudness: Loudness,
    },
}

/// All interferers of a run, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Interference {
    seed: Seed,
    sources: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    pattern: Pattern,
    covered: [bool; Channel::COUNT],
    /// Power at each node, mW.
    power_mw: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    Wifi { duty_cycle: f64 },
    GilbertElliott { step_ns: u64, fresh: f64, share_bad: f64 },
}

impl Interference {
    /// Prepares `interferers` for `nodes` nodes; those with a place need the nodes' `positions`.
    pub fn new(
        interferers: &[Interferer],
        nodes: usize,
        positions: Option<&[Position]>,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let make = |(index, interferer)| Source::new(index, interferer, nodes, positions);
        let sources = interferers.iter().enumerate().map(make).collect::<Result<_, _>>()?;
        Ok(Self { seed, sources })
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Power of all interferers at `node` on `channel` at `now`, mW.
    pub fn extra_noise_mw(&self, node: NodeId, channel: Channel, now: Instant) -> f64 {
        let mut sum = 0.0;
        for (index, source) in self.sources.iter().enumerate() {
            if source.covered[channel.index()]
                && source.pattern.active(self.seed, index as u64, channel, now)
            {
                sum += source.power_mw.get(node.index()).copied().unwrap_or(0.0);
            }
        }
        sum
    }
}

impl Source {
    fn new(
        index: usize,
        interferer: &Interferer,
        nodes: usize,
        positions: Option<&[Position]>,
    ) -> Result<Self, ConfigError> {
        let key = |name: &str| format!("interferer[{index}].{name}");
        let (pattern, covered, loudness) = match interferer {
            Interferer::Wifi { channel, duty_cycle, loudness } => {
                if !(1..=13).contains(channel) {
                    return Err(ConfigError::new(key("channel"), channel, "1 to 13 is allowed"));
                }
                ConfigError::within(&key("duty_cycle"), *duty_cycle, 0.0, 1.0)?;
                let pattern = Pattern::Wifi { duty_cycle: *duty_cycle };
                (pattern, wifi_covers(*channel), loudness)
            }
            Interferer::GilbertElliott { channels, mean_good, mean_bad, loudness } => {
                let mut covered = [false; Channel::COUNT];
                for channel in channels {
                    covered[channel.index()] = true;
                }
                let step_ns = mean_good.min(mean_bad).as_nanos() / GILBERT_ELLIOTT_STEPS;
                if step_ns == 0 {
                    let key = key(if mean_good < mean_bad { "mean_good" } else { "mean_bad" });
                    let given = mean_good.min(mean_bad);
                    return Err(ConfigError::new(key, &given, "4ns or more is allowed"));
                }
                let a = step_ns as f64 / mean_good.as_nanos() as f64;
                let b = step_ns as f64 / mean_bad.as_nanos() as f64;
                let pattern =
                    Pattern::GilbertElliott { step_ns, fresh: a + b, share_bad: a / (a + b) };
                (pattern, covered, loudness)
            }
        };
        let power_mw = match *loudness {
            Loudness::Everywhere(power) => vec![power.milliwatts(); nodes],
            Loudness::At { position, tx_power, path_loss } => {
                let Some(positions) = positions else {
                    let allowed = "a place is allowed only where the nodes have positions";
                    return Err(ConfigError::new(key("position"), &"given", allowed));
                };
                let power = |node: &Position| {
                    Dbm(tx_power.0 + path_loss.gain_db(position.distance_m(*node))).milliwatts()
                };
                positions.iter().map(power).collect()
            }
        };
        Ok(Self { pattern, covered, power_mw })
    }
}

impl Pattern {
    fn active(self, seed: Seed, index: u64, channel: Channel, now: Instant) -> bool {
        match self {
            // One station has one rhythm on all channels that it covers.
            Self::Wifi { duty_cycle } => {
                let occupation = now.as_nanos() / WIFI_BURST.as_nanos();
                draw_unit(seed, Purpose::Interference, index << 8, occupation) < duty_cycle
            }
            Self::GilbertElliott { step_ns, fresh, share_bad } => {
                let key = index << 8 | u64::from(channel.number());
                let mut step = now.as_nanos() / step_ns;
                loop {
                    // A draw under `fresh` renews the state and, stretched, says which it is. At least
                    // one in 4 steps does so for the shorter state, so few draws are looked at.
                    let drawn = draw_unit(seed, Purpose::Interference, key, step);
                    if drawn < fresh {
                        return drawn < fresh * share_bad;
                    }
                    let Some(before) = step.checked_sub(1) else {
                        return (drawn - fresh) < (1.0 - fresh) * share_bad;
                    };
                    step = before;
                }
            }
        }
    }
}

/// The 802.15.4 channels whose centre lies within half the width of Wi-Fi channel `number`.
fn wifi_covers(number: u8) -> [bool; Channel::COUNT] {
    // IEEE 802.11: 2407 + 5 n MHz; IEEE 802.15.4-2006 s6.1.2.1: 2405 + 5 (k - 11) MHz.
    let centre = 2407.0 + 5.0 * f64::from(number);
    core::array::from_fn(|index| {
        libm::fabs(2405.0 + 5.0 * index as f64 - centre) < WIFI_WIDTH_MHZ / 2.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: Loudness = Loudness::Everywhere(Dbm(-60.0));

    fn channel(number: u8) -> Channel {
        Channel::new(number).expect("a channel of the band")
    }
    fn of(interferer: Interferer) -> Interference {
        Interference::new(&[interferer], 2, None, Seed(3)).expect("a good interferer")
    }
    /// Part of 200 s in which the interferer is heard, and the mean length of a burst in ms.
    fn occupancy(interference: &Interference, channel: Channel) -> (f64, f64) {
        let (mut busy, mut bursts, mut before) = (0u32, 0u32, false);
        for tick in 0..800_000 {
            let now = Instant::from_nanos(tick * 250_000);
            let heard = interference.extra_noise_mw(NodeId(0), channel, now) > 0.0;
            busy += u32::from(heard);
            bursts += u32::from(heard && !before);
            before = heard;
        }
        (f64::from(busy) / 800_000.0, f64::from(busy) * 0.25 / f64::from(bursts))
    }
    fn bursts(good_ms: u64, bad_ms: u64) -> Interference {
        of(Interferer::GilbertElliott {
            channels: vec![channel(15), channel(16)],
            mean_good: Duration::from_millis(good_ms),
            mean_bad: Duration::from_millis(bad_ms),
            loudness: FLAT,
        })
    }

    #[test]
    fn a_wifi_station_is_on_air_for_its_duty_cycle() {
        for duty_cycle in [0.0, 0.1, 0.5, 1.0] {
            let station = of(Interferer::Wifi { channel: 6, duty_cycle, loudness: FLAT });
            let (part, _) = occupancy(&station, channel(17));
            assert!((part - duty_cycle).abs() < 0.01, "{duty_cycle}: {part}");
        }
    }

    #[test]
    fn a_wifi_station_covers_its_four_channels() {
        let covered = |number| {
            let cover = wifi_covers(number);
            (11..=26).filter(|k| cover[usize::from(*k) - 11]).collect::<Vec<u8>>()
        };
        assert_eq!(covered(1), [11, 12, 13, 14]);
        assert_eq!(covered(6), [16, 17, 18, 19]);
        assert_eq!(covered(11), [21, 22, 23, 24]);
    }

    #[test]
    fn gilbert_elliott_keeps_its_shares_and_burst_lengths() {
        let (part, burst_ms) = occupancy(&bursts(60, 20), channel(15));
        assert!((part - 0.25).abs() < 0.015, "{part}");
        assert!((burst_ms - 20.0).abs() < 1.5, "{burst_ms}");
        let (part, _) = occupancy(&bursts(20, 60), channel(16));
        assert!((part - 0.75).abs() < 0.015, "{part}");
        let (elsewhere, _) = occupancy(&bursts(20, 60), channel(20));
        assert!(elsewhere.abs() < 1e-12);
    }

    #[test]
    fn channels_burst_independently() {
        let interference = bursts(20, 20);
        let heard =
            |number: u8, now| interference.extra_noise_mw(NodeId(1), channel(number), now) > 0.0;
        let both = (0..40_000)
            .map(Instant::from_millis)
            .filter(|now| heard(15, *now) && heard(16, *now))
            .count();
        assert!((9_000..11_000).contains(&both), "{both}");
    }

    #[test]
    fn a_station_at_a_place_is_louder_near_by() {
        let positions = [Position::new(1.0, 0.0), Position::new(10.0, 0.0)];
        let loudness = Loudness::At {
            position: Position::default(),
            tx_power: Dbm(10.0),
            path_loss: PathLoss::Friis,
        };
        let wifi = Interferer::Wifi { channel: 1, duty_cycle: 1.0, loudness };
        let placed = Interference::new(std::slice::from_ref(&wifi), 2, Some(&positions), Seed(1));
        let placed = placed.expect("nodes have places");
        let power = |node| placed.extra_noise_mw(NodeId(node), channel(11), Instant::ZERO);
        assert!((power(0) / power(1) - 100.0).abs() < 1e-6);
        let error = Interference::new(&[wifi], 2, None, Seed(1)).expect_err("no places");
        assert_eq!(error.key, "interferer[0].position");
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let wifi = |channel, duty_cycle| Interferer::Wifi { channel, duty_cycle, loudness: FLAT };
        let burst = Interferer::GilbertElliott {
            channels: vec![],
            mean_good: Duration::from_secs(1),
            mean_bad: Duration::ZERO,
            loudness: FLAT,
        };
        for (interferer, key) in [
            (wifi(14, 0.5), "interferer[0].channel"),
            (wifi(1, 1.5), "interferer[0].duty_cycle"),
            (wifi(1, f64::NAN), "interferer[0].duty_cycle"),
            (burst, "interferer[0].mean_bad"),
        ] {
            let error = Interference::new(&[interferer], 1, None, Seed(1)).expect_err(key);
            assert_eq!(error.key, key);
        }
    }
}
