//! What a member of a group holds: the Common, Sender and Recipient Contexts (RFC 10021 s2).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::stream::StreamMessage;
use zeroize::Zeroizing;

use super::authenticated::{Common, Mode, RequestName, encrypted};
use super::credential::{Credential, CredentialError};
use super::curve::{PrivateKey, SignatureAlgorithm};
use super::state::{GroupState, MemberWindow};
use crate::class::Parts;
use crate::client::{Unopened, assembled, decrypt, encrypt};
use crate::context::CommonIv;
use crate::nonce::{Cipher, Deriver};
use crate::params::{
    GROUP_MEMBERS_MAX, ID_CONTEXT_LEN_MAX, KEY_LEN, PRIVATE_KEY_LEN, REPLAY_WINDOW,
    REPLAY_WINDOW_MAX, RESERVATION, SIGNATURE_LEN, TAG_LEN,
};
use crate::replay::{Replay, Window};
use crate::sequence::{Reservation, Sequence};
use crate::{Challenge, Header, Identity, PartialIv, ProtectError};

/// What the contexts of a member are derived from (RFC 10021 s2.3).
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The secret of all members.
    pub master_secret: &'a [u8],
    /// The salt, empty for none.
    pub master_salt: &'a [u8],
    /// The Gid, which is the ID Context; at most 255 octets.
    pub group_id: &'a [u8],
    /// How members sign.
    pub algorithm: SignatureAlgorithm,
    /// The credential of the Group Manager; `None` encodes as null.
    pub manager: Option<&'a [u8]>,
    /// What this member calls itself.
    pub sender_id: Identity,
    /// The private key of this member.
    pub private_key: &'a [u8; PRIVATE_KEY_LEN],
    /// The credential of this member, with the public key of its private key.
    pub credential: &'a [u8],
    /// The mode of responses to requests in group mode.
    pub responses: Mode,
    /// Whether signatures cover an empty `sign_protected`, as aiocoap 0.4.17 has it and RFC 9338 s3.3 has not.
    pub with_sign_protected: bool,
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs")
            .field("group_id", &self.group_id)
            .field("sender_id", &self.sender_id)
            .finish_non_exhaustive()
    }
}

/// Inputs that give no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A Gid that a header cannot say.
    #[error("a group ID has at most {ID_CONTEXT_LEN_MAX} octets")]
    GroupId,
    /// Octets that are no private key of the algorithm.
    #[error("the private key does not belong to the signature algorithm")]
    PrivateKey,
    /// A credential that cannot be read.
    #[error("the credential cannot be used: {0}")]
    Credential(#[from] CredentialError),
    /// The credential of this member has another key.
    #[error("the credential does not belong to the private key")]
    OtherKey,
    /// An identity that another member has, or this one.
    #[error("another member has this identity")]
    Identity,
    /// One member too many.
    #[error("a group has at most {GROUP_MEMBERS_MAX} other members here")]
    Members,
    /// A public key that gives no secret with the private key.
    #[error("the keys of the two members give no shared secret")]
    Secret,
}

/// What this member sends with.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) id: Identity,
    /// The key of its messages in group mode.
    pub(super) cipher: Cipher,
    pub(super) private_key: PrivateKey,
    pub(super) credential: Box<[u8]>,
    pub(super) sequence: Sequence,
}

/// What this member knows of another one.
#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) id: Identity,
    pub(super) credential: Credential,
    /// The key of its messages in group mode.
    cipher: Cipher,
    /// The keys of messages in pairwise mode, from it and to it.
    pairwise_from: Cipher,
    pairwise_to: Cipher,
    pub(super) replay: Replay,
}

/// A member of a group. Its keys are wiped when it is dropped, and never printed.
#[derive(Debug)]
pub struct Group {
    pub(super) common: Common,
    pub(super) sender: Sender,
    pub(super) recipients: BTreeMap<Identity, Recipient>,
    window: u8,
    reservation: u32,
}

