//! Our sender beside a Linux 6.18 kernel on an emulated link (30 kbit/s and 400 ms down, 60 kbit/s and 200 ms up, MTU 296),
//! recorded by us: the same acknowledgements at the same times must make it send the same segments, and simulated runs
//! must take as long as the kernel's.

use std::cmp::Ordering;
use std::io::Read;

use lowmesh_congestion::Window;
use lowmesh_congestion::window::{bbr, cubic, newreno};
use lowmesh_machine::Machine;
use lowmesh_registry::Row;
use lowmesh_tcp::{Config, Connection, InitialNumbers, Input, Output, Profile};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::checksum::pseudo_header_checksum_v4;
use lowmesh_wire::ipv6::next_header;
use lowmesh_wire::tcp::{CHECKSUM_OFFSET, Ends, Header, Segment};
use lowmesh_wired::Loss;

use crate::pair::{Pair, nb_iot};

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

/// How late a timer of the kernel may be that was set `span` before: its wheel has coarser slots for longer times (64
/// slots of a tick, then of 8 ticks, of 64, of 512).
fn wheel_slot(span: Duration) -> Duration {
    let tick = Duration::from_millis(4);
    let slots = [(256, 1), (2_048, 8), (16_384, 64)];
    let slot = slots.iter().find(|(below_ms, _)| span < Duration::from_millis(*below_ms));
    tick * slot.map_or(512, |(_, ticks)| *ticks)
}

/// Segments that are the same at the same place and time. A pause before a segment means that a timer sent it.
fn equal(kernel: &[Departure], ours: &[Departure]) -> usize {
    let is_equal = |index: &usize| {
        let (theirs, ours) = (&kernel[*index], &ours[*index]);
        let pause =
            index.checked_sub(1).map_or(Duration::ZERO, |before| theirs.0.since(kernel[before].0));
        let late = theirs.0.since(ours.0);
        let is_in_time =
            ours.0.since(theirs.0) <= TOLERANCE && late <= TOLERANCE + wheel_slot(pause);
        theirs.1 == ours.1 && theirs.2 == ours.2 && is_in_time
    };
    (0..kernel.len().min(ours.len())).filter(is_equal).count()
}

#[test]
fn new_reno_sends_every_segment_when_the_kernel_did() {
    let recordings: [(&str, &[u8], usize); 5] = [
        ("2500", include_bytes!("../vectors/newreno-2500.txt.gz"), 1),
        ("28200", include_bytes!("../vectors/newreno-28200.txt.gz"), 0),
        ("14100, 2 % lost", include_bytes!("../vectors/newreno-14100-loss-2.txt.gz"), 2),
        ("14100, bursts", include_bytes!("../vectors/newreno-14100-bursts.txt.gz"), 1),
        ("endless", include_bytes!("../vectors/newreno-endless.txt.gz"), 0),
    ];
    for (name, gz, apart_max) in recordings {
        let (kernel, ours) = replay(gz, &newreno::ROW, false);
        assert_eq!(kernel.len(), ours.len(), "{name}");
        let apart = kernel.len() - equal(&kernel, &ours);
        println!("{name}: {} segments, {apart} apart", kernel.len());
        assert!(apart <= apart_max, "{name}: {apart} of {}", kernel.len());
    }
}

/// With SACK a copy may be cut at other places than its original.
#[test]
fn rack_sends_every_segment_and_nearly_all_when_the_kernel_did() {
    let recordings: [(&str, &[u8], usize); 4] = [
        ("14100, 5 % lost", include_bytes!("../vectors/newreno-sack-14100-loss-5.txt.gz"), 0),
        ("2500, 2 % lost, a", include_bytes!("../vectors/newreno-sack-2500-loss-2-a.txt.gz"), 4),
        ("2500, 2 % lost, b", include_bytes!("../vectors/newreno-sack-2500-loss-2-b.txt.gz"), 2),
        ("2500, 2 % lost, c", include_bytes!("../vectors/newreno-sack-2500-loss-2-c.txt.gz"), 2),
    ];
    for (name, gz, apart_max) in recordings {
        let (kernel, ours) = replay(gz, &newreno::ROW, true);
        assert_eq!(kernel.len(), ours.len(), "{name}");
        let apart = kernel.len() - equal(&kernel, &ours);
        println!("{name}: {} segments, {apart} apart", kernel.len());
        assert!(apart <= apart_max, "{name}: {apart} of {}", kernel.len());
    }
}

