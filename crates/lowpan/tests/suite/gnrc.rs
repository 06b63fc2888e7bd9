//! What RIOT's stack does where the RFCs leave the choice, beside what ours does.

use lowmesh_lowpan::params::{GNRC_INTERFACE_HEADER_OCTETS, GNRC_SNIP_OCTETS};
use lowmesh_lowpan::{Config, FragmentMode, Input, Recovery, StackProfile};
use lowmesh_machine::{DropReason, Handle, Machine};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};

use crate::line::{Faults, Line, eui, packet};

fn config(mode: FragmentMode, profile: StackProfile) -> Config {
    Config { mode, profile, reassembly_buffers: 1, ..Config::default() }
}

/// The frames of a packet from node 0 on their way to node 1, which node 0 names with the tag `tag`.
fn frames(mode: FragmentMode, octets: usize, tag: u8) -> Vec<Vec<u8>> {
    let mut line = Line::new(4, config(mode, StackProfile::Native), 1);
    line.send(packet(0, 3, octets, tag), 1);
    line.run_to_rest();
    let mut frames: Vec<Vec<u8>> =
        line.sent.into_iter().filter(|(from, _)| *from == 0).map(|(_, frame)| frame).collect();
    for frame in &mut frames {
        frame[3] = tag;
    }
    frames
}

fn line(mode: FragmentMode, profile: StackProfile) -> Line {
    Line::new(4, config(mode, profile), 1)
}

#[test]
fn the_rest_of_a_refused_datagram_takes_the_next_buffer_only_as_gnrc_does() {
    for (profile, held) in
        [(StackProfile::Native, 0), (StackProfile::RiotGnrc, 348 + GNRC_SNIP_OCTETS)]
    {
        let (one, other) =
            (frames(FragmentMode::HopWise, 300, 1), frames(FragmentMode::HopWise, 300, 2));
        let mut line = line(FragmentMode::HopWise, profile);
        line.hear(1, eui(0), &one[0], 1);
        line.hear(1, eui(0), &other[0], 2);
        for frame in &one[1..] {
            line.hear(1, eui(0), frame, 1);
        }
        line.hear(1, eui(0), &other[1], 2);
        assert_eq!(line.nodes[1].packet_buffer().reassembly, held, "{profile:?}");
        line.run_to_rest();
        assert_eq!(line.delivered.len(), 1);
    }
}

#[test]
fn all_fragments_are_handed_over_at_once_and_the_packet_let_go_only_as_gnrc_does() {
    for (mode, count) in [(FragmentMode::HopWise, 4), (FragmentMode::Forwarded, 5)] {
        for (profile, at_once, kept) in
            [(StackProfile::Native, 1, true), (StackProfile::RiotGnrc, count, false)]
        {
            let mut line = line(mode, profile);
            line.send(packet(0, 3, 300, 1), 1);
            assert_eq!(line.sent.len(), at_once, "{mode:?} {profile:?}");
            let node = &mut line.nodes[0];
            assert!(node.packet_buffer().fragmentation >= 348, "while the first is on the air");
            let done = Input::FrameDone { handle: Handle(1), result: Ok(()) };
            node.handle(Instant::ZERO, done).expect("it was handed over");
            let held = node.packet_buffer();
            assert_eq!(held.fragmentation > 0, kept, "{mode:?} {profile:?}");
            assert!(held.frames > 0);
        }
    }
}

#[test]
fn only_the_packet_buffer_of_gnrc_holds_more_than_the_octets_of_packets() {
    let part = GNRC_SNIP_OCTETS;
    let interface = part + GNRC_INTERFACE_HEADER_OCTETS;
    for (mode, profile, beside) in [
        (FragmentMode::EndToEnd, StackProfile::Native, 0),
        (FragmentMode::EndToEnd, StackProfile::RiotGnrc, interface + 2 * part),
        (FragmentMode::Recovered, StackProfile::Native, 0),
        (
            FragmentMode::Recovered,
            StackProfile::RiotGnrc,
            (interface + 2 * part) + (interface + part),
        ),
    ] {
        let octets = if mode == FragmentMode::EndToEnd { 20 } else { 100 };
        let mut line = line(mode, profile);
        line.send(packet(0, 3, octets, 1), 1);
        let frame = &line.sent[0].1;
        let compressed = if mode == FragmentMode::EndToEnd {
            frame.len()
        } else {
            let header = Rfrag::parse(frame).expect("a fragment").0;
            let Part::First { datagram_size } = header.part else { panic!("not the first") };
            usize::from(datagram_size) + frame.len()
        };
        let held = line.nodes[0].packet_buffer();
        assert_eq!(held.total(), compressed + beside, "{mode:?} {profile:?}");
    }
}

