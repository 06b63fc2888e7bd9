//! `lowmesh man` and `lowmesh completions`: manual pages and completion scripts, generated from the command line.

mod page;
mod verbs;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_complete::env::Shells;
use clap_mangen::Man;

use crate::failure::Failure;
use page::Page;
pub use verbs::PAGES;

/// The command line of `completions`
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// Shell to complete in
    shell: Shell,
}

/// The command line of `man`
#[derive(Debug, clap::Args)]
pub struct Pages {
    /// Folder for the pages, one page for each verb
    folder: PathBuf,
}

/// Adds its page to the help of a command and of each verb in it.
pub fn with_pages(command: Command) -> Command {
    add(command, "")
}

fn add(command: Command, verb: &str) -> Command {
    let command = match page(verb) {
        Some(page) => command.after_long_help(page.help()),
        None => command,
    };
    command.mut_subcommands(|sub| {
        let name = format!("{verb} {}", sub.get_name());
        add(sub, name.trim_start())
    })
}

/// The page of a verb.
fn page(verb: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.verb == verb)
}

/// Writes the script with which a shell asks this command for completions.
pub fn complete(args: &Completions, out: &mut impl Write) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string()).expect("both lists have the same names");
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "lowmesh", "lowmesh", "lowmesh", &mut script)?;
    Ok(out.write_all(&script)?)
}

/// Writes the manual pages of `command` and of all verbs in it.
pub fn print(args: &Pages, command: Command) -> Result<(), Failure> {
    let folder = &args.folder;
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(folder, &command)
}

/// Writes the page of a verb, then those of the verbs in it.
fn pages(folder: &Path, command: &Command) -> Result<(), Failure> {
    // Within `lowmesh` a verb is called `lowmesh verb`, and its page `lowmesh-verb`.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let verb = name.split('-').skip(1).collect::<Vec<_>>().join(" ");
    let file = folder.join(format!("{name}.1"));
    let written = page_of(command, page(&verb)).and_then(|text| fs::write(&file, text));
    written.map_err(|error| unwritable(&file, &error))?;
    command.get_subcommands().try_for_each(|verb| pages(folder, verb))
}

/// The manual page of one verb: what the parser knows, then the verb's own page.
fn page_of(command: &Command, page: Option<&Page>) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(page) = page {
        page.roff().to_writer(&mut text)?;
    }
    Ok(text)
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::own(format!("cannot write {}: {error}", file.display()))
}
