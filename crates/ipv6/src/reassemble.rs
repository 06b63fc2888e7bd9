//! Mode E2E, the destination's side: packets put together again (RFC 8200 s4.5), bounded in number, octets and time.
//!
//! Fragments that overlap end their packet for good (RFC 5722); a packet that has a fragment header and is whole
//! does not wait for others (RFC 6946).

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_reassembly::{Admission, Fit, Limits, Newcomer, Policy, Renewal, Table};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::Header;

use crate::params::{
    ENDED_PACKETS, GNRC_LIMITS, REASSEMBLED_OCTETS, REASSEMBLIES, REASSEMBLY_TIMEOUT,
};

use buffer::{Buffer, Name, Part};

/// What a destination does where RFC 8200 leaves it the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StackProfile {
    /// Ours: a packet waits for its time and no longer, and one that is over opens nothing.
    #[default]
    Native,
    /// That of GNRC, the stack of RIOT (`gnrc_ipv6_ext_frag`, alike from 2019 on):
    ///
    /// - when all places are taken, the packet whose last fragment is the *newest* makes room (the comparison that is
    ///   to find the oldest is the wrong way round);
    /// - all packets together wait with [`GNRC_LIMITS`] fragments for each place; a packet whose fragment is beyond
    ///   that is given up;
    /// - there is one timer, which every fragment restarts: packets time out when none came for the whole timeout;
    /// - a packet that is over is not known any more, and its next fragment takes a place.
    ///
    /// So where fragments keep coming, packets that cannot be completed fill all places but one, for good.
    RiotGnrc,
}

/// What a destination sets aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// [`REASSEMBLIES`].
    pub packets: usize,
    /// [`REASSEMBLED_OCTETS`], of each packet.
    pub octets: usize,
    /// [`REASSEMBLY_TIMEOUT`].
    pub timeout: Duration,
    /// What the RFC leaves open.
    pub profile: StackProfile,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packets: REASSEMBLIES,
            octets: REASSEMBLED_OCTETS,
            timeout: REASSEMBLY_TIMEOUT,
            profile: StackProfile::Native,
        }
    }
}

impl Config {
    /// Fragments that may wait, of all packets together.
    const fn fragments_max(&self) -> usize {
        match self.profile {
            StackProfile::Native => usize::MAX,
            StackProfile::RiotGnrc => self.packets * GNRC_LIMITS,
        }
    }
    const fn limits(&self) -> Limits {
        let (places, timeout) = (self.packets, self.timeout);
        // The octets of each packet are bounded, and so are those of all.
        Limits { places, octets: usize::MAX, timeout, stale_after: timeout }
    }
    const fn policy(&self) -> Policy {
        match self.profile {
            StackProfile::Native => Policy {
                admission: Admission::Shares,
                renewal: Renewal::Never,
                ended_max: ENDED_PACKETS,
            },
            StackProfile::RiotGnrc => Policy {
                admission: Admission::DisplacesNewest,
                renewal: Renewal::All,
                ended_max: 0,
            },
        }
    }
}

/// What became of a packet that is for this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has no fragment header.
    Whole(Vec<u8>),
    /// The first fragment of a packet that came; the others are waited for.
    Begun {
        /// The name of the packet that had to make room, if one had.
        displaced: Option<Handle>,
    },
    /// A further fragment, kept or not needed; its own copy is over.
    Merged,
    /// Nothing is missing.
    Complete {
        /// The packet as if it had never been cut.
        packet: Vec<u8>,
        /// The name under which its other fragments waited; none when it came in one.
        kept: Option<Handle>,
    },
    /// It ends here, and with it all that came of its packet: `kept`, if something was.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The name of the packet that was waiting.
        kept: Option<Handle>,
    },
}

/// All packets that are put together at a node.
#[derive(Clone, Debug)]
pub struct Reassembly {
    config: Config,
    table: Table<Name, Buffer>,
}