#[test]
fn a_first_fragment_that_comes_again_takes_another_buffer_only_as_gnrc_does() {
    let mut source = line(FragmentMode::Recovered, StackProfile::Native);
    source.send(packet(0, 3, 300, 1), 1);
    source.run_to_rest();
    let of_the_last_hop = |(from, _): &(usize, Vec<u8>)| *from == 2;
    let rfrag = |(_, frame): (usize, Vec<u8>)| Rfrag::parse(&frame).is_ok().then_some(frame);
    let frames: Vec<_> =
        source.sent.into_iter().filter(of_the_last_hop).filter_map(rfrag).collect();
    for (profile, buffers, held) in [
        (StackProfile::Native, 2, 1),
        (StackProfile::RiotGnrc, 2, 2),
        (StackProfile::RiotGnrc, 1, 1),
    ] {
        let config =
            Config { reassembly_buffers: buffers, ..config(FragmentMode::Recovered, profile) };
        let mut line = Line::new(4, config, 1);
        line.hear(3, eui(2), &frames[0], 1);
        line.hear(3, eui(2), &frames[0], 1);
        assert_eq!(line.nodes[3].handles().count(), held, "{profile:?} {buffers}");
        let refused = line.dropped.iter().any(|(_, d)| d.reason == DropReason::BufferFull);
        assert_eq!(
            refused,
            profile == StackProfile::RiotGnrc && buffers == 1,
            "{profile:?} {buffers}"
        );
        for frame in &frames[1..] {
            line.hear(3, eui(2), frame, 1);
        }
        assert_eq!(line.delivered.len(), 1, "the one that came first becomes whole");
        line.run_to_rest();
    }
}

#[test]
fn each_fragment_gives_a_whole_timeout_again_only_as_gnrc_does() {
    for (profile, arrives) in [(StackProfile::Native, 0), (StackProfile::RiotGnrc, 1)] {
        let frames = frames(FragmentMode::HopWise, 300, 1);
        let mut line = line(FragmentMode::HopWise, profile);
        for frame in &frames {
            line.hear(1, eui(0), frame, 1);
            line.run_until(line.now() + Duration::from_secs(6));
        }
        line.run_to_rest();
        assert_eq!(line.delivered.len(), arrives, "{profile:?}");
    }
}

#[test]
fn while_the_buffer_is_taken_first_fragments_pass_only_as_ours_do() {
    for (profile, arrives) in [(StackProfile::Native, 1), (StackProfile::RiotGnrc, 0)] {
        let (stray, passing) =
            (frames(FragmentMode::Forwarded, 300, 1), frames(FragmentMode::Forwarded, 300, 2));
        let mut line = line(FragmentMode::Forwarded, profile);
        line.hear(1, eui(0), &stray[2], 1);
        for frame in &passing {
            line.hear(1, eui(0), frame, 2);
        }
        line.run_to_rest();
        assert_eq!(line.delivered.len(), arrives, "{profile:?}");
        assert!(
            line.dropped
                .iter()
                .any(|(node, dropped)| *node == 1
                    && (dropped.reason == DropReason::ReassemblyTimeout))
        );
    }
}

#[test]
fn a_datagram_goes_on_after_a_lost_fragment_only_as_gnrc_does() {
    for (profile, sent) in [(StackProfile::Native, 1), (StackProfile::RiotGnrc, 5)] {
        let mut line = line(FragmentMode::Forwarded, profile);
        line.faults = Faults { loss: 1.0, ..Faults::default() };
        line.send(packet(0, 3, 300, 1), 1);
        line.run_to_rest();
        assert_eq!(line.sent.len(), sent, "{profile:?}");
    }
}

#[test]
fn a_path_is_taken_down_by_a_sender_that_gives_up_only_as_ours_does() {
    for (profile, aborts) in [(StackProfile::Native, true), (StackProfile::RiotGnrc, false)] {
        let mut line = line(FragmentMode::Recovered, profile);
        line.faults = Faults { loss: 1.0, ..Faults::default() };
        line.send(packet(0, 3, 300, 1), 1);
        line.run_to_rest();
        let header = |frame: &[u8]| Rfrag::parse(frame).expect("a fragment").0;
        let aborted = line.sent.iter().any(|(_, frame)| header(frame).fragment_size == 0);
        assert_eq!(aborted, aborts, "{profile:?}");
        assert!(line.dropped.iter().any(|(_, dropped)| dropped.reason == DropReason::GaveUp));
    }
}

#[test]
fn the_gap_between_recoverable_fragments_is_kept_only_as_ours_is() {
    for (profile, at_once) in [(StackProfile::Native, 1), (StackProfile::RiotGnrc, 4)] {
        let recovery = Recovery {
            window: lowmesh_congestion::WindowSpec::fixed(32),
            inter_frame_gap: Duration::from_secs(1),
            ..Recovery::default()
        };
        let mut line =
            Line::new(2, Config { recovery, ..config(FragmentMode::Recovered, profile) }, 1);
        line.send(packet(0, 1, 300, 1), 1);
        line.run_until(Instant::ZERO);
        assert_eq!(line.sent.len(), at_once, "{profile:?}");
    }
}

