//! `--report FILE`: one HTML page about the runs of a command, and its figures as SVG files next to it.
//!
//! `results.html` brings `results-figures/`. Files of a former report under the same name are replaced.

use std::fs;
use std::path::{Path, PathBuf};

use lowmesh_lab::html::Page;

use crate::console::say;
use crate::failure::Failure;
use crate::place;

/// Makes sure, before any run, that a page can be written to `page`.
pub fn check(page: &Path) -> Result<(), Failure> {
    let refuse = |file: &Path, why: &str| {
        let message = format!("--report: cannot write {}: {why}", file.display());
        Failure::usage(message, "give --report the name of a file, such as report.html")
    };
    place::check_file(page).map_err(|why| refuse(page, why))?;
    let figures = figures(page);
    match figures.symlink_metadata() {
        Ok(about) if !about.is_dir() => Err(refuse(&figures, "it is in the place of a folder")),
        Ok(_) => place::check_folder(&figures).map_err(|why| refuse(&figures, why)),
        Err(_) => Ok(()),
    }
}

/// The folder for the figures of a page.
fn figures(page: &Path) -> PathBuf {
    let mut name = page.file_stem().unwrap_or_default().to_owned();
    name.push("-figures");
    page.with_file_name(name)
}

/// Writes the page and the figures, and says so unless it is to be `quiet`.
pub fn write(file: &Path, page: &Page, quiet: bool) -> Result<(), Failure> {
    put(file, &page.html)?;
    if !page.figures.is_empty() {
        let folder = figures(file);
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::own(format!("cannot make {}: {error}", folder.display())))?;
        for (name, svg) in &page.figures {
            put(&folder.join(name), svg)?;
        }
    }
    if !quiet {
        say!("report: {}", file.display());
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::own(format!("cannot write {}: {error}", path.display())))
}
