//! Tests of the model that judges claims, with made-up runs.

use std::fmt::Write as _;

use super::*;
use crate::claims::select::tests::point;

const PAPER: &str = "name = \"x\"\ntitle = \"\"\nauthors = \"\"\nvenue = \"\"\nyear = 2000\ndoi = \"\"\n\
    [[sweep]]\nname = \"s\"\npurpose = \"\"\nfull = { set = [] }\n\
    [[sweep.part]]\nscenarios = [\"grid-25\"]\n";

/// A publication with one claim for each list of tests.
pub(super) fn paper(claims: &[&str]) -> Paper {
    let mut text = String::new();
    for (number, tests) in claims.iter().enumerate() {
        let probed = tests.contains("probe =") && !tests.contains("metric =");
        let basis = if probed { "setting" } else { "finding" };
        // Writing to a String cannot fail.
        _ = write!(
            text,
            "[[claim]]\nid = \"C{number}\"\ngrade = \"hard\"\nkind = \"ordering\"\nbasis = \"{basis}\"\nplace = \"\"\n\
             text = \"\"\nclaimed = \"\"\n{tests}\n"
        );
    }
    Paper::parse(PAPER, &text).unwrap_or_else(|error| panic!("{error}"))
}

fn evidence(points: Vec<PointResult>) -> Evidence {
    let sweeps = BTreeMap::from([("s".to_owned(), points)]);
    Evidence { sweeps, ..Evidence::default() }
}

fn verdict(tests: &str, points: Vec<PointResult>) -> Answer {
    let paper = paper(&[tests]);
    judge(&paper, &paper.claims[0], &evidence(points))
}

/// The verdict on the only claim of `paper`.
pub(super) fn verdict_of(paper: &Paper, points: Vec<PointResult>) -> Verdict {
    judge(paper, &paper.claims[0], &evidence(points)).verdict
}

const AB: &str = "[[claim.test]]\nop = \"gt\"\nmetric = \"tdr\"\nsweep = \"s\"\n\
    left = {cc = \"a\"}\nright = {cc = \"b\"}\n";

#[test]
fn an_ordering_is_decided_by_paired_differences() {
    // The two differ far less than runs of one of them do among each other.
    let points = vec![
        point(&[("cc", "a")], &[0.31, 0.62, 0.91]),
        point(&[("cc", "b")], &[0.30, 0.60, 0.90]),
    ];
    let answer = verdict(AB, points);
    assert_eq!(answer.verdict, Verdict::Undecided, "{}", answer.why);
    let points = vec![
        point(&[("cc", "a")], &[0.32, 0.62, 0.92]),
        point(&[("cc", "b")], &[0.30, 0.60, 0.90]),
    ];
    let answer = verdict(AB, points);
    assert_eq!(answer.verdict, Verdict::Reproduced, "{}", answer.why);
    assert_eq!(answer.n, 3);
    assert!(
        answer.why.contains("tdr a 0.62 ± 0.75, b 0.60 ± 0.75, difference 0.02"),
        "{}",
        answer.why
    );
}

#[test]
fn the_point_that_contradicts_most_is_told() {
    let points = vec![
        point(&[("cc", "a"), ("p", "1")], &[0.5, 0.5]),
        point(&[("cc", "b"), ("p", "1")], &[0.6, 0.6]),
        point(&[("cc", "a"), ("p", "2")], &[0.5, 0.5]),
        point(&[("cc", "b"), ("p", "2")], &[0.8, 0.8]),
        point(&[("cc", "a"), ("p", "3")], &[0.9, 0.9]),
        point(&[("cc", "b"), ("p", "3")], &[0.8, 0.8]),
    ];
    let answer = verdict(AB, points);
    assert_eq!(answer.verdict, Verdict::NotReproduced);
    let Measured::Number(shown) = answer.measured else { panic!("{answer:?}") };
    assert!((shown + 0.3).abs() < 1e-9);
    assert!(answer.why.starts_with("holds at 1 of 3, 2 fail; p 2:"), "{}", answer.why);
}

#[test]
fn a_share_of_the_points_can_be_enough() {
    let tests = format!("{AB}share = 0.5");
    let points = vec![
        point(&[("cc", "a"), ("p", "1")], &[0.5, 0.5]),
        point(&[("cc", "b"), ("p", "1")], &[0.6, 0.6]),
        point(&[("cc", "a"), ("p", "2")], &[0.9, 0.9]),
        point(&[("cc", "b"), ("p", "2")], &[0.8, 0.8]),
    ];
    assert_eq!(verdict(&tests, points.clone()).verdict, Verdict::Reproduced);
    let exists = AB.replace("\"gt\"", "\"exists\"");
    assert_eq!(verdict(&exists, points.clone()).verdict, Verdict::Reproduced);
    assert_eq!(verdict(AB, points).verdict, Verdict::NotReproduced);
}

