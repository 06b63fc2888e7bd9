//! All figures of made-up results: well-formed, complete, the same each time.

use std::collections::BTreeSet;

use super::made_up::results;
use super::*;
use crate::detail::{DatagramTimeline, Detail, HopLatencies, Kind, Received, Step, Transfer};
use crate::results::Results;

fn sweep() -> Results {
    results(
        &[
            ("coap.congestion", &["default", "cocoa", "6cocoa"]),
            ("schedule.function", &["b-msf", "alice", "orchestra"]),
            ("traffic.period", &["2s", "5s", "10s"]),
        ],
        3,
    )
}

/// Reads every element of an SVG file and follows opening and closing tags.
fn check_well_formed(svg: &str) {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let (width, height): (f64, f64) = ["width", "height"]
        .map(|side| root.attribute(side).and_then(|text| text.parse().ok()).expect("a side"))
        .into();
    for text in root.descendants().filter(|node| node.has_tag_name("text")) {
        let place = |axis| text.attribute(axis).and_then(|text| text.parse::<f64>().ok());
        let (x, y) = (place("x").expect("a place"), place("y").expect("a place"));
        assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{text:?}");
    }
}

#[test]
fn every_figure_of_a_sweep_is_there_and_well_formed() {
    let figures = figures(&sweep().points, &[]);
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "lines-tdr",
            "lines-delay-p95-ms",
            "lines-delay-p50-ms",
            "lines-retransmissions-per-transaction",
            "lines-pdr-up",
            "lines-duty-cycle",
            "delay-distribution",
            "delay-by-hops",
            "drops",
            "rtt-rto",
            "topology-1",
            "schedule-1",
            "schedule-2",
            "schedule-3",
        ]
    );
    for figure in &figures {
        check_well_formed(&figure.to_svg());
        assert!(!figure.to_svg().contains("NaN"), "{}", figure.name);
        assert!(!figure.data.rows.is_empty(), "{}", figure.name);
        let columns = figure.data.columns.len();
        assert!(figure.data.rows.iter().all(|row| row.len() == columns), "{}", figure.name);
    }
}

#[test]
fn latencies_of_datagrams_have_a_curve_for_each_number_of_hops() {
    let mut results = results(&[("traffic.payload_bytes", &["64", "400"])], 2);
    for run in results.points.iter_mut().flat_map(|point| &mut point.runs) {
        let of = |hops: u32| {
            let ms = (0..=20_u8).map(|step| f32::from(step) * 10.0 * hops as f32 + 5.0).collect();
            HopLatencies { hops, n: 30, ms }
        };
        run.detail.latencies = vec![of(2), of(3)];
    }
    let figures = figures(&results.points, &[]);
    let figure = figures.iter().find(|figure| figure.name == "latency-by-hops");
    let figure = figure.expect("datagrams arrived");
    check_well_formed(&figure.to_svg());
    // Two panels, two numbers of hops, 21 percentiles; the median of three hops.
    assert_eq!(figure.data.rows.len(), 2 * 2 * 21);
    let median = ["400", "3", "50", "305"].map(str::to_owned);
    assert!(figure.data.rows.contains(&median.to_vec()), "{:?}", figure.data.rows);
}

#[test]
fn transfers_have_boxes_and_single_runs() {
    let keys: &[(&str, &[&str])] = &[
        ("tcp.window", &["newreno", "bbr"]),
        ("link[0].queue_octets", &["2500", "14100", "28200"]),
    ];
    let mut results = results(keys, 8);
    for point in &mut results.points {
        for run in &mut point.runs {
            // Seven runs of 41 to 47 s, and one far beyond the whisker.
            let seconds = if run.seed.0 == 8 { 200.0 } else { 40.0 + run.seed.0 as f64 };
            run.metrics.transfers.completion_s = Some(seconds);
            let steps = (1..=40_u8).map(|i| (30.0 + f32::from(i), u32::from(i) * 10)).collect();
            let client = Received { node: 2, issued_s: 30.0, steps };
            let queue = vec![(30.0, 0), (31.0, 2_400), (70.0, 0)];
            run.detail.transfer = Some(Transfer { clients: vec![client], queue });
        }
    }
    let figures = figures(&results.points, &[]);
    let boxes = figures.iter().find(|one| one.name == "completion-boxes").expect("boxes");
    check_well_formed(&boxes.to_svg());
    assert_eq!(boxes.data.rows.len(), 6);
    // Nearest ranks of 41 to 47 and 200: the quartiles are the second, fourth and sixth value.
    assert_eq!(boxes.data.rows[0][3..], ["41", "42", "44", "46", "47", "8"]);
    let singles = figures.iter().find(|one| one.name == "transfers").expect("single runs");
    check_well_formed(&singles.to_svg());
    assert_eq!(singles.data.rows.len(), 6 * (40 + 3));
    assert!(figures.iter().all(|one| !one.to_svg().contains("NaN")));
}

