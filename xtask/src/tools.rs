//! Programs that gates need and cargo does not bring: installed where that is possible.

use anyhow::{Context, Result, bail};

use crate::process;

/// Makes sure that tshark is there.
pub fn tshark() -> Result<()> {
    if process::installed("tshark") {
        return Ok(());
    }
    if !can_install() {
        bail!(
            "tshark is missing and cannot be installed from here.\n\
             hint: install it (Debian, Ubuntu: apt-get install tshark), or leave its stage out: \
             cargo xtask test --skip-external"
        );
    }
    install("tshark").context(
        "tshark could not be installed; cargo xtask test --skip-external leaves its stage out",
    )
}

/// Installs a package of Debian.
pub fn install(package: &str) -> Result<()> {
    if !can_install() {
        bail!("not root, or no apt-get");
    }
    println!("installing {package}");
    for args in
        [&["-qq", "update"][..], &["-qq", "install", "--yes", "--no-install-recommends", package]]
    {
        let mut command = process::command("apt-get", args);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        process::execute(command)?;
    }
    Ok(())
}

fn can_install() -> bool {
    is_root() && process::installed("apt-get")
}

/// Whether the user may do everything.
pub fn is_root() -> bool {
    process::read(process::command("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}
