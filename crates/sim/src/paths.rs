//! Nodes that can never join, because no path of links leads from their border router to them.
//!
//! This is a look at the radio before a run, not a model of a network: a node with a path can stay out all the same.

use std::collections::VecDeque;

use lowmesh_units::{Channel, NodeId};

use crate::air::Medium;
use crate::air::links::Spectrum;
use crate::params::PATH_OCTETS;

pub use crate::params::JOIN_PDR;

/// What counts of a link that is another one on each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// Its mean over the channels that the nodes use.
    Mean,
    /// Its best channel, used or not.
    Best,
}

/// The border router of a node, and the channels that the node uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The border router.
    pub root: NodeId,
    /// The channels.
    pub channels: Vec<Channel>,
}

/// The nodes that no path of usable links connects to their border router, where `places` has one entry a node. A link is
/// usable if it carries at least the share [`JOIN_PDR`] of frames in both directions. Links that change over time are
/// usable wherever there can ever be one.
pub fn unreached(medium: &dyn Medium, places: &[Place], quality: Quality) -> Vec<NodeId> {
    let count = places.len().min(medium.links().nodes());
    let ids = || (0..count).map(|index| NodeId(index as u16));
    let is_root = |id: &NodeId| places[id.index()].root == *id;
    let mut reached = vec![false; count];
    let mut border: VecDeque<NodeId> = ids().filter(is_root).collect();
    for root in &border {
        reached[root.index()] = true;
    }
    while let Some(from) = border.pop_front() {
        for &to in medium.links().neighbours(from) {
            let is_new = to.index() < count && !reached[to.index()];
            if is_new
                && places[to.index()].root == places[from.index()].root
                && is_usable(medium, (from, to), &places[from.index()].channels, quality)
            {
                reached[to.index()] = true;
                border.push_back(to);
            }
        }
    }
    ids().filter(|id| !reached[id.index()]).collect()
}

fn is_usable(
    medium: &dyn Medium,
    (one, other): (NodeId, NodeId),
    channels: &[Channel],
    quality: Quality,
) -> bool {
    let links = medium.links();
    if medium.next_change().is_some() {
        return links.neighbours(other).contains(&one);
    }
    // Where all channels are the same, one stands for all.
    let is_flat = links.spectrum() == Spectrum::Flat;
    let channels = if is_flat { &channels[..channels.len().min(1)] } else { channels };
    let chance = |tx, rx| match quality {
        Quality::Mean => {
            let all = channels.iter();
            let sum: f64 =
                all.map(|on| medium.reception_probability(tx, rx, *on, PATH_OCTETS)).sum();
            sum / channels.len().max(1) as f64
        }
        Quality::Best => {
            let all = (0..=u8::MAX).filter_map(Channel::new);
            let chances = all.map(|on| medium.reception_probability(tx, rx, on, PATH_OCTETS));
            chances.fold(0.0, f64::max)
        }
    };
    chance(one, other) >= JOIN_PDR && chance(other, one) >= JOIN_PDR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::link_table::{LinkTable, Tabled};

    fn all_channels() -> Vec<Channel> {
        (11..=26).filter_map(Channel::new).collect()
    }

    /// The nodes without a path in a mesh of four whose links are `lines`.
    fn found(lines: &str, channels: &[Channel], quality: Quality) -> Vec<u16> {
        let table = LinkTable::parse("links.csv", lines).expect("a good table");
        let place = Place { root: NodeId(0), channels: channels.to_vec() };
        let places = vec![place; table.nodes()];
        let medium = Tabled::link_table("links", &table);
        unreached(&medium, &places, quality).into_iter().map(|node| node.0).collect()
    }

    #[test]
    fn nodes_on_the_other_side_of_a_gap_are_told() {
        let both =
            |pdr: &str| format!("src,dst,pdr\n0,1,.9\n1,0,.9\n2,3,.9\n3,2,.9\n1,2,{pdr}\n2,1,.9\n");
        let of = |pdr: &str| found(&both(pdr), &all_channels(), Quality::Mean);
        assert_eq!(of(".05"), [2, 3], "one direction is no link");
        assert_eq!(of(".2"), [0_u16; 0]);
    }

    #[test]
    fn a_link_on_one_of_sixteen_channels_is_usable_only_there() {
        let lines = "src,dst,channel,pdr\n0,1,15,1\n1,0,15,1\n";
        assert_eq!(found(lines, &all_channels(), Quality::Mean), [1]);
        assert_eq!(found(lines, &all_channels(), Quality::Best), [0_u16; 0]);
        let only: Vec<Channel> = Channel::new(15).into_iter().collect();
        assert_eq!(found(lines, &only, Quality::Mean), [0_u16; 0]);
    }

    #[test]
    fn a_path_through_another_mesh_is_none() {
        let table = LinkTable::parse("links.csv", "src,dst,pdr\n0,1,1\n1,0,1\n1,2,1\n2,1,1\n")
            .expect("good");
        let place = |root| Place { root: NodeId(root), channels: all_channels() };
        let medium = Tabled::link_table("links", &table);
        let places = [place(0), place(1), place(0)];
        assert_eq!(unreached(&medium, &places, Quality::Mean), [NodeId(2)]);
    }
}