impl Group {
    /// A member that has never sent anything, in a group with these others. One that has been used is
    /// [resumed](Self::resume), or nonces come twice.
    pub fn derive<'a>(
        inputs: &Inputs<'_>,
        members: impl IntoIterator<Item = (Identity, &'a [u8])>,
    ) -> Result<Self, GroupError> {
        if inputs.group_id.len() > ID_CONTEXT_LEN_MAX {
            return Err(GroupError::GroupId);
        }
        let private_key =
            PrivateKey::read(inputs.algorithm, inputs.private_key).ok_or(GroupError::PrivateKey)?;
        let own = Credential::read(inputs.credential, inputs.algorithm)?;
        if own.key != private_key.public() {
            return Err(GroupError::OtherKey);
        }
        let mut group = Self::alone(inputs, private_key, own.octets);
        let deriver = Deriver::new(inputs.master_secret, inputs.master_salt, Some(inputs.group_id));
        for (id, credential) in members {
            group.admit(&deriver, id, Credential::read(credential, inputs.algorithm)?)?;
        }
        Ok(group)
    }
    /// Adds another member of the same group.
    pub(super) fn add(
        &mut self,
        inputs: &Inputs<'_>,
        id: Identity,
        credential: &[u8],
    ) -> Result<(), GroupError> {
        let deriver = Deriver::new(inputs.master_secret, inputs.master_salt, Some(inputs.group_id));
        self.admit(&deriver, id, Credential::read(credential, inputs.algorithm)?)
    }
    /// A member without others.
    pub(super) fn alone(
        inputs: &Inputs<'_>,
        private_key: PrivateKey,
        credential: Box<[u8]>,
    ) -> Self {
        let deriver = Deriver::new(inputs.master_secret, inputs.master_salt, Some(inputs.group_id));
        let common = Common {
            group_id: inputs.group_id.into(),
            iv: CommonIv::new(deriver.common_iv()),
            signature_key: deriver.signature_encryption_key(),
            algorithm: inputs.algorithm,
            manager: inputs.manager.map(Box::from),
            responses: inputs.responses,
            with_sign_protected: inputs.with_sign_protected,
        };
        let sender = Sender {
            id: inputs.sender_id,
            cipher: Cipher::new(&deriver.key(inputs.sender_id)),
            private_key,
            credential,
            sequence: Sequence::resume(0, RESERVATION),
        };
        let (window, reservation) = (REPLAY_WINDOW, RESERVATION);
        Self { common, sender, recipients: BTreeMap::new(), window, reservation }
    }
    /// Adds another member (RFC 10021 s2.5.1).
    pub(super) fn admit(
        &mut self,
        deriver: &Deriver<'_>,
        id: Identity,
        credential: Credential,
    ) -> Result<(), GroupError> {
        // RFC 10021 s2.2: the Sender ID SHALL be unique for each endpoint in a group.
        if id == self.sender.id || self.recipients.contains_key(&id) {
            return Err(GroupError::Identity);
        }
        if self.recipients.len() == GROUP_MEMBERS_MAX {
            return Err(GroupError::Members);
        }
        let secret =
            self.sender.private_key.shared_secret(&credential.key).ok_or(GroupError::Secret)?;
        let (own, others) = (&self.sender.credential, &credential.octets);
        let pairwise = |salt: &[u8; KEY_LEN], id, [first, second]: [&[u8]; 2]| {
            let material = Zeroizing::new([first, second, &*secret].concat());
            let deriver = Deriver::new(&material, salt, Some(&self.common.group_id));
            Cipher::new(&deriver.key(id))
        };
        let key = deriver.key(id);
        let recipient = Recipient {
            id,
            cipher: Cipher::new(&key),
            pairwise_from: pairwise(&key, id, [others, own]),
            pairwise_to: pairwise(&deriver.key(self.sender.id), self.sender.id, [own, others]),
            credential,
            replay: Replay::Known(Window::new(self.window)),
        };
        self.recipients.insert(id, recipient);
        Ok(())
    }
    /// The same with replay windows of this size (1 to 63), and so many sequence numbers reserved at once (from 1).
    #[must_use]
    pub fn with_bounds(mut self, window: u8, reservation: u32) -> Self {
        self.window = window.clamp(1, REPLAY_WINDOW_MAX);
        self.reservation = reservation.max(1);
        self.sender.sequence = self.sender.sequence.with_step(self.reservation);
        for recipient in self.recipients.values_mut() {
            recipient.replay = recipient.replay.with_size(self.window);
        }
        self
    }
    /// Goes on after a restart with what was stored.
    ///
    /// A member whose window is not in `state` is challenged with an Echo option of `challenge`, which the caller draws at
    /// random for each (RFC 10021 s9): it may be one that has been removed and added again (s2.6.1.2).
    pub fn resume(&mut self, state: &GroupState, mut challenge: impl FnMut() -> Challenge) {
        self.sender.sequence = Sequence::resume(state.sequence, self.reservation);
        for recipient in self.recipients.values_mut() {
            let stored = state.windows.iter().find(|one| one.member == recipient.id);
            recipient.replay = match stored {
                Some(MemberWindow { end, seen, .. }) => {
                    Replay::Known(Window::resume(*end, *seen, self.window))
                }
                None => {
                    Replay::Lost { challenge: challenge(), challenged: Window::new(self.window) }
                }
            };
        }
    }
    /// The sequence numbers to store, as the `sequence` of a [`GroupState`] without windows, and to
    /// [confirm](Self::confirm) before a message can leave that needs one; `None` while there is one, and when all are used.
    pub fn reservation_needed(&self) -> Option<Reservation> {
        self.sender.sequence.needed()
    }
    /// The numbers are stored: no crash from now on makes a later start use them.
    pub fn confirm(&mut self, reservation: Reservation) {
        self.sender.sequence.confirm(reservation);
    }
    /// The end of the numbers that are confirmed as stored.
    pub const fn reserved(&self) -> u64 {
        self.sender.sequence.end()
    }
    /// What to store at an orderly end: nothing is lost then.
    pub fn state(&self) -> GroupState {
        let stored = |recipient: &Recipient| match recipient.replay {
            Replay::Known(Window { end, seen, .. }) => {
                Some(MemberWindow { member: recipient.id, end, seen })
            }
            _ => None,
        };
        let windows = self.recipients.values().filter_map(stored).collect();
        GroupState { sequence: self.sender.sequence.next(), windows }
    }
    /// What this member calls itself.
    pub const fn sender_id(&self) -> Identity {
        self.sender.id
    }
    /// The Gid.
    pub fn group_id(&self) -> &[u8] {
        &self.common.group_id
    }
    /// All other members.
    pub fn members(&self) -> impl Iterator<Item = Identity> {
        self.recipients.keys().copied()
    }
    /// True if all its sequence numbers are used (RFC 10021 s2.6.2).
    pub const fn is_exhausted(&self) -> bool {
        self.sender.sequence.is_exhausted()
    }
    /// Whether a request is for this group: it says the Gid (RFC 10021 s3.2), in either mode.
    pub fn is_meant_by(&self, outer: &StreamMessage) -> bool {
        let value = outer.options.get(OptionNumber::OSCORE);
        let header = value.and_then(|value| Header::parse(value).ok());
        header.and_then(|header| header.kid_context) == Some(self.group_id())
    }
}

