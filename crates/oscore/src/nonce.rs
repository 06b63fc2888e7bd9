//! Keys, nonces, additional data and the cipher (RFC 8613 s3.2.1, s5.2 and s5.4).

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use aes::Aes128;
use ccm::aead::inout::InOutBuf;
use ccm::consts::{U8, U13};
use ccm::{AeadInOut, Ccm, KeyInit};
use hkdf::Hkdf;
use minicbor::Encoder;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::params::{
    AEAD_ALGORITHM, IDENTITY_LEN_MAX, KEY_LEN, NONCE_LEN, PARTIAL_IV_LEN_MAX, TAG_LEN, VERSION,
};
use crate::{Identity, PartialIv};

/// The extracted secret that keys are expanded from.
pub(crate) struct Deriver<'a> {
    extracted: Hkdf<Sha256>,
    id_context: Option<&'a [u8]>,
}

impl<'a> Deriver<'a> {
    pub(crate) fn new(secret: &[u8], salt: &[u8], id_context: Option<&'a [u8]>) -> Self {
        Self { extracted: Hkdf::new(Some(salt), secret), id_context }
    }
    /// The key of the endpoint with this identity.
    pub(crate) fn key(&self, id: Identity) -> Zeroizing<[u8; KEY_LEN]> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        self.expand(id.as_bytes(), "Key", &mut *key);
        key
    }
    /// The Common IV.
    pub(crate) fn common_iv(&self) -> [u8; NONCE_LEN] {
        let mut iv = [0; NONCE_LEN];
        self.expand(&[], "IV", &mut iv);
        iv
    }
    /// The key that signatures of a group are encrypted with (RFC 10021 s2.1.9).
    pub(crate) fn signature_encryption_key(&self) -> Zeroizing<[u8; KEY_LEN]> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        self.expand(&[], "SEKey", &mut *key);
        key
    }
    fn expand(&self, id: &[u8], kind: &str, out: &mut [u8]) {
        let info = info(id, self.id_context, kind, out.len());
        self.extracted.expand(&info, out).expect("HKDF gives up to 8160 octets");
    }
}

/// `info = [id, id_context, alg_aead, type, L]` in CBOR (RFC 8613 s3.2.1).
pub(crate) fn info(id: &[u8], id_context: Option<&[u8]>, kind: &str, len: usize) -> Vec<u8> {
    written(|out| {
        out.array(5)?.bytes(id)?;
        match id_context {
            Some(context) => out.bytes(context)?,
            None => out.null()?,
        };
        out.i32(AEAD_ALGORITHM)?.str(kind)?.u64(len as u64)?;
        Ok(())
    })
}

/// The data that is authenticated beside the ciphertext: `["Encrypt0", h'', external_aad]` around
/// `[version, [algorithm], request_kid, request_piv, options]` (RFC 8613 s5.4). There are no
/// Class I options, so `options` is empty.
pub(crate) fn additional_data(request_kid: Identity, request_piv: PartialIv) -> Vec<u8> {
    let piv = &request_piv.padded()[PARTIAL_IV_LEN_MAX - request_piv.len()..];
    let external = written(|out| {
        out.array(5)?.u8(VERSION)?.array(1)?.i32(AEAD_ALGORITHM)?;
        out.bytes(request_kid.as_bytes())?.bytes(piv)?.bytes(&[])?;
        Ok(())
    });
    written(|out| {
        out.array(3)?.str("Encrypt0")?.bytes(&[])?.bytes(&external)?;
        Ok(())
    })
}

/// Octets that hold the additional data of one message without growing.
const ADDITIONAL_DATA_LEN_MAX: usize = 40;

/// The octets of what `write` writes in CBOR.
pub(crate) fn written(
    write: impl FnOnce(&mut Encoder<&mut Vec<u8>>) -> Result<(), minicbor::encode::Error<Infallible>>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(ADDITIONAL_DATA_LEN_MAX);
    write(&mut Encoder::new(&mut out)).expect("a Vec takes everything");
    out
}

/// The nonce of a Partial IV and the endpoint that made it (RFC 8613 s5.2).
///
/// ```text
///   | S (1) | identity, padded left (7) | Partial IV, padded left (5) |  XOR Common IV
/// ```
pub(crate) fn nonce(common_iv: &[u8; NONCE_LEN], id: Identity, piv: PartialIv) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let octets = id.as_bytes();
    nonce[0] = octets.len() as u8;
    nonce[1 + IDENTITY_LEN_MAX - octets.len()..=IDENTITY_LEN_MAX].copy_from_slice(octets);
    nonce[1 + IDENTITY_LEN_MAX..].copy_from_slice(&piv.padded());
    for (octet, mask) in nonce.iter_mut().zip(common_iv) {
        *octet ^= mask;
    }
    nonce
}

/// AES-CCM-16-64-128 with one key. The key schedule is wiped when it is dropped.
pub(crate) struct Cipher(Ccm<Aes128, U8, U13>);

/// Octets that no holder of the key has sealed like this, or more than the algorithm takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

impl Cipher {
    pub(crate) fn new(key: &[u8; KEY_LEN]) -> Self {
        Self(Ccm::new(key.into()))
    }
    /// Encrypts the octets from `start` on and appends the tag.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), Failed> {
        let plain = InOutBuf::from(&mut buffer[start..]);
        let sealed = self.0.encrypt_inout_detached(nonce.into(), aad, plain);
        let tag = sealed.map_err(|_| Failed)?;
        buffer.extend_from_slice(&tag);
        Ok(())
    }
    /// Checks the tag, cuts it off, and decrypts the octets from `start` on.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), Failed> {
        let Some((_, tag)) = buffer[start..].split_last_chunk::<TAG_LEN>() else {
            return Err(Failed);
        };
        let tag = *tag;
        buffer.truncate(buffer.len() - TAG_LEN);
        let sealed = InOutBuf::from(&mut buffer[start..]);
        let opened = self.0.decrypt_inout_detached(nonce.into(), aad, sealed, (&tag).into());
        opened.map_err(|_| Failed)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(secret)")
    }
}
