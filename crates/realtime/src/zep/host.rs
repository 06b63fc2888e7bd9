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
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use lowmesh_mac::csma;
use lowmesh_mac::frame::airtime;
use lowmesh_mac::params::CCA;
use lowmesh_machine::{Handle, Machine as _, Rejected, debug_assert_accepted};
use lowmesh_stack::Node;
use lowmesh_stack::event::{Input, Output, RadioOrder};
use lowmesh_units::{Channel, Dbm, Duration, Eui64, Instant};

use super::counters::{Counters, Tally};
use super::event::{Event, Loss};
use super::frame::{Content, DATAGRAM_OCTETS_MAX, Datagram};
use super::reader::{Arrival, Reader};
use lowmesh_net::clock::{Clock, ntp_timestamp};

/// Datagrams and inputs that wait for the node: ours, more than one window of fragments.
const INBOX_MAX: usize = 64;
/// Frames that came while the node sent: ours; a node sends for a few milliseconds.
const EARLY_MAX: usize = 16;

/// A dispatcher that was started again knows no node: after this long without a datagram in either direction the node
/// says hello again. Ours.
const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// The ZEP connection of a node.
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

/// The result of [`Host::next`].
#[derive(Debug)]
pub enum Step {
    /// Something happened at this time.
    Happened(Instant, Event),
    /// The time for which the caller wanted to wait is over.
    Due,
    /// [`Remote::stop`] was called.
    Stopped,
}

/// What the driver owes the node's radio.
#[derive(Debug)]
enum Duty {
    Sense,
    Send(Vec<u8>),
}

/// A handle to a running host.
#[derive(Clone, Debug)]
pub struct Remote(SyncSender<Arrival>);