/// What a message is sealed and opened with, beside keys.
pub(super) struct Envelope<'a> {
    /// The value of its OSCORE option.
    pub(super) option: &'a [u8],
    pub(super) mode: Mode,
    /// The request that it is, or answers.
    pub(super) request: RequestName,
    /// Whose Partial IV its nonce is of.
    pub(super) nonce: (Identity, PartialIv),
    pub(super) is_request: bool,
}

/// What a signature belongs to: the sender of a message, its nonce, and its tag.
///
/// The tag does not cover the signature. So a stranger without any key can send a message again with other signatures, but
/// cannot change this name of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signed {
    from: Identity,
    nonce: (Identity, PartialIv),
    tag: [u8; TAG_LEN],
}

impl Signed {
    pub(crate) const fn new(
        from: Identity,
        nonce: (Identity, PartialIv),
        tag: [u8; TAG_LEN],
    ) -> Self {
        Self { from, nonce, tag }
    }
}

/// Whether a signature may be checked. It is asked last: the message has the right tag, and is no replay.
pub type MayCheck<'a> = &'a mut dyn FnMut(Signed) -> bool;

impl Group {
    /// Encrypts a message, and signs it in group mode. `to` is the member that reads it in pairwise mode.
    pub(super) fn seal(
        &self,
        message: &StreamMessage,
        parts: Parts,
        to: Option<&Recipient>,
        envelope: &Envelope<'_>,
    ) -> Result<StreamMessage, ProtectError> {
        let Self { common, sender, .. } = self;
        let external = common.external(envelope.request, envelope.option, &sender.credential);
        let cipher = match (envelope.mode, to) {
            (Mode::Pairwise, Some(recipient)) => &recipient.pairwise_to,
            _ => &sender.cipher,
        };
        let (id, piv) = envelope.nonce;
        let nonce = common.iv.nonce(id, piv);
        let aad = encrypted(&external);
        let Parts { inner, outer, outer_code } = parts;
        let mut payload = encrypt(cipher, &nonce, &aad, message, inner)?;
        if envelope.mode == Mode::Group {
            let mut signature = sender.private_key.sign(&common.signed(&external, &payload));
            common.cover(&mut signature, envelope.nonce, envelope.is_request);
            payload.extend_from_slice(&signature);
        }
        Ok(assembled(message, outer, outer_code, envelope.option, payload))
    }
    /// Opens a message of another member.
    ///
    /// The tag is checked before the signature. RFC 10021 s7.2 says that the signature SHOULD come first, and that plaintext
    /// MUST NOT be accessible before it is verified. The order here costs a stranger's message one AES-CCM, where a signature
    /// costs some fifty times as much; the plaintext leaves this function with a valid signature only.
    /// The tag does not cover the signature: who repeats a message with another signature does cause a check, if
    /// `may_check` allows it.
    pub(super) fn open(
        &self,
        from: &Recipient,
        outer: &StreamMessage,
        envelope: &Envelope<'_>,
        may_check: MayCheck<'_>,
    ) -> Result<StreamMessage, Unopened> {
        let common = &self.common;
        let external = common.external(envelope.request, envelope.option, &from.credential.octets);
        let (id, piv) = envelope.nonce;
        let nonce = common.iv.nonce(id, piv);
        let aad = encrypted(&external);
        match envelope.mode {
            Mode::Pairwise => decrypt(&from.pairwise_from, &nonce, &aad, outer, &outer.payload),
            Mode::Group => {
                let Some((ciphertext, signature)) =
                    outer.payload.split_last_chunk::<SIGNATURE_LEN>()
                else {
                    return Err(Unopened::Forged);
                };
                let inside = decrypt(&from.cipher, &nonce, &aad, outer, ciphertext);
                if matches!(inside, Err(Unopened::Forged)) {
                    return inside;
                }
                let Some((_, tag)) = ciphertext.split_last_chunk::<TAG_LEN>() else {
                    return Err(Unopened::Forged);
                };
                if !may_check(Signed::new(from.id, envelope.nonce, *tag)) {
                    return Err(Unopened::BadSignature);
                }
                let mut signature = *signature;
                common.cover(&mut signature, envelope.nonce, envelope.is_request);
                let signed = common.signed(&external, ciphertext);
                if from.credential.key.verifies(&signed, &signature) {
                    inside
                } else {
                    Err(Unopened::BadSignature)
                }
            }
        }
    }
}

/// The value of an option.
pub(super) fn value(header: &Header<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    header.emit(&mut value);
    value
}
