//! The sending side of DAOs, with the DAO-ACKs that come back (RFC 6550 s9): what lies below is told upward,
//! hop by hop in storing mode, straight to the root in non-storing mode. What waits is kept by `advertiser`.

use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::rpl::{Address, Dao, DaoAck, Message, RplOption, Target, TransitInformation};

use crate::Sequence;
use crate::advertiser::{Advert, InFlight};
use crate::event::{Destination, Output};
use crate::node::Rpl;
use crate::params;
use crate::route::Route;
use crate::timer::Timer;

impl Rpl {
    /// Advertises this node's own address to the parent again, with a new Path Sequence (RFC 6550 s9.2.2).
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
            for (target, route) in self.routes.iter().filter(|(_, route)| !route.leaving) {
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
            let heard = |old: &Address| {
                self.neighbours.get(old).is_some_and(|n| n.etx.0 <= params::LAST_RESORT_LINK_METRIC)
            };
            let left = old.filter(heard);
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
            // Doubled with each copy: a path that is slow because it is full gets no faster by repetition.
            let timeout = self.config.dao_ack_timeout * (1 << dao.retries.min(6));
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
        self.note_known();
        self.send_rest_soon(now);
    }

    /// In storing mode the parent that has the DAO knows this node for its child. Without DAO-ACKs nobody
    /// here can tell whether it has.
    fn note_known(&mut self) {
        if let Some(parent) = self.preferred_parent().filter(|_| self.config.is_storing()) {
            self.outbox.push(Output::KnownToParent { parent });
        }
    }

    /// Queues news of a target for the parent (RFC 6550 s9.8: storing mode only).
    pub(crate) fn pass_on(&mut self, now: Instant, target: Address, advert: Advert) {
        if self.is_root() || !self.config.is_storing() {
            return;
        }
        self.advertiser.queue(target, advert, self.config.routes_max);
        self.send_rest_soon(now);
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
