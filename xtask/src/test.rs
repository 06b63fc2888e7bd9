//! `test`: everything a change must pass, in the order in which a fault is cheapest to find.
//!
//! A machine with nothing but a Rust toolchain can run it: what else is needed (tshark) is installed when
//! the user is root, and otherwise named.

use anyhow::{Context, Result, bail};

use crate::process::{self, Stopwatch};
use crate::{capture, check, determinism, no_std, scapy, tidy, zep};

type Stage = (&'static str, fn() -> Result<()>);

const STAGES: &[Stage] = &[
    ("tidy: directions, sizes, names, circles, dependencies", || tidy::run(&[])),
    ("formatting", check::formatting),
    ("lints", check::lints),
    ("tests of all crates", tests),
    ("device crates without std", || no_std::run(&[])),
    ("same seed, same trace", || determinism::run(&[])),
];

const EXTERNAL: &[Stage] = &[
    ("capture read by tshark", || capture::run(&[])),
    ("ZEP read by tshark", || zep::run(&[])),
    ("6LoWPAN read and built by scapy", || scapy::run(&[])),
];

/// Runs all stages and stops at the first that fails.
pub fn run(args: &[String]) -> Result<()> {
    let mut external = true;
    for arg in args {
        match arg.as_str() {
            "--skip-external" => external = false,
            other => bail!("unknown argument {other:?}; allowed: --skip-external"),
        }
    }
    let whole = Stopwatch::start();
    let mut stages: Vec<Stage> = Vec::new();
    if external {
        stages.push(("tools", tools));
    }
    stages.extend(STAGES);
    if external {
        stages.extend(EXTERNAL);
    }
    for (number, (name, stage)) in stages.iter().enumerate() {
        let place = format!("[{}/{}] {name}", number + 1, stages.len());
        println!("\n== {place}");
        let clock = Stopwatch::start();
        stage().with_context(|| format!("{place} failed"))?;
        println!("== {place}: passed in {:.1} s", clock.elapsed().as_secs_f64());
    }
    let skipped = if external { "" } else { " (without the stages that need tshark or scapy)" };
    println!(
        "\nall {} stages passed in {:.0} s{skipped}",
        stages.len(),
        whole.elapsed().as_secs_f64()
    );
    Ok(())
}

fn tests() -> Result<()> {
    process::execute(process::cargo(&["test", "--quiet", "--workspace"]))
}

/// Makes sure that tshark is there.
fn tools() -> Result<()> {
    if process::installed("tshark") {
        return Ok(());
    }
    if !root_user() || !process::installed("apt-get") {
        bail!(
            "tshark is missing and cannot be installed from here.\n\
             hint: install it (Debian, Ubuntu: apt-get install tshark), or leave its stage out: \
             cargo xtask test --skip-external"
        );
    }
    println!("tshark is missing; installing it");
    for args in
        [&["-qq", "update"][..], &["-qq", "install", "--yes", "--no-install-recommends", "tshark"]]
    {
        let mut command = process::command("apt-get", args);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        process::execute(command).context(
            "tshark could not be installed; cargo xtask test --skip-external leaves its stage out",
        )?;
    }
    Ok(())
}

fn root_user() -> bool {
    process::read(process::command("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}
