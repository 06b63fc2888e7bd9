//! Every window, and fates and frames by chance: never a wrong packet, never anything left behind.

use lowmesh_congestion::Window;
use lowmesh_registry::{Algorithm, Registry};
use lowmesh_units::Duration;
use proptest::prelude::*;

use super::line::*;
use crate::adapt::*;

#[test]
fn all_windows_drive_several_datagrams_over_a_line_that_loses_every_seventh_frame() {
    let mut fates = vec![Fate::Arrives; 6];
    fates.push(Fate::Lost);
    for name in Registry::<dyn Window>::builtin().names() {
        let mut config = config(name, 2);
        config.recovery.datagram_retries = 2;
        let mut line = Line::new(vec![config; 3], fates.clone());
        for datagram in 0..4 {
            line.send(500, Handle(10 + datagram));
        }
        line.run();
        assert_eq!(line.arrived.len(), 4, "{name}");
        assert!(line.arrived.iter().all(|bytes| *bytes == after_hops(packet(500, 2), 1)));
        assert!(line.is_empty());
    }
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Unconfirmed),
        1 => Just(Fate::ArrivesTwice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_loss_makes_a_wrong_packet_nor_leaves_anything_behind(
        fates in prop::collection::vec(any_fate(), 1..80),
        window in 0..<dyn Window>::BUILTIN.len(),
        datagrams in prop::collection::vec(150usize..1232, 1..5),
        hops in 2usize..5,
        datagram_retries in 0u8..2,
        gap_us in prop_oneof![Just(100u64), 5_000..200_000u64],
        linger_us in prop_oneof![Just(250u64), Just(5_000_000)],
    ) {
        let mut config = config(<dyn Window>::BUILTIN[window].name, 3);
        config.recovery.inter_frame_gap = Duration::from_micros(gap_us);
        config.recovery.linger = Duration::from_micros(linger_us);
        config.recovery.datagram_retries = datagram_retries;
        config.forwarded_datagrams = 2;
        let mut line = Line::new(vec![config; hops + 1], fates);
        for (number, data) in datagrams.iter().enumerate() {
            line.send(*data, Handle(10 + number as u64));
        }
        line.run();
        let hop_limit = (hops - 1) as u8;
        for bytes in &line.arrived {
            let data = bytes.len() - 48;
            prop_assert!(datagrams.contains(&data));
            prop_assert_eq!(bytes, &after_hops(packet(data, hops), hop_limit));
        }
        prop_assert!(line.is_empty());
    }

    #[test]
    fn no_frame_of_a_neighbour_makes_a_node_panic_or_hoard(
        frames in prop::collection::vec(
            (0u8..2, 0u8..4, prop::collection::vec(any::<u8>(), 0..40)), 0..40),
    ) {
        let mut line = Line::new(vec![config("fixed", 2); 3], vec![Fate::Lost]);
        line.send(400, HANDLE);
        line.run_until(|line| line.log.len() == 1);
        for (kind, tag, mut frame) in frames {
            frame.splice(0..0, [0xe8 | kind << 1, tag]);
            let source = node(2 * usize::from(tag % 2));
            let (payload, destination) = (&frame[..], Some(node(1)));
            *line.copies.entry(HANDLE).or_default() += 1;
            line.input(1, Input::Frame { payload, source, destination, handle: HANDLE, is_proven: false });
            let buffer = line.nodes[1].packet_buffer().total();
            prop_assert!(buffer <= Config::default().packet_buffer_octets);
        }
    }
}
