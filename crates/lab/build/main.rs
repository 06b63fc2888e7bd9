//! The build script of `lowmesh-lab`: gives the library the id of its own build, a hash over the sources that a run
//! depends on.

mod locked;
mod sources;

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

fn main() -> ExitCode {
    let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        println!("cargo::error=only cargo can run the build script of lowmesh-lab");
        return ExitCode::FAILURE;
    };
    let unlocked = locked::is_ignored();
    match sources::of(Path::new(&package)) {
        Ok(sources) => {
            let id = if unlocked { locked::own_id(&sources.id, now()) } else { sources.id };
            println!("cargo::rustc-env=LOWMESH_BUILD={id}");
            println!("cargo::rustc-env=LOWMESH_UNLOCKED={unlocked}");
            for path in sources.watched {
                println!("cargo::rerun-if-changed={}", path.display());
            }
            if unlocked {
                println!(
                    "cargo::warning=cargo install without --locked takes other versions than Cargo.lock; this build has an \
                     id of its own, and its results can differ from those of other builds"
                );
                // A path that never exists: the next build asks again.
                println!("cargo::rerun-if-changed={id}");
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("cargo::error=the sources of this build cannot be hashed: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Nanoseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "names a build, not an event of a protocol")]
fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
