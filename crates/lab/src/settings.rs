//! A scenario in the simulator's own types; the air's part of it is in [`crate::air`].

use lowmesh_congestion::TimerSpec;
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_sim::energy::Currents;
use lowmesh_sim::traffic;
use lowmesh_sixtop::functions::orchestra::Rule;
use lowmesh_sixtop::params::{AliceParams, MinimalParams, MsfParams, OrchestraParams};
use lowmesh_stack::Scheduling;
use lowmesh_units::Duration;

use crate::air;
use crate::scenario::{Objective, OrchestraVariant, RplMode, Scenario, Schedule};

/// Everything that a run is made of.
pub fn simulation(scenario: &Scenario) -> lowmesh_sim::Config {
    lowmesh_sim::Config {
        duration: scenario.head.duration,
        topology: air::topology(scenario),
        medium: air::medium(scenario),
        interferers: air::interferers(scenario),
        tx_power: air::tx_power(scenario),
        carrier: lowmesh_sim::config::Carrier::default(),
        drift_max_ppm: scenario.clock.drift_ppm,
        boot_spread: scenario.clock.boot_spread,
        node: node(scenario),
        traffic: traffic(scenario),
        currents: Currents {
            tx_ma: scenario.energy.tx_ma,
            rx_ma: scenario.energy.rx_ma,
            sleep_ma: scenario.energy.sleep_ma,
        },
    }
}

fn traffic(scenario: &Scenario) -> traffic::Config {
    let traffic = &scenario.traffic;
    traffic::Config {
        start: traffic.start,
        period: traffic.period,
        jitter: traffic.jitter,
        payload_octets: traffic.payload_bytes.into(),
        application: traffic::Application::Coap {
            confirmable: traffic.confirmable,
            path: traffic.path.clone(),
        },
        readings_max: None,
        hops_min: 0,
    }
}

fn node(scenario: &Scenario) -> lowmesh_stack::Config {
    lowmesh_stack::Config {
        mac: mac(scenario),
        scheduling: scheduling(&scenario.schedule, scenario.rpl.mode),
        lowpan: lowmesh_lowpan::Config {
            reassembly_buffers: scenario.lowpan.reassembly_buffers.into(),
            reassembly_timeout: scenario.lowpan.reassembly_timeout,
            frame_payload: lowmesh_mac::frame::PAYLOAD_OCTETS_MAX,
            ..lowmesh_lowpan::Config::default()
        },
        hop_limit: scenario.ipv6.hop_limit,
        rpl: rpl(scenario),
        coap: lowmesh_coap::Config {
            nstart: scenario.coap.nstart.into(),
            queue_max: scenario.coap.queue.into(),
            max_retransmit: scenario.coap.max_retransmit,
            timer: TimerSpec {
                name: scenario.coap.congestion.name().into(),
                cocoa: scenario.cocoa.overrides(),
            },
            ack_timeout: scenario.coap.ack_timeout,
            ..lowmesh_coap::Config::default()
        },
        ..lowmesh_stack::Config::default()
    }
}

fn mac(scenario: &Scenario) -> lowmesh_mac::config::Config {
    let mac = &scenario.mac;
    let default = lowmesh_mac::config::Config::default();
    lowmesh_mac::config::Config {
        // The scenario's reader refuses an empty list, so the default is never taken.
        hopping: HoppingSequence::new(mac.hopping.channels()).unwrap_or(default.hopping),
        slot: Duration::from_millis(mac.slot_ms.into()),
        guard: Duration::from_micros(mac.guard_us.into()),
        queue_frames_max: mac.queue_frames.into(),
        retries_max: mac.retries,
        be_min: mac.be_min,
        be_max: mac.be_max,
        eb_period: mac.eb_period,
        keepalive: mac.keepalive,
        desynchronise: mac.desync,
        scan_period: mac.scan_period,
        pan: default.pan,
    }
}

/// What the sections of MSF and B-MSF have in common: two types, one set of keys but for the cells watched.
macro_rules! msf_params {
    ($section:expr, $watched:expr, $base:expr) => {{
        // Thresholds are percentages of the cells watched.
        let share = |percent: u8| u64::from($watched) * u64::from(percent) / 100;
        MsfParams {
            minimal_length: $section.minimal_length,
            autonomous_length: $section.autonomous_length,
            negotiated_length: $section.negotiated_length,
            cells_elapsed_max: $watched.into(),
            cells_used_high: share($section.lim_high),
            cells_used_low: share($section.lim_low),
            cells_per_peer_max: $section.cells_per_peer_max,
            sent_max: $section.max_num_tx.into(),
            relocate_percent: $section.relocate_pdr.into(),
            housekeeping: $section.housekeeping,
            quarantine: $section.quarantine,
            wait_retry: ($section.wait_min, $section.wait_max),
            ..$base
        }
    }};
}

fn scheduling(schedule: &Schedule, mode: RplMode) -> Scheduling {
    match schedule {
        Schedule::Minimal(minimal) => {
            Scheduling::Minimal(MinimalParams { slotframe_length: minimal.slotframe_length })
        }
        Schedule::Msf(msf) => Scheduling::Msf(MsfParams {
            receive_cells: msf.receive_cells,
            ..msf_params!(msf, msf.max_num_cells, MsfParams::MSF)
        }),
        Schedule::BMsf(msf) => Scheduling::Msf(msf_params!(msf, msf.max_nec, MsfParams::BMSF)),
        Schedule::Alice(alice) => Scheduling::Alice(AliceParams {
            beacon_length: alice.beacon_length,
            broadcast_length: alice.broadcast_length,
            unicast_length: alice.unicast_length,
            ..AliceParams::default()
        }),
        Schedule::Orchestra(orchestra) => {
            let rule = match (orchestra.variant, mode) {
                (OrchestraVariant::Sender, _) => Rule::SenderStoring,
                (OrchestraVariant::Receiver, RplMode::Storing) => Rule::ReceiverStoring,
                (OrchestraVariant::Receiver, RplMode::NonStoring) => Rule::ReceiverNonStoring,
            };
            Scheduling::Orchestra(
                rule,
                OrchestraParams {
                    beacon_length: orchestra.beacon_length,
                    common_length: orchestra.common_length,
                    unicast_length: orchestra.unicast_length,
                    ..OrchestraParams::default()
                },
            )
        }
    }
}

fn rpl(scenario: &Scenario) -> lowmesh_rpl::Config {
    let rpl = &scenario.rpl;
    let objective = match rpl.objective {
        Objective::Mrhof => lowmesh_rpl::Objective::Mrhof,
        Objective::Of0 => lowmesh_rpl::Objective::Of0,
    };
    let mode = match rpl.mode {
        RplMode::Storing => lowmesh_rpl::Mode::Storing,
        RplMode::NonStoring => lowmesh_rpl::Mode::NonStoring,
    };
    // The node puts its own addresses and role in.
    let router = lowmesh_rpl::Config::router([0; 16]).with_objective(objective).with_mode(mode);
    lowmesh_rpl::Config {
        interval_min: rpl.dio_interval_min,
        interval_doublings: rpl.dio_doublings,
        redundancy: rpl.dio_redundancy,
        dao_delay: rpl.dao_delay,
        dao_ack: rpl.dao_ack,
        path_lifetime: (rpl.path_lifetime.as_secs() / u64::from(router.lifetime_unit)) as u8,
        dis_period: rpl.dis_period,
        probe_period: (!rpl.probe_period.is_zero()).then_some(rpl.probe_period),
        ..router
    }
}
