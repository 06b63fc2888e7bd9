//! The scenarios that come with the program.

/// A scenario that comes with the program.
#[derive(Debug)]
pub struct Builtin {
    /// The name to run it by.
    pub name: &'static str,
    /// Its TOML text.
    pub text: &'static str,
}

/// All of them, in alphabetical order.
pub const BUILTINS: &[Builtin] = &[
    Builtin { name: "building-20", text: include_str!("../../scenarios/building-20.toml") },
    Builtin { name: "grenoble-50", text: include_str!("../../scenarios/grenoble-50.toml") },
    Builtin { name: "grenoble-t", text: include_str!("../../scenarios/grenoble-t.toml") },
    Builtin { name: "grid-25", text: include_str!("../../scenarios/grid-25.toml") },
    Builtin {
        name: "grid-25-failures",
        text: include_str!("../../scenarios/grid-25-failures.toml"),
    },
    Builtin { name: "grid-64", text: include_str!("../../scenarios/grid-64.toml") },
    Builtin { name: "lille-50", text: include_str!("../../scenarios/lille-50.toml") },
    Builtin { name: "multicast-grid", text: include_str!("../../scenarios/multicast-grid.toml") },
    Builtin { name: "nb-iot", text: include_str!("../../scenarios/nb-iot.toml") },
    Builtin { name: "office-10", text: include_str!("../../scenarios/office-10.toml") },
    Builtin { name: "pister-26", text: include_str!("../../scenarios/pister-26.toml") },
    Builtin { name: "pister-64", text: include_str!("../../scenarios/pister-64.toml") },
    Builtin { name: "wilab-2x10", text: include_str!("../../scenarios/wilab-2x10.toml") },
    Builtin { name: "wilab-40", text: include_str!("../../scenarios/wilab-40.toml") },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Addresses, Scenario, Topology};
    use lowmesh_units::NodeId;

    #[test]
    fn every_built_in_is_a_valid_scenario_under_its_own_name() {
        for builtin in BUILTINS {
            let scenario = Scenario::parse(builtin.name, builtin.text, &[]);
            let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(scenario.head.name, builtin.name);
            assert!(!scenario.head.description.is_empty(), "{}", builtin.name);
        }
    }

    #[test]
    fn the_networks_of_fragment_forwarding_are_those_of_the_paper() {
        for (name, nodes, hops, sources) in [("lille-50", 50, 6, 47), ("grenoble-t", 8, 4, 6)] {
            let scenario = Scenario::load(name, &[]).expect("a built-in");
            let Topology::Tree(tree) = &scenario.topology else { panic!("{name} is no tree") };
            let tree = tree.steps().expect("its parents lead to the root");
            assert_eq!(tree.nodes(), nodes);
            let all: Vec<u16> =
                (0..nodes as u16).filter_map(|node| tree.hops(NodeId(node))).collect();
            assert_eq!(all.iter().max(), Some(&hops));
            let senders = all.iter().filter(|hops| **hops >= scenario.traffic.hops_min);
            assert_eq!(senders.count(), sources);
        }
        let lille = Scenario::load("lille-50", &[]).expect("a built-in");
        let Topology::Tree(tree) = &lille.topology else { panic!("a tree") };
        assert_eq!(tree.parents.iter().filter(|parent| **parent == 0).count(), 2);
        let places = tree.places_m();
        assert_eq!(places.len(), 50);
        for (index, parent) in tree.parents.iter().enumerate() {
            let (a, b) = (places[index + 1], places[usize::from(*parent)]);
            let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!((2.19..=6.51).contains(&square.sqrt()), "node {} to {parent}", index + 1);
        }
    }

    #[test]
    fn only_the_networks_of_cooja_have_addresses_that_count_up() {
        for builtin in BUILTINS {
            let scenario = Scenario::load(builtin.name, &[]).expect("a built-in");
            let of_cooja = ["grid-25", "grid-64"].contains(&builtin.name);
            let expected = if of_cooja { Addresses::Consecutive } else { Addresses::Random };
            assert_eq!(scenario.addresses, expected, "{}", builtin.name);
        }
        let text = "name = \"x\"\n[topology]\nkind = \"line\"\n";
        let line = |set: &[String]| Scenario::parse("x", text, set).expect("valid").addresses;
        assert_eq!(line(&[]), Addresses::Random);
        assert_eq!(line(&["topology.addresses=consecutive".to_owned()]), Addresses::Consecutive);
    }

    #[test]
    fn the_grids_are_those_of_the_paper() {
        for (name, nodes) in [("grid-25", 25), ("grid-64", 64)] {
            let scenario = Scenario::load(name, &[]).expect("a built-in");
            assert_eq!(scenario.topology.nodes(), Some(nodes));
            assert_eq!((scenario.mac.queue_frames(), scenario.coap.queue), (16, 32));
            assert_eq!(scenario.head.seeds, 10);
        }
    }
}