#[test]
fn timelines_of_fragments_have_a_mark_for_each_event_and_lines_for_window_and_gap() {
    let mut results = results(&[("fragments.window", &["abe", "quic"])], 2);
    let step = |t_ms: f32, kind: Kind, window: u32| {
        let gap_ms = t_ms / 10.0;
        Step { t_ms, kind, fragments: 1, window, gap_ms }
    };
    let steps = vec![
        step(0.0, Kind::Sent, 2),
        step(170.0, Kind::Sent, 2),
        step(400.0, Kind::Acked, 3),
        step(400.0, Kind::Lost, 1),
        step(410.0, Kind::Resent, 1),
        step(2910.0, Kind::TimedOut, 1),
        step(2920.0, Kind::Restarted, 2),
        step(3000.0, Kind::Marked, 2),
        step(3001.0, Kind::Ended, 2),
    ];
    let timeline =
        |delivered| DatagramTimeline { node: 5, delivered, start_s: 12.5, steps: steps.clone() };
    for run in results.points.iter_mut().flat_map(|point| &mut point.runs).skip(1) {
        run.detail.timelines = vec![timeline(true), timeline(false)];
    }
    let figures = figures(&results.points, &[]);
    let figure = figures.iter().find(|figure| figure.name == "fragment-timeline");
    let figure = figure.expect("timelines are there");
    let svg = figure.to_svg();
    check_well_formed(&svg);
    // Two endings of two windows; restart and end have no row.
    assert_eq!(figure.data.rows.len(), 4 * steps.len());
    assert_eq!(svg.matches(" edge\"").count(), 4 * 7);
    assert!(svg.contains(">quic: node 5, given up<") && svg.contains(">abe: node 5, delivered<"));
    // The first point's first run has none, so its second stands for it.
    let row = ["abe", "2", "5", "delivered", "12.5", "400", "acked", "1", "3", "40"];
    assert_eq!(figure.data.rows[2], row);
    assert_eq!(figure.data.rows[2 * steps.len()][..2], ["quic", "1"]);
}

#[test]
fn one_point_alone_has_no_lines_over_a_key() {
    let names: Vec<String> =
        figures(&results(&[], 2).points, &[]).into_iter().map(|f| f.name).collect();
    let all =
        ["delay-distribution", "delay-by-hops", "drops", "rtt-rto", "topology-1", "schedule-1"];
    assert_eq!(names, all);
}

#[test]
fn figures_of_single_points_show_every_name_of_an_axis_of_names() {
    let results = results(&[("schedule.function", &["msf", "b-msf"])], 2);
    let figures = main_figures(&results.points, &[]);
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["lines-tdr", "lines-delay-p95-ms", "drops"]);
    let bars: Vec<&str> = figures[2].data.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(bars, ["msf", "msf", "b-msf", "b-msf"]);
}

#[test]
fn a_mark_leads_to_its_point() {
    let results = results(&[("traffic.period", &["2s", "4s"])], 2);
    let figure = &main_figures(&results.points, &[])[0];
    let anchors: Vec<String> = results.points.iter().map(PointResult::anchor).collect();
    assert_eq!(figure.data.anchors, anchors);
    for anchor in anchors {
        assert!(figure.to_inline().contains(&format!("<a href=\"#{anchor}\">")), "{anchor}");
    }
    check_well_formed(&figure.to_svg());
}

