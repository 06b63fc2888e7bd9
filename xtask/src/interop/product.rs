//! Features together, with programs of others: {transport} x {plain, OSCORE} x {both directions} x {direct, through our proxy}
//! x {short, long} x {once, observed} x {the server runs on, it restarts}.
//!
//! `crates/net/tests/suite/product.rs` is the same product with our own ends. A row of the table is a program, a direction, a
//! transport and a security; it has 16 cells. A cell that the other program cannot do has a reason in [`REASONS`].

mod ends;
mod world;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::case::Stage;
use super::libcoap::{PLAIN, SECURE};
use super::{Group, Options};
use crate::process::Stopwatch;
pub(super) use ends::Peers;
use world::World;

/// Rows at a time: most of their time is waiting.
const AT_A_TIME: usize = 8;
/// Cells of a row.
const CELLS: usize = 16;

/// A program of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A build of libcoap.
    Libcoap(&'static str),
    Aiocoap,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Our client, their server.
    WeAsk,
    /// Their client, our server.
    TheyAsk,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    program: Program,
    way: Way,
    scheme: &'static str,
    oscore: bool,
}

/// A cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    proxy: bool,
    long: bool,
    observed: bool,
    restart: bool,
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Works,
    Fails,
    /// The other program cannot do it: a place in [`REASONS`].
    Cannot(usize),
    /// Only the long form has the time.
    Later,
}

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        (0..CELLS).map(|bits| {
            let is = |bit: usize| (bits >> bit) & 1 == 1;
            Self { restart: is(0), observed: is(1), long: is(2), proxy: is(3) }
        })
    }
    fn restarted(self) -> Self {
        Self { restart: true, ..self }
    }
    fn name(self) -> String {
        let pick = |chosen, one, other| if chosen { one } else { other };
        let path = pick(self.proxy, "through our proxy", "direct");
        let length = pick(self.long, "long", "short");
        let kind = pick(self.observed, "observed", "once");
        let life = pick(self.restart, "the server restarts", "the server runs on");
        format!("{path}, {length}, {kind}, {life}")
    }
}

impl Row {
    fn all(peers: &Peers) -> Vec<Self> {
        let mut programs: Vec<(Program, &'static str)> = Vec::new();
        if peers.libcoap {
            programs.extend(["coap", "coap+tcp"].map(|scheme| (Program::Libcoap(PLAIN), scheme)));
            for library in SECURE {
                let secure = ["coaps", "coaps+tcp"].map(|one| (Program::Libcoap(library), one));
                programs.extend(secure);
            }
            programs.push((Program::Libcoap(PLAIN), "coap+ws"));
        }
        if peers.python.is_some() {
            // Where its DTLS cannot be built, the stage has said so.
            let schemes = SCHEMES.into_iter().filter(|one| *one != "coaps" || peers.has_dtls);
            programs.extend(schemes.map(|scheme| (Program::Aiocoap, scheme)));
        }
        let mut rows = Vec::new();
        for (program, scheme) in programs {
            for way in [Way::WeAsk, Way::TheyAsk] {
                rows.extend([false, true].map(|oscore| Self { program, way, scheme, oscore }));
            }
        }
        rows
    }
    fn name(&self) -> String {
        let theirs = match self.program {
            Program::Libcoap(build) => format!("libcoap ({build})"),
            Program::Aiocoap => "aiocoap".to_owned(),
        };
        let oscore = if self.oscore { " with OSCORE" } else { "" };
        match self.way {
            Way::WeAsk => format!("lowmesh asks {theirs} over {}{oscore}", self.scheme),
            Way::TheyAsk => format!("{theirs} asks lowmesh over {}{oscore}", self.scheme),
        }
    }
    fn is_libcoap(&self) -> bool {
        matches!(self.program, Program::Libcoap(_))
    }
    /// Whether the server of aiocoap's client restarts.
    fn restarts_for_aiocoap(&self, cell: Cell) -> bool {
        self.program == Program::Aiocoap && self.way == Way::TheyAsk && cell.restart
    }
    /// Why the other program cannot do a cell, as a place in [`REASONS`].
    fn obstacle(&self, cell: Cell) -> Option<usize> {
        REASONS.iter().position(|(applies, _)| applies(self, cell))
    }
    /// A server that restarts is found out only after the Max-Age of a state, a minute, or when a request over a session that
    /// is gone has failed after a minute and a half (RFC 7252 s4.8.2).
    fn is_slow(&self, cell: Cell) -> bool {
        let over_datagrams = ["coap", "coaps"].contains(&self.scheme);
        let keeps_a_minute = self.is_libcoap() || self.way == Way::TheyAsk;
        let keeps_session = self.scheme == "coaps" && (cell.proxy || cell.observed);
        cell.restart && over_datagrams && (cell.observed && keeps_a_minute || keeps_session)
    }
}

/// Cells that differ in the restart only: they share a client.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// Its place among all tracks of a row.
    number: usize,
    /// The cell in which the server runs on.
    cell: Cell,
    runs_on: bool,
    restarts: bool,
}

