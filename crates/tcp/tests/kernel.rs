//! Our sender beside a Linux 6.18 kernel on an emulated link (30 kbit/s and 400 ms down, 60 kbit/s and 200 ms up, MTU 296),
//! recorded by us: the same acknowledgements at the same times must make it send the same segments, and simulated runs
//! must take as long as the kernel's.

mod pair;

use std::io::Read;

use lowmesh_congestion::Window;
use lowmesh_congestion::window::{bbr, newreno};
use lowmesh_machine::Machine;
use lowmesh_registry::Row;
use lowmesh_tcp::{Config, Connection, InitialNumbers, Input, Output, Profile};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::checksum::pseudo_header_checksum_v4;
use lowmesh_wire::ipv6::next_header;
use lowmesh_wire::tcp::{CHECKSUM_OFFSET, Ends, Header, Segment};
use lowmesh_wired::Loss;
use pair::{Pair, nb_iot};

/// Octets of a request and of its answer.
const REQUEST: usize = 20;
const ANSWER: usize = 262;
/// How far apart two departures of the same segment may be.
const TOLERANCE: Duration = Duration::from_millis(10);

/// One line of a recording: microseconds, direction as the server sees it, header, octets of data.
struct Line {
    at_us: u64,
    arrives: bool,
    header: Header,
    payload_octets: usize,
}

fn recording(gz: &[u8]) -> Vec<Line> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(gz).read_to_string(&mut text).expect("our own file");
    text.lines().map(line).collect()
}

fn line(text: &str) -> Line {
    let fields: Vec<&str> = text.split(' ').collect();
    let digits = fields[2].as_bytes().chunks(2);
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16);
    let mut bytes: Vec<u8> = digits.map(|pair| octet(pair).expect("hex")).collect();
    let (source, destination) = ([10, 9, 0, 2], [10, 9, 0, 1]);
    // The data is not recorded, so the checksum is made again without it.
    bytes[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].fill(0);
    let sum = pseudo_header_checksum_v4(source, destination, next_header::TCP, &bytes);
    bytes[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&sum.to_be_bytes());
    let ends = Ends::V4(source, destination);
    Line {
        at_us: fields[0].parse().expect("a number"),
        arrives: fields[1] == "in",
        header: Segment::parse(&ends, &bytes).expect("the kernel's header").header,
        payload_octets: fields[3].parse().expect("a number"),
    }
}

/// A segment with data: when it left, its sequence number from the SYN on, and its octets.
type Departure = (Instant, u32, usize);

/// The clock of the kernel's timestamps: `time(line)` and the offset that make ours tick with it.
struct Clock {
    offset_us: u64,
    base: u32,
}

impl Clock {
    /// A timestamp is at most as late as the segment, and the tightest one shows where its millisecond begins.
    fn of(lines: &[Line]) -> Self {
        let first = lines[1].header.options.timestamps.expect("timestamps").value;
        let start_us = |line: &Line| {
            let value = line.header.options.timestamps.expect("timestamps").value;
            i64::from(value.wrapping_sub(first).cast_signed()) * 1_000 - line.at_us.cast_signed()
        };
        let sent = lines.iter().filter(|line| !line.arrives);
        // The recorder sees a segment about a tenth of a millisecond after the stack has stamped it.
        let latest = sent.map(start_us).max().expect("segments") - 120;
        let offset_us = latest.rem_euclid(1_000).cast_unsigned();
        let base = first.wrapping_add((latest.div_euclid(1_000) as i32).cast_unsigned());
        Self { offset_us, base: base.wrapping_sub(1_000) }
    }
    fn at(&self, line: &Line) -> Instant {
        Instant::from_secs(1) + Duration::from_micros(line.at_us + self.offset_us)
    }
}

/// A server that answers requests, driven by the recording.
struct Server {
    connection: Connection,
    iss: u32,
    read: usize,
    written: usize,
    departures: Vec<Departure>,
}