/// The phase of ProbeBW is random, so only Startup has the same times.
#[test]
fn bbr_sends_the_same_segments_and_in_startup_when_the_kernel_did() {
    let (kernel, ours) = replay(include_bytes!("../vectors/bbr-14100.txt.gz"), &bbr::ROW, false);
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

/// The runs of the kernel, a line each cell: `window queue loss: seconds...`, written by `cargo xtask kernel-tcp`.
fn kernel_runs() -> Vec<(String, Vec<f64>)> {
    let text = match std::env::var("KERNEL_TCP_RUNS") {
        Ok(file) => std::fs::read_to_string(file).expect("the file of runs"),
        Err(_) => include_str!("../kernel-runs.txt").to_owned(),
    };
    let line = |line: &str| {
        let (cell, times) = line.split_once(": ").expect("a cell and its times");
        let times = times.split(' ').map(|time| time.parse().expect("seconds")).collect();
        (cell.to_owned(), times)
    };
    text.lines().map(line).collect()
}

fn median(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// How far the rank sum of Mann and Whitney lies from its mean, in standard deviations; beyond 1.96 two samples differ
/// with 95 %.
fn rank_distance(ours: &[f64], kernel: &[f64]) -> f64 {
    let wins = |a: f64| -> f64 {
        let win = |b: &f64| match a.total_cmp(b) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        };
        kernel.iter().map(win).sum()
    };
    let sum: f64 = ours.iter().map(|a| wins(*a)).sum();
    let (m, n) = (ours.len() as f64, kernel.len() as f64);
    (sum - m * n / 2.0) / (m * n * (m + n + 1.0) / 12.0).sqrt()
}

/// Without losses the kernel repeats itself, except where jitter decides which segments overflow the queue, or when HyStart
/// ends slow start.
fn is_chaotic(cell: &str) -> bool {
    cell.ends_with('%')
        || cell.starts_with("cubic")
        || ["reno 14100 none", "bbr 2500 none"].contains(&cell)
}

/// The interval that holds the median with 95 %, by order statistics; the whole range of fewer than six runs.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let runs = sorted.len() as f64;
    let rank = (runs / 2.0 - 0.98 * runs.sqrt()).max(0.0) as usize;
    (sorted[rank], sorted[sorted.len() - 1 - rank])
}

/// Median, interval, range and number of runs.
fn summary(sorted: &[f64]) -> String {
    let ((low, high), last) = (interval(sorted), sorted.len() - 1);
    let (median, runs) = (median(sorted), sorted.len());
    format!(
        "{median:.1} ({low:.1} to {high:.1}; {:.1} to {:.1} in {runs})",
        sorted[0], sorted[last]
    )
}

/// 25 simulated runs a cell; medians within 3 % in quiet cells, and in the others within 15 % or without a significant
/// difference.
#[test]
fn simulated_runs_take_as_long_as_the_kernels() {
    for (cell, kernel) in kernel_runs() {
        let mut parts = cell.split(' ');
        let mut part = || parts.next().expect("window, queue and loss");
        let window = match part() {
            "reno" => &newreno::ROW,
            "bbr" => &bbr::ROW,
            "cubic" => &cubic::ROW,
            other => panic!("{other} is no window of this test"),
        };
        let queue = part().parse().expect("octets");
        let loss = match part() {
            "none" => Loss::None,
            _ => Loss::Independent { probability: 0.02 },
        };
        let ours = simulate(window, queue, loss, 25);
        let (theirs, median_ours) = (median(&kernel), median(&ours));
        let (share, distance) = (median_ours / theirs - 1.0, rank_distance(&ours, &kernel));
        println!(
            "{cell}: {}, kernel {}, {:+.1} %, rank distance {distance:+.2}",
            summary(&ours),
            summary(&kernel),
            share * 100.0
        );
        let is_near = if is_chaotic(&cell) {
            share.abs() <= 0.15 || distance.abs() <= 1.96
        } else {
            share.abs() <= 0.03
        };
        assert!(is_near, "{cell}");
    }
}
