//! Where the nodes of a run stand. Node 0 is the root: a corner of a grid, the end of a line, the hub of a
//! star. Media that are measured (traces, tables) need the number of nodes only.

use lowmesh_units::{Dbm, NodeId, Purpose, Rng, Seed};

use crate::air::error::{BuildError, ConfigError, TextError};
use crate::air::params::{SQUARE_NEIGHBOURS, SQUARE_PDR, SQUARE_SIDE_M, SQUARE_TRIES};
use crate::air::pister_hack::{link_rssi, pdr_of_rssi};
pub use crate::air::site::{Topology, TreeSpec};
use crate::air::{Fields, Position, data_lines};

/// Maximum number of nodes of a run: each has a [`NodeId`], and the last number stays free.
pub const NODES_MAX: usize = u16::MAX as usize;

/// A topology as a scenario describes it.
#[derive(Clone, Debug, PartialEq)]
pub enum TopologySpec {
    /// `rows` by `cols` nodes, row by row.
    Grid {
        /// Rows of the grid.
        rows: usize,
        /// Nodes a row.
        cols: usize,
        /// Metres between neighbours.
        spacing_m: f64,
    },
    /// Nodes one behind the other.
    Line {
        /// Nodes of the topology.
        nodes: usize,
        /// Metres between neighbours.
        spacing_m: f64,
    },
    /// The root in the middle, the others evenly around it.
    Star {
        /// How many, the root included.
        nodes: usize,
        /// Metres from the root.
        radius_m: f64,
    },
    /// Given places.
    Explicit(Vec<Position>),
    /// Places in a file of lines `x_m,y_m`.
    File(String),
    /// Anywhere in a square, for the Pister-hack (6TiSCH simulator): each node is thrown again until it has
    /// `neighbours` good ones among those before it (all of them, while they are fewer).
    RandomSquare {
        /// Nodes of the topology.
        nodes: usize,
        /// Side of the square, m.
        side_m: f64,
        /// Heights are from 0 to this, m.
        height_m: f64,
        /// Good neighbours that each node must have.
        neighbours: usize,
        /// The PDR that makes a neighbour good, 0 to 1.
        pdr: f64,
        /// Transmit power of all nodes.
        tx_power: Dbm,
    },
    /// Nodes without places, for measured media.
    Unplaced {
        /// Nodes of the topology.
        nodes: usize,
    },
    /// A tree, for media that take their links from it.
    Tree(TreeSpec),
}

impl TopologySpec {
    /// The random square with the 6TiSCH simulator's values.
    pub const fn random_square(nodes: usize) -> Self {
        Self::RandomSquare {
            nodes,
            side_m: SQUARE_SIDE_M,
            height_m: 0.0,
            neighbours: SQUARE_NEIGHBOURS,
            pdr: SQUARE_PDR,
            tx_power: Dbm(0.0),
        }
    }

    /// Places the nodes.
    pub fn place(&self, seed: Seed) -> Result<Topology, BuildError> {
        let positions = match *self {
            Self::Grid { rows, cols, spacing_m } => {
                count("topology.rows", rows)?;
                count("topology.cols", cols)?;
                count("topology.rows * topology.cols", rows.saturating_mul(cols))?;
                metres("topology.spacing_m", spacing_m)?;
                let at = |i: usize| ((i % cols) as f64 * spacing_m, (i / cols) as f64 * spacing_m);
                (0..rows * cols).map(at).map(|(x, y)| Position::new(x, y)).collect()
            }
            Self::Line { nodes, spacing_m } => {
                count("topology.nodes", nodes)?;
                metres("topology.spacing_m", spacing_m)?;
                (0..nodes).map(|i| Position::new(i as f64 * spacing_m, 0.0)).collect()
            }
            Self::Star { nodes, radius_m } => {
                count("topology.nodes", nodes)?;
                metres("topology.radius_m", radius_m)?;
                star(nodes, radius_m)
            }
            Self::Explicit(ref positions) => {
                count("topology.positions", positions.len())?;
                for (index, place) in positions.iter().enumerate() {
                    coordinate(&format!("topology.positions[{index}].x_m"), place.x_m)?;
                    coordinate(&format!("topology.positions[{index}].y_m"), place.y_m)?;
                    coordinate(&format!("topology.positions[{index}].z_m"), place.z_m)?;
                }
                positions.clone()
            }
            Self::File(ref file) => {
                let text = std::fs::read_to_string(file).map_err(|error| BuildError::File {
                    file: file.clone(),
                    reason: error.to_string(),
                })?;
                let positions = parse_positions(file, &text)?;
                if positions.is_empty() {
                    let allowed = "the file has no positions; write a line `x_m,y_m` for each node, the root first";
                    return Err(ConfigError::new("topology.file", file, allowed).into());
                }
                count("topology.file", positions.len())?;
                positions
            }
            Self::RandomSquare { nodes, side_m, height_m, neighbours, pdr, tx_power } => {
                count("topology.nodes", nodes)?;
                metres("topology.side_m", side_m)?;
                metres("topology.height_m", height_m)?;
                ConfigError::within("topology.pdr", pdr, 0.0, 1.0)?;
                let good = |a: Position, b: Position| {
                    pdr_of_rssi(link_rssi(seed, a, b, tx_power).0) >= pdr
                };
                random_square(nodes, (side_m, height_m), neighbours, seed, good)?
            }
            Self::Unplaced { nodes } => {
                count("topology.nodes", nodes)?;
                return Ok(Topology::unplaced(nodes));
            }
            Self::Tree(ref tree) => {
                let nodes = tree.parents.len() + 1;
                count("topology.parents", nodes)?;
                return Ok(Topology::tree_of(tree.clone()));
            }
        };
        Ok(Topology::placed(positions))
    }
}

