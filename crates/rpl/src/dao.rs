//! DAO and DAO-ACK, out and in (RFC 6550 s9): what lies below is told upward, hop by hop in storing mode,
//! straight to the root in non-storing mode.
//!
//! Targets to be told wait in one ordered map; a DAO carries a few of them, and only one DAO is on its way
//! at a time, so a large sub-DODAG moves to a new parent at the pace of its acknowledgements.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Instant, Rank};
use lowmesh_wire::rpl::{
    Address, Dao, DaoAck, DaoStatus, Message, RplOption, Target, TransitInformation,
};

use crate::event::{Destination, Output};
use crate::machine::Rpl;
use crate::params;
use crate::route::{Inserted, Route};
use crate::sequence::{Order, Sequence};
use crate::timer::Timer;

/// What is to be told of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advert {
    pub(crate) path_sequence: Sequence,
    /// 0 is a No-Path.
    pub(crate) path_lifetime: u8,
}

/// A DAO that waits for its DAO-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InFlight {
    sequence: Sequence,
    to: Address,
    adverts: Vec<(Address, Advert)>,
    retries: u8,
}

/// The sending side.
#[derive(Clone, Debug)]
pub(crate) struct Advertiser {
    pending: BTreeMap<Address, Advert>,
    in_flight: Option<InFlight>,
    /// DAOSequence of the next DAO.
    sequence: Sequence,
    /// Path Sequence of the own address.
    path_sequence: Sequence,
}

impl Advertiser {
    pub(crate) const fn new() -> Self {
        let (sequence, path_sequence) = (Sequence::START, Sequence::START);
        Self { pending: BTreeMap::new(), in_flight: None, sequence, path_sequence }
    }
    /// Forgets what was to be told, but goes on counting: old and new must stay apart.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.in_flight = None;
    }
    /// Stops what is on its way; the next parent is told everything anyway.
    pub(crate) fn pause(&mut self) {
        self.clear();
    }
    /// Puts the targets of the DAO on its way back, unless there is newer news of them.
    fn requeue(&mut self) {
        for (target, advert) in self.in_flight.take().into_iter().flat_map(|dao| dao.adverts) {
            self.pending.entry(target).or_insert(advert);
        }
    }
}

impl Rpl {
    /// Tells the parent of this node's own address anew: a new Path Sequence (RFC 6550 s9.2.2).
    pub(crate) fn advertise_self(&mut self, now: Instant) {
        let Some(dodag) = self.member() else { return };
        let (address, path_lifetime) = (dodag.address, dodag.configuration.default_lifetime);
        let lifetime = dodag.expiry(now, path_lifetime);
        self.advertiser.path_sequence = self.advertiser.path_sequence.next();
        let advert = Advert { path_sequence: self.advertiser.path_sequence, path_lifetime };
        self.advertiser.pending.insert(address, advert);
        let wait = self.jittered(self.config.dao_delay);
        self.timers.set_no_later(Timer::Dao, now + wait);
        if lifetime != Instant::FAR_FUTURE {
            // Halfway, so that a DAO lost with all its repeats has a second chance.
            let span = lifetime.since(now);
            let refresh = self.rng.duration(span * 2 / 5, span / 2);
            self.timers.set(Timer::Refresh, now + refresh);
        }
    }

    /// Tells the parent of this node and, in storing mode, of all that lies below.
    pub(crate) fn advertise_all(&mut self, now: Instant) {
        self.advertise_self(now);
        if self.config.is_storing() {
            for (target, route) in self.routes.iter() {
                let Route { path_sequence, path_lifetime, .. } = *route;
                let advert = Advert { path_sequence, path_lifetime };
                self.advertiser.pending.insert(*target, advert);
            }
        }
    }

