//! `[[border_router]]`, `[backbone]`, `[[link]]` and `[[serial]]`: several meshes in one run, and what connects them.

use lowmesh_sim::LineParts;
use lowmesh_units::{Duration, PanId};
use lowmesh_wired::{Config as LinkConfig, Loss, SerialConfig};

use super::section::section;
use super::topology::NODES_MAX;
use super::value::{Any, Hopping, Within};
use super::{Mac, Scenario, Topology};

section! {
    /// A border router besides node 0. Its mesh consists of `nodes`, or of the nodes from it up to the next border router.
    BorderRouter {
        /// Number of the node.
        node: u16 = 0, Within(1, NODES_MAX);
        /// Nodes of its mesh; if unset, those from it up to the next border router without a list.
        nodes: Vec<u16> = Vec::new(), Any;
        /// Identifier of its PAN; by default that of the previous border router plus 1.
        pan: Option<u16> = None, Within(1, 0xfffd);
        /// Channels of its mesh in hopping order, under TSCH; by default those of `mac.hopping`.
        hopping: Option<Hopping> = None, Any;
        /// The channel of its mesh, under carrier sense; by default that of `mac.channel`.
        channel: Option<u8> = None, Within(11, 26);
    }
}

section! {
    /// The wire between border routers.
    Backbone {
        /// How long a packet takes from one border router to another.
        delay: Duration = Duration::from_micros(100), Within(Duration::ZERO, Duration::from_secs(10));
    }
}

section! {
    /// A constrained link between two border routers; packets reach the far one only over this link.
    WiredLink {
        /// The border router at the near end.
        near: u16 = 0, Within(0, NODES_MAX);
        /// The border router at the far end.
        far: u16 = 0, Within(0, NODES_MAX);
        /// Rate from the near end to the far one, in bits per second (Pesola 2020: 60 kbit/s to the network).
        rate_bps: u64 = 60_000, Within(1, 10_000_000_000);
        /// Rate from the far end to the near one; by default that of `rate_bps` (Pesola 2020: 30 kbit/s from the network).
        back_rate_bps: Option<u64> = None, Within(1, 10_000_000_000);
        /// One-way delay after the packet is sent.
        delay: Duration = Duration::from_millis(200), Within(Duration::ZERO, Duration::from_secs(10));
        /// One-way delay from the far end to the near one; by default that of `delay` (Pesola 2020: 400 ms).
        back_delay: Option<Duration> = None, Within(Duration::ZERO, Duration::from_secs(10));
        /// Minimum time that is added to the delay.
        jitter_min: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(10));
        /// Maximum time that is added to the delay, drawn for each packet; packets keep their order.
        jitter: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(10));
        /// Octets that may wait in each direction; further packets are dropped.
        queue_octets: u64 = 2_500, Within(0, 1_000_000_000);
        /// Probability that the link loses a packet.
        loss: f64 = 0.0, Within(0.0, 1.0);
        /// Share of time in which the link is in its bad state (Gilbert 1960, Elliott 1963); `loss` applies to the rest of the time.
        burst_share: f64 = 0.0, Within(0.0, 0.99);
        /// Probability that the link loses a packet in its bad state.
        burst_loss: f64 = 0.5, Within(0.0, 1.0);
        /// Mean duration of the bad state, exponentially distributed.
        burst_mean: Duration = Duration::from_millis(1500), Within(Duration::from_millis(1), Duration::from_secs(3600));
        /// Whether each packet takes 20 octets less on the link, as with an IPv4 header.
        ipv4_sizes: bool = false, Any;
    }
}

section! {
    /// A serial line from a host (a border router without a mesh) to a border router with little memory.
    SerialLine {
        /// The host.
        near: u16 = 0, Within(0, NODES_MAX);
        /// The border router.
        far: u16 = 0, Within(1, NODES_MAX);
        /// Bits per second, start and stop bits included.
        baud: u64 = 115_200, Within(10, 100_000_000);
        /// Longest packet that the border router accepts (Contiki in 2014: 140).
        packet_octets: u32 = 140, Within(1, 65_575);
        /// Octets that may wait in the border router (Contiki in 2014: 156).
        ring_octets: u32 = 156, Within(1, 1_000_000);
        /// Packets that may wait in the border router (Contiki in 2014: 2).
        ring_packets: u32 = 2, Within(1, 10_000);
    }
}

/// Samples of a queue that a run keeps: ours, those of a transfer of a megabyte.
const QUEUE_SAMPLES_MAX: usize = 16_384;
/// Octets by which the header of IPv4 is shorter than that of IPv6 (RFC 791 s3.1: 20, RFC 8200 s3: 40).
const IPV4_SAVED_OCTETS: u32 = 20;

