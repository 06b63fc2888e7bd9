//! `docs`: every command in README.md, in the tutorials, in the how-tos and on some other pages runs, and prints what the page
//! says.
//!
//! Each page runs in a fresh folder, with the built `lowmesh` on its path and an empty home. CONTRIBUTING.md ("A command in
//! a tutorial") says what the words behind the language of a code block mean.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::process::{self, Stopwatch};
use crate::product;

mod output;
mod page;
mod session;

use page::{Commands, Page, Step};
use session::{Places, Session};

/// Single pages whose commands run.
const PAGES: [&str; 3] = ["README.md", "docs/topics/group-oscore.md", "docs/topics/groups.md"];
/// Folders of pages whose commands run.
const FOLDERS: [&str; 2] = ["docs/tutorials", "docs/how-to"];
/// Programs of commands that a machine may lack; a page that needs one of these is skipped there.
const OPTIONAL: [&str; 4] = ["bash", "jq", "openssl", "python3"];

/// Checks the pages with these names, or all; `--write` replaces outputs that have changed.
pub fn run(args: &[String]) -> Result<()> {
    let mut write = false;
    let mut wanted: Vec<&str> = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--write" => write = true,
            flag if flag.starts_with('-') => {
                bail!("unknown flag {flag:?}; allowed: --write, PAGE...")
            }
            name => wanted.push(name),
        }
    }
    if cfg!(not(unix)) {
        println!("skipped: the commands of pages are for a shell of Unix");
        return Ok(());
    }
    let all = pages(&wanted)?;
    let binary = product::build()?;
    let scratch = product::target()?.join("docs");
    let mut summary = Summary::default();
    for page in &all {
        let clock = Stopwatch::start();
        let places = Places::fresh(&scratch, &page.path, &binary)?;
        let verdict = check(page, places)?;
        println!("{}: {} in {:.1} s", page.path, verdict.shown(), clock.elapsed().as_secs_f64());
        summary.add(page, verdict, write)?;
    }
    summary.finish()
}

/// A file that a page lets its reader save.
pub fn file(path: &str, name: &str) -> Result<String> {
    let text = fs::read_to_string(process::root().join(path))
        .with_context(|| format!("cannot read {path}"))?;
    let mut files =
        Page::parse(path.to_owned(), &text)?.steps.into_iter().filter_map(|step| match step {
            Step::File { name: other, text } if other == name => Some(text),
            _ => None,
        });
    files.next().with_context(|| format!("{path} has no block `file={name}`"))
}

/// All pages with commands whose path contains one of the names, in order.
fn pages(names: &[&str]) -> Result<Vec<Page>> {
    let root = process::root();
    let mut paths = PAGES.map(str::to_owned).to_vec();
    for folder in FOLDERS {
        let entries =
            fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))?;
        let mut found = Vec::new();
        for entry in entries {
            found.push(format!("{folder}/{}", entry?.file_name().to_string_lossy()));
        }
        found.retain(|path| Path::new(path).extension().is_some_and(|extension| extension == "md"));
        found.sort();
        paths.extend(found);
    }
    paths.retain(|path| names.is_empty() || names.iter().any(|name| path.contains(name)));
    ensure!(!paths.is_empty(), "no page has a name with {}", names.join(" or "));
    let read = |path: String| -> Result<Page> {
        let text =
            fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        Page::parse(path, &text)
    };
    paths.into_iter().map(read).collect()
}

/// What one page gave.
#[derive(Debug, Default)]
struct Verdict {
    ran: usize,
    compared: usize,
    /// Blocks that did not run, each with its reason.
    skipped: Vec<String>,
    failures: Vec<String>,
    /// Outputs that have changed, in the order of the page.
    changed: Vec<(page::Expected, Vec<String>)>,
}

impl Verdict {
    fn shown(&self) -> String {
        let Self { ran, compared, skipped, failures, .. } = self;
        let failed = if failures.is_empty() { "" } else { ", FAILED" };
        format!("{ran} blocks ran, {compared} outputs compared, {} skipped{failed}", skipped.len())
    }
}

/// Runs the steps of one page.
fn check(page: &Page, places: Places) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    if let Some(program) = missing(page) {
        verdict.skipped.push(format!("{}: {program} is not installed", page.path));
        return Ok(verdict);
    }
    let mut session = Session::start(places)?;
    for step in &page.steps {
        match step {
            Step::File { name, text } => session.write(name, text)?,
            Step::Skipped { line, reason } => {
                verdict.skipped.push(format!("{}:{line}: {reason}", page.path));
            }
            Step::Run(commands) => {
                let goes_on = run_one(page, commands, &mut session, &mut verdict)?;
                if !goes_on {
                    break;
                }
            }
        }
    }
    Ok(verdict)
}

