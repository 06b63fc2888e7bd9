//! Leaves that run no RPL (RFC 9010): a router announces those that registered with it, straight to the root in both modes of
//! operation, and the root knows behind which router each is (RFC 9008 s4.1.1, RFC 9010 s9.2.2).
//!
//! ```text
//!   router   Attach, Detach ──> pending ──DAO, E, own address as parent──> root
//!                                  ^  └── no DAO-ACK: again, then after a rest
//!   root     DAO ──> known, newer ──> route   and a DCO to the router before (RFC 9010 s7)
//!                    older        ──> DAO-ACK "moved", and the router gives the leaf up
//! ```
//! The routers between the two keep nothing: the root sends what is for a leaf in a tunnel to its router. A leaf counts its
//! registrations, and by that number (the Path Sequence here) news of a leaf that moved is told from old news.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::rpl::{
    Address, Dao, DaoAck, DaoStatus, Dco, Message, RplOption, Target, TransitInformation,
};

use crate::base::Base;
use crate::dao::Advert;
use crate::dodag::Dodag;
use crate::event::{Destination, Output};
use crate::params;
use crate::timer::Timer;
use crate::{Order, Sequence};

/// Status of neighbour discovery in a status of RPL, as a rejection: flags E and A of RFC 9010 s6.3.
const REJECTION: u8 = 0xc0;
/// The six bits of it.
const STATUS: u8 = 0x3f;
/// "Moved": RFC 8505 s4.1, table 1.
const MOVED: u8 = 3;
/// "Duplicate address": the same table.
const DUPLICATE: u8 = 1;

/// The route of a leaf at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The global address of its router.
    router: Address,
    path_sequence: Sequence,
    expires: Instant,
}

/// A DAO that waits for its DAO-ACK.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    sequence: Sequence,
    target: Address,
    advert: Advert,
    retries: u8,
}

/// The leaves of this node, and at the root those of all.
#[derive(Debug)]
pub(crate) struct External {
    /// What this router announces, for as long as the link layer of the leaf has it.
    own: BTreeMap<Address, Advert>,
    pending: BTreeMap<Address, Advert>,
    in_flight: Option<InFlight>,
    places: BTreeMap<Address, Place>,
    max: usize,
}

