//! The deadlines of a node as a table, with the earliest at hand.

use lowmesh_units::Instant;

/// What can fall due, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Timer {
    /// Ask for DIOs.
    Dis,
    /// The poisoning after a detach has lasted long enough.
    Poison,
    /// A route's lifetime ends.
    RouteExpiry,
    /// Renew the own path before its lifetime ends.
    Refresh,
    /// No DAO-ACK came.
    DaoAck,
    /// Send what targets are pending.
    Dao,
    /// Look at the parents again, and probe.
    Probe,
    /// No DAO-ACK came for the DAO about a leaf.
    ExternalAck,
    /// Announce the leaves that wait for it.
    External,
}

pub(crate) const TIMERS: [Timer; 9] = [
    Timer::Dis,
    Timer::Poison,
    Timer::RouteExpiry,
    Timer::Refresh,
    Timer::DaoAck,
    Timer::Dao,
    Timer::Probe,
    Timer::ExternalAck,
    Timer::External,
];

/// One deadline for each [`Timer`].
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    at: [Instant; TIMERS.len()],
    earliest: Instant,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { at: [Instant::FAR_FUTURE; TIMERS.len()], earliest: Instant::FAR_FUTURE }
    }
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        self.earliest = self.at.iter().copied().min().unwrap_or(Instant::FAR_FUTURE);
    }
    /// Sets the timer, unless it is set for an earlier time.
    pub(crate) fn set_no_later(&mut self, timer: Timer, at: Instant) {
        self.set(timer, at.min(self.at[timer as usize]));
    }
    pub(crate) fn clear(&mut self, timer: Timer) {
        self.set(timer, Instant::FAR_FUTURE);
    }
    /// Takes the first timer that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        if self.earliest > now {
            return None;
        }
        let due = TIMERS.into_iter().find(|timer| self.at[*timer as usize] <= now)?;
        self.clear(due);
        Some(due)
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.earliest != Instant::FAR_FUTURE).then_some(self.earliest)
    }
}
