//! `examples`: every program in `examples/` builds and runs.
//!
//! The examples are packages outside of the workspace, as those of a user are. They share its target folder, and the
//! versions of its lock file, so that a dependency is built once for all of them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{process, product};

/// Programs that run until they are ended. Each prints its URI when it is ready; below it is a resource with this text.
const SERVERS: [(&str, &str, &str); 1] = [("own-server", "/temperature", "21.5 Cel")];

/// Builds and runs the examples with these names, or all.
pub fn run(names: &[String]) -> Result<()> {
    let root = process::root();
    let mut examples: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root.join("examples")).context("cannot list examples/")? {
        let folder = entry?.path();
        let is_asked = |name: &String| folder.ends_with(name);
        if folder.join("Cargo.toml").is_file() && (names.is_empty() || names.iter().any(is_asked)) {
            examples.push(folder);
        }
    }
    examples.sort();
    ensure!(examples.len() >= names.len().max(1), "examples/ does not hold all of {names:?}");
    for folder in &examples {
        println!("-- {}", folder.display());
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("no lock file")?;
        match SERVERS.iter().find(|(name, ..)| folder.ends_with(name)) {
            Some((name, path, text)) => serve(folder, name, path, text)?,
            None => process::execute(cargo("run", folder)?)?,
        }
    }
    println!("{} examples ran", examples.len());
    Ok(())
}

/// Cargo for the example in a folder.
fn cargo(verb: &str, folder: &Path) -> Result<Command> {
    let mut cargo =
        process::cargo(&[verb, "--quiet", "--profile", product::PROFILE, "--manifest-path"]);
    cargo.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(product::target()?);
    Ok(cargo)
}

/// Starts a server, and requests one of its resources.
fn serve(folder: &Path, name: &str, path: &str, text: &str) -> Result<()> {
    process::execute(cargo("build", folder)?)?;
    let program = product::target()?.join(product::PROFILE).join(name);
    let lowmesh = product::build()?;
    let mut server = process::command(program, &[]);
    let mut server = server.stdout(Stdio::piped()).spawn().context("cannot start the server")?;
    let mut line = String::new();
    let ready = server.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    let uri = format!("{}{path}", line.trim().replace("[::]", "[::1]"));
    let got = process::read(process::command(lowmesh, &["get", "--timeout", "10s", &uri]));
    server.kill().and_then(|()| server.wait()).context("cannot end the server")?;
    ready.context("the server has an output")?.context("the server printed nothing")?;
    let got = got?;
    println!("{uri}: {}", got.trim_end());
    ensure!(got.trim_end() == text, "{name} answered {got:?}, not {text:?}");
    Ok(())
}
