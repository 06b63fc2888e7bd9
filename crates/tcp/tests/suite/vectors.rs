//! Scripts of single events beside Linux 6.18: what a peer sends, what the application does, and what must leave.
//!
//! `vectors/scripts.jsonl` has one script a line: `profile`, and `steps` in the order of time. A step is one of
//!
//! | key | meaning |
//! |---|---|
//! | `app` | `listen`, `open`, `write N`, `close`, `abort` |
//! | `peer_sends` | a segment of the peer arrives |
//! | `expect` | this segment leaves, or a burst of segments if `len` is beyond the MSS |
//! | `check` | conditions on the sender, named as in TCP_INFO of Linux |
//!
//! Sequence numbers count from the SYN of their sender. Our timestamps count from the first, those of the peer do not.
//! `at_ms` of two numbers is a range, since timers of Linux expire late by a slot of its wheel; a segment may leave
//! [`TOLERANCE`] earlier or later. PSH is not compared, nor is the window. Linux 6.18 agrees with every script. `TCP_SCRIPTS` names a file of other scripts.

use std::collections::VecDeque;

use lowmesh_congestion::window::{Phase, cubic, newreno};
use lowmesh_machine::Machine;
use lowmesh_tcp::params::MSS_DEFAULT_V4;
use lowmesh_tcp::{Config, Connection, InitialNumbers, Input, Output, Profile, Transmit};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::tcp::{Control, Header, Options, SackBlock, Timestamps};
use serde_json::Value;

/// How far the departure of a segment may be from its time in the script: three ticks of the recorded kernel's timers.
const TOLERANCE: Duration = Duration::from_millis(12);
/// Initial sequence numbers of this end and of the peer; both streams cross 2^32.
const OWN: u32 = u32::MAX - 4_000;
const PEER: u32 = u32::MAX - 700;
/// Our first timestamp, and what the scripts call it.
const CLOCK: (u32, u32) = (u32::MAX - 150, 100);
/// When a script begins, so that a step can be earlier than a tolerance.
const START: Instant = Instant::from_secs(1);

/// One end with what it has sent and no step has expected yet.
struct End {
    connection: Connection,
    now: Instant,
    sent: VecDeque<(Instant, Transmit)>,
}

