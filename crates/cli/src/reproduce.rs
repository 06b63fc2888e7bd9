//! `lowmesh reproduce`: holds the claims of a publication against this software.
//!
//! Without a name it lists the publications. With one it makes the runs that the claims need, takes those that
//! are stored already, and tells for each claim what was claimed, what came out, and whether that is the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use lowmesh_lab::batch::{Batch, Ended, How};
use lowmesh_lab::claims::judge::{Evidence, judge};
use lowmesh_lab::claims::{Answer, Claim, Measured, PAPERS, Paper, Sweep, Verdict};
use lowmesh_lab::plan::Plan;
use lowmesh_lab::results::PointResult;
use lowmesh_lab::scenario::sweep::Sweep as Axes;
use lowmesh_lab::simulate::{Simulate, Sinks};
use lowmesh_lab::store::Store;
use lowmesh_units::Duration;
use serde_json::json;

use crate::failure::Failure;
use crate::progress::{Meter, Style};
use crate::store;

/// Version of the JSON's shape.
const SCHEMA: u32 = 1;

/// Run what the claims of a publication need and tell which of them hold.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The publication; without one, all of them are listed.
    paper: Option<String>,
    /// Fewer points and seeds, shorter runs: two minutes on two cores.
    #[arg(long)]
    quick: bool,
    /// Only this claim (repeatable).
    #[arg(long = "claim", value_name = "ID")]
    claims: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Runs at a time; all cores unless given. Results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Keep runs in this folder, and take from it those that are there.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write the answers as a Markdown file too.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print nothing but results and errors.
    #[arg(long, short)]
    quiet: bool,
    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value_t = Style::Auto)]
    progress: Style,
}

/// Lists publications, or reproduces one with `simulate`.
pub fn execute(args: &Args, simulate: &Simulate<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(name) = &args.paper else { return list(args, out) };
    let paper = Paper::find(name).ok_or_else(|| Failure::Usage {
        message: format!("there is no publication `{name}`"),
        hint: Some("`lowmesh reproduce` lists them".to_owned()),
    })?;
    let claims = chosen(args, &paper)?;
    let (evidence, failed) = gather(args, &paper, &claims, simulate)?;
    let answers: Vec<Answer> = claims.iter().map(|claim| judge(&paper, claim, &evidence)).collect();
    if let Some(path) = &args.report {
        fs::write(path, markdown(args, &paper, &answers))
            .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))?;
    }
    if args.json {
        write_json(args, &paper, &answers, out)?;
    } else {
        write_text(&paper, &answers, out)?;
    }
    out.flush()?;
    failed
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
        writeln!(
            out,
            "{name}  {} claims\n    {title}\n    {authors}; {venue}, {year}; doi {doi}",
            claims.len()
        )?;
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
            hint: paper.claims.first().map(|claim| format!("claims are called as `{}`", claim.id)),
        })
    };
    args.claims.iter().map(find).collect()
}

/// Makes the runs that `claims` need; of all claims, also those that only show how much assumptions matter.
fn gather(
    args: &Args,
    paper: &Paper,
    claims: &[&Claim],
    simulate: &Simulate<'_>,
) -> Result<(Evidence, Result<(), Failure>), Failure> {
    let needed = paper.needs(claims);
    let all = args.claims.is_empty();
    let sweeps = paper.sweeps.iter().filter(|sweep| all || needed.contains(sweep.name.as_str()));
    let mut whole = Plan { name: paper.name.clone(), sweep: Axes::default(), points: Vec::new() };
    let mut lengths: Vec<(&Sweep, usize)> = Vec::new();
    for sweep in sweeps {
        let plans = paper.plans(sweep, args.quick).map_err(Failure::own)?;
        let before = whole.points.len();
        whole.points.extend(plans.into_iter().flat_map(|plan| plan.points));
        lengths.push((sweep, whole.points.len() - before));
    }
    let store = Store::open(&store::location(args.store.as_deref())?)?;
    let ended = run(args, &whole, &store, simulate)?;
    let mut points = ended.results.points.into_iter();
    let mut by_sweep: BTreeMap<String, Vec<PointResult>> = BTreeMap::new();
    for (sweep, length) in lengths {
        by_sweep.insert(sweep.name.clone(), points.by_ref().take(length).collect());
    }
    by_sweep.retain(|_, points| !points.is_empty());
    let failed = ended.failed.first().map_or(Ok(()), |(spec, failure)| {
        let message = format!("{} runs failed; the first: {}", ended.failed.len(), failure.error);
        let scenario = &whole.points[spec.point].scenario.head.name;
        let hint =
            format!("it was seed {} of {scenario}; the same command runs it again", spec.seed.0);
        Err(Failure::Own { message, hint: Some(hint) })
    });
    Ok((Evidence { sweeps: by_sweep, tables: BTreeMap::new() }, failed))
}

