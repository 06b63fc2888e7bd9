//! What else is on the band: Wi-Fi stations and bursts, as pure functions of (seed, time, channel), so
//! that they cost no event and every protocol compared meets the same ones. The module `bursts` has their times.
//!
//! - [`Interferer::Wifi`]: a station that covers the 802.15.4 channels within half its 22 MHz, none else.
//! - [`Interferer::WifiLoad`]: an 802.11g sender of a given throughput. Its power falls on each 802.15.4 channel by
//!   the share of it that its 16.6 MHz cover.
//! - [`Interferer::GilbertElliott`]: a chain of two states a channel.

use lowmesh_mac::params::OCTET;
use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId, Seed};

use super::bursts::Bursts;
use super::error::ConfigError;
use super::params::{
    CHANNEL_WIDTH_MHZ, GILBERT_ELLIOTT_STEPS, WIFI_FRAME_BITS, WIFI_FRAME_BURST,
    WIFI_LOAD_MAX_MBPS, WIFI_OFDM_WIDTH_MHZ, WIFI_WIDTH_MHZ,
};
use super::pathloss::PathLoss;
use super::position::Position;
use super::reception::Piece;

/// A station has one use on all channels that it covers: its spells are drawn as if for this one.
const SPELLS_CHANNEL: Channel = Channel::new(11).expect("a channel of the band");

/// The power of an interferer at the nodes.
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

/// Alternating times of use and of silence, both of random length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spells {
    /// Mean time in use.
    pub on: Duration,
    /// Mean time out of use.
    pub off: Duration,
}

/// When a station is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Not before this.
    pub start: Instant,
    /// Then in spells; `None` is always.
    pub spells: Option<Spells>,
}

