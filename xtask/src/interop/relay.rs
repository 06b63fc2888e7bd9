//! A bad path for datagrams between one client and a server: in both directions it loses, duplicates and reorders some.
//!
//! ```text
//!   client ──► front ── lost? doubled? held back? ── back ──► server        and the same on the way back
//! ```

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;

use crate::chance::Chance;
use crate::process::Stopwatch;

/// How many of a hundred datagrams are lost, duplicated and held back, in each direction.
const LOST: u64 = 30;
const DOUBLED: u64 = 15;
const HELD: u64 = 15;
/// Of one message and what acknowledges it, which have the same message ID, at most so many copies are lost: so each
/// exchange is over within 9 s (RFC 7252 s4.8: 2 to 3 s, then twice that), and no case fails by chance alone.
const LOST_MAX: u8 = 2;
/// How long is held back what others are to overtake, and when a second copy comes: before the first retransmission.
const HOLD: Duration = Duration::from_millis(700);
/// Between two checks whether a datagram is due that is held back.
const LOOK: Duration = Duration::from_millis(20);
/// The longest datagram.
const LEN_MAX: usize = 2048;
/// How an ACK without response begins (RFC 7252 s3): version, type, no token; code 0.00.
const EMPTY_ACK: [u8; 2] = [0x60, 0x00];
/// Where the message ID lies (RFC 7252 s3).
const MESSAGE_ID: std::ops::Range<usize> = 2..4;

/// A running path; it ends with the value.
#[derive(Debug)]
pub struct Relay {
    /// Where the client sends to.
    pub port: u16,
    shared: Arc<Shared>,
    directions: Vec<JoinHandle<()>>,
}

impl Relay {
    /// A path to a server at a port. Equal seeds draw the same fates, one after another. It loses empty ACKs only if
    /// `loses_acks` is set.
    pub fn start(server: u16, seed: u64, loses_acks: bool) -> Result<Self> {
        let (front, back) = (UdpSocket::bind("[::1]:0")?, UdpSocket::bind("[::1]:0")?);
        back.connect(("::1", server))?;
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(LOOK))?;
        }
        let port = front.local_addr()?.port();
        let shared = Arc::new(Shared::new(Fates::new(seed, loses_acks)));
        let direction = |from: &UdpSocket, to: &UdpSocket, inwards| -> Result<_> {
            let (from, to) = (from.try_clone()?, to.try_clone()?);
            let direction =
                Direction { from, to, inwards, held: Vec::new(), shared: shared.clone() };
            Ok(std::thread::spawn(move || direction.carry()))
        };
        let directions = vec![direction(&front, &back, true)?, direction(&back, &front, false)?];
        Ok(Self { port, shared, directions })
    }
    /// From now on it is a good path.
    pub fn heal(&self) {
        self.shared.healed.store(true, Ordering::Relaxed);
    }
    /// Datagrams that were lost so far.
    pub fn lost(&self) -> u32 {
        self.shared.fates().lost.values().map(|lost| u32::from(*lost)).sum()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for way in self.directions.drain(..) {
            // The panic hook has reported a direction that panicked.
            _ = way.join();
        }
    }
}

/// What both directions share.
#[derive(Debug)]
struct Shared {
    over: AtomicBool,
    healed: AtomicBool,
    fates: Mutex<Fates>,
    client: Mutex<Option<SocketAddr>>,
}

