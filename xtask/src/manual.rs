//! `manual`: the parts of `docs/topics` that the rows of algorithms make are the ones in force.

use std::fs;

use anyhow::{Context, Result, bail};
use lowmesh_lab::manual::filled;

use crate::process;

/// Compares every page, or writes it with `--write`.
pub fn run(args: &[String]) -> Result<()> {
    let write = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => bail!("unknown arguments {args:?}; allowed: --write"),
    };
    let mut stale = Vec::new();
    for entry in fs::read_dir(process::root().join("docs/topics"))? {
        let page = entry?.path();
        let name = page.display().to_string();
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {name}"))?;
        let made = filled(&text).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
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
