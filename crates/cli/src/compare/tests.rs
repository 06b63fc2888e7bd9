//! The verb on small summaries whose differences are known.

use std::fs;

use clap::Parser as _;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A summary of a sweep over one key, each value with the tdr of seeds 1, 2 and 3.
fn summary(points: &[(&str, [f64; 3])]) -> String {
    let point = |(value, tdr): &(&str, [f64; 3])| {
        let runs: Vec<_> = (1..)
            .zip(tdr)
            .map(|(seed, tdr): (u64, &f64)| json!({ "seed": seed, "metrics": { "tdr": tdr } }))
            .collect();
        json!({ "settings": { "coap.congestion": value }, "runs": runs })
    };
    json!({ "schema": 1, "points": points.iter().map(point).collect::<Vec<_>>() }).to_string()
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lowmesh-compare-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the system's folder for temporary files is writable");
        Self(path)
    }
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("writable");
        path.to_str().expect("ASCII").to_owned()
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn compare(line: &str) -> (Result<(), Failure>, String) {
    let words = std::iter::once("compare").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).expect("the test's own line");
    let mut out = Vec::new();
    let result = execute(&line.args, &mut out);
    (result, String::from_utf8(out).expect("text"))
}

/// Differences .1, .2, .3: mean .2, standard error .1 / sqrt 3, t(2) = 4.3027, half width .2484.
const SWEPT: [(&str, [f64; 3]); 2] = [("default", [0.5, 0.6, 0.4]), ("6cocoa", [0.6, 0.8, 0.7])];

#[test]
fn sides_with_another_definition_of_delivery_are_told_apart() {
    let scratch = Scratch::new("definition");
    let side = |metrics: &Value| {
        json!({ "schema": 2, "runs": [{ "seed": 1, "metrics": metrics }] }).to_string()
    };
    let older = scratch.write("older.json", &side(&json!({ "tdr": 0.9 })));
    let newer = scratch.write("newer.json", &side(&json!({ "tdr": 0.8, "tdr_joined": 0.9 })));
    let warned = |a: &str, b: &str| {
        let (result, text) = compare(&format!("{a} {b} --json"));
        result.expect("both are summaries");
        text.contains("its tdr is the tdr_joined of the other side")
    };
    assert!(warned(&older, &newer) && warned(&newer, &older));
    assert!(!warned(&older, &older) && !warned(&newer, &newer));
}

#[test]
fn values_of_a_key_are_compared_with_the_first() {
    let scratch = Scratch::new("by");
    let file = scratch.write("summary.json", &summary(&SWEPT));
    let (result, text) = compare(&format!("{file} --by coap.congestion"));
    assert!(result.is_ok(), "{result:?}");
    assert!(text.starts_with("coap.congestion: default to 6cocoa\n"), "{text}");
    let row: Vec<&str> = text.lines().nth(3).expect("a row").split_whitespace().collect();
    assert_eq!(row, ["tdr", "0.50", "0.70", "+0.20", "±", "0.25", "3"], "{text}");
}

#[test]
fn a_baseline_of_ones_own_turns_the_sign() {
    let scratch = Scratch::new("baseline");
    let file = scratch.write("summary.json", &summary(&SWEPT));
    let (result, text) = compare(&format!("{file} --by coap.congestion --baseline 6cocoa --json"));
    assert!(result.is_ok(), "{result:?}");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON alone");
    assert_eq!(json["pairs"][0]["a"]["coap.congestion"], "6cocoa");
    let found = &json["pairs"][0]["differences"][0];
    assert!((found["difference"].as_f64().expect("a number") + 0.2).abs() < 1e-12);
    assert_eq!((&found["n"], &found["significant"]), (&3.into(), &false.into()));
}

#[test]
fn two_results_are_compared_at_equal_settings() {
    let scratch = Scratch::new("across");
    let a = scratch.write("a.json", &summary(&SWEPT));
    // Differences .1, .102, .101: t = .101 sqrt 3 / .001 = 175, p = 3.3e-5.
    let b =
        scratch.write("b.json", &summary(&[("6cocoa", [0.7, 0.902, 0.801]), ("fixed", [0.0; 3])]));
    let (result, text) = compare(&format!("{a} {b}"));
    assert!(result.is_ok(), "{result:?}");
    assert!(text.starts_with("A to B at coap.congestion = 6cocoa\n"), "{text}");
    assert!(text.contains(" 0.7000  0.8010     +0.1010  ± 0.0025      3  *"), "{text}");
    assert!(text.contains("\n* significant at 5 %, as one comparison\n"), "{text}");
    assert!(!text.contains("fixed"), "{text}");
}

/// Two points with the given values of metrics in ten runs each.
fn points(a: &[(&str, [f64; 10])], b: &[(&str, [f64; 10])]) -> String {
    let point = |value: &str, metrics: &[(&str, [f64; 10])]| {
        let run = |seed: usize| {
            let metrics: serde_json::Map<String, Value> = metrics
                .iter()
                .map(|(name, values)| ((*name).to_owned(), json!(values[seed])))
                .collect();
            json!({ "seed": seed, "metrics": metrics })
        };
        json!({ "settings": { "mac.retries": value }, "runs": (0..10).map(run).collect::<Vec<_>>() })
    };
    json!({ "schema": 2, "points": [point("3", a), point("4", b)] }).to_string()
}