impl End {
    fn new(profile: &Value) -> Self {
        let flag = |key: &str| profile[key] == 1;
        let window = match text(&profile["window"]) {
            "newreno" => &newreno::ROW,
            "cubic" => &cubic::ROW,
            other => panic!("{other} is no window of this test"),
        };
        // The scripts are of IPv4, and of a kernel whose window needs a shift of 8.
        let profile = Profile {
            window,
            sack: flag("sack"),
            timestamps: flag("timestamps"),
            nagle: flag("nagle"),
            slow_start_after_idle: flag("slow_start_after_idle"),
            mss: number(&profile["mss"]) as u16,
            mss_default: MSS_DEFAULT_V4,
            receive_buffer_octets: 16_000_000,
            receive_window_octets: 16_000_000,
            ..Profile::LINUX
        };
        let clock = CLOCK.0.wrapping_sub((START.as_nanos() / 1_000_000) as u32);
        let initial = Some(InitialNumbers { sequence: OWN, clock });
        let config = Config { initial, ..Config::new(profile, 5_683, 40_000) };
        let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
        let connection = Connection::new(config, &mut rng).expect("a valid profile");
        Self { connection, now: START, sent: VecDeque::new() }
    }
    fn input(&mut self, input: Input<'_>) {
        self.connection.handle(self.now, input).expect("an input that fits the state");
        while let Some(output) = self.connection.poll_output() {
            if let Output::Segment(segment) = output {
                self.sent.push_back((self.now, segment));
            }
        }
    }
    /// Lets time pass; stops early with the first segment if `for_segment`.
    fn run(&mut self, until: Instant, for_segment: bool) {
        while !for_segment || self.sent.is_empty() {
            let Some(due) = self.connection.next_deadline().filter(|due| *due <= until) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(due);
            self.input(Input::Deadline);
        }
    }
    /// The application acts.
    fn act(&mut self, action: &str) {
        let (verb, octets) = action.split_once(' ').unwrap_or((action, "0"));
        let data = vec![b'd'; octets.parse().expect("octets")];
        self.input(match verb {
            "listen" => Input::Listen,
            "open" => Input::Open,
            "write" => Input::Write(&data),
            "close" => Input::Close,
            "abort" => Input::Abort,
            other => panic!("{other} is no action of an application"),
        });
    }
    fn arrive(&mut self, segment: &Value) {
        let flags = text(&segment["flags"]);
        let options = &segment["options"];
        let mut header = Header {
            source_port: 40_000,
            destination_port: 5_683,
            sequence: PEER.wrapping_add(number(&segment["seq"])),
            control: control(flags),
            window: number(&segment["window"]) as u16,
            options: Options {
                mss: options["mss"].as_u64().map(|mss| mss as u16),
                window_scale: options["wscale"].as_u64().map(|shift| shift as u8),
                sack_permitted: options["sackok"] == 1,
                timestamps: options["ts"].as_array().map(|ts| Timestamps {
                    value: number(&ts[0]),
                    echo: own_clock(number(&ts[1])),
                }),
                ..Options::default()
            },
            ..Header::default()
        };
        if header.control.ack {
            header.acknowledgment = OWN.wrapping_add(number(&segment["ack"]));
        }
        for block in options["sack"].as_array().into_iter().flatten() {
            let edge = |edge: usize| OWN.wrapping_add(number(&block[edge]));
            header.options.sack.push(SackBlock { left: edge(0), right: edge(1) });
        }
        let payload = vec![b'p'; number(&segment["len"]) as usize];
        self.input(Input::Segment { header: &header, payload: &payload });
    }
    /// The next segments are `expected`, and leave from `from` to `to`.
    fn expect(&mut self, expected: &Value, (from, to): (Instant, Instant)) -> Result<(), String> {
        let wanted = number(&expected["len"]);
        let mut octets = 0;
        loop {
            self.run(to + TOLERANCE, true);
            let Some((at, segment)) = self.sent.pop_front() else {
                return Err(format!("nothing leaves, {expected} is expected"));
            };
            octets += segment.payload.len() as u32;
            let is_in_time = from <= at + TOLERANCE && at <= to + TOLERANCE;
            let is_last = octets >= wanted;
            if !(is_in_time && octets <= wanted && matches(expected, &segment, octets, is_last)) {
                let after = at.since(START);
                let segment = describe(&segment);
                return Err(format!("{segment} leaves after {after}, {expected} is expected"));
            }
            if is_last {
                return Ok(());
            }
        }
    }
    /// Conditions of the form `name == value and ...`.
    fn check(&self, conditions: &str) -> Result<(), String> {
        let sending = self.connection.sending().expect("it is open");
        for condition in conditions.split(" and ") {
            let (name, value) = condition.split_once(" == ").expect("an equation");
            let is_met = match (name, value) {
                ("ca_state", "TCP_CA_Open") => sending.phase == Phase::Open,
                ("snd_ssthresh", "TCP_INFINITE_SSTHRESH") => sending.threshold.is_none(),
                ("lost", _) => value.parse() == Ok(sending.lost),
                ("snd_cwnd", _) => value.parse() == Ok(sending.window),
                _ => panic!("{condition} is no condition of this test"),
            };
            if !is_met {
                return Err(format!("{condition} is not met: {sending:?}"));
            }
        }
        Ok(())
    }
    fn step(&mut self, step: &Value) -> Result<(), String> {
        let at =
            |ms: &Value| START + Duration::from_micros((ms.as_f64().expect("ms") * 1e3) as u64);
        let span = match step["at_ms"].as_array() {
            Some(range) => (at(&range[0]), at(&range[1])),
            None => (at(&step["at_ms"]), at(&step["at_ms"])),
        };
        if step["expect"].is_object() {
            return self.expect(&step["expect"], span);
        }
        self.run(span.0, false);
        if let Some((_, segment)) = self.sent.front() {
            return Err(format!("{} leaves before {step}", describe(segment)));
        }
        if let Some(action) = step["app"].as_str() {
            self.act(action);
        } else if step["peer_sends"].is_object() {
            self.arrive(&step["peer_sends"]);
        } else {
            return self.check(text(&step["check"]));
        }
        Ok(())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn number(value: &Value) -> u32 {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.unwrap_or_else(|| panic!("{value} is no number of 32 bits"))
}

fn control(flags: &str) -> Control {
    let has = |flag| flags.contains(flag);
    let (ack, psh, rst) = (has('A'), has('P'), has('R'));
    Control { ack, psh, rst, syn: has('S'), fin: has('F'), ..Control::default() }
}

/// A timestamp of ours that a script names; 0 is none.
const fn own_clock(value: u32) -> u32 {
    if value == 0 { 0 } else { CLOCK.0.wrapping_add(value.wrapping_sub(CLOCK.1)) }
}

/// One segment of a burst that has brought `octets` so far; a FIN is on the last.
fn matches(expected: &Value, sent: &Transmit, octets: u32, is_last: bool) -> bool {
    let wanted = control(text(&expected["flags"]));
    let control = sent.header.control;
    let flags = (control.ack, control.rst, control.syn, control.fin);
    let start = number(&expected["seq"]).wrapping_add(octets - sent.payload.len() as u32);
    let acknowledgment = if wanted.ack { PEER.wrapping_add(number(&expected["ack"])) } else { 0 };
    let options = &expected["options"];
    let own = &sent.header.options;
    let edge = |edge: u32| Value::from(edge.wrapping_sub(PEER));
    let blocks: Vec<Value> = own
        .sack
        .as_slice()
        .iter()
        .map(|one| Value::from(vec![edge(one.left), edge(one.right)]))
        .collect();
    // The values of our timestamps follow from the time, which is compared; the scripts do not count on in copies of a SYN.
    let echo = own.timestamps.map(|timestamps| timestamps.echo);
    flags == (wanted.ack, wanted.rst, wanted.syn, wanted.fin && is_last)
        && sent.header.sequence == OWN.wrapping_add(start)
        && sent.header.acknowledgment == acknowledgment
        && own.mss.map(u64::from) == options["mss"].as_u64()
        && own.window_scale.map(u64::from) == options["wscale"].as_u64()
        && own.sack_permitted == (options["sackok"] == 1)
        && echo == options["ts"].as_array().map(|ts| number(&ts[1]))
        && blocks == *options["sack"].as_array().unwrap_or(&Vec::new())
}

/// A segment of ours as scripts write it.
fn describe(sent: &Transmit) -> String {
    let header = &sent.header;
    let (start, control) = (header.sequence.wrapping_sub(OWN), header.control);
    let flags = [control.ack, control.rst, control.syn, control.fin];
    let flags: String =
        ['A', 'R', 'S', 'F'].iter().zip(flags).filter(|one| one.1).map(|one| one.0).collect();
    let ack = header.acknowledgment.wrapping_sub(PEER);
    let blocks: Vec<(u32, u32)> = header
        .options
        .sack
        .as_slice()
        .iter()
        .map(|one| (one.left.wrapping_sub(PEER), one.right.wrapping_sub(PEER)))
        .collect();
    format!("{flags} {start} ({}) ack {ack} {blocks:?}", sent.payload.len())
}

fn run(script: &Value) -> Result<(), String> {
    let mut end = End::new(&script["profile"]);
    let steps = script["steps"].as_array().expect("steps");
    for (number, step) in steps.iter().enumerate() {
        end.step(step).map_err(|error| format!("step {number}: {error}"))?;
    }
    Ok(())
}

#[test]
fn every_script_runs_as_with_linux() {
    let scripts = match std::env::var("TCP_SCRIPTS") {
        Ok(file) => std::fs::read_to_string(file).expect("the file of scripts"),
        Err(_) => include_str!("../vectors/scripts.jsonl").to_owned(),
    };
    let mut failed = Vec::new();
    for line in scripts.lines() {
        let script: Value = serde_json::from_str(line).expect("JSON");
        if let Err(error) = run(&script) {
            failed.push(format!("{} ({}): {error}", text(&script["name"]), text(&script["about"])));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} differ:\n{}",
        failed.len(),
        scripts.lines().count(),
        failed.join("\n")
    );
}
