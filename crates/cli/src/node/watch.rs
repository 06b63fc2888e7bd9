//! What a node shows of itself besides results: a capture of its frames, a line for each loss, and counters at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use comfy_table::{CellAlignment, Table, presets};
use lowmesh_machine::Handle;
use lowmesh_realtime::zep::{Counters, Event, Loss};
use lowmesh_sim::capture::{Capture, Captured};
use lowmesh_stack::event::{Class, ErrorCounts, Output, Packet};
use lowmesh_units::{Channel, Dbm, Instant};
use serde_json::{Map, Value, json};

use crate::console::say;
use crate::failure::Failure;
use crate::run::sink;

/// How strong a frame of this node is in a capture: ZEP tells no power, and radios send with about 0 dBm.
const SENT: Dbm = Dbm(0.0);

/// What a node shows of itself.
#[derive(Debug, clap::Args)]
#[group(id = "watch")]
pub struct Args {
    /// Capture the frames that the node sends and receives for Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Print a line on stderr for each packet or frame that is dropped, with the reason; frames for other nodes are only
    /// counted
    #[arg(long)]
    drops: bool,
    /// Print counters on stderr at the end: frames, fragments, packets, ICMPv6 errors, and the reasons of losses;
    /// with --json as an object on stdout
    #[arg(long)]
    counters: bool,
    /// Print results as JSON objects, one a line
    #[arg(long, global = true)]
    pub json: bool,
}

/// The outputs that are open.
pub struct Watch {
    capture: Option<Capture>,
    channel: Channel,
    /// The time of day at which the host's clock began, since 1970.
    began: Instant,
    drops: bool,
    counters: bool,
    json: bool,
    /// What each packet under way is.
    packets: BTreeMap<Handle, &'static str>,
}

impl Watch {
    /// Opens the outputs of a node on this channel, before anything is sent.
    #[allow(clippy::disallowed_methods, reason = "a capture says when a frame was on the air")]
    pub fn open(args: &Args, channel: Channel) -> Result<Self, Failure> {
        let file = sink(args.pcap.as_deref())?;
        let capture = file.map(Capture::new).transpose().map_err(unwritten)?;
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            capture,
            channel,
            began: Instant::ZERO + today.into(),
            drops: args.drops,
            counters: args.counters,
            json: args.json,
            packets: BTreeMap::new(),
        })
    }

    /// Takes note of what happened at the time `at` of the host's clock.
    pub fn note(&mut self, at: Instant, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Sent(octets) => self.captured(at, SENT, octets),
            Event::Heard { octets, level } => self.captured(at, *level, octets),
            Event::Lost(loss) => {
                if self.drops && *loss != Loss::NotForUs {
                    let way = if loss.is_outgoing() { "outgoing" } else { "incoming" };
                    say!("dropped at {:.3} s: {way} frame, {loss}", at.as_secs_f64());
                }
                Ok(())
            }
            Event::Said(Output::Packet(packet)) => {
                if self.drops {
                    self.packet(at, *packet);
                }
                Ok(())
            }
            Event::Said(_) => Ok(()),
        }
    }

    fn captured(&mut self, at: Instant, level: Dbm, octets: &[u8]) -> Result<(), Failure> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let at = self.began + at.since(Instant::ZERO);
        let frame = Captured { at, asn: None, channel: self.channel, level, octets };
        capture.write(frame).map_err(unwritten)
    }

    fn packet(&mut self, at: Instant, packet: Packet) {
        match packet {
            Packet::Born(handle, class) => {
                self.packets.insert(handle, origin(class));
            }
            Packet::Addressed(..) => {}
            Packet::Accepted(handle) => {
                self.packets.entry(handle).or_insert("packet of a neighbour");
            }
            Packet::PassedOn(handle) | Packet::Delivered(handle) => {
                self.packets.remove(&handle);
            }
            Packet::Dropped(dropped) => {
                let what = self.packets.remove(&dropped.handle).unwrap_or("packet");
                say!("dropped at {:.3} s: {what}, {dropped}", at.as_secs_f64());
            }
        }
    }

    /// Closes the capture and shows what was counted.
    pub fn finish(self, counters: &Counters, out: &mut impl Write) -> Result<(), Failure> {
        self.capture.map(Capture::finish).transpose().map_err(unwritten)?;
        match (self.counters, self.json) {
            (false, _) => Ok(()),
            (true, false) => {
                say!("{}", table(counters).trim_end());
                Ok(())
            }
            (true, true) => Ok(writeln!(out, "{}", object(counters))?),
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "`map_err` gives the value")]
fn unwritten(error: std::io::Error) -> Failure {
    Failure::own(format!("cannot write the capture of --pcap: {error}"))
}

