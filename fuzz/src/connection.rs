//! A TCP connection among peers that send anything: segments near the numbers that it expects, writes, reads, and the
//! passing of time in the order that a case spells out.
//!
//! ```text
//!   a case:  | who opens, which window (1) | steps |
//!   a step:  | what (1) | sequence (2) | acknowledgment (2) | control (1) | octets of data (1) |
//! ```

use lowmesh_congestion::Window;
use lowmesh_machine::Machine;
use lowmesh_registry::Algorithm;
use lowmesh_tcp::{Config, Connection, Input, KeepAlive, Output, Profile};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::tcp::{Control, Header, Options, SackBlock, Timestamps};

use crate::target::Target;

/// Octets of a step.
const STEP: usize = 7;
/// Deadlines in a row at one time; more would mean that time stands still.
const DEADLINES_AT_ONCE_MAX: u32 = 32;
/// Bits of the control octet (RFC 9293 s3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

pub fn targets() -> Vec<Target> {
    vec![Target { name: "tcp_connection", corpus: cases(), accepts: play }]
}

fn step(what: u8, sequence: i16, acknowledgment: i16, control: u8, octets: u8) -> Vec<u8> {
    let (sequence, acknowledgment) = (sequence.to_be_bytes(), acknowledgment.to_be_bytes());
    [&[what], &sequence[..], &acknowledgment[..], &[control, octets]].concat()
}

/// Handshakes, data in and out of order, losses, timeouts and endings.
fn cases() -> Vec<Vec<u8>> {
    let segment = |sequence, acknowledgment, control, octets| {
        step(0, sequence, acknowledgment, control, octets)
    };
    let answer = |acknowledgment| segment(0, acknowledgment, ACK, 0);
    let (write, read, close, wait) =
        (step(2, 0, 0, 0, 255), step(3, 0, 0, 0, 255), step(4, 0, 0, 0, 0), step(1, 0, 0, 0, 0));
    vec![
        [&[0][..], &segment(0, 0, SYN | ACK, 0), &write, &answer(0), &answer(200), &close].concat(),
        [&[1][..], &segment(0, 0, SYN, 0), &answer(0), &segment(10, 0, ACK, 10)].concat(),
        [&[9][..], &segment(0, 0, SYN, 0), &answer(0), &write, &answer(-300), &answer(-300), &wait]
            .concat(),
        [
            &[0][..],
            &segment(0, 0, SYN | ACK, 0),
            &segment(0, 0, ACK | FIN, 90),
            &read,
            &close,
            &wait,
        ]
        .concat(),
        [&[3][..], &segment(0, 0, SYN, 0), &answer(0), &segment(0, 0, RST, 0), &wait].concat(),
        recovery(),
    ]
}

/// Without SACK: a flight of which nothing arrives, duplicates, and acknowledgements of parts of segments.
fn recovery() -> Vec<u8> {
    let answer = |acknowledgment| step(0, 0, acknowledgment, ACK, 0);
    let mut case = [&[3][..], &step(0, 0, 0, SYN, 0), &answer(0)].concat();
    (0..8).for_each(|_| case.extend(step(2, 0, 0, 0, 255)));
    for acknowledgment in [-2_040, -2_040, -2_040, -2_040, -1_674, -1_440, -800, 0] {
        case.extend(answer(acknowledgment));
    }
    case
}

/// One connection, and what its last segment said.
struct Play {
    connection: Connection,
    profile: Profile,
    now: Instant,
    next: u32,
    expected: u32,
    clock: u32,
}

