//! The sending side of DAOs, with the DAO-ACKs that come back (RFC 6550 s9): what lies below is told upward,
//! hop by hop in storing mode, straight to the root in non-storing mode.
//!
//! Targets that a DAO has to report wait in one ordered map; a DAO carries a few of them, and only one DAO is on its way
//! at a time, so a large sub-DODAG moves to a new parent at the pace of its acknowledgements.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::rpl::{Address, Dao, DaoAck, Message, RplOption, Target, TransitInformation};

use crate::Sequence;
use crate::base::Base;
use crate::config::Config;
use crate::dodag::Dodag;
use crate::event::{Destination, Output};
use crate::group::Change;
use crate::neighbour::Neighbours;
use crate::params;
use crate::route::{Route, Routes};
use crate::timer::Timer;

/// Where DAOs go: this node's place, if it has one, and its neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upward<'a> {
    pub(crate) dodag: Option<&'a Dodag>,
    pub(crate) neighbours: &'a Neighbours,
}

impl Upward<'_> {
    fn parent(&self) -> Option<Address> {
        self.dodag?.parent
    }
    fn destination(&self, config: &Config) -> Option<Address> {
        let parent = self.parent()?;
        Some(if config.is_storing() { parent } else { self.dodag?.id })
    }
    /// RFC 6550 s6.7.8: in non-storing mode the parent's global address, in storing mode nothing.
    fn transit_parent(&self, config: &Config) -> Option<Address> {
        let parent = self.parent().filter(|_| !config.is_storing())?;
        self.neighbours.get(&parent).map(|neighbour| neighbour.global)
    }
}

/// What a DAO will say about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advert {
    pub(crate) path_sequence: Sequence,
    /// 0 is a No-Path.
    pub(crate) path_lifetime: u8,
    /// Flag I: a DCO ends the former path of the target (RFC 9009 s4.2).
    pub(crate) invalidates: bool,
}

impl Advert {
    /// A No-Path.
    pub(crate) const fn no_path(path_sequence: Sequence) -> Self {
        Self { path_sequence, path_lifetime: params::NO_PATH, invalidates: false }
    }
}

