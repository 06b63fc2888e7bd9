//! Which peers have shown that they are where they say (RFC 9175 s2, the Echo option).
//!
//! An answer much larger than its request makes a server a weapon: the address of the request may
//! be forged. So a peer gets a random value, and whoever brings it back can receive at that address.
//! Values are remembered as RFC 9175 appendix A, method 1, has it, in a table that strangers cannot
//! grow: those who have proved themselves and those who have not are kept, and forgotten, apart.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use lowmesh_units::{Duration, Instant, Rng};

use crate::params::ECHO_LEN;

/// A value that was given to a peer, and when.
#[derive(Clone, Copy, Debug)]
struct Challenge {
    value: [u8; ECHO_LEN],
    issued: Instant,
}

/// The challenges of a server, and who has met them.
#[derive(Debug)]
pub struct Challenges<P> {
    open: BTreeMap<P, Challenge>,
    /// Peers with an open challenge, the oldest first.
    order: VecDeque<P>,
    proven: BTreeMap<P, Instant>,
    by_age: BTreeSet<(Instant, P)>,
    peers_max: usize,
}

impl<P: Ord + Copy> Challenges<P> {
    /// Remembers so many peers of each sort.
    pub const fn new(peers_max: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            order: VecDeque::new(),
            proven: BTreeMap::new(),
            by_age: BTreeSet::new(),
            peers_max,
        }
    }
    /// Whether a peer has shown that it receives at its address.
    pub fn is_proven(&self, peer: P) -> bool {
        self.proven.contains_key(&peer)
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
        self.prove(peer, now);
        Some(age)
    }
    /// A peer has shown by other means that it receives at its address.
    pub fn prove(&mut self, peer: P, now: Instant) {
        if let Some(before) = self.proven.insert(peer, now) {
            self.by_age.remove(&(before, peer));
        }
        self.by_age.insert((now, peer));
        if self.proven.len() > self.peers_max
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.proven.remove(&oldest);
        }
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
        assert!(!challenges.is_proven(1));
        assert_eq!(challenges.meet(2, &value, T0), None, "another address");
        assert_eq!(challenges.meet(1, b"wrong", T0), None);
        let later = Instant::from_secs(3);
        assert_eq!(challenges.meet(1, &value, later), Some(Duration::from_secs(3)));
        assert!(challenges.is_proven(1) && !challenges.is_proven(2));
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
    fn strangers_push_out_strangers_and_never_the_proven() {
        let (mut challenges, mut rng) = (Challenges::new(4), rng());
        challenges.prove(100, T0);
        let first = challenges.challenge(0, T0, &mut rng);
        for peer in 1..50 {
            challenges.challenge(peer, T0, &mut rng);
        }
        assert_eq!((challenges.open.len(), challenges.order.len()), (4, 4));
        assert!(challenges.is_proven(100));
        assert_eq!(challenges.meet(0, &first, T0), None);
    }

    #[test]
    fn the_proven_are_bounded_too() {
        let mut challenges = Challenges::new(2);
        for (second, peer) in [(1, 1), (2, 2), (3, 1), (4, 3)] {
            challenges.prove(peer, Instant::from_secs(second));
        }
        let proven: Vec<u8> = (1..=3).filter(|peer| challenges.is_proven(*peer)).collect();
        assert_eq!(proven, [1, 3]);
        assert_eq!(challenges.by_age.len(), 2);
    }
}