/// Values round `mean` that differ from run to run.
fn about(mean: f64) -> [f64; 10] {
    [0.9, 1.1, 1.3, 0.7, 1.0, 1.2, 0.8, 1.15, 0.85, 1.0].map(|share| mean * share)
}

#[test]
fn rows_of_zeros_are_hidden_and_counted_and_shown_when_asked_for() {
    let scratch = Scratch::new("zeros");
    let mostly = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let a = [
        ("tdr", about(0.5)),
        ("fallbacks", [0.0; 10]),
        ("marks_set", [0.0; 10]),
        ("nodes", [24.0; 10]),
    ];
    let b = [
        ("tdr", about(0.6)),
        ("fallbacks", [0.0; 10]),
        ("marks_set", mostly),
        ("nodes", [24.0; 10]),
    ];
    let file = scratch.write("summary.json", &points(&a, &b));
    let text = compare(&format!("{file} --by mac.retries")).1;
    assert!(!text.contains("fallbacks") && text.contains("marks_set"), "{text}");
    assert!(
        text.contains("\n1 row is hidden: zero on both sides in all runs (--metrics shows it)\n"),
        "{text}"
    );
    // Equal in all runs: no sign, no star.
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("a row");
        line.split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(row("nodes"), ["nodes", "24", "24", "0", "±", "0", "10"]);
    let asked = compare(&format!("{file} --by mac.retries --metrics fallbacks")).1;
    let asked_row: Vec<&str> = asked.lines().nth(3).expect("a row").split_whitespace().collect();
    assert_eq!(asked_row, ["fallbacks", "0", "0", "0", "±", "0", "10"]);
    assert!(!asked.contains("hidden") && !asked.contains('*'), "{asked}");
}

#[test]
fn stars_are_corrected_for_all_rows_that_are_shown() {
    let scratch = Scratch::new("family");
    // Alone: t(9) = 2.30, p = 0.047. Among three comparisons that is not significant.
    let lucky = [0.6, -0.2, 0.5, 0.1, 0.4, -0.1, 0.3, 0.0, 0.4, 0.0];
    let moved = |values: [f64; 10]| {
        let mut moved = about(1.0);
        moved.iter_mut().zip(values).for_each(|(value, by)| *value += by);
        moved
    };
    let a = [("tdr", about(1.0)), ("pdr_up", about(1.0)), ("duty_cycle", about(1.0))];
    let b = [("tdr", moved(lucky)), ("pdr_up", about(2.0)), ("duty_cycle", about(1.0))];
    let file = scratch.write("summary.json", &points(&a, &b));
    let starred = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.ends_with('*'));
        lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    };
    let all = compare(&format!("{file} --by mac.retries")).1;
    assert_eq!(starred(&all), ["pdr_up"], "{all}");
    assert!(all.contains("corrected for 3 comparisons (Holm)"), "{all}");
    assert!(
        all.contains("1 more interval excludes zero; with 3 comparisons this can be chance"),
        "{all}"
    );
    let one = compare(&format!("{file} --by mac.retries --metrics tdr")).1;
    assert_eq!(starred(&one), ["tdr"], "{one}");

    let json = compare(&format!("{file} --by mac.retries --json")).1;
    let json: Value = serde_json::from_str(&json).expect("JSON alone");
    assert_eq!((&json["schema"], &json["comparisons"]), (&2.into(), &3.into()));
    let tdr = &json["pairs"][0]["differences"][0];
    assert_eq!((&tdr["significant"], &tdr["significant_holm"]), (&true.into(), &false.into()));
    let (p, p_holm) = (tdr["p"].as_f64().expect("p"), tdr["p_holm"].as_f64().expect("p"));
    assert!(p < 0.05 && (p_holm - 2.0 * p).abs() < 1e-12, "{tdr}");
}

#[test]
fn functions_whose_slotframes_differ_by_default_give_a_warning() {
    let scratch = Scratch::new("unequal");
    let text = summary(&SWEPT)
        .replace("coap.congestion", "schedule.function")
        .replace("6cocoa", "alice")
        .replace("default", "msf");
    let file = scratch.write("summary.json", &text);
    let warnings = || -> Vec<String> {
        let (result, text) = compare(&format!("{file} --by schedule.function --json"));
        assert!(result.is_ok(), "{result:?}");
        let json: Value = serde_json::from_str(&text).expect("JSON alone");
        let text = |warning: &Value| warning["text"].as_str().expect("a text").to_owned();
        json["warnings"].as_array().expect("a list").iter().map(text).collect()
    };
    let unknown = warnings();
    assert!(matches!(unknown.as_slice(), [one] if one.contains("no scenario.toml")), "{unknown:?}");
    let scenario = "name = \"x\"\n[sweep]\n\"schedule.function\" = [\"msf\", \"alice\"]\n";
    scratch.write("scenario.toml", scenario);
    let found = warnings();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with(
            "schedule.negotiated_length = 101 (msf) against schedule.unicast_length = 29 (alice)"
        ),
        "{found:?}"
    );
    let fair = "[schedule]\nunicast_length = 101\nbroadcast_length = 101\n";
    scratch.write("scenario.toml", &format!("name = \"x\"\n{fair}{}", &scenario[11..]));
    assert_eq!(warnings(), [""; 0]);
}

