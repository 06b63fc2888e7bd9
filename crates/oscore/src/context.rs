//! A security context: what two endpoints share, what one of them sends with, and what it expects
//! (RFC 8613 s3).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::fmt;

use crate::header::{unwrapped, wrapped};
use crate::nonce::{Cipher, Deriver};
use crate::params::{NONCE_LEN, REPLAY_WINDOW, RESERVATION};
use crate::replay::{Replay, Window};
use crate::sequence::{Reservation, Sequence};
use crate::state::StoredWindow;
use crate::{Challenge, Identity, PartialIv, State, nonce};

/// What a security context is derived from (RFC 8613 s3.2).
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The secret that both ends share.
    pub master_secret: &'a [u8],
    /// The salt, empty for none.
    pub master_salt: &'a [u8],
    /// Tells contexts with the same identities apart; at most 255 octets.
    pub id_context: Option<&'a [u8]>,
    /// What this end calls itself.
    pub sender_id: Identity,
    /// What the other end calls itself; never the same.
    pub recipient_id: Identity,
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs")
            .field("id_context", &self.id_context)
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .finish_non_exhaustive()
    }
}

/// Keys and counters for one peer. Its keys are wiped when it is dropped and never printed.
#[derive(Debug)]
pub struct SecurityContext {
    pub(crate) common_iv: CommonIv,
    pub(crate) id_context: Option<Box<[u8]>>,
    pub(crate) sender_id: Identity,
    pub(crate) sender: Cipher,
    pub(crate) sequence: Sequence,
    pub(crate) recipient_id: Identity,
    pub(crate) recipient: Cipher,
    pub(crate) replay: Replay,
    /// How requests say the ID Context.
    pub(crate) kid_context: KidContext,
    window: u8,
    reservation: u32,
}

/// How requests say the ID Context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KidContext {
    Omitted,
    Plain,
    /// As a CBOR byte string, until the other end has shown that it knows the context (RFC 8613
    /// appendix B.2).
    Wrapped,
}

/// The seed of nonces; not to be printed (RFC 8613 s12.6).
pub(crate) struct CommonIv([u8; NONCE_LEN]);

impl fmt::Debug for CommonIv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommonIv(secret)")
    }
}

impl CommonIv {
    pub(crate) const fn new(octets: [u8; NONCE_LEN]) -> Self {
        Self(octets)
    }
    pub(crate) fn nonce(&self, id: Identity, piv: PartialIv) -> [u8; NONCE_LEN] {
        nonce::nonce(&self.0, id, piv)
    }
}

