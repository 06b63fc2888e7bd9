//! The files that the system lets this program open, and how many connections they suffice for.
//!
//! Each connection is an open file. A server that has none left takes no connection any more, and nothing in its own
//! tables gives way: so these have to be the smaller ones.

use lowmesh_net::server::Limits;
#[cfg(unix)]
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::console::say;

/// Open files beside connections: ports of several addresses, files of a folder or of contexts, targets of a proxy.
const OTHERS: usize = 128;
/// The same where the system allows few.
const OTHERS_MIN: usize = 24;

/// Allows as many open files as the limits need, if the system lets it; else lowers the limits, and says so.
pub fn provide(limits: Limits) -> Limits {
    let needed = connections(&limits).saturating_add(OTHERS);
    match raise(needed) {
        Some(allowed) if allowed < needed => {
            let fitting = fit(limits, allowed);
            say!(
                "warning: the system allows {allowed} open files, and the limits need {needed}: \
                 {} connections are served at a time, and {} handshakes",
                fitting.connections_max,
                fitting.opening_max
            );
            say!("hint: raise it with `ulimit -n {needed}`, or LimitNOFILE of systemd");
            fitting
        }
        _ => limits,
    }
}

/// All connections that there may be at once.
const fn connections(limits: &Limits) -> usize {
    let begun = limits.connections_max.saturating_add(limits.opening_max);
    // As many that were cut may not be gone yet.
    begun.saturating_add(limits.leaving_max.saturating_mul(2))
}

/// Raises the soft limit as far as needed, and says what it is now.
#[cfg(unix)]
fn raise(needed: usize) -> Option<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let wanted = (needed as u64).min(hard);
    let raised = soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    usize::try_from(if raised { wanted } else { soft }).ok()
}

#[cfg(not(unix))]
fn raise(_needed: usize) -> Option<usize> {
    None
}

/// The limits in proportion to so many open files.
fn fit(limits: Limits, allowed: usize) -> Limits {
    let room = allowed.saturating_sub(OTHERS.min(allowed / 2).max(OTHERS_MIN));
    let all = connections(&limits).max(1);
    let part = |of: usize| (of.saturating_mul(room) / all).max(1);
    let share = |of: usize, max: usize| part(of).min(max);
    let (connections_max, opening_max) = (part(limits.connections_max), part(limits.opening_max));
    Limits {
        connections_max,
        connections_per_source: share(limits.connections_per_source, connections_max),
        opening_max,
        opening_per_source: share(limits.opening_per_source, opening_max),
        leaving_max: part(limits.leaving_max),
        ..limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_open_files_are_shared_as_more_would_be() {
        for allowed in [48, 64, 256, 500] {
            let fitting = fit(Limits::default(), allowed);
            assert!(connections(&fitting) + OTHERS_MIN <= allowed.max(48), "{allowed}");
            assert!(fitting.connections_per_source <= fitting.connections_max);
            assert!(fitting.opening_max > 1 && fitting.leaving_max > 0);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_soft_limit_is_raised_as_far_as_it_is_needed() {
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("there is one");
        let allowed = raise(usize::try_from(soft).expect("a number")).expect("there is one");
        assert_eq!(allowed as u64, soft, "it suffices already");
    }
}
