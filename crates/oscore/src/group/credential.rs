//! Authentication credentials of members: CWT Claims Sets that hold a public key (RFC 10021 s2.4, RFC 8392, RFC 8747 s3.2).
//!
//! ```text
//!   { ..., 8 (cnf): { 1 (COSE_Key): { 1 (kty), 3 (alg), -1 (crv), -2 (x), -3 (y) } } }
//! ```
//! What a message authenticates is the credential octet by octet (s2.4), so it is kept as it came.

use alloc::boxed::Box;
use alloc::vec::Vec;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

use super::curve::{PrivateKey, PublicKey, SignatureAlgorithm};
use crate::params::{CREDENTIAL_LEN_MAX, PRIVATE_KEY_LEN};

/// A member's public key, and the octets that say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) octets: Box<[u8]>,
    pub(crate) key: PublicKey,
}

/// Octets that are no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// More than [`CREDENTIAL_LEN_MAX`].
    #[error("it has more than {CREDENTIAL_LEN_MAX} octets")]
    TooLong,
    /// No CWT Claims Set with a COSE_Key.
    #[error("it is not a CWT Claims Set with a COSE_Key in its claim cnf")]
    Form,
    /// A key of another kind.
    #[error("its key does not belong to the signature algorithm of the group")]
    Algorithm,
    /// A key that is no point of its curve, or of small order.
    #[error("its key is not a point of its curve, or gives no shared secret")]
    Point,
}

/// RFC 8747 s3.1 and s3.2.
const CNF: i32 = 8;
const COSE_KEY: i32 = 1;
/// RFC 9052 s7.1, RFC 9053 s7.1 and s7.2.
const KTY: i32 = 1;
const ALG: i32 = 3;
const CRV: i32 = -1;
const X: i32 = -2;
const Y: i32 = -3;
const KTY_OKP: i32 = 1;
const KTY_EC2: i32 = 2;
const CRV_P256: i32 = 1;
const CRV_ED25519: i32 = 6;

impl Credential {
    /// Reads the credential of a member of a group that signs with `algorithm`.
    pub(crate) fn read(
        octets: &[u8],
        algorithm: SignatureAlgorithm,
    ) -> Result<Self, CredentialError> {
        if octets.len() > CREDENTIAL_LEN_MAX {
            return Err(CredentialError::TooLong);
        }
        let mut decoder = Decoder::new(octets);
        let mut key = None;
        entries(&mut decoder, |decoder, label| {
            if label != Some(CNF) {
                return decoder.skip();
            }
            entries(decoder, |decoder, label| match label {
                Some(COSE_KEY) => {
                    key = Some(CoseKey::read(decoder)?);
                    Ok(())
                }
                _ => decoder.skip(),
            })
        })
        .map_err(|_| CredentialError::Form)?;
        if decoder.position() != octets.len() {
            return Err(CredentialError::Form);
        }
        let key = key.ok_or(CredentialError::Form)?.public(algorithm)?;
        Ok(Self { octets: octets.into(), key })
    }
}

/// The credential of a new member: a CWT Claims Set with nothing but the public key of `private_key`; `None` if that is no key.
pub fn credential_of(
    algorithm: SignatureAlgorithm,
    private_key: &[u8; PRIVATE_KEY_LEN],
) -> Option<Vec<u8>> {
    let key = PrivateKey::read(algorithm, private_key)?.public();
    let mut out = Vec::new();
    let write = |out: &mut Vec<u8>| -> Result<(), minicbor::encode::Error<_>> {
        let mut encoder = Encoder::new(out);
        encoder.map(1)?.i32(CNF)?.map(1)?.i32(COSE_KEY)?;
        match &key {
            PublicKey::Ed25519(key) => {
                encoder.map(4)?.i32(KTY)?.i32(KTY_OKP)?.i32(ALG)?.i32(algorithm.number())?;
                encoder.i32(CRV)?.i32(CRV_ED25519)?.i32(X)?.bytes(key.as_bytes())?;
            }
            PublicKey::P256(key) => {
                let point = p256::ecdsa::VerifyingKey::from(key).to_sec1_point(false);
                let [x, y] = [1..33, 33..65].map(|place| &point.as_bytes()[place]);
                encoder.map(5)?.i32(KTY)?.i32(KTY_EC2)?.i32(ALG)?.i32(algorithm.number())?;
                encoder.i32(CRV)?.i32(CRV_P256)?.i32(X)?.bytes(x)?.i32(Y)?.bytes(y)?;
            }
        }
        Ok(())
    };
    write(&mut out).expect("a Vec takes everything");
    Some(out)
}

