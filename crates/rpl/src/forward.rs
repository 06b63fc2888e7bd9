//! Where a data packet goes next, and whether it went the right way so far (RFC 6550 s11.2): loops and
//! stale routes are found by the packets themselves.

use lowmesh_machine::DropReason;
use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{Address, HopByHopOption};

use crate::config::link_local_address;
use crate::dodag::Dodag;
use crate::membership::Membership;
use crate::node::Rpl;
use crate::params;

/// Which way along the DODAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the root.
    Up,
    /// Away from it.
    Down,
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Link-local address of the neighbour.
    pub address: Address,
    /// Which way that is.
    pub direction: Direction,
}

/// A data packet that passes this node or starts here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardContext {
    /// Link-local address of the neighbour it came from; `None` when it starts here.
    pub from: Option<Address>,
    /// Its destination (with a source route: the next segment).
    pub target: Address,
    /// Whether a source routing header gives the path.
    pub source_routed: bool,
    /// Its RPL option, if it has one.
    pub option: Option<HopByHopOption>,
}

/// What shall become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it on, with this option.
    Forward {
        /// Where to.
        next: NextHop,
        /// In place of the one it had.
        option: HopByHopOption,
    },
    /// It came down, and no route goes on: send it back with the F bit (RFC 6550 s11.2.2.3).
    ForwardingError {
        /// Link-local address of the neighbour that takes it back.
        to: Address,
        /// In place of the one it had.
        option: HopByHopOption,
    },
    /// It ends here.
    Drop(DropReason),
}

impl Rpl {
    /// The next hop of packets to `target` that start here: down a route, else up to the parent.
    pub fn next_hop(&self, target: &Address) -> Option<NextHop> {
        let dodag = self.member()?;
        self.way_down(dodag, target).or_else(|| way_up(dodag))
    }

    /// Decides about a packet, checks the direction it came from, and renews its RPL option.
    pub fn check_forward(&mut self, now: Instant, context: &ForwardContext) -> Verdict {
        let Some(dodag) = self.member() else {
            // RFC 6550 s8.2.2.5: a neighbour that missed the poison keeps this node as its parent while the link is good.
            if let Some(from) = context.from {
                self.correct(now, from);
            }
            return Verdict::Drop(DropReason::NotJoined);
        };
        let own_rank = dodag.dag_rank(dodag.rank);
        let lacks_route = context.from.is_none() && self.lacks_route(dodag, &context.target);
        // RFC 9008 s4.1.3: the flag tells the type of a new option; a forwarder never changes the type.
        let mut option = context.option.unwrap_or(HopByHopOption {
            skippable: dodag.has_rpi_0x23(),
            down: false,
            rank_error: false,
            forwarding_error: false,
            instance: self.base.config.instance,
            sender_rank: 0,
        });
        if lacks_route {
            self.repeat_dtsn(now);
        }
        if option.instance != self.base.config.instance {
            return Verdict::Drop(DropReason::NoRoute);
        }
        let came_back = option.forwarding_error && !context.source_routed;
        if let Some(from) = context.from {
            if came_back {
                // RFC 6550 s11.2.2.3: forget the route that led there, clear F, try again.
                option.forwarding_error = false;
                self.downward.forget_route(&context.target, &from, &mut self.base);
            } else if is_inconsistent(option, own_rank) {
                self.correct(now, from);
                if option.rank_error {
                    // RFC 6550 s11.2.2.2: the second time in a row of hops is a loop.
                    self.membership.hear_inconsistent(now, &mut self.base);
                    return Verdict::Drop(DropReason::RankLoop);
                }
                option.rank_error = true;
            }
            if !came_back && !context.source_routed && self.base.config.is_storing() {
                // A packet that came from the next hop would go straight back: that route is stale.
                self.downward.forget_route(&context.target, &from, &mut self.base);
            }
        }
        if let Some(from) = context.from.filter(|_| !option.down && !context.source_routed) {
            self.repeat_dtsn_to(now, from);
        }
        option.sender_rank = own_rank;
        self.onward(context, option, came_back)
    }

