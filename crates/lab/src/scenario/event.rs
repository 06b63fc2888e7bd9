//! `[[event]]`: what happens to the network at a time of the run, in the scenario itself or in a CSV file.

use lowmesh_sim::air::Position;
use lowmesh_sim::event::{Event as Happening, Memory, Quality};
use lowmesh_units::{Channel, Dbm, Duration, NodeId};
use toml::de::DeValue;

use super::Hopping;
use super::key::Key;
use super::rows::Rows;
use super::section::{Cursor, Lines, Section, section, variants};
use super::value::{Any, Mismatch, NotEmpty, Rule, Value, Within, choice};

const MONTH: Duration = Duration::from_secs(31 * 86_400);

/// Something that happens to the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happens.
    pub at: Duration,
    /// What happens.
    pub what: What,
}

/// What `at` means.
const AT_MEANING: &str = "Time of the run at which it happens; with `kind = \"file\"`, time that is added to those of the file.";
const AT_BOUND: Within<Duration> = Within(Duration::ZERO, MONTH);

impl Section for Event {
    fn keys(rows: &Rows) -> Vec<Key> {
        let mut keys = vec![Key::new("at", &Duration::ZERO, &AT_BOUND, AT_MEANING, rows)];
        keys.extend(What::keys(rows));
        keys
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        Self { at: cursor.value("at", Duration::ZERO, &AT_BOUND), what: What::read(cursor) }
    }
    fn write(&self, lines: &mut Lines) {
        lines.value("at", &self.at, AT_MEANING);
        self.what.write(lines);
    }
}

variants! {
    /// What happens.
    What by "kind" {
        /// A node is switched off.
        "off" => Off,
        /// A node is switched on. A node whose first event this is has been off from the start.
        "on" => On,
        /// A node restarts, and its state is lost.
        "reboot" => Reboot,
        /// The battery of a node is empty: the node is switched off for good.
        "battery" => Battery,
        /// Two nodes receive nothing from each other any more.
        "cut" => Cut,
        /// The links between two nodes are those of the medium again.
        "restore" => Restore,
        /// A link has another quality.
        "link" => Link,
        /// A node has another position.
        "move" => Move,
        /// The time between two requests changes.
        "load" => Load,
        /// Noise begins, changes or ends.
        "noise" => Noise,
        /// Nodes use other channels.
        "channels" => Channels,
        /// Events from a CSV file.
        "file" => File,
    }
}

choice! {
    /// What becomes of the state of a node without power.
    State {
        /// It is lost, with all packets in the node.
        Lost = "lost",
        /// It is kept: the node goes on where it was.
        Kept = "kept",
    }
}

section! {
    /// A node is switched off.
    Off {
        /// The node, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// Whether the state of the node is lost or kept.
        memory: State = State::Lost, Any;
    }
}

section! {
    /// A node is switched on.
    On {
        /// The node, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
    }
}

section! {
    /// A node restarts.
    Reboot {
        /// The node, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// Time for which the node is off.
        dark: Duration = Duration::from_secs(1), Within(Duration::from_millis(10), MONTH);
    }
}

section! {
    /// The battery of a node is empty.
    Battery {
        /// The node, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
    }
}

section! {
    /// Two nodes receive nothing from each other any more.
    Cut {
        /// One end, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// The other end, or a list of nodes.
        peer: Nodes = Nodes::none(), AtLeastOne;
    }
}

section! {
    /// The links between two nodes are those of the medium again.
    Restore {
        /// One end, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// The other end, or a list of nodes.
        peer: Nodes = Nodes::none(), AtLeastOne;
    }
}

section! {
    /// A link has another quality.
    Link {
        /// The sender, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// The receiver, or a list of nodes.
        peer: Nodes = Nodes::none(), AtLeastOne;
        /// Delivery ratio of the link without interference; if unset, that of the medium.
        pdr: Option<f64> = None, Within(0.0, 1.0);
        /// Attenuation in addition to that of the medium, in dB.
        loss_db: f64 = 0.0, Within(-200.0, 200.0);
        /// Whether only the direction from `node` to `peer` changes.
        one_way: bool = false, Any;
    }
}

section! {
    /// A node has another position.
    Move {
        /// The node, or a list of nodes.
        node: Nodes = Nodes::none(), AtLeastOne;
        /// New position on the first axis, in metres.
        x_m: f64 = 0.0, Within(-1e6, 1e6);
        /// New position on the second axis.
        y_m: f64 = 0.0, Within(-1e6, 1e6);
        /// New height.
        z_m: f64 = 0.0, Within(-1e6, 1e6);
    }
}

section! {
    /// The time between two requests changes.
    Load {
        /// The node whose requests they are, or a list of nodes; if unset, all nodes.
        node: Nodes = Nodes::none(), Any;
        /// New time between two requests of a node.
        period: Duration = Duration::from_secs(30), Within(Duration::from_millis(10), Duration::from_secs(86_400));
    }
}

