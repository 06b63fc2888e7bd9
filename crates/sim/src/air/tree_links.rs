//! A medium for networks of which only the tree of good links is known, as testbed studies publish them: who is
//! whose parent, how far away, and how many frames pass.
//!
//! Every pair needs a power all the same, since nodes that are no neighbours in the tree disturb and sense each
//! other. Their distance is that of their places, if these are known. Else, where the links of the path between them have
//! independent directions, the mean of its square is the sum of the squares of the steps, and that is what is taken:
//!
//! ```text
//!   d(a, b)^2 = sum over the links on the path from a to b of d(link)^2
//!   P(d)      = P(nothing received) + margin - 10 n log10(d / reach) + shadowing(a, b)
//! ```
//! The margin tells how far beyond its own links a node is heard. A pair that is no link has the delivery ratio
//! that goes with its power (measured for the Pister-hack). Alone on the air the ratio decides; of frames that
//! overlap the SINR.

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::rng::draw_normal;
use lowmesh_units::{Dbm, NodeId, Purpose, Seed};

use super::error::ConfigError;
use super::links::{Link, Links};
use super::params::{
    PATH_LOSS_EXPONENT, PDR_TABLE_FIRST_DBM, PISTER_HACK_NOISE_DBM, SHADOWING_SIGMA_DB,
};
use super::pister_hack::pdr_of_rssi;
use super::row::{self, MakeMedium, Needs, SECTION};
use super::site::TreeSpec;
use super::{Medium, Overlap};

/// The row of [`TreeLinks`].
pub static ROW: Row<dyn Medium> = Row {
    name: "links",
    summary: "The tree of `[topology]`: good links with their lengths, and what other nodes receive from them",
    section: SECTION,
    parameters: &[
        Parameter::number(
            "pdr",
            0.975,
            0.0,
            1.0,
            "Delivery ratio of a link without interference, where the tree does not give it",
        )
        .source("Lenders et al. 2021: at least 0.975"),
        Parameter::number(
            "reach_m",
            6.5,
            0.01,
            100_000.0,
            "Length of a link whose power is `margin_db` above the level at which nothing is received; other distances are relative to it",
        )
        .unit("m")
        .source("Lenders et al. 2021: links of up to 6.5 m"),
        Parameter::number(
            "margin_db",
            13.0,
            0.0,
            100.0,
            "Power of such a link above the level at which nothing is received",
        )
        .unit("dB")
        .source("matches a delivery ratio of 0.975"),
        row::exponent(PATH_LOSS_EXPONENT, "Path loss exponent for pairs of nodes without a link"),
        row::shadowing(
            SHADOWING_SIGMA_DB,
            "Standard deviation of the shadowing of pairs without a link",
        ),
    ],
    make: MakeMedium {
        needs: Needs::Tree,
        build: |choice, topology, seed| {
            let tree = topology.tree().ok_or_else(|| {
                ConfigError::new("topology", &"no tree", "this medium needs the tree of a deployment")
            })?;
            Ok(Box::new(TreeLinks::new(&params(choice, tree), seed)?))
        },
    },
};

fn params(choice: &Choice<dyn Medium>, tree: &TreeSpec) -> TreeLinksParams {
    let (reach_m, pdr) = (choice.number("reach_m"), choice.number("pdr"));
    let link = |(index, parent): (usize, &NodeId)| TreeLink {
        parent: *parent,
        distance_m: tree.distances_m.get(index).copied().unwrap_or(reach_m),
        pdr: tree.pdr.get(index).copied().unwrap_or(pdr),
    };
    TreeLinksParams {
        links: tree.parents.iter().enumerate().map(link).collect(),
        places_m: tree.places_m.clone(),
        reach_m,
        margin_db: choice.number("margin_db"),
        exponent: choice.number("exponent"),
        sigma_db: choice.number("shadowing_db"),
    }
}

