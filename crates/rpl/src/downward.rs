//! Downward routes (RFC 6550 s9.7 and s9.8): DAOs install them; lifetimes, No-Paths and DCOs (RFC 9009) end them.
//! The [`Advertiser`] sends DAOs about them to the parent.

use alloc::vec::Vec;

use lowmesh_trickle::Trickle;
use lowmesh_units::Instant;
use lowmesh_wire::rpl::{
    Address, Dao, DaoAck, DaoStatus, Dco, DcoAck, Message, RplOption, Target, TransitInformation,
};

use crate::base::Base;
use crate::dao::{Advert, Advertiser, Upward, options_of};
use crate::dodag::Dodag;
use crate::event::{Destination, Output};
use crate::external::External;
use crate::group::{Groups, Registration, is_group};
use crate::params;
use crate::route::{Inserted, Route, Routes};
use crate::timer::Timer;
use crate::{Order, Sequence};

/// This node's place as a DAO meets it: what it knows, and the timer that an inconsistency resets.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) dodag: &'a Dodag,
    pub(crate) trickle: &'a mut Trickle,
}

/// Routes down, and what the parent has yet to hear of them.
#[derive(Debug)]
pub(crate) struct Downward {
    routes: Routes,
    groups: Groups,
    advertiser: Advertiser,
    external: External,
    /// DCOSequence of the next DCO.
    cleanup: Sequence,
}

/// RFC 9009 s4.3: no other status has a meaning here.
const DCO_STATUS: u8 = 0;

impl Downward {
    pub(crate) fn new(routes_max: usize) -> Self {
        let (routes, groups) = (Routes::new(routes_max), Groups::default());
        let (advertiser, external) = (Advertiser::new(), External::new(routes_max));
        Self { routes, groups, advertiser, external, cleanup: Sequence::START }
    }

    /// The neighbours that registered for a group, ordered.
    pub(crate) fn subscribed(&self, group: &Address) -> impl Iterator<Item = &Address> {
        self.groups.children(group)
    }
    /// This node joins a group.
    pub(crate) fn join(
        &mut self,
        now: Instant,
        group: Address,
        dodag: Option<&Dodag>,
        base: &mut Base,
    ) {
        self.groups.join(group);
        self.advertise_changes(now, dodag, base);
    }
    /// This node leaves a group.
    pub(crate) fn leave(
        &mut self,
        now: Instant,
        group: &Address,
        dodag: Option<&Dodag>,
        base: &mut Base,
    ) {
        self.groups.leave(group);
        self.advertise_changes(now, dodag, base);
    }
    /// Tells the parent which groups this node began to want, or no longer wants.
    fn advertise_changes(&mut self, now: Instant, dodag: Option<&Dodag>, base: &mut Base) {
        if let Some(dodag) = dodag.filter(|_| base.config.has_groups()) {
            let changes = self.groups.take_changes();
            self.advertiser.advertise_groups(now, changes, dodag, base);
        }
    }
    /// Tells the parent of all groups that this node wants.
    fn advertise_groups(&mut self, now: Instant, dodag: &Dodag, base: &mut Base) {
        if base.config.has_groups() {
            let all = self.groups.take_all();
            self.advertiser.advertise_groups(now, all, dodag, base);
        }
    }
    /// Advertises this node and its groups before their lifetime ends.
    pub(crate) fn refresh(&mut self, now: Instant, dodag: &Dodag, base: &mut Base) {
        self.advertiser.advertise_self(now, dodag, base);
        self.advertise_groups(now, dodag, base);
    }