/// Runs one block; false if the rest of the page makes no sense without it.
fn run_one(
    page: &Page,
    commands: &Commands,
    session: &mut Session,
    verdict: &mut Verdict,
) -> Result<bool> {
    verdict.ran += 1;
    let ended = session.run(commands)?;
    let place = format!("{}:{}", page.path, commands.line);
    if let Some(code) = ended.code
        && code != commands.exit
    {
        let printed = ended.output.join("\n");
        verdict.failures.push(format!(
            "{place}: exit code {code} instead of {}; it printed\n{printed}",
            commands.exit
        ));
        return Ok(false);
    }
    if ended.code.is_none() && !commands.background {
        let limit = session::COMMANDS_MAX.as_secs();
        verdict.failures.push(format!("{place}: did not end within {limit} s"));
        return Ok(false);
    }
    let Some(expected) = &commands.expected else { return Ok(true) };
    verdict.compared += 1;
    if !output::agree(&expected.text, &ended.output, expected.loose) {
        let difference = output::difference(&expected.text, &ended.output, expected.loose);
        verdict.failures.push(format!("{place}: the output has changed\n{difference}"));
        verdict.changed.push((expected.clone(), output::refreshed(&expected.text, &ended.output)));
    }
    Ok(true)
}

/// A program that the page needs and this machine lacks.
fn missing(page: &Page) -> Option<&'static str> {
    let mut needed = OPTIONAL.iter().filter(|program| **program == "bash" || page.names(program));
    needed.find(|program| !process::installed(program)).copied()
}

/// What all pages gave.
#[derive(Debug, Default)]
struct Summary {
    ran: usize,
    compared: usize,
    skipped: Vec<String>,
    failures: Vec<String>,
    written: usize,
}

impl Summary {
    fn add(&mut self, page: &Page, verdict: Verdict, write: bool) -> Result<()> {
        self.ran += verdict.ran;
        self.compared += verdict.compared;
        self.skipped.extend(verdict.skipped);
        if write && !verdict.changed.is_empty() {
            let path = process::root().join(&page.path);
            fs::write(&path, page.with_outputs(&verdict.changed))
                .with_context(|| format!("cannot write {}", page.path))?;
            self.written += verdict.changed.len();
            println!("{}: {} outputs written", page.path, verdict.changed.len());
        } else {
            self.failures.extend(verdict.failures);
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        for reason in &self.skipped {
            println!("skipped: {reason}");
        }
        for failure in &self.failures {
            println!("\n{failure}");
        }
        let Self { ran, compared, skipped, failures, written } = self;
        if !failures.is_empty() {
            bail!(
                "{} blocks of pages failed; if the new outputs are right: cargo xtask docs --write",
                failures.len()
            );
        }
        println!(
            "{ran} blocks ran, {compared} outputs compared, {written} written, {} skipped",
            skipped.len()
        );
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The verdict on a page with this text, in a folder of its own.
    fn verdict(name: &str, text: &str) -> Verdict {
        let page = Page::parse(name.to_owned(), text).expect("a page");
        let scratch = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let places = Places::fresh(&scratch, name, Path::new("/bin/sh")).expect("a folder");
        check(&page, places).expect("bash is there")
    }

    #[test]
    fn a_page_that_says_what_its_commands_print_passes() {
        let text = "```toml file=a.toml\nx = 1\n```\n```sh\nX=2\ncat a.toml\n```\n```text\nx = 1\n```\n\
                    ```sh exit=3\necho $X >&2; (exit 3)\n```\n```text\n2\n```\n";
        let verdict = verdict("right.md", text);
        assert_eq!((verdict.ran, verdict.compared), (2, 2));
        assert_eq!(verdict.failures, Vec::<String>::new());
    }

    #[test]
    fn a_page_with_an_old_output_fails_with_the_difference_and_can_be_refreshed() {
        let text = "```sh\necho new; echo same\n```\n\n```text\nold\nsame\n```\nend\n";
        let verdict = verdict("wrong.md", text);
        assert_eq!(verdict.failures, ["wrong.md:2: the output has changed\n- old\n+ new\n  same"]);
        let page = Page::parse("wrong.md".to_owned(), text).expect("a page");
        assert_eq!(page.with_outputs(&verdict.changed), text.replace("old", "new"));
    }

    #[test]
    fn a_command_that_fails_ends_its_page() {
        let verdict = verdict("failing.md", "```sh\nfalse\n```\n```sh\necho later\n```\n");
        assert_eq!(verdict.ran, 1);
        assert_eq!(verdict.failures, ["failing.md:2: exit code 1 instead of 0; it printed\n"]);
    }

    #[test]
    fn a_background_block_runs_beside_the_rest_and_ends_with_the_page() {
        let text = "```sh background\necho ready; echo $BASHPID >pid; exec sleep 1000\n```\n```text\nready\n```\n\
                    ```sh\nkill -0 $(cat pid) && cp pid \"$HOME/../pid\"\n```\n";
        let verdict = verdict("server.md", text);
        assert_eq!(verdict.failures, Vec::<String>::new());
        let scratch = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let pid = fs::read_to_string(scratch.join("server/pid")).expect("it was written");
        let alive = process::execute(process::command("kill", &["-0", pid.trim()]));
        assert!(alive.is_err(), "process {pid} still runs");
    }
}
