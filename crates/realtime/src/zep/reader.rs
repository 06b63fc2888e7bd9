//! The thread that moves datagrams from a socket to the inbox of its host.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_stack::event::Input;

use super::frame::DATAGRAM_OCTETS_MAX;

/// After an error of the socket: ours.
const ERROR_PAUSE: Duration = Duration::from_millis(10);
/// Errors in a row, ten seconds of them, after which the socket counts as broken: ours.
const ERRORS_MAX: u32 = 1000;
/// How often the thread looks whether it is still wanted: ours.
const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// What can reach a running host.
#[derive(Debug)]
pub(super) enum Arrival {
    Datagram(Vec<u8>),
    Do(Input),
    Failed(io::Error),
    Stop,
}

/// What the thread and its host share.
#[derive(Debug, Default)]
struct Shared {
    /// The host is gone.
    ended: AtomicBool,
    /// Datagrams that found the inbox full.
    lost: AtomicU64,
}

/// A thread that reads a socket; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Begins to read.
    pub fn start(socket: UdpSocket, inbox: SyncSender<Arrival>) -> io::Result<Self> {
        socket.set_read_timeout(Some(READ_TIMEOUT))?;
        let shared = Arc::new(Shared::default());
        let here = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("zep".to_owned())
            .spawn(move || read(&socket, &inbox, &here))?;
        Ok(Self { shared, thread: Some(thread) })
    }
    /// Takes the number of datagrams that found the inbox full since the last call.
    pub fn take_lost(&self) -> u64 {
        self.shared.lost.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A reader that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What finds no room is lost, as on the air.
fn read(socket: &UdpSocket, inbox: &SyncSender<Arrival>, shared: &Shared) {
    let mut buffer = [0; DATAGRAM_OCTETS_MAX + 1];
    let mut failure = None;
    let mut errors = 0;
    while !shared.ended.load(Ordering::Relaxed) {
        if let Some(event) = failure.take() {
            match inbox.try_send(event) {
                Err(TrySendError::Full(event)) => failure = Some(event),
                Err(TrySendError::Disconnected(_)) | Ok(()) => return,
            }
            thread::sleep(READ_TIMEOUT);
            continue;
        }
        match socket.recv(&mut buffer) {
            Ok(octets) => {
                errors = 0;
                if inbox.try_send(Arrival::Datagram(buffer[..octets].to_vec())).is_err() {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) if is_idle(error.kind()) => errors = 0,
            // An ICMP error says that a frame was lost, such as one to a peer that is not there yet.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) if errors < ERRORS_MAX => {
                errors += 1;
                thread::sleep(ERROR_PAUSE);
            }
            Err(error) => failure = Some(Arrival::Failed(error)),
        }
    }
}

/// True when nothing came in time.
fn is_idle(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
