//! `[topology]` and `[radio]` of a scenario in the simulator's own types.

use lowmesh_registry::Value;
use lowmesh_sim::air::error::BuildError;
use lowmesh_sim::air::interference::{Loudness, Spells, Usage};
use lowmesh_sim::air::params::{SQUARE_NEIGHBOURS, SQUARE_PDR};
use lowmesh_sim::air::pathloss::PathLoss;
use lowmesh_sim::air::{Interference, Interferer, Position, TX_POWER, build, nodes_of};
use lowmesh_sim::topology::{TopologySpec, TreeSpec};
use lowmesh_units::{Channel, Dbm, Instant, NodeId, Seed};

use crate::scenario::{Scenario, Topology, Wifi};

/// The positions of the nodes.
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
            height_m: random.height_m,
            neighbours: SQUARE_NEIGHBOURS,
            pdr: SQUARE_PDR,
            tx_power: tx_power(scenario),
        },
        Topology::Positions(positions) => TopologySpec::File(positions.file.clone()),
        Topology::Places(places) => {
            let heights = places.z_m.iter().copied().chain(core::iter::repeat(0.0));
            let all = places.x_m.iter().zip(&places.y_m).zip(heights).take(places.count());
            TopologySpec::Explicit(
                all.map(|((x, y), z)| Position::new(*x, *y).at_height(z)).collect(),
            )
        }
        Topology::Table(table) => TopologySpec::Unplaced {
            // A table that cannot be read is refused with the medium, whatever the number.
            nodes: table.nodes.map_or_else(|| table_nodes(scenario).unwrap_or(1), usize::from),
        },
        Topology::Tree(tree) => TopologySpec::Tree(TreeSpec {
            parents: tree.parents.iter().map(|parent| NodeId(*parent)).collect(),
            distances_m: tree.distances_m.clone(),
            places_m: tree.places_m(),
            pdr: tree.pdr.clone(),
        }),
    }
}

/// The other users of the band.
pub fn interferers(scenario: &Scenario) -> Vec<Interferer> {
    let radio = &scenario.radio;
    let wifi = radio.wifi.iter().map(|wifi| station(wifi, radio.wifi_load_mbps));
    let burst = radio.burst.iter().map(|burst| Interferer::GilbertElliott {
        channels: Channel::new(burst.channel).into_iter().collect(),
        mean_good: burst.off,
        mean_bad: burst.on,
        loudness: Loudness::Everywhere(Dbm(burst.power_dbm)),
    });
    wifi.chain(burst).collect()
}

fn station(wifi: &Wifi, load_mbps: Option<f64>) -> Interferer {
    let loudness = match wifi.place_m() {
        None => Loudness::Everywhere(Dbm(wifi.power_dbm)),
        Some((x, y)) => Loudness::At {
            position: Position::new(x, y),
            tx_power: Dbm(wifi.tx_power_dbm),
            path_loss: PathLoss::LogDistance { exponent: wifi.exponent, sigma_db: 0.0 },
        },
    };
    let channel = wifi.channel;
    let spells = wifi.on.zip(wifi.off).map(|(on, off)| Spells { on, off });
    let usage = Usage { start: Instant::ZERO + wifi.start, spells };
    match load_mbps.or(wifi.load_mbps) {
        None => Interferer::Wifi { channel, duty_cycle: wifi.duty_cycle, usage, loudness },
        Some(load_mbps) => Interferer::WifiLoad { channel, load_mbps, usage, loudness },
    }
}

/// The number of nodes in the table of the medium, if it has one that can be read.
pub(crate) fn table_nodes(scenario: &Scenario) -> Option<usize> {
    nodes_of(&scenario.radio.medium)
}

/// The power that every node sends with; 0 dBm where the medium has no such key.
pub fn tx_power(scenario: &Scenario) -> Dbm {
    match scenario.radio.medium.get(TX_POWER.key) {
        Some(Value::Number(dbm)) => Dbm(dbm),
        _ => Dbm(0.0),
    }
}

/// Builds the medium of the first seed and discards it, to report a bad file or an impossible topology before any
/// simulation.
pub fn check(scenario: &Scenario) -> Result<(), BuildError> {
    let seed = scenario.place_seed(Seed(scenario.head.seed));
    let places = topology(scenario).place(seed)?;
    build(scenario.radio.medium.clone(), &places, seed)?;
    Interference::new(&interferers(scenario), places.nodes(), places.positions(), seed)?;
    scenario.check_events(places.nodes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::BUILTINS;
    use lowmesh_units::Duration;

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
    fn a_wifi_station_has_a_load_and_a_place() {
        let scenario = parse("[[radio.wifi]]\nload_mbps = 15\nx_m = 3\ny_m = 4\n");
        let [Interferer::WifiLoad { load_mbps, loudness, .. }] = &interferers(&scenario)[..] else {
            panic!("one station with a load")
        };
        assert_eq!(load_mbps.to_bits(), 15.0f64.to_bits());
        let Loudness::At { position, .. } = loudness else { panic!("{loudness:?}") };
        assert_eq!(*position, Position::new(3.0, 4.0));
    }

    #[test]
    fn a_wifi_station_is_in_use_always_or_in_spells() {
        let usage = |text: &str| match &interferers(&parse(text))[..] {
            [Interferer::Wifi { usage, .. }] => *usage,
            other => panic!("one station: {other:?}"),
        };
        assert_eq!(usage("[[radio.wifi]]\nchannel = 6\n"), Usage::default());
        let (on, off) = (Duration::from_secs(2), Duration::from_secs(9));
        let expected = Usage { start: Instant::from_secs(7), spells: Some(Spells { on, off }) };
        let text = "[[radio.wifi]]\nstart = \"7s\"\non = \"2s\"\noff = \"9s\"\n";
        assert_eq!(usage(text), expected);
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_name() {
        let scenario = parse("[topology]\nkind = \"positions\"\nfile = \"no/such.csv\"");
        let error = check(&scenario).expect_err("there is no such file");
        assert!(error.to_string().starts_with("no/such.csv: "), "{error}");
    }
}
