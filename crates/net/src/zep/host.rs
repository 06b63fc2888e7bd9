//! One node in real time over ZEP.
//!
//! ```text
//!   socket ── thread ──> inbox ──> Host::run: duties due, deadlines, frames ──> application
//!                          ^                      │
//!   Remote ────────────────┘                      └──> socket
//! ```
//! A socket is no radio, and the driver makes the best of it:
//!
//! - a frame leaves the socket when its last symbol would leave a radio, as in RIOT, so that the receiver may answer at
//!   once;
//! - an acknowledgement leaves one turnaround after its frame, without the time of its own symbols: the other side
//!   waits no longer than 864 us, and a scheduler sits in between;
//! - there is no carrier to sense: every CCA finds the channel idle;
//! - what comes while the node sends is kept until it listens again, since the socket could hear it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_mac::csma;
use lowmesh_mac::frame::airtime;
use lowmesh_mac::params::CCA;
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_stack::Node;
use lowmesh_stack::event::{Input, Output, RadioOrder};
use lowmesh_units::{Channel, Dbm, Eui64, Instant};

use super::frame::{Content, DATAGRAM_OCTETS_MAX, Datagram};
use crate::clock::{Clock, ntp_timestamp};

/// Datagrams and inputs that wait for the node: ours, more than one window of fragments.
const INBOX_MAX: usize = 64;
/// Frames that came while the node sent: ours; a node sends for a few milliseconds.
const EARLY_MAX: usize = 16;
/// How often the thread at the socket looks whether it is still wanted: ours.
const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// How a node reaches its air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The dispatcher, or the one other node.
    pub peer: SocketAddr,
    /// This end; without it any free port.
    pub local: Option<SocketAddr>,
    /// Frames of other channels are not heard.
    pub channel: Channel,
    /// The node that greets the dispatcher, which knows a node by its first datagram.
    pub node: Eui64,
}

/// What can reach a running host.
#[derive(Debug)]
enum Event {
    Heard(Vec<u8>),
    Do(Input),
    Failed(io::Error),
    Stop,
}

/// What the driver owes the node's radio.
#[derive(Debug)]
enum Duty {
    Sense,
    Send(Vec<u8>),
}

/// A handle to a running host.
#[derive(Clone, Debug)]
pub struct Remote(SyncSender<Event>);

impl Remote {
    /// The application wants something of its node; false when it does not run any more.
    pub fn tell(&self, input: Input) -> bool {
        self.0.send(Event::Do(input)).is_ok()
    }
    /// Ends [`Host::run`].
    pub fn stop(&self) {
        // A host that does not run needs no stopping.
        let _ = self.0.send(Event::Stop);
    }
}

/// A node on a socket.
#[derive(Debug)]
pub struct Host {
    settings: Settings,
    node: Node,
    clock: Clock,
    socket: UdpSocket,
    sequence: u32,
    /// By time, then by order.
    duties: BTreeMap<(Instant, u64), Duty>,
    next_duty: u64,
    early: VecDeque<(Vec<u8>, Dbm)>,
    said: VecDeque<Output>,
    inbox: Receiver<Event>,
    remote: Remote,
    ended: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Host {
    /// Opens the socket for a node that is switched off, and begins to listen.
    pub fn open(settings: Settings, node: Node) -> io::Result<Self> {
        let any = match settings.peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(settings.local.unwrap_or(any))?;
        socket.connect(settings.peer)?;
        let (sender, inbox) = sync_channel(INBOX_MAX);
        let ended = Arc::new(AtomicBool::new(false));
        let source = socket.try_clone()?;
        source.set_read_timeout(Some(READ_TIMEOUT))?;
        let (to, flag) = (sender.clone(), Arc::clone(&ended));
        let reader = thread::Builder::new()
            .name("zep".to_owned())
            .spawn(move || read(&source, &to, &flag))?;
        Ok(Self {
            settings,
            node,
            clock: Clock::start(),
            socket,
            sequence: 0,
            duties: BTreeMap::new(),
            next_duty: 0,
            early: VecDeque::new(),
            said: VecDeque::new(),
            inbox,
            remote: Remote(sender),
            ended,
            reader: Some(reader),
        })
    }

    /// The address of this end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// A handle to this host for other threads.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Switches the node on and lets it live until [`Remote::stop`]. `application` hears all that the node says
    /// and may answer.
    pub fn run(
        &mut self,
        mut application: impl FnMut(Instant, Output) -> Option<Input>,
    ) -> io::Result<()> {
        self.send(Content::Hello(self.settings.node))?;
        self.tell(Input::Boot);
        loop {
            self.catch_up()?;
            if let Some(output) = self.said.pop_front() {
                if let Some(input) = application(self.clock.now(), output) {
                    self.tell(input);
                }
                continue;
            }
            match self.wait() {
                Some(Event::Heard(datagram)) => self.hear(&datagram),
                Some(Event::Do(input)) => self.tell(input),
                Some(Event::Failed(error)) => return Err(error),
                Some(Event::Stop) => return Ok(()),
                None => {}
            }
        }
    }

    /// Waits for an event, but not over the next duty or deadline.
    fn wait(&self) -> Option<Event> {
        let Some(due) = self.next_due() else { return self.inbox.recv().ok() };
        self.inbox.recv_timeout(self.clock.until(due)).ok()
    }

    fn next_due(&self) -> Option<Instant> {
        let duty = self.duties.first_key_value().map(|((due, _), _)| *due);
        lowmesh_machine::earliest(duty, self.node.next_deadline())
    }

    /// Does all that is due.
    fn catch_up(&mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
            let duty = self.duties.first_entry().filter(|duty| duty.key().0 <= now);
            if let Some(duty) = duty {
                match duty.remove() {
                    Duty::Sense => self.radio(csma::Input::Sensed { busy: false }),
                    Duty::Send(octets) => {
                        self.send(Content::Data { lqi: u8::MAX, frame: &octets })?;
                        self.radio(csma::Input::Sent);
                    }
                }
            } else if due(self.node.next_deadline()) {
                self.tell(Input::Deadline);
            } else if self.node.is_listening()
                && let Some((octets, rssi)) = self.early.pop_front()
            {
                let handle = Handle::NONE;
                self.radio(csma::Input::Received { octets: &octets, rssi, handle });
            } else {
                return Ok(());
            }
        }
    }

