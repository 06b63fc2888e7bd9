//! `report.png`: the report of the first tutorial in a browser, and `report.digest`: which page that is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use xxhash_rust::xxh3::xxh3_64;

use crate::{docs, process, product, tools};

/// The picture.
pub const PICTURE: &str = "report.png";
const DIGEST: &str = "report.digest";
/// The page with the scenario that is reported, and the scenario.
const SCENARIO: (&str, &str) = ("docs/tutorials/first-figure.md", "load.toml");
/// The report, in the folder of its runs.
const PAGE: &str = "report.html";
/// Browsers that write a picture of a page.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Size of the window, in pixels: the head, the table and the first figure.
const WINDOW: &str = "--window-size=1000,1390";
/// Hexadecimal words of this length and more name builds, commits and runs.
const ID_DIGITS_MIN: usize = 12;

/// Whether the picture shows today's report; takes it again unless this is a `check`.
pub fn refreshed(binary: &Path, check: bool) -> Result<bool> {
    let page = made(binary)?;
    let html =
        fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let digest = format!("{:016x}\n", xxh3_64(without_ids(&html).as_bytes()));
    let [picture, record] = [PICTURE, DIGEST].map(super::path);
    let recorded = fs::read_to_string(&record).unwrap_or_default();
    if recorded == digest && picture.exists() {
        return Ok(true);
    }
    if !check {
        take(&page, &picture)?;
        fs::write(&record, digest).with_context(|| format!("cannot write {}", record.display()))?;
    }
    Ok(false)
}

/// Runs the tutorial's sweep and writes its report; stored runs of the same build are reused.
fn made(binary: &Path) -> Result<PathBuf> {
    let folder = product::target()?.join("figures");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (scenario, page) = (folder.join(SCENARIO.1), folder.join(PAGE));
    fs::write(&scenario, docs::file(SCENARIO.0, SCENARIO.1)?)
        .context("cannot write the scenario")?;
    // The page shows its commands, so it names no folder of this machine.
    let mut run = process::command(binary, &["run", "--quiet", SCENARIO.1]);
    run.args(["--report", PAGE, "--store", "store"]).current_dir(&folder);
    process::read(run)?;
    Ok(page)
}

/// Takes the picture.
fn take(page: &Path, picture: &Path) -> Result<()> {
    let Some(browser) = BROWSERS.iter().find(|name| process::installed(name)) else {
        bail!("no browser for {PICTURE}: install one of {}", BROWSERS.join(", "));
    };
    let mut command =
        process::command(browser, &["--headless", "--disable-gpu", "--hide-scrollbars", WINDOW]);
    if tools::is_root() {
        command.arg("--no-sandbox");
    }
    command.arg(format!("--screenshot={}", picture.display())).arg(page);
    process::read(command).map(drop)
}

/// A page without the ids that every build changes.
fn without_ids(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    for part in html.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let id = word.len() >= ID_DIGITS_MIN && word.chars().all(|c| c.is_ascii_hexdigit());
        out.push_str(if id { "#" } else { word });
        out.push_str(&part[word.len()..]);
    }
    // The sources may have changed since the commit.
    out.replace("#-dirty", "#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_do_not_change_the_digest_and_values_do() {
        let page =
            |build: &str, tdr: &str| format!("<dd>build {build}</dd>,%0A{build}{build},{tdr}</dd>");
        let text = without_ids(&page("cf387a1cb6bb", "0.721"));
        assert_eq!(text, without_ids(&page("0123456789ab", "0.721")));
        assert_eq!(without_ids("commit 0123456789ab-dirty"), without_ids("commit cf387a1cb6bb"));
        assert_ne!(text, without_ids(&page("cf387a1cb6bb", "0.722")));
        assert_eq!(without_ids("plain words, 12 of them"), "plain words, 12 of them");
    }
}
