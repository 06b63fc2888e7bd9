//! A scenario in the simulator's own types; the air's part of it is in [`crate::air`].

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::{CongestionControl, HostLimits};
use lowmesh_mac::csma::{self, Acknowledgement};
use lowmesh_mac::frame::{PAYLOAD_OCTETS_MAX, SHORT_GAIN_OCTETS};
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_sim::air::{CcaMode, build};
use lowmesh_sim::energy::Currents;
use lowmesh_sim::topology::Topology;
use lowmesh_sim::traffic::Process;
use lowmesh_sim::{Carrier, Error, Mesh, NodeParts, Sinks, Wire, traffic};
use lowmesh_stack::{LinkLayer, Oscore, Routes};
use lowmesh_units::{Addressing, Channel, Dbm, Duration, NodeId, Seed};

use crate::air;
use crate::scenario::{
    self, Ack, Addresses, Application, Arrivals, BorderRouter, Cca, Collector, Contiki2014, Csma,
    Duplicates, Mac, MeshRange, RplMode, Scenario, Thin, Tsch,
};

/// Builds the mesh of a scenario.
pub fn mesh(scenario: &Scenario, seed: Seed, sinks: Sinks) -> Result<Mesh, Error> {
    let place_seed = scenario.place_seed(seed);
    let topology = air::topology(scenario).place(place_seed)?;
    let medium = build(scenario.radio.medium.clone(), &topology, place_seed)?;
    let mut builder =
        Mesh::builder(seed).medium(medium).interferers(air::interferers(scenario)).sinks(sinks);
    let (meshes, usual) = (scenario.meshes(), parts(scenario));
    let nodes = u16::try_from(topology.nodes()).unwrap_or(u16::MAX);
    let mut traffic = traffic(scenario);
    if let traffic::Application::Entities(entities) = &mut traffic.application {
        *entities = scenario.entities(nodes);
    }
    builder = builder.traffic(traffic);
    let routers: Vec<NodeParts> = meshes.iter().map(|mesh| in_mesh(usual.clone(), mesh)).collect();
    for id in 0..nodes {
        let (router, first) = (&routers[mesh_of(&meshes, id)], |mesh: &MeshRange| mesh.first == id);
        let is_border_router = meshes.iter().any(first);
        let mut parts = NodeParts { is_border_router, ..router.clone() };
        parts.stack.is_leaf = scenario.rpl.leaves.contains(&id);
        builder = builder.node(NodeId(id), parts);
    }
    if meshes.len() > 1 {
        builder = builder.backbone(Wire { delay: scenario.backbone.delay });
    }
    for link in &scenario.links {
        builder = builder.line(NodeId(link.near), NodeId(link.far), link.parts());
    }
    for line in &scenario.serials {
        builder = builder.line(NodeId(line.near), NodeId(line.far), line.parts());
    }
    if let Some(positions) = topology.positions() {
        let choice = scenario.radio.medium.clone();
        builder = builder.positions(positions);
        if choice.row().make.needs.is_places() {
            builder = builder.movable(move |positions| {
                build(choice.clone(), &Topology::placed(positions.to_vec()), place_seed)
            });
        }
    }
    builder.events(scenario.happenings()?).build()
}

/// The mesh that a node is in: one that lists it, or else that of the last border router up to it.
fn mesh_of(meshes: &[MeshRange], node: u16) -> usize {
    let lists = |mesh: &MeshRange| mesh.first != node && mesh.border_router.nodes.contains(&node);
    let before = |mesh: &MeshRange| mesh.first <= node;
    let own = meshes.iter().position(|mesh| mesh.first == node);
    own.or_else(|| meshes.iter().position(lists))
        .or_else(|| {
            meshes.iter().rposition(|mesh| before(mesh) && mesh.border_router.nodes.is_empty())
        })
        .unwrap_or_default()
}

/// The parts of a node in one of several meshes.
fn in_mesh(parts: NodeParts, mesh: &MeshRange) -> NodeParts {
    let BorderRouter { hopping, channel, .. } = &mesh.border_router;
    let mut parts = parts.in_pan(mesh.pan);
    let hopping = hopping.as_ref().and_then(|hopping| HoppingSequence::new(hopping.channels()));
    if let Some(hopping) = hopping {
        parts.stack.mac.hopping = hopping;
    }
    if let Some(channel) = channel.and_then(Channel::new) {
        parts.carrier.channel = channel;
    }
    parts
}

