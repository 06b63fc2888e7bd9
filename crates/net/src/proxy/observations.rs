//! What a proxy observes at origins on behalf of its clients (RFC 7641 s5): one registration for all the clients that ask
//! the same.
//!
//! ```text
//!   client ─┐
//!   client ─┼─ observers of the server ── ask ──► Observation ◄── State ── Registration ◄── origin
//!   client ─┘             ▲                            │
//!                         └──────── RequestChanged ────┘
//! ```
//! The server keeps the clients, as it does those of its own resources: when a state comes they are told that what they
//! asked for has changed, ask for it, and find it here. A state that nobody asks for has no observers any more, and the
//! registration is given up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::blockwise::RequestKey;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Message, OptionNumber};
use tokio::sync::watch;

use super::queue::{Client, Shares};
use super::refusal::Refusal;
use crate::params::{PROXY_REQUESTS_MAX, PROXY_UNHEEDED_MAX, PROXY_UNPROVEN_PER_ORIGIN_MAX};

/// What an origin has said to a registration.
///
/// ```text
///   Pending ──► Current ──► Current ──► ...
///      └───────────┴──► Over
/// ```
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Nothing yet.
    Pending,
    /// This, and there will be more.
    Current {
        /// The notification.
        message: Box<Message>,
        /// The time of its arrival.
        at: Instant,
    },
    /// This, and no more: an answer without Observe, or what the client gets instead of one.
    Over(Result<Box<Message>, Refusal>),
}

/// The origin and what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    origin: String,
    request: RequestKey,
    payload: Vec<u8>,
    /// A loop of proxies is seen by this alone (RFC 8768): joined to itself it would wait for itself.
    hop_limit: Option<u32>,
}

impl Key {
    pub(super) fn new(origin: &str, request: &RequestTemplate) -> Self {
        Self {
            origin: origin.to_owned(),
            request: RequestKey::from_parts(request.code, &request.options),
            payload: request.payload.clone(),
            hop_limit: request.options.get_uint(OptionNumber::HOP_LIMIT),
        }
    }
}

/// One registration.
#[derive(Debug)]
struct Observation {
    /// The client that asked first. It counts in the share of that client.
    client: Client,
    /// Its address was proven.
    proven: bool,
    states: watch::Receiver<State>,
    /// Octets of the state that came last. They count in the share of that client too.
    octets: usize,
    /// The different requests of the clients for this state.
    requests: BTreeMap<(RequestKey, Vec<u8>), Arc<Message>>,
    /// When a client asked last.
    asked: Instant,
    /// When a change was told first after that.
    unheeded: Option<Instant>,
}

/// All of a proxy.
#[derive(Debug)]
pub(super) struct Observations {
    table: Mutex<Table>,
    max: usize,
    /// Octets of their states.
    octets_max: usize,
}

#[derive(Debug, Default)]
struct Table {
    all: BTreeMap<Key, Observation>,
    shares: Shares<Client>,
    /// Octets of states.
    octets: Shares<Client>,
    /// Registrations for clients whose address was not proven, at each origin.
    unproven: BTreeMap<String, usize>,
}

impl Table {
    /// Whether one more unproven client may observe at an origin: to the origin all observers of a proxy are one peer,
    /// whose share they must not use up.
    fn admits_unproven(&self, origin: &str, max: usize) -> bool {
        let (all, here) = (self.unproven.values().sum::<usize>(), self.unproven.get(origin));
        all < (max / 2).max(1) && here.is_none_or(|here| *here < PROXY_UNPROVEN_PER_ORIGIN_MAX)
    }
}

/// Whether a registration begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// It does.
    Now,
    /// There is one like it.
    Before,
    /// There is no room for it.
    NoRoom,
    /// There is room for clients with proven addresses only.
    Unproven,
}

impl Observations {
    pub(super) fn new(max: usize, octets_max: usize) -> Self {
        Self { table: Mutex::default(), max, octets_max }
    }
    /// The states of an existing observation, for a client that asks for it with `request`; `None` too if there are too many
    /// different requests for it.
    pub(super) fn join(
        &self,
        key: &Key,
        request: &Message,
        now: Instant,
    ) -> Option<watch::Receiver<State>> {
        let mut table = self.table();
        let one = table.all.get_mut(key)?;
        let asked = (RequestKey::of(request), request.payload.clone());
        if !one.requests.contains_key(&asked) {
            if one.requests.len() >= PROXY_REQUESTS_MAX {
                return None;
            }
            one.requests.insert(asked, Arc::new(request.clone()));
        }
        one.asked = now;
        one.unheeded = None;
        Some(one.states.clone())
    }
    /// A registration begins for a client, if there is none like it and there is room. Unproven addresses have half of
    /// the room together, and a few places at each origin.
    pub(super) fn begin(
        &self,
        key: Key,
        (client, proven): (Client, bool),
        states: watch::Receiver<State>,
        now: Instant,
    ) -> Begun {
        let mut table = self.table();
        if table.all.contains_key(&key) {
            return Begun::Before;
        }
        if !table.shares.admits(&client, self.max) {
            return Begun::NoRoom;
        }
        if !proven && !table.admits_unproven(&key.origin, self.max) {
            return Begun::Unproven;
        }
        table.shares.add(&client);
        if !proven {
            *table.unproven.entry(key.origin.clone()).or_default() += 1;
        }
        let (requests, unheeded) = (BTreeMap::new(), None);
        let (octets, asked) = (0, now);
        let observation = Observation { client, proven, states, octets, requests, asked, unheeded };
        table.all.insert(key, observation);
        Begun::Now
    }
    /// True if there is room for a new state in the place of the one before.
    pub(super) fn keep(&self, key: &Key, state: &Message) -> bool {
        let mut table = self.table();
        let Table { all, octets, .. } = &mut *table;
        let Some(one) = all.get_mut(key) else { return false };
        let new = state.options.as_bytes().len() + state.payload.len();
        let kept = octets.replace(&one.client, (one.octets, new), self.octets_max);
        if kept {
            one.octets = new;
        }
        kept
    }
    /// A state has come: what has changed for clients, or `None` if none of them has wanted to know for a while.
    pub(super) fn changed(&self, key: &Key, now: Instant) -> Option<Vec<Arc<Message>>> {
        let mut table = self.table();
        let one = table.all.get_mut(key)?;
        let since = *one.unheeded.get_or_insert(now);
        let unheeded_max = Duration::from_secs(PROXY_UNHEEDED_MAX.as_secs());
        if one.asked < since && now.since(since) > unheeded_max {
            return None;
        }
        Some(one.requests.values().cloned().collect())
    }
    /// It is over: what has changed for clients.
    pub(super) fn end(&self, key: &Key) -> Vec<Arc<Message>> {
        let mut table = self.table();
        let Some(ended) = table.all.remove(key) else { return Vec::new() };
        table.shares.remove(&ended.client);
        table.octets.replace(&ended.client, (ended.octets, 0), self.octets_max);
        if !ended.proven
            && let Some(here) = table.unproven.get_mut(&key.origin)
        {
            *here -= 1;
            if *here == 0 {
                table.unproven.remove(&key.origin);
            }
        }
        ended.requests.into_values().collect()
    }
    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two operations.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
