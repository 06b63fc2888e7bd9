//! Values of a scenario that are each allowed, but not together.

use lowmesh_multicast::make as make_engine;
use lowmesh_sim::air::Needs;
use lowmesh_sixtop::functions::{Children, make};
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};

use super::error::{ConfigError, Fault, Origin};
use super::{
    Application, Coap, Collector, Head, Routes, RplMode, Scenario, Topology, Traffic, Transport,
    Tsch, topology,
};

impl Scenario {
    /// Values that are each allowed, but not together.
    pub(crate) fn conflicts(&self, source: &str) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |wrong: bool, key: &str, message: String| {
            if wrong {
                let (source, key) = (source.to_owned(), key.to_owned());
                let fault = Fault::Conflict(message);
                errors.push(ConfigError { source, origin: Origin::Whole, key, fault });
            }
        };
        let Head { duration, warmup, .. } = self.head;
        check(
            warmup >= duration,
            "warmup",
            format!("{warmup} leaves nothing to measure of a duration of {duration}"),
        );
        let start = self.traffic.start;
        check(
            start >= duration,
            "traffic.start",
            format!("{start} is not before the end of the run at {duration}"),
        );
        let (be_min, be_max) = self.mac.exponents();
        check(be_min > be_max, "mac.be_min", format!("{be_min} is above mac.be_max = {be_max}"));
        if let Some(Tsch { keepalive, desync, .. }) = self.mac.tsch() {
            let message = format!("{keepalive} is not below mac.desync = {desync}");
            check(keepalive >= desync, "mac.keepalive", message);
        }
        self.schedule_conflicts(&mut check);
        self.medium_conflicts(&mut check);
        self.tree_conflicts(&mut check);
        self.traffic_conflicts(&mut check);
        self.leaf_conflicts(&mut check);
        self.group_conflicts(&mut check);
        self.entity_conflicts(&mut check);
        self.border_router_conflicts(&mut check);
        self.line_conflicts(&mut check);
        self.event_conflicts(&mut check);
        errors
    }

    /// Whether the scheduling function can learn what it must know.
    fn schedule_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let name = self.schedule.name();
        let needs_children = make(&self.schedule, Children::Known).needs_children();
        let always = make(&self.schedule.row().into(), Children::Known).needs_children();
        let values = if always { "" } else { ", as it is set," };
        let message = format!(
            "{name}{values} needs to know a node's children, and with rpl.mode = \"non-storing\" a node does not"
        );
        let is_told = self.rpl.mode != RplMode::NonStoring;
        check(needs_children && !is_told, "schedule.function", message);
    }

    /// Whether the medium and the topology know of the same nodes.
    fn medium_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let medium = self.radio.medium.name();
        let placed = !matches!(self.topology, Topology::Table(_) | Topology::Tree(_));
        // Known places of a table's nodes are for figures.
        let drawn = matches!(self.topology, Topology::Positions(_));
        let needs = self.radio.medium.row().make.needs;
        let own_table = !matches!(needs, Needs::Places);
        check(
            own_table && placed && !(drawn && matches!(needs, Needs::Table(_))),
            "topology.kind",
            format!(
                "medium \"{medium}\" has its own links; write kind = \"table\", or \"positions\" to give positions too"
            ),
        );
        check(
            !own_table && !placed,
            "topology.kind",
            format!(
                "medium \"{medium}\" needs the positions of nodes; write another kind than \"table\" or \"tree\""
            ),
        );
        let expected: Option<u32> = match needs {
            Needs::Table(nodes) => {
                nodes(&self.radio.medium).and_then(|nodes| nodes.try_into().ok())
            }
            Needs::Places | Needs::Tree => None,
        };
        if let (Some(nodes), Some(expected)) = (self.topology.nodes(), expected) {
            check(
                !placed && nodes != expected,
                "topology.nodes",
                format!("{nodes} is not the {expected} nodes of medium \"{medium}\""),
            );
        }
        if let Topology::Places(places) = &self.topology {
            let (given, others) = (places.x_m.len(), places.y_m.len());
            let message = format!("{given} numbers; write at least one, and as many for y_m");
            check(given == 0 || given != others, "topology.x_m", message);
            let heights = places.z_m.len();
            let message = format!("{heights} heights for {given} positions");
            check(heights > 0 && heights != given, "topology.z_m", message);
            let message = format!("{} nodes have only {given} positions", places.count());
            check(places.count() > given, "topology.nodes", message);
        }
        for (index, wifi) in self.radio.wifi.iter().enumerate() {
            let key = format!("radio.wifi[{index}].x_m");
            let given = wifi.x_m.is_some() || wifi.y_m.is_some();
            let message = "a position is x_m and y_m; give both or none".to_owned();
            check(given && wifi.place_m().is_none(), &key, message);
            let message = "a use has both `on` and `off`; give both or none".to_owned();
            let key_on = format!("radio.wifi[{index}].on");
            check(wifi.on.is_some() != wifi.off.is_some(), &key_on, message);
            let message = "a position is allowed only if the nodes have positions".to_owned();
            check(given && !placed, &key, message);
        }
        let nodes = self.topology.nodes().unwrap_or_default();
        check(
            nodes > topology::NODES_MAX.into(),
            "topology.rows",
            format!("{nodes} nodes are more than the {} that a run can have", topology::NODES_MAX),
        );
    }
}

