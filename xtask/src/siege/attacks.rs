//! The table of attacks. One more attack is one row here and one function in the file of its kind.

mod connections;
mod datagrams;
mod folder;
mod observers;
mod places;
mod proxies;

use std::time::Duration;

use super::attack::Attack;
use super::attack::Form::{Gate, Long};
use super::attack::Setup::{Chain, Demo, Folder, Proxy, Tls};

const fn seconds(gate: u64, long: u64) -> [Duration; 2] {
    [Duration::from_millis(gate * 100), Duration::from_secs(long)]
}

/// Room for ten thousand observers.
const CROWD: &[&str] = &["--max-observers", "20000", "--max-peers", "20000"];
/// What a cache may take, octets.
const CACHE: &[&str] = &["--cache", "100000"];

/// A proxy in front of a server that forwards requests which name a target too.
const FORWARD: &[&str] = &["--forward"];
/// The same, and the target may be on this machine.
const OPEN: &[&str] = &["--forward", "--allow-target", "127.0.0.0/8"];

/// All attacks, in the order in which they are run. Spans: tenths of a second in the gate, seconds in the long form.
#[rustfmt::skip]
pub const ATTACKS: &[Attack] = &[
    Attack { name: "none", about: "no attack: what honest clients see on this machine",
        setup: Demo(&[]), form: Gate, spans: seconds(10, 10), run: datagrams::none },
    Attack { name: "garbage", about: "random datagrams, malformed messages, scraps, pings, stray ACK and RST",
        setup: Demo(&[]), form: Gate, spans: seconds(25, 20), run: datagrams::garbage },
    Attack { name: "forged-gets", about: "GET from thousands of forged sources",
        setup: Demo(&[]), form: Gate, spans: seconds(25, 20), run: datagrams::forged_gets },
    Attack { name: "first-blocks", about: "4,096 first blocks and more of bodies that never end, from one port",
        setup: Demo(&[]), form: Gate, spans: seconds(25, 20), run: datagrams::first_blocks },
    Attack { name: "first-blocks-forged", about: "4,096 first blocks and more of bodies that never end, each from a source of its own",
        setup: Demo(&[]), form: Gate, spans: seconds(25, 20), run: datagrams::first_blocks_forged },
    Attack { name: "slow-requests", about: "600 NON a second from one port to a resource that takes 1.5 s",
        setup: Demo(&[]), form: Gate, spans: seconds(30, 20), run: datagrams::slow_requests },
    Attack { name: "slow-requests-forged", about: "600 NON a second from forged sources to a resource that takes 1.5 s",
        setup: Demo(&[]), form: Long, spans: seconds(30, 20), run: datagrams::slow_requests_forged },
    Attack { name: "dtls-hellos", about: "ClientHellos from forged sources",
        setup: Demo(&[]), form: Gate, spans: seconds(25, 20), run: datagrams::dtls_hellos },
    Attack { name: "observers-600", about: "600 honest observers of one resource: each learns every settled state",
        setup: Demo(&[]), form: Gate, spans: seconds(60, 60), run: observers::six_hundred },
    Attack { name: "observers-10000", about: "10,000 honest observers, where the server is told to take as many",
        setup: Demo(CROWD), form: Long, spans: seconds(60, 120), run: observers::ten_thousand },
    Attack { name: "forged-registrations", about: "1,500 registrations on /time from silent forged sources",
        setup: Demo(&[]), form: Gate, spans: seconds(70, 30), run: observers::forged_registrations },
    Attack { name: "idle-connections", about: "800 connections from one address: mute, idle, slow, garbled, cut off, never reading",
        setup: Demo(&[]), form: Gate, spans: seconds(30, 30), run: connections::idle },
    Attack { name: "tls-handshakes", about: "800 TLS handshakes from one address that stop",
        setup: Tls, form: Long, spans: seconds(30, 20), run: connections::tls_handshakes },
    Attack { name: "fifo", about: "requests for a FIFO and a sparse file of 3 GB in a served folder",
        setup: Folder, form: Gate, spans: seconds(30, 20), run: folder::fifo },
    Attack { name: "fetch-cache", about: "80,000 requests with different bodies and queries through a cache of 100,000 octets",
        setup: Proxy(CACHE), form: Gate, spans: seconds(60, 90), run: proxies::fetch_cache },
    Attack { name: "hop-limit", about: "a 5.08 that one client provokes is not served to another",
        setup: Chain, form: Gate, spans: seconds(5, 3), run: proxies::hop_limit },
    Attack { name: "proxy-relay", about: "a proxy refuses targets on loopback, private and link-local addresses by default",
        setup: Proxy(FORWARD), form: Gate, spans: seconds(10, 5), run: proxies::relay },
    Attack { name: "slow-targets", about: "300 datagrams through the proxy that name silent targets",
        setup: Proxy(OPEN), form: Gate, spans: seconds(30, 30), run: proxies::slow_targets },
    Attack { name: "silent-connections", about: "100 connections through the proxy to targets that never answer",
        setup: Proxy(OPEN), form: Gate, spans: seconds(30, 30), run: proxies::silent_connections },
    Attack { name: "proxy-observations", about: "300 forged registrations through the proxy, each for a resource of its own",
        setup: Proxy(&[]), form: Gate, spans: seconds(40, 30), run: proxies::observations },
    Attack { name: "silent-target", about: "one silent target, asked through the proxy again and again",
        setup: Proxy(OPEN), form: Gate, spans: seconds(30, 30), run: proxies::silent_target },
    Attack { name: "slow-resource", about: "4 requests a second for a slow resource of a healthy target, each from a forged source",
        setup: Proxy(OPEN), form: Gate, spans: seconds(60, 40), run: places::slow_resource },
    Attack { name: "one-network", about: "one request of each address of a /24 through the proxy, to silent targets",
        setup: Proxy(OPEN), form: Gate, spans: seconds(40, 30), run: places::one_network },
    Attack { name: "observing-connections", about: "300 connections that observe, of four addresses; newcomers are far away",
        setup: Tls, form: Gate, spans: seconds(40, 30), run: places::observing },
    Attack { name: "opening-connections", about: "900 silent connections a second of 250 addresses; newcomers are far away",
        setup: Tls, form: Gate, spans: seconds(40, 30), run: places::opening },
    Attack { name: "dtls-handshakes", about: "1,500 DTLS handshakes a second of 700 addresses that stop; newcomers are far away",
        setup: Tls, form: Gate, spans: seconds(40, 30), run: places::dtls_handshakes },
    Attack { name: "web-pages", about: "WebSockets of web pages that nobody has admitted",
        setup: Demo(&[]), form: Gate, spans: seconds(5, 3), run: places::web_page },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_say_something() {
        let names: std::collections::BTreeSet<_> = ATTACKS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), ATTACKS.len());
        assert!(ATTACKS.iter().all(|one| one.about.len() > 10 && one.spans[0] <= one.spans[1]));
    }

    #[test]
    fn the_gate_is_short() {
        let gate: Duration =
            ATTACKS.iter().filter(|one| one.form == Gate).map(|one| one.spans[0]).sum();
        // Four at a time.
        assert!(gate <= Duration::from_secs(120), "{gate:?}");
    }
}
