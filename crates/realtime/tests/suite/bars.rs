//! What two nodes in real time have to reach under loss, beside an attacker, and in noise.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lowmesh_applications::Clock;
use lowmesh_lowpan::FragmentMode;
use lowmesh_machine::Machine as _;
use lowmesh_net::clock::fresh_seed;
use lowmesh_realtime::zep::{Content, Datagram, Host, RealTime, Remote, Settings};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{Identity, Node};
use lowmesh_units::{Channel, Dbm, Eui64, NodeId, PanId, Purpose, Rng, Seed};
use lowmesh_wire::icmpv6::Echo;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::rfrag::{Part, Rfrag};

use crate::relay::{Loss, Relay};

const PINGS: u16 = 40;
const OCTETS: usize = 1000;
const PAN: PanId = PanId(0x23);

const fn node(index: u16) -> Eui64 {
    NodeId(index).eui64()
}

/// Two nodes; the first one says what it hears.
struct Pair {
    hosts: Vec<(Remote, JoinHandle<()>)>,
    said: Receiver<Output>,
    relay: Relay,
}

impl Pair {
    fn start(mode: FragmentMode, loss: Loss, seed: u64) -> Self {
        let relay = Relay::start(loss, seed);
        let (to_test, said) = channel();
        let host = |index: u16| {
            let config = RealTime::default().config(PAN, mode);
            let identity = Identity::new(node(index));
            let mut machine = Node::alone(&config, identity, fresh_seed()).expect("possible");
            machine.install(Box::new(Clock::default())).expect("alone");
            let channel = Channel::new(26).expect("of the band");
            let peer = relay.address;
            let settings = Settings { peer, local: None, channel, node: node(index) };
            let mut host = Host::open(settings, machine).expect("loopback is there");
            let remote = host.remote();
            let listener = (index == 0).then(|| to_test.clone());
            let thread = thread::spawn(move || {
                host.run(|_, output| {
                    if let (Some(listener), Output::Pong { .. }) = (&listener, &output) {
                        // The test may have heard enough.
                        let _ = listener.send(output.clone());
                    }
                    output.not_found()
                })
                .expect("the socket works");
            });
            (remote, thread)
        };
        let hosts = (0..2).map(host).collect();
        Self { hosts, said, relay }
    }

    /// How many of some large pings are answered, one after the other.
    #[allow(clippy::disallowed_methods, reason = "a test over real sockets has a real deadline")]
    fn ping(&self) -> u16 {
        let mut answered = vec![0; usize::from(PINGS)];
        for sequence in 0..PINGS {
            let echo = Echo { identifier: 7, sequence, data: data(sequence) };
            let to = Address::link_local(node(1));
            assert!(self.hosts[0].0.tell(Input::Ping { to, echo }), "the node runs");
            let end = Instant::now() + Duration::from_secs(6);
            while answered[usize::from(sequence)] == 0 {
                let left = end.saturating_duration_since(Instant::now());
                let Ok(output) = self.said.recv_timeout(left) else { break };
                note(&output, &mut answered);
            }
        }
        thread::sleep(Duration::from_millis(500));
        while let Ok(output) = self.said.try_recv() {
            note(&output, &mut answered);
        }
        assert!(answered.iter().all(|times| *times <= 1), "duplicates: {answered:?}");
        answered.iter().sum()
    }

    fn stop(self) {
        for (remote, thread) in self.hosts {
            remote.stop();
            thread.join().expect("no host panics");
        }
    }
}

fn data(sequence: u16) -> Vec<u8> {
    (0..OCTETS).map(|at| (at * 31 + at / 251 + usize::from(sequence)) as u8).collect()
}

fn note(output: &Output, answered: &mut [u16]) {
    let Output::Pong { echo, .. } = output else { return };
    assert_eq!(echo.data, data(echo.sequence), "the data of ping {}", echo.sequence);
    answered[usize::from(echo.sequence)] += 1;
}

/// An attacker that sends half datagrams to both nodes, 40 a second each.
struct Attacker {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Attacker {
    fn start(air: &Relay) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.connect(air.address).expect("it is there");
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let mut sent = 0;
            while !flag.load(Ordering::Relaxed) {
                for to in 0..2 {
                    for half in [half_datagram(sent as u16), half_recoverable(sent as u8)] {
                        say(&socket, &data_frame(node(66), node(to), sent as u8, &half));
                    }
                }
                sent += 1;
                thread::sleep(Duration::from_millis(25));
            }
            sent
        });
        Self { ended, thread }
    }
    fn stop(self) {
        self.ended.store(true, Ordering::Relaxed);
        assert!(self.thread.join().expect("it does not panic") > 20, "it was there");
    }
}

fn say(socket: &UdpSocket, frame: &[u8]) {
    let mut datagram = Vec::new();
    let content = Content::Data { lqi: 255, frame };
    Datagram { channel: Channel::new(26), content }.emit(0, 0, &mut datagram);
    let _ = socket.send(&datagram);
}

/// A data frame of the 2006 edition between two EUI-64s of one PAN, which asks for no acknowledgement.
fn data_frame(from: Eui64, to: Eui64, sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x41, 0xdc, sequence];
    frame.extend_from_slice(&PAN.0.to_le_bytes());
    frame.extend(to.0.iter().rev());
    frame.extend(from.0.iter().rev());
    frame.extend_from_slice(payload);
    frame
}

