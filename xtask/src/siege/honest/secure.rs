//! Datagrams over DTLS 1.2 with a pre-shared key (RFC 7252 s9.1.3.1), for honest clients and for attackers who begin
//! a handshake.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dimpl::crypto::Dtls12CipherSuite;
use dimpl::{Config, Dtls, Output, PskResolver};

use super::{PATIENCE, Path, Plain};
use crate::process::Stopwatch;
use crate::siege::victim::{IDENTITY, KEY};

/// Octets of a datagram: the least MTU of IPv6 less the headers of IPv6 and UDP.
const MTU: usize = 1280 - 48;

/// The one key that there is.
struct Key;

impl PskResolver for Key {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        (identity == IDENTITY.as_bytes()).then(|| KEY.as_bytes().to_vec())
    }
}

#[allow(clippy::disallowed_methods, reason = "dimpl is told the time")]
fn now() -> Instant {
    Instant::now()
}

fn session() -> Result<Dtls> {
    let config = Config::builder()
        .mtu(MTU)
        .dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8])
        .dtls13_cipher_suites(&[])
        .with_psk_client(IDENTITY.as_bytes().to_vec(), Arc::new(Key));
    let config = config.build().context("no DTLS")?;
    let mut session = Dtls::new_12_psk(Arc::new(config), now());
    session.set_active(true);
    Ok(session)
}

/// The first datagram of a handshake: a ClientHello.
pub fn hello() -> Result<Vec<u8>> {
    let (mut session, mut buffer) = (session()?, vec![0; 2 * MTU]);
    session.handle_timeout(now())?;
    loop {
        match session.poll_output(&mut buffer) {
            Output::Packet(bytes) => return Ok(bytes.to_vec()),
            Output::Timeout(_) => bail!("a handshake that does not begin"),
            _ => {}
        }
    }
}

/// A session and its socket.
pub struct Secure {
    plain: Plain,
    session: Dtls,
    deadline: Option<Instant>,
    received: Vec<Vec<u8>>,
    open: bool,
    buffer: Vec<u8>,
}

impl Secure {
    /// Shakes hands.
    pub fn open(from: Ipv4Addr, to: SocketAddrV4) -> Result<Self> {
        let (plain, session) = (Plain::open(from, to)?, session()?);
        let (deadline, received) = (None, Vec::new());
        let buffer = vec![0; 2 * MTU];
        let mut secure = Self { plain, session, deadline, received, open: false, buffer };
        let clock = Stopwatch::start();
        while !secure.open {
            if clock.elapsed() >= PATIENCE {
                bail!("no handshake within {} s", PATIENCE.as_secs());
            }
            secure.step(PATIENCE.saturating_sub(clock.elapsed()))?;
        }
        Ok(secure)
    }
    /// Lets time pass until a datagram comes, and does what the session wants.
    fn step(&mut self, wait: Duration) -> Result<()> {
        self.session.handle_timeout(now())?;
        self.drain()?;
        let until = self.deadline.map_or(wait, |due| due.saturating_duration_since(now()));
        if let Some(bytes) = self.plain.receive(until.min(wait))? {
            self.session.handle_packet(&bytes)?;
            self.drain()?;
        }
        Ok(())
    }
    fn drain(&mut self) -> Result<()> {
        loop {
            match self.session.poll_output(&mut self.buffer) {
                Output::Packet(bytes) => self.plain.send(bytes)?,
                Output::ApplicationData(bytes) => self.received.push(bytes.to_vec()),
                Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                Output::Connected => self.open = true,
                Output::CloseNotify => bail!("the server has closed the session"),
                Output::Timeout(deadline) => {
                    self.deadline = Some(deadline);
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}

impl Path for Secure {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.session.handle_timeout(now())?;
        self.session.send_application_data(bytes)?;
        self.drain()
    }
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>> {
        if self.received.is_empty() {
            self.step(wait)?;
        }
        Ok((!self.received.is_empty()).then(|| self.received.remove(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_begins_with_a_client_hello() {
        let hello = hello().expect("it begins");
        // RFC 6347 s4.1 and s4.2.2: a handshake record of DTLS 1.x with a ClientHello in it.
        assert_eq!((hello[0], hello[1], hello[13]), (22, 254, 1));
    }
}
