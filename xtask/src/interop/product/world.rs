//! One row: a server, a proxy of ours in front of it, and clients, through all cells.
//!
//! Each state begins with the name of its step, so that nobody takes an older one for it. The server is killed without a word
//! and started again at its ports.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::ends::{Asker, Ends, News, Watching};
use super::{Cell, Peers, Row, Track};
use crate::interop::case::Stage;
use crate::process::{self, Stopwatch};

/// Octets of a short body, and of a long one: several blocks, also over connections.
const SHORT: usize = 12;
const LONG: usize = 5_000;
/// How long a state may take to an observer, and to one whose server has restarted.
const STATE_MAX: Duration = Duration::from_secs(20);
const RESTART_MAX: Duration = Duration::from_secs(45);
/// The same where the restart is found out late (`Row::is_slow`).
const SLOW_MAX: Duration = Duration::from_secs(240);
/// How long a request may take, and one over a session that is gone: MAX_TRANSMIT_WAIT (RFC 7252 s4.8.2) and a little.
const ANSWER_MAX: Duration = Duration::from_secs(15);
const SLOW_ANSWER_MAX: Duration = Duration::from_secs(100);
/// Requests until one is answered after a restart: one is lost with the old session or connection.
const TRIES: usize = 3;
/// Between two starts of an observer that ends.
const AGAIN: Duration = Duration::from_secs(1);
/// What is kept of a line that nobody expects.
const LINE_MAX: usize = 200;

/// The cells that were tried, and what came of each.
pub(super) type Verdicts = Vec<(Cell, Result<(), String>)>;

/// A row with its programs.
pub(super) struct World<'a> {
    stage: Stage<'a>,
    row: &'a Row,
    ends: Ends<'a>,
}

/// A state that begins with the name of a step.
fn body(step: &str, long: bool) -> String {
    format!("{step:.<0$}", if long { LONG } else { SHORT })
}

impl<'a> World<'a> {
    pub(super) fn new(stage: &Stage<'a>, peers: &'a Peers, row: &'a Row) -> Result<Self> {
        Ok(Self { stage: *stage, row, ends: Ends::new(*stage, peers, row)? })
    }
    pub(super) fn run(&self, wanted: &[Cell]) -> Result<Verdicts> {
        let server = self.ends.serve().context("the server")?;
        let _proxy = self.ends.proxy().context("the proxy")?;
        let asker = self.ends.asker().context("the client")?;
        self.change("first")?;
        let new =
            |track| Client { world: self, asker: &asker, track, watching: None, verdict: Ok(()) };
        let mut clients: Vec<Client<'_>> = Track::all(wanted).into_iter().map(new).collect();
        all(&mut clients, &Client::begin);
        for step in ["second", "third"] {
            self.change(step)?;
            all(&mut clients, &|client| client.reach(step, STATE_MAX));
        }
        let mut verdicts = Verdicts::new();
        for client in clients.iter().filter(|client| client.track.runs_on) {
            verdicts.push((client.track.cell, client.verdict.clone()));
        }
        clients.retain(|client| client.track.restarts);
        if clients.is_empty() {
            return Ok(verdicts);
        }
        drop(server);
        let _server = self.ends.serve().context("the server, a second time")?;
        self.change("fourth")?;
        all(&mut clients, &Client::go_on);
        self.change("fifth")?;
        all(&mut clients, &|client| client.reach("fifth", STATE_MAX));
        let judged = |client: Client<'_>| (client.track.cell.restarted(), client.verdict);
        verdicts.extend(clients.into_iter().map(judged));
        Ok(verdicts)
    }
    /// Puts a state of a step to what is observed, short and long, over UDP in the open.
    fn change(&self, step: &str) -> Result<()> {
        for long in [false, true] {
            let uri = format!("{}/{}", self.ends.plain(), usize::from(long));
            let args = ["put", &uri, "-e", &body(step, long), "-B", "20"];
            process::read(process::command(self.stage.binary, &args)).context("a change")?;
        }
        Ok(())
    }
}

