//! Loss, copies and overtaking: never a wrong packet, never an entry beyond its time.

use lowmesh_lowpan::{Config, FragmentMode};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET};
use lowmesh_wire::udp::Datagram;
use proptest::prelude::*;

use crate::line::{Faults, Line, PREFIX, eui, packet};

/// True when the UDP checksum of an arrived packet is right.
fn checksum_holds(packet: &[u8], from: usize, to: usize) -> bool {
    let (source, destination) =
        (Address::global(PREFIX, eui(from)), Address::global(PREFIX, eui(to)));
    Datagram::parse(&source, &destination, &packet[40..]).is_ok()
}

fn faults() -> impl Strategy<Value = Faults> {
    let probability = || prop_oneof![Just(0.0), 0.0..0.4f64];
    (probability(), probability(), probability(), 0u64..300).prop_map(
        |(loss, ack_loss, copy, delay)| Faults {
            loss,
            ack_loss,
            copy,
            delay_max: Duration::from_millis(delay),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_arrives_was_sent_and_nothing_stays(
        mode in prop_oneof![Just(FragmentMode::HopWise), Just(FragmentMode::Forwarded), Just(FragmentMode::Recovered)],
        nodes in 2usize..6,
        faults in faults(),
        packets in proptest::collection::vec((0usize..1200, 0u64..4000), 1..12),
        in_flight in 1usize..4,
        entries in 1usize..5,
        seed: u64,
    ) {
        let config = Config {
            mode,
            fragments_in_flight: in_flight,
            forwarded_datagrams: entries,
            reassembly_buffers: entries,
            ..Config::default()
        };
        let mut line = Line::new(nodes, config, seed);
        line.faults = faults;
        let mut sent = Vec::new();
        let mut packets = packets;
        packets.sort_unstable_by_key(|(_, at)| *at);
        for (index, (octets, at)) in packets.into_iter().enumerate() {
            let bytes = packet(0, nodes - 1, octets, index as u8);
            line.run_until(Instant::from_millis(at));
            line.send(bytes.clone(), index as u64 + 1);
            sent.push(bytes);
        }
        line.run_to_rest();
        for arrived in &line.delivered {
            let mut as_sent = arrived.clone();
            prop_assert_eq!(as_sent[HOP_LIMIT_OFFSET], 64 - (nodes as u8 - 2));
            as_sent[HOP_LIMIT_OFFSET] = 64;
            prop_assert!(sent.contains(&as_sent), "nobody sent {} octets", arrived.len());
            prop_assert!(checksum_holds(arrived, 0, nodes - 1));
        }
        if faults.loss == 0.0 && faults.ack_loss == 0.0 && faults.copy == 0.0 && sent.len() == 1
            && faults.delay_max == Duration::ZERO
        {
            prop_assert_eq!(line.delivered.len(), 1);
        }
    }
}
