//! Nodes that no path of links connects to a border router: they cannot join, and it is known before a run.

use lowmesh_sim::air::build;
use lowmesh_sim::event::Event;
use lowmesh_sim::paths::{JOIN_PDR, Quality, unreached};
use lowmesh_units::{NodeId, Seed};

use crate::scenario::Scenario;
use crate::{air, settings};

/// Numbers of nodes that a message lists; of more it says how many there are.
pub const LISTED: usize = 20;

/// What to say before the runs of a scenario about nodes that cannot join with its first seed; nothing if all can, if
/// events make links, or if the air cannot be built.
pub fn warning(scenario: &Scenario) -> Option<String> {
    let makes_links = |event: &Event| matches!(event, Event::Link { .. } | Event::Move { .. });
    if scenario.happenings().ok()?.iter().any(|(_, event)| makes_links(event)) {
        return None;
    }
    let seed = scenario.place_seed(Seed(scenario.head.seed));
    let topology = air::topology(scenario).place(seed).ok()?;
    let medium = build(scenario.radio.medium.clone(), &topology, seed).ok()?;
    let places = settings::places(scenario, u16::try_from(topology.nodes()).ok()?);
    let nodes = unreached(&*medium, &places, Quality::Mean);
    if nodes.is_empty() {
        return None;
    }
    let numbers = nodes.iter().map(|node| node.0.to_string()).collect::<Vec<_>>();
    let (noun, they) = if nodes.len() == 1 { ("node", "it") } else { ("nodes", "they") };
    let limit = 100.0 * JOIN_PDR;
    let message = format!(
        "no path of links leads from the root to {noun} {}, so {they} cannot join; on such a path at least {limit} % of the \
         frames arrive in both directions, as the mean over the channels in use",
        listed(&numbers)
    );
    let with_best: Vec<NodeId> = unreached(&*medium, &places, Quality::Best);
    let hint = "; the links reach further on single channels: list them for every channel in use, or use these channels alone";
    Some(message + if with_best.len() < nodes.len() { hint } else { "" })
}

/// The first of `items`, and how many there are besides.
pub(crate) fn listed(items: &[String]) -> String {
    let (shown, rest) = items.split_at(items.len().min(LISTED));
    let others = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::BUILTINS;

    fn of(text: &str) -> Option<String> {
        let text = format!("name = \"x\"\n{text}");
        warning(&Scenario::parse("x", &text, &[]).unwrap_or_else(|errors| panic!("{errors}")))
    }

    const SPLIT: &str = "[topology]\nkind = \"table\"\nnodes = 4\n[radio]\nmedium = \"pdr-matrix\"\n\
        matrix = [[0, 0.9, 0, 0], [0.9, 0, 0, 0], [0, 0, 0, 0.9], [0, 0, 0.9, 0]]\n";

    #[test]
    fn a_partition_is_told_with_its_nodes() {
        let told = of(SPLIT).expect("two nodes are cut off");
        assert!(
            told.starts_with(
                "no path of links leads from the root to nodes 2, 3, so they cannot join"
            ),
            "{told}"
        );
        assert!(!told.contains("single channels"), "{told}");
    }

    #[test]
    fn links_that_events_make_are_not_foretold() {
        let event = "[[event]]\nat = \"5min\"\nkind = \"link\"\nnode = 1\npeer = 2\npdr = 0.9\n";
        assert_eq!(of(&format!("{SPLIT}{event}")), None);
    }

    #[test]
    fn in_every_built_in_scenario_all_nodes_can_join() {
        for builtin in BUILTINS {
            let scenario = Scenario::load(builtin.name, &[]).expect("built in");
            assert_eq!(warning(&scenario), None, "{}", builtin.name);
        }
    }

    #[test]
    fn long_lists_end_with_a_number() {
        let numbers: Vec<String> = (1..=22).map(|number| number.to_string()).collect();
        assert!(listed(&numbers).ends_with("19, 20 and 2 more"));
        assert_eq!(listed(&numbers[..2]), "1, 2");
    }
}
