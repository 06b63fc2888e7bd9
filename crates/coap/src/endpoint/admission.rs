//! Which peer a full table forgets for a newcomer.

use alloc::collections::BTreeSet;
use core::ops::Bound;

use super::peers::Peers;
use crate::PeerAddress;
use crate::params::{ADMISSION_LOOK, ADMISSION_SAMPLE};
use crate::peer::Peer;

/// The peers in the order in which they are forgotten.
#[derive(Debug)]
pub(super) struct Admission<P> {
    /// Peers whose address is unproven, the first to be forgotten.
    pub(super) strangers: BTreeSet<P>,
    /// The peer that was forgotten last to make room.
    eviction_cursor: Option<P>,
}

impl<P: PeerAddress> Admission<P> {
    pub(super) const fn new() -> Self {
        Self { strangers: BTreeSet::new(), eviction_cursor: None }
    }
    /// The idle peer to forget, of one source or of all: the least worth keeping among the next few whose address is
    /// unproven, else among the next few of all. In a flood of forged addresses, to look at all of them for each
    /// datagram would be the heavier load.
    pub(super) fn idle_peer(&self, peers: &Peers<P>, source: Option<P>) -> Option<P> {
        // The addresses of a source lie side by side, behind `source`.
        let is_in = |peer: &P| source.is_none_or(|source| peer.source() == source);
        let eviction_cursor = self.eviction_cursor.filter(is_in);
        let after = eviction_cursor
            .map_or(source.map_or(Bound::Unbounded, Bound::Included), Bound::Excluded);
        let first = source.map_or(Bound::Unbounded, Bound::Included);
        let before = eviction_cursor.map_or(Bound::Unbounded, Bound::Included);
        let turn = [(after, Bound::Unbounded), (first, before)];
        let strangers = turn
            .into_iter()
            .flat_map(|part| self.strangers.range(part).take_while(|peer| is_in(peer)));
        let known = strangers.filter_map(|peer| Some((peer, peers.get(peer)?)));
        least(known.take(ADMISSION_LOOK)).or_else(|| {
            let all = turn
                .into_iter()
                .flat_map(|part| peers.range(part).take_while(|(peer, _)| is_in(peer)));
            least(all)
        })
    }
    /// A peer has been forgotten; the next search begins behind it.
    pub(super) fn forgotten(&mut self, peer: P) {
        self.strangers.remove(&peer);
        self.eviction_cursor = Some(peer);
    }
}

/// The least worth keeping among the first few idle ones of some peers.
fn least<'a, P: Copy + 'a>(peers: impl Iterator<Item = (&'a P, &'a Peer)>) -> Option<P> {
    let idle = peers.filter(|(_, one)| one.is_idle()).take(ADMISSION_SAMPLE);
    idle.min_by_key(|(_, one)| one.worth()).map(|(peer, _)| *peer)
}
