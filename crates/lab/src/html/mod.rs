//! A report as one HTML page that needs nothing else: no network, no script, light and dark.
//!
//! The page is made from results alone, so the same results give the same bytes: it holds no date and no time
//! that a run took.

mod markup;

use std::fmt::Write as _;

use markup::{command, csv_link, quoted, table};

use crate::figures::sheet::escaped;
use crate::figures::style::STYLE;
use crate::figures::{Data, Figure, figures};
use crate::metrics::Metrics;
use crate::report::VERSION;
use crate::results::{PointResult, Results};

/// The commit that the program was built from, if the build was told (`LOWMESH_COMMIT`).
pub const COMMIT: Option<&str> = option_env!("LOWMESH_COMMIT");

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--soft:#666;--line:#ddd;--paper:#fff;--field:#f4f5f6;--link:#0067a3}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e4e4;--soft:#a0a4aa;--line:#383b40;--paper:#16181b;--field:#212429;--link:#6cb8ea}}\
body{font:16px/1.5 system-ui,'DejaVu Sans',Verdana,sans-serif;color:var(--ink);background:var(--paper);\
max-width:56rem;margin:2rem auto;padding:0 1rem}\
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}a{color:var(--link)}\
figure{margin:1.5rem 0 2.5rem}figure svg{max-width:100%;height:auto}figcaption{color:var(--soft);font-size:.9rem}\
h3{margin:0 0 .3rem}.wide{overflow-x:auto;max-height:30rem;overflow-y:auto}\
table{border-collapse:collapse;font-size:.88rem}th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid var(--line);\
white-space:nowrap;font-variant-numeric:tabular-nums}.n{text-align:right}\
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:.85rem;background:var(--field)}\
pre{padding:.8rem;overflow-x:auto}.cmd{display:block;padding:.4rem .7rem;user-select:all;white-space:pre-wrap;overflow-wrap:anywhere}\
.note{color:var(--soft);font-size:.9rem}summary{cursor:pointer}dt{font-weight:bold}dd{margin:0 0 .4rem}";

/// Where results come from, for the commands that make them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The scenario as it was given: a built-in name or a file.
    pub scenario: String,
    /// `--set` flags that were given, without those of the sweep.
    pub overrides: Vec<String>,
}

impl Provenance {
    /// The command that runs one point again, with all its seeds.
    pub fn command(&self, point: &PointResult) -> String {
        let mut words = format!("lowmesh run {}", quoted(&self.scenario));
        let swept = point.point.settings.iter().map(|(key, value)| format!("{key}={value}"));
        for set in self.overrides.iter().cloned().chain(swept) {
            // Writing to a String cannot fail.
            _ = write!(words, " --set {}", quoted(&set));
        }
        let head = &point.point.scenario.head;
        _ = write!(words, " --seeds {} --seed {}", head.seeds, head.seed);
        words
    }
}

/// A page, and its figures as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub html: String,
    /// Name and text of each SVG file.
    pub figures: Vec<(String, String)>,
}

/// Makes the page of `results`.
pub fn page(results: &Results, provenance: &Provenance) -> Page {
    let figures = figures(results);
    let title = escaped(&results.name);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}: report</title>\n\
         <style>{PAGE_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    html.push_str(&head(results));
    html.push_str(&summary(results));
    html.push_str("<h2>Figures</h2>\n");
    for figure in &figures {
        html.push_str(&figure_element(figure));
    }
    if figures.is_empty() {
        html.push_str("<p>No run finished, so there is nothing to draw.</p>\n");
    }
    html.push_str(&points(results, provenance));
    html.push_str(&failures(results));
    html.push_str(&parameters(results));
    html.push_str("</body>\n</html>\n");
    let figures = figures.iter().map(|f| (format!("{}.svg", f.name), f.to_svg())).collect();
    Page { html, figures }
}

/// What was run, with what, how often.
fn head(results: &Results) -> String {
    let mut html = String::new();
    let scenario = results.points.first().map(|point| &point.point.scenario);
    if let Some(scenario) = scenario.filter(|scenario| !scenario.head.description.is_empty()) {
        _ = writeln!(html, "<p>{}</p>", escaped(&scenario.head.description));
    }
    let runs: usize = results.points.iter().map(|point| point.runs.len()).sum();
    let failed: usize = results.points.iter().map(|point| point.failures.len()).sum();
    let seeds = results.points.iter().flat_map(|point| &point.runs).map(|run| run.seed.0);
    let range = seeds.fold(None, |range: Option<(u64, u64)>, seed| {
        let (low, high) = range.unwrap_or((seed, seed));
        Some((low.min(seed), high.max(seed)))
    });
    html.push_str("<dl>\n");
    let mut line = |name: &str, value: String| {
        _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    };
    line("Points", results.points.len().to_string());
    line(
        "Runs",
        if failed == 0 { runs.to_string() } else { format!("{runs}, and {failed} failed") },
    );
    if let Some((low, high)) = range {
        line("Seeds", format!("{low} to {high}"));
    }
    if let Some(scenario) = scenario {
        let head = &scenario.head;
        line(
            "A run",
            format!("{} of simulated time, measured from {} on", head.duration, head.warmup),
        );
    }
    line(
        "Program",
        format!("lowmesh {VERSION}{}", COMMIT.map_or(String::new(), |c| format!(", commit {c}"))),
    );
    html.push_str("</dl>\n");
    html
}

/// Metrics of the summary table of a sweep.
const SUMMARY: [&str; 6] = [
    "tdr",
    "pdr_up",
    "delay_p50_ms",
    "delay_p95_ms",
    "retransmissions_per_transaction",
    "duty_cycle",
];

