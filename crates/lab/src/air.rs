//! `[topology]` and `[radio]` of a scenario in the simulator's own types.

use lowmesh_sim::air::error::BuildError;
use lowmesh_sim::air::interference::Loudness;
use lowmesh_sim::air::mrm::MrmParams;
use lowmesh_sim::air::params::{SQUARE_NEIGHBOURS, SQUARE_PDR};
use lowmesh_sim::air::pathloss::PathLoss;
use lowmesh_sim::air::tree_links::{TreeLink, TreeLinksParams};
use lowmesh_sim::air::unit_disk::DiskParams;
use lowmesh_sim::air::{Interference, Interferer, MediumSpec, build};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_units::{Channel, Dbm, NodeId, Seed};

use crate::scenario::{Links, Medium, Scenario, Topology, Tree};

/// Where the nodes stand.
pub fn topology(scenario: &Scenario) -> TopologySpec {
    match &scenario.topology {
        Topology::Grid(grid) => TopologySpec::Grid {
            rows: grid.rows.into(),
            cols: grid.cols.into(),
            spacing_m: grid.spacing_m,
        },
        Topology::Line(line) => {
            TopologySpec::Line { nodes: line.nodes.into(), spacing_m: line.spacing_m }
        }
        Topology::Star(star) => {
            TopologySpec::Star { nodes: star.nodes.into(), radius_m: star.radius_m }
        }
        Topology::Random(random) => TopologySpec::RandomSquare {
            nodes: random.nodes.into(),
            side_m: random.side_m,
            neighbours: SQUARE_NEIGHBOURS,
            pdr: SQUARE_PDR,
            tx_power: tx_power(scenario),
        },
        Topology::Positions(positions) => TopologySpec::File(positions.file.clone()),
        Topology::Table(table) => TopologySpec::Unplaced { nodes: table.nodes.into() },
        Topology::Tree(tree) => TopologySpec::Unplaced { nodes: tree.parents.len() + 1 },
    }
}

/// Who hears whom.
pub fn medium(scenario: &Scenario) -> MediumSpec {
    let tx_power = tx_power(scenario);
    let radiated = |path_loss, noise_dbm| {
        let noise = Dbm(noise_dbm);
        MediumSpec::Radiated { path_loss, tx_power, noise }
    };
    match &scenario.radio.medium {
        Medium::Mrm(mrm) => MediumSpec::Mrm(MrmParams {
            tx_power,
            noise: Dbm(mrm.noise_dbm),
            snr_threshold_db: mrm.snr_threshold_db,
            sensitivity: Dbm(mrm.sensitivity_dbm),
            noise_variance: mrm.noise_var,
            gain_variance: mrm.system_gain_var,
            capture_db: mrm.capture_db,
        }),
        Medium::UnitDisk(disk) => MediumSpec::UnitDisk(DiskParams {
            range_m: disk.range_m,
            interference_m: disk.interference_range_m,
            ratio_rx: disk.edge_ratio,
            ..DiskParams::default()
        }),
        Medium::LogDistance(log) => radiated(
            PathLoss::LogDistance { exponent: log.exponent, sigma_db: log.shadowing_db },
            log.noise_dbm,
        ),
        Medium::Friis(friis) => radiated(PathLoss::Friis, friis.noise_dbm),
        Medium::TwoRay(two_ray) => {
            radiated(PathLoss::TwoRay { height_m: two_ray.height_m }, two_ray.noise_dbm)
        }
        Medium::PisterHack(_) => MediumSpec::PisterHack { tx_power },
        Medium::PdrMatrix(matrix) => MediumSpec::Fixed { pdr: matrix.matrix.clone() },
        Medium::K7(k7) => MediumSpec::K7 { file: k7.file.clone() },
        Medium::LinkTable(table) => MediumSpec::LinkTable { file: table.file.clone() },
        Medium::Grenoble(_) => MediumSpec::Grenoble,
        Medium::Links(links) => MediumSpec::Links(tree_links(scenario, links)),
    }
}

/// The links of the scenario's tree; without one there are none, which the medium refuses by its number of nodes.
fn tree_links(scenario: &Scenario, links: &Links) -> TreeLinksParams {
    let no_tree = Tree::default();
    let tree = match &scenario.topology {
        Topology::Tree(tree) => tree,
        _ => &no_tree,
    };
    let link = |(index, parent): (usize, &u16)| TreeLink {
        parent: NodeId(*parent),
        distance_m: tree.distances_m.get(index).copied().unwrap_or(links.reach_m),
        pdr: tree.pdr.get(index).copied().unwrap_or(links.pdr),
    };
    TreeLinksParams {
        links: tree.parents.iter().enumerate().map(link).collect(),
        places_m: tree.places_m(),
        reach_m: links.reach_m,
        margin_db: links.margin_db,
        exponent: links.exponent,
        sigma_db: links.shadowing_db,
    }
}

