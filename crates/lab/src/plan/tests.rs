//! What users see of sweeps: which points they make, and what is said about wrong ones.

use super::*;

fn plan(text: &str, overrides: &[&str]) -> Plan {
    let overrides: Vec<String> = overrides.iter().map(|&flag| flag.to_owned()).collect();
    Plan::parse("my.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|&flag| flag.to_owned()).collect();
    match Plan::parse("my.toml", text, &overrides) {
        Ok(_) => "no error".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

fn settings(plan: &Plan) -> Vec<String> {
    let text = |point: &Point| -> Vec<String> {
        point.settings.iter().map(|(_, value)| value.clone()).collect()
    };
    plan.points.iter().map(|point| text(point).join(" ")).collect()
}

const TWO: &str = "name = \"x\"\nseeds = 2\n\n[sweep]\n\"traffic.period\" = \"2s..6s step 2s\"\n\
                   \"coap.congestion\" = [\"default\", \"6cocoa\"]\n";

#[test]
fn the_product_has_every_pair_and_the_last_key_moves_fastest() {
    let plan = plan(TWO, &[]);
    assert_eq!(
        settings(&plan),
        ["2s default", "2s 6cocoa", "4s default", "4s 6cocoa", "6s default", "6s 6cocoa"]
    );
    assert_eq!(plan.points[3].scenario.traffic.period.as_secs(), 4);
    assert_eq!(plan.points[3].scenario.coap.congestion.name(), "6cocoa");
    let keys: Vec<&str> = plan.points[3].settings.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["traffic.period", "coap.congestion"]);
}

#[test]
fn a_flag_for_each_zipped_key_leaves_one_point() {
    let text = "name = \"x\"\n[sweep]\nzip = true\n\"mac.retries\" = [5, 8]";
    let plan = Plan::parse("x", text, &["mac.retries=3".to_owned()]).expect("a scenario");
    assert_eq!((plan.points.len(), plan.is_sweep()), (1, false));
}

#[test]
fn zipped_lists_go_side_by_side() {
    let text = "name = \"x\"\n[sweep]\nzip = true\n\"topology.rows\" = [5, 8]\n\"topology.cols\" = \"5..8 step 3\"";
    assert_eq!(settings(&plan(text, &[])), ["5 5", "8 8"]);
}

#[test]
fn a_scenario_without_a_sweep_is_one_point() {
    let plan = plan("name = \"x\"", &[]);
    assert_eq!((plan.points.len(), plan.is_sweep()), (1, false));
    assert_eq!(plan, Plan::single(plan.points[0].scenario.clone()));
}

#[test]
fn keys_may_be_written_dotted_or_as_sections() {
    let quoted = plan("name = \"x\"\n[sweep]\n\"mac.retries\" = [1, 2]", &[]);
    assert_eq!(plan("name = \"x\"\n[sweep]\nmac.retries = [1, 2]", &[]).points, quoted.points);
    assert_eq!(plan("name = \"x\"\n[sweep.mac]\nretries = [1, 2]", &[]).points, quoted.points);
    assert_eq!(plan("name = \"x\"", &["sweep.mac.retries=[1, 2]"]).points, quoted.points);
    assert_eq!(plan("name = \"x\"", &["sweep.mac.retries=1,2"]).points, quoted.points);
}

#[test]
fn a_flag_for_a_swept_key_fixes_it_and_a_flag_for_its_sweep_replaces_it() {
    assert_eq!(settings(&plan(TWO, &["traffic.period=9s"])), ["default", "6cocoa"]);
    let plan = plan(TWO, &["traffic.period=9s", "sweep.coap.congestion=cocoa,fixed"]);
    assert_eq!(settings(&plan), ["cocoa", "fixed"]);
    assert!(plan.points.iter().all(|point| point.scenario.traffic.period.as_secs() == 9));
}

#[test]
fn every_run_has_a_name_of_its_own_in_the_order_of_points_and_seeds() {
    let runs = plan(TWO, &[]).runs();
    let places: Vec<(usize, u64)> = runs.iter().map(|run| (run.point, run.seed.0)).collect();
    assert_eq!(places[..3], [(0, 1), (0, 2), (1, 1)]);
    let names: std::collections::BTreeSet<RunId> = runs.iter().map(|run| run.id).collect();
    assert_eq!((runs.len(), names.len()), (12, 12));
}

#[test]
fn shards_share_the_runs_without_overlap() {
    let runs = plan(TWO, &[]).runs();
    let of = |shard: &str| shard.parse::<Shard>().expect("a shard").of(runs.clone());
    let mut all = [of("1/5"), of("2/5"), of("3/5"), of("4/5"), of("5/5")].concat();
    all.sort_by_key(|run| (run.point, run.seed));
    assert_eq!(all, runs);
    assert_eq!(of("1/1"), runs);
    for wrong in ["0/2", "3/2", "1", "a/b", "1/0", ""] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

#[test]
fn a_plan_reads_back_from_its_text() {
    let plan = plan(TWO, &["mac.retries=3"]);
    let again = self::plan(&plan.to_toml(), &[]);
    assert_eq!(again.points, plan.points);
}

#[test]
fn a_plan_over_a_choice_reads_back_with_the_keys_of_every_choice() {
    let text = "name = \"x\"\n[topology]\nrows = 3\nnodes = 7\n\
                [sweep]\n\"topology.kind\" = [\"grid\", \"line\", \"star\"]";
    let plan = plan(text, &[]);
    let nodes: Vec<_> = plan.points.iter().map(|point| point.scenario.topology.nodes()).collect();
    assert_eq!(nodes[1..], [Some(7), Some(7)]);
    assert_eq!(self::plan(&plan.to_toml(), &[]).points, plan.points);
}

#[test]
fn a_swept_value_that_is_wrong_is_told_once_with_its_line() {
    assert_eq!(
        errors(&TWO.replace("6cocoa", "6cocao"), &[]),
        "my.toml:6:33: coap.congestion = \"6cocao\": must be one of default, cocoa, cocoa/table-2, \
         cocoa/paper-text, cocoa/draft-03, cocoa/ecoap, 6cocoa, fasor, rfc6298, fixed; did you mean `6cocoa`?"
    );
}

#[test]
fn a_swept_key_that_does_not_exist_is_told_with_the_one_that_was_meant() {
    let told = errors("name = \"x\"\n[sweep]\n\"mac.retires\" = [1, 2]", &[]);
    assert!(
        told.starts_with(
            "my.toml:3:18: mac.retires: there is no such key; did you mean `retries`?"
        ),
        "{told}"
    );
}

#[test]
fn a_misspelt_section_is_told_with_the_one_that_was_meant() {
    let told = errors("name = \"x\"\n[sweeep]\n\"mac.retries\" = [1, 2]", &[]);
    assert!(
        told.starts_with("my.toml:2:2: sweeep: there is no such key; did you mean `sweep`?"),
        "{told}"
    );
}

#[test]
fn a_value_that_is_no_list_is_told_with_what_it_must_be() {
    assert_eq!(
        errors("name = \"x\"\n[sweep]\n\"mac.retries\" = 3", &[]),
        "my.toml:3:17: sweep.mac.retries = 3: must be a list of values, or a range as \
         \"2s..20s step 2s\" or \"2..20 step 2\""
    );
    assert_eq!(
        errors("name = \"x\"\n[sweep]\n\"mac.retries\" = \"5..2 step 1\"", &[]),
        "my.toml:3:17: sweep.mac.retries = \"5..2 step 1\": must be a range as \"2..20 step 2\" or \
         \"2s..20s step 2s\", upwards and with a step above 0"
    );
    assert_eq!(
        errors("name = \"x\"\nsweep = 3", &[]),
        "my.toml:2:9: sweep = 3: must be a section of swept keys"
    );
}

#[test]
fn lists_that_cannot_be_zipped_are_told_with_their_lengths() {
    assert_eq!(
        errors(&TWO.replace("[sweep]", "[sweep]\nzip = true"), &[]),
        "my.toml: sweep.zip: lists must have the same length: traffic.period has 3, coap.congestion has 2"
    );
}

#[test]
fn a_value_that_stands_twice_is_told() {
    assert_eq!(
        errors("name = \"x\"\n[sweep]\n\"mac.retries\" = [3, 4, 3]", &[]),
        "my.toml:3:24: sweep.mac.retries: holds 3 twice"
    );
}

#[test]
fn seeds_and_names_are_not_swept() {
    assert_eq!(
        errors("name = \"x\"\n[sweep]\nseed = [1, 2]", &[]),
        "my.toml:3:8: sweep.seed: cannot be swept; every point has the same name and the same seeds"
    );
}

#[test]
fn values_that_do_not_go_together_are_told_with_their_point() {
    assert_eq!(
        errors("name = \"x\"\nwarmup = \"10min\"\n[sweep]\nduration = [\"5min\", \"1h\"]", &[]),
        "my.toml:2:10: warmup: 10min leaves nothing to measure of a duration of 5min (at duration = 5min)\n\
         my.toml: traffic.start: 6min is not before the end of the run at 5min (at duration = 5min)"
    );
}

#[test]
fn a_conflict_of_many_points_is_reported_once() {
    assert_eq!(
        errors("name = \"x\"\nwarmup = \"2h\"\n[sweep]\n\"mac.retries\" = [1, 2, 3]", &[]),
        "my.toml:2:10: warmup: 2h leaves nothing to measure of a duration of 1h"
    );
    assert_eq!(
        errors(
            "name = \"x\"\nwarmup = \"2h\"\n[sweep]\nduration = [\"1h\", \"3h\"]\n\"mac.retries\" = [1, 2]",
            &[]
        ),
        "my.toml:2:10: warmup: 2h leaves nothing to measure of a duration of 1h \
         (at duration = 1h, mac.retries = 1, and at 1 more point)"
    );
}

#[test]
fn errors_of_the_sweep_and_of_other_sections_are_reported_together() {
    let text = "name = \"x\"\n[mac]\nretrise = 3\nqueue_frames = 0\n[sweep]\n\"mac.retries\" = 3\nseed = [1]";
    let told = errors(text, &[]);
    let places: Vec<&str> = told.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places, ["my.toml:3:1", "my.toml:4:16", "my.toml:6:17", "my.toml:7:8"], "{told}");
}

#[test]
fn a_sweep_that_makes_too_many_points_is_refused_before_it_is_made() {
    let text = "name = \"x\"\n[sweep]\n\"mac.retries\" = \"0..1000\"\n\"coap.queue\" = \"0..1000\"";
    assert_eq!(errors(text, &[]), "my.toml: sweep: makes more than 100000 points");
}

#[test]
fn where_one_scenario_is_wanted_a_sweep_is_refused_with_its_line() {
    let told = Scenario::parse("my.toml", TWO, &[]).expect_err("a sweep").to_string();
    assert_eq!(
        told,
        "my.toml:4:1: sweep: the file sweeps many scenarios, and this command needs one"
    );
}
