//! `scapy`: 6LoWPAN compared with an independent implementation. Scapy builds the vectors that our tests parse, and parses
//! the frames of a run that our codec built: compressed headers (RFC 6282) and fragments (RFC 4944).
//!
//! Scapy comes from PyPI at a pinned version, into a virtual environment below the target folder.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::{capture, process, product, python};

/// The version whose bytes the vectors are.
const SCAPY: &str = "scapy==2.8.0";
/// What it does, both ways.
const SCRIPT: &str = "xtask/python/lowpan.py";
/// What it builds; `lowpan` has the test that parses it.
const VECTORS: &str = "tests/vectors/lowpan/scapy.txt";

/// Every hop reassembles packets: the method that scapy reads.
const MODE: &[&str] = &["--set", "fragments.mode=hwr"];

/// Compares the vectors, and lets scapy read a capture; `--write` updates the vectors.
pub fn run(args: &[String]) -> Result<()> {
    let write = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => bail!("unknown arguments {args:?}; allowed: --write"),
    };
    let python = python::environment(SCAPY, "scapy")?;
    let built = process::read(process::command(&python, &[SCRIPT, "build"]))?;
    let file = process::root().join(VECTORS);
    if write {
        fs::write(&file, &built).with_context(|| format!("cannot write {VECTORS}"))?;
    }
    let stored = fs::read_to_string(&file).with_context(|| format!("cannot read {VECTORS}"))?;
    ensure!(stored == built, "{SCAPY} does not build {VECTORS}; cargo xtask scapy --write does");
    println!("{} vectors are as {SCAPY} builds them", stored.lines().count());

    let binary = product::build()?;
    let capture_file =
        std::env::temp_dir().join(format!("lowmesh-scapy-{}.pcap", std::process::id()));
    let path = capture_file.to_string_lossy().into_owned();
    let args: Vec<&str> = [capture::LARGE, MODE, &["--pcap", &path]].concat();
    product::report(product::run(&binary, &args))?;
    let told = process::read(process::command(&python, &[SCRIPT, "read", &path]))
        .with_context(|| format!("the capture is {path}"))?;
    print!("scapy reads a capture: {told}");
    fs::remove_file(&capture_file)?;
    Ok(())
}
