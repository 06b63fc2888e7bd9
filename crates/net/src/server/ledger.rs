//! A ledger of what connections hold: each connection has an account, from its beginning to its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::share::{Crowd, Held};
use crate::source::Source;

/// The accounts of all connections of a server. `A` is what is known of one.
#[derive(Debug)]
pub(super) struct Ledger<A>(Arc<Mutex<Accounts<A>>>);

/// The accounts, for as long as nobody else changes them.
#[derive(Debug)]
pub(super) struct Accounts<A> {
    serial: u64,
    all: BTreeMap<u64, (Source, A)>,
}

/// The account of one connection, which is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Account<A> {
    ledger: Ledger<A>,
    source: Source,
    id: u64,
}

impl<A> Default for Ledger<A> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Accounts { serial: 0, all: BTreeMap::new() })))
    }
}

impl<A> Clone for Ledger<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A> Ledger<A> {
    pub(super) fn lock(&self) -> MutexGuard<'_, Accounts<A>> {
        // The accounts are whole between any two operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Opens an account among the `accounts` of this ledger.
    pub(super) fn open(
        &self,
        accounts: &mut Accounts<A>,
        source: Source,
        account: A,
    ) -> Account<A> {
        let id = accounts.tick();
        accounts.all.insert(id, (source, account));
        Account { ledger: self.clone(), source, id }
    }
}

impl<A> Accounts<A> {
    /// The next of an ascending sequence of numbers, by which uses are ordered without a clock.
    pub(super) const fn tick(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
    /// How much each source holds.
    pub(super) fn held(&self, amount: impl Fn(&A) -> usize) -> Held {
        self.all.values().map(|(source, one)| (*source, amount(one))).collect()
    }
    /// An account of this ledger.
    pub(super) fn of(&mut self, account: &Account<A>) -> &mut A {
        let (_, one) = self.all.get_mut(&account.id).expect("it is open until it is dropped");
        one
    }
    /// Of the idle accounts in a crowd, the one that was used longest ago of the source that holds most. `used` says when
    /// an account was used last, and `None` if it is not idle.
    pub(super) fn longest_idle(
        &mut self,
        held: &Held,
        crowd: Crowd,
        used: impl Fn(&A) -> Option<u64>,
    ) -> Option<&mut A> {
        let idle = self.all.values_mut();
        held.longest_idle(crowd, idle.filter_map(|(source, one)| Some((*source, used(one)?, one))))
    }
}

impl<A> Account<A> {
    pub(super) const fn source(&self) -> Source {
        self.source
    }
    pub(super) fn lock(&self) -> MutexGuard<'_, Accounts<A>> {
        self.ledger.lock()
    }
}

impl<A> Drop for Account<A> {
    fn drop(&mut self) {
        self.lock().all.remove(&self.id);
    }
}
