//! The observers of a server: how many there may be, and which one gives way.
//!
//! ```text
//!   total     past it the oldest unproven observer gives way to a proven one
//!   share     of one source; past it the oldest unproven observer of that source gives way to a proven one
//!   newcomer  finds no place if its own address is unproven, or if all that could give way are proven
//! ```

use alloc::collections::BTreeMap;

use lowmesh_units::Instant;
use lowmesh_wire::coap::{Kind, Message, OptionNumber, Token};

use super::observation::{ObservationId, ObserverId};
use crate::PeerAddress;
use crate::event::{Notifications, ResponseTemplate};
use crate::exchange::{Association, Name};

/// What is kept of one observer.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) observation: ObservationId,
    /// What protected its request.
    pub(super) association: Association,
    /// Notifications are CON: the request was, and the application leaves it at that.
    pub(super) confirmable: bool,
    /// The Block2 option of the request.
    pub(super) block: Option<u32>,
    /// Content-Format of the first response (RFC 7641 s4.2).
    pub(super) format: Option<u32>,
    /// When the last CON notification, or the request itself, showed that the client is there.
    pub(super) confirmed: Instant,
    /// The earliest time of the next NON.
    pub(super) next_non: Instant,
    /// The CON in flight, or the latest NON.
    pub(super) latest: Option<(Name, Kind)>,
    /// The version of the state that it has been sent; 0 if that did not arrive.
    pub(super) version: u64,
    /// Its turn among those that wait.
    pub(super) turn: Option<u64>,
    /// Octets of credit that its registration has earned and that are set aside, headers included.
    pub(super) reserve: usize,
    /// It asked a group: other members notify it of the same change (RFC 10020 s3.7).
    pub(super) by_group: bool,
    /// It has acknowledged a notification.
    pub(super) acknowledged: bool,
    /// Its place among the unproven observers.
    unproven: Option<u64>,
}

impl Observer {
    /// The client of `request` under an association, which has had `response` with a version of the state.
    pub(super) fn new(
        request: &Message,
        association: &Association,
        response: &ResponseTemplate,
        (observation, version): (ObservationId, u64),
        now: Instant,
    ) -> Self {
        Self {
            observation,
            association: association.clone(),
            confirmable: match response.notifications {
                Notifications::AsRequested => request.kind == Kind::Confirmable,
                Notifications::NonConfirmable => false,
            },
            block: request.options.get_uint(OptionNumber::BLOCK2),
            format: response.options.get_uint(OptionNumber::CONTENT_FORMAT),
            confirmed: now,
            next_non: now,
            latest: None,
            version,
            turn: None,
            reserve: 0,
            by_group: false,
            acknowledged: false,
            unproven: None,
        }
    }
    /// True while a CON notification is in flight.
    pub(super) const fn awaits_acknowledgement(&self) -> bool {
        matches!(self.latest, Some((_, Kind::Confirmable)))
    }
}

/// All observers of a server.
#[derive(Debug)]
pub(super) struct Observers<P> {
    by_id: BTreeMap<ObserverId<P>, Observer>,
    /// How many observers a source has.
    by_source: BTreeMap<P, usize>,
    /// Observers whose address is unproven, the oldest first.
    unproven: BTreeMap<u64, ObserverId<P>>,
    /// Counts the unproven observers that came.
    serial: u64,
    total_max: usize,
    per_source_max: usize,
}

