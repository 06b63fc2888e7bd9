//! Which settings differ by default, and which were chosen.

use std::collections::BTreeSet;

use super::*;
use crate::plan::Plan;
use crate::scenario::{Fault, Rows, every_key};

fn plan(rest: &str, overrides: &[&str]) -> Plan {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let text = format!("name = \"x\"\n{rest}");
    Plan::parse("x", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn found(plan: &Plan) -> Vec<String> {
    let points = plan.points.iter().map(|point| (&point.settings, &point.scenario));
    of_points(points).iter().map(ToString::to_string).collect()
}

const TWO: &str = "sweep.schedule.function=msf,alice";

#[test]
fn functions_with_slotframes_of_other_lengths_are_found() {
    assert_eq!(
        found(&plan("", &[TWO])),
        [
            "schedule.negotiated_length = 101 (msf) against schedule.unicast_length = 29 (alice), slots from one cell of a \
             link to the next; to compare schedule.function alone: --set schedule.unicast_length=101",
            "schedule.minimal_length = 101 (msf) against schedule.broadcast_length = 31 (alice), slots from one cell for \
             broadcast to the next; to compare schedule.function alone: --set schedule.broadcast_length=101",
        ]
    );
}

#[test]
fn one_key_with_a_default_of_each_function_is_found() {
    let all = found(&plan("", &["sweep.schedule.function=b-msf,msf"]));
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(
        all.contains(
            &"schedule.autonomous_length = 31 (b-msf) against schedule.autonomous_length = 101 (msf); to compare \
              schedule.function alone: --set schedule.autonomous_length=31"
                .to_owned()
        ),
        "{all:?}"
    );
}

#[test]
fn the_printed_flags_leave_no_difference() {
    for functions in ["msf,alice", "b-msf,msf", "minimal,msf,msf/backlog,b-msf,alice,orchestra"] {
        let sweep = format!("sweep.schedule.function={functions}");
        let bare = plan("", &[&sweep]);
        let points = bare.points.iter().map(|point| (&point.settings, &point.scenario));
        let flags: Vec<String> = of_points(points).iter().flat_map(Unequal::flags).collect();
        let flags = flags.iter().filter_map(|flag| flag.strip_prefix("--set "));
        let overrides: Vec<&str> = std::iter::once(sweep.as_str()).chain(flags).collect();
        assert_eq!(found(&plan("", &overrides)), [""; 0], "{overrides:?}");
    }
}

#[test]
fn keys_that_were_swept_or_set_on_all_sides_are_not_reported() {
    let chosen = "[schedule]\nnegotiated_length = 47\nminimal_length = 51\nunicast_length = 23\nbroadcast_length = 21\n";
    assert_eq!(found(&plan(chosen, &[TWO])), [""; 0]);
    // Only one side was set; the other has its default.
    let one = found(&plan("[schedule]\nnegotiated_length = 47", &[TWO]));
    assert!(one[0].starts_with("schedule.negotiated_length = 47 (msf) against"), "{one:?}");
    // The same function everywhere: no choice differs.
    assert_eq!(found(&plan("", &["sweep.schedule.negotiated_length=29,101"])), [""; 0]);
    let swept = "[schedule]\n[sweep]\nzip = true\n\"schedule.function\" = [\"msf\", \"b-msf\"]\n\
                 \"schedule.negotiated_length\" = [101, 29]";
    let rest = found(&plan(swept, &[]));
    assert!(rest.iter().all(|line| !line.contains("negotiated_length")), "{rest:?}");
}

#[test]
fn pairs_of_one_function_say_nothing_of_another() {
    let plan = plan("", &[TWO, "sweep.mac.retries=3,4"]);
    let keys: Vec<Keys> = plan.points.iter().map(|point| point.scenario.keys()).collect();
    let swept = ["schedule.function".to_owned(), "mac.retries".to_owned()];
    let within = [(&keys[0], &keys[2]), (&keys[1], &keys[3])];
    let by_function: Vec<&str> =
        keys.iter().map(|keys| keys["schedule.function"].as_str()).collect();
    assert_eq!(by_function, ["msf", "alice", "msf", "alice"]);
    assert_eq!(of_pairs(&within, &swept), []);
    let across = [(&keys[0], &keys[1]), (&keys[2], &keys[3])];
    assert_eq!(of_pairs(&across, &swept).len(), 2);
}

#[test]
fn every_choice_and_every_named_quantity_is_a_key() {
    let known: BTreeSet<String> = every_key().into_iter().collect();
    assert!(CHOICES.iter().all(|choice| known.contains(*choice)));
    for quantity in &QUANTITIES {
        assert!(CHOICES.contains(&quantity.choice));
        for (chosen, key) in quantity.keys {
            let keys = defaults(quantity.choice, chosen)
                .expect("a function without keys that must be set");
            assert!(keys.contains_key(&format!("schedule.{key}")), "{chosen}: {key}");
        }
    }
}

#[test]
fn every_length_of_a_slotframe_is_compared() {
    // A length that only one function has cannot be compared.
    for function in Rows::default().functions.names() {
        let keys = defaults("schedule.function", function).expect("functions have defaults");
        for key in keys.keys().filter_map(|key| key.strip_prefix("schedule.")) {
            let named = QUANTITIES.iter().any(|quantity| quantity.keys.contains(&(function, key)));
            let shared = ["autonomous_length", "beacon_length", "root_length"].contains(&key);
            assert!(named || shared || !key.ends_with("_length"), "{function}: {key}");
        }
    }
}

#[test]
fn every_choice_that_decides_over_keys_is_listed() {
    let mut decide = BTreeSet::new();
    for key in every_key() {
        let set = format!("{key}=1");
        let Err(errors) = Scenario::parse("x", "name = \"x\"", &[set]) else { continue };
        for error in errors.0 {
            let Fault::ForeignKey { choice, .. } = &error.fault else { continue };
            let section = error.key.split_once('.').expect("a key of a section").0;
            let (choice, _) = choice.split_once(" = ").expect("a choice and its value");
            decide.insert(format!("{section}.{choice}"));
        }
    }
    assert_eq!(decide, CHOICES.iter().map(|&choice| choice.to_owned()).collect());
}