impl External {
    /// At most `max` routes at the root.
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            own: BTreeMap::new(),
            pending: BTreeMap::new(),
            in_flight: None,
            places: BTreeMap::new(),
            max,
        }
    }
    /// Forgets what belongs to a DODAG. The leaves stay, as their registrations do.
    pub(crate) fn clear(&mut self) {
        self.forget_news();
        self.places.clear();
    }
    /// Forgets what the root has yet to hear.
    pub(crate) fn forget_news(&mut self) {
        self.pending.clear();
        self.in_flight = None;
    }
    /// At the root: the router of a leaf.
    pub(crate) fn router_of(&self, leaf: &Address) -> Option<&Address> {
        self.places.get(leaf).map(|place| &place.router)
    }
    /// How many leaves the root knows.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// A leaf registered with this node, or did so again.
    pub(crate) fn attach(
        &mut self,
        now: Instant,
        leaf: Address,
        (path_sequence, lifetime): (Sequence, Duration),
        dodag: Option<&Dodag>,
        base: &mut Base,
    ) {
        let unit =
            dodag.map_or(base.config.lifetime_unit, |dodag| dodag.configuration.lifetime_unit);
        let advert =
            Advert { path_sequence, path_lifetime: units(lifetime, unit), invalidates: false };
        self.own.insert(leaf, advert);
        if base.config.is_root() {
            // The root is its router. A router before it learns so from the DCO.
            let before = self.places.get(&leaf).copied();
            if before.is_some_and(|at| path_sequence.order(at.path_sequence) == Order::Older) {
                return self.give_up(&leaf, path_sequence, REJECTION | MOVED, base);
            }
            if let Some(before) = before {
                self.places.remove(&leaf);
                end_registration(leaf, path_sequence, before.router, base);
            }
            return;
        }
        if dodag.is_some() {
            self.queue(now, leaf, advert, base);
        }
    }
    /// The registration of a leaf with this node is over.
    pub(crate) fn detach(
        &mut self,
        now: Instant,
        leaf: &Address,
        dodag: Option<&Dodag>,
        base: &mut Base,
    ) {
        let Some(advert) = self.own.remove(leaf) else { return };
        if dodag.is_some() && !base.config.is_root() {
            self.queue(now, *leaf, Advert::no_path(advert.path_sequence), base);
        }
    }
    /// Announces all leaves again, after the DAO of this node itself.
    pub(crate) fn announce_all(&mut self, now: Instant, base: &mut Base) {
        if self.own.is_empty() || base.config.is_root() {
            return;
        }
        self.pending.extend(self.own.iter().map(|(leaf, advert)| (*leaf, *advert)));
        let wait = base.jittered(base.config.dao_delay) + base.config.dao_delay;
        base.timers.set_no_later(Timer::External, now + wait);
    }

    fn queue(&mut self, now: Instant, leaf: Address, advert: Advert, base: &mut Base) {
        self.pending.insert(leaf, advert);
        if self.in_flight.is_some_and(|sent| sent.target == leaf) {
            // What is on its way is old news.
            self.in_flight = None;
            base.timers.clear(Timer::ExternalAck);
        }
        let wait = base.jittered(base.config.dao_forward_delay);
        base.timers.set_no_later(Timer::External, now + wait);
    }

    /// Sends the next DAO. `sequence` is its DAOSequence; true if it is used.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        dodag: Option<&Dodag>,
        sequence: Sequence,
        base: &mut Base,
    ) -> bool {
        let Some(dodag) = dodag.filter(|_| self.in_flight.is_none()) else { return false };
        let Some((target, advert)) = self.pending.pop_first() else { return false };
        let in_flight = InFlight { sequence, target, advert, retries: 0 };
        transmit(now, &in_flight, dodag, base);
        // RFC 9010 s9.2.2: the DAO asks for a DAO-ACK, whatever the settings say.
        self.in_flight = Some(in_flight);
        true
    }
    /// No DAO-ACK came.
    pub(crate) fn on_timeout(&mut self, now: Instant, dodag: Option<&Dodag>, base: &mut Base) {
        let (Some(mut sent), Some(dodag)) = (self.in_flight.take(), dodag) else { return };
        if sent.retries < base.config.dao_retries {
            sent.retries += 1;
            transmit(now, &sent, dodag, base);
            self.in_flight = Some(sent);
        } else {
            self.pending.insert(sent.target, sent.advert);
            let wait = base.jittered(params::DAO_REST);
            base.timers.set_no_later(Timer::External, now + wait);
        }
    }
    /// A DAO-ACK came; true if it was for a DAO of this part.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        from: Address,
        ack: &DaoAck,
        dodag: Option<&Dodag>,
        base: &mut Base,
    ) -> bool {
        let is_mine = |sent: &InFlight| sent.sequence.0 == ack.sequence;
        let from_root = dodag.is_some_and(|dodag| dodag.id == from);
        let Some(sent) = self.in_flight.filter(|sent| from_root && is_mine(sent)) else {
            return false;
        };
        if ack.instance != base.config.instance {
            return true;
        }
        self.in_flight = None;
        base.timers.clear(Timer::ExternalAck);
        if ack.status.is_rejection() {
            self.give_up(&sent.target, sent.advert.path_sequence, ack.status.0, base);
        }
        if !self.pending.is_empty() {
            let wait = base.jittered(base.config.dao_forward_delay);
            base.timers.set_no_later(Timer::External, now + wait);
        }
        true
    }

    /// The root says that a leaf with a registration up to `path_sequence` is not, or no longer, here.
    fn give_up(&mut self, leaf: &Address, path_sequence: Sequence, status: u8, base: &mut Base) {
        let is_newer = |own: &Advert| own.path_sequence.order(path_sequence) == Order::Newer;
        if self.own.get(leaf).is_none_or(is_newer) {
            return;
        }
        self.own.remove(leaf);
        self.pending.remove(leaf);
        // RFC 9010 s9.2.2: without the flag A the registration stands, and there is no route.
        let status = if status >= REJECTION { status & STATUS } else { 0 };
        base.outbox.push(Output::LeafRefused { leaf: *leaf, status });
    }
    /// A DCO came. RFC 9010 s7: in all modes, from the root to a router of a leaf that moved. True if it was about leaves.
    pub(crate) fn on_dco(
        &mut self,
        from: Address,
        dco: &Dco,
        dodag: &Dodag,
        base: &mut Base,
    ) -> bool {
        if from != dodag.id || dco.instance != base.config.instance {
            return false;
        }
        let (mut is_mine, mut target) = (false, None);
        for option in &dco.options {
            match option {
                RplOption::Target(named) => target = Some(named.prefix),
                RplOption::TransitInformation(transit) if transit.external => {
                    if let Some(target) = target.take() {
                        is_mine = true;
                        let path_sequence = Sequence(transit.path_sequence);
                        self.give_up(&target, path_sequence, dco.status, base);
                    }
                }
                _ => {}
            }
        }
        is_mine
    }

    /// At the root: a DAO announces a leaf. `is_internal` says that a node of the DODAG has its address.
    pub(crate) fn on_target(
        &mut self,
        now: Instant,
        target: &Target,
        transit: &TransitInformation,
        (dodag, is_internal): (&Dodag, bool),
        base: &mut Base,
    ) -> DaoStatus {
        let Some(router) = transit.parent.filter(|_| target.prefix_length == 128) else {
            return DaoStatus::ACCEPTED;
        };
        let (leaf, path_sequence) = (target.prefix, Sequence(transit.path_sequence));
        if is_internal || leaf == dodag.id || leaf == router {
            return DaoStatus(REJECTION | DUPLICATE);
        }
        let known = self.places.get(&leaf).copied();
        let own = self.own.get(&leaf).map(|own| own.path_sequence);
        let latest = known.map(|known| known.path_sequence).or(own);
        let order = latest.map(|latest| path_sequence.order(latest));
        if transit.path_lifetime == params::NO_PATH {
            // Only its router can take a route back: another may have learned of a move late.
            if known.is_some_and(|known| known.router == router) && order != Some(Order::Older) {
                self.places.remove(&leaf);
            }
            return DaoStatus::ACCEPTED;
        }
        if order == Some(Order::Older) {
            return DaoStatus(REJECTION | MOVED);
        }
        if own.is_some() {
            self.give_up(&leaf, path_sequence, REJECTION | MOVED, base);
        }
        if known.is_none() && !self.make_room(&router) {
            return DaoStatus::REJECTED;
        }
        let expires = dodag.expiry(now, transit.path_lifetime);
        self.places.insert(leaf, Place { router, path_sequence, expires });
        base.timers.set_no_later(Timer::RouteExpiry, expires);
        if let Some(known) = known.filter(|known| known.router != router) {
            end_registration(leaf, path_sequence, known.router, base);
        }
        DaoStatus::ACCEPTED
    }
    /// True if there is a place for one more leaf of `router`. In a full table the router with most leaves gives one up, as
    /// long as it still has more than the newcomer then has.
    fn make_room(&mut self, router: &Address) -> bool {
        if self.places.len() < self.max {
            return true;
        }
        let mut held: BTreeMap<Address, usize> = BTreeMap::new();
        for place in self.places.values() {
            *held.entry(place.router).or_default() += 1;
        }
        let newcomer = held.get(router).copied().unwrap_or(0);
        let most = held.into_iter().max_by_key(|(_, count)| *count);
        let Some((most, _)) = most.filter(|(_, count)| *count > newcomer + 1) else { return false };
        let theirs = self.places.iter().filter(|(_, place)| place.router == most);
        let first = theirs.min_by_key(|(_, place)| place.expires).map(|(leaf, _)| *leaf);
        first.is_some_and(|leaf| self.places.remove(&leaf).is_some())
    }
    /// Ends the routes whose lifetime is over; when the next one is.
    pub(crate) fn expire(&mut self, now: Instant) -> Instant {
        self.places.retain(|_, place| place.expires > now);
        self.places.values().map(|place| place.expires).min().unwrap_or(Instant::FAR_FUTURE)
    }
}

