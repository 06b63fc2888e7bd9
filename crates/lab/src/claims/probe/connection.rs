//! The TCP connections of a built-in scenario: what their SYN offers, and what they send before the first acknowledgement.

use lowmesh_machine::Machine;
use lowmesh_stack::Csm;
use lowmesh_stack::config::Transport;
use lowmesh_tcp::{Config, Connection, Input, Output, Transmit};
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};

use super::{Values, values};
use crate::scenario::Scenario;
use crate::settings;

/// Ports of the client and the server.
const PORTS: (u16, u16) = (49_152, 5_683);
/// Octets that the server writes: more than any window at its start.
const WRITTEN: usize = 16_384;

/// The transport and the ends of Pesola 2020, whose runs over TCP begin like this.
const SETTINGS: [&str; 2] = ["coap.transport=tcp", "tcp.profile=pesola"];

/// What the connections of the scenario `name` do where implementations differ.
pub fn probe(name: &str) -> Result<Values, String> {
    let tcp = SETTINGS.map(ToOwned::to_owned);
    let scenario = Scenario::load(name, &tcp).map_err(|error| error.to_string())?;
    let Transport::Tcp(tcp) = settings::parts(&scenario).stack.transport else {
        return Err(format!("{name} has no TCP"));
    };
    let (mut client, mut server) = ends(tcp.profile)?;
    let syn = segments(&mut client).into_iter().next().ok_or("no SYN leaves")?;
    give(&mut server, &syn)?;
    for answer in segments(&mut server) {
        give(&mut client, &answer)?;
    }
    for answer in segments(&mut client) {
        give(&mut server, &answer)?;
    }
    let data = vec![0; server.room().min(WRITTEN)];
    let refused = |error| format!("a write is refused: {error:?}");
    server.handle(Instant::ZERO, Input::Write(&data)).map_err(refused)?;
    let flight = segments(&mut server);
    let full = flight.first().map_or(0, |one| one.payload.len());
    let offered = syn.header.options;
    let number = |is: bool| f64::from(u8::from(is));
    Ok(values([
        ("sack", number(offered.sack_permitted)),
        ("timestamps", number(offered.timestamps.is_some())),
        ("mss", offered.mss.map_or(f64::NAN, f64::from)),
        ("segment_octets", full as f64),
        ("first_flight_segments", flight.len() as f64),
        ("waits_for_csm", number(tcp.csm == Csm::Wait)),
    ]))
}

/// A client that has opened, and a server that waits for it.
fn ends(profile: lowmesh_tcp::Profile) -> Result<(Connection, Connection), String> {
    let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
    let mut end = |own, other, input| {
        let config = Config::new(profile, own, other);
        let mut end = Connection::new(config, &mut rng).map_err(|error| error.to_string())?;
        let refused = |error| format!("it does not open: {error:?}");
        end.handle(Instant::ZERO, input).map_err(refused)?;
        Ok::<_, String>(end)
    };
    let client = end(PORTS.0, PORTS.1, Input::Open)?;
    Ok((client, end(PORTS.1, PORTS.0, Input::Listen)?))
}

fn give(to: &mut Connection, segment: &Transmit) -> Result<(), String> {
    let input = Input::Segment { header: &segment.header, payload: &segment.payload };
    to.handle(Instant::ZERO, input).map_err(|error| format!("a segment is refused: {error:?}"))
}

/// The segments that wait to leave.
fn segments(end: &mut Connection) -> Vec<Transmit> {
    let mut found = Vec::new();
    while let Some(output) = end.poll_output() {
        if let Output::Segment(segment) = output {
            found.push(segment);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_decides_what_a_syn_offers() {
        let found = probe("nb-iot").expect("it is built in");
        let of = |key: &str| found[key];
        for (key, value) in [
            ("sack", 0.0),
            ("timestamps", 1.0),
            ("mss", 256.0),
            ("segment_octets", 244.0),
            ("first_flight_segments", 10.0),
            ("waits_for_csm", 1.0),
        ] {
            assert!((of(key) - value).abs() < 1e-9, "{key} is {}", of(key));
        }
        assert!(probe("nowhere").is_err());
    }
}
