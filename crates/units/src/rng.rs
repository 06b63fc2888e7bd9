//! Seeded randomness, split so that what one part draws never shifts what another part draws.
//!
//! Two kinds:
//! - [`Rng`]: a ChaCha8 stream keyed by (seed, node, purpose), for a machine that draws in sequence.
//! - [`draw`]: one number as a pure function of (seed, purpose, coordinates), for the radio: whether a
//!   frame from A reaches B in slot S depends on nothing that happened before, so two runs that differ
//!   only in their congestion control see the same air (common random numbers).

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

use crate::ident::NodeId;
use crate::time::Duration;

/// The one number that all randomness of a run grows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seed(pub u64);

impl Seed {
    /// What a node draws from after it has lost its memory so many times: none of its draws repeats.
    pub fn after_losses(self, losses: u16) -> Self {
        match losses {
            0 => self,
            _ => Self(draw(self, Purpose::Boot, u64::from(losses), 0)),
        }
    }
}

/// What a stream is for; part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Backoff, beacon jitter and scan order of the MAC.
    Mac = 1,
    /// 6P sequence and back-off draws.
    Sixtop = 2,
    /// Cell choice of a scheduling function.
    Scheduling = 3,
    /// Trickle and DAO jitter.
    Rpl = 4,
    /// Message IDs, tokens and retransmission timeouts.
    Coap = 5,
    /// When the application sends.
    Traffic = 6,
    /// Whether a frame is received.
    Reception = 7,
    /// Where nodes stand.
    Topology = 8,
    /// Clock drift.
    Clock = 9,
    /// Shadowing of a link.
    Shadowing = 10,
    /// Interference bursts.
    Interference = 11,
    /// Randomly made scenarios.
    Swarm = 12,
    /// Datagram tags and fragment timing.
    Lowpan = 13,
    /// Boot times.
    Boot = 14,
    /// EUI-64s.
    Address = 15,
    /// Challenges and registrations of a CoAP host.
    Host = 16,
    /// Loss and jitter of a wired link.
    Wired = 17,
    /// Initial sequence numbers and the probe phase of a TCP sender.
    Tcp = 18,
    /// Waits and Trickle intervals of a multicast engine.
    Multicast = 19,
    /// Identifications of IPv6 packets, and delays of Router Advertisements.
    Ipv6 = 20,
}

/// A sequence of random numbers.
pub struct Rng(ChaCha8Rng, Strength);

/// From how many bits a stream grows, and each of its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strength {
    /// A seed of 64 bits, which repeats a run.
    Seed,
    /// A key of 256 bits, which nobody can guess.
    Key,
}

impl core::fmt::Debug for Rng {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Rng(secret)")
    }
}

impl Rng {
    /// The stream of (`seed`, `node`, `purpose`).
    pub fn stream(seed: Seed, node: NodeId, purpose: Purpose) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.0);
        rng.set_stream(u64::from(node.0) << 8 | purpose as u64);
        Self(rng, Strength::Seed)
    }
    /// A stream that nobody can foresee without the key: for secrets of programs on networks.
    pub fn keyed(key: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(key), Strength::Key)
    }
    /// A stream of its own, seeded by a draw of this one: for a part that a machine hands out. It grows from as many
    /// bits as this one.
    pub fn fork(&mut self) -> Self {
        match self.1 {
            Strength::Seed => Self(ChaCha8Rng::seed_from_u64(self.next_u64()), self.1),
            Strength::Key => {
                let mut key = [0; 32];
                self.fill(&mut key);
                Self::keyed(key)
            }
        }
    }
    /// A number of 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    /// A number of 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// A whole number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        // The multiply-shift map; its bias is below bound / 2^32, far under any effect measured here.
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }
    /// A number in [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
    /// A span in [`low`, `high`); `low` when the range is empty.
    pub fn duration(&mut self, low: Duration, high: Duration) -> Duration {
        low + (high - low).mul_f64(self.unit())
    }
    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// A draw of the normal distribution with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        normal(self.next_u64(), self.next_u64())
    }
    /// A draw of the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// 64 random bits that depend only on the key (`seed`, `purpose`) and the coordinates (`a`, `b`).