/// What else is on the band.
pub fn interferers(scenario: &Scenario) -> Vec<Interferer> {
    let radio = &scenario.radio;
    let wifi = radio.wifi.iter().map(|wifi| Interferer::Wifi {
        channel: wifi.channel,
        duty_cycle: wifi.duty_cycle,
        loudness: Loudness::Everywhere(Dbm(wifi.power_dbm)),
    });
    let burst = radio.burst.iter().map(|burst| Interferer::GilbertElliott {
        channels: Channel::new(burst.channel).into_iter().collect(),
        mean_good: burst.off,
        mean_bad: burst.on,
        loudness: Loudness::Everywhere(Dbm(burst.power_dbm)),
    });
    wifi.chain(burst).collect()
}

/// The power that every node sends with; 0 dBm where the medium has no such key.
pub fn tx_power(scenario: &Scenario) -> Dbm {
    Dbm(match &scenario.radio.medium {
        Medium::Mrm(mrm) => mrm.tx_power_dbm,
        Medium::LogDistance(log) => log.tx_power_dbm,
        Medium::Friis(friis) => friis.tx_power_dbm,
        Medium::TwoRay(two_ray) => two_ray.tx_power_dbm,
        Medium::PisterHack(pister) => pister.tx_power_dbm,
        Medium::UnitDisk(_)
        | Medium::PdrMatrix(_)
        | Medium::K7(_)
        | Medium::LinkTable(_)
        | Medium::Links(_)
        | Medium::Grenoble(_) => 0.0,
    })
}

/// Builds the air of the first seed and throws it away, so that a bad file or an impossible topology is told
/// before anything is simulated.
pub fn check(scenario: &Scenario) -> Result<(), BuildError> {
    let seed = Seed(scenario.head.seed);
    let places = topology(scenario).place(seed)?;
    build(&medium(scenario), &places, seed)?;
    Interference::new(&interferers(scenario), places.nodes(), places.positions(), seed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::BUILTINS;

    fn parse(text: &str) -> Scenario {
        let text = format!("name = \"x\"\n{text}");
        Scenario::parse("x", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn the_air_of_every_built_in_scenario_can_be_built() {
        for builtin in BUILTINS {
            let scenario = Scenario::load(builtin.name, &[]).expect("a built-in");
            assert_eq!(check(&scenario), Ok(()), "{}", builtin.name);
        }
    }

    #[test]
    fn a_medium_without_keys_has_the_simulators_own_defaults() {
        for name in ["unit-disk", "friis", "two-ray", "log-distance", "pister-hack"] {
            let scenario = parse(&format!("[radio]\nmedium = \"{name}\""));
            assert_eq!(Some(medium(&scenario)), MediumSpec::named(name), "{name}");
        }
        let MediumSpec::Mrm(params) = medium(&parse("")) else { panic!("mrm is the default") };
        // Cooja's noise makes a 33 m grid one hop wide, so a scenario has another.
        assert_eq!(MrmParams { noise: MrmParams::default().noise, ..params }, MrmParams::default());
        assert_eq!(params.noise, Dbm(-81.6));
    }

    #[test]
    fn a_random_square_has_the_power_that_its_medium_sends_with() {
        let scenario = parse(
            "[topology]\nkind = \"random\"\n[radio]\nmedium = \"pister-hack\"\ntx_power_dbm = 3",
        );
        let TopologySpec::RandomSquare { tx_power, .. } = topology(&scenario) else {
            panic!("a random square was asked for")
        };
        assert_eq!(tx_power, Dbm(3.0));
    }

    #[test]
    fn interferers_are_those_of_the_scenario() {
        let scenario = parse("[[radio.wifi]]\nchannel = 1\n[[radio.burst]]\nchannel = 20\n");
        let list = interferers(&scenario);
        assert!(matches!(list[0], Interferer::Wifi { channel: 1, .. }));
        let Interferer::GilbertElliott { channels, .. } = &list[1] else { panic!("{list:?}") };
        assert_eq!(channels.iter().map(|channel| channel.number()).collect::<Vec<_>>(), [20]);
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_name() {
        let scenario = parse("[topology]\nkind = \"positions\"\nfile = \"no/such.csv\"");
        let error = check(&scenario).expect_err("there is no such file");
        assert!(error.to_string().starts_with("no/such.csv: "), "{error}");
    }
}
