//! `--report FILE`: one HTML page of what a command ran, and its figures as SVG files beside it.
//!
//! `results.html` brings `results-figures/`. Files of a former report under the same name are replaced.

use std::fs;
use std::path::{Path, PathBuf};

use lowmesh_lab::html::{self, Provenance};
use lowmesh_lab::results::Results;

use crate::failure::Failure;

/// Makes sure, before any run, that a page can be written to `page`.
pub fn check(page: &Path) -> Result<(), Failure> {
    let refuse = |message: String| {
        let hint = Some("give --report the name of a file, as report.html".to_owned());
        Err(Failure::Usage { message, hint })
    };
    if page.is_dir() || page.file_name().is_none() {
        return refuse(format!("--report {} is a folder", page.display()));
    }
    let parent = page.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(folder) if !folder.is_dir() => {
            refuse(format!("--report: there is no folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes the page and the figures; returns the folder of the figures, if there are any.
pub fn write(
    page: &Path,
    results: &Results,
    provenance: &Provenance,
) -> Result<Option<PathBuf>, Failure> {
    let html::Page { html, figures } = html::page(results, provenance);
    put(page, &html)?;
    if figures.is_empty() {
        return Ok(None);
    }
    let mut name = page.file_stem().unwrap_or_default().to_owned();
    name.push("-figures");
    let folder = page.with_file_name(name);
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::own(format!("cannot make {}: {error}", folder.display())))?;
    for (name, svg) in &figures {
        put(&folder.join(name), svg)?;
    }
    Ok(Some(folder))
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))
}