section! {
    /// Noise begins, changes or ends.
    Noise {
        /// The node that receives the noise, or a list of nodes; if unset, all nodes.
        node: Nodes = Nodes::none(), Any;
        /// Power of the noise within one channel, in addition to other noise; if unset, the noise ends.
        power_dbm: Option<f64> = None, Within(-150.0, 20.0);
        /// Channels with the noise; if unset, all channels.
        channels: Option<Hopping> = None, Any;
    }
}

section! {
    /// Nodes use other channels.
    Channels {
        /// The node, or a list of nodes; if unset, all nodes.
        node: Nodes = Nodes::none(), Any;
        /// The channels in hopping order, under TSCH; under carrier sense, the first one.
        channels: Hopping = Hopping::Sixteen, Any;
    }
}

section! {
    /// Events from a CSV file.
    File {
        /// The file, relative to the scenario's folder.
        file: String = String::new(), NotEmpty;
    }
}

/// A node or several, written as a number or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(pub Vec<u16>);

impl Nodes {
    /// No node.
    const fn none() -> Self {
        Self(Vec::new())
    }
    fn each(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().map(|node| NodeId(*node))
    }
    /// Each of them, or nothing once where all nodes are meant.
    fn each_or_all(&self) -> Vec<Option<NodeId>> {
        if self.0.is_empty() { vec![None] } else { self.each().map(Some).collect() }
    }
}

impl Value for Nodes {
    fn noun(_: &Rows) -> String {
        "the number of a node, or a list as in [4, 5]".to_owned()
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        match value {
            DeValue::Array(_) => Vec::<u16>::read(value, rows).map(Self),
            _ => u16::read(value, rows).map(|node| Self(vec![node])),
        }
    }
    fn write(&self) -> Option<String> {
        match self.0[..] {
            [node] => node.write(),
            _ => self.0.write(),
        }
    }
}

/// A node at least.
struct AtLeastOne;

impl Rule<Nodes> for AtLeastOne {
    fn admits(&self, nodes: &Nodes) -> bool {
        !nodes.0.is_empty()
    }
    fn words(&self) -> String {
        String::new()
    }
}

impl Event {
    /// The name of the file that it is read from, if it is.
    pub(super) fn file_mut(&mut self) -> Option<&mut String> {
        if let What::File(File { file }) = &mut self.what { Some(file) } else { None }
    }
}

impl What {
    /// What happens, in the simulator's own type; nothing of a file.
    pub(super) fn happenings(&self) -> Vec<Happening> {
        let of =
            |nodes: &Nodes, make: &dyn Fn(NodeId) -> Happening| nodes.each().map(make).collect();
        match self {
            Self::Off(Off { node, memory }) => {
                let memory = match memory {
                    State::Lost => Memory::Lost,
                    State::Kept => Memory::Kept,
                };
                of(node, &|node| Happening::Off { node, memory })
            }
            Self::On(On { node }) => of(node, &|node| Happening::On { node }),
            Self::Reboot(Reboot { node, dark }) => {
                of(node, &|node| Happening::Reboot { node, dark: *dark })
            }
            Self::Battery(Battery { node }) => of(node, &|node| Happening::BatteryEmpty { node }),
            Self::Cut(Cut { node, peer }) => {
                pairs(node, peer).map(|(node, peer)| Happening::Cut { node, peer }).collect()
            }
            Self::Restore(Restore { node, peer }) => {
                pairs(node, peer).map(|(node, peer)| Happening::Restore { node, peer }).collect()
            }
            Self::Link(Link { node, peer, pdr, loss_db, one_way }) => {
                let quality = Quality { pdr: *pdr, loss_db: *loss_db };
                let back = if *one_way { Nodes::none() } else { peer.clone() };
                pairs(node, peer)
                    .chain(pairs(&back, node))
                    .map(|(node, peer)| Happening::Link { node, peer, quality })
                    .collect()
            }
            Self::Move(Move { node, x_m, y_m, z_m }) => {
                let position = Position::new(*x_m, *y_m).at_height(*z_m);
                of(node, &|node| Happening::Move { node, position })
            }
            Self::Load(Load { node, period }) => {
                let load = |node| Happening::Load { node, period: *period };
                node.each_or_all().into_iter().map(load).collect()
            }
            Self::Noise(Noise { node, power_dbm, channels }) => {
                let channels: Vec<Channel> =
                    channels.as_ref().map(Hopping::channels).unwrap_or_default();
                let power = power_dbm.map(Dbm);
                let noise = |node| Happening::Noise { node, channels: channels.clone(), power };
                node.each_or_all().into_iter().map(noise).collect()
            }
            Self::Channels(Channels { node, channels }) => {
                let change = |node| Happening::Channels { node, channels: channels.channels() };
                node.each_or_all().into_iter().map(change).collect()
            }
            Self::File(_) => Vec::new(),
        }
    }
}

fn pairs(from: &Nodes, to: &Nodes) -> impl Iterator<Item = (NodeId, NodeId)> {
    let all = from.each().flat_map(|node| to.each().map(move |peer| (node, peer)));
    all.collect::<Vec<_>>().into_iter()
}
