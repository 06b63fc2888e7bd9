//! Ports of the servers that a stage starts. No other stage that runs at the same time has them, and neither do sockets
//! that ask the system for any port.
//!
//! ```text
//!   12000 ┬ block 0: its lock, and 99 ports     15000 ┬ upper half of block 0
//!   12100 ┼ block 1                             15100 ┼ upper half of block 1
//!         :                                           :
//! ```
//!
//! A program takes whole blocks. It holds the first port of each block until it ends, and the system gives a port to one
//! socket only. So a server may end and start again at its ports. A port that the system chooses would be free in between,
//! and any client could get it.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

/// Where the blocks begin, above the ports of well-known services.
const FIRST: u16 = 12_000;
/// Ports of a block, with its lock.
const BLOCK: u16 = 100;
/// Blocks of an area; the upper halves of its blocks are behind them.
const AREA_BLOCKS: u16 = 30;
const AREAS: u16 = 3;
/// From a port to that of the upper half, where aiocoap serves WebSockets.
const UPPER: u16 = AREA_BLOCKS * BLOCK;
/// Where systems begin to give ports to sockets that ask for any: Linux; others begin higher.
const EPHEMERAL: u16 = 32_768;

const _: () = assert!(FIRST + AREAS * 2 * UPPER <= EPHEMERAL);

/// A port that is free at `host` for datagrams and connections; so are those at these distances above it. It is never
/// given twice.
pub fn free(host: impl Into<IpAddr>, above: &[u16]) -> Result<u16> {
    static PORTS: Mutex<Option<Ports>> = Mutex::new(None);
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Clients of a stage that was killed may still ask at its ports, so the next stage begins at others.
    let start = (std::process::id() % u32::from(AREAS * AREA_BLOCKS)) as u16;
    ports.get_or_insert_with(|| Ports::new(start)).take(host.into(), above)
}

/// What one program has taken.
#[derive(Debug)]
struct Ports {
    locks: Vec<UdpSocket>,
    /// Of the last block that it took.
    rest: std::ops::Range<u16>,
    /// Blocks to try.
    blocks: Vec<u16>,
}

impl Ports {
    fn new(start: u16) -> Self {
        let count = AREAS * AREA_BLOCKS;
        // The first one last, since it is popped.
        let blocks = (0..count).rev().map(|number| (start + number) % count).collect();
        Self { locks: Vec::new(), rest: 0..0, blocks }
    }
    fn take(&mut self, host: IpAddr, above: &[u16]) -> Result<u16> {
        let width = 1 + above.iter().map(|distance| distance % UPPER).max().unwrap_or(0);
        loop {
            while self.rest.len() >= usize::from(width) {
                let port = self.rest.start;
                self.rest.start += width;
                let is_free = |distance| {
                    let at = (host, port + distance);
                    UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
                };
                if is_free(0) && above.iter().copied().all(is_free) {
                    return Ok(port);
                }
            }
            self.lock()?;
        }
    }
    /// Takes the next block that no other program has.
    fn lock(&mut self) -> Result<()> {
        while let Some(block) = self.blocks.pop() {
            let first = FIRST + block / AREA_BLOCKS * 2 * UPPER + block % AREA_BLOCKS * BLOCK;
            if let Ok(lock) = UdpSocket::bind((Ipv4Addr::LOCALHOST, first)) {
                self.locks.push(lock);
                self.rest = first + 1..first + BLOCK;
                return Ok(());
            }
        }
        bail!("no free ports between {FIRST} and {}", FIRST + AREAS * 2 * UPPER)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn programs_that_begin_at_the_same_block_share_no_port() {
        let (mut one, mut other) = (Ports::new(7), Ports::new(7));
        let mut given = BTreeSet::new();
        for _ in 0..60 {
            for ports in [&mut one, &mut other] {
                let port = ports.take(HOST, &[1, UPPER, UPPER + 1]).expect("there are some");
                for port in [port, port + 1, port + UPPER, port + UPPER + 1] {
                    assert!(given.insert(port), "{port} twice");
                }
            }
        }
    }

    #[test]
    fn ports_that_others_listen_at_are_left_out() {
        let mut ports = Ports::new(50);
        let first = ports.take(HOST, &[]).expect("there are some");
        let _datagrams = UdpSocket::bind((HOST, first + 2)).expect("the block is ours");
        let _connections = TcpListener::bind((HOST, first + 4)).expect("the block is ours");
        let _above = TcpListener::bind((HOST, first + 5 + UPPER)).expect("the block is ours");
        assert_eq!(ports.take(HOST, &[1]).expect("there are some"), first + 5);
        assert_eq!(ports.take(HOST, &[UPPER]).expect("there are some"), first + 7);
    }

    #[test]
    fn a_program_that_ends_leaves_its_blocks_to_others() {
        let taken = |ports: &mut Ports| ports.take(HOST, &[]).expect("there are some");
        let mut ended = Ports::new(33);
        let port = taken(&mut ended);
        drop(ended);
        assert_eq!(taken(&mut Ports::new(33)), port);
    }
}