/// The parts of its nodes.
pub fn parts(scenario: &Scenario) -> NodeParts {
    NodeParts {
        carrier: carrier(&scenario.mac),
        tx_power: air::tx_power(scenario),
        drift_max_ppm: scenario.clock.drift_ppm,
        boot_spread: scenario.clock.boot_spread,
        energy: Currents {
            tx_ma: scenario.energy.tx_ma,
            rx_ma: scenario.energy.rx_ma,
            sleep_ma: scenario.energy.sleep_ma,
        },
        ..NodeParts::new(node(scenario))
    }
}

/// The traffic of the scenario.
pub fn traffic(scenario: &Scenario) -> traffic::Config {
    let traffic = &scenario.traffic;
    traffic::Config {
        start: traffic.start,
        period: traffic.period,
        jitter: traffic.jitter,
        payload_octets: traffic.payload_bytes.into(),
        application: match traffic.application {
            Application::Coap => traffic::Application::Coap {
                confirmable: traffic.confirmable,
                path: traffic.path.clone(),
            },
            Application::Udp => traffic::Application::Datagrams,
            Application::Poll => traffic::Application::Poll {
                confirmable: traffic.confirmable,
                path: traffic.path.clone(),
            },
            Application::Group => traffic::Application::Group {
                sender: NodeId(traffic.sender),
                group: traffic.group.0,
                members: traffic.members.iter().map(|node| NodeId(*node)).collect(),
                path: traffic.path.clone(),
            },
            // A medium with a table of its own may know more nodes than the scenario does; `mesh` then asks again.
            Application::Entities => traffic::Application::Entities(
                scenario.entities(scenario.topology.nodes().unwrap_or_default() as u16),
            ),
            Application::Fetch => traffic::Application::Fetch {
                confirmable: traffic.confirmable,
                path: traffic.path.clone(),
                clients: traffic.clients.map(usize::from),
            },
            Application::Observe => traffic::Application::Observe {
                confirmable: traffic.confirmable,
                path: traffic.path.clone(),
            },
        },
        process: match traffic.arrivals {
            Arrivals::Periodic => Process::Periodic,
            Arrivals::Poisson => Process::Poisson,
            Arrivals::Bursts => Process::Bursts(traffic.burst),
        },
        periods: traffic.periods.iter().map(|one| (NodeId(one.node), one.time)).collect(),
        readings_max: traffic.packets.map(u64::from),
        window: traffic.window.map(usize::from),
        service: traffic.service,
        collector: match traffic.collector {
            Collector::Own => traffic::Collector::Own,
            Collector::First => traffic::Collector::First,
            Collector::Next => traffic::Collector::Next,
        },
        silent: traffic.silent.iter().map(|node| NodeId(*node)).collect(),
        hops_min: traffic.hops_min,
    }
}