/// Plays a case; true if no step was cut off.
fn play(octets: &[u8]) -> bool {
    let Some((&first, mut rest)) = octets.split_first() else { return false };
    let windows = <dyn Window>::BUILTIN;
    let profile = Profile {
        window: windows[usize::from(first >> 3) % windows.len()],
        sack: first & 2 == 0,
        timestamps: first & 4 == 0,
        keep_alive: Some(KeepAlive::LINUX),
        ..Profile::PESOLA
    };
    let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
    let config = Config::new(profile, 5_683, 40_000);
    let connection = Connection::new(config, &mut rng).expect("a valid profile");
    let now = Instant::from_secs(1);
    let mut play = Play { connection, profile, now, next: 0, expected: 1_000, clock: 1 };
    let opening = if first & 1 == 0 { Input::Open } else { Input::Listen };
    play.connection.handle(now, opening).expect("it is closed");
    play.settle();
    while let Some((step, next)) = rest.split_at_checked(STEP) {
        play.step(step);
        rest = next;
    }
    rest.is_empty()
}

impl Play {
    fn step(&mut self, step: &[u8]) {
        let number = |at: usize| i16::from_be_bytes([step[at], step[at + 1]]);
        let (sequence, acknowledgment) = (number(1), number(3));
        let octets = usize::from(step[6]);
        match step[0] & 7 {
            1 => self.wait(),
            // What the state does not allow is rejected, and changes nothing.
            2 => {
                let data = vec![7; octets.min(self.connection.room())];
                let _rejected = self.connection.handle(self.now, Input::Write(&data));
            }
            3 => drop(self.connection.handle(self.now, Input::Read(octets))),
            4 => drop(self.connection.handle(self.now, Input::Close)),
            5 => self.now += Duration::from_millis(u64::from(sequence.unsigned_abs())),
            what => {
                let header = self.header(what, sequence, acknowledgment, step[5]);
                let payload = vec![7; octets];
                let input = Input::Segment { header: &header, payload: &payload };
                self.connection.handle(self.now, input).expect("segments are never rejected");
            }
        }
        self.settle();
    }
    fn header(&mut self, what: u8, sequence: i16, acknowledgment: i16, control: u8) -> Header {
        let near = |number: u32, offset: i16| number.wrapping_add_signed(i32::from(offset));
        self.clock += 1;
        let mut options = Options::default();
        if self.profile.timestamps {
            options.timestamps = Some(Timestamps { value: self.clock, echo: self.clock });
        }
        if control & SYN != 0 {
            options.mss = Some(256);
            options.sack_permitted = true;
        } else if what & 1 == 1 {
            let left = near(self.next, acknowledgment);
            options.sack.push(SackBlock { left, right: left.wrapping_add(244) });
        }
        let control = Control {
            fin: control & FIN != 0,
            syn: control & SYN != 0,
            rst: control & RST != 0,
            ack: control & ACK != 0,
            ..Control::default()
        };
        Header {
            source_port: 40_000,
            destination_port: 5_683,
            sequence: near(self.expected, sequence),
            acknowledgment: near(self.next, acknowledgment),
            control,
            window: 60_000,
            options,
            ..Header::default()
        }
    }
    /// The next deadline comes.
    fn wait(&mut self) {
        let Some(due) = self.connection.next_deadline() else { return };
        self.now = self.now.max(due);
        for _ in 0..DEADLINES_AT_ONCE_MAX {
            self.connection
                .handle(self.now, Input::Deadline)
                .expect("a deadline is never rejected");
            self.settle();
            if self.connection.next_deadline().is_none_or(|due| due > self.now) {
                return;
            }
        }
        panic!("the deadline does not move: {:?}", self.connection);
    }
    fn settle(&mut self) {
        while let Some(output) = self.connection.poll_output() {
            let Output::Segment(segment) = output else { continue };
            let header = segment.header;
            assert!(segment.payload.len() <= usize::from(self.profile.mss));
            let length = segment.payload.len() as u32
                + u32::from(header.control.syn)
                + u32::from(header.control.fin);
            self.next = header.sequence.wrapping_add(length);
            if header.control.ack {
                self.expected = header.acknowledgment;
            }
        }
        assert!(self.connection.readable() <= self.profile.receive_buffer_octets as usize);
        assert!(self.connection.room() <= self.profile.send_buffer_octets as usize);
    }
}
