//! What two nodes in real time have to reach under loss, beside an attacker, and in noise.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lowmesh_applications::Clock;
use lowmesh_lowpan::FragmentMode;
use lowmesh_machine::Machine as _;
use lowmesh_net::clock::fresh_seed;
use lowmesh_realtime::zep::{Host, RealTime, Remote, Settings};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{Identity, Node};
use lowmesh_units::{Channel, Dbm, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::icmpv6::Echo;
use lowmesh_wire::ipv6::Address;

use crate::attacker::{Attack, Attacker, PAN, data_frame, half_datagram, half_recoverable, node};
use crate::relay::{Loss, Relay};

const PINGS: u16 = 40;
const OCTETS: usize = 1000;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(6);

/// When the next ping leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// When the one before is answered, or given up.
    Turns,
    /// After this time, whether or not those before are answered.
    Every(Duration),
}

const CONCURRENT: Pace = Pace::Every(Duration::from_millis(500));

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

    /// How often each of some large pings is answered.
    #[allow(clippy::disallowed_methods, reason = "a test over real sockets has a real deadline")]
    fn ping(&self, pace: Pace) -> Vec<u16> {
        let mut answered = vec![0; usize::from(PINGS)];
        for sequence in 0..PINGS {
            let echo = Echo { identifier: 7, sequence, data: data(sequence) };
            let to = Address::link_local(node(1));
            assert!(self.hosts[0].0.tell(Input::Ping { to, echo }), "the node runs");
            let end = Instant::now()
                + match pace {
                    Pace::Turns => PATIENCE,
                    Pace::Every(span) => span,
                };
            while pace != Pace::Turns || answered[usize::from(sequence)] == 0 {
                if !self.hear(end, &mut answered) {
                    break;
                }
            }
        }
        let end = Instant::now()
            + match pace {
                Pace::Turns => Duration::from_millis(500),
                Pace::Every(_) => PATIENCE,
            };
        while answered.contains(&0) && self.hear(end, &mut answered) {}
        while let Ok(output) = self.said.try_recv() {
            note(&output, &mut answered);
        }
        answered
    }

    /// Notes one answer; false if none comes until `end`.
    #[allow(clippy::disallowed_methods, reason = "a test over real sockets has a real deadline")]
    fn hear(&self, end: Instant, answered: &mut [u16]) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(output) = self.said.recv_timeout(left) else { return false };
        note(&output, answered);
        true
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

/// An attack with so many source addresses.
type Attacked = Option<(Attack, u32)>;

fn answered(mode: FragmentMode, loss: Loss, seed: u64, pace: Pace, attacked: Attacked) -> u16 {
    let pair = Pair::start(mode, loss, seed);
    let attacker =
        attacked.map(|(attack, addresses)| Attacker::start(&pair.relay, attack, addresses));
    let times = pair.ping(pace);
    // A packet whose last acknowledgements were all lost begins again. Without an attacker that is not to be expected.
    let is_often = attacked.is_none() && times.iter().any(|times| *times > 1);
    assert!(!is_often, "duplicates: {times:?}");
    let answered = times.iter().filter(|times| **times > 0).count() as u16;
    if let Some(attacker) = attacker {
        attacker.stop();
    }
    pair.stop();
    println!("{mode:?}, {loss:?}, {pace:?}, attacked {attacked:?}: {answered} of {PINGS}");
    answered
}

fn percent(of: u16) -> u16 {
    (PINGS * of).div_ceil(100)
}

#[test]
fn recovery_carries_nine_in_ten_large_pings_with_a_twentieth_of_fragments_lost_for_good() {
    let (mode, loss) = (FragmentMode::Recovered, Loss::Fragments(0.05));
    assert!(answered(mode, loss, 1, Pace::Turns, None) >= percent(90));
}

#[test]
fn frames_sent_again_carry_large_pings_hop_wise_where_a_fifth_of_frames_is_lost() {
    let (mode, loss) = (FragmentMode::HopWise, Loss::Frames(0.2));
    assert!(answered(mode, loss, 2, Pace::Turns, None) >= percent(85));
}

#[test]
fn recovery_carries_nearly_all_large_pings_where_a_fifth_of_frames_is_lost() {
    let (mode, loss) = (FragmentMode::Recovered, Loss::Frames(0.2));
    assert!(answered(mode, loss, 3, Pace::Turns, None) >= percent(95));
}

/// Large pings in recoverable fragments beside an attacker, where a twentieth of the fragments is lost for good; a pace and
/// the addresses of the attacker for each run.
fn assert_nine_in_ten_beside(attack: Attack, variants: &[(Pace, u32)]) {
    let (mode, loss) = (FragmentMode::Recovered, Loss::Fragments(0.05));
    let run = |(pace, addresses): (Pace, u32)| {
        thread::spawn(move || answered(mode, loss, 4, pace, Some((attack, addresses))))
    };
    let runs: Vec<_> = variants.iter().copied().map(run).collect();
    let counts: Vec<u16> =
        runs.into_iter().map(|run| run.join().expect("no node panics")).collect();
    assert!(counts.iter().all(|count| *count >= percent(90)), "{attack:?}: {counts:?}");
}

/// An attacker with one address and with many, pings one after the other and concurrent ones.
const ALL: [(Pace, u32); 3] = [(Pace::Turns, 1), (CONCURRENT, 1), (CONCURRENT, 256)];

#[test]
fn half_datagrams_of_an_attacker_leave_nine_in_ten_recovered_pings() {
    assert_nine_in_ten_beside(Attack::HalfDatagrams, &ALL);
}

#[test]
fn half_datagrams_that_ask_for_acknowledgements_leave_nine_in_ten_recovered_pings() {
    assert_nine_in_ten_beside(Attack::AskingHalves, &ALL);
}

#[test]
fn pings_of_an_attacker_leave_nine_in_ten_recovered_pings() {
    assert_nine_in_ten_beside(Attack::Pings, &ALL);
}

#[test]
fn solicitations_of_an_attacker_leave_nine_in_ten_recovered_pings() {
    assert_nine_in_ten_beside(Attack::Solicitations, &ALL);
}

#[test]
fn half_datagrams_of_an_attacker_leave_four_in_five_hop_wise_pings() {
    let (mode, loss) = (FragmentMode::HopWise, Loss::Frames(0.2));
    let attacked = Some((Attack::HalfDatagrams, 1));
    assert!(answered(mode, loss, 5, Pace::Turns, attacked) >= percent(80));
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
        1 => payload = half_recoverable(number as u8, false),
        2 => payload.splice(0..0, [0xe0 | 5, 0]).for_each(drop),
        3 => payload.splice(0..0, [0xe8]).for_each(drop),
        4 => payload.splice(0..0, [0x7a, 0x33, 0x3a]).for_each(drop),
        _ => {}
    }
    let from = node((rng.next_u32() % 5000) as u16 + 10);
    data_frame(from, node(1), number as u8, &payload)
}
