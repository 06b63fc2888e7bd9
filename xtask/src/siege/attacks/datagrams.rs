//! Attacks with single datagrams.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};

use crate::chance::Chance;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Transport, connect, fetch, hello};
use crate::siege::pace::Pace;
use crate::siege::request::{BLOCK_OF_1024, Request};

/// Datagrams a second of a flood: several times what honest clients send, and less than fills the machine.
const FLOOD: u32 = 8000;
/// First blocks, and as many sources.
const FIRST_BLOCKS: u64 = 4096;
/// Octets of a first block.
const BLOCK: [u8; 1024] = [b'b'; 1024];
/// Requests a second to a slow resource.
const SLOW_REQUESTS: u32 = 600;
/// ClientHellos a second.
const HELLOS: u32 = 3000;
/// Where the client's random stands in the first datagram of a handshake (RFC 6347 s4.1, s4.2.2; RFC 5246 s7.4.1.2).
const HELLO_RANDOM: std::ops::Range<usize> = 27..59;
/// Sources of a flood.
const SOURCES: u64 = 20_000;

/// Leaves the honest clients alone.
#[allow(clippy::unnecessary_wraps, reason = "it stands in a table with attacks that can fail")]
pub fn none(scene: &Scene<'_>) -> Result<Findings> {
    std::thread::sleep(scene.span);
    Ok(Findings::sent("nothing"))
}

/// Everything that is no request.
pub fn garbage(scene: &Scene<'_>) -> Result<Findings> {
    let (sources, mut chance) = (Sources::open()?, Chance::new(scene.seed));
    let mut pace = Pace::new(FLOOD, scene.span);
    while pace.next().is_some() {
        let from = address(66, chance.below(2000));
        let to = if chance.below(8) == 0 { scene.secure } else { scene.plain };
        sources.send(from, to, &nonsense(&mut chance))?;
    }
    Ok(Findings::sent(format!("{} datagrams", pace.done())))
}

fn nonsense(chance: &mut Chance) -> Vec<u8> {
    let id = chance.next() as u16;
    let [high, low] = id.to_be_bytes();
    let hello = |first: u8, code: u8, rest: &[u8]| {
        [&[first, code, high, low, 0xb5], &b"hello"[..], rest].concat()
    };
    match chance.below(12) {
        0 | 1 => {
            let len = chance.below(64) as usize;
            chance.octets(len)
        }
        2 => chance.octets(3),
        3 => Message::empty(Kind::Confirmable, MessageId(id)).to_vec(),
        4 => Message::empty(Kind::Reset, MessageId(id)).to_vec(),
        5 => Message::empty(Kind::Acknowledgement, MessageId(id)).to_vec(),
        // A request in an ACK, a response that nobody waits for, a reserved class.
        6 => hello(0x60, 1, &[]),
        7 => hello(0x40, 0x45, &[]),
        8 => hello(0x40, 0xc0, &[]),
        // Format errors: a token length of 15, a marker without payload, a delta of 15, an option that is cut off.
        9 => hello(0x4f, 1, &[]),
        10 => hello(0x40, 1, &[0xff]),
        _ => hello(0x40, 1, &[0xf1, 0]),
    }
}

/// Requests that nobody waits for.
pub fn forged_gets(scene: &Scene<'_>) -> Result<Findings> {
    let (sources, mut chance) = (Sources::open()?, Chance::new(scene.seed));
    let requests = ["/hello", "/large", "/time", "/.well-known/core"].map(Request::get);
    let mut pace = Pace::new(FLOOD, scene.span);
    while let Some(number) = pace.next() {
        let request = &requests[chance.below(4) as usize];
        let kind = if chance.below(2) == 0 { Kind::Confirmable } else { Kind::NonConfirmable };
        let datagram = request.datagram(kind, number as u16, &[1]);
        sources.send(address(67, number % SOURCES), scene.plain, &datagram)?;
    }
    Ok(Findings::sent(format!("{} GETs", pace.done())))
}

/// Uploads that never end, all of one client.
pub fn first_blocks(scene: &Scene<'_>) -> Result<Findings> {
    upload_beginnings(scene, |_| address(68, 0))
}

/// Uploads that never end, each of a client of its own.
pub fn first_blocks_forged(scene: &Scene<'_>) -> Result<Findings> {
    upload_beginnings(scene, |number| address(69, number))
}

fn upload_beginnings(scene: &Scene<'_>, from: fn(u64) -> Ipv4Addr) -> Result<Findings> {
    let sources = Sources::open()?;
    // Over the whole of the attack, so that each upload of an honest client has many beside it.
    let rate = (FIRST_BLOCKS as f64 / scene.span.as_secs_f64()) as u32 + 1;
    let mut pace = Pace::new(rate.max(1500), scene.span);
    while let Some(number) = pace.next() {
        let tag = (number as u32).to_be_bytes();
        let request = Request::new(Code::PUT, "/large-update")
            .with_block(OptionNumber::BLOCK1, 0, true, BLOCK_OF_1024)
            .with(OptionNumber::REQUEST_TAG, &tag)
            .with_payload(&BLOCK);
        let datagram = request.confirmable(number as u16, &tag);
        sources.send(from(number), scene.plain, &datagram)?;
    }
    Ok(Findings::sent(format!("{} first blocks", pace.done())))
}

/// Requests whose answers take long, all of one client.
pub fn slow_requests(scene: &Scene<'_>) -> Result<Findings> {
    ask_slowly(scene, |_| address(74, 0))
}

/// Requests whose answers take long, each of a client of its own.
pub fn slow_requests_forged(scene: &Scene<'_>) -> Result<Findings> {
    ask_slowly(scene, |number| address(75, number))
}

fn ask_slowly(scene: &Scene<'_>, from: fn(u64) -> Ipv4Addr) -> Result<Findings> {
    let sources = Sources::open()?;
    let separate = |from| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        fetch(&mut *client, "/separate").map(drop)
    };
    let probe = Probe {
        what: "an honest GET /separate",
        period: Duration::from_millis(500),
        limit: Duration::from_secs(4),
        run: &separate,
    };
    let mut pace = Pace::new(SLOW_REQUESTS, scene.span);
    beside(&[probe], || {
        let request = Request::get("/separate");
        while let Some(number) = pace.next() {
            let datagram = request.unconfirmable(number as u16, &(number as u32).to_be_bytes());
            sources.send(from(number), scene.plain, &datagram)?;
        }
        Ok(Findings::sent(format!("{} NON", pace.done())))
    })
}

/// Handshakes that nobody goes on with.
pub fn dtls_hellos(scene: &Scene<'_>) -> Result<Findings> {
    let (sources, mut chance) = (Sources::open()?, Chance::new(scene.seed));
    let hello = hello()?;
    let shake = |from| -> Result<()> {
        let mut client = connect(Transport::Dtls, from, scene.secure, scene.seed)?;
        fetch(&mut *client, "/hello").map(drop)
    };
    let probe = Probe {
        what: "a new DTLS client",
        period: Duration::from_millis(300),
        limit: Duration::from_secs(3),
        run: &shake,
    };
    let mut pace = Pace::new(HELLOS, scene.span);
    beside(&[probe], || {
        while let Some(number) = pace.next() {
            let mut datagram = hello.clone();
            datagram[HELLO_RANDOM].copy_from_slice(&chance.octets(HELLO_RANDOM.len()));
            sources.send(address(76, number % SOURCES), scene.secure, &datagram)?;
        }
        Ok(Findings::sent(format!("{} ClientHellos", pace.done())))
    })
}