    pub(crate) const fn routes(&self) -> &Routes {
        &self.routes
    }
    /// Leaves that run no RPL.
    pub(crate) const fn external(&mut self) -> &mut External {
        &mut self.external
    }
    /// At the root: the router of a leaf.
    pub(crate) fn router_of(&self, leaf: &Address) -> Option<&Address> {
        self.external.router_of(leaf)
    }
    /// Sends the next DAO about a leaf.
    pub(crate) fn announce_leaf(&mut self, now: Instant, dodag: Option<&Dodag>, base: &mut Base) {
        let sequence = self.advertiser.sequence();
        if self.external.send(now, dodag, sequence, base) {
            self.advertiser.next_sequence();
        }
    }
    pub(crate) const fn advertiser(&mut self) -> &mut Advertiser {
        &mut self.advertiser
    }
    /// Forgets what the parent has yet to hear.
    pub(crate) fn forget_news(&mut self) {
        self.advertiser.clear();
        self.external.forget_news();
    }
    /// Forgets everything.
    pub(crate) fn clear(&mut self, base: &mut Base) {
        let targets: Vec<Address> = self.routes.iter().map(|(target, _)| *target).collect();
        for target in targets {
            self.remove_route(&target, base);
        }
        self.routes.clear();
        self.groups.clear();
        self.advertiser.clear();
        self.external.clear();
    }

    /// Tells the parent of this node and, in storing mode, of all that lies below.
    pub(crate) fn advertise_all(&mut self, now: Instant, dodag: Option<&Dodag>, base: &mut Base) {
        if let Some(dodag) = dodag {
            self.advertiser.advertise_all(now, dodag, &self.routes, base);
            self.advertise_groups(now, dodag, base);
            self.external.announce_all(now, base);
        }
    }

    /// Tells a new parent everything, and in storing mode the old one that it is left.
    pub(crate) fn on_new_parent(
        &mut self,
        now: Instant,
        old: Option<Address>,
        new: Address,
        upward: Upward<'_>,
        base: &mut Base,
    ) {
        let Some(dodag) = upward.dodag else { return };
        if base.config.is_storing() {
            for target in self.routes.targets_via(&new) {
                self.remove_route(&target, base);
            }
            let heard = |old: &Address| {
                let left = upward.neighbours.get(old);
                left.is_some_and(|left| left.etx.0 <= params::LAST_RESORT_LINK_METRIC)
            };
            // A DAO without a DAO-ACK may still arrive, so a No-Path follows it however bad the link is.
            let told = |old: &Address| heard(old) || self.advertiser.is_unanswered_by(old);
            if let Some(old) = old.filter(told) {
                self.advertiser.take_leave(old, dodag, base);
            }
        }
        self.advertiser.begin_again(now, dodag, &self.routes, base);
        self.advertise_groups(now, dodag, base);
        if old.is_none() {
            // The root may know of none. Another parent changes only how their router is reached.
            self.external.announce_all(now, base);
        }
    }

    /// A DAO came; false when it comes from the parent, which is then below this node: a loop of two.
    pub(crate) fn on_dao(
        &mut self,
        now: Instant,
        from: Address,
        dao: &Dao,
        place: &mut Place<'_>,
        base: &mut Base,
    ) -> bool {
        let dodag = place.dodag;
        let elsewhere = dao.dodag_id.is_some_and(|id| id != dodag.id);
        if dao.instance != base.config.instance || elsewhere {
            return true;
        }
        if !base.config.is_storing() && !base.config.is_root() {
            return true;
        }
        if dodag.parent == Some(from) {
            return false;
        }
        let mut status = DaoStatus::ACCEPTED;
        for (targets, transit) in groups(&dao.options) {
            for target in targets {
                // RFC 9008 s4.1.1: in all modes, a leaf is announced as in non-storing mode.
                if transit.external && transit.parent.is_some() {
                    let said = self.on_leaf(now, (target, transit), dodag, base);
                    status = if said == DaoStatus::ACCEPTED { status } else { said };
                } else if !self.on_target(now, from, (target, transit), place, base) {
                    status = DaoStatus::REJECTED;
                }
            }
        }
        self.advertise_changes(now, Some(dodag), base);
        if dao.ack_wanted {
            let (instance, sequence, options) = (dao.instance, dao.sequence, Vec::new());
            let ack = DaoAck { instance, sequence, status, dodag_id: dao.dodag_id, options };
            base.send(Destination::Unicast(from), Message::DaoAck(ack));
        }
        true
    }