/// One source of interference, as a scenario describes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Interferer {
    /// A Wi-Fi station.
    Wifi {
        /// Wi-Fi channel, 1 to 13.
        channel: u8,
        /// Part of the time it is on air, 0 to 1.
        duty_cycle: f64,
        /// When it is in use.
        usage: Usage,
        /// How loud it is.
        loudness: Loudness,
    },
    /// An 802.11g sender: one full frame and its acknowledgement in each period.
    WifiLoad {
        /// Wi-Fi channel, 1 to 13.
        channel: u8,
        /// UDP throughput while it is in use, Mbit/s.
        load_mbps: f64,
        /// When it is in use.
        usage: Usage,
        /// How loud it is on a channel that it covers whole.
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

/// All interferers of a run, prepared for queries.
#[derive(Clone, Debug, Default)]
pub struct Interference {
    seed: Seed,
    sources: Vec<Source>,
    /// Constant noise at each node on each channel, mW; empty without any.
    ambient: Vec<[f64; Channel::COUNT]>,
}

#[derive(Clone, Debug)]
struct Source {
    bursts: Bursts,
    /// The bursts are on the air from this time on.
    start: Instant,
    /// And only while these are; of all channels as one.
    spells: Option<Bursts>,
    /// The share of its power that falls on each channel.
    shares: [f64; Channel::COUNT],
    /// Power at each node, mW.
    power_mw: Vec<f64>,
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
        Ok(Self { seed, sources, ambient: Vec::new() })
    }

    /// True if there are no interferers.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.ambient.is_empty()
    }

    /// Sets constant noise at a node of `nodes`, or at all, on some channels: an event began or ended it.
    pub(crate) fn set_ambient(
        &mut self,
        nodes: usize,
        node: Option<NodeId>,
        channels: &[Channel],
        power_mw: f64,
    ) {
        self.ambient.resize(nodes, [0.0; Channel::COUNT]);
        let is_meant = |index: usize| node.is_none_or(|node| node.index() == index);
        for (_, at_node) in self.ambient.iter_mut().enumerate().filter(|(i, _)| is_meant(*i)) {
            for channel in channels {
                at_node[channel.index()] = power_mw;
            }
        }
    }

    /// The same noise over other interferers.
    pub(crate) fn with_ambient_of(self, other: Self) -> Self {
        Self { ambient: other.ambient, ..self }
    }

    /// Power of all interferers at `node` on `channel` at `now`, mW.
    pub fn extra_noise_mw(&self, node: NodeId, channel: Channel, now: Instant) -> f64 {
        let at_node = self.ambient.get(node.index());
        let mut sum = at_node.map_or(0.0, |channels| channels[channel.index()]);
        for (index, source) in self.on(channel) {
            if source.is_active(self.seed, index, channel, now) {
                let power_mw = source.power_mw.get(node.index()).copied().unwrap_or(0.0);
                sum += power_mw * source.shares[channel.index()];
            }
        }
        sum
    }

    /// The next moment after `now` at which the power on `channel` can change; `None` if it never does.
    pub fn next_change(&self, channel: Channel, now: Instant) -> Option<Instant> {
        self.on(channel).map(|(index, source)| source.next_change(self.seed, index, now)).min()
    }

    /// The parts of a frame of `octets` that starts at `start`, each under constant power at `node`.
    pub fn pieces(
        &self,
        node: NodeId,
        channel: Channel,
        start: Instant,
        octets: usize,
    ) -> impl Iterator<Item = Piece> {
        let end = start + OCTET * octets as u64;
        let mut from = Some(start);
        core::iter::from_fn(move || {
            let start = from?;
            let extra_mw = self.extra_noise_mw(node, channel, start);
            from = self.next_change(channel, start).filter(|change| *change < end);
            let octets = match from {
                None if start + OCTET * octets as u64 == end => octets as f64,
                until => {
                    until.unwrap_or(end).since(start).as_nanos() as f64 / OCTET.as_nanos() as f64
                }
            };
            Some(Piece { extra_mw, octets })
        })
    }

    /// The sources that touch `channel`, with their number.
    fn on(&self, channel: Channel) -> impl Iterator<Item = (u64, &Source)> {
        let touches = move |(_, source): &(u64, &Source)| source.shares[channel.index()] > 0.0;
        (0..).zip(&self.sources).filter(touches)
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
        let known = |channel: u8| {
            let refuse = || ConfigError::new(key("channel"), &channel, "1 to 13 is allowed");
            (1..=13).contains(&channel).then_some(channel).ok_or_else(refuse)
        };
        let chain = |good: Duration, bad: Duration, names: [&str; 2]| {
            let step_ns = good.min(bad).as_nanos() / GILBERT_ELLIOTT_STEPS;
            if step_ns == 0 {
                let key = key(names[usize::from(good >= bad)]);
                return Err(ConfigError::new(key, &good.min(bad), "4ns or more is allowed"));
            }
            Ok(Bursts::chain(step_ns, good, bad))
        };
        let Usage { start, spells } = match interferer {
            Interferer::Wifi { usage, .. } | Interferer::WifiLoad { usage, .. } => *usage,
            Interferer::GilbertElliott { .. } => Usage::default(),
        };
        let spells = spells.map(|one| chain(one.off, one.on, ["off", "on"])).transpose()?;
        let (bursts, shares, loudness) = match interferer {
            Interferer::Wifi { channel, duty_cycle, loudness, .. } => {
                let shares = wifi_covers(known(*channel)?);
                ConfigError::within(&key("duty_cycle"), *duty_cycle, 0.0, 1.0)?;
                (Bursts::Occupations { duty_cycle: *duty_cycle }, shares, loudness)
            }
            Interferer::WifiLoad { channel, load_mbps, loudness, .. } => {
                let shares = ofdm_shares(known(*channel)?);
                ConfigError::within(&key("load_mbps"), *load_mbps, 0.0, WIFI_LOAD_MAX_MBPS)?;
                let frames_per_s = load_mbps * 1e6 / WIFI_FRAME_BITS;
                let duty_cycle = frames_per_s * WIFI_FRAME_BURST.as_nanos() as f64 / 1e9;
                let silent = Bursts::Occupations { duty_cycle: 0.0 };
                let frames = || Bursts::frames(duty_cycle, WIFI_FRAME_BURST);
                (if *load_mbps > 0.0 { frames() } else { silent }, shares, loudness)
            }
            Interferer::GilbertElliott { channels, mean_good, mean_bad, loudness } => {
                let mut shares = [0.0; Channel::COUNT];
                for channel in channels {
                    shares[channel.index()] = 1.0;
                }
                let bursts = chain(*mean_good, *mean_bad, ["mean_good", "mean_bad"])?;
                (bursts, shares, loudness)
            }
        };
        let power_mw = match *loudness {
            Loudness::Everywhere(power) => vec![power.milliwatts(); nodes],
            Loudness::At { position, tx_power, path_loss } => {
                let Some(positions) = positions else {
                    let allowed = "a position is allowed only if the nodes have positions";
                    return Err(ConfigError::new(key("position"), &"given", allowed));
                };
                let power = |node: &Position| {
                    Dbm(tx_power.0 + path_loss.gain_db(position.distance_m(*node))).milliwatts()
                };
                positions.iter().map(power).collect()
            }
        };
        Ok(Self { bursts, start, spells, shares, power_mw })
    }

    fn is_active(&self, seed: Seed, index: u64, channel: Channel, now: Instant) -> bool {
        let in_use = |spells: Bursts| spells.active(seed, index, SPELLS_CHANNEL, now);
        now >= self.start
            && self.spells.is_none_or(in_use)
            && self.bursts.active(seed, index, channel, now)
    }

    fn next_change(&self, seed: Seed, index: u64, now: Instant) -> Instant {
        if now < self.start {
            return self.start;
        }
        let bursts = self.bursts.next_change(seed, index, now);
        self.spells.map_or(bursts, |spells| bursts.min(spells.next_change(seed, index, now)))
    }
}