impl WiredLink {
    /// Which packets it loses.
    fn loss(&self) -> Loss {
        if self.burst_share > 0.0 {
            let bad_share = self.burst_share;
            return Loss::GilbertElliott {
                good: self.loss,
                bad: self.burst_loss,
                mean_good: self.burst_mean.mul_f64((1.0 - bad_share) / bad_share),
                mean_bad: self.burst_mean,
            };
        }
        match self.loss {
            0.0 => Loss::None,
            probability => Loss::Independent { probability },
        }
    }
    /// The link in the simulator's own type.
    pub fn parts(&self) -> LineParts {
        let direction = |rate_bits_per_second, delay| LinkConfig {
            rate_bits_per_second,
            delay,
            jitter: (self.jitter_min, self.jitter.max(self.jitter_min)),
            queue_octets_max: self.queue_octets,
            loss: self.loss(),
            samples_max: QUEUE_SAMPLES_MAX,
        };
        let back_rate = self.back_rate_bps.unwrap_or(self.rate_bps);
        let back = direction(back_rate, self.back_delay.unwrap_or(self.delay));
        let saved_octets = if self.ipv4_sizes { IPV4_SAVED_OCTETS } else { 0 };
        LineParts::Link { out: direction(self.rate_bps, self.delay), back, saved_octets }
    }
}

impl SerialLine {
    /// The line in the simulator's own type.
    pub fn parts(&self) -> LineParts {
        LineParts::Serial(SerialConfig {
            baud: self.baud,
            packet_octets_max: self.packet_octets,
            ring_octets_max: self.ring_octets,
            ring_packets_max: self.ring_packets as usize,
            ..SerialConfig::contiki2014()
        })
    }
}

/// One mesh of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshRange {
    /// Its first node, the border router.
    pub first: u16,
    /// Its PAN.
    pub pan: PanId,
    /// Settings that override `[mac]`; none at node 0.
    pub border_router: BorderRouter,
}

impl Scenario {
    /// The meshes in the order of their nodes; the one of node 0 comes first.
    pub fn meshes(&self) -> Vec<MeshRange> {
        let mut pan = lowmesh_sim::PAN;
        let mut meshes = vec![MeshRange { first: 0, pan, border_router: BorderRouter::default() }];
        for border_router in &self.border_routers {
            pan = PanId(border_router.pan.unwrap_or_else(|| pan.0.wrapping_add(1)));
            let border_router = border_router.clone();
            meshes.push(MeshRange { first: border_router.node, pan, border_router });
        }
        meshes
    }