#[test]
fn a_packet_whose_fragment_asks_no_more_takes_down_its_path() {
    let limits = lowmesh_congestion::window::Limits::messages(2, 32);
    let row = &lowmesh_congestion::window::appendix_c::ROW;
    let window = lowmesh_congestion::WindowSpec::new(row, limits);
    let recovery = Recovery { window, inter_frame_gap: Duration::ZERO, ..Recovery::default() };
    let config = Config { recovery, ..config(FragmentMode::Recovered, StackProfile::RiotGnrc) };
    let mut line = Line::new(4, config, 1);
    line.faults = Faults { loss: 1.0, ..Faults::default() };
    line.send(packet(0, 3, 300, 1), 1);
    line.run_to_rest();
    let sizes: Vec<bool> = line
        .sent
        .iter()
        .map(|(_, frame)| Rfrag::parse(frame).expect("a fragment").0.fragment_size == 0)
        .collect();
    assert_eq!(sizes, [false, false, true], "two fragments, and the abort after one timeout");
}

#[test]
fn the_last_fragment_again_is_confirmed_only_by_ours() {
    for (profile, bitmap) in
        [(StackProfile::Native, Bitmap::FULL), (StackProfile::RiotGnrc, Bitmap::NULL)]
    {
        let mut line = Line::new(2, config(FragmentMode::Recovered, profile), 1);
        line.send(packet(0, 1, 300, 1), 1);
        line.run_until(Instant::from_secs(1));
        assert_eq!(line.delivered.len(), 1);
        let mut fragments = line.sent.iter().rev().filter(|(from, _)| *from == 0);
        let last = fragments.next().expect("fragments were sent").1.clone();
        line.hear(1, eui(0), &last, 1);
        line.run_until(Instant::from_secs(2));
        let (_, answer) = line.sent.last().expect("it asks");
        assert_eq!(RfragAck::parse(answer).expect("an answer").bitmap, bitmap, "{profile:?}");
        line.run_to_rest();
    }
}

#[test]
fn the_end_of_a_reassembly_is_told_only_by_ours() {
    for (profile, told) in [(StackProfile::Native, 1), (StackProfile::RiotGnrc, 0)] {
        let mut line = Line::new(2, config(FragmentMode::Recovered, profile), 1);
        line.send(packet(0, 1, 300, 1), 1);
        let (_, first) = line.sent[0].clone();
        let mut line = Line::new(2, config(FragmentMode::Recovered, profile), 1);
        line.hear(1, eui(0), &first, 1);
        line.run_to_rest();
        let bitmap = |frame: &[u8]| RfragAck::parse(frame).expect("an answer").bitmap;
        let nulls = line.sent.iter().filter(|(_, frame)| bitmap(frame) == Bitmap::NULL);
        assert_eq!(nulls.count(), told, "{profile:?}");
    }
}

#[test]
fn a_source_marks_its_own_fragments_only_as_gnrc_does() {
    for (profile, marked) in [(StackProfile::Native, 0), (StackProfile::RiotGnrc, 2)] {
        let recovery = Recovery {
            window: lowmesh_congestion::WindowSpec::fixed(32),
            inter_frame_gap: Duration::ZERO,
            mark_frames: 2,
            ..Recovery::default()
        };
        let mut line =
            Line::new(2, Config { recovery, ..config(FragmentMode::Recovered, profile) }, 1);
        line.send(packet(0, 1, 300, 1), 1);
        line.run_until(Instant::ZERO);
        assert_eq!(line.nodes[0].recovery_counters().marked, marked, "{profile:?}");
    }
}

#[test]
fn faults_leave_nothing_behind_in_either_manner() {
    for profile in StackProfile::ALL {
        for mode in [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered] {
            for seed in 1..20 {
                let mut line = Line::new(4, config(mode, profile), seed);
                line.faults = Faults {
                    loss: 0.1,
                    ack_loss: 0.05,
                    copy: 0.1,
                    delay_max: Duration::from_millis(10),
                };
                for handle in 1..4 {
                    line.send(packet(0, 3, 500, handle as u8), handle);
                }
                line.run_to_rest();
                for arrived in &line.delivered {
                    let data = &arrived[48..];
                    let salt = data[0];
                    let whole = data.iter().enumerate();
                    assert!(
                        whole
                            .into_iter()
                            .all(|(i, byte)| *byte == (i as u8).wrapping_mul(7) ^ salt)
                    );
                }
            }
        }
    }
}
