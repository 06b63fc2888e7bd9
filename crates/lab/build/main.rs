//! The build script of `lowmesh-lab`: gives the library the id of its own build, a hash over the sources that a run
//! depends on.

mod sources;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        println!("cargo::error=only cargo can run the build script of lowmesh-lab");
        return ExitCode::FAILURE;
    };
    match sources::of(Path::new(&package)) {
        Ok(sources) => {
            println!("cargo::rustc-env=LOWMESH_BUILD={}", sources.id);
            for path in sources.watched {
                println!("cargo::rerun-if-changed={}", path.display());
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("cargo::error=the sources of this build cannot be hashed: {why}");
            ExitCode::FAILURE
        }
    }
}
