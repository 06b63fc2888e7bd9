//! How many frames a packet takes, compared with the table under figure 14 of Lenders et al., "Fragment
//! Forwarding in Lossy Networks", IEEE Access 9 (2021): UDP payloads of 16 to 1024 octets in steps of 16.
//!
//! The network there: 802.15.4 with long addresses and so 102 octets for 6LoWPAN, one context, ports that do
//! not compress, a sink several hops away.

use lowmesh_lowpan::{Adaptation, Config, FragmentMode, Input, Output};
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::fragment::{FIRST_OCTETS, FragmentHeader};

use crate::line::{PREFIX, eui, packet};

const FRAME_PAYLOAD: usize = 102;

/// What node 0 sends to node 1 for node 4.
fn frames(mode: FragmentMode, octets: usize) -> Vec<Vec<u8>> {
    let config = Config { mode, frame_payload: FRAME_PAYLOAD, ..Config::default() };
    let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Lowpan);
    let mut layer = Adaptation::new(eui(0), Contexts::new().with(0, PREFIX), config, rng);
    let (bytes, handle) = (packet(0, 4, octets, 0), Handle(1));
    let input = Input::Packet { bytes, destination: Some(eui(1)), handle };
    layer.handle(Instant::ZERO, input).expect("a whole packet");
    let mut frames = Vec::new();
    while let Some(output) = layer.poll_output() {
        if let Output::Frame { payload, handle, .. } = output {
            frames.push(payload);
            let input = Input::FrameDone { handle, result: Ok(()) };
            layer.handle(Instant::ZERO, input).expect("a confirmation");
        }
    }
    frames
}

/// The payloads on the grid for which the table, which gives the payload where each further fragment begins,
/// and this stack differ: payload, ours, theirs.
fn differences(mode: FragmentMode, limits: &[usize]) -> Vec<(usize, usize, usize)> {
    let grid = (16..=1024).step_by(16);
    let compared = grid.map(|octets| {
        let theirs = 1 + limits.iter().filter(|limit| **limit <= octets).count();
        (octets, frames(mode, octets).len(), theirs)
    });
    compared.filter(|(_, ours, theirs)| ours != theirs).collect()
}

#[test]
fn hop_wise_reassembly_takes_as_many_fragments_as_in_the_paper() {
    let limits = [96, 176, 288, 384, 480, 576, 672, 768, 864, 960];
    // Their number is the largest mean over all nodes, rounded up. At 176 octets the packet has 224, which are
    // 128 and 96: two fragments from a node whose own address compresses away, three from a node beyond it.
    assert_eq!(differences(FragmentMode::HopWise, &limits), [(176, 2, 3)]);
}

#[test]
fn forwarding_takes_as_many_fragments_as_in_the_paper() {
    let limits = [64, 112, 208, 304, 400, 496, 592, 688, 784, 880, 976];
    assert_eq!(differences(FragmentMode::Forwarded, &limits), []);
}

#[test]
fn a_first_fragment_that_is_forwarded_carries_headers_alone() {
    for octets in [64, 200, 1024] {
        let frames = frames(FragmentMode::Forwarded, octets);
        // IPHC 2, destination 8, UDP ports 5, checksum 2; the octets that they stand for are 48.
        assert_eq!(frames[0].len(), FIRST_OCTETS + 17, "{octets} octets");
        assert_eq!(FragmentHeader::parse(&frames[1]).map(|header| header.offset), Ok(48));
    }
}

#[test]
fn headers_alone_cost_one_fragment_at_most() {
    for octets in (1..=1232).step_by(13) {
        let (naive, minimal) = (
            frames(FragmentMode::HopWise, octets).len(),
            frames(FragmentMode::Forwarded, octets).len(),
        );
        assert!((naive..=naive + 1).contains(&minimal), "{octets} octets: {minimal} for {naive}");
    }
}

#[test]
fn end_to_end_nothing_is_cut_here() {
    assert_eq!(frames(FragmentMode::EndToEnd, 80).len(), 1);
    assert_eq!(frames(FragmentMode::EndToEnd, 96).len(), 0);
}