#[test]
fn differences_are_paired_with_the_value_that_was_taken() {
    let points = results(
        &[("radio.noise_dbm", &["-81.6", "-80.0"]), ("coap.congestion", &["default", "cocoa"])],
        3,
    )
    .points;
    let values = |at: usize| points[at].values("tdr");
    let pairs: Vec<(f64, f64)> = values(0).into_iter().zip(values(2)).collect();
    let (key, taken) = ("radio.noise_dbm".to_owned(), "-81.6".to_owned());
    let found = crate::claims::Sensitivity { points: points.clone(), key, taken };
    let figure = differences::draw(&found).expect("common seeds");
    check_well_formed(&figure.to_svg());
    assert!(figure.title.ends_with("compared with noise -81.6 dBm"), "{}", figure.title);
    assert_eq!(figure.data.rows.len(), 4, "two metrics of two congestion controls");
    let row = &figure.data.rows[0];
    assert_eq!(row[..3], ["default", "-80.0", "tdr"]);
    let mean = pairs.iter().map(|(a, b)| b - a).sum::<f64>() / 3.0;
    assert_eq!((row[5].as_str(), row[7].as_str()), (Data::number(Some(mean)).as_str(), "3"));
    assert_eq!(figure.data.anchors[0], points[2].anchor());
    // Without a common seed there is nothing to subtract.
    let mut apart = found;
    for run in apart.points[2..].iter_mut().flat_map(|point| &mut point.runs) {
        run.seed.0 += 100;
    }
    assert_eq!(differences::draw(&apart), None);
}

#[test]
fn figures_without_data_are_left_out() {
    let mut results = sweep();
    for run in results.points.iter_mut().flat_map(|point| &mut point.runs) {
        run.metrics = crate::metrics::Metrics::default();
        run.metrics.tdr = Some(f64::NAN);
        run.detail = Detail::default();
    }
    assert_eq!(figures(&results.points, &[]), []);
}

#[test]
fn a_band_has_the_ends_of_the_interval() {
    let figures = figures(&sweep().points, &[]);
    let svg = figures[0].to_svg();
    assert_eq!(svg.matches("class=\"band f0\"").count(), 3, "one in each of three panels");
    let rows = &figures[0].data.rows;
    assert_eq!(rows.len(), 27);
    assert!(rows.iter().all(|row| row[5] == "3" && !row[4].is_empty()));
}

#[test]
fn a_field_that_a_csv_reader_would_split_is_quoted() {
    let mut data = Data::new(&["a", "b"]);
    data.rows.push(vec!["1, \"2\"".to_owned(), String::new()]);
    assert_eq!(data.to_csv(), "a,b\n\"1, \"\"2\"\"\",\n");
    assert_eq!([0.25, 100.0, 1e-9].map(|n| Data::number(Some(n))), ["0.25", "100", "0"]);
    assert_eq!(Data::number(Some(f64::NAN)), "");
}

/// The levels of a claim `C` with these tests.
fn levels(tests: &str) -> Vec<Level> {
    let head = "id = \"C\"\ngrade = \"hard\"\nkind = \"number\"\nbasis = \"finding\"\nplace = \"\"\ntext = \"\"\nclaimed = \"\"\n";
    let claim: crate::claims::Claim = toml::from_str(&format!("{head}{tests}")).expect("a claim");
    Level::of(&claim).collect()
}

fn tdr_figure(results: &Results, levels: &[Level]) -> Figure {
    let figure =
        main_figures(&results.points, levels).into_iter().next().expect("the TDR is there");
    assert_eq!(figure.name, "lines-tdr");
    check_well_formed(&figure.to_svg());
    figure
}

/// The rows of published levels: panel, series, x, low, high, stated.
fn published_rows(figure: &Figure) -> Vec<[&str; 6]> {
    let rows = figure.data.rows.iter().filter(|row| row.get(6).is_some_and(|claim| claim == "C"));
    rows.map(|row| [0, 1, 2, 7, 8, 9].map(|column| row[column].as_str())).collect()
}

#[test]
fn a_published_range_is_a_bracket_at_the_x_places_and_in_the_panels_that_its_claim_names() {
    let levels = levels(
        "[[test]]\nop = \"between\"\nmetric = \"tdr\"\nlow = 0.5\nhigh = 0.6\nvalue = 0.55\n\
         at = { \"schedule.function\" = [\"alice\"], \"coap.congestion\" = [\"cocoa\"], \"traffic.period\" = [\"2s\", \"10s\", \"60s\"] }",
    );
    let results = sweep();
    let (plain, figure) = (tdr_figure(&results, &[]), tdr_figure(&results, &levels));
    // No point was run at 60 s, so nothing stands there.
    let row = |x| ["alice", "cocoa", x, "0.5", "0.6", "0.55"];
    assert_eq!(published_rows(&figure), [row("2s"), row("10s")]);
    assert_eq!(figure.data.columns[6..], ["claim", "low", "high", "stated"]);
    let width = figure.data.columns.len();
    assert!(figure.data.rows.iter().all(|row| row.len() == width));
    let svg = figure.to_inline();
    let tip = "<a href=\"#C\"><title>C, published: tdr 0.5 to 0.6, stated 0.55 (cocoa)</title>";
    assert_eq!(svg.matches(tip).count(), 2);
    assert_eq!(svg.matches(">C: cocoa</text>").count(), 1, "the claim is named once in a panel");
    assert!(svg.contains(">published</text>") && !plain.to_inline().contains("published"));
    assert!(!svg.contains(" across"), "a level at points is not one of the whole panel");
    assert!(
        figure.caption.starts_with(&plain.caption) && figure.caption.contains("a claim states")
    );
    // Our runs end at 0.85; the axis goes down to the level.
    assert!(svg.contains(">0.50</text>") || svg.contains(">0.5</text>"), "{svg}");
    assert!(!plain.to_inline().contains(">0.5"));
}

