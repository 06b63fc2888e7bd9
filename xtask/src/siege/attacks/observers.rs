//! Many observers: honest ones, which must all get the newest state, and forged ones, which must not displace them.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Result, ensure};
use lowmesh_wire::coap::Code;

use crate::process::Stopwatch;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::crowd::Crowd;
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Client, Transport, ask, connect, fetch, observe};
use crate::siege::pace::Pace;
use crate::siege::request::Request;

/// What they observe: it keeps what is put there.
const OBSERVED: &str = "/obs";
/// How long registering may take, for each thousand and one second more.
const REGISTER_MAX: Duration = Duration::from_secs(5);
/// How long a state stands, and so how long its way to all may take: RFC 7641 s4.5.1 allows 3 s between unconfirmed
/// notifications, and a copy of a confirmable one comes 3 s later.
const SETTLED: Duration = Duration::from_secs(6);
/// Forged registrations, and how many a second.
const FORGED: u64 = 1500;
const FORGED_RATE: u32 = 1000;

/// As many as a server takes by default, from as many addresses.
pub fn six_hundred(scene: &Scene<'_>) -> Result<Findings> {
    all_learn(scene, 600)
}

/// More than a server takes by default.
pub fn ten_thousand(scene: &Scene<'_>) -> Result<Findings> {
    all_learn(scene, 10_000)
}

fn all_learn(scene: &Scene<'_>, count: u64) -> Result<Findings> {
    let clock = Stopwatch::start();
    let crowd = Crowd::gather(count, 70, scene.plain, OBSERVED)?;
    let limit = REGISTER_MAX * (1 + count as u32 / 1000);
    let (mut faults, mut changes) = (Vec::new(), 0);
    let missing = crowd.missing(limit, Option::is_some);
    if missing > 0 {
        faults.push(format!("{missing} of {count} honest observers could not register"));
    }
    let registered = clock.elapsed();
    let mut writer = connect(Transport::Udp, address(79, 0), scene.plain, scene.seed)?;
    while changes == 0 || clock.elapsed() + SETTLED < scene.span {
        changes += 1;
        let state = format!("settled state {changes}").into_bytes();
        let answer =
            ask(&mut *writer, &Request::new(Code::PUT, OBSERVED).with_payload(&state), false)?;
        ensure!(answer.code == Code::CHANGED, "PUT {OBSERVED} answers {}", answer.code);
        let missing =
            crowd.missing(SETTLED, |known| known.as_ref().is_none_or(|one| *one == state));
        if missing > 0 {
            let seconds = SETTLED.as_secs();
            faults.push(format!("{missing} observers do not learn state {changes} in {seconds} s"));
        }
    }
    let registered = registered.as_secs_f64();
    let sent = format!("{count} observers registered in {registered:.1} s, {changes} states");
    Ok(Findings { sent, faults })
}

/// Registrations that nobody asked for.
pub fn forged_registrations(scene: &Scene<'_>) -> Result<Findings> {
    let separate = |from: Ipv4Addr| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        fetch(&mut *client, "/separate").map(drop)
    };
    let watch = |from: Ipv4Addr| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        observe(&mut *client, "/time")?;
        let clock = Stopwatch::start();
        while client.notified() == 0 {
            ensure!(clock.elapsed() < Duration::from_secs(5), "no notification within 5 s");
            client.wait(Duration::from_millis(100))?;
        }
        deregister(&mut *client)
    };
    let probe = |what, limit, run| Probe {
        what,
        period: Duration::from_millis(500),
        limit: Duration::from_secs(limit),
        run,
    };
    let probes = [
        probe("an honest GET /separate", 4, &separate as &(dyn Fn(_) -> _ + Sync)),
        probe("a new observer of /time", 6, &watch),
    ];
    let sources = Sources::open()?;
    beside(&probes, || {
        let mut pace = Pace::new(FORGED_RATE, scene.span);
        let request = Request::get("/time").observing();
        while let Some(number) = pace.next() {
            if number < FORGED {
                let (id, token) = (number as u16, (number as u32).to_be_bytes());
                sources.send(address(71, number), scene.plain, &request.confirmable(id, &token))?;
            }
        }
        Ok(Findings::sent(format!("{} registrations", pace.done().min(FORGED))))
    })
}

/// GET with Observe 1 (RFC 7641 s3.6).
fn deregister(client: &mut dyn Client) -> Result<()> {
    use lowmesh_wire::coap::OptionNumber;
    let request = Request::get("/time").with_uint(OptionNumber::OBSERVE, 1);
    ask(client, &request, true).map(drop)
}
