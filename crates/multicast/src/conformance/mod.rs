//! What every [`Engine`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all engines of this crate.

mod network;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_registry::{Breach, Choice, Row};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

use crate::engine::{Engine, Event, Output, Reach, make};
use network::{Graph, Network, datagram, eui64};

/// Runs with frames that are lost.
const LOSSY_RUNS: u64 = 10;
/// Frames that are lost in them.
const LOSS: f64 = 0.3;
/// When a network must be silent: longer than any engine remembers a packet with its defaults.
const END: Instant = Instant::from_secs(24 * 3600);
/// Hop limit of the datagrams.
const HOP_LIMIT: u8 = 64;
/// Sources of the crowd, and octets that are changed.
const CROWD: usize = 100;
const MUTATIONS: u64 = 500;

/// Checks the row and the engine that it makes, in small networks in virtual time.
///
/// - Without loss, on a line, a star and a grid, every member that the engine reaches gets a datagram once.
/// - With loss, nobody gets it twice, and nobody gets it who does not listen.
/// - The hop limit falls with every hop; all networks fall silent; no engine holds more than it says.
/// - Every copy is delivered, sent on, or dropped with a reason, and only a copy that the engine held is.
/// - A crowd of sources and arbitrary octets change none of this.
/// - A packet to a group on the link is rejected, and the same seed gives the same frames.
///
/// ```
/// use lowmesh_multicast::{conformance, smrf};
/// conformance::check(&smrf::SMRF)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn Engine>) -> Result<(), Breach> {
    row.check()?;
    check_choice(&row.into())
}

/// The same for the engine of a row with other numbers than its defaults.
pub fn check_choice(choice: &Choice<dyn Engine>) -> Result<(), Breach> {
    let named = |what: String| choice.row().breach(what);
    choice.check().map_err(|error| named(error.to_string()))?;
    for (name, graph) in [("line", line(6)), ("star", star(9)), ("grid", grid(4))] {
        reaches(choice, &graph).map_err(|what| named(format!("on a {name}, {what}")))?;
    }
    for seed in 0..LOSSY_RUNS {
        let first = lossy(choice, seed).map_err(|what| named(format!("with loss, {what}")))?;
        if lossy(choice, seed) != Ok(first) {
            return Err(named("the same seed gives other frames".to_string()));
        }
    }
    crowd(choice).map_err(|what| named(format!("in a crowd, {what}")))?;
    octets(choice).map_err(|what| named(format!("with arbitrary octets, {what}")))?;
    rejects(choice).map_err(named)
}

fn line(nodes: usize) -> Graph {
    let near = |node: usize| [node.checked_sub(1), Some(node + 1)].into_iter().flatten();
    (0..nodes).map(|node| near(node).filter(|near| *near < nodes).collect()).collect()
}

fn star(nodes: usize) -> Graph {
    let near = |node: usize| if node == 0 { (1..nodes).collect() } else { [0].to_vec() };
    (0..nodes).map(near).collect()
}

fn grid(side: usize) -> Graph {
    let is_near =
        |a: usize, b: usize| (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side) == 1;
    let nodes = side * side;
    (0..nodes).map(|node| (0..nodes).filter(|near| is_near(node, *near)).collect()).collect()
}

/// Every second node is a member, and so is the last one.
fn members(nodes: usize) -> Vec<usize> {
    (0..nodes).filter(|node| node % 2 == 0 || node + 1 == nodes).collect()
}

/// Without loss, every member gets a datagram of every origin in reach once.
fn reaches(choice: &Choice<dyn Engine>, graph: &Graph) -> Result<(), String> {
    let nodes = graph.len();
    let members = members(nodes);
    let reach = make(choice, stream(0)).reach();
    let origins =
        if reach == Reach::SubDodag { [0].to_vec() } else { [0, nodes / 2, nodes - 1].to_vec() };
    for origin in origins {
        let mut network = Network::new(choice, graph.clone(), &members, 0.0, 1);
        network.run(Instant::from_secs(1));
        network.originate(origin, 7, HOP_LIMIT);
        network.run(END);
        network.verdict(true)?;
        let expected = members.iter().filter(|member| **member != origin);
        let is_reached = |member: &&usize| reach != Reach::Link || graph[origin].contains(member);
        let expected = expected.filter(is_reached).map(|member| (*member, 7));
        if !expected.clone().eq(network.deliveries.keys().copied()) {
            let delivered: Vec<_> = network.deliveries.keys().map(|(node, _)| *node).collect();
            return Err(format!(
                "what node {origin} sends is delivered by {delivered:?}, not by all of {members:?}"
            ));
        }
    }
    Ok(())
}