impl Server {
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.connection.poll_output() {
                match output {
                    Output::Segment(segment) if !segment.payload.is_empty() => {
                        let sequence = segment.header.sequence.wrapping_sub(self.iss);
                        self.departures.push((now, sequence, segment.payload.len()));
                    }
                    Output::Data(data) => self.read += data.len(),
                    _ => {}
                }
            }
            if self.connection.readable() > 0 {
                self.connection.handle(now, Input::Read(usize::MAX)).expect("there is data");
            } else if self.written < self.read / REQUEST * ANSWER
                && self.connection.room() >= ANSWER
            {
                self.connection.handle(now, Input::Write(&[b'd'; ANSWER])).expect("there is room");
                self.written += ANSWER;
            } else {
                return;
            }
        }
    }
}

/// What the kernel sent, and what we send for the same acknowledgements.
fn replay(
    gz: &[u8],
    window: &'static Row<dyn Window>,
    sack: bool,
) -> (Vec<Departure>, Vec<Departure>) {
    let lines = recording(gz);
    let clock = Clock::of(&lines);
    let iss = lines[1].header.sequence;
    let profile = Profile { window, sack, ..Profile::PESOLA };
    let initial = Some(InitialNumbers { sequence: iss, clock: clock.base });
    let config = Config { initial, ..Config::new(profile, 5_683, 0) };
    let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
    let connection = Connection::new(config, &mut rng).expect("a valid profile");
    let mut server = Server { connection, iss, read: 0, written: 0, departures: Vec::new() };
    server.connection.handle(Instant::ZERO, Input::Listen).expect("it is closed");
    let mut kernel = Vec::new();
    for line in &lines {
        let now = clock.at(line);
        if !line.arrives {
            if line.payload_octets > 0 {
                let sequence = line.header.sequence.wrapping_sub(iss);
                kernel.push((now, sequence, line.payload_octets));
            }
            continue;
        }
        while let Some(due) = server.connection.next_deadline().filter(|due| *due < now) {
            server.connection.handle(due, Input::Deadline).expect("accepted");
            server.settle(due);
        }
        let payload = vec![b'r'; line.payload_octets];
        let input = Input::Segment { header: &line.header, payload: &payload };
        server.connection.handle(now, input).expect("segments are never rejected");
        server.settle(now);
    }
    (kernel, server.departures)
}

/// Segments that are the same at the same place and time.
fn equal(kernel: &[Departure], ours: &[Departure]) -> usize {
    let is_equal = |(theirs, ours): &(&Departure, &Departure)| {
        let apart = theirs.0.since(ours.0).max(ours.0.since(theirs.0));
        theirs.1 == ours.1 && theirs.2 == ours.2 && apart <= TOLERANCE
    };
    kernel.iter().zip(ours).filter(is_equal).count()
}

#[test]
fn new_reno_sends_every_segment_when_the_kernel_did() {
    let recordings: [(&str, &[u8], usize); 4] = [
        ("2500", include_bytes!("vectors/newreno-2500.txt.gz"), 1),
        ("28200", include_bytes!("vectors/newreno-28200.txt.gz"), 0),
        ("14100, 2 % lost", include_bytes!("vectors/newreno-14100-loss-2.txt.gz"), 2),
        ("endless", include_bytes!("vectors/newreno-endless.txt.gz"), 0),
    ];
    for (name, gz, apart_max) in recordings {
        let (kernel, ours) = replay(gz, &newreno::ROW, false);
        assert_eq!(kernel.len(), ours.len(), "{name}");
        let apart = kernel.len() - equal(&kernel, &ours);
        println!("{name}: {} segments, {apart} apart", kernel.len());
        assert!(apart <= apart_max, "{name}: {apart} of {}", kernel.len());
    }
}

#[test]
fn rack_sends_every_segment_when_the_kernel_did() {
    let gz = include_bytes!("vectors/newreno-sack-14100-loss-5.txt.gz");
    let (kernel, ours) = replay(gz, &newreno::ROW, true);
    println!("{} segments, {} equal", kernel.len(), equal(&kernel, &ours));
    assert_eq!((kernel.len(), equal(&kernel, &ours)), (ours.len(), kernel.len()));
}

