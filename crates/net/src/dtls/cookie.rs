//! The cookie exchange of a server (RFC 6347 s4.2.1), without state: a ClientHello is answered with a cookie, and only
//! one that brings the right cookie back makes a session.
//!
//! ```text
//!   ClientHello ────────────► HelloVerifyRequest, cookie = HMAC(secret, addresses, parameters); nothing is kept
//!   ClientHello + cookie ───► dimpl: the same exchange once more with itself, then the handshake
//! ```
//! dimpl has a cookie exchange too, but keeps a session for each address that has sent anything. Its numbers of messages
//! count the exchange, and the hash of the handshake covers these numbers, so it cannot be left out. It is replayed
//! within this process when the cookie is right, and dimpl takes the cookie that the client has brought: it asks the HMAC of
//! its provider what the cookie has to be, and [`proven`] answers.

use std::cell::Cell;
use std::time::Instant;

use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider, rust_crypto};
use dimpl::{CryptoError, Dtls, Output};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::params::{COOKIE_EXCHANGES_MAX, COOKIE_SECRET_LIFETIME};
use crate::peer::Peer;

/// Octets that a client draws for a handshake (RFC 5246 s7.4.1.2).
pub(super) const RANDOM_LEN: usize = 32;
/// Octets of a cookie: all of the hash, as dimpl wants it.
const COOKIE_LEN: usize = 32;
/// Octets of the header of a record, and of a handshake message (RFC 6347 s4.1 and s4.2.2).
const RECORD_HEADER_LEN: usize = 13;
const MESSAGE_HEADER_LEN: usize = 12;
/// Content type of handshake records (RFC 6347 s4.1).
const HANDSHAKE: u8 = 22;
/// Types of handshake messages (RFC 6347 s4.3.2).
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;
/// RFC 6347 s4.2.1: the version in a HelloVerifyRequest SHOULD be that of DTLS 1.0 whatever will be agreed on.
const DTLS_1_0: [u8; 2] = [254, 255];
/// Record sequence numbers have 48 bits.
const SEQUENCE_MASK: u64 = (1 << 48) - 1;

/// A ClientHello in the clear, whole in one record.
///
/// ```text
///   record:  type (1) | version (2) | epoch 0 (2) | sequence (6) | length (2)
///   message: type 1 (1) | length (3) | number (2) | offset 0 (3) | length (3)
///   body:    version (2) | random (32) | session ID (1 + n) | cookie (1 + n) | suites (2 + n) | compression (1 + n) | ..
/// ```
#[derive(Debug)]
pub(super) struct Hello<'a> {
    sequence: u64,
    number: u16,
    random: &'a [u8; RANDOM_LEN],
    /// Version, random and session ID.
    before_cookie: &'a [u8],
    cookie: &'a [u8],
    /// Cipher suites and compression methods.
    offers: &'a [u8],
    /// All behind the cookie.
    after_cookie: &'a [u8],
}

/// True for a datagram that begins with a ClientHello in the clear.
pub(super) fn is_hello(bytes: &[u8]) -> bool {
    bytes.first() == Some(&HANDSHAKE)
        && bytes.get(3..5) == Some(&[0, 0])
        && bytes.get(RECORD_HEADER_LEN) == Some(&CLIENT_HELLO)
}

