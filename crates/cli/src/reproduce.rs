//! `lowmesh reproduce`: checks the claims of a publication with this software.
//!
//! Without a name it lists the publications. With one it runs what the claims need, reuses stored runs, and prints for
//! each claim what was claimed, what was measured, and whether the two agree.

mod text;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap_complete::engine::ArgValueCompleter;
use lowmesh_lab::batch::{Batch, Ended, How};
use lowmesh_lab::build::{self, Build};
use lowmesh_lab::claims::judge::{Evidence, judge};
use lowmesh_lab::claims::{Answer, Claim, PAPERS, Paper, Scope, Summary, Sweep};
use lowmesh_lab::command::{Kept, quoted};
use lowmesh_lab::html::{Extent, claims_page};
use lowmesh_lab::plan::Plan;
use lowmesh_lab::results::PointResult;
use lowmesh_lab::scenario::sweep::Sweep as Axes;
use lowmesh_lab::simulate::{Simulate, Sinks};
use lowmesh_lab::store::Store;
use lowmesh_units::Seed;
use serde_json::json;

use crate::console::{say, width, wrapped};
use crate::failure::Failure;
use crate::interrupt::{self, Left};
use crate::progress::{Meter, Style};
use crate::{complete, dry, report, store};

/// Version of the JSON's shape.
const SCHEMA: u32 = 3;

/// Run the simulations that the claims of a publication need, and report which claims hold.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Publication; without one, all are listed.
    #[arg(add = ArgValueCompleter::new(complete::papers))]
    paper: Option<String>,
    /// Run fewer points and seeds, and shorter runs: two minutes on two cores.
    #[arg(long)]
    quick: bool,
    /// Seed of the first run of each point; each further run uses the next number.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Check only this claim (repeatable).
    #[arg(long = "claim", value_name = "ID")]
    claims: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Runs at a time; by default one on each core. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Keep runs in this folder, and reuse the runs that it holds.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write a report as one HTML page, and its figures as SVG files next to it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Run nothing; print how many runs there are, how many are stored, and how long the rest takes.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Print nothing but results and errors.
    #[arg(long, short)]
    quiet: bool,
    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value_t = Style::Auto)]
    progress: Style,
}

impl Args {
    fn scope(&self) -> Scope {
        Scope { quick: self.quick, first_seed: self.seed.map(Seed) }
    }
}

/// Lists publications, or reproduces one with `simulate`.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(name) = &args.paper else { return list(args, out) };
    let paper = Paper::find(name).ok_or_else(|| Failure::Usage {
        message: format!("there is no publication `{name}`"),
        hint: Some("`lowmesh reproduce` lists them".to_owned()),
    })?;
    let claims = chosen(args, &paper)?;
    args.report.as_deref().map(report::check).transpose()?;
    let (whole, lengths) = whole_plan(args, &paper, &claims)?;
    let store = Store::open(&store::location(args.store.as_deref())?)?;
    let batch = Batch::new(&whole, whole.runs(), Some(&store));
    if args.dry_run {
        let how = dry::How { jobs: args.jobs, json: args.json };
        return dry::execute(how, &whole, &batch, Some(&store), simulate, out);
    }
    store::check_writable(&store)?;
    if !args.quiet && !batch.missing().is_empty() {
        store::tell_others(&store)?;
    }
    let ended = run(args, &whole, batch, &store, simulate)?;
    let failed = failed_runs(&whole, &ended);
    let evidence = evidence(args, &lengths, ended);
    let answers: Vec<Answer> = claims.iter().map(|claim| judge(&paper, claim, &evidence)).collect();
    if let Some(file) = &args.report {
        let kept = store::kept(args.store.as_deref());
        let how = Extent { command: again(args, &paper, &kept), kept };
        report::write(file, &claims_page(&paper, &answers, &evidence, &how), args.quiet)?;
    }
    if args.json {
        let runs = evidence.sweeps.values().flatten().map(|point| point.runs.len()).sum();
        write_json(args, &paper, &answers, runs, out)?;
    } else {
        text::write(&paper, &answers, args.quick, out)?;
    }
    out.flush()?;
    failed
}

/// The command that repeats these answers.
fn again(args: &Args, paper: &Paper, kept: &Kept) -> String {
    let mut words = format!("lowmesh reproduce {}{}", paper.name, args.scope().flags());
    for claim in &args.claims {
        words.extend([" --claim ", claim]);
    }
    if let Kept::In(folder) = kept {
        words.extend([" --store ", &quoted(folder)]);
    }
    words
}