impl Shared {
    fn new(fates: Fates) -> Self {
        let (over, healed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { over, healed, fates: Mutex::new(fates), client: Mutex::new(None) }
    }
    fn fates(&self) -> MutexGuard<'_, Fates> {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn client(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passes,
    Lost,
    Doubled,
    Held,
}

/// Fates, one after another.
#[derive(Debug)]
struct Fates {
    chance: Chance,
    loses_acks: bool,
    /// Copies lost of each message ID.
    lost: BTreeMap<Vec<u8>, u8>,
}

impl Fates {
    const fn new(seed: u64, loses_acks: bool) -> Self {
        Self { chance: Chance::new(seed), loses_acks, lost: BTreeMap::new() }
    }
    fn next(&mut self, datagram: &[u8]) -> Fate {
        let drawn = self.chance.below(100);
        if drawn < LOST {
            if !self.loses_acks && datagram.starts_with(&EMPTY_ACK) {
                return Fate::Passes;
            }
            let id = datagram.get(MESSAGE_ID).unwrap_or_default().to_vec();
            let lost = self.lost.entry(id).or_default();
            if *lost >= LOST_MAX {
                return Fate::Passes;
            }
            *lost += 1;
            return Fate::Lost;
        }
        match drawn - LOST {
            0..DOUBLED => Fate::Doubled,
            drawn if drawn < DOUBLED + HELD => Fate::Held,
            _ => Fate::Passes,
        }
    }
}

/// One direction.
struct Direction {
    from: UdpSocket,
    to: UdpSocket,
    /// From the client to the server.
    inwards: bool,
    /// What leaves later.
    held: Vec<(Stopwatch, Vec<u8>)>,
    shared: Arc<Shared>,
}

impl Direction {
    fn carry(mut self) {
        let mut buffer = [0; LEN_MAX];
        while !self.shared.over.load(Ordering::Relaxed) {
            match self.from.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    if self.inwards {
                        *self.shared.client() = Some(from);
                    }
                    self.take(&buffer[..len]);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // A port that nobody listens at any more says so; that is as good as lost.
                Err(_) => {}
            }
            while self.held.first().is_some_and(|(since, _)| since.elapsed() >= HOLD) {
                let (_, datagram) = self.held.remove(0);
                self.pass(&datagram);
            }
        }
    }
    fn take(&mut self, datagram: &[u8]) {
        let healed = self.shared.healed.load(Ordering::Relaxed);
        let fate = if healed { Fate::Passes } else { self.shared.fates().next(datagram) };
        if matches!(fate, Fate::Passes | Fate::Doubled) {
            self.pass(datagram);
        }
        if matches!(fate, Fate::Held | Fate::Doubled) {
            self.held.push((Stopwatch::start(), datagram.to_vec()));
        }
    }
    /// What does not get through here is lost, as any other.
    fn pass(&self, datagram: &[u8]) {
        if self.inwards {
            _ = self.to.send(datagram);
        } else if let Some(client) = *self.shared.client() {
            _ = self.to.send_to(datagram, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of datagrams with message IDs of their own.
    fn fates(seed: u64) -> Vec<Fate> {
        let mut fates = Fates::new(seed, true);
        (0_u16..10_000)
            .map(|id| fates.next(&[&[0x40, 0], &id.to_be_bytes()[..]].concat()))
            .collect()
    }

    #[test]
    fn of_a_hundred_datagrams_thirty_are_lost_and_some_doubled_and_held() {
        let fates = fates(1);
        for (fate, per_cent) in [(Fate::Lost, LOST), (Fate::Doubled, DOUBLED), (Fate::Held, HELD)] {
            let count = fates.iter().filter(|one| **one == fate).count() as u64;
            assert!(count.abs_diff(per_cent * 100) < 200, "{count} {fate:?}");
        }
    }

    #[test]
    fn of_one_message_no_more_copies_are_lost_than_are_sent_again() {
        let mut fates = Fates::new(3, true);
        let lost = (0..100).filter(|_| fates.next(&[0x40, 1, 0, 7]) == Fate::Lost).count();
        assert_eq!(lost, usize::from(LOST_MAX));
    }

    #[test]
    fn empty_acks_are_not_lost_where_the_path_spares_them() {
        let lost = |loses_acks| {
            let mut fates = Fates::new(1, loses_acks);
            (0..100).any(|id| fates.next(&[0x60, 0, 0, id]) == Fate::Lost)
        };
        assert!(lost(true) && !lost(false));
    }

    #[test]
    fn equal_seeds_have_equal_fates_and_others_have_others() {
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn a_healed_path_carries_everything_both_ways() {
        let server = UdpSocket::bind("[::1]:0").expect("a socket");
        let relay =
            Relay::start(server.local_addr().expect("bound").port(), 1, true).expect("sockets");
        relay.heal();
        let client = UdpSocket::bind("[::1]:0").expect("a socket");
        client.connect(("::1", relay.port)).expect("an address");
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("possible");
        }
        for number in 0..20 {
            client.send(&[0, 0, 0, number]).expect("sent");
            let mut buffer = [0; 8];
            let (len, from) = server.recv_from(&mut buffer).expect("it arrives");
            server.send_to(&buffer[..len], from).expect("sent");
            assert_eq!(client.recv(&mut buffer).expect("it comes back"), 4);
            assert_eq!(buffer[3], number);
        }
        assert_eq!(relay.lost(), 0);
    }
}