/// The first fragment of a datagram of 1280 octets that never ends: 40 octets of IPv6 and 8 behind them.
fn half_datagram(tag: u16) -> Vec<u8> {
    let mut fragment = vec![0xc0 | 5, 0];
    fragment.extend_from_slice(&tag.to_be_bytes());
    fragment.extend_from_slice(&[0x41, 0x60, 0, 0, 0, 0x04, 0xd8, 17, 64]);
    fragment.extend_from_slice(&Address::link_local(node(66)).0);
    fragment.extend_from_slice(&Address::link_local(node(1)).0);
    fragment.extend_from_slice(&[0; 8]);
    fragment
}

fn half_recoverable(datagram_tag: u8) -> Vec<u8> {
    let mut fragment = Vec::new();
    let part = Part::First { datagram_size: 1200 };
    Rfrag { congestion: false, datagram_tag, ack_request: false, fragment_size: 48, part }
        .emit(&mut fragment);
    fragment.extend_from_slice(&half_datagram(0)[4..52]);
    fragment
}

fn answered(mode: FragmentMode, loss: Loss, seed: u64, is_attacked: bool) -> u16 {
    let pair = Pair::start(mode, loss, seed);
    let attacker = is_attacked.then(|| Attacker::start(&pair.relay));
    let answered = pair.ping();
    if let Some(attacker) = attacker {
        attacker.stop();
    }
    pair.stop();
    println!("{mode:?}, {loss:?}, attacked {is_attacked}: {answered} of {PINGS}");
    answered
}

fn percent(of: u16) -> u16 {
    (PINGS * of).div_ceil(100)
}

#[test]
fn recovery_carries_nine_in_ten_large_pings_with_a_twentieth_of_fragments_lost_for_good() {
    assert!(answered(FragmentMode::Recovered, Loss::Fragments(0.05), 1, false) >= percent(90));
}

#[test]
fn frames_sent_again_carry_large_pings_hop_wise_where_a_fifth_of_frames_is_lost() {
    assert!(answered(FragmentMode::HopWise, Loss::Frames(0.2), 2, false) >= percent(85));
}

#[test]
fn recovery_carries_nearly_all_large_pings_where_a_fifth_of_frames_is_lost() {
    assert!(answered(FragmentMode::Recovered, Loss::Frames(0.2), 3, false) >= percent(95));
}

#[test]
fn half_datagrams_of_an_attacker_leave_four_in_five_recovered_pings() {
    assert!(answered(FragmentMode::Recovered, Loss::Fragments(0.05), 4, true) >= percent(80));
}

#[test]
fn half_datagrams_of_an_attacker_leave_four_in_five_hop_wise_pings() {
    assert!(answered(FragmentMode::HopWise, Loss::Frames(0.2), 5, true) >= percent(80));
}

/// Octets that the process has in memory.
#[cfg(target_os = "linux")]
fn resident_octets() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// A node in virtual time, so that it hears all of it.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_flat_over_a_hundred_thousand_frames_of_noise() {
    use lowmesh_mac::csma::Input as RadioInput;
    use lowmesh_machine::Handle;

    let config = RealTime::default().config(PAN, FragmentMode::Recovered);
    let mut machine =
        Node::alone(&config, Identity::new(node(1)), Seed(1)).expect("possible settings");
    let mut rng = Rng::stream(Seed(2), NodeId(1), Purpose::Lowpan);
    let mut now = lowmesh_units::Instant::ZERO;
    machine.handle(now, Input::Boot).expect("it is off");
    let mut early = 0;
    for frame in 0..100_000_u32 {
        now += lowmesh_units::Duration::from_millis(2);
        while let Some(due) = machine.next_deadline().filter(|due| *due <= now) {
            machine.handle(due, Input::Deadline).expect("it is due");
        }
        let octets = noise(&mut rng, frame);
        let heard =
            RadioInput::Received { octets: &octets, rssi: Dbm(-60.0), handle: Handle::NONE };
        machine.radio(now, heard);
        // The radio sends whatever it is given at once.
        for _ in 0..64 {
            let mut answer = None;
            while let Some(output) = machine.poll_output() {
                if let Output::Radio(order) = output {
                    use lowmesh_stack::event::RadioOrder;
                    answer = Some(match order {
                        RadioOrder::Sense { .. } => RadioInput::Sensed { busy: false },
                        _ => RadioInput::Sent,
                    });
                }
            }
            let Some(answer) = answer else { break };
            machine.radio(now, answer);
        }
        if frame == 20_000 {
            early = resident_octets();
        }
    }
    let grown = resident_octets().saturating_sub(early);
    assert!(grown < 4 << 20, "{grown} octets more after 80,000 frames");
}

/// A frame whose head is one that the node takes in, and whose rest is anything.
#[cfg(target_os = "linux")]
fn noise(rng: &mut Rng, number: u32) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..rng.next_u32() % 90).map(|_| rng.next_u32() as u8).collect();
    match number % 6 {
        0 => payload = half_datagram(number as u16),
        1 => payload = half_recoverable(number as u8),
        2 => payload.splice(0..0, [0xe0 | 5, 0]).for_each(drop),
        3 => payload.splice(0..0, [0xe8]).for_each(drop),
        4 => payload.splice(0..0, [0x7a, 0x33, 0x3a]).for_each(drop),
        _ => {}
    }
    let from = node((rng.next_u32() % 5000) as u16 + 10);
    data_frame(from, node(1), number as u8, &payload)
}
