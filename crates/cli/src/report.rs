//! `--report FILE`: one HTML page about the runs of a command, and its figures as SVG files next to it.
//!
//! `results.html` brings `results-figures/`. Files of a former report under the same name are replaced.

use std::fs;
use std::path::Path;

use lowmesh_lab::html::Page;

use crate::console::say;
use crate::failure::Failure;

/// Makes sure, before any run, that a page can be written to `page`.
pub fn check(page: &Path) -> Result<(), Failure> {
    let refuse = |message: String| {
        let hint = Some("give --report the name of a file, such as report.html".to_owned());
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

/// Writes the page and the figures, and says so unless it is to be `quiet`.
pub fn write(file: &Path, page: &Page, quiet: bool) -> Result<(), Failure> {
    put(file, &page.html)?;
    if !page.figures.is_empty() {
        let mut name = file.file_stem().unwrap_or_default().to_owned();
        name.push("-figures");
        let folder = file.with_file_name(name);
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