/// A DAO that waits for its DAO-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InFlight {
    sequence: Sequence,
    to: Address,
    adverts: Vec<(Address, Advert)>,
    /// A target was dropped since the last copy.
    is_changed: bool,
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
    /// Puts news of a target in the queue. A farewell gives way to other news when there are `max` of them;
    /// what finds no room comes again with the next refresh.
    fn queue(&mut self, target: Address, advert: Advert, max: usize) {
        if self.pending.len() >= max && !self.pending.contains_key(&target) {
            let is_farewell =
                |(_, told): &(&Address, &Advert)| told.path_lifetime == params::NO_PATH;
            let farewell = self.pending.iter().find(is_farewell).map(|(target, _)| *target);
            let Some(farewell) = farewell else { return };
            self.pending.remove(&farewell);
        }
        self.pending.insert(target, advert);
    }
    /// Drops what a DAO would say about a target, also the copies of the one on its way. A late copy would bring the
    /// parent a route that has moved: RFC 6550 s9.2.2 knows old news by the Path Sequence, which the descendants of a node
    /// keep when the node moves.
    pub(crate) fn forget(&mut self, target: &Address) {
        self.pending.remove(target);
        if let Some(dao) = &mut self.in_flight {
            let before = dao.adverts.len();
            dao.adverts.retain(|(told, _)| told != target);
            dao.is_changed |= dao.adverts.len() != before;
        }
    }
    /// True when a DAO to `parent` waits for its DAO-ACK.
    pub(crate) fn is_unanswered_by(&self, parent: &Address) -> bool {
        self.in_flight.as_ref().is_some_and(|dao| dao.to == *parent)
    }
    /// DAOSequence of the next DAO.
    pub(crate) const fn sequence(&self) -> Sequence {
        self.sequence
    }
    /// How many targets wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.pending.len()
    }
    /// Puts the targets of the DAO on its way back, unless there is newer news of them.
    fn requeue(&mut self) {
        for (target, advert) in self.in_flight.take().into_iter().flat_map(|dao| dao.adverts) {
            self.pending.entry(target).or_insert(advert);
        }
    }

    /// Advertises this node's own address to the parent again, with a new Path Sequence (RFC 6550 s9.2.2).
    pub(crate) fn advertise_self(&mut self, now: Instant, dodag: &Dodag, base: &mut Base) {
        let (address, path_lifetime) = (dodag.address, dodag.configuration.default_lifetime);
        let lifetime = dodag.expiry(now, path_lifetime);
        self.path_sequence = self.path_sequence.next();
        let invalidates = base.config.dco && base.config.is_storing();
        let advert = Advert { path_sequence: self.path_sequence, path_lifetime, invalidates };
        self.pending.insert(address, advert);
        let wait = base.jittered(base.config.dao_delay);
        base.timers.set_no_later(Timer::Dao, now + wait);
        if lifetime != Instant::FAR_FUTURE {
            // Halfway, so that a DAO lost with all its repeats has a second chance.
            let span = lifetime.since(now);
            let refresh = base.rng.duration(span * 2 / 5, span / 2);
            base.timers.set(Timer::Refresh, now + refresh);
        }
    }

    /// Tells the parent of this node and, in storing mode, of all that lies below.
    pub(crate) fn advertise_all(
        &mut self,
        now: Instant,
        dodag: &Dodag,
        routes: &Routes,
        base: &mut Base,
    ) {
        self.advertise_self(now, dodag, base);
        if base.config.is_storing() {
            for (target, route) in routes.iter().filter(|(_, route)| !route.leaving) {
                let Route { path_sequence, path_lifetime, invalidates, .. } = *route;
                let advert = Advert { path_sequence, path_lifetime, invalidates };
                self.pending.insert(*target, advert);
            }
        }
    }

    /// Advertises groups to the parent, or says that this node no longer wants them.
    pub(crate) fn advertise_groups(
        &mut self,
        now: Instant,
        changes: Vec<Change>,
        dodag: &Dodag,
        base: &mut Base,
    ) {
        for Change { group, path_sequence, is_wanted } in changes {
            let default = dodag.configuration.default_lifetime;
            let path_lifetime = if is_wanted { default } else { params::NO_PATH };
            let advert = Advert { path_sequence, path_lifetime, invalidates: false };
            self.pass_on(now, group, advert, base);
        }
    }

    /// RFC 6550 s9.8 (3): a parent that is left is told so.
    pub(crate) fn take_leave(&mut self, old: Address, dodag: &Dodag, base: &mut Base) {
        let no_path = Advert::no_path(self.path_sequence);
        let options = options_of(&[(dodag.address, no_path)], None);
        let dao = dao(self.next_sequence(), false, options, &base.config);
        base.send(Destination::Unicast(old), Message::Dao(dao));
    }

    /// Tells a new parent everything.
    pub(crate) fn begin_again(
        &mut self,
        now: Instant,
        dodag: &Dodag,
        routes: &Routes,
        base: &mut Base,
    ) {
        self.clear();
        base.timers.clear(Timer::DaoAck);
        base.timers.clear(Timer::Dao);
        self.advertise_all(now, dodag, routes, base);
    }

    pub(crate) fn next_sequence(&mut self) -> Sequence {
        let sequence = self.sequence;
        self.sequence = sequence.next();
        sequence
    }

    /// Sends some of the targets that wait.
    pub(crate) fn send(&mut self, now: Instant, upward: Upward<'_>, base: &mut Base) {
        if self.in_flight.is_some() {
            return;
        }
        let Some(to) = upward.destination(&base.config) else { return };
        let mut adverts = Vec::with_capacity(base.config.dao_targets);
        // Its own address first: the receiver ignores the other targets of a node whose own route has another next hop.
        let own = upward.dodag.and_then(|dodag| self.pending.remove_entry(&dodag.address));
        adverts.extend(own);
        while adverts.len() < base.config.dao_targets.max(1) {
            match self.pending.pop_first() {
                Some(entry) => adverts.push(entry),
                None => break,
            }
        }
        if adverts.is_empty() {
            return;
        }
        let sequence = self.next_sequence();
        let in_flight = InFlight { sequence, to, adverts, is_changed: false, retries: 0 };
        transmit(now, &in_flight, upward, base);
        if base.config.dao_ack {
            self.in_flight = Some(in_flight);
        } else {
            self.send_rest_soon(now, base);
        }
    }

    fn send_rest_soon(&self, now: Instant, base: &mut Base) {
        if !self.pending.is_empty() {
            let wait = base.jittered(base.config.dao_forward_delay);
            base.timers.set_no_later(Timer::Dao, now + wait);
        }
    }

    /// No DAO-ACK came.
    pub(crate) fn on_timeout(&mut self, now: Instant, upward: Upward<'_>, base: &mut Base) {
        let Some(mut dao) = self.in_flight.take() else { return };
        if dao.adverts.is_empty() {
            self.send_rest_soon(now, base);
        } else if dao.retries < base.config.dao_retries {
            dao.retries += 1;
            if core::mem::take(&mut dao.is_changed) {
                // RFC 6550 s6.4: each unique DAO has a DAOSequence of its own.
                dao.sequence = self.next_sequence();
            }
            transmit(now, &dao, upward, base);
            self.in_flight = Some(dao);
        } else {
            self.in_flight = Some(dao);
            self.rest(now, base);
        }
    }

    /// Tries again after a while: the parent cannot be reached or has no room.
    fn rest(&mut self, now: Instant, base: &mut Base) {
        self.requeue();
        let wait = base.jittered(params::DAO_REST);
        base.timers.clear(Timer::DaoAck);
        base.timers.set(Timer::Dao, now + wait);
    }

    /// A DAO-ACK came; true when its sender refuses to be a parent.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        from: Address,
        ack: &DaoAck,
        upward: Upward<'_>,
        base: &mut Base,
    ) -> bool {
        let Some(dao) = &self.in_flight else { return false };
        let of_this_dao = ack.sequence == dao.sequence.0 && from == dao.to;
        if ack.instance != base.config.instance || !of_this_dao {
            return false;
        }
        if ack.status.is_rejection() {
            // RFC 6550 s6.5.1: the sender is unwilling to act as a parent.
            self.rest(now, base);
            return true;
        }
        self.in_flight = None;
        base.timers.clear(Timer::DaoAck);
        // In storing mode the parent that has the DAO knows this node for its child. Without DAO-ACKs nobody
        // here can tell whether it has.
        if let Some(parent) = upward.parent().filter(|_| base.config.is_storing()) {
            base.outbox.push(Output::KnownToParent { parent });
        }
        self.send_rest_soon(now, base);
        false
    }

    /// Queues news of a target for the parent (RFC 6550 s9.8: storing mode only).
    pub(crate) fn pass_on(
        &mut self,
        now: Instant,
        target: Address,
        advert: Advert,
        base: &mut Base,
    ) {
        if base.config.is_root() || !base.config.is_storing() {
            return;
        }
        self.queue(target, advert, base.config.routes_max);
        self.send_rest_soon(now, base);
    }
}