#[test]
fn chosen_points_are_compared_whatever_their_settings() {
    let scratch = Scratch::new("where");
    let a = scratch.write("a.json", &summary(&SWEPT[..1]));
    let b = scratch.write("b.json", &summary(&SWEPT));
    let (result, text) = compare(&format!("{a} {b} --where coap.congestion=6cocoa"));
    assert!(matches!(result, Err(Failure::Usage { .. })), "{text}");
    let (result, text) = compare(&format!("{a} {b} --where coap.congestion=default"));
    assert!(result.is_ok() && text.contains("0.5000  0.5000      0.0000"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_was_meant() {
    let scratch = Scratch::new("refused");
    let file = scratch.write("summary.json", &summary(&SWEPT));
    let other =
        scratch.write("other.json", &summary(&SWEPT).replace("coap.congestion", "mac.kind"));
    let apart = scratch.write("apart.json", &summary(&[("fixed", [0.5; 3]), ("cocoa", [0.5; 3])]));
    let swept = format!("the keys swept in {file} are coap.congestion");
    let values = "its values there are default, 6cocoa";
    for (line, message, hint) in [
        (
            format!("{file} --by mac.retries"),
            format!("mac.retries was not swept in {file}"),
            swept.as_str(),
        ),
        (
            format!("{file} --by coap.congestoin"),
            "there is no key coap.congestoin; did you mean `coap.congestion`?".to_owned(),
            &swept,
        ),
        (
            format!("{file} --by mac.retrys"),
            "there is no key mac.retrys; did you mean `mac.retries`?".to_owned(),
            &swept,
        ),
        (
            format!("{file} --by coap.congestion --baseline cocoa"),
            format!("coap.congestion = cocoa was not run in {file}; did you mean `6cocoa`?"),
            values,
        ),
        (
            format!("{file} --by coap.congestion --where coap.congestion=fixed"),
            format!("coap.congestion = fixed was not run in {file}"),
            values,
        ),
        (
            format!("{file} --by coap.congestion --where mac.retries=3"),
            format!("mac.retries was not swept in {file}"),
            &swept,
        ),
        (
            format!("{file} --by coap.congestion --where coap.congestion=6cocoa"),
            "coap.congestion has one value at these points: 6cocoa".to_owned(),
            "a comparison needs two values",
        ),
        (
            format!("{file} {other}"),
            format!(
                "{file} sweeps coap.congestion, {other} sweeps mac.kind: no two points have equal settings"
            ),
            "--where KEY=VALUE chooses points; one point of A and one of B always form a pair",
        ),
        (
            format!("{file} {apart}"),
            format!("no point of {file} has the settings of a point of {apart}"),
            "--where KEY=VALUE chooses points; one point of A and one of B always form a pair",
        ),
        (
            format!("{file} --by coap.congestion --metrics hops_mean"),
            "no pair of runs has hops_mean".to_owned(),
            "a metric is absent if a run has no data for it",
        ),
    ] {
        let (result, text) = compare(&line);
        let Err(Failure::Usage { message: told, hint: Some(help) }) = result else {
            panic!("{line}: {result:?}")
        };
        assert_eq!((told, help.as_str(), text.as_str()), (message, hint, ""), "{line}");
    }
    let (result, _) = compare("none/summary.json --by coap.congestion");
    assert!(matches!(result, Err(Failure::Usage { .. })), "{result:?}");
}

#[test]
fn an_error_names_settings_that_no_point_combines_and_values_of_known_scenarios() {
    let scratch = Scratch::new("together");
    let point = |retries: &str, kind: &str| json!({ "settings": { "mac.retries": retries, "mac.kind": kind }, "runs": [] });
    let text =
        json!({ "schema": 2, "points": [point("3", "tsch"), point("4", "csma")] }).to_string();
    let file = scratch.write("summary.json", &text);
    let told = |line: &str| match compare(&format!("{file} {line}")).0 {
        Err(Failure::Usage { message, .. }) => message,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(
        told("--by mac.kind --where mac.retries=3 --where mac.kind=csma"),
        format!("no point of {file} has mac.retries = 3, mac.kind = csma together")
    );
    assert_eq!(told("--by mac.kind"), format!("no two points of {file} differ in mac.kind alone"));
    // A number is never suggested for another one, with or without a unit.
    assert_eq!(
        told("--by mac.kind --where mac.retries=5"),
        format!("mac.retries = 5 was not run in {file}")
    );
    let scenario = "name = \"x\"\n[sweep]\nzip = true\n\"mac.retries\" = [3, 4]\n\"mac.kind\" = [\"tsch\", \"csma\"]";
    scratch.write("scenario.toml", scenario);
    assert_eq!(
        told("--by coap.nstart"),
        format!("coap.nstart was not swept in {file}: it is 1 at every point")
    );
}