impl Track {
    fn all(wanted: &[Cell]) -> Vec<Self> {
        let pairs = Cell::all().filter(|cell| !cell.restart).enumerate();
        let track = |(number, cell): (usize, Cell)| {
            let (runs_on, restarts) = (wanted.contains(&cell), wanted.contains(&cell.restarted()));
            (runs_on || restarts).then_some(Self { number, cell, runs_on, restarts })
        };
        pairs.filter_map(track).collect()
    }
    /// Observers of one length share a resource; each other client has its own.
    fn path(self) -> String {
        let Cell { proxy, long, observed, .. } = self.cell;
        let number = usize::from(long) + if observed { 0 } else { 2 + 2 * usize::from(proxy) };
        format!("/{number}")
    }
}

/// All transports of CoAP.
const SCHEMES: [&str; 6] = ["coap", "coaps", "coap+tcp", "coaps+tcp", "coap+ws", "coaps+ws"];

/// When a cell cannot be done, and why: facts about the other program, the first that applies.
type Reason = (fn(&Row, Cell) -> bool, &'static str);
const REASONS: &[Reason] = &[
    (
        |row, _| row.is_libcoap() && row.oscore,
        "libcoap has OSCORE from 4.3.2 on; Debian 12 has 4.3.1",
    ),
    (
        |row, _| row.is_libcoap() && row.scheme.contains("ws"),
        "libcoap has WebSockets from 4.3.2 on; Debian 12 has 4.3.1",
    ),
    (
        |row, _| {
            row.program == Program::Libcoap(SECURE[1])
                && row.way == Way::WeAsk
                && row.scheme == "coaps+tcp"
        },
        "the server of libcoap with GnuTLS chooses no protocol by ALPN (RFC 8323 s8.2)",
    ),
    (
        |row, _| row.program == Program::Aiocoap && row.way == Way::WeAsk && row.scheme == "coaps",
        "the DTLS server of aiocoap 0.4.17 wants the signal of RFC 5746, which our client does not send",
    ),
    (
        |row, cell| row.restarts_for_aiocoap(cell) && row.scheme.contains("ws") && !cell.proxy,
        "the client of aiocoap 0.4.17 goes on with a WebSocket that ended without Release or Abort",
    ),
    (
        |row, cell| row.restarts_for_aiocoap(cell) && row.scheme == "coaps" && !cell.proxy,
        "the client of aiocoap 0.4.17 goes on with a DTLS session in which its requests have timed out",
    ),
    (
        // Our proxy registers again for it, unless OSCORE hides the Max-Age.
        |row, cell| {
            row.restarts_for_aiocoap(cell)
                && row.scheme == "coap"
                && cell.observed
                && (!cell.proxy || row.oscore)
        },
        "the client of aiocoap 0.4.17 does not register again after the Max-Age",
    ),
];

/// One group, which runs some rows at a time and prints the table.
pub(super) fn groups<'a>(stage: Stage<'a>, peers: Peers, options: &Options) -> Vec<Group<'a>> {
    let options = options.clone();
    vec![Box::new(move || {
        run(&stage, &peers, &options);
        // The packets are those of the other cases, which tshark reads.
        Ok(Vec::new())
    })]
}

