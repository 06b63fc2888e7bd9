//! A cache of responses for clients and proxies (RFC 7252 s5.6): what is fresh is not asked for, and
//! what is stale but has a tag is only validated.
//!
//! It holds whole bodies, so it stands above block-wise transfer. `P` is whose resource it is: the
//! address of a server, or a name that tells origins apart.
//!
//! ```text
//!   entries   origin, URI options, other options and body of the request ──► response
//!   by_use    serial number of the last use ──► the same key                    oldest first
//! ```
//! The URI stands first in the key, so all entries of one resource are neighbours.

mod key;
mod policy;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, Message, OptionNumber, Options};

use crate::event::RequestTemplate;
use crate::params::{CACHE_ALLOCATION_OVERHEAD, CACHE_NODE_SLACK};
use key::{Key, resource};
use policy::{freshness, is_storable};

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The answer; its Max-Age says how long it stays fresh.
    Fresh(Message),
    /// An answer that is too old, whose tag may be validated: to be sent along as ETag.
    Stale(Vec<u8>),
    /// The cache has no response for the request.
    Missing,
}

#[derive(Debug)]
struct Entry {
    response: Message,
    stored: Instant,
    fresh_for: Duration,
    /// Its place in the order of use.
    used: u64,
    /// Octets of memory that count for it.
    octets: usize,
}

/// Stored responses within a bound of memory; the least recently used response is removed first.
#[derive(Debug)]
pub struct Cache<P> {
    entries: BTreeMap<Key<P>, Box<Entry>>,
    by_use: BTreeMap<u64, Key<P>>,
    octets: usize,
    octets_max: usize,
    serial: u64,
    /// Octets that an origin has on the heap.
    heap: fn(&P) -> usize,
}

impl<P: Ord + Copy> Cache<P> {
    /// A cache of at most `octets_max` octets of memory; 0 stores nothing.
    pub const fn new(octets_max: usize) -> Self {
        Self::of_origins(octets_max, |_| 0)
    }
}

impl<P> Cache<P> {
    /// The same for origins that own memory; `heap` returns their octets.
    pub const fn of_origins(octets_max: usize, heap: fn(&P) -> usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            octets: 0,
            octets_max,
            serial: 0,
            heap,
        }
    }
    /// Octets of memory of the cache: keys, responses and the tables themselves.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// The number of stored responses.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// True if nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<P: Ord + Clone> Cache<P> {
    /// Looks up `request` to `origin`.
    pub fn lookup(&mut self, origin: &P, request: &RequestTemplate, now: Instant) -> Lookup {
        let Some(key) = Key::of(origin, request) else { return Lookup::Missing };
        let Some(entry) = self.entries.get_mut(&key) else { return Lookup::Missing };
        self.by_use.remove(&entry.used);
        self.serial += 1;
        entry.used = self.serial;
        self.by_use.insert(entry.used, key);
        let age = now.since(entry.stored);
        if age < entry.fresh_for {
            let mut response = entry.response.clone();
            // RFC 7252 s5.7.1: Max-Age MUST be decremented by the time in the cache.
            let left = (entry.fresh_for - age).as_secs() as u32;
            response.options.set_uint(OptionNumber::MAX_AGE, left);
            return Lookup::Fresh(response);
        }
        match entry.response.options.get(OptionNumber::ETAG) {
            // RFC 7252 s5.9.2, s5.9.3: errors cannot be validated.
            Some(tag) if entry.response.code == Code::CONTENT => Lookup::Stale(tag.to_vec()),
            _ => Lookup::Missing,
        }
    }
    /// Takes a response to `request`, which is as it was made, without the tag of [`validating`]. Returns what its maker is to
    /// see: for a 2.03 that validates an entry the stored representation, else the response itself. Whether that is an
    /// answer, [`is_understood`] says.
    pub fn take(
        &mut self,
        origin: &P,
        request: &RequestTemplate,
        response: Message,
        now: Instant,
    ) -> Message {
        match response.code {
            // RFC 7252 s5.9.1: what a method changes is no longer fresh.
            Code::CREATED | Code::DELETED | Code::CHANGED => {
                self.invalidate(origin, &request.options);
                if let Some(created) = created(&request.options, &response) {
                    self.invalidate(origin, &created);
                }
            }
            Code::VALID => return self.validate(origin, request, response, now),
            _ => self.store(origin, request, &response, now),
        }
        response
    }

    fn validate(
        &mut self,
        origin: &P,
        request: &RequestTemplate,
        response: Message,
        now: Instant,
    ) -> Message {
        let tag = OptionNumber::ETAG;
        let Some(key) = Key::of(origin, request) else { return response };
        let Some(entry) = self.entries.get_mut(&key) else { return response };
        let stored = entry.response.options.get(tag);
        if stored != response.options.get(tag) {
            return response;
        }
        // RFC 7252 s5.6.2, s5.9.1.3: the stored response is fresh again, with the Max-Age that came.
        entry.stored = now;
        entry.fresh_for = freshness(response.code, &response.options);
        let (kind, message_id, token) =
            (response.kind, response.message_id, response.token.clone());
        let mut whole = Message { kind, message_id, token, ..entry.response.clone() };
        renew(&mut whole.options, &response.options);
        entry.response.options = whole.options.clone();
        let octets = octets(&key, &entry.response, self.heap);
        self.octets = self.octets - entry.octets + octets;
        entry.octets = octets;
        self.make_room(0);
        // Who has the representation wants to know that it is still good.
        if is_understood(request, &response) { response } else { whole }
    }

    fn store(&mut self, origin: &P, request: &RequestTemplate, response: &Message, now: Instant) {
        if !is_storable(request, response) {
            return;
        }
        let Some(key) = Key::of(origin, request) else { return };
        // RFC 7252 s5.6.1: the new response invalidates the old one.
        self.forget(&key);
        let fresh_for = freshness(response.code, &response.options);
        let validated = response.options.get(OptionNumber::ETAG).is_some();
        let octets = octets(&key, response, self.heap);
        let useless = fresh_for == Duration::ZERO && !validated;
        if octets > self.octets_max || useless {
            return;
        }
        self.make_room(octets);
        self.serial += 1;
        self.octets += octets;
        self.by_use.insert(self.serial, key.clone());
        let (response, used) = (response.clone(), self.serial);
        let entry = Entry { response, stored: now, fresh_for, used, octets };
        self.entries.insert(key, Box::new(entry));
    }

    /// Forgets the least recently used until `octets` more fit in.
    fn make_room(&mut self, octets: usize) {
        while self.octets + octets > self.octets_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.forget(&oldest);
        }
    }

    /// Forgets every response for the resource that these options name.
    fn invalidate(&mut self, origin: &P, options: &Options) {
        let first = Key::first_of(origin, resource(options));
        // Every key of the resource is the first one or behind it.
        let neighbours = self.entries.range(&first..).map(|(key, _)| key);
        let changed: Vec<Key<P>> =
            neighbours.take_while(|key| key.is_of(&first)).cloned().collect();
        for key in &changed {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &Key<P>) {
        if let Some(gone) = self.entries.remove(key) {
            self.by_use.remove(&gone.used);
            self.octets -= gone.octets;
        }
    }
}

