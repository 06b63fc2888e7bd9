//! Messages on stderr, and whether anybody still reads stdout.
//!
//! A pipe without a reader, as after `| head -1`, is no error of ours: messages on stderr are lost, and no task ends. A
//! verb that only shows things ends as soon as the reader of stdout goes away, not with its next line.

use std::fmt;
use std::future::pending;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use nix::sys::stat::{SFlag, fstat};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Writes one line to stderr, as `eprintln!` does, and never panics.
macro_rules! say {
    ($($words:tt)*) => { $crate::console::write(format_args!($($words)*)) };
}
pub(crate) use say;

/// Writes one line to stderr in one piece, if anybody reads it.
pub fn write(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    if cfg!(test) {
        // The test harness captures what `eprint!` writes.
        return eprint!("{line}");
    }
    let _unread = io::stderr().write_all(line.as_bytes());
}

/// Waits until nobody reads stdout any more; only a pipe reports that.
pub async fn reader_gone() {
    // If stdout cannot be watched, the next write fails instead.
    let Some(stdout) = watched() else { return pending().await };
    if stdout.ready(Interest::ERROR).await.is_err() {
        pending::<()>().await;
    }
}

/// Stdout, if it is a pipe. It is only watched; [`io::stdout`] writes to it.
fn watched() -> Option<Sender> {
    let about = fstat(io::stdout()).ok()?;
    let is_pipe = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT == SFlag::S_IFIFO;
    let stdout = is_pipe.then(|| io::stdout().as_fd().try_clone_to_owned().ok()).flatten()?;
    Sender::from_owned_fd_unchecked(stdout).ok()
}