    fn onward(
        &self,
        context: &ForwardContext,
        mut option: HopByHopOption,
        came_back: bool,
    ) -> Verdict {
        let Some(dodag) = self.member() else { return Verdict::Drop(DropReason::NotJoined) };
        let down = if context.source_routed {
            let address = link_local_address(&context.target);
            Some(NextHop { address, direction: Direction::Down })
        } else {
            self.way_down(dodag, &context.target)
        };
        if down.is_none()
            && option.down
            && let Some(from) = context.from
        {
            // RFC 6550 s11.2.2.3: sending back is for storing mode; without a route of its own a packet of
            // non-storing mode would only come down the same way again.
            if !self.base.config.is_storing() {
                return Verdict::Drop(DropReason::NoRoute);
            }
            // RFC 6550 s11.2.2.3: what goes down never turns up again, it goes back marked.
            option.forwarding_error = true;
            let back = if came_back { dodag.parent } else { Some(from) };
            return back.map_or(Verdict::Drop(DropReason::NoRoute), |to| {
                Verdict::ForwardingError { to, option }
            });
        }
        match down.or_else(|| way_up(dodag)) {
            Some(next) => {
                // RFC 6550 s11.2: O says which way the packet goes from here.
                option.down = next.direction == Direction::Down;
                Verdict::Forward { next, option }
            }
            None => Verdict::Drop(DropReason::NoRoute),
        }
    }

    fn way_down(&self, dodag: &Dodag, target: &Address) -> Option<NextHop> {
        let address = if self.base.config.is_storing() {
            self.downward.routes().get(target)?.via
        } else if self.is_root() {
            let hops_max = self.base.config.source_route_hops_max;
            let hops = self.downward.routes().source_route(&dodag.address, target, hops_max)?;
            link_local_address(hops.first()?)
        } else {
            return None;
        };
        Some(NextHop { address, direction: Direction::Down })
    }

    /// True at a root for a node of its DODAG to which no route leads.
    fn lacks_route(&self, dodag: &Dodag, target: &Address) -> bool {
        self.is_root() && target[..8] == dodag.id[..8] && self.way_down(dodag, target).is_none()
    }

    /// A root that lost its routes has none to this node: it resets Trickle, so that DIOs with its new DTSN follow.
    fn repeat_dtsn(&mut self, now: Instant) {
        if self.membership.renewed.is_some_and(|at| now < at + params::WISH_HOLD) {
            self.membership.hear_inconsistent(now, &mut self.base);
        }
    }

    /// Tells a node below, which sends a packet up, of a new DTSN by one unicast DIO. Multicast DIOs are not acknowledged, and
    /// a node that misses the DTSN sends no DAO until its next refresh.
    fn repeat_dtsn_to(&mut self, now: Instant, from: Address) {
        let Membership { neighbours, renewed, dtsn, .. } = &mut self.membership;
        if self.base.config.is_storing() || renewed.is_none_or(|at| at + params::WISH_HOLD <= now) {
            return;
        }
        let Some(neighbour) = neighbours.get_mut(&from) else { return };
        if neighbour.reminded != Some(*dtsn) {
            neighbour.reminded = Some(*dtsn);
            self.membership.unicast_dio(now, from, &mut self.base);
        }
    }

    /// Sends a unicast DIO to a neighbour that uses an outdated rank of this node, or takes it for a member of a DODAG that it
    /// left. It does not wait for Trickle, so the
    /// packets that detect a loop also end it (as in RPL Lite).
    pub(crate) fn correct(&mut self, now: Instant, neighbour: Address) {
        let keep = self.membership.preferred_parent();
        let neighbours = &mut self.membership.neighbours;
        let Some(known) = neighbours.entry(neighbour, Rank::INFINITE, keep) else { return };
        if known.corrected_until <= now {
            known.corrected_until = now + params::CORRECTION_INTERVAL;
            self.membership.unicast_dio(now, neighbour, &mut self.base);
        }
    }
}

fn way_up(dodag: &Dodag) -> Option<NextHop> {
    dodag.parent.map(|address| NextHop { address, direction: Direction::Up })
}

/// RFC 6550 s11.2.2.2: down from a node of higher rank, or up from one of lower rank. A sender rank of zero
/// is a source that left it open.
const fn is_inconsistent(option: HopByHopOption, own_rank: u16) -> bool {
    if option.sender_rank == 0 {
        return false;
    }
    if option.down { option.sender_rank > own_rank } else { option.sender_rank < own_rank }
}
