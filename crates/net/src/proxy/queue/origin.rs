//! One origin that is being asked: whose turn it is there, and how long unproven clients wait for theirs.

use lowmesh_shares::{Table, Turns};
use lowmesh_units::{Duration, Instant};
use tokio::sync::oneshot;

use super::{Id, Permit};
use crate::params::{
    PROXY_PROVEN_RECENT, PROXY_UNPROVEN_PAUSE, PROXY_UNPROVEN_SOON, PROXY_UNPROVEN_WAITING_MAX,
};

/// Who waits for a turn, until it gets it or gives up.
pub(super) type Waiting = oneshot::Sender<Permit>;

/// One origin that is being asked.
#[derive(Debug)]
pub(super) struct Origin {
    /// The request with which it began: an origin that was forgotten and is asked again is another one.
    pub(super) born: Id,
    /// Requests, waiting ones included.
    pub(super) requests: Table<Id>,
    /// Somebody has the turn.
    pub(super) taken: bool,
    pub(super) turns: Turns<Waiting>,
    /// Requests of unproven clients that hold the window, and how many may.
    pub(super) unproven_sent: usize,
    pub(super) unproven_max: usize,
    /// When the latest of them left.
    pub(super) unproven_sent_at: Instant,
    /// From then on it may be the turn of an unproven client.
    pub(super) unproven_from: Instant,
    /// When a proven client asked last.
    pub(super) proven_asked: Option<Instant>,
}

impl Origin {
    pub(super) fn new(born: Id, requests: Table<Id>, unproven_max: usize) -> Self {
        let (turns, unproven_from, unproven_sent_at) = (Turns::new(), Instant::ZERO, Instant::ZERO);
        let (taken, unproven_sent, proven_asked) = (false, 0, None);
        Self {
            born,
            requests,
            taken,
            turns,
            unproven_sent,
            unproven_max,
            unproven_sent_at,
            unproven_from,
            proven_asked,
        }
    }
    /// Whether it may be the turn of an unproven client: not beyond their part of the window; and if proven ones ask too, not
    /// while another holds the window, nor for a while afterwards.
    pub(super) fn is_for_unproven(&self, now: Instant) -> bool {
        let rests = || self.unproven_sent == 0 && self.unproven_from <= now;
        self.unproven_sent < self.unproven_max && (!self.serves_proven(now) || rests())
    }
    pub(super) fn serves_proven(&self, now: Instant) -> bool {
        let recent = |asked: Instant| now.since(asked) < Duration::from(PROXY_PROVEN_RECENT);
        self.proven_asked.is_some_and(recent)
    }
    /// How long the next unproven client waits for its turn, by what is known now. While others hold the window, that grows
    /// with the time that they take.
    pub(super) fn unproven_wait(&self, now: Instant) -> Duration {
        if self.is_for_unproven(now) {
            Duration::ZERO
        } else if self.unproven_sent == 0 {
            self.unproven_from.since(now)
        } else if self.serves_proven(now) {
            now.since(self.unproven_sent_at).saturating_mul(PROXY_UNPROVEN_PAUSE)
        } else {
            // As long again as they have taken so far, for want of a better guess.
            now.since(self.unproven_sent_at)
        }
    }
    /// Whether a proof would help an unproven client more than to wait.
    pub(super) fn wants_proof(&self, now: Instant) -> bool {
        let waits = self.taken || !self.is_for_unproven(now);
        let crowded = waits && self.turns.unproven() >= PROXY_UNPROVEN_WAITING_MAX;
        crowded || self.unproven_wait(now) > Duration::from(PROXY_UNPROVEN_SOON)
    }
}
