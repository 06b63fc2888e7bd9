//! Values by which peers show that they receive at their address (RFC 9175 s2, the Echo option).
//!
//! The source address of a request may be forged. So a peer gets a random value, and a peer that brings it
//! back can receive at that address. Values are remembered as in RFC 9175 appendix A, method 1, in a
//! bounded table. What a proof is worth is the endpoint's affair.

use alloc::collections::{BTreeMap, VecDeque};

use lowmesh_units::{Duration, Instant, Rng};

use crate::params::ECHO_LEN;

/// A value that was given to a peer, and when.
#[derive(Clone, Copy, Debug)]
struct Challenge {
    value: [u8; ECHO_LEN],
    issued: Instant,
}

/// The challenges of a server that are not met yet.
#[derive(Debug)]
pub struct Challenges<P> {
    open: BTreeMap<P, Challenge>,
    /// Peers with an open challenge, the oldest first.
    order: VecDeque<P>,
    peers_max: usize,
}

impl<P: Ord + Copy> Challenges<P> {
    /// Remembers so many peers.
    pub const fn new(peers_max: usize) -> Self {
        Self { open: BTreeMap::new(), order: VecDeque::new(), peers_max }
    }
    /// A value for a peer to bring back; the same until it is met or forgotten.
    pub fn challenge(&mut self, peer: P, now: Instant, rng: &mut Rng) -> [u8; ECHO_LEN] {
        if let Some(open) = self.open.get(&peer) {
            return open.value;
        }
        if self.open.len() >= self.peers_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
        let value = rng.next_u64().to_be_bytes();
        self.open.insert(peer, Challenge { value, issued: now });
        self.order.push_back(peer);
        value
    }
    /// A peer brings a value: how long ago it was issued, or `None` if it is not the peer's.
    pub fn meet(&mut self, peer: P, value: &[u8], now: Instant) -> Option<Duration> {
        let open = self.open.get(&peer).filter(|open| open.value == value)?;
        let age = now.since(open.issued);
        self.open.remove(&peer);
        self.order.retain(|one| *one != peer);
        Some(age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    const T0: Instant = Instant::ZERO;

    fn rng() -> Rng {
        Rng::stream(Seed(1), NodeId(1), Purpose::Coap)
    }

    #[test]
    fn who_brings_the_value_back_is_proven() {
        let mut challenges = Challenges::new(4);
        let value = challenges.challenge(1, T0, &mut rng());
        assert_eq!(challenges.meet(2, &value, T0), None, "another address");
        assert_eq!(challenges.meet(1, b"wrong", T0), None);
        let later = Instant::from_secs(3);
        assert_eq!(challenges.meet(1, &value, later), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_value_stays_until_it_is_met_and_serves_once() {
        let (mut challenges, mut rng) = (Challenges::new(4), rng());
        let value = challenges.challenge(1, T0, &mut rng);
        assert_eq!(challenges.challenge(1, T0, &mut rng), value);
        assert!(challenges.meet(1, &value, T0).is_some());
        assert_eq!(challenges.meet(1, &value, T0), None);
        assert_ne!(challenges.challenge(1, T0, &mut rng), value);
    }

    #[test]
    fn the_oldest_value_is_forgotten_for_one_more() {
        let (mut challenges, mut rng) = (Challenges::new(4), rng());
        let first = challenges.challenge(0, T0, &mut rng);
        for peer in 1..50 {
            challenges.challenge(peer, T0, &mut rng);
        }
        assert_eq!((challenges.open.len(), challenges.order.len()), (4, 4));
        assert_eq!(challenges.meet(0, &first, T0), None);
    }
}