impl<P: PeerAddress> Observers<P> {
    /// At most `total_max` observers, `per_source_max` of each source.
    pub(super) const fn new(total_max: usize, per_source_max: usize) -> Self {
        Self {
            by_id: BTreeMap::new(),
            by_source: BTreeMap::new(),
            unproven: BTreeMap::new(),
            serial: 0,
            total_max,
            per_source_max,
        }
    }
    /// Changes how many there may be. Those that there are stay.
    pub(super) const fn set_max(&mut self, total_max: usize) {
        self.total_max = total_max;
    }
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
    /// True if no table has an entry.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.by_source.is_empty() && self.unproven.is_empty()
    }
    pub(super) fn get(&self, id: &ObserverId<P>) -> Option<&Observer> {
        self.by_id.get(id)
    }
    pub(super) fn get_mut(&mut self, id: &ObserverId<P>) -> Option<&mut Observer> {
        self.by_id.get_mut(id)
    }
    /// The tokens of a peer's observers.
    pub(super) fn tokens_of(&self, peer: P) -> impl Iterator<Item = &Token> {
        let from = self.by_id.range((peer, Token::EMPTY)..);
        from.take_while(move |((one, _), _)| *one == peer).map(|((_, token), _)| token)
    }
    /// Whether all places are taken.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.total_max
    }
    /// Whether a source has its share of the places.
    pub(super) fn has_share(&self, source: P) -> bool {
        self.by_source.get(&source).is_some_and(|count| *count >= self.per_source_max)
    }
    /// Adds an observer, for which there is a place.
    pub(super) fn insert(&mut self, id: ObserverId<P>, observer: Observer, proven: bool) {
        let mut observer = observer;
        if !proven {
            self.serial += 1;
            self.unproven.insert(self.serial, id.clone());
            observer.unproven = Some(self.serial);
        }
        *self.by_source.entry(id.0.source()).or_default() += 1;
        self.by_id.insert(id, observer);
    }
    pub(super) fn remove(&mut self, id: &ObserverId<P>) -> Option<Observer> {
        let gone = self.by_id.remove(id)?;
        let source = id.0.source();
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
        if let Some(serial) = gone.unproven {
            self.unproven.remove(&serial);
        }
        Some(gone)
    }
    /// Whether an observer has proven its address, as far as is noted here.
    pub(super) fn is_proven(&self, id: &ObserverId<P>) -> bool {
        self.by_id.get(id).is_some_and(|one| one.unproven.is_none())
    }
    /// An observer has proven its address.
    pub(super) fn prove(&mut self, id: &ObserverId<P>) {
        if let Some(serial) = self.by_id.get_mut(id).and_then(|one| one.unproven.take()) {
            self.unproven.remove(&serial);
        }
    }
    /// The oldest unproven observer of a source; `None` means of all.
    pub(super) fn oldest_unproven(&self, source: Option<P>) -> Option<&ObserverId<P>> {
        self.unproven.values().find(|id| source.is_none_or(|one| id.0.source() == one))
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_wire::coap::{Code, MessageId};

    use super::*;

    /// An address and a port.
    type Port = (u8, u16);

    fn add(observers: &mut Observers<Port>, peer: Port, proven: bool) -> ObserverId<Port> {
        let request = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        let response = ResponseTemplate::new(Code::CONTENT);
        let observation = (ObservationId::for_test(1), 1);
        let id = (peer, request.token.clone());
        let observer =
            Observer::new(&request, &Association::Open, &response, observation, Instant::ZERO);
        observers.insert(id.clone(), observer, proven);
        id
    }

    #[test]
    fn the_oldest_unproven_observer_is_found_among_all_and_of_each_source() {
        let mut observers = Observers::new(9, 3);
        add(&mut observers, (1, 9), true);
        let first = add(&mut observers, (2, 1), false);
        let second = add(&mut observers, (1, 8), false);
        let third = add(&mut observers, (1, 7), false);
        assert_eq!(observers.oldest_unproven(None), Some(&first));
        assert_eq!(observers.oldest_unproven(Some((1, 0))), Some(&second));
        assert!(observers.has_share((1, 0)) && !observers.has_share((2, 0)));
        observers.prove(&second);
        assert!(observers.is_proven(&second) && !observers.is_proven(&third));
        observers.remove(&first);
        assert_eq!(observers.oldest_unproven(None), Some(&third));
        for (peer, token) in [&second, &third, &((1, 9), Token::EMPTY)] {
            assert_eq!(observers.tokens_of(*peer).collect::<Vec<_>>(), [token]);
            assert!(observers.remove(&(*peer, token.clone())).is_some());
        }
        assert!(observers.is_empty());
    }
}
