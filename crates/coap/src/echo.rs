//! Values by which peers show that they receive at their address (RFC 9175 s2, the Echo option).
//!
//! The source address of a request may be forged. So a peer gets a value that only this host can make, and a peer that
//! brings it back can receive at that address. The endpoint decides what a proof allows.
//!
//! ```text
//!   value = HMAC-SHA-256(key, period ‖ address), the first octets of it
//! ```
//! RFC 9175 s2.3: the value SHOULD be a MAC of the claimed address. It follows appendix A, method 2, but leaves the time
//! out of the value: only this host needs it, and it would reveal something about the host (s6). Nothing is kept for a
//! peer, so a crowd of forged addresses cannot displace the value of another peer.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use hmac::{Hmac, KeyInit as _, Mac as _};
use lowmesh_units::{Duration, Instant, Rng};
use sha2::Sha256;

use crate::params::{ECHO_KEY_LEN, ECHO_LEN, ECHO_PERIOD};

/// A value of an Echo option.
type Value = [u8; ECHO_LEN];

/// The key with which a server makes its challenges and recognises them.
#[derive(Default)]
pub struct Challenges {
    /// Drawn for the first challenge, so a host that never challenges draws nothing.
    key: Option<[u8; ECHO_KEY_LEN]>,
}

impl core::fmt::Debug for Challenges {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Challenges(secret)")
    }
}

impl Challenges {
    /// Starts without a key.
    pub const fn new() -> Self {
        Self { key: None }
    }
    /// A value that the peer has to return; it is valid for one to two times [`ECHO_PERIOD`].
    pub fn challenge(&mut self, peer: impl Hash, now: Instant, rng: &mut Rng) -> Value {
        let key = self.key.get_or_insert_with(|| fresh_key(rng));
        value(key, peer, period(now))
    }
    /// Whether a peer has returned its own value.
    pub fn meet(&self, peer: impl Hash, brought: &[u8], now: Instant) -> bool {
        let Some(key) = &self.key else { return false };
        let latest = period(now);
        let is_of = |period| is_equal(value(key, &peer, period), brought);
        is_of(latest) || latest.checked_sub(1).is_some_and(is_of)
    }
}

fn fresh_key(rng: &mut Rng) -> [u8; ECHO_KEY_LEN] {
    let mut fork = rng.fork();
    let mut key = [0; ECHO_KEY_LEN];
    for part in key.chunks_exact_mut(size_of::<u64>()) {
        part.copy_from_slice(&fork.next_u64().to_be_bytes());
    }
    key
}

fn period(now: Instant) -> u64 {
    let since: Duration = now.since(Instant::ZERO);
    since.as_micros() / ECHO_PERIOD.as_micros()
}

fn value(key: &[u8; ECHO_KEY_LEN], peer: impl Hash, period: u64) -> Value {
    let mut address = Octets(Vec::new());
    peer.hash(&mut address);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(&period.to_be_bytes());
    mac.update(&address.0);
    let tag = mac.finalize().into_bytes();
    let mut value = [0; ECHO_LEN];
    value.copy_from_slice(&tag[..ECHO_LEN]);
    value
}

/// In constant time, so that the time does not tell how much of a guess is right.
fn is_equal(value: Value, brought: &[u8]) -> bool {
    let differs = value.iter().zip(brought).fold(0, |bits, (one, other)| bits | (one ^ other));
    brought.len() == value.len() && differs == 0
}

/// The octets that an address feeds to a hasher: equal addresses write the same, others do not.
struct Octets(Vec<u8>);

impl Hasher for Octets {
    fn write(&mut self, octets: &[u8]) {
        self.0.extend_from_slice(octets);
    }
    fn finish(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    const T0: Instant = Instant::ZERO;

    fn rng(seed: u64) -> Rng {
        Rng::stream(Seed(seed), NodeId(1), Purpose::Coap)
    }

    #[test]
    fn only_the_challenged_peer_is_proven_by_its_value() {
        let (mut challenges, mut rng) = (Challenges::new(), rng(1));
        assert!(!challenges.meet(1, &[0; ECHO_LEN], T0), "nobody has been challenged");
        let value = challenges.challenge(1, T0, &mut rng);
        assert!(challenges.meet(1, &value, T0));
        assert!(!challenges.meet(2, &value, T0), "another address");
        for wrong in [&b"wrong"[..], &[], &value[..7], &[&value[..], &[0]].concat()] {
            assert!(!challenges.meet(1, wrong, T0), "{wrong:?}");
        }
    }

    #[test]
    fn a_value_is_valid_for_one_to_two_periods() {
        let (mut challenges, mut rng) = (Challenges::new(), rng(1));
        let second = Duration::from_secs(1);
        for issued in [T0, T0 + ECHO_PERIOD, T0 + (ECHO_PERIOD - second)] {
            let value = challenges.challenge(1, issued, &mut rng);
            assert!(challenges.meet(1, &value, issued + ECHO_PERIOD));
            assert!(!challenges.meet(1, &value, issued + ECHO_PERIOD * 2));
        }
    }

    #[test]
    fn each_host_has_values_of_its_own() {
        let value = |seed| Challenges::new().challenge(1, T0, &mut rng(seed));
        assert_ne!(value(1), value(2));
    }
}
