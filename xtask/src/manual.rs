//! `manual`: the parts of pages that the program makes, from rows of algorithms and from recorded verdicts, are the ones
//! in force. With `--record` it records verdicts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lowmesh_lab::claims::{Paper, Record};
use lowmesh_lab::manual::{PAGES, filled};

use crate::process;

/// Compares every page, or writes it with `--write`; `--record FILE...` takes over the verdicts of
/// `lowmesh reproduce NAME --json`, and `--minutes N` says how much processor time their runs took.
pub fn run(args: &[String]) -> Result<()> {
    match args {
        [] => pages(false),
        [flag] if flag == "--write" => pages(true),
        [flag, files @ ..] if flag == "--record" && !files.is_empty() => record(files),
        _ => bail!("unknown arguments {args:?}; allowed: --write, --record FILE... [--minutes N]"),
    }
}

fn pages(write: bool) -> Result<()> {
    let mut stale = Vec::new();
    let topics = fs::read_dir(process::root().join("docs/topics"))?;
    let topics: Vec<PathBuf> =
        topics.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    for page in topics.into_iter().chain(PAGES.map(|page| process::root().join(page))) {
        let name = page.display().to_string();
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {name}"))?;
        let made = filled(&text).map_err(|error| anyhow!("{name}: {error}"))?;
        if made == text {
            continue;
        }
        if write {
            fs::write(&page, made).with_context(|| format!("cannot write {name}"))?;
        }
        stale.push(name);
    }
    stale.sort();
    if !stale.is_empty() && !write {
        bail!("`cargo xtask manual --write` brings up to date: {}", stale.join(", "));
    }
    println!("{} pages changed", stale.len());
    Ok(())
}

/// Takes over the verdicts in `files`. The pages follow with `--write`, once the new records are built in.
fn record(files: &[String]) -> Result<()> {
    let (files, minutes) = match files {
        [files @ .., flag, minutes] if flag == "--minutes" => {
            let minutes: u32 = minutes.parse().context("--minutes takes a whole number")?;
            (files, Some(minutes))
        }
        files => (files, None),
    };
    let today = process::read(process::command("date", &["+%F"]))?;
    for file in files {
        let told = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let json: serde_json::Value =
            serde_json::from_str(&told).with_context(|| format!("{file} is not JSON"))?;
        let name = json["paper"].as_str().unwrap_or_default();
        let paper = Paper::find(name)
            .with_context(|| format!("{file}: there is no publication {name:?}"))?;
        let path = Path::new("crates/lab/papers").join(name).join("record.toml");
        let path = process::root().join(path);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut record =
            Record::parse(&text).with_context(|| format!("{} is broken", path.display()))?;
        record.take(&paper, &told, today.trim()).with_context(|| file.clone())?;
        record.minutes = minutes.or(record.minutes);
        fs::write(&path, record.to_toml())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{name}: {}", record.tally(&paper).summary.words());
    }
    println!("`cargo xtask manual --write` brings the pages up to date");
    Ok(())
}