const fn origin(class: Class) -> &'static str {
    match class {
        Class::Request => "request of this node",
        Class::Response => "response of this node",
        Class::Control => "ICMPv6 message of this node",
        Class::Group => "packet of this node to a group",
    }
}

/// What was counted: groups of names with their numbers. Losses that did not happen are left out.
fn groups(counters: &Counters) -> Vec<(&'static str, Vec<(String, u64)>)> {
    let Counters { frames, fragments, packets, .. } = counters;
    let named = |rows: &[(&str, u64)]| {
        rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    let lost = counters.lost.iter().map(|(loss, count)| (loss.to_string(), *count)).collect();
    let dropped = counters
        .dropped
        .iter()
        .map(|((layer, reason), count)| (format!("{}/{}", layer.name(), reason.name()), *count));
    let mut sent = errors(&counters.errors_sent);
    sent.push(("withheld".to_owned(), counters.errors_withheld));
    vec![
        (
            "frames",
            named(&[
                ("sent", frames.sent),
                ("acknowledged", frames.acknowledged),
                ("acknowledgements_sent", frames.acknowledgements_sent),
                ("heard", frames.heard),
                ("accepted", frames.accepted),
                ("waiting", frames.waiting),
            ]),
        ),
        ("frames_lost", lost),
        (
            "fragments",
            named(&[
                ("sent", fragments.sent),
                ("received", fragments.received),
                ("forwarded", fragments.forwarded),
            ]),
        ),
        (
            "packets",
            named(&[
                ("born", packets.born),
                ("received", packets.received),
                ("passed_on", packets.passed_on),
                ("delivered", packets.delivered),
                ("dropped", packets.dropped),
                ("held", packets.held),
            ]),
        ),
        ("packets_dropped", dropped.collect()),
        ("icmpv6_errors_sent", sent),
        ("icmpv6_errors_received", errors(&counters.errors_received)),
    ]
}

fn errors(counts: &ErrorCounts) -> Vec<(String, u64)> {
    let rows = [
        ("destination_unreachable", counts.unreachable),
        ("packet_too_big", counts.too_big),
        ("time_exceeded", counts.time_exceeded),
        ("parameter_problem", counts.parameter),
        ("unknown", counts.unknown),
    ];
    rows.map(|(name, count)| (name.to_owned(), count)).into()
}

fn table(counters: &Counters) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["counter", "", "number"]);
    for (group, rows) in groups(counters) {
        // Of errors, which are rare, the table shows those that there were.
        let shown = |count: u64| count > 0 || !group.starts_with("icmpv6");
        for (name, count) in rows.into_iter().filter(|(_, count)| shown(*count)) {
            table.add_row([group.to_owned(), name, count.to_string()]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().fold(String::new(), |mut text, line| {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

fn object(counters: &Counters) -> Value {
    let groups = groups(counters).into_iter().map(|(group, rows)| {
        let rows: Map<String, Value> =
            rows.into_iter().map(|(name, count)| (name, count.into())).collect();
        (group.to_owned(), Value::Object(rows))
    });
    json!({ "schema": 1, "counters": groups.collect::<Map<String, Value>>() })
}
