//! `siege`: attacks on the optimised `lowmesh serve` and `lowmesh proxy` from outside, on loopback, while honest clients
//! go on working; and how many octets come back to an address that somebody has forged.
//!
//! ```text
//!   victim ◄── 20 honest clients: UDP, TCP, DTLS; five requests a second each, and an observation
//!     ▲ └── resident memory, from /proc
//!     └──── one attack after another, bounded in time and count
//! ```
//! Bars: every honest request succeeds, the 99th percentile of latencies stays below 1 s, also of six more clients 200 ms
//! away, memory below 64 MB, and all is normal within 10 s of the end. An address that has proven nothing gets at most three times the octets that bear it.

mod amplification;
mod attack;
mod attacks;
mod crowd;
mod distance;
mod forged;
mod honest;
mod measure;
mod pace;
mod request;
mod victim;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::product;
use attack::{Attack, Findings, Form, Scene, Setup};
use attacks::ATTACKS;
use honest::{Doors, Team, WHOLE_TURN};
use measure::{Measured, RECOVERY_MAX};
use victim::{Folder, Victim};

/// How long honest clients are alone with the victim at first, in the gate and in the long form.
const PEACE: [Duration; 2] = [Duration::from_millis(700), Duration::from_secs(3)];
/// How long honest clients are watched after an attack that has harmed none of them, in the gate and in the long form.
const QUIET: [Duration; 2] = [Duration::from_millis(700), Duration::from_secs(3)];
/// Attacks at a time, in the gate and in the long form: each has a victim of its own, and most of their time is waiting. Four at
/// a time cost honest clients up to 1.4 s of waiting for two processors.
const AT_A_TIME: [usize; 2] = [2, 1];
/// Between two checks whether all is normal.
const LOOK: Duration = Duration::from_millis(50);
/// The seed, unless one is given.
const SEED: u64 = 1;

/// What the command line says.
#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    list: bool,
    long: bool,
    json: bool,
    seed: Option<u64>,
    binary: Option<PathBuf>,
}

const FLAGS: &str =
    "--short (default), --long, --only NAME, --list, --seed S, --json, --binary FILE";

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--short" => options.long = false,
            "--long" => options.long = true,
            "--list" => options.list = true,
            "--json" => options.json = true,
            "--only" => options.only.push(value()?.clone()),
            "--binary" => options.binary = Some(value()?.into()),
            "--seed" => options.seed = Some(value()?.parse().context("--seed takes a number")?),
            other => bail!("unknown argument {other:?}; allowed: {FLAGS}"),
        }
    }
    let names = || ATTACKS.iter().map(|one| one.name).chain([amplification::NAME]);
    for only in &options.only {
        ensure!(
            names().any(|name| name == only),
            "there is no attack {only:?}; there are {}",
            names().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(options)
}

impl Options {
    /// Named by `--only`, or in this form.
    fn wants(&self, name: &str, form: Form) -> bool {
        if self.only.is_empty() {
            self.long || form == Form::Gate
        } else {
            self.only.iter().any(|only| only == name)
        }
    }
}

/// Attacks, measures, prints, and fails when a bar is missed.
pub fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    if options.list {
        for Attack { name, about, form, .. } in ATTACKS {
            let form = if *form == Form::Long { "  (--long)" } else { "" };
            println!("{name:<22} {about}{form}");
        }
        println!("{:<22} {}", amplification::NAME, amplification::ABOUT);
        return Ok(());
    }
    raise_limit();
    // Another one, as from before a change.
    let binary = match &options.binary {
        Some(binary) => {
            fs::canonicalize(binary).with_context(|| format!("{}", binary.display()))?
        }
        None => product::optimised()?,
    };
    let seed = options.seed.unwrap_or(SEED);
    eprintln!("siege: seed {seed}; --seed {seed} repeats it");
    let (long, amplified) = (options.long, options.wants(amplification::NAME, Form::Gate));
    // It waits most of the time, so that it goes on beside the attacks.
    let amplification = amplified.then(|| {
        let binary = binary.clone();
        std::thread::spawn(move || amplification::measure(&binary, long))
    });
    let rows = all(&binary, &options, seed)?;
    let cases = amplification.map(|running| running.join().expect("it does not panic"));
    let cases = cases.transpose().context(amplification::NAME)?.unwrap_or_default();
    report(&options, &rows, &cases);
    let missed = rows.iter().filter(|row| !row.missed().is_empty()).count();
    let amplified = cases.iter().filter(|case| !case.holds()).count();
    ensure!(
        missed + amplified == 0,
        "{missed} attack(s) miss a bar, {amplified} request(s) amplify"
    );
    Ok(())
}

/// The attacks of this form, some at a time; their rows in the order of the table.
fn all(binary: &Path, options: &Options, seed: u64) -> Result<Vec<Measured>> {
    let wanted: Vec<&Attack> =
        ATTACKS.iter().filter(|one| options.wants(one.name, one.form)).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(attack) = wanted.get(place) else { return Ok(()) };
            eprintln!("siege: {}: {}", attack.name, attack.about);
            let row = one(binary, attack, options, seed).with_context(|| attack.name)?;
            eprintln!("siege: {}: {}", attack.name, row.sent);
            for line in row.faults.iter().chain(&row.failures) {
                eprintln!("siege: {}:   {line}", attack.name);
            }
            rows.lock().unwrap_or_else(PoisonError::into_inner).push((place, row));
        }
    };
    std::thread::scope(|scope| {
        let at_a_time = AT_A_TIME[usize::from(options.long)];
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|one| one.join().expect("an attack does not panic"))
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(place, _)| *place);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Sockets of attackers count as open files. Where more are not allowed, the system says so when one is opened.
fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn report(options: &Options, rows: &[Measured], cases: &[amplification::Case]) {
    if options.json {
        let rows: Vec<_> = rows.iter().map(Measured::to_json).collect();
        let cases: Vec<_> = cases.iter().map(amplification::Case::to_json).collect();
        println!("{}", json!({ "attacks": rows, "amplification": cases }));
        return;
    }
    if !rows.is_empty() {
        println!("{}", Measured::head());
        for row in rows {
            println!("{}", row.row());
        }
    }
    if !cases.is_empty() {
        print!("{}", amplification::table(cases, options.long));
    }
}