    pub(crate) fn advertise_to_new_parent(
        &mut self,
        now: Instant,
        old: Option<Address>,
        new: Address,
    ) {
        if self.config.is_storing() {
            for target in self.routes.targets_via(&new) {
                self.remove_route(&target);
            }
            // RFC 6550 s9.8 (3): a parent that is left is told so.
            let left = old.filter(|old| {
                self.neighbours.get(old).is_some_and(|n| n.etx.0 <= params::MAX_LINK_METRIC)
            });
            if let (Some(old), Some(dodag)) = (left, self.member()) {
                let path_sequence = self.advertiser.path_sequence;
                let no_path = Advert { path_sequence, path_lifetime: params::NO_PATH };
                let options = options_of(&[(dodag.address, no_path)], None);
                let sequence = self.next_sequence();
                let dao = self.dao(sequence, false, options);
                self.send(Destination::Unicast(old), Message::Dao(dao));
            }
        }
        self.advertiser.clear();
        self.timers.clear(Timer::DaoAck);
        self.timers.clear(Timer::Dao);
        self.advertise_all(now);
    }

    fn next_sequence(&mut self) -> Sequence {
        let sequence = self.advertiser.sequence;
        self.advertiser.sequence = sequence.next();
        sequence
    }

    fn dao(&self, sequence: Sequence, ack_wanted: bool, options: Vec<RplOption>) -> Dao {
        // The DODAGID is left out: instances here are global (RFC 6550 s6.4.1).
        let (instance, sequence) = (self.config.instance, sequence.0);
        Dao { instance, ack_wanted, sequence, dodag_id: None, options }
    }

    /// Sends some of the targets that wait.
    pub(crate) fn send_dao(&mut self, now: Instant) {
        if self.advertiser.in_flight.is_some() {
            return;
        }
        let Some(to) = self.dao_destination() else { return };
        let mut adverts = Vec::with_capacity(self.config.dao_targets);
        while adverts.len() < self.config.dao_targets.max(1) {
            match self.advertiser.pending.pop_first() {
                Some(entry) => adverts.push(entry),
                None => break,
            }
        }
        if adverts.is_empty() {
            return;
        }
        let sequence = self.next_sequence();
        let in_flight = InFlight { sequence, to, adverts, retries: 0 };
        self.transmit(now, &in_flight);
        if self.config.dao_ack {
            self.advertiser.in_flight = Some(in_flight);
        } else {
            self.send_rest_soon(now);
        }
    }

    fn transmit(&mut self, now: Instant, dao: &InFlight) {
        let options = options_of(&dao.adverts, self.transit_parent());
        let message = Message::Dao(self.dao(dao.sequence, self.config.dao_ack, options));
        self.send(Destination::Unicast(dao.to), message);
        if self.config.dao_ack {
            let timeout = self.config.dao_ack_timeout;
            let wait = self.rng.duration(timeout, timeout + timeout / 2);
            self.timers.set(Timer::DaoAck, now + wait);
        }
    }

    fn send_rest_soon(&mut self, now: Instant) {
        if !self.advertiser.pending.is_empty() {
            let wait = self.jittered(self.config.dao_forward_delay);
            self.timers.set_no_later(Timer::Dao, now + wait);
        }
    }

    fn dao_destination(&self) -> Option<Address> {
        let dodag = self.member()?;
        let parent = dodag.parent?;
        Some(if self.config.is_storing() { parent } else { dodag.id })
    }

    /// RFC 6550 s6.7.8: in non-storing mode the parent's global address, in storing mode nothing.
    fn transit_parent(&self) -> Option<Address> {
        if self.config.is_storing() {
            return None;
        }
        let parent = self.preferred_parent()?;
        self.neighbours.get(&parent).map(|neighbour| neighbour.global)
    }

    pub(crate) fn on_dao_timeout(&mut self, now: Instant) {
        let Some(mut dao) = self.advertiser.in_flight.take() else { return };
        if dao.retries < self.config.dao_retries {
            dao.retries += 1;
            self.transmit(now, &dao);
            self.advertiser.in_flight = Some(dao);
        } else {
            self.advertiser.in_flight = Some(dao);
            self.rest(now);
        }
    }

