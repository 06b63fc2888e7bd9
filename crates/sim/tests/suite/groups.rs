//! Packets to groups: who gets them with each engine, and what became of them at everyone who did not.

use lowmesh_mac::csma;
use lowmesh_machine::{DropReason, Layer};
use lowmesh_multicast::{Engine, Reach, make};
use lowmesh_registry::{Choice, Registry};
use lowmesh_rpl::Mode;
use lowmesh_sim::Sinks;
use lowmesh_sim::record::{Fate, Outcome};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::Application;
use lowmesh_sixtop::functions::orchestra;
use lowmesh_stack::LinkLayer;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::{Address, Scope};

use crate::worlds::{Config, disk, line, quick, run};

const ENGINES: [&str; 6] = ["none", "flood", "smrf", "esmrf", "trickle", "mpl"];

fn engine(name: &str) -> Choice<dyn Engine> {
    Registry::<dyn Engine>::builtin().choose(name).expect("a built-in")
}
/// Whether what a node sends to a group reaches all members, those below it, or its neighbours.
fn reach(name: &str) -> Reach {
    make(&engine(name), Rng::stream(Seed(0), NodeId(0), Purpose::Multicast)).reach()
}

/// Node `sender` of `config` sends a request to all others every two seconds for a minute.
fn to_group(mut config: Config, name: &str, sender: u16) -> Config {
    config.node.multicast = engine(name);
    config.node.rpl.mode = Mode::StoringMulticast;
    config.duration = Duration::from_secs(900);
    config.traffic.start = Duration::from_secs(500);
    config.traffic.period = Duration::from_secs(2);
    config.traffic.readings_max = Some(30);
    config.traffic.application = Application::Group {
        sender: NodeId(sender),
        group: Address::ALL_COAP_NODES.in_scope(Scope::SITE_LOCAL),
        members: Vec::new(),
        path: "lamp".to_owned(),
    };
    config
}
/// The same nodes under carrier sense.
fn contended(mut config: Config) -> Config {
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config
}
/// Three by three nodes; each hears the next ones, and loses some of their frames.
fn grid() -> Config {
    let topology = TopologySpec::Grid { rows: 3, cols: 3, spacing_m: 40.0 };
    Config { topology, medium: disk(0.7), ..line(9) }
}

/// Copies that members got, and all copies.
fn delivered(outcome: &Outcome) -> (usize, usize) {
    let all = outcome.groups.packets.iter().flat_map(|packet| &packet.members);
    let delivered = all.clone().filter(|member| matches!(member.fate, Fate::Delivered(_)));
    (delivered.count(), all.count())
}

#[test]
fn without_loss_each_engine_reaches_whom_it_says() {
    for name in ENGINES {
        for sender in [0, 2] {
            let outcome = run(to_group(contended(line(5)), name, sender), 1);
            assert_eq!(outcome.groups.packets.len(), 30, "{name}");
            let (delivered, copies) = delivered(&outcome);
            assert_eq!(copies, 30 * 4, "{name} from node {sender}");
            let expected = match (reach(name), sender) {
                (Reach::Mesh, _) | (Reach::SubDodag, 0) => copies,
                (Reach::Link, 0) => 30,
                (Reach::SubDodag | Reach::Link, _) => 30 * 2,
            };
            // A neighbour may send something else at the same time.
            assert!(delivered <= expected, "{name} from node {sender}: {delivered}");
            assert!(delivered * 100 >= expected * 95, "{name} from node {sender}: {delivered}");
        }
    }
}

#[test]
fn every_member_has_each_packet_or_a_reason() {
    for name in ENGINES {
        for (mac, config) in [("csma", contended(grid())), ("tsch", quick(grid()))] {
            let outcome = run(to_group(config, name, 0), 3);
            let members = outcome.groups.packets.iter().flat_map(|packet| &packet.members);
            let lost = members.clone().filter(|member| matches!(member.fate, Fate::Lost(..)));
            let open = members.clone().filter(|member| member.fate == Fate::Open).count();
            let (delivered, copies) = delivered(&outcome);
            assert_eq!(delivered + lost.clone().count() + open, copies, "{name} over {mac}");
            assert!(delivered > 0, "{name} over {mac}");
            // Copies that an engine may still send are open; the others are over a minute after the last packet.
            assert!(open == 0 || ["mpl", "trickle"].contains(&name), "{name} over {mac}: {open}");
        }
    }
}