impl Remote {
    /// The application wants something of its node; false when it does not run any more.
    pub fn tell(&self, input: Input) -> bool {
        self.0.send(Arrival::Do(input)).is_ok()
    }
    /// Ends [`Host::run`].
    pub fn stop(&self) {
        // A host that does not run needs no stopping.
        let _ = self.0.send(Arrival::Stop);
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
    /// When the next greeting is due, from [`Host::start`] on.
    next_hello: Option<Instant>,
    /// By time, then by order.
    duties: BTreeMap<(Instant, u64), Duty>,
    next_duty: u64,
    early: VecDeque<(Vec<u8>, Dbm)>,
    happened: VecDeque<(Instant, Event)>,
    tally: Tally,
    inbox: Receiver<Arrival>,
    remote: Remote,
    reader: Reader,
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
        let reader = Reader::start(socket.try_clone()?, sender.clone())?;
        Ok(Self {
            settings,
            node,
            clock: Clock::start(),
            socket,
            sequence: 0,
            next_hello: None,
            duties: BTreeMap::new(),
            next_duty: 0,
            early: VecDeque::new(),
            happened: VecDeque::new(),
            tally: Tally::default(),
            inbox,
            remote: Remote(sender),
            reader,
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

    /// The time since the host was opened.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// The counters since the node was switched on.
    pub fn counters(&self) -> Counters {
        self.tally.counters(&self.node)
    }

    /// Switches the node on and runs it until [`Remote::stop`]. `application` hears all that the node says and may
    /// answer.
    pub fn run(
        &mut self,
        mut application: impl FnMut(Instant, Output) -> Option<Input>,
    ) -> io::Result<()> {
        self.start();
        loop {
            match self.next(None)? {
                Step::Happened(at, Event::Said(output)) => {
                    if let Some(input) = application(at, output) {
                        // What the node refuses came too late, such as an answer to a request that is over.
                        let _refused = self.tell(input);
                    }
                }
                Step::Happened(..) | Step::Due => {}
                Step::Stopped => return Ok(()),
            }
        }
    }

    /// Sends the hello to the dispatcher and switches the node on. [`Host::next`] lets it live from then on.
    pub fn start(&mut self) {
        self.greet();
        let _refused_if_on = self.tell(Input::Boot);
    }

    /// Tells the node something.
    pub fn tell(&mut self, input: Input) -> Result<(), Rejected> {
        let told = self.node.handle(self.clock.now(), input);
        self.drain();
        told
    }

    /// Runs the node until something happens, or until the time `until` of the host's clock.
    pub fn next(&mut self, until: Option<Instant>) -> io::Result<Step> {
        loop {
            self.catch_up();
            if let Some((at, event)) = self.happened.pop_front() {
                return Ok(Step::Happened(at, event));
            }
            if until.is_some_and(|until| until <= self.clock.now()) {
                return Ok(Step::Due);
            }
            match self.wait(until) {
                Some(Arrival::Datagram(datagram)) => self.hear(&datagram),
                Some(Arrival::Do(input)) => {
                    // See `run`.
                    let _refused = self.tell(input);
                }
                Some(Arrival::Failed(error)) => return Err(error),
                Some(Arrival::Stop) => return Ok(Step::Stopped),
                None => {}
            }
        }
    }

    /// Waits for an arrival, but not over the next duty or deadline, nor over `until`.
    fn wait(&self, until: Option<Instant>) -> Option<Arrival> {
        let Some(due) = lowmesh_machine::earliest(self.next_due(), until) else {
            return self.inbox.recv().ok();
        };
        self.inbox.recv_timeout(self.clock.until(due)).ok()
    }

    fn next_due(&self) -> Option<Instant> {
        let duty = self.duties.first_key_value().map(|((due, _), _)| *due);
        let node = lowmesh_machine::earliest(duty, self.node.next_deadline());
        lowmesh_machine::earliest(node, self.next_hello)
    }

    /// Does all that is due.
    fn catch_up(&mut self) {
        loop {
            let now = self.clock.now();
            let due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
            let duty = self.duties.first_entry().filter(|duty| duty.key().0 <= now);
            if let Some(duty) = duty {
                match duty.remove() {
                    Duty::Sense => self.radio(csma::Input::Sensed { busy: false }),
                    Duty::Send(octets) => {
                        let event = match self.send(Content::Data { lqi: u8::MAX, frame: &octets })
                        {
                            Ok(()) => Event::Sent(octets),
                            // A frame into empty air: to the MAC it has left.
                            Err(_) => Event::Lost(Loss::NotSent),
                        };
                        self.note(now, event);
                        self.radio(csma::Input::Sent);
                    }
                }
            } else if due(self.node.next_deadline()) {
                // A node takes every deadline.
                debug_assert_accepted(self.tell(Input::Deadline));
            } else if due(self.next_hello) {
                self.greet();
            } else if self.node.is_listening()
                && let Some((octets, rssi)) = self.early.pop_front()
            {
                self.tally.taken();
                let handle = Handle::NONE;
                self.radio(csma::Input::Received { octets: &octets, rssi, handle });
            } else {
                return;
            }
        }
    }

    fn radio(&mut self, input: csma::Input<'_>) {
        self.node.radio(self.clock.now(), input);
        self.drain();
    }

    fn note(&mut self, now: Instant, event: Event) {
        self.tally.note(&event);
        self.happened.push_back((now, event));
    }

    fn drain(&mut self) {
        let now = self.clock.now();
        for loss in self.tally.losses(&self.node) {
            self.note(now, Event::Lost(loss));
        }
        while let Some(output) = self.node.poll_output() {
            let (due, duty) = match output {
                Output::Radio(RadioOrder::Sense { at }) => (at + CCA, Duty::Sense),
                Output::Radio(RadioOrder::Transmit { at, octets, .. }) => {
                    (at + airtime(octets.len()), Duty::Send(octets))
                }
                Output::Radio(RadioOrder::Acknowledge { at, octets, .. }) => {
                    (at, Duty::Send(octets))
                }
                other => {
                    self.note(now, Event::Said(other));
                    continue;
                }
            };
            self.next_duty += 1;
            self.duties.insert((due, self.next_duty), duty);
        }
    }

    fn hear(&mut self, datagram: &[u8]) {
        let now = self.clock.now();
        self.next_hello = Some(now + HELLO_INTERVAL);
        for _ in 0..self.reader.take_lost() {
            self.note(now, Event::Lost(Loss::InboxFull));
        }
        match self.frame_of(datagram) {
            Ok(Some((octets, level))) => {
                self.note(now, Event::Heard { octets: octets.clone(), level });
                if self.early.len() < EARLY_MAX {
                    self.early.push_back((octets, level));
                } else {
                    self.note(now, Event::Lost(Loss::EarlyFull));
                }
            }
            Ok(None) => {}
            Err(loss) => self.note(now, Event::Lost(loss)),
        }
    }

    /// The frame in a datagram, if it carries one.
    fn frame_of(&self, datagram: &[u8]) -> Result<Option<(Vec<u8>, Dbm)>, Loss> {
        // What does not decode is noise, as it is on the air.
        let Datagram { channel, content } = Datagram::parse(datagram).map_err(|_| Loss::NotZep)?;
        let Content::Data { lqi, frame } = content else { return Ok(None) };
        if channel != Some(self.settings.channel) {
            return Err(Loss::OtherChannel);
        }
        Ok(Some((frame.to_vec(), level(lqi))))
    }

    /// Says hello to the dispatcher.
    fn greet(&mut self) {
        if self.send(Content::Hello(self.settings.node)).is_err() {
            self.note(self.clock.now(), Event::Lost(Loss::NotSent));
        }
    }

    fn send(&mut self, content: Content<'_>) -> io::Result<()> {
        let mut datagram = Vec::with_capacity(DATAGRAM_OCTETS_MAX);
        let channel = Some(self.settings.channel);
        Datagram { channel, content }.emit(ntp_timestamp(), self.sequence, &mut datagram);
        self.sequence = self.sequence.wrapping_add(1);
        // A greeting is due after a silence, whether or not this one arrives.
        self.next_hello = Some(self.clock.now() + HELLO_INTERVAL);
        let sent = match self.socket.send(&datagram) {
            // The error is about an earlier datagram, and the kernel sent nothing this time.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.socket.send(&datagram)
            }
            sent => sent,
        };
        sent.map(|_octets| ())
    }
}

/// A signal strength for an LQI: ours, -100 dBm for 0 and -40 dBm for 255; ZEP carries no other.
fn level(lqi: u8) -> Dbm {
    Dbm(-100.0 + 60.0 * f64::from(lqi) / 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zep::RealTime;
    use lowmesh_lowpan::FragmentMode;
    use lowmesh_stack::Identity;
    use lowmesh_units::{NodeId, PanId, Seed};

    const WAIT: std::time::Duration = std::time::Duration::from_secs(5);

    /// A host whose peer is a socket of the test.
    fn host_and_peer() -> (Host, UdpSocket) {
        let peer = UdpSocket::bind("[::1]:0").expect("a port");
        peer.set_read_timeout(Some(WAIT)).expect("a socket");
        let settings = Settings {
            peer: peer.local_addr().expect("bound"),
            local: None,
            channel: Channel::new(26).expect("a channel"),
            node: NodeId(1).eui64(),
        };
        let config = RealTime::default().config(PanId(0x23), FragmentMode::HopWise);
        let node = Node::alone(&config, Identity::new(NodeId(1).eui64()), Seed(1));
        (Host::open(settings, node.expect("a node")).expect("a socket"), peer)
    }
    fn is_hello(peer: &UdpSocket) -> bool {
        let mut buffer = [0; DATAGRAM_OCTETS_MAX];
        let octets = peer.recv(&mut buffer).expect("a datagram");
        let datagram = Datagram::parse(&buffer[..octets]).expect("ZEP");
        matches!(datagram.content, Content::Hello(node) if node == NodeId(1).eui64())
    }

    #[test]
    fn a_node_that_hears_nothing_says_hello_again() {
        let (mut host, peer) = host_and_peer();
        host.start();
        assert!(is_hello(&peer));
        let next = host.next_hello.expect("a node that is on");
        assert!(next > host.now() + HELLO_INTERVAL - Duration::from_secs(5));
        host.next_hello = Some(host.now());
        let until = host.now() + Duration::from_millis(20);
        while !matches!(host.next(Some(until)), Ok(Step::Due)) {}
        assert!(is_hello(&peer));
        assert!(host.next_hello > Some(next));
    }

    #[test]
    fn a_peer_that_is_not_there_ends_nothing() {
        let (mut host, peer) = host_and_peer();
        drop(peer);
        host.start();
        for _ in 0..5 {
            host.greet();
            let until = host.now() + Duration::from_millis(20);
            while !matches!(host.next(Some(until)).expect("a live host"), Step::Due) {}
        }
    }
}
