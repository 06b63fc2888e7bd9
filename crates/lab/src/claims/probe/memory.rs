//! The memory that each fragmentation mode reserves for its state in a built-in scenario. Sizes are those of this machine:
//! pointers have 8 octets, while those of the publication's devices have 4. Code is not counted.

use lowmesh_congestion::Window;
use lowmesh_lowpan::memory::StaticState;
use lowmesh_lowpan::{FragmentMode, params};
use lowmesh_units::Eui64;

use super::{Values, values};
use crate::scenario::Scenario;
use crate::settings;

/// Octets of a link address's length and of a datagram tag (RFC 4944 s5.3).
const ADDRESS_LENGTH: usize = 1;
const TAG: usize = size_of::<u16>();

/// Octets of state by fragmentation mode, with the bounds of the scenario `name`.
pub fn probe(name: &str) -> Result<Values, String> {
    let scenario = Scenario::load(name, &[]).map_err(|error| error.to_string())?;
    let config = settings::parts(&scenario).stack.lowpan;
    let ram = |mode| StaticState::of(&lowmesh_lowpan::Config { mode, ..config }).total() as f64;
    let (hop_wise, forwarded, recovered) =
        (ram(FragmentMode::HopWise), ram(FragmentMode::Forwarded), ram(FragmentMode::Recovered));
    let entry = size_of::<Eui64>() + ADDRESS_LENGTH + TAG + params::MTU;
    Ok(values([
        ("static_entry", entry as f64),
        ("hwr", hop_wise),
        ("ff", forwarded),
        ("sfr", recovered),
        ("ff_beyond_hwr", forwarded - hop_wise),
        ("sfr_beyond_ff", recovered - forwarded),
        // What a window behind the common interface costs besides its own state.
        ("window_reference", size_of::<Box<dyn Window>>() as f64),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_that_does_more_sets_more_aside() {
        let found = probe("lille-50").expect("it is built in");
        assert!(found["hwr"] < found["ff"] && found["ff"] < found["sfr"], "{found:?}");
        assert!(probe("nowhere").is_err());
    }
}