/// The link from a node to its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeLink {
    /// The parent.
    pub parent: NodeId,
    /// How far away, m; above 0.
    pub distance_m: f64,
    /// Share of frames that pass when nothing disturbs, both ways.
    pub pdr: f64,
}

/// The whole tree and what surrounds it.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeLinksParams {
    /// The links of nodes 1, 2, ...; node 0 is the root.
    pub links: Vec<TreeLink>,
    /// Where node 0, 1, ... stands, m; empty when that is not known.
    pub places_m: Vec<[f64; 3]>,
    /// The distance at which the power is `margin_db` above that at which nothing is received, m.
    pub reach_m: f64,
    /// That margin, dB.
    pub margin_db: f64,
    /// Path loss exponent.
    pub exponent: f64,
    /// Standard deviation of the shadowing of pairs that are no link, dB.
    pub sigma_db: f64,
}

/// Nodes at one place are taken to be so far apart, m: the least distance that a scenario can give.
const LEAST_M: f64 = 0.01;

/// The medium named `links`.
#[derive(Clone, Debug)]
pub struct TreeLinks {
    links: Links,
}

impl TreeLinks {
    /// The medium of `params`, whose parents lead to the root.
    pub fn new(params: &TreeLinksParams, seed: Seed) -> Result<Self, ConfigError> {
        check(params)?;
        let near = |a: NodeId, b: NodeId| {
            let to_parent = |node: NodeId| node.index().checked_sub(1).map(|i| params.links[i]);
            let link = |node, parent| to_parent(node).filter(|link| link.parent == parent);
            link(a, b).or_else(|| link(b, a))
        };
        let links = Links::flat(params.links.len() + 1, |tx, rx| {
            let level = power(params, distance_m(params, tx, rx));
            if let Some(link) = near(tx, rx) {
                return Some(Link::dictated(Dbm(level), link.pdr));
            }
            let rssi = level + params.sigma_db * shadowing(seed, tx, rx);
            Some(Link::dictated(Dbm(rssi), pdr_of_rssi(rssi)))
        });
        Ok(Self { links })
    }
}

impl Medium for TreeLinks {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::DictatedSinr
    }
    fn noise(&self) -> Dbm {
        Dbm(PISTER_HACK_NOISE_DBM)
    }
}

/// Power at a distance, dBm.
fn power(params: &TreeLinksParams, distance_m: f64) -> f64 {
    let loss_db = 10.0 * params.exponent * libm::log10(distance_m / params.reach_m);
    PDR_TABLE_FIRST_DBM + params.margin_db - loss_db
}

/// A normal number for a pair, the same both ways.
fn shadowing(seed: Seed, a: NodeId, b: NodeId) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    draw_normal(seed, Purpose::Shadowing, low.0.into(), high.0.into())
}

/// Between places, or the root of the sum of squares on the path from `a` to `b` over the tree.
fn distance_m(params: &TreeLinksParams, a: NodeId, b: NodeId) -> f64 {
    if let (Some(a), Some(b)) = (params.places_m.get(a.index()), params.places_m.get(b.index())) {
        let square = |axis: usize| (a[axis] - b[axis]) * (a[axis] - b[axis]);
        return libm::sqrt(square(0) + square(1) + square(2)).max(LEAST_M);
    }
    let links = &params.links;
    let (mut a, mut b, mut square) = (a, b, 0.0);
    let (mut depth_a, mut depth_b) = (depth(links, a), depth(links, b));
    while a != b {
        // The deeper of the two goes up.
        let (node, depth) =
            if depth_a >= depth_b { (&mut a, &mut depth_a) } else { (&mut b, &mut depth_b) };
        let link = links[node.index() - 1];
        square += link.distance_m * link.distance_m;
        *node = link.parent;
        *depth -= 1;
    }
    libm::sqrt(square)
}

fn depth(links: &[TreeLink], node: NodeId) -> usize {
    let parent = |node: &NodeId| Some(links[node.index().checked_sub(1)?].parent);
    core::iter::successors(Some(node), parent).skip(1).count()
}