impl<'a> Hello<'a> {
    /// `None` for anything that is not whole, or has more cookie exchanges behind it than a client makes.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        if !is_hello(bytes) {
            return None;
        }
        let mut record = bytes.get(5..)?;
        let sequence = number(take(&mut record, 6)?);
        let record_len = number(take(&mut record, 2)?) as usize;
        let message = record.get(..record_len)?;
        let (header, body) = message.split_at_checked(MESSAGE_HEADER_LEN)?;
        let body_len = body.len() as u64;
        let message_number = number(&header[4..6]) as u16;
        let whole = number(&header[1..4]) == body_len
            && number(&header[6..9]) == 0
            && number(&header[9..12]) == body_len;
        if !whole || message_number > COOKIE_EXCHANGES_MAX {
            return None;
        }
        let mut rest = body;
        take(&mut rest, 2)?;
        let random = take(&mut rest, RANDOM_LEN)?.first_chunk()?;
        vector(&mut rest, 1)?;
        let before_cookie = &body[..body.len() - rest.len()];
        let cookie = vector(&mut rest, 1)?;
        let after_cookie = rest;
        vector(&mut rest, 2)?;
        vector(&mut rest, 1)?;
        let offers = &after_cookie[..after_cookie.len() - rest.len()];
        let number = message_number;
        Some(Self { sequence, number, random, before_cookie, cookie, offers, after_cookie })
    }
    pub(super) const fn random(&self) -> &'a [u8; RANDOM_LEN] {
        self.random
    }
    /// What the sequence numbers of the server's records are ahead of dimpl's, which counts its own alone. RFC 6347
    /// s4.2.1: the first ServerHello MUST have the sequence number of the ClientHello.
    pub(super) fn ahead(&self) -> u64 {
        self.sequence.wrapping_sub(self.number.into()) & SEQUENCE_MASK
    }
    /// The answer that asks for a cookie. RFC 6347 s4.2.1: its record MUST have the sequence number of the ClientHello.
    pub(super) fn verify_request(&self, cookie: &[u8; COOKIE_LEN]) -> Vec<u8> {
        let mut body = DTLS_1_0.to_vec();
        body.push(COOKIE_LEN as u8);
        body.extend_from_slice(cookie);
        record(self.sequence, HELLO_VERIFY_REQUEST, self.number, &body)
    }
    /// Has dimpl make the exchanges that the client has behind it.
    pub(super) fn replay_exchanges(
        &self,
        dtls: &mut Dtls,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Result<(), dimpl::Error> {
        dtls.handle_timeout(now)?;
        for number in 0..self.number {
            let body = [self.before_cookie, &[0], self.after_cookie].concat();
            dtls.handle_packet(&record(number.into(), CLIENT_HELLO, number, &body))?;
            loop {
                match dtls.poll_output(buffer) {
                    Output::Timeout(_) => break,
                    Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                    // The client has had its HelloVerifyRequest.
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

/// A vector behind its length of so many octets.
fn vector<'a>(bytes: &mut &'a [u8], len_len: usize) -> Option<&'a [u8]> {
    let len = number(take(bytes, len_len)?) as usize;
    take(bytes, len)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A handshake message in a record in the clear.
fn record(sequence: u64, message_type: u8, message_number: u16, body: &[u8]) -> Vec<u8> {
    let len = body.len() as u32;
    let mut bytes = Vec::with_capacity(RECORD_HEADER_LEN + MESSAGE_HEADER_LEN + body.len());
    bytes.push(HANDSHAKE);
    bytes.extend_from_slice(&DTLS_1_0);
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&sequence.to_be_bytes()[2..]);
    bytes.extend_from_slice(&((MESSAGE_HEADER_LEN + body.len()) as u16).to_be_bytes());
    bytes.push(message_type);
    bytes.extend_from_slice(&len.to_be_bytes()[1..]);
    bytes.extend_from_slice(&message_number.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0]);
    bytes.extend_from_slice(&len.to_be_bytes()[1..]);
    bytes.extend_from_slice(body);
    bytes
}

/// Adds to the sequence numbers of the records in the clear of a datagram.
pub(super) fn advance(datagram: &mut [u8], ahead: u64) {
    let mut rest = datagram;
    while ahead > 0 && rest.len() >= RECORD_HEADER_LEN {
        let len = RECORD_HEADER_LEN + number(&rest[11..RECORD_HEADER_LEN]) as usize;
        if rest[3..5] == [0, 0] {
            let sequence = (number(&rest[5..11]) + ahead) & SEQUENCE_MASK;
            rest[5..11].copy_from_slice(&sequence.to_be_bytes()[2..]);
        }
        let Some((_, behind)) = rest.split_at_mut_checked(len) else { return };
        rest = behind;
    }
}

type Secret = Zeroizing<[u8; 32]>;

/// Makes cookies and knows them again.
#[derive(Default)]
pub(super) struct Cookies {
    /// Made when.
    current: Option<(Instant, Secret)>,
    /// RFC 6347 s4.2.1: a client may have its cookie from before the change.
    previous: Option<Secret>,
}

impl Cookies {
    /// The cookie for a client.
    pub(super) fn make(&mut self, now: Instant, from: Peer, hello: &Hello<'_>) -> [u8; COOKIE_LEN] {
        mac(self.secret(now), from, hello).finalize().into_bytes().into()
    }
    /// True if the client has brought a cookie of this server for its address.
    pub(super) fn prove(&mut self, now: Instant, from: Peer, hello: &Hello<'_>) -> bool {
        let current = mac(self.secret(now), from, hello).verify_slice(hello.cookie).is_ok();
        let previous = self.previous.as_ref();
        current
            || previous.is_some_and(|one| mac(one, from, hello).verify_slice(hello.cookie).is_ok())
    }
    /// The secret of this time.
    fn secret(&mut self, now: Instant) -> &Secret {
        let age = self.current.as_ref().map(|(made, _)| now.saturating_duration_since(*made));
        if age.is_none_or(|age| age >= COOKIE_SECRET_LIFETIME) {
            let kept = age.is_some_and(|age| age < 2 * COOKIE_SECRET_LIFETIME);
            self.previous = self.current.take().map(|(_, secret)| secret).filter(|_| kept);
        }
        let (_, secret) = self.current.get_or_insert_with(|| (now, fresh_secret()));
        secret
    }
}

fn fresh_secret() -> Secret {
    let mut secret = Zeroizing::new([0; 32]);
    let filled = rust_crypto::default_provider().secure_random.fill(secret.as_mut_slice());
    filled.expect("the system has random numbers");
    secret
}

/// RFC 6347 s4.2.1: HMAC(secret, client's address, parameters of the ClientHello that do not change with the cookie).
fn mac(secret: &Secret, from: Peer, hello: &Hello<'_>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_slice()).expect("any length is a key");
    // Each part says its length by itself, or has always the same one.
    let addresses = format!("{} {:?}\n", from.address, from.local);
    mac.update(addresses.as_bytes());
    mac.update(hello.before_cookie);
    mac.update(hello.offers);
    mac
}

thread_local! {
    /// The random and the cookie of the ClientHello that has been proven and is being given to dimpl.
    static PROVEN: Cell<Option<([u8; RANDOM_LEN], [u8; COOKIE_LEN])>> = const { Cell::new(None) };
}

/// Does something while dimpl takes the cookie of this ClientHello, which has been proven.
pub(super) fn proven(hello: &Hello<'_>, act: impl FnOnce()) {
    PROVEN.set(hello.cookie.first_chunk().map(|cookie| (*hello.random, *cookie)));
    act();
    PROVEN.set(None);
}

/// The HMAC of dimpl's provider, except for the cookie of a client that has been proven.
#[derive(Debug)]
struct CookieHmac;

impl HmacProvider for CookieHmac {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        match (PROVEN.get(), out.first_chunk_mut()) {
            (Some((random, cookie)), Some(out)) if data == random => {
                *out = cookie;
                Ok(COOKIE_LEN)
            }
            _ => rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out),
        }
    }
}

/// dimpl's provider with our HMAC.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &CookieHmac, ..rust_crypto::default_provider() }
}
