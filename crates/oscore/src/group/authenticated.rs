//! What a message of a group authenticates, and the keystream over its signature (RFC 10021 s3.4 and s4.2).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::curve::SignatureAlgorithm;
use crate::context::CommonIv;
use crate::nonce::written;
use crate::params::{
    AEAD_ALGORITHM, KEY_LEN, PAIRWISE_AGREEMENT, PARTIAL_IV_LEN_MAX, SIGNATURE_LEN, VERSION,
};
use crate::{Identity, PartialIv};

/// How a message is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For all members: encrypted with a key that they all know, and signed.
    Group,
    /// For one member, with a key of two.
    Pairwise,
}

/// What all members share.
pub(super) struct Common {
    pub(super) group_id: Box<[u8]>,
    pub(super) iv: CommonIv,
    pub(super) signature_key: Zeroizing<[u8; KEY_LEN]>,
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) manager: Option<Box<[u8]>>,
    pub(super) responses: Mode,
    pub(super) with_sign_protected: bool,
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common")
            .field("group_id", &self.group_id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// What names a request in its responses: of a long exchange it stays what the request had (RFC 10021 s7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestName {
    pub(super) kid: Identity,
    pub(super) partial_iv: PartialIv,
}

/// The octets of a Partial IV, as they are sent.
fn octets(piv: &[u8; PARTIAL_IV_LEN_MAX], len: usize) -> &[u8] {
    &piv[PARTIAL_IV_LEN_MAX - len..]
}

impl Common {
    /// The external_aad: `[version, algorithms, request_kid, request_piv, options, request_kid_context, OSCORE_option,
    /// sender_cred, gm_cred]`.
    pub(super) fn external(
        &self,
        request: RequestName,
        option: &[u8],
        sender_credential: &[u8],
    ) -> Vec<u8> {
        let piv = request.partial_iv;
        written(|out| {
            out.array(9)?.u8(VERSION)?;
            out.array(4)?.i32(AEAD_ALGORITHM)?.i32(AEAD_ALGORITHM)?;
            out.i32(self.algorithm.number())?.i32(PAIRWISE_AGREEMENT)?;
            out.bytes(request.kid.as_bytes())?.bytes(octets(&piv.padded(), piv.len()))?;
            // No option is of Class I.
            out.bytes(&[])?.bytes(&self.group_id)?.bytes(option)?.bytes(sender_credential)?;
            match self.manager.as_deref() {
                Some(credential) => out.bytes(credential)?,
                None => out.null()?,
            };
            Ok(())
        })
    }
    /// What is signed: `["CounterSignature0", h'', external_aad, ciphertext]` (RFC 9338 s3.3).
    ///
    /// RFC 9338 s3.3 leaves `sign_protected` out of an abbreviated countersignature. aiocoap 0.4.17 and the research version of
    /// Californium sign an empty one behind the first `h''`; `with_sign_protected` does as they do.
    pub(super) fn signed(&self, external: &[u8], ciphertext: &[u8]) -> Vec<u8> {
        let with = self.with_sign_protected;
        written(|out| {
            out.array(if with { 5 } else { 4 })?.str("CounterSignature0")?.bytes(&[])?;
            if with {
                out.bytes(&[])?;
            }
            out.bytes(external)?.bytes(ciphertext)?;
            Ok(())
        })
    }
    /// Encrypts a signature, or decrypts it: XOR with a keystream that the Partial IV, its maker and the kind of message give.
    pub(super) fn cover(
        &self,
        signature: &mut [u8; SIGNATURE_LEN],
        (id, piv): (Identity, PartialIv),
        is_request: bool,
    ) {
        let info = written(|out| {
            out.array(4)?.bytes(id.as_bytes())?.bytes(&self.group_id)?;
            out.bool(is_request)?.u64(SIGNATURE_LEN as u64)?;
            Ok(())
        });
        let padded = piv.padded();
        let extracted = Hkdf::<Sha256>::new(Some(octets(&padded, piv.len())), &*self.signature_key);
        let mut keystream = [0; SIGNATURE_LEN];
        extracted.expand(&info, &mut keystream).expect("HKDF gives up to 8160 octets");
        for (octet, mask) in signature.iter_mut().zip(keystream) {
            *octet ^= mask;
        }
    }
}

/// The additional data of a ciphertext: `["Encrypt0", h'', external_aad]` (RFC 9052 s5.3).
pub(super) fn encrypted(external: &[u8]) -> Vec<u8> {
    written(|out| {
        out.array(3)?.str("Encrypt0")?.bytes(&[])?.bytes(external)?;
        Ok(())
    })
}
