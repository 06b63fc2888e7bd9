//! The table that every medium fills: what each directed link carries on each channel.
//!
//! For one transmitter and channel the receivers lie side by side, so a frame that goes out costs one
//! pass over a few cache lines:
//!
//! ```text
//!   cells:  | tx 0: ch 11: rx a, b, c | ch 12: rx a, b, c | ... | tx 1: ...
//! ```

use core::iter::zip;

use lowmesh_units::{Channel, Dbm, NodeId};

/// What one directed link carries on one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Mean received power.
    pub rssi: Dbm,
    /// The same in milliwatts.
    pub power_mw: f64,
    /// The chance of a frame that nothing disturbs, where the medium dictates one.
    pub pdr: Option<f64>,
}

impl Link {
    /// A link whose frames succeed by their SINR.
    pub fn radiated(rssi: Dbm) -> Self {
        Self { rssi, power_mw: rssi.milliwatts(), pdr: None }
    }
    /// A link with a given PDR, clipped to [0, 1].
    pub fn dictated(rssi: Dbm, pdr: f64) -> Self {
        Self { rssi, power_mw: rssi.milliwatts(), pdr: Some(pdr.clamp(0.0, 1.0)) }
    }
}

/// Whether the channels of a medium differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spectrum {
    /// One value for all channels.
    Flat,
    /// Each channel has its own.
    PerChannel,
}

/// All directed links of a medium.
#[derive(Clone, Debug)]
pub struct Links {
    spectrum: Spectrum,
    /// For each transmitter where its receivers start, and one end mark.
    starts: Vec<u32>,
    receivers: Vec<NodeId>,
    cells: Vec<Option<Link>>,
}

impl Links {
    /// A table in which `receivers[tx]` (ascending) may ever hear `tx`, all still silent.
    pub fn silent(receivers: &[Vec<NodeId>], spectrum: Spectrum) -> Self {
        let mut starts = Vec::with_capacity(receivers.len() + 1);
        let mut end = 0;
        starts.push(end);
        for row in receivers {
            debug_assert!(row.is_sorted(), "receivers ascend, so that a search finds them");
            end += row.len() as u32;
            starts.push(end);
        }
        let cells = vec![None; end as usize * stride(spectrum)];
        Self { spectrum, starts, receivers: receivers.concat(), cells }
    }

    /// The table for `nodes` nodes whose channels are alike; `link` answers for each ordered pair.
    pub fn flat(nodes: usize, mut link: impl FnMut(NodeId, NodeId) -> Option<Link>) -> Self {
        let mut starts = vec![0];
        let (mut receivers, mut cells) = (Vec::new(), Vec::new());
        for tx in (0..nodes).map(|i| NodeId(i as u16)) {
            for rx in (0..nodes).map(|i| NodeId(i as u16)).filter(|&rx| rx != tx) {
                if let Some(link) = link(tx, rx) {
                    receivers.push(rx);
                    cells.push(Some(link));
                }
            }
            starts.push(receivers.len() as u32);
        }
        Self { spectrum: Spectrum::Flat, starts, receivers, cells }
    }

    /// Whether its channels differ.
    pub const fn spectrum(&self) -> Spectrum {
        self.spectrum
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The nodes that may ever hear `tx`, ascending.
    pub fn neighbours(&self, tx: NodeId) -> &[NodeId] {
        let (start, end) = self.range(tx);
        &self.receivers[start..end]
    }

    /// Who hears a frame of `tx` on `channel` now, and how well; ascending by receiver.
    pub fn heard(
        &self,
        tx: NodeId,
        channel: Channel,
    ) -> impl Iterator<Item = (NodeId, &Link)> + use<'_> {
        let cells = &self.cells[self.row(tx, channel)];
        zip(self.neighbours(tx), cells).filter_map(|(rx, cell)| Some((*rx, cell.as_ref()?)))
    }

    /// The link from `tx` to `rx` on `channel`, if it carries anything now.
    pub fn get(&self, tx: NodeId, rx: NodeId, channel: Channel) -> Option<&Link> {
        let place = self.neighbours(tx).binary_search(&rx).ok()?;
        self.cells[self.row(tx, channel)][place].as_ref()
    }

    /// Replaces what `tx` to `rx` carries on `channel` (on all, where channels are alike). False if
    /// the table holds no such pair.
    pub fn set(&mut self, tx: NodeId, rx: NodeId, channel: Channel, link: Option<Link>) -> bool {
        let Ok(place) = self.neighbours(tx).binary_search(&rx) else { return false };
        let row = self.row(tx, channel);
        self.cells[row][place] = link;
        true
    }

    fn range(&self, tx: NodeId) -> (usize, usize) {
        match self.starts.get(tx.index()..tx.index() + 2) {
            Some(&[start, end]) => (start as usize, end as usize),
            _ => (0, 0),
        }
    }

    fn row(&self, tx: NodeId, channel: Channel) -> core::ops::Range<usize> {
        let (start, end) = self.range(tx);
        let degree = end - start;
        let first = match self.spectrum {
            Spectrum::Flat => start,
            Spectrum::PerChannel => start * Channel::COUNT + channel.index() * degree,
        };
        first..first + degree
    }
}

fn stride(spectrum: Spectrum) -> usize {
    match spectrum {
        Spectrum::Flat => 1,
        Spectrum::PerChannel => Channel::COUNT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(number: u8) -> Channel {
        Channel::new(number).expect("a channel of the band")
    }

    #[test]
    fn each_channel_keeps_its_own_value() {
        let rows = [vec![NodeId(1), NodeId(2)], vec![], vec![NodeId(0)]];
        let mut links = Links::silent(&rows, Spectrum::PerChannel);
        let link = Link::dictated(Dbm(-70.0), 0.5);
        assert!(links.set(NodeId(0), NodeId(2), channel(26), Some(link)));
        assert_eq!(links.get(NodeId(0), NodeId(2), channel(26)), Some(&link));
        assert_eq!(links.get(NodeId(0), NodeId(2), channel(25)), None);
        assert_eq!(links.get(NodeId(0), NodeId(1), channel(26)), None);
        assert_eq!(links.get(NodeId(2), NodeId(0), channel(26)), None);
        let heard: Vec<_> = links.heard(NodeId(0), channel(26)).collect();
        assert_eq!(heard, [(NodeId(2), &link)]);
    }

    #[test]
    fn pairs_and_nodes_outside_the_table_are_silent() {
        let mut links = Links::flat(2, |_, _| Some(Link::radiated(Dbm(-50.0))));
        assert_eq!(links.nodes(), 2);
        assert_eq!(links.neighbours(NodeId(9)), []);
        assert!(!links.set(NodeId(0), NodeId(0), channel(11), None));
        assert_eq!(links.get(NodeId(9), NodeId(0), channel(11)), None);
    }
}