#[test]
fn in_cells_forwarders_of_one_packet_do_not_all_collide() {
    for name in ["flood", "smrf", "mpl"] {
        let mut config = quick(to_group(grid(), name, 0));
        config.medium = disk(1.0);
        config.node.scheduling = Choice::from(&orchestra::ROW);
        config.traffic.period = Duration::from_secs(20);
        config.duration = Duration::from_secs(1400);
        let (delivered, copies) = delivered(&run(config, 1));
        assert!(delivered * 10 >= copies * 6, "{name}: {delivered} of {copies}");
    }
}

#[test]
fn unicast_copies_are_repeated_until_they_arrive() {
    let share = |copy: &'static str| {
        let mut config = to_group(contended(grid()), "smrf", 0);
        let engine = engine("smrf").with("copy", copy).expect("a name");
        config.node.multicast = engine;
        let (delivered, copies) = delivered(&run(config, 2));
        delivered as f64 / copies as f64
    };
    let (broadcast, unicast) = (share("broadcast"), share("unicast"));
    assert!(unicast > 0.9 && broadcast < unicast, "{broadcast} and {unicast}");
}

#[test]
fn a_loss_has_the_reason_of_the_node_above() {
    // Nobody registers in this mode, so the root has nobody to send to.
    let mut config = to_group(contended(line(3)), "smrf", 0);
    config.node.rpl.mode = Mode::Storing;
    config.node.multicast = engine("smrf").with("copy", "unicast").expect("a name");
    let outcome = run(config, 1);
    let lost = Fate::Lost(Layer::Ipv6, DropReason::NoRoute);
    let members = outcome.groups.packets.iter().flat_map(|packet| &packet.members);
    assert!(members.clone().all(|member| member.fate == lost), "{:?}", outcome.groups);
    assert!(outcome.transactions.is_empty(), "a request to a group is none");
    assert_eq!(outcome.drops.get(&(Layer::Ipv6, DropReason::NoRoute)), Some(&60));
    // Without forwarding, the second node of the line hears nothing.
    let outcome = run(to_group(contended(line(3)), "none", 0), 1);
    let last = outcome.groups.packets.iter().map(|packet| packet.members[1]);
    let unheard = Fate::Lost(Layer::Mac, DropReason::Unheard);
    assert!(last.clone().all(|member| member.fate == unheard), "{:?}", last.collect::<Vec<_>>());
}

#[test]
fn who_leaves_a_group_gets_none_of_its_packets() {
    use lowmesh_sim::Mesh;
    let config = to_group(contended(line(4)), "smrf", 0);
    let group = Address::ALL_COAP_NODES.in_scope(Scope::SITE_LOCAL);
    let mut mesh: Mesh = config.mesh(1, Sinks::default()).expect("parts that fit together");
    mesh.advance(Instant::from_secs(520));
    let is_forwarder = |mesh: &Mesh, node: usize| mesh.nodes()[node].subscribers(&group).len();
    assert_eq!([0, 1, 2, 3].map(|node| is_forwarder(&mesh, node)), [1, 1, 1, 0]);
    for node in [2, 3] {
        mesh.leave_group(Instant::from_secs(520), NodeId(node), group).expect("a node, now");
    }
    mesh.advance(Instant::from_secs(700));
    assert_eq!([0, 1, 2, 3].map(|node| is_forwarder(&mesh, node)), [1, 0, 0, 0]);
    let outcome = mesh.finish().expect("the books balance");
    let members = |packet: usize| outcome.groups.packets[packet].members.len();
    assert_eq!((members(0), members(29)), (3, 1));
}

#[test]
fn the_same_seed_gives_the_same_groups() {
    for name in ENGINES {
        let hash = |seed| run(to_group(contended(grid()), name, 4), seed).trace_hash;
        assert_eq!(hash(5), hash(5), "{name}");
        assert_ne!(hash(5), hash(6), "{name}");
    }
}
