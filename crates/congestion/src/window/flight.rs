//! What is in flight, as every window counts it, and the start of the period in which more losses say nothing new.

use lowmesh_units::{Duration, Instant};

use super::{Message, Permit};

/// The messages in flight of one [`Window`](super::Window).
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    outstanding: u32,
    /// When the latest message left.
    sent: Option<Instant>,
    /// When a message last made the window full.
    filled: Option<Instant>,
    /// When the window was last reduced.
    reduced: Option<Instant>,
}

impl Flight {
    /// How much is in flight, in the unit of the caller.
    pub const fn outstanding(&self) -> u32 {
        self.outstanding
    }
    /// Whether `size` more fit into `window`, and lie `gap` behind the one before.
    pub fn permits(&self, size: u32, window: u32, gap: Option<Duration>, now: Instant) -> Permit {
        // A message that is larger than the window goes alone.
        if self.outstanding > 0 && self.outstanding.saturating_add(size) > window {
            return Permit::Blocked;
        }
        match (self.sent, gap) {
            (Some(sent), Some(gap)) if sent + gap > now => Permit::At(sent + gap),
            _ => Permit::Now,
        }
    }
    /// `size` left at `now` into a window of `window`.
    pub fn on_sent(&mut self, size: u32, window: u32, now: Instant) {
        self.outstanding = self.outstanding.saturating_add(size);
        self.sent = Some(now);
        if self.outstanding >= window {
            self.filled = Some(now);
        }
    }
    /// `size` is no longer in flight.
    pub fn remove(&mut self, size: u32) {
        self.outstanding = self.outstanding.saturating_sub(size);
    }
    /// The same for each of `messages`.
    pub fn remove_all(&mut self, messages: &[Message]) {
        for message in messages {
            self.remove(message.size);
        }
    }
    /// True when the window was full while a message that left at `sent` was in flight: only then does
    /// its acknowledgement say something about a larger window.
    pub fn was_full(&self, sent: Instant) -> bool {
        self.filled.is_some_and(|filled| sent <= filled)
    }
    /// True for what left before the window was last reduced.
    pub fn is_in_recovery(&self, sent: Instant) -> bool {
        self.reduced.is_some_and(|reduced| sent <= reduced)
    }
    /// The window is reduced: what left up to `now` does not reduce it again.
    pub fn enter_recovery(&mut self, now: Instant) {
        self.reduced = Some(now);
    }
    /// What is in flight may reduce the window again.
    pub fn leave_recovery(&mut self) {
        self.reduced = None;
    }
}