    /// Whether each line connects two border routers, and is the one line to its far end.
    pub(super) fn line_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let meshes = self.meshes();
        let links = self.links.iter().map(|link| (link.near, link.far));
        let links = links.enumerate().map(|(index, ends)| (format!("link[{index}]"), ends));
        let serials = self.serials.iter().map(|line| (line.near, line.far));
        let serials = serials.enumerate().map(|(index, ends)| (format!("serial[{index}]"), ends));
        let mut seen: Vec<u16> = Vec::new();
        for (key, (near, far)) in links.chain(serials) {
            for (name, node) in [("near", near), ("far", far)] {
                let message = format!("{node} is not a border router; give it a [[border_router]]");
                let is_known = meshes.iter().any(|mesh| mesh.first == node);
                check(!is_known, &format!("{key}.{name}"), message);
            }
            let message = format!("{far} is at both ends, or has a line already");
            check(near == far || seen.contains(&far), &format!("{key}.far"), message);
            seen.push(far);
        }
    }

    /// Whether the border routers fit the nodes, the MAC and each other.
    pub(super) fn border_router_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let nodes = self.topology.nodes();
        let meshes = self.meshes();
        for (index, mesh) in meshes.iter().enumerate().skip(1) {
            let key = |name: &str| format!("border_router[{}].{name}", index - 1);
            let (first, before) = (mesh.first, meshes[index - 1].first);
            let message = format!("{first} is not above {before}, the border router before it");
            check(first <= before, &key("node"), message);
            let message = format!("{first} is not a node: there are {}", nodes.unwrap_or_default());
            check(nodes.is_some_and(|nodes| u32::from(first) >= nodes), &key("node"), message);
            for node in &mesh.border_router.nodes {
                let message =
                    format!("{node} is not a node: there are {}", nodes.unwrap_or_default());
                check(nodes.is_some_and(|nodes| u32::from(*node) >= nodes), &key("nodes"), message);
                let message = format!("{node} is a border router, which is in its own mesh");
                let is_head = meshes.iter().any(|mesh| mesh.first == *node);
                check(is_head, &key("nodes"), message);
                let lists = |other: &MeshRange| other.border_router.nodes.contains(node);
                let message = format!("{node} is in the list of an earlier border router already");
                check(meshes[..index].iter().any(lists), &key("nodes"), message);
            }
            let same = meshes[..index].iter().find(|other| other.pan == mesh.pan);
            let other = same.map_or(0, |other| other.first);
            let message = format!("{} is the PAN of node {other} already", mesh.pan.0);
            check(same.is_some(), &key("pan"), message);
            let slotted = matches!(self.mac, Mac::Tsch(_));
            let message = "only mac.kind = \"tsch\" hops; write channel instead".to_owned();
            check(!slotted && mesh.border_router.hopping.is_some(), &key("hopping"), message);
            let message = "mac.kind = \"tsch\" hops; write hopping instead".to_owned();
            check(slotted && mesh.border_router.channel.is_some(), &key("channel"), message);
        }
        let message =
            "routes of a tree lead to node 0 only; write another topology.kind".to_owned();
        let is_tree = matches!(self.topology, Topology::Tree(_));
        check(is_tree && meshes.len() > 1, "border_router", message);
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::Ending;
    use lowmesh_units::{NodeId, Seed};

    use super::*;
    use crate::simulate::{Sinks, simulate};

    /// Six nodes in a line, the last three in a mesh of their own.
    const TWO: &str = "name = \"two\"\nduration = \"20min\"\nwarmup = \"5min\"\n\
        [topology]\nkind = \"line\"\nnodes = 6\n[radio]\nmedium = \"unit-disk\"\n\
        [mac]\nhopping = [15, 20]\neb_period = \"2s\"\n\
        [traffic]\ncollector = \"first\"\nperiod = \"10s\"\n\
        [[border_router]]\nnode = 3\nhopping = [25, 26]\n";

    fn told(text: &str, sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let errors = Scenario::parse("two.toml", text, &sets).expect_err("it does not fit");
        errors.to_string()
    }

    #[test]
    fn border_routers_are_read_and_written_and_have_pans_in_a_row() {
        let scenario = Scenario::parse("two", TWO, &[]).expect("a good scenario");
        let meshes = scenario.meshes();
        let pans: Vec<(u16, u16)> = meshes.iter().map(|mesh| (mesh.first, mesh.pan.0)).collect();
        assert_eq!(pans, [(0, 0xabcd), (3, 0xabce)]);
        assert_eq!(Scenario::parse("two", &scenario.to_toml(), &[]), Ok(scenario));
    }

    #[test]
    fn a_reading_crosses_from_one_mesh_to_the_other() {
        let scenario = Scenario::parse("two", TWO, &[]).expect("a good scenario");
        let run = || simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances");
        let outcome = run();
        assert_eq!(outcome.trace_hash, run().trace_hash);
        let hops: Vec<Option<u32>> = outcome.nodes.iter().map(|node| node.hops).collect();
        assert_eq!(hops, [0, 1, 2, 0, 1, 2].map(Some));
        for node in [1, 2, 4, 5] {
            let own = outcome.transactions.iter().filter(|t| t.node == NodeId(node));
            let good = own.filter(|t| t.ending == Ending::Acknowledged).count();
            assert!(good > 40, "node {node}: {good}");
        }
    }

    #[test]
    fn readings_take_the_link_between_the_meshes() {
        let text = format!("{TWO}[[link]]\nfar = 3\nback_rate_bps = 30000\nloss = 0.05\n");
        let scenario = Scenario::parse("two", &text, &[]).expect("a good scenario");
        assert_eq!(Scenario::parse("two", &scenario.to_toml(), &[]), Ok(scenario.clone()));
        let outcome = simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances");
        let [line] = &outcome.lines[..] else { panic!("one link") };
        assert!(line.counters.iter().all(|counters| counters.arrived > 50), "{line:?}");
    }

    #[test]
    fn lines_that_do_not_fit_are_named_by_their_keys() {
        let with = |lines: &str| told(&format!("{TWO}{lines}"), &[]);
        let error = with("[[serial]]\nfar = 4\n");
        assert!(error.contains("serial[0].far: 4 is not a border router; give it a"), "{error}");
        let error = with("[[link]]\nfar = 3\n[[serial]]\nfar = 3\n");
        assert!(
            error.contains("serial[0].far: 3 is at both ends, or has a line already"),
            "{error}"
        );
    }

    #[test]
    fn border_routers_that_do_not_fit_are_told_by_their_keys() {
        for (sets, expected) in [
            (&["topology.nodes=3"][..], "border_router[0].node: 3 is not a node: there are 3"),
            (&["border_router=[{node=3, pan=43981}]"], "43981 is the PAN of node 0 already"),
            (&["border_router=[{node=3}, {node=2}]"], "border_router[1].node: 2 is not above 3"),
            (&["border_router=[{node=3, channel=11}]"], "hops; write hopping instead"),
            (&["mac.kind=csma"], "border_router[0].hopping: only mac.kind = \"tsch\" hops"),
            (&["border_router=[{}]"], "border_router[0].node"),
        ] {
            let told = told(TWO, sets);
            assert!(told.contains(expected), "{sets:?}: {told}");
        }
    }
}