fn node(scenario: &Scenario) -> lowmesh_stack::Config {
    let (link, frame_payload) = match &scenario.mac {
        Mac::Tsch(_) => (LinkLayer::Tsch, PAYLOAD_OCTETS_MAX),
        Mac::Csma(csma) => contended(csma_mac(csma)),
        Mac::Thin(thin) => contended(thin_mac(thin)),
        Mac::Contiki2014(contiki) => contended(contiki_mac(contiki)),
    };
    let gain = if addressing(scenario).is_short() { 2 * SHORT_GAIN_OCTETS } else { 0 };
    let frame_payload = frame_payload + gain;
    let default = lowmesh_stack::Config::default();
    lowmesh_stack::Config {
        addressing: addressing(scenario),
        link,
        mac: match &scenario.mac {
            Mac::Tsch(tsch) => tsch_mac(tsch),
            Mac::Csma(_) | Mac::Thin(_) | Mac::Contiki2014(_) => {
                lowmesh_mac::config::Config::default()
            }
        },
        orphan_max: scenario.mac.tsch().map_or(default.orphan_max, |tsch| tsch.orphan),
        routes: routes(scenario),
        scheduling: scenario.schedule.clone(),
        lowpan: lowpan(scenario, frame_payload),
        root_reassembly_buffers: scenario.lowpan.root_reassembly_buffers.map(usize::from),
        hop_limit: scenario.ipv6.hop_limit,
        rpl: rpl(scenario),
        multicast: scenario.multicast.clone(),
        coap: lowmesh_coap::Config {
            congestion: congestion(scenario),
            queue_max: scenario.coap.queue.into(),
            max_retransmit: scenario.coap.max_retransmit,
            non_timeout: scenario.coap.non_timeout,
            ..default.coap
        },
        host: HostLimits {
            exponent: Exponent::fitting(scenario.coap.block.into()),
            ..default.host
        },
        transport: match scenario.coap.transport {
            scenario::Transport::Udp => lowmesh_stack::config::Transport::Udp,
            scenario::Transport::Tcp => {
                lowmesh_stack::config::Transport::Tcp(scenario.tcp.settings())
            }
        },
        oscore: scenario.coap.oscore.then(|| Oscore::new(OSCORE_MASTER_SECRET)),
        ..default
    }
}

/// The Master Secret of all OSCORE contexts of a scenario: a capture is decrypted with it.
pub const OSCORE_MASTER_SECRET: &[u8; 16] = b"lowmesh-scenario";

/// Which EUI-64s the nodes have.
pub fn addressing(scenario: &Scenario) -> Addressing {
    match scenario.addresses {
        Addresses::Random => Addressing::Random,
        Addresses::Consecutive => Addressing::Consecutive,
        Addresses::Short => Addressing::Short,
    }
}

fn congestion(scenario: &Scenario) -> CongestionControl {
    CongestionControl::with_timer(scenario.coap.congestion.clone())
        .with_nstart(scenario.coap.nstart.into())
        .with_ack_timeout(scenario.coap.ack_timeout)
}

fn lowpan(scenario: &Scenario, frame_payload: usize) -> lowmesh_lowpan::Config {
    let lowpan = &scenario.lowpan;
    let mut config = lowmesh_lowpan::Config {
        reassembly_buffers: lowpan.reassembly_buffers.into(),
        reassembly_octets: lowpan.reassembly_octets as usize,
        reassembly_timeout: lowpan.reassembly_timeout,
        fragmented_datagrams: lowpan.fragmentation_buffers.into(),
        packet_buffer_octets: lowpan.packet_buffer_octets as usize,
        frame_payload,
        // Figures show the timeline of a datagram.
        tell_steps: true,
        ..lowmesh_lowpan::Config::default()
    };
    scenario.fragments.apply(&mut config);
    config
}

fn contended(config: csma::Config) -> (LinkLayer, usize) {
    let payload = config.payload_octets_max;
    (LinkLayer::Csma(config), payload)
}

/// Where routes come from; the scenario's reader refuses static ones without a good tree.
fn routes(scenario: &Scenario) -> Routes {
    match (&scenario.topology, scenario.head.routes) {
        (scenario::Topology::Tree(tree), scenario::Routes::Static) => {
            tree.steps().map_or(Routes::Rpl, Routes::Static)
        }
        _ => Routes::Rpl,
    }
}

fn tsch_mac(tsch: &Tsch) -> lowmesh_mac::config::Config {
    let default = lowmesh_mac::config::Config::default();
    lowmesh_mac::config::Config {
        // The scenario's reader refuses an empty list, so the default is never taken.
        hopping: HoppingSequence::new(tsch.hopping.channels()).unwrap_or(default.hopping),
        slot: Duration::from_millis(tsch.slot_ms.into()),
        guard: Duration::from_micros(tsch.guard_us.into()),
        queue_frames_max: tsch.queue_frames.into(),
        queue_per_neighbour: tsch.queue_per_neighbour.into(),
        nack_full: tsch.nack_full,
        burst_frames_max: tsch.burst_frames,
        retries_max: tsch.retries,
        be_min: tsch.be_min,
        be_max: tsch.be_max,
        eb_period: tsch.eb_period,
        broadcast_spacing: tsch.broadcast_spacing,
        keepalive: tsch.keepalive,
        desynchronise: tsch.desync,
        scan_period: tsch.scan_period,
        join_neighbours: tsch.join_neighbours,
        join_wait: default.join_wait,
        resume: tsch.resume,
        pan: default.pan,
        short: default.short,
    }
}