/// All metrics of a single point, or the main ones of each point.
fn summary(results: &Results) -> String {
    let data = if let [point] = results.points.as_slice() {
        let mut data = Data::new(&["metric", "mean", "ci95", "n"]);
        for (name, _) in Metrics::default().numbers() {
            let estimate = point.estimate(name);
            data.rows.push(vec![
                name.to_owned(),
                rounded(estimate.map(|e| e.mean)),
                rounded(estimate.and_then(|e| e.ci95)),
                estimate.map_or(0, |e| e.n).to_string(),
            ]);
        }
        data
    } else {
        let keys: Vec<&str> = results.points.first().map_or_else(Vec::new, |point| {
            point.point.settings.iter().map(|(key, _)| key.as_str()).collect()
        });
        let mut data = Data::new(&keys);
        data.columns.extend(SUMMARY.map(ToOwned::to_owned));
        for point in &results.points {
            let setting = |key: &&str| point.setting(key).unwrap_or_default().to_owned();
            let mut row: Vec<String> = keys.iter().map(setting).collect();
            row.extend(SUMMARY.map(|metric| with_interval(point, metric)));
            data.rows.push(row);
        }
        data
    };
    let runs = csv_link(
        &runs(results),
        &format!("{}-runs.csv", file_name(&results.name)),
        "CSV of all runs",
    );
    format!(
        "<h2>Results</h2>\n<p class=\"note\">Means over the seeds with 95 % confidence intervals (Student's t). {runs}</p>\n{}",
        table(&data)
    )
}

/// "0.9812 ± 0.0041".
fn with_interval(point: &PointResult, metric: &str) -> String {
    let Some(estimate) = point.estimate(metric) else { return String::new() };
    let mean = rounded(Some(estimate.mean));
    estimate.ci95.map_or(mean.clone(), |half| format!("{mean} ± {}", rounded(Some(half))))
}

/// Four digits after the point for small numbers, one for large ones.
fn rounded(value: Option<f64>) -> String {
    let decimals = |value: f64| if value.abs() < 10.0 { 4 } else { 1 };
    value.map_or_else(String::new, |value| format!("{value:.*}", decimals(value)))
}

/// Every run with its settings, seed, hash and metrics.
fn runs(results: &Results) -> Data {
    let keys: Vec<&str> = results.points.first().map_or_else(Vec::new, |point| {
        point.point.settings.iter().map(|(key, _)| key.as_str()).collect()
    });
    let mut data = Data::new(&keys);
    data.columns.extend(["seed".to_owned(), "trace_hash".to_owned()]);
    data.columns.extend(Metrics::default().numbers().map(|(name, _)| name.to_owned()));
    for point in &results.points {
        for run in &point.runs {
            let setting = |key: &&str| point.setting(key).unwrap_or_default().to_owned();
            let mut row: Vec<String> = keys.iter().map(setting).collect();
            row.extend([run.seed.0.to_string(), format!("{:016x}", run.trace_hash)]);
            row.extend(run.metrics.numbers().map(|(_, value)| Data::number(value)));
            data.rows.push(row);
        }
    }
    data
}

fn figure_element(figure: &Figure) -> String {
    let Figure { name, title, caption, data, .. } = figure;
    let link = csv_link(data, &format!("{name}.csv"), &format!("{name}.csv"));
    format!(
        "<figure id=\"{name}\">\n<h3>{}</h3>\n{}<figcaption>{}</figcaption>\n\
         <details><summary>Data ({} rows)</summary>\n<p>{link}</p>\n{}</details>\n</figure>\n",
        escaped(title),
        figure.to_inline(),
        escaped(caption),
        data.rows.len(),
        table(data)
    )
}

/// The command of every point.
fn points(results: &Results, provenance: &Provenance) -> String {
    let mut html = "<h2>Run it again</h2>\n<p class=\"note\">One click selects a command. The same scenario, seed and \
                    version give the same trace hash on any machine. For one run alone, write \
                    <code>--seeds 1 --seed S</code>.</p>\n"
        .to_owned();
    let open = if results.points.len() <= 12 { " open" } else { "" };
    _ = writeln!(html, "<details{open}><summary>Commands of all points</summary>");
    for point in &results.points {
        let settings: Vec<_> =
            point.point.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if !settings.is_empty() {
            _ = writeln!(html, "<p>{}</p>", escaped(&settings.join(", ")));
        }
        _ = writeln!(html, "{}", command(&provenance.command(point)));
    }
    html.push_str("</details>\n");
    html
}

fn failures(results: &Results) -> String {
    let mut data = Data::new(&["point", "seed", "error"]);
    for point in &results.points {
        let settings = point.point.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        let settings = settings.collect::<Vec<_>>().join(", ");
        for failure in &point.failures {
            let seed = failure.seed.0.to_string();
            data.rows.push(vec![settings.clone(), seed, failure.error.to_string()]);
        }
    }
    if data.rows.is_empty() {
        return String::new();
    }
    format!("<h2>Failed runs</h2>\n{}", table(&data))
}

/// The scenario with every value; of a sweep, that of the first point.
fn parameters(results: &Results) -> String {
    let Some(point) = results.points.first() else { return String::new() };
    let note = if results.points.len() > 1 {
        "<p class=\"note\">Those of the first point; the others differ in the swept keys alone.</p>\n"
    } else {
        ""
    };
    let toml = escaped(&point.point.scenario.to_toml());
    format!(
        "<h2>Parameters</h2>\n{note}<details><summary>The scenario with every value</summary>\n<pre>{toml}</pre>\n</details>\n"
    )
}

/// A name that every file system takes.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests;