impl SecurityContext {
    /// A context that has never been used: the sequence starts at 0, and nothing has come. One that
    /// has been used is [resumed](Self::resume), or nonces come twice.
    pub fn derive(inputs: &Inputs<'_>) -> Self {
        let deriver = Deriver::new(inputs.master_secret, inputs.master_salt, inputs.id_context);
        Self {
            common_iv: CommonIv::new(deriver.common_iv()),
            id_context: inputs.id_context.map(Box::from),
            sender_id: inputs.sender_id,
            sender: Cipher::new(&deriver.key(inputs.sender_id)),
            sequence: Sequence::resume(0, RESERVATION),
            recipient_id: inputs.recipient_id,
            recipient: Cipher::new(&deriver.key(inputs.recipient_id)),
            replay: Replay::Known(Window::new(REPLAY_WINDOW)),
            kid_context: match inputs.id_context {
                Some(_) => KidContext::Plain,
                None => KidContext::Omitted,
            },
            window: REPLAY_WINDOW,
            reservation: RESERVATION,
        }
    }
    /// The same with a replay window of this size (1 to 63), and so many sequence numbers reserved
    /// at once (from 1).
    #[must_use]
    pub fn with_bounds(mut self, window: u8, reservation: u32) -> Self {
        self.window = window.clamp(1, crate::params::REPLAY_WINDOW_MAX);
        self.reservation = reservation.max(1);
        self.sequence = self.sequence.with_step(self.reservation);
        self.replay = self.replay.with_size(self.window);
        self
    }
    /// Whether requests say the ID Context; they do unless told otherwise (RFC 8613 s5.1).
    #[must_use]
    pub const fn with_id_context_said(mut self, says: bool) -> Self {
        let says = says && self.id_context.is_some();
        self.kid_context = if says { KidContext::Plain } else { KidContext::Omitted };
        self
    }
    /// The same, whose requests wrap the ID Context until the other end answers one.
    pub(crate) const fn with_id_context_wrapped(mut self) -> Self {
        self.kid_context = KidContext::Wrapped;
        self
    }
    /// A context that no later start resumes, so its numbers need not be stored.
    pub(crate) fn in_memory_only(mut self) -> Self {
        self.sequence = Sequence::unbounded();
        self
    }
    /// Goes on after a restart with what was stored.
    ///
    /// Without a window in `state` the first request that verifies is challenged with an Echo
    /// option made of `challenge`, which the caller draws at random (RFC 8613 appendix B.1.2).
    pub fn resume(&mut self, state: &State, challenge: Challenge) {
        self.sequence = Sequence::resume(state.sequence, self.reservation);
        self.replay = match state.window {
            Some(StoredWindow { end, seen, trusted }) => {
                let window = Window::resume(end, seen, self.window);
                if trusted { Replay::Trusted(window) } else { Replay::Known(window) }
            }
            None => Replay::Lost { challenge, challenged: Window::new(self.window) },
        };
    }
    /// The sequence numbers to store, as the `sequence` of a [`State`] without a window, and to
    /// [confirm](Self::confirm) before a message can leave that needs one; `None` while there is
    /// one, and when all are used.
    pub fn reservation_needed(&self) -> Option<Reservation> {
        self.sequence.needed()
    }
    /// The numbers are stored: no crash from now on makes a later start use them.
    pub fn confirm(&mut self, reservation: Reservation) {
        self.sequence.confirm(reservation);
    }
    /// The end of the numbers that are confirmed as stored.
    pub const fn reserved(&self) -> u64 {
        self.sequence.end()
    }
    /// True for contexts with the same Sender Key, as those of several recipients of one file: no
    /// number may be used in both (RFC 8613 s7.2).
    pub fn shares_sender_key(&self, other: &Self) -> bool {
        // Secret and salt are not kept; the Common IV is derived from them.
        self.sender_id == other.sender_id
            && self.id_context == other.id_context
            && self.common_iv.0 == other.common_iv.0
    }
    /// What to store at an orderly end: nothing is lost then.
    pub fn state(&self) -> State {
        let stored = |window: Window, trusted| {
            let Window { end, seen, .. } = window;
            Some(StoredWindow { end, seen, trusted })
        };
        let window = match self.replay {
            Replay::Known(window) => stored(window, false),
            Replay::Trusted(window) => stored(window, true),
            Replay::Lost { .. } => None,
        };
        State { id_context: None, sequence: self.sequence.next(), window }
    }
    /// What this end calls itself.
    pub const fn sender_id(&self) -> Identity {
        self.sender_id
    }
    /// What the other end calls itself.
    pub const fn recipient_id(&self) -> Identity {
        self.recipient_id
    }
    /// What stands for the ID Context in the header of a request.
    pub(crate) fn said_kid_context(&self) -> Option<Cow<'_, [u8]>> {
        let id = self.id_context.as_deref()?;
        match self.kid_context {
            KidContext::Omitted => None,
            KidContext::Plain => Some(Cow::Borrowed(id)),
            KidContext::Wrapped => Some(Cow::Owned(wrapped(id))),
        }
    }
    /// Whether a message with this kid, and this kid context if it says one, is of this context.
    pub(crate) fn answers_to(&self, kid: &[u8], kid_context: Option<&[u8]>) -> bool {
        let context = kid_context.is_none_or(|said| {
            let id = self.id_context.as_deref();
            id == Some(said) || id.is_some() && id == unwrapped(said)
        });
        kid == self.recipient_id.as_bytes() && context
    }
    /// True if all its sequence numbers are used (RFC 8613 s7.2.1).
    pub const fn is_exhausted(&self) -> bool {
        self.sequence.is_exhausted()
    }
    /// The ID Context, if there is one.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }
}
