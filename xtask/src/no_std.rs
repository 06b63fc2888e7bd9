//! `no-std`: the crates that go onto a device build for one.
//!
//! The target of a Cortex-M4 is installed if it is missing. Where that fails, only the text is checked (by `tidy`: the
//! attribute, and no name out of `std`), and the stage says so.

use anyhow::{Result, bail};

use crate::{metadata, process, product, tidy};

const TARGET: &str = "thumbv7em-none-eabi";

/// Builds them, or says why not.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("no-std takes no argument, but got {unknown:?}");
    }
    if let Err(why) = target() {
        println!("the text only is checked, since target {TARGET} cannot be installed: {why:#}");
        return tidy::run(&[]);
    }
    let names: Vec<String> = metadata::packages()?
        .into_iter()
        .filter(|package| tidy::is_for_devices(&package.name))
        .map(|package| format!("lowmesh-{}", package.name))
        .collect();
    // Nothing runs there, so metadata of the crates is enough to see what they use.
    let mut command = process::cargo(&["check", "--quiet", "--lib", "--target", TARGET]);
    command.args(["--profile", product::PROFILE]);
    for name in &names {
        command.args(["-p", name]);
    }
    process::execute(command)?;
    println!("{} crates build for {TARGET}: {}", names.len(), names.join(", "));
    Ok(())
}

/// Installs the target, unless it is there.
fn target() -> Result<()> {
    let list = process::read(process::command("rustup", &["target", "list", "--installed"]))?;
    if list.lines().any(|line| line.trim() == TARGET) {
        return Ok(());
    }
    process::read(process::command("rustup", &["target", "add", TARGET])).map(drop)
}
