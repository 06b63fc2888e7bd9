//! `no-std`: the crates that go onto a device build for one.
//!
//! With the target of a Cortex-M4 installed they are compiled for it. Without it only the text is checked
//! (by `tidy`: the attribute, and no name out of `std`), because a target cannot be fetched everywhere.

use anyhow::{Result, bail};

use crate::{metadata, process, tidy};

const TARGET: &str = "thumbv7em-none-eabi";

/// Builds them, or says why not.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("no-std takes no argument, but got {unknown:?}");
    }
    let installed = process::installed("rustup")
        && process::read(process::command("rustup", &["target", "list", "--installed"]))
            .is_ok_and(|list| list.lines().any(|line| line.trim() == TARGET));
    if !installed {
        println!(
            "target {TARGET} is not installed (rustup target add {TARGET}); the text only is checked"
        );
        return tidy::run(&[]);
    }
    let names: Vec<String> = metadata::packages()?
        .into_iter()
        .filter(|package| tidy::is_for_devices(&package.name))
        .map(|package| format!("lowmesh-{}", package.name))
        .collect();
    let mut command = process::cargo(&["build", "--quiet", "--lib", "--target", TARGET]);
    for name in &names {
        command.args(["-p", name]);
    }
    process::execute(command)?;
    println!("{} crates build for {TARGET}: {}", names.len(), names.join(", "));
    Ok(())
}
