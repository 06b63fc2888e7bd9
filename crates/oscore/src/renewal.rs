//! Security contexts that are derived many times from one Master Secret, each with a random ID Context (RFC 8613
//! appendix B.2): an endpoint that has lost its context gets a new one.
//!
//! ```text
//!        client                                      server
//!   R1   first:  ID Context = R1        request #1
//!                ─────────── kid context = bstr(R1) ───────────►  verifies, keeps nothing
//!                ID Context = R2 || R1  response #1, 4.01         R2 = S2 || HMAC(K, S2)
//!        verifies ◄────────── kid context = bstr(R2) ───────────
//!   R3   third:  ID Context = R2 || R3  request #2
//!                ───────── kid context = bstr(R2 || R3) ────────►  R2 is its own: replaces the context, draws a new K
//!                ◄──────────────── response #2 ─────────────────
//! ```
//! A server that has lost its context begins with response #1; the request's ID Context stands in the place of R1.
//!
//! A server keeps one key K for each client and nothing for a run that is not over (appendix B.2.1), so no number of
//! requests #1 fills it, and only a request #2 that verifies replaces a context. Randomness and storing are the
//! caller's.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use hkdf::Hkdf;
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::class::{self, Direction};
use crate::client::{Pending, open, seal};
use crate::context::CommonIv;
use crate::header::{unwrapped, wrapped};
use crate::nonce::additional_data;
use crate::params::{
    ID_CONTEXT_LEN_MAX, NONCE_LEN, RENEWAL_KEY_LEN, RENEWAL_NONCE_LEN, RENEWAL_TAG_LEN,
    RENEWAL_WRAPPER_LEN,
};
use crate::{Header, Identity, Inputs, Received, Refusal, ResponseError, SecurityContext};

/// Octets for R1, R3, or the random part of R2. Each is drawn at random for its one use.
#[derive(Clone, Copy, Debug)]
pub struct RenewalNonce(pub [u8; RENEWAL_NONCE_LEN]);

/// The key that a server knows its own R2 by, drawn at random.
pub type RenewalKey = Zeroizing<[u8; RENEWAL_KEY_LEN]>;

/// What the contexts with one peer are derived from. Its secrets are wiped when it is dropped and
/// never printed.
pub struct Renewal {
    master_secret: Zeroizing<Vec<u8>>,
    master_salt: Vec<u8>,
    sender_id: Identity,
    recipient_id: Identity,
    window: u8,
    reservation: u32,
    key: RenewalKey,
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal")
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .finish_non_exhaustive()
    }
}

/// A request #2: the context that replaces the one before, and what was asked under it.
#[derive(Debug)]
pub struct Renewed {
    /// The third context. It is stored before anything leaves under it.
    pub context: SecurityContext,
    /// The request as its client made it.
    pub request: StreamMessage,
    /// What its responses need.
    pub received: Received,
}

/// A request that verifies under a context that the server does not have.
enum Verified<'a> {
    /// A request #1: the ID Context that it names, and the nonce that protects it.
    First { id: &'a [u8], received: Received, nonce: [u8; NONCE_LEN] },
    /// A request #2.
    Second(Box<Renewed>),
}