///
/// The SplitMix64 finaliser (Steele, Lea, Flood 2014) over the folded key: a good mix in a few
/// nanoseconds, where a ChaCha block for a single number would cost a hundred.
pub fn draw(seed: Seed, purpose: Purpose, a: u64, b: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = mix(seed.0 ^ (purpose as u64).wrapping_mul(GOLDEN));
    state = mix(state ^ a.wrapping_mul(GOLDEN));
    mix(state.wrapping_add(b.wrapping_mul(GOLDEN)))
}

/// [`draw`] as a number in [0, 1).
pub fn draw_unit(seed: Seed, purpose: Purpose, a: u64, b: u64) -> f64 {
    unit(draw(seed, purpose, a, b))
}

/// [`draw`] as a normal number with mean 0 and standard deviation 1.
pub fn draw_normal(seed: Seed, purpose: Purpose, a: u64, b: u64) -> f64 {
    let first = draw(seed, purpose, a, b);
    normal(first, mix(first))
}

const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Box and Muller's transform of two uniform draws.
fn normal(first: u64, second: u64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(first)));
    radius * libm::cos(core::f64::consts::TAU * unit(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_node_and_purpose_and_repeat_otherwise() {
        let first = |seed, node, purpose| Rng::stream(Seed(seed), NodeId(node), purpose).next_u64();
        let base = first(1, 1, Purpose::Mac);
        assert_eq!(base, first(1, 1, Purpose::Mac));
        assert_ne!(base, first(2, 1, Purpose::Mac));
        assert_ne!(base, first(1, 2, Purpose::Mac));
        assert_ne!(base, first(1, 1, Purpose::Coap));
    }

    #[test]
    fn a_fork_repeats_with_its_parent_and_differs_from_it() {
        let parent = || Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let (mut one, mut two) = (parent(), parent());
        let (mut fork, mut same) = (one.fork(), two.fork());
        let draws = (fork.next_u64(), one.next_u64());
        assert_eq!(draws, (same.next_u64(), two.next_u64()));
        assert_ne!(draws.0, draws.1);
    }

    #[test]
    fn a_stream_is_the_same_on_every_machine() {
        // Golden values: a change here breaks every published trace hash.
        let mut rng = Rng::stream(Seed(42), NodeId(7), Purpose::Rpl);
        let stream = [rng.next_u64(), rng.next_u64()];
        let point = draw(Seed(42), Purpose::Reception, 3, 4);
        assert_eq!((stream, point), (GOLDEN_STREAM, GOLDEN_DRAW));
    }
    const GOLDEN_STREAM: [u64; 2] = [395641394387665198, 10853211728864449250];
    const GOLDEN_DRAW: u64 = 12647633253461446710;

    #[test]
    fn draws_are_uniform_and_normal_enough() {
        let n = 100_000;
        let (mut sum, mut square, mut tenth) = (0.0, 0.0, 0);
        for i in 0..n {
            let x = draw_normal(Seed(9), Purpose::Shadowing, i, 1);
            sum += x;
            square += x * x;
            tenth += usize::from(draw_unit(Seed(9), Purpose::Reception, 5, i) < 0.1);
        }
        assert!((sum / n as f64).abs() < 0.02);
        assert!((square / n as f64 - 1.0).abs() < 0.02);
        assert!((9_500..10_500).contains(&tenth));
    }

    #[test]
    fn bounded_draws_stay_in_bounds() {
        let mut rng = Rng::stream(Seed(3), NodeId(0), Purpose::Traffic);
        assert_eq!(rng.below(0), 0);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[rng.below(7) as usize] = true;
            let span = rng.duration(Duration::from_secs(2), Duration::from_secs(3));
            assert!(span >= Duration::from_secs(2) && span < Duration::from_secs(3));
        }
        assert_eq!(seen, [true; 7]);
    }
}