#[test]
fn a_median_is_judged_by_its_interval_of_order_statistics() {
    // Nineteen runs near 0.5 and one far off: the mean of the sides is unclear, the median is not.
    let mut left: Vec<f64> = (0..20).map(|run| 0.5 + f64::from(run) * 1e-3).collect();
    let right: Vec<f64> = left.iter().map(|value| value - 0.1).collect();
    left[19] = -40.0;
    let points = vec![point(&[("cc", "a")], &left), point(&[("cc", "b")], &right)];
    assert_ne!(verdict(AB, points.clone()).verdict, Verdict::Reproduced);
    let answer = verdict(&format!("{AB}statistic = \"median\""), points.clone());
    assert_eq!(answer.verdict, Verdict::Reproduced, "{}", answer.why);
    let (low, high) = answer.interval.expect("twenty runs");
    assert!(low > 0.0 && high < 0.2 && answer.ci95.is_none(), "{answer:?}");
    assert!(answer.measured_words().contains(" to "), "{}", answer.measured_words());
    // Five runs of each side have no interval, so they decide nothing.
    let few = vec![point(&[("cc", "a")], &left[..5]), point(&[("cc", "b")], &right[..5])];
    let answer = verdict(&format!("{AB}statistic = \"median\""), few);
    assert_eq!((answer.verdict, answer.interval), (Verdict::Undecided, None));
}

#[test]
fn the_mean_of_several_medians_is_judged_by_the_ends_of_all() {
    let values =
        |shift: f64| -> Vec<f64> { (0..40).map(|run| shift + f64::from(run) * 1e-3).collect() };
    let points = vec![
        point(&[("cc", "a"), ("p", "1")], &values(0.9)),
        point(&[("cc", "b"), ("p", "1")], &values(0.5)),
        point(&[("cc", "a"), ("p", "2")], &values(0.4)),
        point(&[("cc", "b"), ("p", "2")], &values(0.5)),
    ];
    let tests = format!("{AB}statistic = \"median\"\n");
    let answer = verdict(&tests, points.clone());
    assert_eq!(answer.verdict, Verdict::NotReproduced, "one of two is lower");
    let answer = verdict(&format!("{tests}on_average = true"), points);
    assert_eq!(answer.verdict, Verdict::Reproduced, "{}", answer.why);
    let Measured::Number(mean) = answer.measured else { panic!("{answer:?}") };
    assert!((mean - 0.15).abs() < 1e-9, "{mean}");
}

#[test]
fn a_claim_without_runs_is_undecided() {
    let answer = verdict(AB, Vec::new());
    assert_eq!((answer.verdict, answer.measured), (Verdict::Undecided, Measured::Nothing));
    let paper = paper(&[AB]);
    let answer = judge(&paper, &paper.claims[0], &Evidence::default());
    assert_eq!(answer.why, "sweep `s` was not run");
}

#[test]
fn one_failed_test_contradicts_the_whole_claim() {
    let tests = format!("{AB}{}", AB.replace("\"gt\"", "\"lt\""));
    let points = vec![point(&[("cc", "a")], &[0.7, 0.7]), point(&[("cc", "b")], &[0.6, 0.6])];
    assert_eq!(verdict(&tests, points).verdict, Verdict::NotReproduced);
}

#[test]
fn a_curve_that_falls_with_certainty_does_not_rise() {
    let tests =
        "[[claim.test]]\nop = \"monotone_inc\"\nmetric = \"tdr\"\nsweep = \"s\"\nalong = \"p\"";
    let curve = |values: [[f64; 2]; 3]| {
        let places = ["2s", "4s", "10s"];
        let at = |(place, values): (&str, [f64; 2])| point(&[("p", place)], &values);
        places.into_iter().zip(values).map(at).collect::<Vec<_>>()
    };
    let rising = curve([[0.5, 0.5], [0.6, 0.6], [0.7, 0.7]]);
    assert_eq!(verdict(tests, rising).verdict, Verdict::Reproduced);
    let level = curve([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]);
    assert_eq!(verdict(tests, level).verdict, Verdict::Reproduced);
    let dip = curve([[0.5, 0.5], [0.4, 0.4], [0.7, 0.7]]);
    assert_eq!(verdict(tests, dip).verdict, Verdict::NotReproduced);
    let noise = curve([[0.7, 0.5], [0.4, 0.75], [0.6, 0.55]]);
    assert_eq!(verdict(tests, noise).verdict, Verdict::Undecided);
}