impl Renewal {
    /// Contexts of these inputs, whose ID Context is not used; window and reservation as in
    /// [`SecurityContext::with_bounds`].
    pub fn new(inputs: &Inputs<'_>, window: u8, reservation: u32, key: RenewalKey) -> Self {
        Self {
            master_secret: Zeroizing::new(Vec::from(inputs.master_secret)),
            master_salt: Vec::from(inputs.master_salt),
            sender_id: inputs.sender_id,
            recipient_id: inputs.recipient_id,
            window,
            reservation,
            key,
        }
    }
    /// What the other end calls itself.
    pub const fn recipient_id(&self) -> Identity {
        self.recipient_id
    }
    /// The context of an ID Context, to be [resumed](SecurityContext::resume) from what was stored
    /// with that.
    pub fn context(&self, id_context: &[u8]) -> SecurityContext {
        let inputs = Inputs {
            master_secret: &self.master_secret,
            master_salt: &self.master_salt,
            id_context: Some(id_context),
            sender_id: self.sender_id,
            recipient_id: self.recipient_id,
        };
        SecurityContext::derive(&inputs).with_bounds(self.window, self.reservation)
    }
    /// Step 1, a client: the first context, for requests #1. It is never stored, so its numbers
    /// need no storing either.
    pub fn first(&self, r1: RenewalNonce) -> SecurityContext {
        self.context(&r1.0).in_memory_only().with_id_context_wrapped()
    }
    /// Step 3, a client: opens response #1 to a request, and gives the third context, with which
    /// the request is made again.
    ///
    /// `r3` is drawn only for a response #1 that verifies. The outer error is that of drawing.
    pub fn third<E>(
        &self,
        pending: &Pending,
        outer: &StreamMessage,
        r3: impl FnOnce() -> Result<RenewalNonce, E>,
    ) -> Result<Result<SecurityContext, ResponseError>, E> {
        let r2 = match self.verify_first_response(pending, outer) {
            Ok(r2) => r2,
            Err(error) => return Ok(Err(error)),
        };
        let id = [r2, &r3()?.0].concat();
        Ok(Ok(self.context(&id).with_id_context_wrapped()))
    }
    /// Verifies response #1 to a request whose context another response #1 has replaced already;
    /// the request is made again with the context that there is now.
    pub fn verify_first_response<'a>(
        &self,
        pending: &Pending,
        outer: &'a StreamMessage,
    ) -> Result<&'a [u8], ResponseError> {
        let value = outer.options.get(OptionNumber::OSCORE).ok_or(ResponseError::Unprotected)?;
        let header = Header::parse(value)?;
        let id1 = pending.id_context().ok_or(ResponseError::Forged)?;
        let r2 = header.kid_context.and_then(unwrapped).ok_or(ResponseError::Forged)?;
        // A kid context has to hold R2 and what follows it.
        let room = ID_CONTEXT_LEN_MAX - RENEWAL_WRAPPER_LEN - RENEWAL_NONCE_LEN;
        if r2.is_empty() || r2.len() > room {
            return Err(ResponseError::Forged);
        }
        // RFC 8613 appendix B.2 step 3: the second context has ID2 = R2 || ID1.
        let second = self.context(&[r2, id1].concat());
        let aad = additional_data(self.sender_id, pending.partial_iv());
        let verify =
            |nonce| open(&second.recipient, &nonce, &aad, outer).map_err(|_| ResponseError::Forged);
        let of_request = |iv: &CommonIv| iv.nonce(self.sender_id, pending.partial_iv());
        // RFC 8613 s8.4: a response with a Partial IV has a nonce of its own; one without uses the nonce of request #1,
        // which was made with the Common IV of the first context. Another implementation may recompute that nonce with
        // the second context's Common IV. Californium 3.13 uses the nonce of request #1 even beside a Partial IV.
        let own = header.partial_iv.map(|piv| second.common_iv.nonce(self.recipient_id, piv));
        let opened = verify(own.unwrap_or_else(|| of_request(&second.common_iv)))
            .or_else(|_| verify(of_request(&self.context(id1).common_iv)))?;
        if opened.code == Code::UNAUTHORIZED { Ok(r2) } else { Err(ResponseError::NoResponse) }
    }
    /// Steps 2 and 4, a server: a request that names a context that the server does not have. A request #1 is
    /// [refused](Refusal::Renewing) with response #1; a request #2 brings its context along.
    ///
    /// After a request #2, [`complete`](Self::complete) has to follow once the context is stored. `s2` is drawn once, and
    /// only for a request #1 that verifies: a sender without the key costs no randomness. The outer error is that of
    /// drawing.
    pub fn unprotect_request<E>(
        &self,
        outer: &StreamMessage,
        s2: impl FnOnce() -> Result<RenewalNonce, E>,
    ) -> Result<Result<Renewed, Refusal>, E> {
        match self.verify_request(outer) {
            Ok(Verified::Second(renewed)) => Ok(Ok(*renewed)),
            Ok(Verified::First { id, received, nonce }) => {
                Ok(Err(self.first_response(id, &received, &nonce, outer, s2()?)))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }
    /// A run is over: its request #2 and all earlier R2 are void (RFC 8613 appendix B.2.1).
    pub fn complete(&mut self, key: RenewalKey) {
        self.key = key;
    }

    fn verify_request<'a>(&self, outer: &'a StreamMessage) -> Result<Verified<'a>, Refusal> {
        let value = outer.options.get(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let header = Header::parse(value)?;
        let Some(kid) = header.kid else { return Err(Refusal::Incomplete) };
        if kid != self.recipient_id.as_bytes() {
            return Err(Refusal::UnknownContext);
        }
        let Some(said) = header.kid_context else { return Err(Refusal::UnknownContext) };
        // Requests #1 and #2 wrap the ID Context in a byte string; requests under a context that the server lost do not.
        let mut refusal = Refusal::UnknownContext;
        for id in unwrapped(said).into_iter().chain([said]) {
            let mut context = self.context(id);
            let (request, received) = match context.unprotect_request(outer) {
                Ok(opened) => opened,
                Err(other) => {
                    refusal = other;
                    continue;
                }
            };
            if self.is_own(id) {
                return Ok(Verified::Second(Box::new(Renewed { context, request, received })));
            }
            let nonce = context.common_iv.nonce(self.recipient_id, received.partial_iv());
            return Ok(Verified::First { id, received, nonce });
        }
        Err(refusal)
    }
    /// Step 2: 4.01 under ID2 = R2 || ID1.
    fn first_response(
        &self,
        id1: &[u8],
        received: &Received,
        nonce: &[u8; NONCE_LEN],
        outer: &StreamMessage,
        s2: RenewalNonce,
    ) -> Refusal {
        // RFC 8613 appendix B.2.1: R2 = S2 || HMAC(K_HMAC, S2), truncated to 8 octets.
        let r2 = [&s2.0[..], &self.tag(&s2.0)].concat();
        let second = self.context(&[&r2[..], id1].concat());
        let response =
            StreamMessage { token: outer.token.clone(), ..StreamMessage::new(Code::UNAUTHORIZED) };
        let parts = class::split(&response, Direction::Response).expect("4.01 is a response");
        // RFC 8613 s8.3: "the AEAD nonce from the request" is used, so there is no Partial IV. The key protects nothing
        // else. Californium 3.13 expects this nonce even of a response with a Partial IV.
        let aad = additional_data(self.recipient_id, received.partial_iv());
        let kid_context = wrapped(&r2);
        let header = Header { kid_context: Some(&kid_context), ..Header::default() };
        let sealed = seal(&second.sender, nonce, &aad, &response, parts, &header);
        Refusal::Renewing(Box::new(sealed.expect("it is short")))
    }
    /// True if an ID Context begins with an R2 of the run that is not over, and has an R3 behind it.
    fn is_own(&self, id: &[u8]) -> bool {
        let Some((s2, rest)) = id.split_at_checked(RENEWAL_NONCE_LEN) else { return false };
        let Some((tag, r3)) = rest.split_at_checked(RENEWAL_TAG_LEN) else { return false };
        // In constant time, so that the time does not tell how much of a guess is right.
        let differs = self.tag(s2).iter().zip(tag).fold(0, |bits, (a, b)| bits | (a ^ b));
        differs == 0 && !r3.is_empty()
    }
    /// HMAC-SHA-256, which is what HKDF extracts with (RFC 5869 s2.2), truncated.
    fn tag(&self, s2: &[u8]) -> [u8; RENEWAL_TAG_LEN] {
        let (hash, _) = Hkdf::<Sha256>::extract(Some(&self.key[..]), s2);
        let mut tag = [0; RENEWAL_TAG_LEN];
        tag.copy_from_slice(&hash[..RENEWAL_TAG_LEN]);
        tag
    }
}