/// Calls `read` with the value of each entry of a map, and its label if that is a small number.
fn entries<'b>(
    decoder: &mut Decoder<'b>,
    mut read: impl FnMut(&mut Decoder<'b>, Option<i32>) -> Result<(), minicbor::decode::Error>,
) -> Result<(), minicbor::decode::Error> {
    let count = decoder.map()?.ok_or(minicbor::decode::Error::message("indefinite length"))?;
    for _ in 0..count {
        let label = match decoder.datatype()? {
            Type::U8 | Type::I8 => Some(decoder.i32()?),
            _ => {
                decoder.skip()?;
                None
            }
        };
        read(decoder, label)?;
    }
    Ok(())
}

/// The fields of a COSE_Key that matter here.
#[derive(Default)]
struct CoseKey<'b> {
    kty: Option<i32>,
    alg: Option<i32>,
    crv: Option<i32>,
    x: Option<&'b [u8]>,
    y: Option<&'b [u8]>,
}

impl<'b> CoseKey<'b> {
    fn read(decoder: &mut Decoder<'b>) -> Result<Self, minicbor::decode::Error> {
        let mut key = Self::default();
        entries(decoder, |decoder, label| {
            match label {
                Some(KTY) => key.kty = Some(decoder.i32()?),
                Some(ALG) => key.alg = Some(decoder.i32()?),
                Some(CRV) => key.crv = Some(decoder.i32()?),
                Some(X) => key.x = Some(decoder.bytes()?),
                // A point may be compressed: y is then a bool, and is not read.
                Some(Y) if decoder.datatype()? == Type::Bytes => key.y = Some(decoder.bytes()?),
                _ => decoder.skip()?,
            }
            Ok(())
        })?;
        Ok(key)
    }
    fn public(self, algorithm: SignatureAlgorithm) -> Result<PublicKey, CredentialError> {
        if self.alg.is_some_and(|alg| alg != algorithm.number()) {
            return Err(CredentialError::Algorithm);
        }
        let x = self.x.ok_or(CredentialError::Form)?;
        let key = match (algorithm, self.kty, self.crv) {
            (SignatureAlgorithm::EdDsa, Some(KTY_OKP), Some(CRV_ED25519)) => PublicKey::ed25519(x),
            (SignatureAlgorithm::Es256, Some(KTY_EC2), Some(CRV_P256)) => {
                PublicKey::p256(x, self.y.ok_or(CredentialError::Form)?)
            }
            _ => return Err(CredentialError::Algorithm),
        };
        key.ok_or(CredentialError::Point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_that_was_made_reads_back_and_fits_its_algorithm_alone() {
        for algorithm in SignatureAlgorithm::ALL {
            let octets = credential_of(algorithm, &[5; 32]).expect("a key");
            let credential = Credential::read(&octets, algorithm).expect("our own");
            let key = PrivateKey::read(algorithm, &[5; 32]).expect("a key").public();
            assert_eq!((&*credential.octets, credential.key), (&octets[..], key));
            for other in SignatureAlgorithm::ALL.into_iter().filter(|one| *one != algorithm) {
                assert_eq!(Credential::read(&octets, other), Err(CredentialError::Algorithm));
            }
        }
    }

    #[test]
    fn claims_beside_the_key_are_skipped() {
        let own = credential_of(SignatureAlgorithm::EdDsa, &[5; 32]).expect("a key");
        let mut more = Vec::new();
        Encoder::new(&mut more).map(3).and_then(|e| e.i32(1)?.str("issuer")).expect("a Vec");
        more.extend_from_slice(&own[1..]);
        Encoder::new(&mut more).str("name").and_then(|e| e.array(1)?.u8(1)).expect("a Vec");
        let credential = Credential::read(&more, SignatureAlgorithm::EdDsa).expect("a claims set");
        assert_eq!(&*credential.octets, more);
    }

    #[test]
    fn prefixes_additions_and_other_maps_are_refused() {
        let own = credential_of(SignatureAlgorithm::EdDsa, &[5; 32]).expect("a key");
        let read = |octets: &[u8]| Credential::read(octets, SignatureAlgorithm::EdDsa);
        for end in 0..own.len() {
            assert_eq!(read(&own[..end]), Err(CredentialError::Form), "{end}");
        }
        assert_eq!(read(&[&own[..], &[0]].concat()), Err(CredentialError::Form));
        assert_eq!(read(&[0xa0]), Err(CredentialError::Form));
        assert_eq!(read(&[0; CREDENTIAL_LEN_MAX + 1]), Err(CredentialError::TooLong));
        let weak: Vec<u8> = [&own[..own.len() - 32], &[0; 32]].concat();
        assert_eq!(read(&weak), Err(CredentialError::Point));
    }
}