impl Reassembly {
    /// Nothing waits yet.
    pub const fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.limits(), config.policy()) }
    }

    /// Takes a packet that is for this node.
    pub fn accept(&mut self, now: Instant, packet: Vec<u8>, handle: Handle) -> Outcome {
        let refused = |reason| Outcome::Dropped { reason, kept: None };
        let part = match Part::find(&packet) {
            Ok(Some(part)) => part,
            Ok(None) => return Outcome::Whole(packet),
            Err(reason) => return refused(reason),
        };
        let Ok(ip) = Header::parse_packet(&packet) else { return refused(DropReason::Malformed) };
        if part.header.is_atomic() {
            // RFC 6946 s4: a packet that is whole does not meet fragments with its identification.
            let packet = part.first().assemble(part.data());
            return Outcome::Complete { packet, kept: None };
        }
        let name = Name {
            source: ip.source,
            destination: ip.destination,
            identification: part.header.identification,
        };
        if self.table.has_ended(&name, now) {
            return Outcome::Merged;
        }
        let place = self.table.position(&name);
        if !part.is_regular(self.config.octets) {
            return self.give_up(now, name, place, DropReason::Malformed);
        }
        self.table.on_fragment(now);
        if let Some(at) = place {
            return self.merge(now, at, &part);
        }
        // A packet's source proves nothing to a node that only puts it together.
        let newcomer = Newcomer { name, octets: 0, room: usize::MAX, is_proven: false };
        let displaced = self.table.admit(now, &newcomer);
        let Some(displaced) = displaced.filter(|_| self.takes_fragments()) else {
            return self.give_up(now, name, None, DropReason::BufferFull);
        };
        let at = self.table.insert(now, name, Buffer::new(handle));
        match self.merge(now, at, &part) {
            Outcome::Merged => {
                let displaced = displaced.first().map(|entry| entry.datagram.handle);
                Outcome::Begun { displaced }
            }
            other => other,
        }
    }

    /// Whether another fragment may wait.
    fn takes_fragments(&self) -> bool {
        let waiting: usize = self.table.iter().map(|entry| entry.datagram.fragments()).sum();
        waiting < self.config.fragments_max()
    }

    fn merge(&mut self, now: Instant, at: usize, part: &Part<'_>) -> Outcome {
        let takes_fragments = self.takes_fragments();
        self.table.on_news(at, now);
        let entry = self.table.get(at);
        let name = entry.name;
        match entry.datagram.fit(part) {
            Fit::Duplicate => Outcome::Merged,
            // RFC 5722 s3: the packet is discarded, with the fragments that are still to come.
            Fit::Overlap => self.give_up(now, name, Some(at), DropReason::Malformed),
            Fit::New if !takes_fragments => {
                self.give_up(now, name, Some(at), DropReason::BufferFull)
            }
            Fit::New => {
                let is_complete = self.table.update(at, |entry| {
                    entry.datagram.store(part);
                    entry.datagram.is_complete()
                });
                if !is_complete {
                    return Outcome::Merged;
                }
                let Buffer { first, partial, handle, .. } = self.table.end(at, now).datagram;
                let first = first.expect("a complete packet has its first fragment");
                let packet = first.assemble(partial.bytes());
                Outcome::Complete { packet, kept: Some(handle) }
            }
        }
    }

    fn give_up(
        &mut self,
        now: Instant,
        name: Name,
        place: Option<usize>,
        reason: DropReason,
    ) -> Outcome {
        let kept = place.map(|at| self.table.remove(at).datagram.handle);
        self.table.remember(name, now);
        Outcome::Dropped { reason, kept }
    }

    /// Takes one packet whose time is over, with its first fragment if that has come.
    pub fn expire(&mut self, now: Instant) -> Option<(Handle, Option<Vec<u8>>)> {
        let Buffer { first, partial, handle, .. } = self.table.expire(now)?.datagram;
        Some((handle, first.map(|first| first.fragment(partial.bytes()))))
    }
    /// When the oldest packet has waited long enough.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.table.next_deadline()
    }
    /// The packets that wait, oldest first.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.table.iter().map(|entry| entry.datagram.handle)
    }
    /// Octets that wait.
    pub const fn octets(&self) -> usize {
        self.table.octets()
    }
}

mod buffer;
#[cfg(test)]
mod tests;
