//! `[[event]]`: what happens to the network at a time of the run, in the scenario itself or in a CSV file.

use lowmesh_sim::air::Position;
use lowmesh_sim::air::error::{BuildError, ConfigError as SimError};
use lowmesh_sim::event::{Event as Happening, Memory, Quality};
use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId};
use toml::de::DeValue;

use super::event_file::read_file;
use super::key::Key;
use super::rows::Rows;
use super::section::{Cursor, Lines, Section, section, variants};
use super::value::{Any, Mismatch, NotEmpty, Rule, Value, Within, choice};
use super::{Hopping, Scenario};

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

    /// The events in the simulator's own type; those of a file are read.
    fn happenings(&self) -> Result<Vec<(Instant, Happening)>, BuildError> {
        if let What::File(File { file }) = &self.what {
            let rows = read_file(file)?.into_iter();
            let late = |event: &Self| Instant::ZERO + self.at + event.at;
            let all = rows.flat_map(|event| {
                let at = late(&event);
                event.what.happenings().into_iter().map(move |one| (at, one))
            });
            return Ok(all.collect());
        }
        let at = Instant::ZERO + self.at;
        Ok(self.what.happenings().into_iter().map(|event| (at, event)).collect())
    }
}

impl What {
    fn happenings(&self) -> Vec<Happening> {
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

impl Scenario {
    /// All events in the simulator's own type, with those of files and of `traffic.failures`.
    pub fn happenings(&self) -> Result<Vec<(Instant, Happening)>, BuildError> {
        let mut all = Vec::new();
        for failure in &self.traffic.failures {
            let (node, memory) = (NodeId(failure.node), Memory::Lost);
            all.push((Instant::ZERO + failure.time, Happening::Off { node, memory }));
        }
        for event in &self.events {
            all.extend(event.happenings()?);
        }
        Ok(all)
    }

    /// Checks the events against a network of so many nodes, files included.
    pub(crate) fn check_events(&self, nodes: usize) -> Result<(), BuildError> {
        for (at, event) in self.happenings()? {
            event.check(nodes).map_err(|error| {
                let key = format!("event `{}` at {at} s: {}", event.name(), error.key);
                SimError::new(key, &error.value, error.allowed)
            })?;
        }
        Ok(())
    }

    /// Whether each event is possible in this network.
    pub(super) fn event_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let duration = self.head.duration;
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        for (index, event) in self.events.iter().enumerate() {
            let key = |name: &str| format!("event[{index}].{name}");
            let message = format!("{} is not before the end of the run at {duration}", event.at);
            check(event.at >= duration, &key("at"), message);
            for one in event.what.happenings() {
                if let Err(error) = one.check(nodes as usize) {
                    let message = format!("{}: {}", error.value, error.allowed);
                    check(true, &key(error.key), message);
                }
            }
            let is_placed = self.radio.medium.row().make.needs.is_places();
            let message = format!(
                "the medium \"{}\" has no positions, so that no node can move; change links with `cut`, `restore` and `link`",
                self.radio.medium.name()
            );
            let moves = matches!(event.what, What::Move(_));
            check(moves && !is_placed, &key("kind"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"x\"\nduration = \"1h\"\n[topology]\nkind = \"line\"\nnodes = 6\n";

    fn parse(more: &str) -> Scenario {
        let scenario = Scenario::parse("x.toml", &format!("{HEAD}{more}"), &[]);
        scenario.unwrap_or_else(|errors| panic!("{errors}"))
    }
    fn told(more: &str) -> String {
        let scenario = Scenario::parse("x.toml", &format!("{HEAD}{more}"), &[]);
        scenario.expect_err(more).to_string()
    }

    #[test]
    fn every_kind_is_read_and_written() {
        let mut text = String::new();
        for (kind, keys) in [
            ("off", "node = [2, 3]\nmemory = \"kept\""),
            ("on", "node = 2"),
            ("reboot", "node = 0\ndark = \"5s\""),
            ("battery", "node = 5"),
            ("cut", "node = 1\npeer = [2, 3]"),
            ("restore", "node = 1\npeer = 2"),
            ("link", "node = 1\npeer = 2\npdr = 0.5\nloss_db = 3"),
            ("move", "node = 4\nx_m = 3\ny_m = 4.5"),
            ("load", "period = \"1s\""),
            ("noise", "power_dbm = -60\nchannels = [11, 12]"),
            ("channels", "channels = \"4_4\""),
        ] {
            text.push_str(&format!("[[event]]\nat = \"10min\"\nkind = \"{kind}\"\n{keys}\n"));
        }
        let scenario = parse(&text);
        assert_eq!(Scenario::parse("x", &scenario.to_toml(), &[]), Ok(scenario.clone()));
        let happenings = scenario.happenings().expect("no files");
        // Two nodes off, two links cut, both directions of a link.
        assert_eq!(happenings.len(), 11 + 3);
        assert!(happenings.iter().all(|(at, _)| *at == Instant::from_secs(600)));
        let keys = scenario.keys();
        assert_eq!(keys["event[1].node"], "2");
    }

    #[test]
    fn failures_are_short_for_off() {
        let happenings = parse("[traffic]\nfailures = [\"3@10min\"]\n").happenings().expect("none");
        let off = Happening::Off { node: NodeId(3), memory: Memory::Lost };
        assert_eq!(happenings, [(Instant::from_secs(600), off)]);
    }

    #[test]
    fn what_cannot_happen_is_told_with_place_and_remedy() {
        for (text, expected) in [
            ("kind = \"off\"", "event[0].node is missing: it must be the number of a node"),
            ("kind = \"of\"\nnode = 1", "did you mean `off`?"),
            (
                "kind = \"off\"\nnode = 9",
                "event[0].node: 9: there is no such node; write a node from 0 to 5",
            ),
            ("kind = \"on\"\nnode = 1\npeer = 2", "event[0].peer: does not apply to kind = \"on\""),
            ("kind = \"cut\"\nnode = 1\npeer = 1", "a node has no link to itself"),
            ("kind = \"on\"\nnode = 1\nat = \"2h\"", "event[0].at: 2h is not before the end"),
        ] {
            let error = told(&format!("[[event]]\n{text}\n"));
            assert!(error.contains(expected), "{error}");
        }
        let error = told(
            "[radio]\nmedium = \"pdr-matrix\"\nmatrix = [[0.0]]\n[[event]]\nkind = \"move\"\nnode = 1\n",
        );
        assert!(error.contains("change links with `cut`"), "{error}");
    }
}