/// Some datagrams over links that lose frames: the deliveries, and the frames that were sent.
fn lossy(choice: &Choice<dyn Engine>, seed: u64) -> Result<(Vec<(usize, u32)>, u64), String> {
    let mut network = Network::new(choice, grid(4), &members(16), LOSS, seed);
    for number in 0..5 {
        network.originate(0, number, HOP_LIMIT);
        network.run(Instant::from_secs(2 * u64::from(number + 1)));
        network.verdict(false)?;
    }
    network.run(END);
    network.verdict(true)?;
    Ok((network.deliveries.into_keys().collect(), network.sent))
}

fn stream(node: u16) -> Rng {
    Rng::stream(Seed(5), NodeId(node), Purpose::Multicast)
}

/// What an engine at `node` sends on the link for a datagram of its own.
fn frames_of(choice: &Choice<dyn Engine>, node: usize) -> Vec<Vec<u8>> {
    let mut engine = make(choice, stream(node as u16));
    let place = &Network::new(choice, line(node + 1), &[0, node], 0.0, 1).places[node];
    let packet = datagram(node, node as u32, HOP_LIMIT);
    let event = Event::Originate { packet: &packet, handle: Handle(1) };
    let mut frames = Vec::new();
    let mut now = Instant::ZERO;
    let mut answer = engine.handle(now, event, place);
    for _ in 0..20 {
        while let Some(output) = engine.poll_output() {
            if let Output::Send { packet, .. } | Output::Route { packet, .. } = output {
                frames.push(packet);
            }
        }
        let Some(due) = engine.next_deadline().filter(|_| answer.is_ok()) else { break };
        now = due;
        answer = engine.handle(now, Event::Deadline, place);
    }
    frames
}

/// A node between many sources.
fn crowd(choice: &Choice<dyn Engine>) -> Result<(), String> {
    let mut network = Network::new(choice, line(3), &[1, 2], 0.0, 3);
    for source in 3..3 + CROWD {
        for frame in frames_of(choice, source) {
            network.receive(1, eui64(0), &frame);
            network.control(1, &frame, false);
        }
        network.originate(1, 1_000 + source as u32, HOP_LIMIT);
        network.verdict(false)?;
    }
    network.run(END);
    network.verdict(true)
}

/// Octets that nobody meant: changed ones, and frames that end too early.
fn octets(choice: &Choice<dyn Engine>) -> Result<(), String> {
    let mut rng = stream(0);
    let mut network = Network::new(choice, line(3), &[], 0.0, 4);
    let mut frames = frames_of(choice, 4);
    frames.push(datagram(4, 4, HOP_LIMIT));
    for frame in &frames {
        for end in 0..frame.len() {
            network.receive(1, eui64(0), &frame[..end]);
        }
        for _ in 0..MUTATIONS {
            let mut frame = frame.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(frame.len() as u32) as usize;
                frame[at] = rng.next_u32() as u8;
            }
            network.receive(1, eui64(0), &frame);
            network.control(1, &frame, false);
        }
        network.verdict(false)?;
    }
    network.run(END);
    network.verdict(true)
}

/// A packet that must not enter an engine.
fn rejects(choice: &Choice<dyn Engine>) -> Result<(), String> {
    let network = Network::new(choice, line(2), &[], 0.0, 1);
    let mut engine = make(choice, stream(0));
    let mut packet = datagram(0, 0, HOP_LIMIT);
    packet[25] = 2;
    let event = Event::Originate { packet: &packet, handle: Handle(1) };
    let answer = engine.handle(Instant::ZERO + Duration::from_secs(1), event, &network.places[0]);
    if answer.is_ok() || engine.poll_output().is_some() || engine.next_deadline().is_some() {
        return Err("it takes a packet to a group of scope 2".to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