/// What is started for an attack.
struct Field {
    victim: Victim,
    origin: Option<Victim>,
    /// A proxy between the victim and the origin; it runs as long as the value lives.
    _middle: Option<Victim>,
    folder: Option<Folder>,
}

fn start(binary: &Path, setup: Setup) -> Result<Field> {
    let demo =
        |more: &[&str], tls| Victim::start(binary, &[&["serve", "--demo"][..], more].concat(), tls);
    let in_front = |behind: &Victim, more: &[&str]| {
        let to = format!("coap://{}", behind.plain());
        Victim::start(binary, &[&["proxy", "--to", &to][..], more].concat(), false)
    };
    let alone = |victim| Field { victim, origin: None, _middle: None, folder: None };
    let proxy = |more: &[&str]| -> Result<Field> {
        let origin = demo(&[], false)?;
        let victim = in_front(&origin, more)?;
        Ok(Field { origin: Some(origin), ..alone(victim) })
    };
    match setup {
        Setup::Demo(more) => Ok(alone(demo(more, false)?)),
        Setup::Tls => Ok(alone(demo(&[], true)?)),
        Setup::Folder => {
            let folder = Folder::make()?;
            fs::write(folder.0.join("hello"), "hello world")?;
            fs::write(folder.0.join("large"), vec![b'l'; setup.work().long_len])?;
            fs::write(folder.0.join("large-update"), "")?;
            let path = folder.0.to_string_lossy().into_owned();
            let victim = Victim::start(binary, &["serve", &path, "-w"], false)?;
            Ok(Field { folder: Some(folder), ..alone(victim) })
        }
        Setup::Proxy(more) => proxy(more),
        Setup::Chain => {
            let origin = demo(&[], false)?;
            let middle = in_front(&origin, &[])?;
            let victim = in_front(&middle, &[])?;
            Ok(Field { origin: Some(origin), _middle: Some(middle), ..alone(victim) })
        }
    }
}

/// One attack, from the start of its victim to its row.
fn one(binary: &Path, attack: &Attack, options: &Options, seed: u64) -> Result<Measured> {
    let form = usize::from(options.long);
    let mut field = start(binary, attack.setup)?;
    let memory = field.victim.watch();
    let (plain, secure, web) = (field.victim.plain(), field.victim.secure(), field.victim.web());
    let work = attack.setup.work();
    let certificates = attack.setup == Setup::Tls;
    let team = Team::start(Doors { plain, secure, web, certificates }, &work, seed);
    std::thread::sleep(PEACE[form]);
    let before = memory.now_mb();
    let scene = Scene {
        binary,
        plain,
        secure,
        web,
        origin: field.origin.as_ref().map(Victim::plain),
        folder: field.folder.as_ref().map(|folder| folder.0.as_path()),
        span: attack.spans[form],
        seed,
    };
    let began = team.elapsed();
    // What an attack needs of its victim and does not get, as from one that has ended, is the victim's fault.
    let broken = |error| Findings { faults: vec![format!("{error:#}")], ..Findings::default() };
    let found = (attack.run)(&scene).unwrap_or_else(broken);
    let ended = team.elapsed();
    let recovery = recover(&team, began, ended, QUIET[form]);
    let samples: Vec<_> = team.samples().into_iter().filter(|one| one.at >= began).collect();
    let mut row = Measured { name: attack.name, recovery, ..Measured::default() };
    row.take(&samples);
    row.memory_mb = [before, memory.peak_mb(), memory.now_mb()];
    (row.sent, row.faults, row.failures) = (found.sent, found.faults, team.failures());
    row.faults.extend(field.victim.end());
    Ok(row)
}

/// Waits until no request of an honest client has failed or been slow for some time: how long after the end of the
/// attack the last one was.
fn recover(team: &Team, began: Duration, ended: Duration, quiet: Duration) -> Option<Duration> {
    loop {
        let now = team.elapsed();
        let trouble = team.last_trouble(began);
        let quiet = if trouble.is_some() { quiet.max(WHOLE_TURN) } else { quiet };
        let last = trouble.unwrap_or_default().max(ended);
        if now >= last + quiet {
            return Some(last.saturating_sub(ended));
        }
        if now > ended + RECOVERY_MAX + quiet {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Options> {
        options(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn without_a_name_the_gate_has_its_own_attacks_and_the_long_form_all() {
        let count = |args: &[&str]| {
            let options = parsed(args).expect("known");
            ATTACKS.iter().filter(|one| options.wants(one.name, one.form)).count()
        };
        assert!(count(&["--short"]) < count(&["--long"]));
        assert_eq!(count(&["--long"]), ATTACKS.len());
        assert_eq!(count(&["--only", "observers-10000", "--only", "none"]), 2);
    }

    #[test]
    fn what_is_unknown_is_refused_by_its_name() {
        for wrong in [&["--only", "nothing"][..], &["--only"], &["--seed", "x"], &["--fast"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
        let error = parsed(&["--only", "nothing"]).expect_err("unknown");
        assert!(error.to_string().contains("garbage"), "{error}");
    }
}
