//! Whether cargo compiles the versions of the lock file.
//!
//! Every cargo command does, except `cargo install` without `--locked`: it resolves all dependencies again, and no build
//! script sees the result. Only the command line of that cargo, an ancestor of this process, tells.

use std::path::Path;
use std::process::Command;

use xxhash_rust::xxh3::Xxh3;

/// Processes between a build script and the cargo that a user has started.
const ANCESTORS_MAX: usize = 8;

/// Whether a cargo that ignores the lock file has started this process. False where the system does not tell.
pub fn is_ignored() -> bool {
    let mut process = std::process::id();
    for _ in 0..ANCESTORS_MAX {
        let Some((parent, words)) = look_up(process) else { return false };
        if ignores_lock(&words) {
            return true;
        }
        process = parent;
    }
    false
}

/// The id of a build at this time whose versions nobody knows: no other build has it.
pub fn own_id(sources: &str, time: u128) -> String {
    let mut hash = Xxh3::new();
    hash.update(sources.as_bytes());
    hash.update(&time.to_le_bytes());
    format!("{:032x}", hash.digest128())
}

/// Whether these are the words of a `cargo install` that resolves the dependencies again.
pub fn ignores_lock(words: &[String]) -> bool {
    let [program, arguments @ ..] = words else { return false };
    let is_cargo = Path::new(program).file_stem().is_some_and(|stem| stem == "cargo");
    let verb = arguments.iter().find(|word| !word.starts_with(['-', '+']));
    let keeps = arguments.iter().any(|word| word == "--locked" || word == "--frozen");
    is_cargo && verb.is_some_and(|verb| verb == "install") && !keeps
}

/// The parent of a process, and its command line.
fn look_up(process: u32) -> Option<(u32, Vec<String>)> {
    let folder = Path::new("/proc").join(process.to_string());
    if let (Ok(words), Ok(status)) =
        (std::fs::read(folder.join("cmdline")), std::fs::read_to_string(folder.join("status")))
    {
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        let words = words.split(|octet| *octet == 0).filter(|word| !word.is_empty());
        let words = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        return Some((parent.trim().parse().ok()?, words));
    }
    let mut ps = Command::new("ps");
    ps.args(["-o", "ppid=", "-o", "args=", "-p"]).arg(process.to_string());
    let output = ps.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().map(str::to_owned);
    let parent = words.next()?.parse().ok()?;
    Some((parent, words.collect()))
}