fn run(args: &Args, plan: &Plan, store: &Store, simulate: &Simulate<'_>) -> Result<Ended, Failure> {
    let batch = Batch::new(plan, plan.runs(), Some(store));
    let (all, missing) = (batch.len(), batch.missing().len());
    let style = if args.quiet { Style::None } else { args.progress };
    if !args.quiet && all > 0 {
        eprintln!("{all} runs, {} of them stored in {}", all - missing, store.folder().display());
    }
    let total = if missing == 0 { Duration::ZERO } else { batch.missing_time() };
    let meter = Meter::new(style, missing as u64, total);
    let how = How { jobs: args.jobs, fail_fast: false };
    let ended = batch.run(how, Sinks::default(), simulate, &|spec, progress| {
        meter.observe(&progress, &format!(" of {}", plan.points[spec.point].scenario.head.name));
    })?;
    meter.finish();
    Ok(ended)
}

fn count(answers: &[Answer], verdict: Verdict) -> usize {
    answers.iter().filter(|answer| answer.verdict == verdict).count()
}

fn summary(answers: &[Answer]) -> String {
    format!(
        "{} claims: {} reproduced, {} not reproduced, {} undecided",
        answers.len(),
        count(answers, Verdict::Reproduced),
        count(answers, Verdict::NotReproduced),
        count(answers, Verdict::Undecided)
    )
}

fn write_json(
    args: &Args,
    paper: &Paper,
    answers: &[Answer],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let object = json!({ "schema": SCHEMA, "paper": paper.name, "quick": args.quick,
        "version": lowmesh_lab::report::VERSION, "assumptions": paper.assumptions, "claims": answers });
    writeln!(out, "{object:#}")?;
    Ok(())
}

fn write_text(paper: &Paper, answers: &[Answer], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}\n{}; {}, {}\n", paper.title, paper.authors, paper.venue, paper.year)?;
    for answer in answers {
        writeln!(out, "{}  {}", answer.id, answer.verdict.word().to_uppercase())?;
        writeln!(out, "    {}", answer.text)?;
        writeln!(out, "    claimed   {}", answer.claimed)?;
        writeln!(out, "    measured  {}", measured(answer))?;
        writeln!(out, "    why       {}", answer.why)?;
        if !answer.note.is_empty() {
            writeln!(out, "    note      {}", answer.note)?;
        }
        writeln!(out, "    see       {}\n", answer.command)?;
    }
    writeln!(out, "{}", summary(answers))?;
    Ok(())
}

/// What was measured, with its interval.
fn measured(answer: &Answer) -> String {
    match &answer.measured {
        Measured::Nothing => "-".to_owned(),
        Measured::Number(mean) => {
            let interval = answer.ci95.map_or_else(String::new, |half| format!(" ± {half:.4}"));
            format!("{mean:.4}{interval} (n = {})", answer.n)
        }
        Measured::Values(values) => {
            let pairs: Vec<String> =
                values.iter().map(|(key, value)| format!("{key} {}", plain(*value))).collect();
            pairs.join(", ")
        }
    }
}

/// At most four digits after the point, none that say nothing.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn markdown(args: &Args, paper: &Paper, answers: &[Answer]) -> String {
    let mut text = format!(
        "# {}\n\n{}; {}, {}; doi {}\n\n{}{}.\n\n## What had to be assumed\n\n",
        paper.title,
        paper.authors,
        paper.venue,
        paper.year,
        paper.doi,
        summary(answers),
        if args.quick { " (quick runs)" } else { "" }
    );
    for assumption in &paper.assumptions {
        _ = writeln!(text, "- {assumption}");
    }
    text.push_str(
        "\n## Claims\n\n| claim | verdict | claimed | measured | why |\n|---|---|---|---|---|\n",
    );
    for answer in answers {
        let cells = [
            answer.id.clone(),
            answer.verdict.word().to_owned(),
            answer.claimed.clone(),
            measured(answer),
            answer.why.clone(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "/").replace('\n', " "));
        _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push_str("\n## To see it again\n\n");
    for answer in answers {
        _ = writeln!(text, "- {}: {}\n\n      {}", answer.id, answer.text, answer.command);
    }
    text
}

#[cfg(test)]
mod tests;