#[test]
fn a_published_bound_without_an_x_place_goes_across_every_panel_it_agrees_with() {
    let levels = levels(
        "[[test]]\nop = \"lt\"\nmetric = \"tdr\"\nvalue = 0.7\nat = { \"schedule.function\" = [\"alice\", \"b-msf\"] }",
    );
    let figure = tdr_figure(&sweep(), &levels);
    let all = "default; cocoa; 6cocoa";
    let row = |panel| [panel, all, "", "", "0.7", ""];
    assert_eq!(published_rows(&figure), [row("b-msf"), row("alice")]);
    let svg = figure.to_inline();
    assert_eq!(svg.matches("class=\"level across\"").count(), 2);
    assert_eq!(svg.matches("<title>C, published: tdr below 0.7 (").count(), 2);
    assert_eq!(svg.matches(">C</text>").count(), 2, "all curves are meant, so none is named");
}

#[test]
fn a_level_of_another_metric_or_of_points_that_were_not_run_leaves_the_figure_as_it_is() {
    let results = results(&[("traffic.period", &["2s", "4s"])], 2);
    let plain = tdr_figure(&results, &[]);
    for test in [
        "metric = \"pdr_up\"",
        "metric = \"tdr\"\nat = { \"traffic.period\" = [\"60s\"] }",
        "metric = \"tdr\"\nat = { scenario = [\"grid-64\"] }",
    ] {
        let levels = levels(&format!("[[test]]\nop = \"lt\"\nvalue = 0.2\n{test}"));
        assert_eq!(levels.len(), 1);
        assert_eq!(tdr_figure(&results, &levels), plain, "{test}");
    }
}

#[test]
fn levels_at_one_place_stand_side_by_side_and_their_names_one_above_the_other() {
    let results = results(&[("traffic.period", &["2s", "4s", "6s"])], 2);
    let test = |low: f64| {
        format!(
            "[[test]]\nop = \"between\"\nmetric = \"tdr\"\nlow = {low}\nhigh = 0.8\nat = {{ \"traffic.period\" = [\"2s\"] }}\n"
        )
    };
    let mut levels = levels(&[0.5, 0.6, 0.7].map(test).concat());
    for level in &mut levels {
        level.claim = "S000-01".to_owned();
    }
    let figure = tdr_figure(&results, &levels);
    let svg = format!("<svg>{}</svg>", figure.to_inline());
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let named = |name: &'static str, class: &'static str| {
        let is = move |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name(name) && node.attribute("class") == Some(class)
        };
        document.descendants().filter(is)
    };
    let names: BTreeSet<&str> =
        named("text", "tiny halo").filter_map(|text| text.attribute("y")).collect();
    assert_eq!(names.len(), 3, "{svg}");
    let upright = |line: roxmltree::Node<'_, '_>| {
        line.attribute("points").map(|points| points.split(',').next().map(str::to_owned))
    };
    let in_panel =
        |line: &roxmltree::Node<'_, '_>| line.parent().is_some_and(|p| p.has_tag_name("a"));
    let signs: BTreeSet<_> =
        named("polyline", "level").filter(in_panel).filter_map(upright).collect();
    assert_eq!(signs.len(), 3, "{svg}");
}

#[test]
fn a_metric_in_milliseconds_has_its_level_in_the_unit_of_the_axis() {
    let results = results(&[("traffic.period", &["2s", "4s"])], 2);
    let levels = levels(
        "[[test]]\nop = \"gt\"\nmetric = \"delay_p95_ms\"\nvalue = 9000.0\nat = { \"traffic.period\" = [\"4s\"] }",
    );
    let figure = &main_figures(&results.points, &levels)[1];
    assert_eq!(published_rows(figure), [["", "", "4s", "9000", "", ""]]);
    assert!(figure.to_inline().contains(">10</text>"), "the axis is in seconds and has the level");
}
