//! The curves of a group: they sign messages, and give two members a secret of their own (RFC 10021 s2.1.8 and s2.5.1).
//!
//! ```text
//!   EdDSA   Ed25519   signatures, and by u = (1 + y) / (1 - y) the points of X25519
//!   ES256   P-256     signatures, and the same points
//! ```

use core::fmt;

use ed25519_dalek::Signer as _;
use p256::ecdsa::signature::Verifier as _;
use zeroize::Zeroizing;

use crate::params::{EDDSA, ES256, PRIVATE_KEY_LEN, SECRET_LEN, SIGNATURE_LEN};

/// How members of a group sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// EdDSA with Ed25519.
    #[default]
    EdDsa,
    /// ECDSA with P-256 and SHA-256, deterministic (RFC 6979).
    Es256,
}

impl SignatureAlgorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::EdDsa, Self::Es256];
    /// Its number in the COSE registry.
    pub const fn number(self) -> i32 {
        match self {
            Self::EdDsa => EDDSA,
            Self::Es256 => ES256,
        }
    }
    /// Its name in the COSE registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
        }
    }
}

/// The key that a member signs with. It is wiped when it is dropped, and never printed.
pub(crate) enum PrivateKey {
    Ed25519(ed25519_dalek::SigningKey),
    P256(p256::ecdsa::SigningKey),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(secret)")
    }
}

impl PrivateKey {
    /// A key of these octets; `None` if they are none, as 0 for P-256.
    pub(crate) fn read(
        algorithm: SignatureAlgorithm,
        octets: &[u8; PRIVATE_KEY_LEN],
    ) -> Option<Self> {
        Some(match algorithm {
            SignatureAlgorithm::EdDsa => {
                Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(octets))
            }
            SignatureAlgorithm::Es256 => {
                Self::P256(p256::ecdsa::SigningKey::from_slice(octets).ok()?)
            }
        })
    }
    /// The key that verifies what this one signs.
    pub(crate) fn public(&self) -> PublicKey {
        match self {
            Self::Ed25519(key) => PublicKey::Ed25519(key.verifying_key()),
            Self::P256(key) => PublicKey::P256((*key.verifying_key()).into()),
        }
    }
    /// Signs a message.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        match self {
            Self::Ed25519(key) => key.sign(message).to_bytes(),
            Self::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(message);
                signature.to_bytes().into()
            }
        }
    }
    /// The static secret of this key and that of another member (NIST SP 800-56A s5.7.1.2); `None` if the curves differ, or the
    /// secret is degenerate (RFC 7748 s6.1).
    pub(crate) fn shared_secret(&self, other: &PublicKey) -> Option<Zeroizing<[u8; SECRET_LEN]>> {
        match (self, other) {
            (Self::Ed25519(own), PublicKey::Ed25519(other)) => {
                let secret = other.to_montgomery().mul_clamped(own.to_scalar_bytes());
                let secret = Zeroizing::new(secret.to_bytes());
                (*secret != [0; SECRET_LEN]).then_some(secret)
            }
            (Self::P256(own), PublicKey::P256(other)) => {
                let secret = p256::ecdh::diffie_hellman(own.as_nonzero_scalar(), other.as_affine());
                Some(Zeroizing::new((*secret.raw_secret_bytes()).into()))
            }
            _ => None,
        }
    }
}

/// The key that verifies the messages of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {
    Ed25519(ed25519_dalek::VerifyingKey),
    P256(p256::PublicKey),
}

impl PublicKey {
    /// A key of Ed25519; `None` if it is no point, or one of small order.
    pub(crate) fn ed25519(octets: &[u8]) -> Option<Self> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(octets.try_into().ok()?).ok()?;
        // RFC 10021 s2.5.1.1: MUST abort if y is 1 or -1; both are of small order.
        (!key.is_weak()).then_some(Self::Ed25519(key))
    }
    /// A key of P-256 with both coordinates; `None` if it is no point.
    pub(crate) fn p256(x: &[u8], y: &[u8]) -> Option<Self> {
        let mut point = [0; 1 + 2 * SECRET_LEN];
        point[0] = UNCOMPRESSED;
        point[1..].get_mut(..SECRET_LEN)?.copy_from_slice(<&[u8; SECRET_LEN]>::try_from(x).ok()?);
        point[1 + SECRET_LEN..].copy_from_slice(<&[u8; SECRET_LEN]>::try_from(y).ok()?);
        Some(Self::P256(p256::PublicKey::from_sec1_bytes(&point).ok()?))
    }
    /// Whether a signature is of this message and this member.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8; SIGNATURE_LEN]) -> bool {
        match self {
            Self::Ed25519(key) => {
                let signature = ed25519_dalek::Signature::from_bytes(signature);
                key.verify_strict(message, &signature).is_ok()
            }
            Self::P256(key) => p256::ecdsa::Signature::from_slice(signature).is_ok_and(|one| {
                p256::ecdsa::VerifyingKey::from(key).verify(message, &one).is_ok()
            }),
        }
    }
}

/// The octet before both coordinates of a point: SEC 1 s2.3.3.
const UNCOMPRESSED: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(algorithm: SignatureAlgorithm) -> [PrivateKey; 2] {
        [7, 9].map(|octet| PrivateKey::read(algorithm, &[octet; 32]).expect("a key"))
    }

    #[test]
    fn a_signature_is_of_its_message_and_its_key_alone() {
        for algorithm in SignatureAlgorithm::ALL {
            let [own, other] = keys(algorithm);
            let signature = own.sign(b"message");
            assert!(own.public().verifies(b"message", &signature));
            assert!(!own.public().verifies(b"massage", &signature));
            assert!(!other.public().verifies(b"message", &signature));
            for at in 0..SIGNATURE_LEN {
                let mut changed = signature;
                changed[at] ^= 1;
                assert!(!own.public().verifies(b"message", &changed), "{algorithm:?} {at}");
            }
        }
    }

    #[test]
    fn two_members_have_one_secret_and_keys_of_different_curves_have_none() {
        for algorithm in SignatureAlgorithm::ALL {
            let [one, two] = keys(algorithm);
            let secret = one.shared_secret(&two.public()).expect("one curve");
            assert_eq!(two.shared_secret(&one.public()), Some(secret));
        }
        let ([one, _], [two, _]) =
            (keys(SignatureAlgorithm::EdDsa), keys(SignatureAlgorithm::Es256));
        assert_eq!(one.shared_secret(&two.public()), None);
    }

    #[test]
    fn points_of_small_order_and_octets_that_are_no_point_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        for weak in [[0; 32], one, minus_one] {
            assert_eq!(PublicKey::ed25519(&weak), None, "{weak:?}");
        }
        assert_eq!(PublicKey::ed25519(&[7; 31]), None);
        assert_eq!(PublicKey::p256(&[7; 32], &[7; 32]), None);
        assert_eq!(PublicKey::p256(&[7; 31], &[7; 32]), None);
        assert!(PrivateKey::read(SignatureAlgorithm::Es256, &[0; 32]).is_none());
    }
}