/// The phase of ProbeBW is random, so only Startup has the same times.
#[test]
fn bbr_sends_the_same_segments_and_in_startup_when_the_kernel_did() {
    let (kernel, ours) = replay(include_bytes!("vectors/bbr-14100.txt.gz"), &bbr::ROW, false);
    let segments = |departures: &[Departure]| -> Vec<(u32, usize)> {
        departures.iter().map(|(_, sequence, octets)| (*sequence, *octets)).collect()
    };
    assert_eq!(segments(&kernel), segments(&ours));
    assert_eq!(equal(&kernel[..29], &ours[..29]), 29);
}

/// Completion times of simulated runs, sorted.
fn simulate(
    window: &'static Row<dyn Window>,
    queue_octets: u64,
    loss: Loss,
    runs: u64,
) -> Vec<f64> {
    let mut times: Vec<f64> = (0..runs)
        .map(|seed| {
            let client = Profile { window: &newreno::ROW, ..Profile::PESOLA };
            let server = Profile { window, ..Profile::PESOLA };
            let mut pair = Pair::new([client, server], nb_iot(queue_octets, loss), seed);
            pair.answer = Some((REQUEST, ANSWER));
            pair.ends[0].to_send = vec![b'r'; 400 * REQUEST];
            pair.ends[0].write_octets = 400 * REQUEST;
            pair.ends[0].closes = false;
            pair.ends[1].closes = false;
            pair.connect();
            pair.run_until(Instant::from_secs(900), |pair| {
                pair.ends[0].received.len() == 400 * ANSWER
            });
            pair.now.as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// How a cell is judged.
enum Near {
    /// The median of the simulated runs lies so near to the kernel's.
    Share(f64),
    /// The kernel's median lies among the simulated runs: it comes of 3 runs that differ by half.
    Range,
}

/// Window, queue in octets, loss, the kernel's median in seconds, and how a simulated one is judged.
type Cell = (&'static Row<dyn Window>, u64, Loss, f64, Near);

/// The kernel's medians are those of 1 to 3 runs each, and of 13 for New Reno with 28,200 octets; ours of 15 runs.
#[test]
fn simulated_runs_take_as_long_as_the_kernels() {
    use Near::{Range, Share};
    let none = Loss::None;
    let low = Loss::Independent { probability: 0.02 };
    let cells: [Cell; 16] = [
        (&newreno::ROW, 2_500, none, 40.4, Share(0.03)),
        (&newreno::ROW, 14_100, none, 59.8, Share(0.03)),
        (&newreno::ROW, 28_200, none, 102.0, Share(0.02)),
        (&newreno::ROW, 1_410_000, none, 35.7, Share(0.01)),
        (&bbr::ROW, 2_500, none, 69.8, Share(0.1)),
        (&bbr::ROW, 14_100, none, 38.0, Share(0.02)),
        (&bbr::ROW, 28_200, none, 38.1, Share(0.02)),
        (&bbr::ROW, 1_410_000, none, 37.6, Share(0.02)),
        (&newreno::ROW, 2_500, low, 45.4, Range),
        (&newreno::ROW, 14_100, low, 42.9, Range),
        (&newreno::ROW, 28_200, low, 46.2, Range),
        (&newreno::ROW, 1_410_000, low, 46.1, Range),
        (&bbr::ROW, 2_500, low, 72.9, Range),
        (&bbr::ROW, 14_100, low, 40.0, Range),
        (&bbr::ROW, 28_200, low, 40.0, Range),
        (&bbr::ROW, 1_410_000, low, 39.4, Range),
    ];
    for (window, queue, loss, kernel, near) in cells {
        let times = simulate(window, queue, loss, 15);
        let (least, median, most) = (times[0], times[7], times[14]);
        let cell = format!(
            "{} {queue} {loss:?}: {median:.1} ({least:.1} to {most:.1}), kernel {kernel}",
            window.name
        );
        println!("{cell}");
        match near {
            Share(share) => assert!((median / kernel - 1.0).abs() <= share, "{cell}"),
            Range => assert!((least..=most).contains(&kernel), "{cell}"),
        }
    }
}