    /// Takes the news of a leaf, which are for the root alone.
    fn on_leaf(
        &mut self,
        now: Instant,
        (target, transit): (&Target, &TransitInformation),
        dodag: &Dodag,
        base: &mut Base,
    ) -> DaoStatus {
        if !base.config.is_root() {
            return DaoStatus::ACCEPTED;
        }
        let is_internal = self.routes.get(&target.prefix).is_some_and(|route| !route.leaving);
        self.external.on_target(now, target, transit, (dodag, is_internal), base)
    }

    /// Takes the news of one target; false when there is no room for it.
    fn on_target(
        &mut self,
        now: Instant,
        from: Address,
        (target, transit): (&Target, &TransitInformation),
        place: &mut Place<'_>,
        base: &mut Base,
    ) -> bool {
        let dodag = place.dodag;
        if target.prefix_length != 128 {
            return true;
        }
        let target = target.prefix;
        if is_group(&target) {
            return self.on_group(now, from, (target, transit), dodag, base);
        }
        if target == dodag.address {
            // The own address comes from below: the DAO went round in a loop.
            place.trickle.hear_inconsistent(now, &mut base.rng);
            return true;
        }
        if target == dodag.id {
            // RFC 6550 s6.3.1: the DODAGID is an address of the root. A downward route to it would send packets for the
            // root away from it.
            return true;
        }
        let via = if base.config.is_storing() { Some(from) } else { transit.parent };
        let Some(via) = via else { return true };
        let path_sequence = Sequence(transit.path_sequence);
        let known = self.routes.get(&target).copied();
        // RFC 6550 s9.2.2: what is older than known is stale.
        if known.is_some_and(|known| path_sequence.order(known.path_sequence) == Order::Older) {
            return true;
        }
        if transit.path_lifetime == params::NO_PATH {
            self.on_no_path(now, from, target, path_sequence, base);
            return true;
        }
        let expires = dodag.expiry(now, transit.path_lifetime);
        let &TransitInformation { path_lifetime, invalidates, .. } = transit;
        let leaving = false;
        let route = Route { via, expires, path_sequence, path_lifetime, invalidates, leaving };
        if known.is_some_and(|known| self.is_late(from, &known, &route, dodag, base)) {
            return true;
        }
        let same = known.is_some_and(|known| {
            !known.leaving && known.path_sequence == path_sequence && known.via == via
        });
        if !self.install(now, target, route, base) {
            return false;
        }
        if let Some(known) = known.filter(|known| is_moved(known, &route, base)) {
            // RFC 9009 s4.4: this router is the common ancestor of the old path and the new one.
            self.end_path(&[(target, path_sequence)], known.via, DCO_STATUS, base);
        }
        if !same {
            let advert = Advert { path_sequence, path_lifetime, invalidates };
            self.advertiser.pass_on(now, target, advert, base);
        }
        true
    }

    /// True for a DAO that a child sent before it moved: it advertises a target that has another next hop by now, and so has
    /// the child. Path Sequences do not show it, because nodes below keep theirs when a node moves.
    fn is_late(
        &self,
        from: Address,
        known: &Route,
        route: &Route,
        dodag: &Dodag,
        base: &Base,
    ) -> bool {
        let mut child = dodag.address;
        child[8..].copy_from_slice(&from[8..]);
        base.config.is_storing()
            && known.path_sequence == route.path_sequence
            && known.via != from
            && self.routes.get(&child).is_some_and(|own| !own.leaving && own.via != from)
    }

    /// Takes the news of a child about a group; false when there is no room for it.
    fn on_group(
        &mut self,
        now: Instant,
        from: Address,
        (group, transit): (Address, &TransitInformation),
        dodag: &Dodag,
        base: &mut Base,
    ) -> bool {
        if !base.config.has_groups() {
            return true;
        }
        let path_sequence = Sequence(transit.path_sequence);
        if transit.path_lifetime == params::NO_PATH {
            self.groups.withdraw(&group, &from, path_sequence);
            return true;
        }
        let expires = dodag.expiry(now, transit.path_lifetime);
        let is_taken = self.groups.register(group, from, Registration { expires, path_sequence });
        base.timers.set_no_later(Timer::RouteExpiry, self.groups.earliest_expiry());
        is_taken
    }