fn transmit(now: Instant, in_flight: &InFlight, upward: Upward<'_>, base: &mut Base) {
    let options = options_of(&in_flight.adverts, upward.transit_parent(&base.config));
    let dao = dao(in_flight.sequence, base.config.dao_ack, options, &base.config);
    base.send(Destination::Unicast(in_flight.to), Message::Dao(dao));
    if base.config.dao_ack {
        // Doubled with each copy: a path that is slow because it is full gets no faster by repetition.
        let timeout = base.config.dao_ack_timeout * (1 << in_flight.retries.min(6));
        let wait = base.rng.duration(timeout, timeout + timeout / 2);
        base.timers.set(Timer::DaoAck, now + wait);
    }
}

fn dao(sequence: Sequence, ack_wanted: bool, options: Vec<RplOption>, config: &Config) -> Dao {
    // The DODAGID is left out: instances here are global (RFC 6550 s6.4.1).
    let (instance, sequence) = (config.instance, sequence.0);
    Dao { instance, ack_wanted, sequence, dodag_id: None, options }
}

/// Each target with its own transit, since each has its own Path Sequence.
pub(crate) fn options_of(adverts: &[(Address, Advert)], parent: Option<Address>) -> Vec<RplOption> {
    let mut options = Vec::with_capacity(2 * adverts.len());
    for (target, advert) in adverts {
        options.push(RplOption::Target(Target::host(*target)));
        options.push(RplOption::TransitInformation(TransitInformation {
            external: false,
            invalidates: advert.invalidates,
            path_control: 0,
            path_sequence: advert.path_sequence.0,
            path_lifetime: advert.path_lifetime,
            parent,
        }));
    }
    options
}
