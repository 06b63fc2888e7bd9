//! The security contexts of a server, found by what a request says (RFC 8613 s8.2 step 2).

use alloc::vec::Vec;

use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::stream::StreamMessage;

use crate::{Header, Received, Refusal, Reservation, SecurityContext};

/// Contexts in the order they were added.
#[derive(Debug, Default)]
pub struct Contexts {
    all: Vec<SecurityContext>,
}

/// A request, and whose it was.
#[derive(Debug)]
pub struct Opened {
    /// The request as its client made it.
    pub request: StreamMessage,
    /// What its responses need.
    pub received: Received,
    /// The number of the context: what [`Contexts::get_mut`] takes.
    pub context: usize,
}

impl Contexts {
    /// These contexts.
    pub const fn new(all: Vec<SecurityContext>) -> Self {
        Self { all }
    }
    /// Adds one; its number.
    pub fn add(&mut self, context: SecurityContext) -> usize {
        self.all.push(context);
        self.all.len() - 1
    }
    /// The context of a number, to protect a response or to store its state.
    pub fn get_mut(&mut self, context: usize) -> Option<&mut SecurityContext> {
        self.all.get_mut(context)
    }
    /// All of them, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &SecurityContext)> {
        self.all.iter().enumerate()
    }
    /// [`SecurityContext::reservation_needed`] of a context, without numbers of another that shares
    /// its Sender Key.
    pub fn reservation_needed(&self, context: usize) -> Option<Reservation> {
        let asking = self.all.get(context)?;
        let reservation = asking.reservation_needed()?;
        Some(reservation.not_before(self.reserved(asking)))
    }
    /// [`SecurityContext::confirm`] of a context. A reservation is void if another context that
    /// shares the Sender Key was confirmed since it was asked for.
    pub fn confirm(&mut self, context: usize, reservation: Reservation) {
        let Some(asking) = self.all.get(context) else { return };
        if reservation.starts_at_or_after(self.reserved(asking)) {
            self.all[context].confirm(reservation);
        }
    }
    /// The end of what is reserved under the Sender Key of a context.
    fn reserved(&self, asking: &SecurityContext) -> u64 {
        let sharing = self.all.iter().filter(|one| one.shares_sender_key(asking));
        sharing.map(SecurityContext::reserved).max().unwrap_or(0)
    }
    /// Opens a request with the context that it names. Where several have the same kid and the
    /// request says no kid context, each is tried (RFC 8613 s12.2).
    pub fn unprotect_request(&mut self, outer: &StreamMessage) -> Result<Opened, Refusal> {
        let value = outer.options.get(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let header = Header::parse(value)?;
        let Some(kid) = header.kid else { return Err(Refusal::Incomplete) };
        let mut refusal = Refusal::UnknownContext;
        for (number, context) in self.all.iter_mut().enumerate() {
            if !context.answers_to(kid, header.kid_context) {
                continue;
            }
            match context.unprotect_request(outer) {
                Ok((request, received)) => {
                    return Ok(Opened { request, received, context: number });
                }
                // Not of this context, or a replay in it: another may have the key.
                Err(other @ (Refusal::Forged | Refusal::Replay)) => refusal = other,
                Err(other) => return Err(other),
            }
        }
        Err(refusal)
    }
}