impl Scenario {
    /// Whether what needs a tree has one.
    fn tree_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let Topology::Tree(tree) = &self.topology else {
            let medium = &self.radio.medium;
            let message =
                format!("medium \"{}\" needs a tree; write kind = \"tree\"", medium.name());
            let needs_tree = matches!(medium.row().make.needs, Needs::Tree);
            check(needs_tree, "topology.kind", message);
            let message = "\"static\" takes the routes of a tree; write topology.kind = \"tree\"";
            check(self.head.routes == Routes::Static, "routes", message.to_owned());
            return;
        };
        for (key, list) in [("distances_m", &tree.distances_m), ("pdr", &tree.pdr)] {
            let (given, wanted) = (list.len(), tree.parents.len());
            let message = format!("{given} numbers for the {wanted} nodes of topology.parents");
            check(![0, wanted].contains(&given), &format!("topology.{key}"), message);
        }
        let nodes = tree.parents.len() + 1;
        let x_given = tree.x_m.len();
        for (key, given, needed) in [
            ("x_m", x_given, false),
            ("y_m", tree.y_m.len(), x_given > 0),
            ("z_m", tree.z_m.len(), false),
        ] {
            let is_wrong = given != nodes && (given > 0 || needed);
            let message = format!("{given} numbers for the {nodes} nodes of the tree");
            check(is_wrong, &format!("topology.{key}"), message);
        }
        if let Err(error) = tree.steps() {
            check(true, "topology.parents", error.to_string());
        }
    }

    /// Whether the nodes that run no RPL can be such leaves.
    fn leaf_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let leaves = &self.rpl.leaves;
        if leaves.is_empty() {
            return;
        }
        let mut is_wrong = |wrong, message: &str| check(wrong, "rpl.leaves", message.to_owned());
        let message = "a leaf registers with a router of RPL; write routes = \"rpl\"";
        is_wrong(self.head.routes == Routes::Static, message);
        let engine = self.multicast.name();
        let message = format!(
            "a leaf forwards no packets to groups, as \"{engine}\" needs; write multicast.engine = \"none\""
        );
        is_wrong(engine != "none", &message);
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        let heads = self.meshes();
        for leaf in leaves {
            let is_head = *leaf == 0 || heads.iter().any(|mesh| mesh.first == *leaf);
            let is_missing = u32::from(*leaf) >= nodes;
            let message = format!(
                "node {leaf} is a border router, or not in the topology: write another node from 1 to {}",
                nodes - 1
            );
            is_wrong(is_head || is_missing, &message);
        }
    }

    /// Whether packets to groups can be forwarded, and whether their sender and members are nodes.
    fn group_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let engine = &self.multicast;
        let rng = Rng::stream(Seed(0), NodeId(0), Purpose::Multicast);
        let needs = make_engine(engine, rng).needs_registrations();
        let is_told =
            self.head.routes == Routes::Static || self.rpl.mode == RplMode::StoringMulticast;
        let message = format!(
            "{} forwards to nodes that registered for a group; write rpl.mode = \"storing-multicast\"",
            engine.name()
        );
        check(needs && !is_told, "multicast.engine", message);
        let Traffic { application, sender, ref members, .. } = self.traffic;
        if application != Application::Group {
            return;
        }
        let message = "TCP cannot reach a group; write coap.transport = \"udp\"".to_owned();
        check(self.coap.transport == Transport::Tcp, "traffic.application", message);
        let message = "OSCORE protects exchanges of two nodes, but traffic.application = \"group\"";
        check(self.coap.oscore, "coap.oscore", message.to_owned());
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        let missing = |node: u16| {
            format!("node {node} is not in the topology: write a node from 0 to {}", nodes - 1)
        };
        check(u32::from(sender) >= nodes, "traffic.sender", missing(sender));
        for member in members {
            check(u32::from(*member) >= nodes, "traffic.members", missing(*member));
            let message =
                format!("node {member} is traffic.sender, which sends and does not receive");
            check(*member == sender, "traffic.members", message);
        }
    }

    /// Whether the traffic can be what it is to be.
    fn traffic_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let Traffic { application, payload_bytes, hops_min, .. } = self.traffic;
        let Coap { block, oscore, .. } = self.coap;
        let message = format!("{block} is not a power of two");
        check(!block.is_power_of_two(), "coap.block", message);
        let message = "OSCORE protects only CoAP, but traffic.application = \"udp\"".to_owned();
        check(oscore && application == Application::Udp, "coap.oscore", message);
        let message = "a node has an OSCORE context only with its own border router, but traffic.collector = \"first\"";
        let other = self.traffic.collector == Collector::First && self.meshes().len() > 1;
        check(oscore && other, "coap.oscore", message.to_owned());
        let is_next = self.traffic.collector == Collector::Next;
        let message = "a node has an OSCORE context only with its own border router, but traffic.collector = \"next\"";
        check(oscore && is_next, "coap.oscore", message.to_owned());
        let sends = matches!(application, Application::Coap | Application::Udp);
        let message = "nodes send to each other with traffic.application = \"coap\" or \"udp\"";
        check(is_next && !sends, "traffic.collector", message.to_owned());
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        let lists = [
            ("traffic.periods", &self.traffic.periods),
            ("traffic.failures", &self.traffic.failures),
        ];
        for (key, list) in lists {
            for one in list {
                let message = format!(
                    "node {} is the root or not in the topology: write a node from 1 to {}",
                    one.node,
                    nodes - 1
                );
                check(one.node == 0 || u32::from(one.node) >= nodes, key, message);
            }
        }
        for one in &self.traffic.periods {
            let message = format!("a period of {} is below 10ms", one.time);
            check(one.time < Duration::from_millis(10), "traffic.periods", message);
        }
        let least = lowmesh_sim::traffic::DATAGRAM_OCTETS_MIN;
        check(
            application == Application::Udp && usize::from(payload_bytes) < least,
            "traffic.payload_bytes",
            format!("{payload_bytes} is below {least}, the octets that identify a datagram"),
        );
        let message = format!("{hops_min} needs routes = \"static\"");
        check(self.head.routes == Routes::Rpl && hops_min > 1, "traffic.hops_min", message);
    }
}