/// Reads lines of `x_m,y_m` or `x_m,y_m,z_m`, the root first; `#` starts a comment. A header line with these names is
/// allowed. All lines have as many columns as the first.
pub fn parse_positions(file: &str, text: &str) -> Result<Vec<Position>, TextError> {
    let finite = |value: &f64| value.is_finite();
    let first = data_lines(text).next().map_or("", |(_, line)| line.trim());
    let has_heights = first.split(',').count() > 2;
    let is_header = ["x_m,y_m", "x_m,y_m,z_m"].contains(&first);
    data_lines(text)
        .skip(usize::from(is_header))
        .map(|(line, text)| {
            let mut fields = Fields::new(file, line, text);
            let x_m = fields.value("x_m", "a number of metres", finite)?;
            let y_m = fields.value("y_m", "a number of metres", finite)?;
            let z_m =
                if has_heights { fields.value("z_m", "a number of metres", finite)? } else { 0.0 };
            fields.end()?;
            Ok(Position::new(x_m, y_m).at_height(z_m))
        })
        .collect()
}

fn star(nodes: usize, radius_m: f64) -> Vec<Position> {
    let step = core::f64::consts::TAU / (nodes.max(2) - 1) as f64;
    let around = (1..nodes).map(|i| {
        let angle = (i - 1) as f64 * step;
        Position::new(radius_m * libm::cos(angle), radius_m * libm::sin(angle))
    });
    core::iter::once(Position::default()).chain(around).collect()
}

fn random_square(
    nodes: usize,
    (side_m, height_m): (f64, f64),
    neighbours: usize,
    seed: Seed,
    good: impl Fn(Position, Position) -> bool,
) -> Result<Vec<Position>, ConfigError> {
    let mut positions = Vec::with_capacity(nodes);
    for index in 0..nodes {
        // A stream of its own a node: one more throw for node 3 moves only what depends on node 3.
        let mut rng = Rng::stream(seed, NodeId(index as u16), Purpose::Topology);
        let needed = neighbours.min(index);
        let mut throw = |_| {
            let place = Position::new(rng.between(0.0, side_m), rng.between(0.0, side_m));
            // Without heights nothing is drawn for them: networks on the ground stay what they were.
            if height_m > 0.0 { place.at_height(rng.between(0.0, height_m)) } else { place }
        };
        let place = (0..SQUARE_TRIES)
            .map(&mut throw)
            .find(|place| positions.iter().filter(|near| good(*place, **near)).count() >= needed);
        positions.push(place.ok_or_else(|| {
            let allowed = format!(
                "node {index} found no place with {needed} good neighbours in {SQUARE_TRIES} tries; \
                 write a smaller side_m, or another seed: topology.seed holds for all runs"
            );
            ConfigError::new("topology.side_m", &side_m, allowed)
        })?);
    }
    Ok(positions)
}

fn count(key: &str, value: usize) -> Result<(), ConfigError> {
    if (1..=NODES_MAX).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(key, &value, format!("1 to {NODES_MAX} is allowed")))
}

/// Longest distance of a topology, m; a radio horizon is nearer.
const METRES_MAX: f64 = 1e6;

fn metres(key: &str, value: f64) -> Result<(), ConfigError> {
    ConfigError::within(key, value, 0.0, METRES_MAX)
}

