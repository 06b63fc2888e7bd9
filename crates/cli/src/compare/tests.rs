//! The verb on small summaries whose differences are known.

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
fn values_of_a_key_are_compared_with_the_first() {
    let scratch = Scratch::new("by");
    let file = scratch.write("summary.json", &summary(&SWEPT));
    let (result, text) = compare(&format!("{file} --by coap.congestion"));
    assert!(result.is_ok(), "{result:?}");
    assert!(text.starts_with("coap.congestion: default to 6cocoa\n"), "{text}");
    let row: Vec<&str> = text.lines().nth(3).expect("a row").split_whitespace().collect();
    assert_eq!(row, ["tdr", "0.5000", "0.7000", "+0.2000", "±", "0.2484", "3"], "{text}");
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
    let b =
        scratch.write("b.json", &summary(&[("6cocoa", [0.61, 0.81, 0.71]), ("fixed", [0.0; 3])]));
    let (result, text) = compare(&format!("{a} {b}"));
    assert!(result.is_ok(), "{result:?}");
    assert!(text.starts_with("A to B at coap.congestion = 6cocoa\n"), "{text}");
    assert!(text.contains("+0.0100  ± 0.0000      3  *"), "{text}");
    assert!(!text.contains("fixed"), "{text}");
}

#[test]
fn chosen_points_are_compared_whatever_their_settings() {
    let scratch = Scratch::new("where");
    let a = scratch.write("a.json", &summary(&SWEPT[..1]));
    let b = scratch.write("b.json", &summary(&SWEPT));
    let (result, text) = compare(&format!("{a} {b} --where coap.congestion=6cocoa"));
    assert!(matches!(result, Err(Failure::Usage { .. })), "{text}");
    let (result, text) = compare(&format!("{a} {b} --where coap.congestion=default"));
    assert!(result.is_ok() && text.contains("+0.0000"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let scratch = Scratch::new("refused");
    let file = scratch.write("summary.json", &summary(&SWEPT));
    for line in [
        "none/summary.json --by coap.congestion".to_owned(),
        format!("{file} --by mac.retries"),
        format!("{file} --by coap.congestion --baseline cocoa"),
    ] {
        let (result, text) = compare(&line);
        assert!(matches!(result, Err(Failure::Usage { .. })), "{line}");
        assert_eq!(text, "");
    }
}
