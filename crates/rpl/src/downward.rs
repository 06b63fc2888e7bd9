//! The receiving side of DAOs (RFC 6550 s9.7 and s9.8): the routes that lead down, from their first news to
//! their end. What the parent shall hear of it is left to `dao`.

use alloc::vec::Vec;

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{
    Address, Dao, DaoAck, DaoStatus, Message, RplOption, Target, TransitInformation,
};

use crate::advertiser::Advert;
use crate::event::{Destination, Output};
use crate::node::Rpl;
use crate::params;
use crate::route::{Inserted, Route};
use crate::timer::Timer;
use crate::{Order, Sequence};

impl Rpl {
    pub(crate) fn on_dao(&mut self, now: Instant, from: Address, dao: &Dao) {
        let Some(dodag) = self.member() else { return };
        let elsewhere = dao.dodag_id.is_some_and(|id| id != dodag.id);
        if dao.instance != self.config.instance || elsewhere {
            return;
        }
        if !self.config.is_storing() && !self.is_root() {
            return;
        }
        if dodag.parent == Some(from) {
            // A parent that is a child: a loop of two. Believe its DAO, not its rank.
            if let Some(neighbour) = self.neighbours.get_mut(&from) {
                neighbour.rank = Rank::INFINITE;
            }
            self.reconsider(now);
            return;
        }
        let mut status = DaoStatus::ACCEPTED;
        for (targets, transit) in groups(&dao.options) {
            for target in targets {
                if !self.on_target(now, from, target, transit) {
                    status = DaoStatus::REJECTED;
                }
            }
        }
        if dao.ack_wanted {
            let (instance, sequence, options) = (dao.instance, dao.sequence, Vec::new());
            let ack = DaoAck { instance, sequence, status, dodag_id: dao.dodag_id, options };
            self.send(Destination::Unicast(from), Message::DaoAck(ack));
        }
    }

    /// Takes the news of one target; false when there is no room for it.
    fn on_target(
        &mut self,
        now: Instant,
        from: Address,
        target: &Target,
        transit: &TransitInformation,
    ) -> bool {
        let Some(dodag) = self.member() else { return true };
        if target.prefix_length != 128 {
            return true;
        }
        let target = target.prefix;
        if target == dodag.address {
            // The own address comes from below: the DAO went round in a loop.
            self.trickle.hear_inconsistent(now, &mut self.rng);
            return true;
        }
        let via = if self.config.is_storing() { Some(from) } else { transit.parent };
        let Some(via) = via else { return true };
        let path_sequence = Sequence(transit.path_sequence);
        let known = self.routes.get(&target).copied();
        // RFC 6550 s9.2.2: what is older than known is stale.
        if known.is_some_and(|known| path_sequence.order(known.path_sequence) == Order::Older) {
            return true;
        }
        if transit.path_lifetime == params::NO_PATH {
            self.on_no_path(now, from, target, path_sequence);
            return true;
        }
        let expires = dodag.expiry(now, transit.path_lifetime);
        let path_lifetime = transit.path_lifetime;
        let route = Route { via, expires, path_sequence, path_lifetime, leaving: false };
        let same = known.is_some_and(|known| {
            !known.leaving && known.path_sequence == path_sequence && known.via == via
        });
        if !self.install(now, target, route) {
            return false;
        }
        if !same {
            self.pass_on(now, target, Advert { path_sequence, path_lifetime });
        }
        true
    }

    fn on_no_path(&mut self, now: Instant, from: Address, target: Address, sequence: Sequence) {
        let storing = self.config.is_storing();
        // Only the next hop can take a route back: another may have learned of the move late.
        let is_known = |known: &Route| !known.leaving && (!storing || known.via == from);
        if !self.routes.get(&target).is_some_and(is_known) {
            return;
        }
        self.take_back(now, target, sequence);
        if storing && target[8..] == from[8..] {
            // The child itself left, and with it all that lies below it.
            for target in self.routes.targets_via(&from) {
                if let Some(Route { path_sequence, .. }) = self.routes.get(&target).copied() {
                    self.take_back(now, target, path_sequence);
                }
            }
        }
    }

