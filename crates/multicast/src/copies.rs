//! Whether a packet for several children goes out once as a broadcast, or once to each child (RFC 6550 s12).

use alloc::vec::Vec;

use lowmesh_registry::{Choice, Parameter};
use lowmesh_units::Eui64;

use crate::engine::{Engine, Receiver};
use crate::params::COPY_THRESHOLD;

/// How a packet goes to the children that registered for its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// One broadcast: cheap, and without acknowledgements.
    Broadcast,
    /// A unicast copy for each child, which the link layer acknowledges and repeats.
    Unicast,
    /// Unicast copies for up to this many children, else one broadcast (the rule of BMRF).
    Auto(usize),
}

impl Copies {
    /// The parameter that names them.
    pub const COPY: Parameter = Parameter::name(
        "copy",
        &["broadcast", "unicast", "auto"],
        "How a packet reaches children: by one broadcast, by a copy to each child, or by copies if there are few children",
    )
    .source("SMRF broadcasts; RFC 6550 s12 has unicast copies; auto is the rule of BMRF");
    /// The parameter of [`Copies::Auto`].
    pub const THRESHOLD: Parameter = Parameter::whole(
        "copy_threshold",
        COPY_THRESHOLD,
        0,
        64,
        "Number of children up to which `auto` sends a copy to each",
    )
    .unit("children")
    .source("BMRF (Lorente et al. 2017) with CSMA");

    /// What the parameters [`Copies::COPY`] and [`Copies::THRESHOLD`] of a choice say.
    pub fn of(choice: &Choice<dyn Engine>) -> Self {
        match choice.text("copy").as_str() {
            "unicast" => Self::Unicast,
            "auto" => Self::Auto(choice.whole("copy_threshold")),
            _ => Self::Broadcast,
        }
    }

    /// Who receives a packet for `children`.
    pub fn receivers(self, children: &[Eui64]) -> Vec<Receiver> {
        let each = || children.iter().copied().map(Receiver::Neighbour).collect();
        match self {
            Self::Unicast => each(),
            Self::Auto(most) if children.len() <= most => each(),
            Self::Broadcast | Self::Auto(_) => [Receiver::Broadcast].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_sends_copies_to_few_children_and_a_broadcast_to_many() {
        let children = [Eui64([1; 8]), Eui64([2; 8])];
        let each: Vec<_> = children.map(Receiver::Neighbour).into();
        assert_eq!(Copies::Auto(2).receivers(&children), each);
        assert_eq!(Copies::Auto(1).receivers(&children), [Receiver::Broadcast]);
        assert_eq!(Copies::Unicast.receivers(&children), each);
        assert_eq!(Copies::Broadcast.receivers(&children), [Receiver::Broadcast]);
        assert_eq!(Copies::Unicast.receivers(&[]), []);
    }
}
