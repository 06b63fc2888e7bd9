//! What an attack is: a row of a table, a function that attacks, and the scene that it attacks in.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::honest::Work;
use crate::process::Stopwatch;

/// A row of the table of attacks.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// What `--only` calls it.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What is attacked.
    pub setup: Setup,
    /// Whether it runs in the gate too, or only in the long form.
    pub form: Form,
    /// How long it lasts in the gate, and in the long form.
    pub spans: [Duration; 2],
    /// Attacks, and says what the attacker has done and seen.
    pub run: fn(&Scene<'_>) -> Result<Findings>,
}

/// In which form an attack is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In both.
    Gate,
    /// Only with `--long`.
    Long,
}

/// What is started for an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// `lowmesh serve --demo` with these options.
    Demo(&'static [&'static str]),
    /// The same with a certificate, so that it takes TLS.
    Tls,
    /// `lowmesh serve DIR -w`.
    Folder,
    /// `lowmesh proxy --to` a second `serve --demo`, with these options.
    Proxy(&'static [&'static str]),
    /// The same with one more proxy between the two.
    Chain,
}

impl Setup {
    /// What honest clients ask there.
    pub const fn work(self) -> Work {
        match self {
            Self::Folder => Work { observed: None, ..Work::DEMO },
            _ => Work::DEMO,
        }
    }
}

/// Where an attack takes place.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The optimised `lowmesh`.
    pub binary: &'a Path,
    /// Where the victim takes coap and coap+tcp, coaps and coaps+tcp, and coap+ws.
    pub plain: SocketAddrV4,
    pub secure: SocketAddrV4,
    pub web: SocketAddrV4,
    /// The server behind a proxy.
    pub origin: Option<SocketAddrV4>,
    /// The served folder.
    pub folder: Option<&'a Path>,
    /// How long to attack.
    pub span: Duration,
    /// Of every random draw.
    pub seed: u64,
}

/// What an attack found out by itself.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What the attacker did.
    pub sent: String,
    /// What the victim must not do, or must do and did not.
    pub faults: Vec<String>,
}

impl Findings {
    /// Nothing but what was done.
    pub fn sent(sent: impl Into<String>) -> Self {
        Self { sent: sent.into(), faults: Vec::new() }
    }
}

/// Something that an honest newcomer does again and again during an attack.
pub struct Probe<'a> {
    /// What it is, for people.
    pub what: &'static str,
    /// Between two.
    pub period: Duration,
    /// How long it may take.
    pub limit: Duration,
    /// Does it from an address that nobody has used yet.
    pub run: &'a (dyn Fn(Ipv4Addr) -> Result<()> + Sync),
}

/// Newcomers come from 127.80.0.0/16 and up, one net a probe.
const PROBE_NET: u8 = 80;

/// Attacks, while newcomers try to be served; what failed to them is a fault.
pub fn beside(probes: &[Probe<'_>], attack: impl FnOnce() -> Result<Findings>) -> Result<Findings> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let start = |(net, probe)| scope.spawn(move || repeat(probe, net, over));
        let nets = PROBE_NET..;
        let running: Vec<_> = nets.zip(probes).map(start).collect();
        let found = attack();
        over.store(true, Ordering::Relaxed);
        let faults = running.into_iter().map(|probe| probe.join().expect("a probe does not panic"));
        let faults: Vec<String> = faults.flatten().collect();
        found.map(|mut found| {
            found.faults.extend(faults);
            found
        })
    })
}

/// At most one line: how many of the tries failed, and how the first did.
fn repeat(probe: &Probe<'_>, net: u8, over: &AtomicBool) -> Option<String> {
    let (mut tries, mut failed, mut first) = (0, 0, None);
    while !over.load(Ordering::Relaxed) {
        let clock = Stopwatch::start();
        let result = (probe.run)(super::forged::address(net, tries));
        let took = clock.elapsed();
        tries += 1;
        let late = || (took > probe.limit).then(|| format!("took {:.1} s", took.as_secs_f64()));
        if let Some(why) = result.err().map(|error| format!("{error:#}")).or_else(late) {
            failed += 1;
            first.get_or_insert(why);
        }
        let rest = probe.period.saturating_sub(took);
        let until = Stopwatch::start();
        while until.elapsed() < rest && !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20).min(rest));
        }
    }
    first.map(|why| format!("{}: {failed} of {tries} failed, the first: {why}", probe.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_that_fails_is_a_fault_and_one_that_does_not_is_none() {
        let probe = |run| Probe {
            what: "a newcomer",
            period: Duration::from_millis(1),
            limit: Duration::from_secs(5),
            run,
        };
        let wait = || {
            std::thread::sleep(Duration::from_millis(50));
            Ok(Findings::sent("nothing"))
        };
        let found = beside(&[probe(&|_| Ok(()))], wait).expect("it attacks");
        assert_eq!((found.sent, found.faults.len()), ("nothing".to_owned(), 0));
        let found = beside(&[probe(&|_| anyhow::bail!("refused"))], wait).expect("it attacks");
        assert!(found.faults[0].contains("refused"), "{found:?}");
    }
}