fn check(params: &TreeLinksParams) -> Result<(), ConfigError> {
    let nodes = params.links.len() + 1;
    let places = params.places_m.len();
    if places != 0 && places != nodes {
        let allowed = "a position of every node, or none";
        return Err(ConfigError::new("topology.x_m".to_owned(), &places, allowed));
    }
    for (index, link) in params.links.iter().enumerate() {
        let key = |name: &str| format!("topology.{name}[{index}]");
        let mut at = NodeId(index as u16 + 1);
        let mut steps = 0;
        while let Some(place) = at.index().checked_sub(1) {
            steps += 1;
            at = match params.links.get(place) {
                Some(link) if steps <= nodes => link.parent,
                _ => {
                    let allowed = "the parents of a node must lead to node 0";
                    return Err(ConfigError::new(key("parents"), &link.parent, allowed));
                }
            };
        }
        ConfigError::within(&key("distances_m"), link.distance_m, 0.01, 1e6)?;
        ConfigError::within(&key("pdr"), link.pdr, 0.0, 1.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::Channel;

    fn tree(links: &[(u16, f64)]) -> TreeLinksParams {
        let link = |(parent, distance_m): &(u16, f64)| TreeLink {
            parent: NodeId(*parent),
            distance_m: *distance_m,
            pdr: 0.98,
        };
        let links = links.iter().map(link).collect();
        let (reach_m, margin_db, exponent, sigma_db) = (6.5, 13.0, 3.0, 0.0);
        TreeLinksParams { links, places_m: Vec::new(), reach_m, margin_db, exponent, sigma_db }
    }

    #[test]
    fn a_link_has_its_own_ratio_and_a_pair_that_is_none_that_of_its_power() {
        // 0 - 1 - 2, and 3 below the root on the other side.
        let params = tree(&[(0, 3.0), (1, 4.0), (0, 12.0)]);
        let medium = TreeLinks::new(&params, Seed(1)).expect("a good tree");
        let channel = Channel::new(16).expect("in the band");
        let link = |a, b| *medium.links().get(NodeId(a), NodeId(b), channel).expect("all have one");
        assert_eq!(link(0, 1).pdr, Some(0.98));
        assert_eq!(link(2, 1), link(1, 2));
        // 3 and 4 m give 5 m; with 12 m more, 13 m: twice 6.5 m is 9 dB less.
        assert!((distance_m(&params, NodeId(2), NodeId(0)) - 5.0).abs() < 1e-9);
        let far = link(2, 3);
        assert!((far.rssi.0 - (-97.0 + 13.0 - 9.031)).abs() < 1e-3, "{far:?}");
        assert_eq!(far.pdr, Some(pdr_of_rssi(far.rssi.0)));
    }

    #[test]
    fn places_that_are_known_count_instead_of_the_steps_of_the_way() {
        let mut params = tree(&[(0, 3.0), (1, 3.0)]);
        params.places_m = vec![[0.0; 3], [3.0, 0.0, 0.0], [3.0, 0.0, 3.5]];
        TreeLinks::new(&params, Seed(1)).expect("a place of every node");
        let distance = distance_m(&params, NodeId(2), NodeId(0));
        assert!((distance - libm::sqrt(9.0 + 12.25)).abs() < 1e-9, "{distance}");
        params.places_m.pop();
        let error = TreeLinks::new(&params, Seed(1)).expect_err("one is missing").to_string();
        assert!(error.contains("topology.x_m = 2"), "{error}");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for links in [&[(2, 1.0), (1, 1.0)][..], &[(7, 1.0)]] {
            let error = TreeLinks::new(&tree(links), Seed(1)).expect_err("no tree").to_string();
            assert!(error.contains("topology.parents[0]"), "{error}");
        }
        let error =
            TreeLinks::new(&tree(&[(0, f64::NAN)]), Seed(1)).expect_err("no length").to_string();
        assert!(error.contains("topology.distances_m[0] = NaN"), "{error}");
    }
}
