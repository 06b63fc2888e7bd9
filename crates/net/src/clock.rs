//! The time and the seeds of drivers: the only places below the faces that ask the operating system for either.

use std::io;

use lowmesh_units::{Duration, Instant, Rng, Seed};

/// Seconds from the beginning of NTP's era (1900) to that of Unix (1970): RFC 5905 figure 4.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// A clock that starts at 0 when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Starts the clock now.
    #[allow(clippy::disallowed_methods, reason = "this is the driver's clock")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }
    /// The time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed().into()
    }
    /// The time from now until `then`.
    pub fn until(&self, then: Instant) -> std::time::Duration {
        then.since(self.now()).into()
    }
}

/// The time of day in the format of NTP (RFC 5905 s6): seconds since 1900 in the upper half, their fractions in the
/// lower; 0, which NTP keeps for "unknown", for a clock before 1970.
#[allow(clippy::disallowed_methods, reason = "this is the driver's clock")]
pub fn ntp_timestamp() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| {
        let fraction = (u64::from(since.subsec_nanos()) << 32) / Duration::from_secs(1).as_nanos();
        (since.as_secs() + NTP_TO_UNIX_S) << 32 | fraction
    })
}

/// An unpredictable seed, for a run that nobody has to foresee but that may be repeated.
pub fn fresh_seed() -> Seed {
    Seed(u64::from_ne_bytes(fresh_octets().expect("the system has random numbers")))
}

/// Octets from the random number generator of the operating system, for what nobody may foresee and nobody may draw twice.
pub fn fresh_octets<const LEN: usize>() -> io::Result<[u8; LEN]> {
    let mut octets = [0; LEN];
    getrandom::fill(&mut octets).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(octets)
}

/// Random numbers of one endpoint, different from those of all others. Message IDs, tokens and the key of Echo values are
/// drawn from them, so they grow from as many bits as that key has.
pub fn fresh_rng() -> Rng {
    Rng::keyed(fresh_octets().expect("the system has random numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward_and_knows_how_long_is_left() {
        let clock = Clock::start();
        let first = clock.now();
        let later = first + Duration::from_secs(100);
        let left = clock.until(later).as_secs_f64();
        assert!(left > 50.0 && left <= 100.0, "{left}");
        assert!(clock.now() >= first);
        assert!(clock.until(first).is_zero());
    }

    #[test]
    fn the_time_of_day_is_this_century() {
        // 2020-01-01 in NTP's seconds.
        assert!(ntp_timestamp() >> 32 > 3_786_825_600);
    }

    #[test]
    fn two_seeds_differ() {
        assert_ne!(fresh_seed(), fresh_seed());
    }

    #[test]
    fn two_endpoints_draw_different_numbers() {
        assert_ne!(fresh_rng().next_u64(), fresh_rng().next_u64());
        assert_ne!(fresh_rng().fork().next_u64(), fresh_rng().fork().next_u64());
    }
}