fn csma_mac(csma: &Csma) -> csma::Config {
    csma::Config {
        queue_frames_max: csma.queue_frames.into(),
        retries_max: csma.retries,
        be_min: csma.be_min,
        be_max: csma.be_max,
        be_growth: csma.be_growth,
        backoffs_max: csma.backoffs,
        acknowledgement: match csma.ack {
            Ack::Hardware => Acknowledgement::Hardware,
            Ack::Software => Acknowledgement::Software { delay: csma.ack_delay },
            Ack::None => Acknowledgement::None,
        },
        ..csma::Config::default()
    }
}

fn thin_mac(thin: &Thin) -> csma::Config {
    csma::Config {
        queue_frames_max: thin.queue_frames.into(),
        retries_max: thin.retries,
        be_min: thin.be_min,
        be_max: thin.be_max,
        backoffs_max: thin.backoffs,
        rejects_duplicates: thin.duplicates == Duplicates::Reject,
        radio: csma::Radio::Thin { busy_max: thin.busy_max, requeue: thin.requeue },
        ..csma::Config::thin()
    }
}

fn contiki_mac(contiki: &Contiki2014) -> csma::Config {
    csma::Config {
        queue_frames_max: contiki.queue_frames.into(),
        retries_max: contiki.retries,
        access: csma::Access::Neighbours {
            queues_max: contiki.neighbour_queues.into(),
            unit: contiki.backoff_unit,
        },
        ..csma::Config::contiki2014()
    }
}

/// The radio under carrier sense.
fn carrier(mac: &Mac) -> Carrier {
    let default = Carrier::default();
    let (channel, cca, energy) = match mac {
        Mac::Tsch(_) => return default,
        Mac::Csma(csma) => (csma.channel, csma.cca, csma.cca_dbm),
        Mac::Thin(thin) => (thin.channel, thin.cca, thin.cca_dbm),
        Mac::Contiki2014(contiki) => (contiki.channel, contiki.cca, contiki.cca_dbm),
    };
    let mode = match cca {
        Cca::Energy => CcaMode::Energy,
        Cca::Carrier => CcaMode::Carrier,
        Cca::Either => CcaMode::Either,
    };
    // The scenario's reader refuses other channels, so the default is never taken.
    let channel = Channel::new(channel).unwrap_or(default.channel);
    Carrier { channel, mode, energy: Dbm(energy) }
}

fn rpl(scenario: &Scenario) -> lowmesh_rpl::Config {
    let rpl = &scenario.rpl;
    let mode = match rpl.mode {
        RplMode::Storing => lowmesh_rpl::Mode::Storing,
        RplMode::NonStoring => lowmesh_rpl::Mode::NonStoring,
        RplMode::StoringMulticast => lowmesh_rpl::Mode::StoringMulticast,
    };
    // The node puts its own addresses and role in.
    let router = lowmesh_rpl::Config::router([0; 16]);
    let router = router.with_objective(rpl.objective.clone()).with_mode(mode);
    lowmesh_rpl::Config {
        interval_min: rpl.dio_interval_min,
        interval_doublings: rpl.dio_doublings,
        redundancy: rpl.dio_redundancy,
        dao_delay: rpl.dao_delay,
        dao_ack: rpl.dao_ack,
        dco: rpl.dco,
        path_lifetime: (rpl.path_lifetime.as_secs() / u64::from(router.lifetime_unit)) as u8,
        dis_period: rpl.dis_period,
        probe: match rpl.probe {
            scenario::Probe::Dis => lowmesh_rpl::Probe::Dis,
            scenario::Probe::Dio => lowmesh_rpl::Probe::Dio,
        },
        rpi_0x23: rpl.rpi_0x23,
        sixlorh: rpl.sixlorh,
        probe_period: (!rpl.probe_period.is_zero()).then_some(rpl.probe_period),
        ..router
    }
}