    fn on_no_path(
        &mut self,
        now: Instant,
        from: Address,
        target: Address,
        sequence: Sequence,
        base: &mut Base,
    ) {
        let storing = base.config.is_storing();
        // Only the next hop can take a route back: another may have learned of the move late.
        let is_known = |known: &Route| !known.leaving && (!storing || known.via == from);
        if !self.routes.get(&target).is_some_and(is_known) {
            return;
        }
        self.take_back(now, target, sequence, base);
        if storing && target[8..] == from[8..] {
            // The child itself moved, with its sub-DODAG.
            for target in self.routes.targets_via(&from) {
                if let Some(Route { path_sequence, .. }) = self.routes.get(&target).copied() {
                    self.take_back(now, target, path_sequence, base);
                }
            }
        }
    }

    /// Passes a No-Path on, once. In storing mode the route stays a while: packets that are under way, and those that
    /// come before the news of the new way, still reach the old next hop.
    fn take_back(
        &mut self,
        now: Instant,
        target: Address,
        path_sequence: Sequence,
        base: &mut Base,
    ) {
        if base.config.is_storing() {
            let until = now + params::NO_PATH_REMOVAL;
            let Some(via) = self.routes.take_back(&target, path_sequence, until) else { return };
            base.timers.set_no_later(Timer::RouteExpiry, self.routes.earliest_expiry());
            self.advertiser.forget(&target);
            self.tell_child_gone(via, base);
        } else {
            self.remove_route(&target, base);
        }
        self.advertiser.pass_on(now, target, Advert::no_path(path_sequence), base);
    }

    /// Removes the routes that a DCO names, and passes the DCO down the former path.
    pub(crate) fn on_dco(&mut self, from: Address, dco: &Dco, dodag: &Dodag, base: &mut Base) {
        if self.external.on_dco(from, dco, dodag, base) {
            return;
        }
        let elsewhere = dco.dodag_id.is_some_and(|id| id != dodag.id);
        if dco.instance != base.config.instance || elsewhere || !base.config.is_storing() {
            return;
        }
        for (targets, transit) in groups(&dco.options) {
            let path_sequence = Sequence(transit.path_sequence);
            for target in targets.filter(|target| target.prefix_length == 128) {
                let Some(known) = self.routes.get(&target.prefix).copied() else { continue };
                // RFC 9009 s4.4: what this node has heard since then is newer than the DCO.
                if path_sequence.order(known.path_sequence) != Order::Newer {
                    continue;
                }
                self.remove_route(&target.prefix, base);
                if target.prefix[8..] == known.via[8..] {
                    // The child itself moved, with its sub-DODAG.
                    for below in self.routes.targets_via(&known.via) {
                        self.remove_route(&below, base);
                    }
                }
                self.end_path(&[(target.prefix, path_sequence)], known.via, dco.status, base);
            }
        }
        if dco.ack_wanted {
            // RFC 9009 s4.4: a unicast DCO that asks for it is acknowledged.
            let (instance, sequence) = (dco.instance, dco.sequence);
            let ack = DcoAck { instance, sequence, status: 0, dodag_id: dco.dodag_id };
            base.send(Destination::Unicast(from), Message::DcoAck(ack));
        }
    }

