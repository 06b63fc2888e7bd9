//! Which datagrams are evicted from reassembly for a new one: those of the neighbour that holds most, and those that
//! receive no more fragments.
//!
//! ```text
//!   a place is free                                   : the newcomer takes it
//!   a neighbour holds more than the newcomer's would  : its datagram that waits longest is evicted
//!   a datagram received no new fragment for a while   : it is evicted, of the neighbour that holds most first
//!   else                                              : the newcomer is refused
//! ```
//!
//! Without the last rule, a node with many senders at once would start every datagram and finish none. A buffer
//! reservation attack (Hummen et al., WiSec 2013) from one address holds only places that no other sender needs; from
//! many addresses it has to send a first fragment for each place again and again.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Eui64, Instant};

use crate::params::STALE_SHARE;

/// A datagram in reassembly, or one that would like to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The neighbour that its fragments come from.
    pub source: Eui64,
    pub octets: usize,
    /// When its latest fragment that was news came.
    pub news: Instant,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub buffers: usize,
    /// Octets of all datagrams.
    pub octets: usize,
    /// Octets that the packet buffer has left beside them.
    pub room: usize,
    /// The last free buffer is not for a neighbour that holds one already.
    pub keeps_last: bool,
}

impl Bounds {
    fn fit(&self, held: &[Option<Held>], newcomer: &Held, freed: usize) -> bool {
        let (count, octets) = sum(held, |_| true);
        let free = self.buffers.saturating_sub(count);
        let keeps_last = self.keeps_last && sum(held, |one| one.source == newcomer.source).0 > 0;
        (free > 1 || free == 1 && !keeps_last)
            && octets + newcomer.octets <= self.octets
            && newcomer.octets <= self.room.saturating_add(freed)
    }
    /// How much so many datagrams with so many octets are: of buffers or of octets, whichever is the larger part.
    fn load(&self, (count, octets): (usize, usize)) -> usize {
        count.saturating_mul(self.octets).max(octets.saturating_mul(self.buffers))
    }
}

fn sum(held: &[Option<Held>], wanted: impl Fn(&Held) -> bool) -> (usize, usize) {
    let wanted = held.iter().flatten().filter(|one| wanted(one));
    wanted.fold((0, 0), |(count, octets), one| (count + 1, octets + one.octets))
}

/// The places in `held` that have to be given up before `newcomer` has one; `None` if it is refused.
pub(crate) fn victims(
    held: impl Iterator<Item = Held>,
    newcomer: &Held,
    bounds: &Bounds,
    timeout: Duration,
) -> Option<Vec<usize>> {
    let mut held: Vec<Option<Held>> = held.map(Some).collect();
    let (mut victims, mut freed) = (Vec::new(), 0);
    while !bounds.fit(&held, newcomer, freed) {
        let load_of = |source| bounds.load(sum(&held, |one| one.source == source));
        let (count, octets) = sum(&held, |one| one.source == newcomer.source);
        let newcomers = bounds.load((count + 1, octets + newcomer.octets));
        let is_stale = |one: &Held| newcomer.news.since(one.news) >= timeout / STALE_SHARE;
        let (at, gone) = held
            .iter()
            .enumerate()
            .filter_map(|(at, one)| Some((at, (*one)?)))
            .filter(|(_, one)| is_stale(one) || load_of(one.source) > newcomers)
            .max_by_key(|(at, one)| (load_of(one.source), newcomer.news.since(one.news), !at))?;
        held[at] = None;
        freed += gone.octets;
        victims.push(at);
    }
    Some(victims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    const TIMEOUT: Duration = Duration::from_secs(10);
    const BOUNDS: Bounds = Bounds { buffers: 4, octets: 2560, room: 6144, keeps_last: true };

    fn held(node: u16, octets: usize, ms: u64) -> Held {
        Held { source: NodeId(node).eui64(), octets, news: Instant::from_millis(ms) }
    }
    fn victims_of(all: &[Held], newcomer: Held) -> Option<Vec<usize>> {
        victims(all.iter().copied(), &newcomer, &BOUNDS, TIMEOUT)
    }

    #[test]
    fn nothing_is_given_up_while_there_is_room() {
        assert_eq!(victims_of(&[held(1, 500, 0)], held(2, 500, 1)), Some(vec![]));
    }

    #[test]
    fn the_oldest_of_the_neighbour_that_holds_most_gives_up_its_place_at_once() {
        let all = [held(3, 100, 0), held(1, 100, 7), held(1, 100, 5), held(1, 100, 9)];
        assert_eq!(victims_of(&all, held(2, 100, 10)), Some(vec![2]));
        let large = [held(1, 1280, 0), held(1, 1280, 1)];
        assert_eq!(victims_of(&large, held(2, 1000, 2)), Some(vec![0]));
    }

    #[test]
    fn neighbours_that_hold_the_same_keep_what_still_gets_news() {
        let all = [held(1, 100, 0), held(2, 100, 1), held(3, 100, 2), held(4, 100, 3)];
        assert_eq!(victims_of(&all, held(5, 100, 10)), None);
        assert_eq!(victims_of(&all, held(5, 100, 1251)), Some(vec![0]));
    }

    #[test]
    fn a_neighbour_past_its_share_gives_up_its_own_stale_datagram() {
        let all = [held(1, 100, 0), held(1, 100, 1), held(1, 100, 2)];
        assert_eq!(victims_of(&all, held(1, 100, 10)), None, "the last is for another");
        assert_eq!(victims_of(&all, held(1, 100, 1250)), Some(vec![0]));
    }

    #[test]
    fn what_never_fits_costs_nobody_a_place() {
        let all = [held(1, 100, 0), held(1, 100, 1)];
        assert_eq!(victims_of(&all, held(2, 2561, 9000)), None);
        let full = Bounds { room: 0, ..BOUNDS };
        assert_eq!(victims(all.iter().copied(), &held(2, 300, 9000), &full, TIMEOUT), None);
    }
}