    /// Passes a No-Path on, once. In storing mode the route stays a while: packets that are under way, and those that
    /// come before the news of the new way, still reach the old next hop.
    fn take_back(&mut self, now: Instant, target: Address, path_sequence: Sequence) {
        if self.config.is_storing() {
            let until = now + params::NO_PATH_REMOVAL;
            let Some(via) = self.routes.take_back(&target, path_sequence, until) else { return };
            self.timers.set_no_later(Timer::RouteExpiry, self.routes.earliest_expiry());
            self.advertiser.forget(&target);
            self.tell_child_gone(via);
        } else {
            self.remove_route(&target);
        }
        self.pass_on(now, target, Advert { path_sequence, path_lifetime: params::NO_PATH });
    }

    /// Puts a route in the table; false when there is no room.
    fn install(&mut self, now: Instant, target: Address, route: Route) -> bool {
        let was_child = self.routes.is_child(&route.via);
        let inserted = self.routes.insert(target, route);
        if inserted == Inserted::Full {
            return false;
        }
        self.timers.set_no_later(Timer::RouteExpiry, self.routes.earliest_expiry());
        if inserted != Inserted::Renewed {
            let lifetime = route.lifetime(now);
            if self.config.is_storing() && !was_child {
                self.outbox.push(Output::ChildAdded { child: route.via });
            }
            self.outbox.push(Output::RouteAdded { target, via: route.via, lifetime });
        }
        if let Inserted::Moved(old) = inserted {
            self.tell_child_gone(old);
        }
        true
    }

    pub(crate) fn remove_route(&mut self, target: &Address) -> Option<Route> {
        let route = self.routes.remove(target)?;
        self.outbox.push(Output::RouteRemoved { target: *target });
        if !route.leaving {
            self.advertiser.forget(target);
            self.tell_child_gone(route.via);
        }
        Some(route)
    }

    fn tell_child_gone(&mut self, via: Address) {
        if self.config.is_storing() && !self.routes.is_child(&via) {
            self.outbox.push(Output::ChildRemoved { child: via });
        }
    }

    /// Removes a route and tells the parent, unless it knows.
    fn withdraw(&mut self, now: Instant, target: &Address) {
        if let Some(Route { path_sequence, leaving: false, .. }) = self.remove_route(target) {
            self.pass_on(now, *target, Advert { path_sequence, path_lifetime: params::NO_PATH });
        }
    }

    pub(crate) fn expire_routes(&mut self, now: Instant) {
        for target in self.routes.expired(now) {
            self.withdraw(now, &target);
        }
        self.timers.set_no_later(Timer::RouteExpiry, self.routes.earliest_expiry());
    }
}

/// Each transit of a DAO with the targets that stand before it: RFC 6550 s6.7.8, targets in a row share the
/// transits that follow, until the next target opens a new group.
fn groups(
    options: &[RplOption],
) -> impl Iterator<Item = (impl Iterator<Item = &Target>, &TransitInformation)> {
    let mut first = 0;
    let mut closed = false;
    options.iter().enumerate().filter_map(move |(index, option)| match option {
        RplOption::Target(_) if closed => {
            (first, closed) = (index, false);
            None
        }
        RplOption::TransitInformation(transit) => {
            closed = true;
            let targets = options[first..index].iter().filter_map(|option| match option {
                RplOption::Target(target) => Some(target),
                _ => None,
            });
            Some((targets, transit))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_in_a_row_share_the_transits_that_follow() {
        let target = |id| RplOption::Target(Target::host([id; 16]));
        let transit = |path_lifetime| {
            RplOption::TransitInformation(TransitInformation {
                external: false,
                path_control: 0,
                path_sequence: 240,
                path_lifetime,
                parent: None,
            })
        };
        let tag = RplOption::TargetDescriptor(7);
        let options = [target(1), tag, target(2), transit(10), target(3), transit(0), transit(5)];
        let flat: Vec<(Vec<u8>, u8)> = groups(&options)
            .map(|(targets, transit)| {
                (targets.map(|t| t.prefix[0]).collect(), transit.path_lifetime)
            })
            .collect();
        assert_eq!(flat, [(vec![1, 2], 10), (vec![3], 0), (vec![3], 5)]);
    }
}
