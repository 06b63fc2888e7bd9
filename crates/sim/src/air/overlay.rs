//! Links that events have changed: a table over that of the medium, which holds until an event restores them.
//!
//! A run without such events has no such table. With one, the table is made again after each event and after each change
//! of the medium, so that it costs nothing per frame.

use std::collections::{BTreeMap, BTreeSet};

use lowmesh_units::{Channel, Dbm, NodeId};

use super::links::{Link, Links, Spectrum};
use crate::event::Quality;
use crate::params::NEW_LINK;

/// What events have made of the links.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Pairs that hear each other no longer, the lower number first.
    cut: BTreeSet<(NodeId, NodeId)>,
    /// Directed links with a quality of their own.
    changed: BTreeMap<(NodeId, NodeId), Quality>,
    /// The links as they are, if they are not those of the medium.
    links: Option<Links>,
}

impl Overlay {
    /// The links as they are, over those of the medium.
    pub fn links<'a>(&'a self, medium: &'a Links) -> &'a Links {
        self.links.as_ref().unwrap_or(medium)
    }

    /// Two nodes hear each other no longer, in either direction.
    pub fn cut(&mut self, a: NodeId, b: NodeId, medium: &Links) {
        self.cut.insert((a.min(b), a.max(b)));
        self.apply(medium);
    }

    /// The links between two nodes are those of the medium again.
    pub fn restore(&mut self, a: NodeId, b: NodeId, medium: &Links) {
        self.cut.remove(&(a.min(b), a.max(b)));
        self.changed.remove(&(a, b));
        self.changed.remove(&(b, a));
        self.apply(medium);
    }

    /// The link from `tx` to `rx` has this quality.
    pub fn change(&mut self, tx: NodeId, rx: NodeId, quality: Quality, medium: &Links) {
        self.changed.insert((tx, rx), quality);
        self.apply(medium);
    }

    /// Takes the links of the medium again, which have changed.
    pub fn apply(&mut self, medium: &Links) {
        if self.cut.is_empty() && self.changed.is_empty() {
            self.links = None;
            return;
        }
        let ids = || (0..medium.nodes()).map(|index| NodeId(index as u16));
        let rows: Vec<Vec<NodeId>> = ids().map(|tx| self.receivers(tx, medium)).collect();
        let spectrum = medium.spectrum();
        let mut links = Links::silent(&rows, spectrum);
        for (tx, row) in ids().zip(&rows) {
            for &rx in row {
                for channel in channels(spectrum) {
                    let link = self.link(tx, rx, medium.get(tx, rx, channel).copied());
                    let known = links.set(tx, rx, channel, link);
                    debug_assert!(known, "the table was made for these pairs");
                }
            }
        }
        self.links = Some(links);
    }

    fn receivers(&self, tx: NodeId, medium: &Links) -> Vec<NodeId> {
        let of_medium = medium.neighbours(tx).iter().copied();
        let of_events = self.changed.range((tx, NodeId(0))..=(tx, NodeId(u16::MAX)));
        let all = of_medium.chain(of_events.map(|((_, rx), _)| *rx)).collect::<BTreeSet<_>>();
        all.into_iter().filter(|rx| !self.cut.contains(&(tx.min(*rx), tx.max(*rx)))).collect()
    }

    fn link(&self, tx: NodeId, rx: NodeId, of_medium: Option<Link>) -> Option<Link> {
        let Some(Quality { pdr, loss_db }) = self.changed.get(&(tx, rx)) else { return of_medium };
        let before = of_medium.map_or(NEW_LINK, |link| link.rssi);
        let rssi = Dbm(before.0 - loss_db);
        match pdr.or(of_medium.and_then(|link| link.pdr)) {
            Some(pdr) => Some(Link::dictated(rssi, pdr)),
            None => Some(Link::radiated(rssi)),
        }
    }
}

/// The channels whose links differ.
fn channels(spectrum: Spectrum) -> impl Iterator<Item = Channel> {
    let count = match spectrum {
        Spectrum::Flat => 1,
        Spectrum::PerChannel => Channel::COUNT,
    };
    (11..=26).filter_map(Channel::new).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);
    const C: NodeId = NodeId(2);

    /// A hears B, and C hears nobody.
    fn medium() -> Links {
        Links::flat(3, |a, b| (a.0 + b.0 == 1).then(|| Link::dictated(Dbm(-60.0), 0.9)))
    }
    fn channel() -> Channel {
        Channel::new(17).expect("a channel of the band")
    }

    #[test]
    fn a_cut_takes_both_directions_and_restoring_brings_them_back() {
        let (medium, mut overlay) = (medium(), Overlay::default());
        overlay.cut(B, A, &medium);
        for (tx, rx) in [(A, B), (B, A)] {
            assert_eq!(overlay.links(&medium).get(tx, rx, channel()), None);
        }
        overlay.restore(A, B, &medium);
        assert_eq!(overlay.links(&medium).get(A, B, channel()), medium.get(A, B, channel()));
        assert!(overlay.links.is_none(), "a run without changes has no table of its own");
    }

    #[test]
    fn a_quality_holds_for_one_direction_and_can_create_a_link() {
        let (medium, mut overlay) = (medium(), Overlay::default());
        overlay.change(A, B, Quality { pdr: Some(0.2), loss_db: 5.0 }, &medium);
        overlay.change(A, C, Quality { pdr: Some(0.7), loss_db: 0.0 }, &medium);
        let links = overlay.links(&medium);
        assert_eq!(links.get(A, B, channel()), Some(&Link::dictated(Dbm(-65.0), 0.2)));
        assert_eq!(links.get(B, A, channel()), medium.get(B, A, channel()));
        assert_eq!(links.get(A, C, channel()), Some(&Link::dictated(NEW_LINK, 0.7)));
        assert_eq!(links.get(C, A, channel()), None);
    }
}
