//! One node with MSF, whose neighbours request cells and accept all that it offers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::CellOptions;
use lowmesh_units::{Duration, NodeId, Purpose, Seed};
use lowmesh_wire::sixp::Cell as Place;

use lowmesh_wire::sixp::Command;

use super::*;
use crate::functions::Children;
use crate::functions::msf::Msf;
use crate::params::{MsfParams, SFID_MSF};

const MAC: MacTiming =
    MacTiming { slot: Duration::from_millis(10), retries_max: 7, backoff_exponent_max: 5 };

struct Node {
    sixtop: Sixtop,
    schedule: Schedule,
}

impl Node {
    fn new() -> Self {
        let me = NodeId(0);
        let rng = Rng::stream(Seed(1), me, Purpose::Sixtop);
        let function = Box::new(Msf::new(MsfParams::MSF, Children::Known));
        let sixtop = Sixtop::new(me.eui64(), MAC, function, rng);
        let mut node = Self { sixtop, schedule: Schedule::new() };
        node.give(SixtopEvent::Event(Event::Synchronised));
        node
    }
    fn give(&mut self, event: SixtopEvent<'_>) -> Vec<Output> {
        let input = Input { asn: Asn(0), schedule: &mut self.schedule, event };
        self.sixtop.handle(Instant::ZERO, input).expect("possible");
        core::iter::from_fn(|| self.sixtop.poll_output()).collect()
    }
    /// Gives the number of cells that `from` gets of 50 in the `slots` from there on.
    fn gets(&mut self, from: NodeId, seqnum: u8, options: CellOptions, slots: u16) -> usize {
        let cells = (slots..slots + 50).map(|slot| Place { slot, channel_offset: 1 }).collect();
        let command = Command::Add { options: options.0, count: 50, cells };
        let body = Body::Request { command, metadata: 0 };
        let mut bytes = Vec::new();
        Message { sfid: SFID_MSF, seqnum, body }.emit(&mut bytes);
        let outputs = self.give(SixtopEvent::Message { from: from.eui64(), bytes: &bytes });
        let answer = outputs.iter().find_map(|output| match output {
            Output::Send { bytes, handle, .. } => Some((bytes, *handle)),
            _ => None,
        });
        let (bytes, handle) = answer.expect("a response");
        let Body::Response(response) = Message::parse(bytes).expect("whole").body else {
            panic!("no response");
        };
        assert_eq!(response.code, ReturnCode::Success);
        self.give(SixtopEvent::FrameDone { handle, acked: true });
        response.cells().expect("whole cells").len()
    }
}

#[test]
fn one_neighbour_gets_no_more_cells_in_a_direction_than_its_share() {
    let (greedy, other) = (NodeId(1), NodeId(2));
    let shared = CellOptions::TX.with(CellOptions::SHARED);
    let share = usize::from(MsfParams::MSF.cells_per_peer_max);
    let mut node = Node::new();
    assert_eq!(node.gets(greedy, 0, CellOptions::TX, 1), share);
    assert_eq!(node.gets(greedy, 1, CellOptions::TX, 51), 0);
    assert_eq!(node.gets(greedy, 2, shared, 51), 0, "cells that others may use count too");
    assert_eq!(node.gets(other, 0, CellOptions::TX, 51), share);
    assert!(node.gets(greedy, 3, CellOptions::RX, 41) > 0, "the other direction");
}