#[test]
fn orderings_are_compared_with_those_that_the_claim_was_made_for() {
    let same = "[[claim.test]]\nop = \"same_orderings\"\nsweep = \"s\"\nalong = \"length\"\n\
                claims = [\"C0\"]\nshare = 0.5";
    let first = AB.replace("sweep = \"s\"", "sweep = \"main\"");
    let base = PAPER.to_owned()
        + "[[sweep]]\nname = \"main\"\npurpose = \"\"\nfull = { set = [] }\n\
           [[sweep.part]]\nscenarios = [\"grid-25\"]\n";
    let head = "grade = \"hard\"\nkind = \"ordering\"\nbasis = \"finding\"\nplace = \"\"\ntext = \"\"\nclaimed = \"\"\n";
    let claims =
        format!("[[claim]]\nid = \"C0\"\n{head}{first}\n[[claim]]\nid = \"C1\"\n{head}{same}\n");
    let paper = Paper::parse(&base, &claims).unwrap_or_else(|error| panic!("{error}"));
    let pair = |length: &str, a: f64, b: f64| {
        let at = |cc, value| point(&[("cc", cc), ("length", length)], &[value, value]);
        [at("a", a), at("b", b)]
    };
    let mut evidence = evidence([pair("31", 0.6, 0.5), pair("47", 0.4, 0.5)].concat());
    let main = vec![point(&[("cc", "a")], &[0.9, 0.9]), point(&[("cc", "b")], &[0.8, 0.8])];
    evidence.sweeps.insert("main".to_owned(), main);
    let answer = judge(&paper, &paper.claims[1], &evidence);
    assert_eq!(answer.verdict, Verdict::Reproduced);
    assert!(answer.why.ends_with("different or undecided: C0 at 47"), "{}", answer.why);
}

#[test]
fn measured_data_can_be_the_reference() {
    let tests = "[[claim.test]]\nop = \"similar\"\nmetric = \"tdr\"\nsweep = \"s\"\n\
                 tolerance = 0.05\nreference = \"testbed\"";
    let paper = paper(&[tests]);
    let points = vec![point(&[("p", "1s")], &[0.910, 0.912])];
    let mut evidence = evidence(points);
    let answer = judge(&paper, &paper.claims[0], &evidence);
    assert_eq!(answer.why, "there is no table `testbed`");
    let table = Table::parse("p,tdr\n1s,0.93\n2s,0.1\n").expect("a table");
    evidence.tables.insert("testbed".to_owned(), table);
    assert_eq!(judge(&paper, &paper.claims[0], &evidence).verdict, Verdict::Reproduced);
    let table = Table::parse("p,tdr\n1000ms,0.3\n").expect("a table");
    evidence.tables.insert("testbed".to_owned(), table);
    assert_eq!(judge(&paper, &paper.claims[0], &evidence).verdict, Verdict::NotReproduced);
}

#[test]
fn formulae_of_the_built_in_publications_are_those_of_the_code() {
    let righetti: &[_] =
        &["S000-01", "S000-02", "S000-03", "S000-04", "S000-05", "S000-08", "S000-09"];
    let lenders: &[_] =
        &["S004-04", "S004-05", "S004-07", "S004-32", "S004-33", "S004-38", "S004-40"];
    let ishaq: &[_] = &[
        "S002-01", "S002-02", "S002-03", "S002-04", "S002-35", "S002-36", "S002-37", "S002-40",
        "S002-41", "S002-42",
    ];
    let pesola: &[_] = &["S003-20"];
    for (name, ids) in [
        ("righetti2023", righetti),
        ("lenders2021", lenders),
        ("ishaq2016", ishaq),
        ("pesola2020", pesola),
    ] {
        let paper = Paper::find(name).expect("built in");
        for id in ids {
            let claim = paper.claim(id).expect("it is there");
            let answer = judge(&paper, claim, &Evidence::default());
            assert_eq!(answer.verdict, Verdict::Reproduced, "{id}: {}", answer.why);
        }
    }
}

/// Twenty points at which `b` has .5 and `a` has .1 less; at the first `odd` of them `a` has `excess` more.
fn twenty(odd: usize, excess: [f64; 3]) -> Vec<PointResult> {
    let pair = |number: usize| {
        let more = if number < odd { excess } else { [-0.11, -0.09, -0.1] };
        let place = number.to_string();
        let runs = more.map(|more| 0.5 + more);
        [
            point(&[("cc", "a"), ("p", &place)], &runs),
            point(&[("cc", "b"), ("p", &place)], &[0.5, 0.5, 0.5]),
        ]
    };
    (0..20).flat_map(pair).collect()
}

