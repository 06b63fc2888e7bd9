//! `[topology]`: how many nodes there are and where they stand; node 0 is the root.

use super::key::Key;
use super::rows::Rows;
use super::section::{Cursor, Lines, Section, section, variants};
use super::value::{Any, NotEmpty, Rule, Within, choice};
use lowmesh_units::NodeId;

/// The most nodes in a run: a simulated node's number has to fit the tables of the radio.
pub const NODES_MAX: u16 = 4096;

variants! {
    /// Where the nodes are.
    Topology by "kind" {
        /// Rows and columns; the root is in a corner.
        "grid" => Grid,
        /// A line of nodes; the root is at one end.
        "line" => Line,
        /// A circle around the root.
        "star" => Star,
        /// Random positions in a square; each node has enough good links.
        "random" => Random,
        /// Positions from a file.
        "positions" => Positions,
        /// No positions: the table of the radio contains the links.
        "table" => Table,
        /// A tree of good links, without positions.
        "tree" => Tree,
        /// Positions in the scenario itself.
        "places" => Places,
    }
}

choice! {
    /// EUI-64s of the nodes.
    Addresses {
        /// Random EUI-64s, drawn from the seed.
        Random = "random",
        /// Consecutive EUI-64s, as Cooja's motes have.
        Consecutive = "consecutive",
        /// Short addresses of 16 bits, drawn from the seed, which the root has given out: frames are 12 octets shorter.
        Short = "short",
    }
}

/// The default of `addresses`.
const ADDRESSES: Addresses = Addresses::Random;
/// What `addresses` means.
const ADDRESSES_MEANING: &str = "Addresses of the nodes.";
/// What `seed` means.
const SEED_MEANING: &str =
    "Seed of positions and links, the same for all runs; if unset, that of each run.";

/// The section: where nodes stand and which addresses they have.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Where the nodes are.
    pub topology: Topology,
    /// EUI-64s of the nodes.
    pub addresses: Addresses,
    /// The seed of positions and links, if it is not that of the run.
    pub seed: Option<u64>,
}

impl Section for Placed {
    fn keys(rows: &Rows) -> Vec<Key> {
        let mut keys = Topology::keys(rows);
        keys.push(Key::new("addresses", &ADDRESSES, &Any, ADDRESSES_MEANING, rows));
        keys.push(Key::new::<Option<u64>>("seed", &None, &Any, SEED_MEANING, rows));
        keys
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        Self {
            topology: Topology::read(cursor),
            addresses: cursor.value("addresses", ADDRESSES, &Any),
            seed: cursor.value("seed", None, &Any),
        }
    }
    fn write(&self, lines: &mut Lines) {
        self.topology.write(lines);
        lines.value("addresses", &self.addresses, ADDRESSES_MEANING);
        lines.value("seed", &self.seed, SEED_MEANING);
    }
}

section! {
    /// A grid.
    Grid {
        /// Number of rows.
        rows: u16 = 5, Within(1, 100);
        /// Number of nodes in a row.
        cols: u16 = 5, Within(1, 100);
        /// Distance between neighbours in a row or column, in metres (Righetti et al. 2023: 33 m).
        spacing_m: f64 = 33.0, Within(0.1, 100_000.0);
    }
}

section! {
    /// A line.
    Line {
        /// Number of nodes, including the root.
        nodes: u16 = 5, Within(1, NODES_MAX);
        /// Distance between neighbours, in metres.
        spacing_m: f64 = 33.0, Within(0.1, 100_000.0);
    }
}

section! {
    /// A star.
    Star {
        /// Number of nodes, including the root.
        nodes: u16 = 10, Within(1, NODES_MAX);
        /// Distance from the root, in metres.
        radius_m: f64 = 20.0, Within(0.1, 100_000.0);
    }
}

section! {
    /// A random square, by the rule of the 6TiSCH Simulator: each node has three good neighbours.
    Random {
        /// Number of nodes, including the root.
        nodes: u16 = 26, Within(2, NODES_MAX);
        /// Side of the square, in metres (6TiSCH Simulator: 2 km).
        side_m: f64 = 2000.0, Within(1.0, 1_000_000.0);
        /// Heights are random from 0 to this, in metres.
        height_m: f64 = 0.0, Within(0.0, 1_000_000.0);
    }
}

