//! Files of a served folder that are none, or are too long.

use std::fs::File;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::{Class, Code, OptionNumber};

use crate::process;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Transport, ask, connect};
use crate::siege::pace::Pace;
use crate::siege::request::Request;

/// Octets of the sparse file.
const SPARSE: u64 = 3 << 30;
/// Requests a second.
const RATE: u32 = 200;

/// Requests that read what never ends, or is longer than memory should be.
pub fn fifo(scene: &Scene<'_>) -> Result<Findings> {
    let folder = scene.folder.context("a folder is served")?;
    let pipe = folder.join("pipe").to_string_lossy().into_owned();
    process::execute(process::command("mkfifo", &[&pipe]))?;
    File::create(folder.join("sparse"))?.set_len(SPARSE)?;
    let sources = Sources::open()?;
    let requests = [
        Request::get("/pipe"),
        Request::get("/pipe").observing(),
        Request::get("/sparse"),
        Request::new(Code::PUT, "/pipe").with_payload(b"x"),
        Request::new(Code::DELETE, "/missing/pipe"),
        Request::new(Code::PUT, "/sparse")
            .with(OptionNumber::IF_MATCH, b"other")
            .with_payload(b"x"),
        Request::new(Code::DELETE, "/sparse").with(OptionNumber::IF_MATCH, b"other"),
    ];
    let refused = |from| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        let answer = ask(&mut *client, &Request::get("/pipe"), false)?;
        ensure!(answer.code.class() == Class::ClientError, "GET of a FIFO answers {}", answer.code);
        Ok(())
    };
    let probe = Probe {
        what: "a GET of a FIFO is refused",
        period: Duration::from_millis(500),
        limit: Duration::from_secs(2),
        run: &refused,
    };
    beside(&[probe], || {
        let mut pace = Pace::new(RATE, scene.span);
        while let Some(number) = pace.next() {
            let request = &requests[number as usize % requests.len()];
            let datagram = request.confirmable(number as u16, &(number as u32).to_be_bytes());
            sources.send(address(77, number % 100), scene.plain, &datagram)?;
        }
        Ok(Findings::sent(format!("{} requests", pace.done())))
    })
}
