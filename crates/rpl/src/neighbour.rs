//! Who was heard: the candidate neighbours of RFC 6550 s8.2.1, bounded.

use alloc::vec::Vec;

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::Address;

use crate::params;
use crate::{Order, Sequence};

/// Expected transmissions of a link, in 1/128 (RFC 6551 s4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Etx(pub u16);

impl Etx {
    /// What a link is worth before its first frame.
    pub const DEFAULT: Self = Self(params::ETX_DEFAULT);
    /// A link that is down.
    pub const DEAD: Self = Self(u16::MAX);

    /// An ETX from a real number, at least 1.
    pub fn from_f64(etx: f64) -> Self {
        Self(libm::round(etx.max(1.0) * 128.0) as u16)
    }
}

/// One neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) address: Address,
    /// From its last DIO of this DODAG version; infinite when it is not in it.
    pub(crate) rank: Rank,
    /// The DTSN in its last DIO.
    pub(crate) dtsn: Sequence,
    /// The DTSN that this node has last answered with DAOs; at first that of its first DIO.
    pub(crate) answered: Option<Sequence>,
    /// The latest DTSN of this node that it got in a unicast DIO.
    pub(crate) reminded: Option<Sequence>,
    /// It has been silent for several of its periods.
    pub(crate) is_silent: bool,
    /// Its global address.
    pub(crate) global: Address,
    pub(crate) etx: Etx,
    /// Until when `etx` counts as measured.
    pub(crate) fresh_until: Instant,
    /// It refused a DAO; until then it comes last in the choice of parents.
    pub(crate) refused_until: Instant,
    /// When it was last probed, so that probes go round.
    pub(crate) probed: Instant,
    /// Until this time, packets with an outdated rank cause no further unicast DIO to it.
    pub(crate) corrected_until: Instant,
}

/// The neighbours in the order of their addresses.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    list: Vec<Neighbour>,
    max: usize,
}

impl Neighbours {
    pub(crate) const fn new(max: usize) -> Self {
        Self { list: Vec::new(), max }
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.list.iter()
    }
    pub(crate) fn get(&self, address: &Address) -> Option<&Neighbour> {
        self.position(address).ok().map(|index| &self.list[index])
    }
    pub(crate) fn get_mut(&mut self, address: &Address) -> Option<&mut Neighbour> {
        self.position(address).ok().map(|index| &mut self.list[index])
    }
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }
    /// True when the neighbour incremented its DTSN (RFC 6550 s9.6) and has got no DAO since.
    pub(crate) fn wants_daos(&self, address: &Address) -> bool {
        let newer = |neighbour: &Neighbour| {
            let answered = neighbour.answered;
            answered.is_some_and(|answered| neighbour.dtsn.order(answered) == Order::Newer)
        };
        self.get(address).is_some_and(newer)
    }
    /// Marks the current DTSN of each neighbour as answered.
    pub(crate) fn note_answered(&mut self) {
        for neighbour in &mut self.list {
            neighbour.answered = neighbour.answered.map(|_| neighbour.dtsn);
        }
    }
    /// Forgets all ranks (another DODAG version counts now), keeps what is known of the links.
    pub(crate) fn forget_ranks(&mut self) {
        for neighbour in &mut self.list {
            neighbour.rank = Rank::INFINITE;
        }
    }
    /// Resets the ETX of links that were too bad: a node in no DODAG sends nothing over them, so nothing
    /// would ever measure them again.
    pub(crate) fn reset_bad_links(&mut self, worst: Etx) {
        for neighbour in self.list.iter_mut().filter(|n| n.etx > worst) {
            (neighbour.etx, neighbour.fresh_until) = (Etx(params::ETX_AFTER_LOSS), Instant::ZERO);
        }
    }

    /// The neighbour at `address`, new if need be. When there is no room, the one furthest from the root
    /// makes place, but never `keep` (the parent). `None` when there is still no room.
    pub(crate) fn entry(
        &mut self,
        address: Address,
        rank: Rank,
        keep: Option<Address>,
    ) -> Option<&mut Neighbour> {
        if self.position(&address).is_err() && self.list.len() >= self.max {
            let worth = |neighbour: &Neighbour| (neighbour.rank, neighbour.etx);
            let (index, worst) = self
                .list
                .iter()
                .enumerate()
                .filter(|(_, neighbour)| Some(neighbour.address) != keep)
                .max_by_key(|(_, neighbour)| worth(neighbour))?;
            if worth(worst) <= (rank, Etx::DEFAULT) {
                return None;
            }
            self.list.remove(index);
        }
        let index = match self.position(&address) {
            Ok(index) => index,
            Err(index) => {
                self.list.insert(index, Neighbour::new(address));
                index
            }
        };
        Some(&mut self.list[index])
    }

    fn position(&self, address: &Address) -> Result<usize, usize> {
        self.list.binary_search_by(|neighbour| neighbour.address.cmp(address))
    }
}

impl Neighbour {
    const fn new(address: Address) -> Self {
        Self {
            address,
            rank: Rank::INFINITE,
            dtsn: Sequence::START,
            answered: None,
            reminded: None,
            is_silent: false,
            global: address,
            etx: Etx::DEFAULT,
            fresh_until: Instant::ZERO,
            refused_until: Instant::ZERO,
            probed: Instant::ZERO,
            corrected_until: Instant::ZERO,
        }
    }
}