#[test]
fn what_chance_makes_of_many_comparisons_decides_nothing() {
    // At each point .1 less, but for some: all but these show it, and these leave it open, until one is sure enough to
    // be one of twenty.
    let nowhere_more = AB.replace("\"gt\"", "\"le\"");
    // .03 +- .025 stands for itself, and not against 20: t(2) is 4.3 alone and 28 of all together.
    let little = [0.02, 0.03, 0.04];
    for odd in [1, 3, 20] {
        let answer = verdict(&nowhere_more, twenty(odd, little));
        assert_eq!(answer.verdict, Verdict::Undecided, "{}", answer.why);
        assert!(answer.why.contains("fail if each is judged alone"), "{}", answer.why);
    }
    assert_eq!(verdict(&nowhere_more, twenty(0, little)).verdict, Verdict::Reproduced);
    let much = [0.2999, 0.3, 0.3001];
    assert_eq!(verdict(&nowhere_more, twenty(1, much)).verdict, Verdict::NotReproduced);
    // Where each point has to show something, one that may be chance leaves it open.
    let everywhere_less = AB.replace("\"gt\"", "\"lt\"");
    assert_eq!(verdict(&everywhere_less, twenty(1, little)).verdict, Verdict::Undecided);
}

#[test]
fn one_falling_step_of_many_is_no_falling_curve() {
    let tests = "[[claim.test]]\nop = \"monotone_inc\"\nmetric = \"tdr\"\nsweep = \"s\"\n\
                 along = \"p\"\nvalue = 0.5\n";
    // Twenty points, each .03 above the one before, but for the eighth: .002 below, with that spread.
    let curve = |spread: f64| {
        let level = |number: usize| 0.03 * number as f64 - if number > 6 { 0.032 } else { 0.0 };
        let runs = |number: usize| {
            let spread = if number == 7 { spread } else { 0.0 };
            [-spread, 0.0, spread].map(|off| level(number) + off)
        };
        (0..20).map(|number| point(&[("p", &number.to_string())], &runs(number))).collect()
    };
    let answer = verdict(tests, curve(0.0));
    assert_eq!(answer.verdict, Verdict::NotReproduced, "without a spread: {}", answer.why);
    // The fall is .002 +- .0017, but +- .009 with eighteen others.
    let answer = verdict(tests, curve(0.0007));
    assert_eq!(answer.verdict, Verdict::Reproduced, "{}", answer.why);
    assert!(answer.why.starts_with("holds at 1 of 1, 0 of 19 steps fall"), "{}", answer.why);
}

#[test]
fn the_words_on_a_curve_count_what_the_verdict_counts() {
    let rises =
        "[[claim.test]]\nop = \"monotone_inc\"\nmetric = \"tdr\"\nsweep = \"s\"\nalong = \"p\"\n";
    // The last step is -.1 with t(2) = 9. It must exceed 7.6 among three contradictions, and 10.9 among six.
    let at = |place: &str, runs: [f64; 3]| point(&[("p", place)], &runs);
    let curve = vec![
        at("1", [0.4, 0.4, 0.4]),
        at("2", [0.6, 0.6, 0.6]),
        at("3", [0.480_75, 0.5, 0.519_25]),
    ];
    let one = verdict(rises, curve.clone());
    assert_eq!(one.verdict, Verdict::NotReproduced, "{}", one.why);
    assert!(one.why.starts_with("holds at 0 of 1, 1 fail, 1 of 2 steps fall"), "{}", one.why);
    let two = verdict(&rises.repeat(2), curve);
    assert_eq!(two.verdict, Verdict::Undecided, "{}", two.why);
    assert!(two.why.starts_with("holds at 0 of 1, 1 open, 0 of 2 steps fall"), "{}", two.why);
}

#[test]
fn rounding_makes_no_difference() {
    let points =
        vec![point(&[("cc", "a")], &[0.1 + 0.2, 0.1 + 0.2]), point(&[("cc", "b")], &[0.3, 0.3])];
    let higher = verdict(AB, points.clone());
    assert_eq!(higher.verdict, Verdict::NotReproduced, "equal is not higher: {}", higher.why);
    let no_higher = verdict(&AB.replace("\"gt\"", "\"le\""), points);
    assert_eq!(no_higher.verdict, Verdict::Reproduced, "{}", no_higher.why);
}