section! {
    /// Positions in a CSV file with the columns x_m and y_m, and z_m if nodes differ in height; root first.
    Positions {
        /// The file, relative to the scenario's folder.
        file: String = String::new(), NotEmpty;
    }
}

section! {
    /// Positions in the scenario itself.
    Places {
        /// Positions of node 0, 1, ... on the first axis, in metres.
        x_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Positions on the second axis, as many as on the first.
        y_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Heights, as many as positions; if unset, all nodes have the same height.
        z_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Number of nodes, which use the first positions; by default the number of positions.
        nodes: Option<u16> = None, Within(1, NODES_MAX);
    }
}

impl Places {
    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.nodes.map_or(self.x_m.len(), usize::from)
    }
}

section! {
    /// Nodes without places.
    Table {
        /// Number of nodes, including the root; by default the number in the radio's table.
        nodes: Option<u16> = None, Within(1, NODES_MAX);
    }
}

section! {
    /// A tree, as testbed studies publish them.
    Tree {
        /// The parent of node 1, of node 2, and so on; node 0 is the root.
        parents: Vec<u16> = Vec::new(), AtLeastOne;
        /// Distance of node 1, 2, ... from its parent, in metres; if unset, `radio.reach_m`, unless positions are set.
        distances_m: Vec<f64> = Vec::new(), Each(0.01, 100_000.0);
        /// Positions of node 0, 1, ... on the first axis, in metres; if unset, distances between unlinked nodes are estimated.
        x_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Positions on the second axis, as many as on the first.
        y_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Heights, as many as positions; if unset, all nodes have the same height.
        z_m: Vec<f64> = Vec::new(), Each(-100_000.0, 100_000.0);
        /// Delivery ratio of the link of node 1, 2, ... to its parent; if unset, `radio.pdr`.
        pdr: Vec<f64> = Vec::new(), Each(0.0, 1.0);
    }
}

impl Tree {
    /// Where the nodes stand, if that is known of all of them.
    pub fn places_m(&self) -> Vec<[f64; 3]> {
        let level = vec![0.0; self.x_m.len()];
        let heights = if self.z_m.is_empty() { &level } else { &self.z_m };
        let places = self.x_m.iter().zip(&self.y_m).zip(heights);
        places.map(|((x, y), z)| [*x, *y, *z]).collect()
    }
    /// The tree in the form of static routes.
    pub fn steps(&self) -> Result<lowmesh_stack::tree::Tree, lowmesh_stack::tree::TreeError> {
        let parents = self.parents.iter().map(|parent| Some(NodeId(*parent)));
        let parents: Vec<_> = std::iter::once(None).chain(parents).collect();
        lowmesh_stack::tree::Tree::new(&parents)
    }
}

/// A list with something in it.
struct AtLeastOne;

impl Rule<Vec<u16>> for AtLeastOne {
    fn admits(&self, list: &Vec<u16>) -> bool {
        (1..usize::from(NODES_MAX)).contains(&list.len())
    }
    fn words(&self) -> String {
        format!(", 1 to {} of them", NODES_MAX - 1)
    }
}

/// A list of numbers from the first to the second.
struct Each(f64, f64);

impl Rule<Vec<f64>> for Each {
    fn admits(&self, list: &Vec<f64>) -> bool {
        list.iter().all(|number| (self.0..=self.1).contains(number))
    }
    fn words(&self) -> String {
        format!(", each from {} to {}", self.0, self.1)
    }
}

impl Topology {
    /// How many nodes there are, if the scenario itself says so (a file of positions does not).
    pub fn nodes(&self) -> Option<u32> {
        match self {
            Self::Grid(grid) => Some(u32::from(grid.rows) * u32::from(grid.cols)),
            Self::Line(line) => Some(line.nodes.into()),
            Self::Star(star) => Some(star.nodes.into()),
            Self::Random(random) => Some(random.nodes.into()),
            Self::Positions(_) => None,
            Self::Table(table) => table.nodes.map(u32::from),
            Self::Tree(tree) => Some(tree.parents.len() as u32 + 1),
            Self::Places(places) => Some(places.count() as u32),
        }
    }
}
