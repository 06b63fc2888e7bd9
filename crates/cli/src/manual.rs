//! `lowmesh man` and `lowmesh completions`: manual pages and completion scripts, generated from the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;

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

/// Writes the script with which a shell completes `command`.
pub fn complete(
    args: &Completions,
    command: &mut Command,
    out: &mut impl Write,
) -> Result<(), Failure> {
    // The generator panics if its reader goes away, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "lowmesh", &mut script);
    Ok(out.write_all(&script)?)
}

/// Writes the manual pages of `command` and of its verbs.
pub fn print(args: &Pages, command: Command) -> Result<(), Failure> {
    let failed = |file: &Path, error: std::io::Error| {
        Failure::own(format!("cannot write {}: {error}", file.display()))
    };
    fs::create_dir_all(&args.folder).map_err(|error| failed(&args.folder, error))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let verbs: Vec<Command> = command.get_subcommands().cloned().collect();
    for one in std::iter::once(command).chain(verbs) {
        // Within `lowmesh` a verb is called `lowmesh verb`, and its page `lowmesh-verb`.
        let name = one.get_display_name().unwrap_or(one.get_name()).to_owned();
        let page = clap_mangen::Man::new(one);
        let file = args.folder.join(format!("{name}.1"));
        let mut text = Vec::new();
        page.render(&mut text)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| failed(&file, error))?;
    }
    Ok(())
}