/// All clients at the same time.
fn all<'a>(clients: &mut [Client<'a>], work: &(dyn Fn(&mut Client<'a>) + Sync)) {
    std::thread::scope(|scope| {
        for client in clients.iter_mut().filter(|client| client.verdict.is_ok()) {
            scope.spawn(move || work(client));
        }
    });
}

/// The client of one track; its verdict is that of its last step.
struct Client<'a> {
    world: &'a World<'a>,
    asker: &'a Asker,
    track: Track,
    watching: Option<Watching>,
    verdict: Result<(), String>,
}

impl Client<'_> {
    /// While the server runs on.
    fn begin(&mut self) {
        if self.track.cell.observed {
            self.watching = self.watch();
            self.reach("first", STATE_MAX);
        } else {
            self.verdict = self.write_and_read("first", 1, ANSWER_MAX);
        }
    }
    /// After the restart.
    fn go_on(&mut self) {
        let restarted = self.track.cell.restarted();
        let slow = self.world.row.is_slow(restarted);
        if restarted.observed {
            // One that ends with its connection is begun again.
            self.track.cell = restarted;
            self.reach("fourth", if slow { SLOW_MAX } else { RESTART_MAX });
        } else {
            let patience = if slow { SLOW_ANSWER_MAX } else { ANSWER_MAX };
            self.verdict = self.write_and_read("second", TRIES, patience);
        }
    }
    fn watch(&mut self) -> Option<Watching> {
        let watching = self.world.ends.watch(self.asker, self.track, &self.track.path());
        watching.map_err(|error| self.verdict = Err(format!("{error:#}"))).ok()
    }
    /// An observer waits for a state; nobody else does.
    fn reach(&mut self, step: &str, max: Duration) {
        let (wanted, clock) = (body(step, self.track.cell.long), Stopwatch::start());
        let mut seen: Vec<String> = Vec::new();
        while let Some(watching) = &self.watching {
            match watching.next(max.saturating_sub(clock.elapsed())) {
                Some(News::State(state)) if state == wanted => return,
                Some(News::State(state)) => seen.push(beginning(&state)),
                Some(News::Ended(why)) if self.track.cell.restart && clock.elapsed() < max => {
                    seen.push(format!("ended {}", beginning(&why)));
                    std::thread::sleep(AGAIN);
                    self.watching = self.watch();
                }
                Some(News::Ended(why)) => {
                    self.verdict = Err(format!("{step}: it ended behind {seen:?}: {why}"));
                    return;
                }
                None => {
                    self.verdict = Err(format!("{step}: not seen, but {seen:?}"));
                    return;
                }
            }
        }
    }
    fn write_and_read(&self, step: &str, tries: usize, max: Duration) -> Result<(), String> {
        let (ends, wanted) = (&self.world.ends, body(step, self.track.cell.long));
        let (path, mut tried) = (self.track.path(), Vec::new());
        while tried.len() < tries {
            let written = ends.put(self.asker, self.track, &path, &wanted, max);
            let read = written.and_then(|()| ends.get(self.asker, self.track, &path, max));
            match read {
                Ok(read) if read == wanted => return Ok(()),
                Ok(read) => tried.push(format!(
                    "{step}: it read {} octets, {}",
                    read.len(),
                    beginning(&read)
                )),
                Err(why) => tried.push(format!("{step}: {why}")),
            }
        }
        Err(tried.join("; "))
    }
}

fn beginning(text: &str) -> String {
    let text = text.trim_end_matches('.');
    text.chars().take(LINE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_share_the_cells_with_and_without_a_restart_and_no_path() {
        let cells: Vec<Cell> = Cell::all().collect();
        let tracks = Track::all(&cells);
        assert_eq!(tracks.len(), 8);
        let once = tracks.iter().filter(|track| !track.cell.observed);
        let paths: std::collections::BTreeSet<_> = once.map(|track| track.path()).collect();
        assert_eq!(paths.len(), 4);
        let observed = tracks.iter().filter(|track| track.cell.observed);
        assert!(observed.map(|track| track.path()).all(|path| !paths.contains(&path)));
        let restarts: Vec<Cell> = cells.into_iter().filter(|cell| cell.restart).collect();
        assert!(Track::all(&restarts).iter().all(|track| track.restarts && !track.runs_on));
    }

    #[test]
    fn a_state_begins_with_its_step() {
        assert_eq!(body("third", false), "third.......");
        assert_eq!((body("third", true).len(), &*beginning(&body("third", true))), (LONG, "third"));
    }
}