fn run(stage: &Stage<'_>, peers: &Peers, options: &Options) {
    let (mut rows, clock) = (Row::all(peers), Stopwatch::start());
    rows.retain(|row| options.rows.as_ref().is_none_or(|part| row.name().contains(part)));
    let (next, marks) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); rows.len()]));
    let work = || {
        while let Some((place, row)) = Some(next.fetch_add(1, Ordering::Relaxed))
            .and_then(|place| Some((place, rows.get(place)?)))
        {
            let found = judge(stage, peers, row, options.long);
            marks.lock().expect("no holder panics")[place] = found;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let marks = marks.into_inner().expect("no holder panics");
    print!("{}", table(&rows, &marks));
    println!("the product took {} s", clock.elapsed().as_secs());
}

/// All cells of a row, in their order.
fn judge(stage: &Stage<'_>, peers: &Peers, row: &Row, long: bool) -> Vec<Mark> {
    let mark = |cell: Cell| match row.obstacle(cell) {
        Some(reason) => Some(Mark::Cannot(reason)),
        None if row.is_slow(cell) && !long => Some(Mark::Later),
        None => None,
    };
    let wanted: Vec<Cell> = Cell::all().filter(|cell| mark(*cell).is_none()).collect();
    let verdicts = if wanted.is_empty() {
        Vec::new()
    } else {
        World::new(stage, peers, row).and_then(|world| world.run(&wanted)).unwrap_or_else(|error| {
            wanted.iter().map(|cell| (*cell, Err(format!("{error:#}")))).collect()
        })
    };
    let mut found = Vec::new();
    for cell in Cell::all() {
        found.push(mark(cell).unwrap_or_else(|| {
            let verdict = verdicts.iter().find(|(one, _)| *one == cell);
            let verdict = verdict.map_or(Err("it was not tried".to_owned()), |one| one.1.clone());
            let mark = if verdict.is_ok() { Mark::Works } else { Mark::Fails };
            stage.tally.note(&format!("{}: {}", row.name(), cell.name()), verdict);
            mark
        }));
    }
    found
}

/// The table for people: a line a row, a column a cell, and the reasons below.
fn table(rows: &[Row], marks: &[Vec<Mark>]) -> String {
    let letter = |reason: usize| char::from(b'a' + u8::try_from(reason).unwrap_or(25));
    let mut text = String::new();
    let columns = Cell::all().map(|cell| {
        let pick = |chosen, one, other| if chosen { one } else { other };
        [
            pick(cell.proxy, 'P', 'd'),
            pick(cell.long, 'L', 's'),
            pick(cell.observed, 'O', '1'),
            pick(cell.restart, 'R', '-'),
        ]
        .into_iter()
        .collect::<String>()
    });
    _ = writeln!(text, "{:<52} {}", "", columns.collect::<Vec<_>>().join(" "));
    for (row, marks) in rows.iter().zip(marks) {
        let marks = marks.iter().map(|mark| match mark {
            Mark::Works => "+".to_owned(),
            Mark::Fails => "FAIL".to_owned(),
            Mark::Later => "long".to_owned(),
            Mark::Cannot(reason) => letter(*reason).to_string(),
        });
        let marks: Vec<String> = marks.map(|mark| format!("{mark:<4}")).collect();
        text += format!("{:<52} {}", row.name(), marks.join(" ")).trim_end();
        text += "\n";
    }
    text += "d direct, P through our proxy; s short, L long; 1 once, O observed; R the server restarts\n";
    for (place, (_, why)) in REASONS.iter().enumerate() {
        if marks.iter().flatten().any(|mark| *mark == Mark::Cannot(place)) {
            _ = writeln!(text, "{}: {why}", letter(place));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: Program, way: Way, scheme: &'static str, oscore: bool) -> Row {
        Row { program, way, scheme, oscore }
    }

    #[test]
    fn every_cell_of_every_row_stands_in_the_table() {
        let peers = Peers { libcoap: true, python: Some("python".into()), has_dtls: true };
        let rows = Row::all(&peers);
        assert_eq!(rows.len(), 2 * 2 * (7 + 6));
        let names: std::collections::BTreeSet<_> = rows.iter().map(Row::name).collect();
        assert_eq!((names.len(), Cell::all().count()), (rows.len(), CELLS));
        let marks = vec![vec![Mark::Cannot(0); CELLS]; rows.len()];
        let text = table(&rows, &marks);
        assert!(rows.iter().all(|row| text.contains(&row.name())), "{text}");
        assert!(text.contains(REASONS[0].1) && !text.contains(REASONS[1].1), "{text}");
    }

    #[test]
    fn a_restart_that_shows_at_once_is_in_the_short_form() {
        let observed = Cell { proxy: false, long: false, observed: true, restart: true };
        let once = Cell { observed: false, ..observed };
        for (row, cell, slow) in [
            (row(Program::Libcoap(PLAIN), Way::WeAsk, "coap", false), observed, true),
            (row(Program::Libcoap(PLAIN), Way::WeAsk, "coap", false), once, false),
            (row(Program::Libcoap(PLAIN), Way::WeAsk, "coap+tcp", false), observed, false),
            (row(Program::Aiocoap, Way::WeAsk, "coap", true), observed, false),
            (row(Program::Aiocoap, Way::TheyAsk, "coaps", true), observed, true),
        ] {
            assert_eq!(row.is_slow(cell), slow, "{}: {}", row.name(), cell.name());
        }
    }
}