/// 1 for the 802.15.4 channels whose centre lies within half the width of Wi-Fi channel `number`, else 0.
fn wifi_covers(number: u8) -> [f64; Channel::COUNT] {
    offsets_mhz(number).map(|mhz| f64::from(u8::from(libm::fabs(mhz) < WIFI_WIDTH_MHZ / 2.0)))
}

/// The share of each 802.15.4 channel that the subcarriers of Wi-Fi channel `number` cover.
fn ofdm_shares(number: u8) -> [f64; Channel::COUNT] {
    let (half, edge) = (CHANNEL_WIDTH_MHZ / 2.0, WIFI_OFDM_WIDTH_MHZ / 2.0);
    offsets_mhz(number).map(|mhz| {
        let covered_mhz = edge.min(mhz + half) - (-edge).max(mhz - half);
        covered_mhz.max(0.0) / CHANNEL_WIDTH_MHZ
    })
}

/// From the centre of Wi-Fi channel `number` to that of each 802.15.4 channel, MHz.
fn offsets_mhz(number: u8) -> [f64; Channel::COUNT] {
    // IEEE 802.11: 2407 + 5 n MHz; IEEE 802.15.4-2006 s6.1.2.1: 2405 + 5 (k - 11) MHz.
    let centre = 2407.0 + 5.0 * f64::from(number);
    core::array::from_fn(|index| 2405.0 + 5.0 * index as f64 - centre)
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
    fn load(channel: u8, load_mbps: f64) -> Interferer {
        Interferer::WifiLoad { channel, load_mbps, usage: Usage::default(), loudness: FLAT }
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
            let station = of(Interferer::Wifi {
                channel: 6,
                duty_cycle,
                usage: Usage::default(),
                loudness: FLAT,
            });
            let (part, _) = occupancy(&station, channel(17));
            assert!((part - duty_cycle).abs() < 0.01, "{duty_cycle}: {part}");
        }
    }

    #[test]
    fn a_wifi_station_covers_its_four_channels() {
        let covered = |number| {
            let cover = wifi_covers(number);
            (11..=26).filter(|k| cover[usize::from(*k) - 11] > 0.0).collect::<Vec<u8>>()
        };
        assert_eq!(covered(1), [11, 12, 13, 14]);
        assert_eq!(covered(6), [16, 17, 18, 19]);
        assert_eq!(covered(11), [21, 22, 23, 24]);
    }

    #[test]
    fn a_wifi_load_takes_the_time_of_its_frames() {
        // 1470 octets and an acknowledgement take 288 us: at 28.5 Mbit/s one begins every 0.41 ms.
        for (load_mbps, expected) in [(0.0, 0.0), (5.0, 0.1224), (15.0, 0.3673), (28.5, 0.698)] {
            let station = of(load(13, load_mbps));
            let (part, _) = occupancy(&station, channel(25));
            assert!((part - expected).abs() < 0.005, "{load_mbps}: {part}");
        }
    }

    #[test]
    fn a_station_out_of_use_is_silent_and_the_mean_lengths_are_kept() {
        let spells = Spells { on: Duration::from_millis(300), off: Duration::from_millis(900) };
        let usage = Usage { spells: Some(spells), ..Usage::default() };
        let always = Interferer::Wifi { channel: 13, duty_cycle: 1.0, usage, loudness: FLAT };
        let (part, length_ms) = occupancy(&of(always), channel(25));
        assert!((part - 0.25).abs() < 0.03, "{part}");
        assert!((length_ms - 300.0).abs() < 50.0, "{length_ms}");
        let load = |usage| {
            of(Interferer::WifiLoad { channel: 13, load_mbps: 15.0, usage, loudness: FLAT })
        };
        let (part, _) = occupancy(&load(usage), channel(25));
        assert!((part - 0.25 * 0.3673).abs() < 0.012, "{part}");
        // In use it sends as a station that always is.
        let at = |air: &Interference, tick: u64| {
            air.extra_noise_mw(NodeId(0), channel(25), Instant::from_nanos(tick * 100_000)) > 0.0
        };
        let (sometimes, always) = (load(usage), load(Usage::default()));
        assert!((0..50_000).all(|tick| !at(&sometimes, tick) || at(&always, tick)));
        let start = Instant::from_secs(2);
        let late = load(Usage { start, spells: None });
        assert_eq!(late.next_change(channel(25), Instant::ZERO), Some(start));
        assert!((0..20_000).all(|tick| !at(&late, tick)));
        assert!((20_000..50_000).all(|tick| at(&late, tick) == at(&always, tick)));
    }

    #[test]
    fn the_pieces_of_a_frame_follow_the_station() {
        let station = of(load(13, 20.0));
        let (mut disturbed, mut all) = (0.0, 0.0);
        for start in (0..2_000).map(|i| Instant::from_nanos(i * 7_654_321)) {
            let pieces = || station.pieces(NodeId(0), channel(25), start, 100);
            all += pieces().map(|piece| piece.octets).sum::<f64>();
            let loud = pieces().filter(|piece| piece.extra_mw > 0.0);
            disturbed += loud.map(|piece| piece.octets).sum::<f64>();
        }
        assert!((all - 200_000.0).abs() < 1e-3, "{all}");
        assert!((disturbed / all - 0.4898).abs() < 0.005, "{disturbed}");
        let lone = of(load(1, 20.0));
        let pieces = lone.pieces(NodeId(0), channel(25), Instant::ZERO, 100);
        assert_eq!(pieces.collect::<Vec<_>>(), [Piece { extra_mw: 0.0, octets: 100.0 }]);
    }

    #[test]
    fn channel_26_lies_on_the_edge_of_wifi_channel_13() {
        let shares = ofdm_shares(13);
        let share = |number: u8| (shares[channel(number).index()] * 100.0).round() as u32;
        assert_eq!([22, 23, 24, 25, 26].map(share), [0, 100, 100, 100, 64]);
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
        let wifi =
            Interferer::Wifi { channel: 1, duty_cycle: 1.0, usage: Usage::default(), loudness };
        let placed = Interference::new(std::slice::from_ref(&wifi), 2, Some(&positions), Seed(1));
        let placed = placed.expect("nodes have places");
        let power = |node| placed.extra_noise_mw(NodeId(node), channel(11), Instant::ZERO);
        assert!((power(0) / power(1) - 100.0).abs() < 1e-6);
        let error = Interference::new(&[wifi], 2, None, Seed(1)).expect_err("no places");
        assert_eq!(error.key, "interferer[0].position");
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let wifi = |channel, duty_cycle| Interferer::Wifi {
            channel,
            duty_cycle,
            usage: Usage::default(),
            loudness: FLAT,
        };
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
