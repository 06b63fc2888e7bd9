//! Observation over a path that loses, doubles and reorders datagrams (RFC 7641): the last change arrives in the end (s1.3),
//! and no state comes behind a newer one (s3.4); ours with libcoap and aiocoap, both directions.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::Group;
use super::capture::Port;
use super::case::Stage;
use super::peer::{Peer, base, two_free_ports};
use super::relay::Relay;
use crate::process::{self, Stopwatch};

/// How often the resource changes, and how long each state stays.
const CHANGES: u32 = 8;
const PERIOD: Duration = Duration::from_millis(400);
/// Until the first state and, behind the last change, until that: the notification on its way and the next one, each
/// over within 9 s on such a path, and as much again for a busy machine.
const PATIENCE: Duration = Duration::from_secs(36);
/// What a path has to lose to be a bad one. Seeds are such that three of the first eight are lost, whatever the timing.
const LOST_MIN: u32 = 2;

/// An observer and what it observes.
pub struct Watch {
    title: &'static str,
    /// The server, and its port.
    served: Result<(u16, Command)>,
    observer: Command,
    conditions: PathConditions,
}

/// What the path does to datagrams, and what the observer keeps to.
#[derive(Clone, Copy)]
struct PathConditions {
    path: &'static str,
    /// Chooses the datagrams that are lost.
    seed: u64,
    /// The observer leaves out what is older than what it has.
    orders: bool,
    /// All notifications are CON.
    confirmed: bool,
    /// Acknowledgements are lost as other datagrams are.
    loses_acks: bool,
}

fn state(number: u32) -> String {
    format!("change {number:02}")
}

impl Watch {
    /// A server at a port, one of its resources that PUT changes, and an observer: it takes the URI as its last argument
    /// and writes a line with each state.
    pub fn new(
        title: &'static str,
        server: impl Fn(u16) -> Command,
        path: &'static str,
        observer: Command,
    ) -> Self {
        let served = two_free_ports().map(|port| (port, server(port)));
        let conditions =
            PathConditions { path, seed: 0, orders: true, confirmed: true, loses_acks: true };
        Self { title, served, observer, conditions }
    }
    /// What chooses the datagrams that are lost.
    pub fn seed(self, seed: u64) -> Self {
        Self { conditions: PathConditions { seed, ..self.conditions }, ..self }
    }
    /// The observer leaves it to its application to see which state is newer.
    pub fn unordered(self) -> Self {
        Self { conditions: PathConditions { orders: false, ..self.conditions }, ..self }
    }
    /// Not all notifications are CON, and the last one may be lost for good: so the path is good by then.
    pub fn unconfirmed(self) -> Self {
        Self { conditions: PathConditions { confirmed: false, ..self.conditions }, ..self }
    }
    /// The observer acknowledges no second copy of a notification, though RFC 7252 s4.5 says that it SHOULD: so the path
    /// loses none of its acknowledgements.
    pub fn acknowledging_once(self) -> Self {
        Self { conditions: PathConditions { loses_acks: false, ..self.conditions }, ..self }
    }
    /// The group of this one case.
    pub fn into_group(self, stage: Stage<'_>) -> Group<'_> {
        Box::new(move || {
            let (port, served) = self.served?;
            let verdict = self.conditions.judge(stage.binary, port, served, self.observer);
            let title = format!("{} over a bad path", self.title);
            stage.tally.note(&title, verdict.map_err(|error| format!("{error:#}")));
            Ok(Port::in_the_open([port]))
        })
    }
}

impl PathConditions {
    fn judge(self, binary: &Path, port: u16, served: Command, mut observer: Command) -> Result<()> {
        let Self { path, seed, orders, confirmed, loses_acks } = self;
        let _server = Peer::start(served, port)?;
        let relay = Relay::start(port, seed, loses_acks)?;
        let direct = format!("{}{path}", base("coap", port));
        let change = |number| {
            let args = ["put", &direct, "-e", &state(number), "-B", "10"];
            process::read(process::command(binary, &args))
        };
        change(0)?;
        observer.arg(format!("{}{path}", base("coap", relay.port)));
        let (_observer, said) = Peer::listen(observer)?;
        // Some write more than the state.
        let is_state = |line: String| Some(line[line.find("change ")?..].to_owned());
        let (mut seen, mut clock) = (Vec::new(), Stopwatch::start());
        let mut until = |wanted: &dyn Fn(&[String]) -> bool, clock: &Stopwatch| {
            while !wanted(&seen) {
                match said.recv_timeout(PATIENCE.saturating_sub(clock.elapsed())) {
                    Ok(line) => seen.extend(is_state(line)),
                    Err(RecvTimeoutError::Timeout) => bail!("no more comes behind {seen:?}"),
                    Err(RecvTimeoutError::Disconnected) => bail!("it ended behind {seen:?}"),
                }
            }
            Ok(seen.clone())
        };
        until(&|seen| !seen.is_empty(), &clock).context("the first state")?;
        for number in 1..CHANGES {
            std::thread::sleep(PERIOD);
            change(number)?;
        }
        if !confirmed {
            relay.heal();
        }
        change(CHANGES)?;
        clock = Stopwatch::start();
        let last = state(CHANGES);
        let seen = until(&|seen| seen.last() == Some(&last), &clock).context("the last state")?;
        ensure!(!orders || seen.is_sorted(), "an old state behind a newer one: {seen:?}");
        let lost = relay.lost();
        ensure!(lost >= LOST_MIN, "the path lost only {lost}");
        Ok(())
    }
}