fn coordinate(key: &str, value: f64) -> Result<(), ConfigError> {
    ConfigError::within(key, value, -METRES_MAX, METRES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(spec: &TopologySpec) -> Vec<Position> {
        let topology = spec.place(Seed(11)).expect("a good topology");
        topology.positions().expect("places").to_vec()
    }

    #[test]
    fn a_grid_goes_row_by_row_from_the_root_in_its_corner() {
        let places = positions(&TopologySpec::Grid { rows: 2, cols: 3, spacing_m: 33.0 });
        assert_eq!(places[0], Position::new(0.0, 0.0));
        assert_eq!(places[2], Position::new(66.0, 0.0));
        assert_eq!(places[3], Position::new(0.0, 33.0));
        assert!((places[0].distance_m(places[4]) - 46.669).abs() < 0.001);
    }

    #[test]
    fn a_star_has_all_others_at_one_distance_of_the_root() {
        let places = positions(&TopologySpec::Star { nodes: 6, radius_m: 20.0 });
        assert_eq!(places.len(), 6);
        assert!(places[1..].iter().all(|p| (p.distance_m(places[0]) - 20.0).abs() < 1e-9));
        assert!((places[1].distance_m(places[2]) - places[4].distance_m(places[5])).abs() < 1e-9);
        assert_eq!(positions(&TopologySpec::Star { nodes: 1, radius_m: 20.0 }).len(), 1);
    }

    #[test]
    fn a_random_square_gives_each_node_its_good_neighbours_and_repeats_by_seed() {
        let spec = TopologySpec::random_square(20);
        let places = positions(&spec);
        for (index, place) in places.iter().enumerate() {
            let good = places[..index]
                .iter()
                .filter(|near| pdr_of_rssi(link_rssi(Seed(11), *place, **near, Dbm(0.0)).0) >= 0.5)
                .count();
            assert!(good >= index.min(3), "node {index} has {good}");
            assert!((0.0..=2000.0).contains(&place.x_m) && (0.0..=2000.0).contains(&place.y_m));
        }
        assert_eq!(places, positions(&spec));
        let other = spec.place(Seed(12)).expect("a good topology");
        assert_ne!(other.positions(), Some(&places[..]));
    }

    #[test]
    fn a_file_of_places_is_read_with_or_without_names() {
        let places = parse_positions("p.csv", "# root first\nx_m,y_m\n0,0\n\n3.5,-4\n");
        assert_eq!(places, Ok(vec![Position::default(), Position::new(3.5, -4.0)]));
        assert_eq!(parse_positions("p.csv", "1,2").map(|p| p.len()), Ok(1));
        let marked = parse_positions("p.csv", "\u{feff}x_m,y_m\r\n0,0\r\n");
        assert_eq!(marked, Ok(vec![Position::default()]));
        let high = parse_positions("p.csv", "x_m,y_m,z_m\n0,0,0\n3,4,12\n").expect("good");
        assert!((high[0].distance_m(high[1]) - 13.0).abs() < 1e-12);
    }

    #[test]
    fn a_wrong_place_says_line_and_column() {
        for (text, place) in [
            ("0,0\n1,north", "p.csv:2:3: `north` is not a valid y_m"),
            ("1", "p.csv:1:2: the line ends before `y_m`"),
            ("1,2,3,4", "p.csv:1:7: `4` follows"),
            ("1,2,up", "p.csv:1:5: `up` is not a valid z_m"),
            ("x_m,y_m\n1,2,3", "p.csv:2:5: `3` follows"),
            ("1,2\n1,2,3", "p.csv:2:5: `3` follows"),
            ("1,2,3\n1,2", "p.csv:2:4: the line ends before `z_m`"),
            ("inf,2", "p.csv:1:1: `inf`"),
        ] {
            let error = parse_positions("p.csv", text).expect_err(text);
            assert!(error.to_string().contains(place), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_placed_is_refused_by_name() {
        let cases = [
            (TopologySpec::Line { nodes: 0, spacing_m: 1.0 }, "topology.nodes = 0"),
            (TopologySpec::Line { nodes: 2, spacing_m: f64::NAN }, "topology.spacing_m = NaN"),
            (TopologySpec::Grid { rows: 300, cols: 300, spacing_m: 1.0 }, "= 90000"),
            (TopologySpec::Grid { rows: 3, cols: 0, spacing_m: 1.0 }, "topology.cols = 0"),
            (TopologySpec::Explicit(vec![]), "topology.positions = 0"),
            (TopologySpec::File("no such file.csv".into()), "no such file.csv: "),
        ];
        for (spec, expected) in cases {
            let error = spec.place(Seed(1)).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