    /// Sends a DCO about targets to the next hop of their former path, unless it is the target itself.
    fn end_path(
        &mut self,
        targets: &[(Address, Sequence)],
        via: Address,
        status: u8,
        base: &mut Base,
    ) {
        let adverts = targets.iter().filter(|(target, _)| target[8..] != via[8..]);
        let adverts: Vec<_> =
            adverts.map(|(target, sequence)| (*target, Advert::no_path(*sequence))).collect();
        if adverts.is_empty() {
            return;
        }
        let sequence = self.cleanup;
        self.cleanup = sequence.next();
        // Without K: the link layer repeats it, and a DCO that is lost costs no more than its absence.
        let (instance, options) = (base.config.instance, options_of(&adverts, None));
        let (ack_wanted, dodag_id, sequence) = (false, None, sequence.0);
        let dco = Dco { instance, ack_wanted, status, sequence, dodag_id, options };
        base.send(Destination::Unicast(via), Message::Dco(dco));
    }

    /// Installs a route. In storing mode, a full table gives up a route of the next hop with most routes. False when
    /// there is no room.
    fn install(&mut self, now: Instant, target: Address, route: Route, base: &mut Base) -> bool {
        let was_child = self.routes.is_child(&route.via);
        let mut inserted = self.routes.insert(target, route);
        if inserted == Inserted::Full
            && base.config.is_storing()
            && let Some(surplus) = self.routes.surplus(&route.via)
        {
            // RFC 6550 s9.8: a No-Path tells the parent that the target is unreachable.
            self.withdraw(now, &surplus, base);
            inserted = self.routes.insert(target, route);
        }
        if inserted == Inserted::Full {
            return false;
        }
        base.timers.set_no_later(Timer::RouteExpiry, self.routes.earliest_expiry());
        if inserted != Inserted::Renewed {
            let lifetime = route.lifetime(now);
            if base.config.is_storing() && !was_child {
                base.outbox.push(Output::ChildAdded { child: route.via });
            }
            base.outbox.push(Output::RouteAdded { target, via: route.via, lifetime });
        }
        if let Inserted::Moved(old) = inserted {
            self.tell_child_gone(old, base);
        }
        true
    }

    fn remove_route(&mut self, target: &Address, base: &mut Base) -> Option<Route> {
        let route = self.routes.remove(target)?;
        base.outbox.push(Output::RouteRemoved { target: *target });
        if !route.leaving {
            self.advertiser.forget(target);
            self.tell_child_gone(route.via, base);
        }
        Some(route)
    }

    fn tell_child_gone(&mut self, via: Address, base: &mut Base) {
        if base.config.is_storing() && !self.routes.is_child(&via) {
            self.groups.forget_child(&via);
            base.outbox.push(Output::ChildRemoved { child: via });
        }
    }

    /// Removes a route and tells the parent, unless it knows.
    fn withdraw(&mut self, now: Instant, target: &Address, base: &mut Base) {
        if let Some(Route { path_sequence, leaving: false, .. }) = self.remove_route(target, base) {
            self.advertiser.pass_on(now, *target, Advert::no_path(path_sequence), base);
        }
    }

    /// Ends the routes whose lifetime is over.
    pub(crate) fn expire_routes(&mut self, now: Instant, dodag: Option<&Dodag>, base: &mut Base) {
        self.groups.expire(now);
        for target in self.routes.expired(now) {
            self.withdraw(now, &target, base);
        }
        self.advertise_changes(now, dodag, base);
        let earliest = self.routes.earliest_expiry().min(self.groups.earliest_expiry());
        let earliest = earliest.min(self.external.expire(now));
        base.timers.set_no_later(Timer::RouteExpiry, earliest);
    }

    /// Forgets the route to `target` over `via`, if there is one.
    pub(crate) fn forget_route(&mut self, target: &Address, via: &Address, base: &mut Base) {
        if self.routes.get(target).is_some_and(|route| route.via == *via) {
            self.remove_route(target, base);
        }
    }
}

/// True when a newer DAO of a target changes its next hop, and has the flag I (RFC 9009 s4.2).
fn is_moved(known: &Route, route: &Route, base: &Base) -> bool {
    base.config.is_storing()
        && route.invalidates
        && !known.leaving
        && known.via != route.via
        && route.path_sequence.order(known.path_sequence) == Order::Newer
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
                invalidates: false,
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