/// Adds the tag of a stored response to a request, unless that has it already. Returns the request as it was.
pub fn validating(request: &mut RequestTemplate, tag: &[u8]) -> Option<RequestTemplate> {
    if request.options.iter().values(OptionNumber::ETAG).any(|one| one == tag) {
        return None;
    }
    let before = request.clone();
    request.options.insert(OptionNumber::ETAG, tag);
    Some(before)
}

/// Whether who made a request knows what a 2.03 is about: a tag among its own. One that only the cache has asked about is
/// answered from the cache, and one that nobody has asked about says nothing (RFC 7252 s5.9.1.3): then the request has to be
/// sent again without the cache's tag.
pub fn is_understood(request: &RequestTemplate, response: &Message) -> bool {
    let mut own = request.options.iter().values(OptionNumber::ETAG);
    match response.options.get(OptionNumber::ETAG) {
        _ if response.code != Code::VALID => true,
        Some(tag) => own.any(|one| one == tag),
        None => own.next().is_some(),
    }
}

/// The options of the URI at which a request has created something; `None` if that is its own.
fn created(request: &Options, response: &Message) -> Option<Options> {
    let parts = [
        (OptionNumber::LOCATION_PATH, OptionNumber::URI_PATH),
        (OptionNumber::LOCATION_QUERY, OptionNumber::URI_QUERY),
    ];
    if response.code != Code::CREATED
        || parts.iter().all(|(location, _)| response.options.get(*location).is_none())
    {
        return None;
    }
    // RFC 7252 s5.10.7: the location is relative to the request URI, so it has the same host.
    let mut options = request.clone();
    for (location, uri) in parts {
        options.remove(uri);
        for value in response.options.iter().values(location) {
            options.insert(uri, value);
        }
    }
    Some(options)
}

/// RFC 7252 s5.9.1.3: the stored options of every type that is safe to forward and is in the 2.03
/// are replaced, and Max-Age with what the 2.03 says or implies.
fn renew(stored: &mut Options, came: &Options) {
    let renews = |number: OptionNumber| !number.is_unsafe() || number == OptionNumber::MAX_AGE;
    stored.remove(OptionNumber::MAX_AGE);
    stored.retain(|one| !(renews(one.number) && came.get(one.number).is_some()));
    for one in came.iter().filter(|one| renews(one.number)) {
        stored.insert(one.number, one.value);
    }
}

/// Octets of memory that an entry takes: what it has on the heap, and its places in both tables.
fn octets<P>(key: &Key<P>, response: &Message, heap: fn(&P) -> usize) -> usize {
    let places = size_of::<(Key<P>, Box<Entry>)>() + size_of::<(u64, Key<P>)>();
    // Both tables have the key: two allocations each, and its origin's.
    let keys = 2 * (key.octets() + heap(&key.origin) + 3 * CACHE_ALLOCATION_OVERHEAD);
    let message = response.options.as_bytes().len() + response.payload.len();
    let entry = size_of::<Entry>() + response.token.len() + 4 * CACHE_ALLOCATION_OVERHEAD;
    CACHE_NODE_SLACK * places + keys + message + entry
}

#[cfg(test)]
mod tests;