fn list(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let papers = PAPERS.iter().filter_map(|(name, ..)| Paper::find(name));
    if args.json {
        let entry = |paper: Paper| {
            json!({ "paper": paper.name, "title": paper.title, "authors": paper.authors,
                    "year": paper.year, "doi": paper.doi, "claims": paper.claims.len() })
        };
        let papers: Vec<_> = papers.map(entry).collect();
        writeln!(out, "{:#}", json!({ "schema": SCHEMA, "papers": papers }))?;
        return Ok(());
    }
    for paper in papers {
        let Paper { name, title, authors, venue, year, doi, claims, .. } = paper;
        writeln!(out, "{name}  {} claims", claims.len())?;
        for line in [title, format!("{authors}; {venue}, {year}; doi {doi}")] {
            writeln!(out, "{}", wrapped(&format!("    {line}"), width(), "    "))?;
        }
    }
    Ok(())
}

fn chosen<'p>(args: &Args, paper: &'p Paper) -> Result<Vec<&'p Claim>, Failure> {
    if args.claims.is_empty() {
        return Ok(paper.claims.iter().collect());
    }
    let find = |id: &String| {
        paper.claim(id).ok_or_else(|| Failure::Usage {
            message: format!("{} has no claim `{id}`", paper.name),
            hint: paper
                .claims
                .first()
                .map(|claim| format!("claims have names such as `{}`", claim.id)),
        })
    };
    args.claims.iter().map(find).collect()
}

/// Sweeps, each with the number of its points.
type Lengths<'p> = Vec<(&'p Sweep, usize)>;

/// The runs that `claims` need; for all claims, also the runs that only show how much assumptions matter. The second
/// value says how many points of the plan each sweep has.
fn whole_plan<'p>(
    args: &Args,
    paper: &'p Paper,
    claims: &[&Claim],
) -> Result<(Plan, Lengths<'p>), Failure> {
    let needed = paper.needs(claims);
    let all = args.claims.is_empty();
    let sweeps = paper.sweeps.iter().filter(|sweep| all || needed.contains(sweep.name.as_str()));
    let mut whole = Plan { name: paper.name.clone(), sweep: Axes::default(), points: Vec::new() };
    let mut lengths = Lengths::new();
    for sweep in sweeps {
        let plans = paper.plans(sweep, args.scope()).map_err(Failure::own)?;
        let before = whole.points.len();
        whole.points.extend(plans.into_iter().flat_map(|plan| plan.points));
        lengths.push((sweep, whole.points.len() - before));
    }
    Ok((whole, lengths))
}

/// The points of each sweep that was run.
fn evidence(args: &Args, lengths: &Lengths<'_>, ended: Ended) -> Evidence {
    let mut points = ended.results.points.into_iter();
    let mut sweeps: BTreeMap<String, Vec<PointResult>> = BTreeMap::new();
    for (sweep, length) in lengths {
        sweeps.insert(sweep.name.clone(), points.by_ref().take(*length).collect());
    }
    sweeps.retain(|_, points| !points.is_empty());
    Evidence { sweeps, scope: args.scope(), ..Evidence::default() }
}

/// Turns failed runs into a failure.
fn failed_runs(whole: &Plan, ended: &Ended) -> Result<(), Failure> {
    let Some((spec, failure)) = ended.failed.first() else { return Ok(()) };
    let message = format!("{} runs failed; the first: {}", ended.failed.len(), failure.error);
    let scenario = &whole.points[spec.point].scenario.head.name;
    let hint = format!("it was seed {} of {scenario}; the same command repeats it", spec.seed.0);
    Err(Failure::Own { message, hint: Some(hint) })
}

fn run(
    args: &Args,
    plan: &Plan,
    batch: Batch<'_>,
    store: &Store,
    simulate: &Simulate<'_>,
) -> Result<Ended, Failure> {
    let (all, missing) = (batch.len(), batch.missing().len());
    let style = if args.quiet { Style::None } else { args.progress };
    if !args.quiet && all > 0 {
        say!("{all} runs, {} of them stored in {}", all - missing, store.folder().display());
    }
    let meter = Meter::new(style, missing as u64, batch.missing_time());
    interrupt::watch(Left::new(plan, Some(store)), &meter)?;
    let how = How { jobs: args.jobs, fail_fast: false };
    let ended = batch.run(how, Sinks::default(), simulate, &|spec, progress| {
        meter.observe(&progress, &format!(" of {}", plan.points[spec.point].scenario.head.name));
    })?;
    meter.finish();
    Ok(ended)
}

/// An answer, with the measured value as the text has it.
fn told(answer: &Answer) -> serde_json::Value {
    let mut told = json!(answer);
    told["measured_words"] = json!(answer.measured_short());
    told
}

fn write_json(
    args: &Args,
    paper: &Paper,
    answers: &[Answer],
    runs: usize,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let claims: Vec<_> = answers.iter().map(told).collect();
    let object = json!({ "schema": SCHEMA, "paper": paper.name, "preliminary": args.quick,
        "version": build::VERSION, "build": Build::own(), "assumptions": paper.assumptions,
        "runs": runs, "summary": Summary::of(answers), "claims": claims });
    writeln!(out, "{object:#}")?;
    Ok(())
}

#[cfg(test)]
mod tests;