    /// Tries again after a while: the parent cannot be reached or has no room.
    fn rest(&mut self, now: Instant) {
        self.advertiser.requeue();
        let wait = self.jittered(params::DAO_REST);
        self.timers.clear(Timer::DaoAck);
        self.timers.set(Timer::Dao, now + wait);
    }

    pub(crate) fn on_dao_ack(&mut self, now: Instant, from: Address, ack: &DaoAck) {
        let Some(dao) = &self.advertiser.in_flight else { return };
        let of_this_dao = ack.sequence == dao.sequence.0 && from == dao.to;
        if ack.instance != self.config.instance || !of_this_dao {
            return;
        }
        if ack.status.is_rejection() {
            // RFC 6550 s6.5.1: the sender is unwilling to act as a parent.
            if let Some(neighbour) = self.neighbours.get_mut(&from) {
                neighbour.refused_until = now + params::REFUSAL;
            }
            self.rest(now);
            self.reconsider(now);
            return;
        }
        self.advertiser.in_flight = None;
        self.timers.clear(Timer::DaoAck);
        self.send_rest_soon(now);
    }

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
        let mut group: &[RplOption] = &[];
        for (index, option) in dao.options.iter().enumerate() {
            match option {
                // A target after a transit opens a new group (RFC 6550 s6.7.8).
                RplOption::Target(_) if !matches!(group.last(), Some(RplOption::Target(_))) => {
                    group = &dao.options[index..=index];
                }
                RplOption::Target(_) => {
                    group = &dao.options[index - group.len()..=index];
                }
                RplOption::TransitInformation(transit) => {
                    for target in group {
                        if let RplOption::Target(target) = target
                            && !self.on_target(now, from, target, transit)
                        {
                            status = DaoStatus::REJECTED;
                        }
                    }
                }
                _ => {}
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
        let route = Route { via, expires, path_sequence, path_lifetime };
        let same =
            known.is_some_and(|known| known.path_sequence == path_sequence && known.via == via);
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
        let known = self.routes.get(&target).is_some_and(|known| !storing || known.via == from);
        if !known {
            return;
        }
        self.remove_route(&target);
        self.pass_on(
            now,
            target,
            Advert { path_sequence: sequence, path_lifetime: params::NO_PATH },
        );
        if storing && target[8..] == from[8..] {
            // The child itself left, and with it all that lies below it.
            for target in self.routes.targets_via(&from) {
                self.withdraw(now, &target);
            }
        }
    }

    /// Queues news of a target for the parent (RFC 6550 s9.8: storing mode only).
    fn pass_on(&mut self, now: Instant, target: Address, advert: Advert) {
        if self.is_root() || !self.config.is_storing() {
            return;
        }
        let pending = &mut self.advertiser.pending;
        // News of a route always has room, as the routes are bounded; farewells take what is left.
        if advert.path_lifetime == params::NO_PATH && pending.len() > self.config.routes_max {
            return;
        }
        pending.insert(target, advert);
        self.send_rest_soon(now);
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
        self.tell_child_gone(route.via);
        Some(route)
    }

    fn tell_child_gone(&mut self, via: Address) {
        if self.config.is_storing() && !self.routes.is_child(&via) {
            self.outbox.push(Output::ChildRemoved { child: via });
        }
    }

    /// Removes a route and tells the parent.
    fn withdraw(&mut self, now: Instant, target: &Address) {
        if let Some(Route { path_sequence, .. }) = self.remove_route(target) {
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

/// Each target with its own transit, since each has its own Path Sequence.
fn options_of(adverts: &[(Address, Advert)], parent: Option<Address>) -> Vec<RplOption> {
    let mut options = Vec::with_capacity(2 * adverts.len());
    for (target, advert) in adverts {
        options.push(RplOption::Target(Target::host(*target)));
        options.push(RplOption::TransitInformation(TransitInformation {
            external: false,
            path_control: 0,
            path_sequence: advert.path_sequence.0,
            path_lifetime: advert.path_lifetime,
            parent,
        }));
    }
    options
}
