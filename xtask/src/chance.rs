//! Random draws from a seed, so that an attack or a lossy path that finds a fault can be repeated.

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Equal seeds give equal draws.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// The next 64 bits: the splitmix64 of Steele, Lea and Flood, which is random enough for attacks and lossy paths.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
    /// A number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    /// Random octets.
    #[cfg(any(feature = "siege", test))]
    pub fn octets(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_be_bytes()).flatten().take(len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_draws_and_others_give_others() {
        let draws = |seed| Chance::new(seed).octets(100);
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert_eq!(draws(1).len(), 100);
    }

    #[test]
    fn a_draw_stays_below_its_bound() {
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| chance.below(7) < 7));
    }
}