    /// Tells the node something. What it refuses came too late, such as an answer to a request that is over.
    fn tell(&mut self, input: Input) {
        let _refused = self.node.handle(self.clock.now(), input);
        self.drain();
    }
    fn radio(&mut self, input: csma::Input<'_>) {
        self.node.radio(self.clock.now(), input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.poll_output() {
            let (due, duty) = match output {
                Output::Radio(RadioOrder::Sense { at }) => (at + CCA, Duty::Sense),
                Output::Radio(RadioOrder::Transmit { at, octets, .. }) => {
                    (at + airtime(octets.len()), Duty::Send(octets))
                }
                Output::Radio(RadioOrder::Acknowledge { at, octets, .. }) => {
                    (at, Duty::Send(octets.to_vec()))
                }
                other => {
                    self.said.push_back(other);
                    continue;
                }
            };
            self.next_duty += 1;
            self.duties.insert((due, self.next_duty), duty);
        }
    }

    fn hear(&mut self, datagram: &[u8]) {
        // What does not decode is noise, as it is on the air.
        let Ok(Datagram { channel, content }) = Datagram::parse(datagram) else { return };
        let Content::Data { lqi, frame } = content else { return };
        if channel == Some(self.settings.channel) && self.early.len() < EARLY_MAX {
            self.early.push_back((frame.to_vec(), level(lqi)));
        }
    }

    fn send(&mut self, content: Content<'_>) -> io::Result<()> {
        let mut datagram = Vec::with_capacity(DATAGRAM_OCTETS_MAX);
        let channel = Some(self.settings.channel);
        Datagram { channel, content }.emit(ntp_timestamp(), self.sequence, &mut datagram);
        self.sequence = self.sequence.wrapping_add(1);
        match self.socket.send(&datagram) {
            // Nobody is there yet: a frame into empty air.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // A reader that panicked has said so.
            let _ = reader.join();
        }
    }
}

/// Moves datagrams from the socket to the inbox; what finds no room is lost, as on the air.
fn read(socket: &UdpSocket, inbox: &SyncSender<Event>, ended: &AtomicBool) {
    let mut buffer = [0; DATAGRAM_OCTETS_MAX + 1];
    let mut failure = None;
    while !ended.load(Ordering::Relaxed) {
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
                let _full = inbox.try_send(Event::Heard(buffer[..octets].to_vec()));
            }
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => failure = Some(Event::Failed(error)),
        }
    }
}

/// True for what will not be so the next time.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
    )
}

/// A signal strength for an LQI: ours, -100 dBm for 0 and -40 dBm for 255; ZEP carries no other.
fn level(lqi: u8) -> Dbm {
    Dbm(-100.0 + 60.0 * f64::from(lqi) / 255.0)
}
