//! The program `lowmesh`. Its code is in the library `lowmesh_cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lowmesh_cli::main()
}
