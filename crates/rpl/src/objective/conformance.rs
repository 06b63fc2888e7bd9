//! What every [`ObjectiveFunction`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all functions of this crate.

use alloc::format;
use alloc::string::{String, ToString};

use lowmesh_registry::{Breach, Row};
use lowmesh_units::{NodeId, Purpose, Rank, Rng, Seed};

use super::{ObjectiveFunction, make};
use crate::neighbour::Etx;
use crate::params::LAST_RESORT_LINK_METRIC;

/// Random neighbours and links that a function judges.
const SAMPLES: u32 = 20_000;

/// Checks the row and the function that it makes: a child ranks at least one hop below its parent, neither a worse link nor
/// a worse parent gives a better rank, and nothing lies below an infinite rank or a dead link.
///
/// ```
/// use lowmesh_rpl::objective::{OF0, conformance};
/// conformance::check(&OF0)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn ObjectiveFunction>) -> Result<(), Breach> {
    let named = |what| row.breach(what);
    row.check()?;
    let objective = make(&row.into());
    if objective.name() != row.name {
        return Err(named(format!("the function is called {}", objective.name())));
    }
    check_ends(objective.as_ref()).map_err(named)?;
    let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Swarm);
    (0..SAMPLES).try_for_each(|_| check_sample(objective.as_ref(), &mut rng)).map_err(named)
}

/// Nothing lies below an infinite rank or a dead link, and a link of last resort leads somewhere.
fn check_ends(objective: &dyn ObjectiveFunction) -> Result<(), String> {
    let through = |rank, etx| objective.rank_through(rank, etx, 256);
    let worst = Etx(LAST_RESORT_LINK_METRIC);
    let wrong = [
        (through(Rank::INFINITE, Etx(128)) != Rank::INFINITE, "a place below an infinite rank"),
        (through(Rank(256), Etx::DEAD) != Rank::INFINITE, "a place behind a dead link"),
        (through(Rank(256), worst) == Rank::INFINITE, "no rank behind a link of last resort"),
        (
            through(Rank(256), Etx(worst.0 + 1)) != Rank::INFINITE,
            "a place behind a link that is worse than the last resort",
        ),
        (objective.max_link_metric() > worst, "a limit for links beyond the last resort"),
        (objective.min_hop_rank_increase() == 0, "hops that do not increase the rank"),
    ];
    match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, what)) => Err(format!("it gives {what}")),
        None => Ok(()),
    }
}

/// Ranks do not fall along a path, nor with a worse link or a worse parent.
fn check_sample(objective: &dyn ObjectiveFunction, rng: &mut Rng) -> Result<(), String> {
    let mut below = |end: u32| rng.below(end) as u16;
    let (rank, etx, min_hop) = (below(65_536), below(65_536), 1 + below(2047));
    let child = objective.rank_through(Rank(rank), Etx(etx), min_hop);
    let hop = u32::from(rank) + u32::from(min_hop);
    let at = |rank, etx| format!("below rank {rank} over ETX {etx}/128");
    if child != Rank::INFINITE && u32::from(child.0) < hop {
        let at = at(rank, etx);
        return Err(format!("{at} a node has rank {}, less than a hop of {min_hop} more", child.0));
    }
    let through = |rank, etx| objective.rank_through(Rank(rank), Etx(etx), 256);
    let (rank, etx) = (below(30_000), 128 + below(1_900));
    let (worse_rank, worse_etx) = (rank + below(30_000), etx + below(2_000));
    let best = through(rank, etx);
    if best > through(rank, worse_etx) || best > through(worse_rank, etx) {
        let at = at(rank, etx);
        return Err(format!("{at} the rank is worse than over a worse link or parent").to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lowmesh_registry::{Registry, Row};
    use lowmesh_units::Duration;

    use super::*;

    #[test]
    fn every_built_in_function_keeps_the_rules() {
        assert_eq!(Registry::<dyn ObjectiveFunction>::builtin().breaches(), []);
    }

    /// OF0, but the rank of a child is that of its parent.
    #[derive(Debug)]
    struct Flat;

    impl ObjectiveFunction for Flat {
        fn name(&self) -> &'static str {
            FLAT.name
        }
        fn code_point(&self) -> u16 {
            0
        }
        fn min_hop_rank_increase(&self) -> u16 {
            256
        }
        fn max_link_metric(&self) -> Etx {
            Etx(512)
        }
        fn rank_through(&self, neighbour: Rank, etx: Etx, _min_hop: u16) -> Rank {
            if etx.0 > LAST_RESORT_LINK_METRIC { Rank::INFINITE } else { neighbour }
        }
        fn switch_threshold(&self) -> u32 {
            0
        }
        fn switch_after(&self) -> Option<Duration> {
            None
        }
        fn measures_first(&self) -> bool {
            false
        }
    }

    static FLAT: Row<dyn ObjectiveFunction> =
        Row::<dyn ObjectiveFunction>::plain("flat", "No hop counts", |_| Box::new(Flat));

    #[test]
    fn a_function_without_hops_is_refused() {
        let breach = check(&FLAT).expect_err("a child ranks as its parent").to_string();
        assert!(breach.starts_with("objective function flat: below rank"), "{breach}");
    }
}
