//! A cache of responses for clients and proxies (RFC 7252 s5.6): what is fresh is not asked for, and
//! what is stale but has a tag is only validated.
//!
//! It holds whole bodies, so it stands above block-wise transfer. `P` is whose resource it is: the
//! address of a server, or whatever tells origins apart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options};

use crate::blockwise::RequestKey;
use crate::event::RequestTemplate;
use crate::params::MAX_AGE_DEFAULT;

/// What a cache knows about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The answer; its Max-Age says how long it stays fresh.
    Fresh(Message),
    /// An answer that is too old, whose tag may be validated: to be sent along as ETag.
    Stale(Vec<u8>),
    /// Nothing.
    Missing,
}

/// Request and origin of an entry; for FETCH the payload belongs to the request (RFC 8132 s2.1).
type Key<P> = (P, RequestKey, Vec<u8>);

#[derive(Debug)]
struct Entry {
    response: Message,
    stored: Instant,
    fresh_for: Duration,
    /// Its place in the order of use.
    used: u64,
    /// The options that name the resource.
    uri: Vec<u8>,
}

/// Stored responses, at most so many octets of them; the least recently used go first.
#[derive(Debug)]
pub struct Cache<P> {
    entries: BTreeMap<Key<P>, Entry>,
    by_use: BTreeMap<u64, Key<P>>,
    octets: usize,
    octets_max: usize,
    serial: u64,
}

impl<P: Ord + Clone> Cache<P> {
    /// A cache of at most `octets_max` octets of options and payloads; 0 stores nothing.
    pub const fn new(octets_max: usize) -> Self {
        Self { entries: BTreeMap::new(), by_use: BTreeMap::new(), octets: 0, octets_max, serial: 0 }
    }
    /// Octets of options and payloads that are stored.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// What is known about `request` to `origin`.
    pub fn lookup(&mut self, origin: &P, request: &RequestTemplate, now: Instant) -> Lookup {
        let Some(key) = key(origin, request) else { return Lookup::Missing };
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
            Some(tag) => Lookup::Stale(tag.to_vec()),
            None => Lookup::Missing,
        }
    }
    /// A response to `request` has come. Returns what the application is to see: for a 2.03 that
    /// validates an entry the stored representation, else the response itself.
    pub fn take(
        &mut self,
        origin: &P,
        request: &RequestTemplate,
        response: Message,
        now: Instant,
    ) -> Message {
        match response.code {
            // RFC 7252 s5.9.1: what a method changes is no longer fresh.
            Code::CREATED | Code::DELETED | Code::CHANGED => self.invalidate(origin, request),
            Code::VALID => return self.validate(origin, request, response, now),
            code => {
                let error = matches!(code.class(), Class::ClientError | Class::ServerError);
                // RFC 7252 s5.9: 2.05 and errors are cacheable.
                if code == Code::CONTENT || error {
                    self.store(origin, request, &response, now);
                }
            }
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
        let entry = key(origin, request).and_then(|key| self.entries.get_mut(&key));
        let tag = OptionNumber::ETAG;
        let Some(entry) = entry else { return response };
        // The application's own validation is not answered out of the cache.
        let stored = entry.response.options.get(tag);
        let own = request.options.iter().values(tag).any(|one| stored != Some(one));
        if own || entry.response.options.get(tag) != response.options.get(tag) {
            return response;
        }
        // RFC 7252 s5.6.2: the stored response is fresh again, with the options that came.
        entry.stored = now;
        entry.fresh_for = max_age(&response.options);
        let Message { kind, message_id, token, .. } = response;
        let mut whole = Message { kind, message_id, token, ..entry.response.clone() };
        match response.options.get(OptionNumber::MAX_AGE) {
            Some(value) => whole.options.set(OptionNumber::MAX_AGE, value),
            None => drop(whole.options.remove(OptionNumber::MAX_AGE)),
        }
        entry.response.options = whole.options.clone();
        whole
    }

    fn store(&mut self, origin: &P, request: &RequestTemplate, response: &Message, now: Instant) {
        let Some(key) = key(origin, request) else { return };
        self.forget(&key);
        let octets = size(response);
        // RFC 7641 s3.2: a notification refreshes by itself; what is not processed here must not be
        // stored (RFC 7252 s5.4.2).
        let unsafe_unknown =
            |number: OptionNumber| number.is_unsafe() && number.definition().is_none();
        let private = response.options.iter().any(|one| unsafe_unknown(one.number))
            || request.options.iter().any(|one| unsafe_unknown(one.number));
        if octets > self.octets_max || private {
            return;
        }
        while self.octets + octets > self.octets_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.forget(&oldest);
        }
        self.serial += 1;
        self.octets += octets;
        self.by_use.insert(self.serial, key.clone());
        let (fresh_for, used) = (max_age(&response.options), self.serial);
        let uri = uri(&request.options);
        let entry = Entry { response: response.clone(), stored: now, fresh_for, used, uri };
        self.entries.insert(key, entry);
    }

    /// Forgets every response for the resource of a request that has changed it.
    fn invalidate(&mut self, origin: &P, request: &RequestTemplate) {
        let uri = uri(&request.options);
        let changed =
            self.entries.iter().filter(|((one, ..), entry)| one == origin && entry.uri == uri);
        let changed: Vec<Key<P>> = changed.map(|(key, _)| key.clone()).collect();
        for key in &changed {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &Key<P>) {
        if let Some(gone) = self.entries.remove(key) {
            self.by_use.remove(&gone.used);
            self.octets -= size(&gone.response);
        }
    }
}

/// The key of a request that may be answered from a cache.
fn key<P: Clone>(origin: &P, request: &RequestTemplate) -> Option<Key<P>> {
    let asks_for_part = request.options.get(OptionNumber::BLOCK2).is_some();
    let payload = match request.code {
        Code::GET => Vec::new(),
        Code::FETCH => request.payload.clone(),
        _ => return None,
    };
    if asks_for_part || request.options.get(OptionNumber::OBSERVE).is_some() {
        return None;
    }
    Some((origin.clone(), RequestKey::from_parts(request.code, &request.options), payload))
}

/// RFC 7252 s5.6.1: how long a response is fresh.
fn max_age(options: &Options) -> Duration {
    options
        .get_uint(OptionNumber::MAX_AGE)
        .map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(u64::from(seconds)))
}

/// The options that name the resource.
fn uri(options: &Options) -> Vec<u8> {
    let mut uri = options.clone();
    uri.retain(|option| {
        matches!(
            option.number,
            OptionNumber::URI_HOST
                | OptionNumber::URI_PORT
                | OptionNumber::URI_PATH
                | OptionNumber::URI_QUERY
                | OptionNumber::PROXY_URI
                | OptionNumber::PROXY_SCHEME
        )
    });
    uri.as_bytes().to_vec()
}

fn size(response: &Message) -> usize {
    response.options.as_bytes().len() + response.payload.len()
}

#[cfg(test)]
mod tests;
