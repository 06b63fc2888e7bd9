//! Options that this node does not know.

use super::*;

/// A packet with one option header of this kind, whose option is not known here.
fn with_option(header: u8, option: u8) -> Vec<u8> {
    let mut bytes = datagram(global(2), global(1), PORT, 64);
    let upper = std::mem::replace(&mut bytes[6], header);
    bytes[5] += 8;
    bytes.splice(40..40, [upper, 0, option, 4, 0, 0, 0, 0]);
    bytes
}

#[test]
fn an_unknown_option_does_what_its_highest_bits_ask_for() {
    for header in [next_header::HOP_BY_HOP, next_header::DESTINATION_OPTIONS] {
        for (option, reported) in [(0x5e, false), (0x9e, true), (0xde, true)] {
            let mut host = Host::new(|_| ());
            let outputs = host.receive(2, with_option(header, option));
            let end = dropped(Handle(7), Layer::Ipv6, DropReason::UnknownOption);
            assert_eq!(outputs.last(), Some(&end));
            assert_eq!(outputs.len() > 1, reported, "{option:#x}");
            if reported {
                let (_, to, message) = read(answer(&outputs).0);
                let Icmpv6::ParameterProblem { code, pointer, .. } = message else { panic!() };
                assert_eq!((to, code, pointer), (global(2), 2, 42));
            }
        }
        let skipped = Host::new(|_| ()).receive(2, with_option(header, 0x1e));
        assert!(matches!(skipped[0], Output::Datagram(_)), "{skipped:?}");
    }
}

#[test]
fn a_forwarder_looks_at_the_options_of_every_hop_and_at_no_others() {
    let passes = |header| {
        let mut bytes = with_option(header, 0x9e);
        bytes[24..40].copy_from_slice(&global(3).0);
        let outputs = Host::new(|_| ()).receive(2, bytes);
        outputs.iter().any(|output| matches!(output, Output::Send { handle: Handle(7), .. }))
    };
    assert!(passes(next_header::DESTINATION_OPTIONS));
    assert!(!passes(next_header::HOP_BY_HOP));
}