/// The Path Lifetime of a registration: longer than that (RFC 9010 s9.2.2), by one unit.
fn units(lifetime: Duration, unit: u16) -> u8 {
    let units = lifetime.as_secs().div_ceil(u64::from(unit.max(1))) + 1;
    u8::try_from(units).unwrap_or(u8::MAX).min(params::PATH_FOR_EVER - 1)
}

fn options(leaf: Address, advert: Advert, parent: Option<Address>) -> Vec<RplOption> {
    let transit = TransitInformation {
        external: true,
        invalidates: false,
        path_control: 0,
        path_sequence: advert.path_sequence.0,
        path_lifetime: advert.path_lifetime,
        parent,
    };
    Vec::from([RplOption::Target(Target::host(leaf)), RplOption::TransitInformation(transit)])
}

fn transmit(now: Instant, sent: &InFlight, dodag: &Dodag, base: &mut Base) {
    let options = options(sent.target, sent.advert, Some(dodag.address));
    let (instance, sequence) = (base.config.instance, sent.sequence.0);
    let dao = Dao { instance, ack_wanted: true, sequence, dodag_id: None, options };
    base.send(Destination::Unicast(dodag.id), Message::Dao(dao));
    let timeout = base.config.dao_ack_timeout * (1 << sent.retries.min(6));
    let wait = base.rng.duration(timeout, timeout + timeout / 2);
    base.timers.set(Timer::ExternalAck, now + wait);
}

/// Tells the router that a leaf left that it did (RFC 9010 s7). A DCO that is lost costs no more than its absence: the
/// registration ends with its lifetime.
fn end_registration(leaf: Address, path_sequence: Sequence, router: Address, base: &mut Base) {
    let options = options(leaf, Advert::no_path(path_sequence), None);
    let (instance, status) = (base.config.instance, REJECTION | MOVED);
    let (ack_wanted, dodag_id, sequence) = (false, None, path_sequence.0);
    let dco = Dco { instance, ack_wanted, status, sequence, dodag_id, options };
    base.send(Destination::Unicast(router), Message::Dco(dco));
}
