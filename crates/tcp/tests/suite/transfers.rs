//! Transfers between two machines over bad links: every octet arrives once and in order.

use lowmesh_congestion::Window;
use lowmesh_registry::Algorithm;
use lowmesh_tcp::{Ending, Profile, State};
use lowmesh_units::Instant;

use crate::pair::{Pair, fast, nb_iot};

fn octets(seed: u64, count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (i.wrapping_mul(31).wrapping_add(seed * 7) % 251) as u8).collect()
}

/// Both ends send and close; both must get everything. False when the handshake was given up.
fn transfer(profile: Profile, loss: f64, seed: u64) -> bool {
    let mut pair = Pair::new([profile; 2], fast(loss), seed);
    pair.reorders = 0.1;
    pair.duplicates = 0.1;
    let (up, down) = (
        octets(seed, 1 + (seed as usize * 37) % 900),
        octets(seed + 1, (seed as usize * 61) % 2_500),
    );
    pair.ends[0].to_send.clone_from(&up);
    pair.ends[1].to_send.clone_from(&down);
    pair.connect();
    let is_done = |pair: &Pair| {
        let has_all =
            pair.ends[0].received.len() >= down.len() && pair.ends[1].received.len() >= up.len();
        has_all
            && pair
                .ends
                .iter()
                .all(|end| end.ending.is_some() || end.connection.state() == State::TimeWait)
    };
    let limit = Instant::from_secs(4_000);
    while !is_done(&pair) {
        if !pair.step(limit) {
            // Seven SYNs in a row were lost, or their answers were: the client gave up, and no octet went anywhere. Or the
            // server gave up first: it may answer an unproven address three times only, and all segments of the client
            // after that were lost. The next one gets a reset.
            let given_up = match pair.ends.each_ref().map(|end| end.ending) {
                [Some(Ending::Reset), server] => server,
                [client, _] => client,
            };
            assert_eq!(given_up, Some(Ending::TimedOut), "seed {seed}");
            assert!(pair.ends.iter().all(|end| end.received.is_empty()), "seed {seed}");
            return false;
        }
    }
    assert_eq!(pair.ends[0].received, down, "seed {seed}");
    assert_eq!(pair.ends[1].received, up, "seed {seed}");
    true
}

fn ten_thousand(part: u64) {
    let profiles = [
        Profile::LINUX,
        Profile { mss: 256, ..Profile::LINUX },
        Profile::PESOLA,
        Profile::LLN,
        Profile { timestamps: false, ..Profile::PESOLA },
    ];
    let mut given_up = 0;
    for seed in (0..10_000).filter(|seed| seed % 4 == part) {
        let window = <dyn Window>::BUILTIN[(seed / 5) as usize % <dyn Window>::BUILTIN.len()];
        let profile = Profile { window, ..profiles[seed as usize % profiles.len()] };
        given_up += u32::from(!transfer(profile, 0.3, seed));
    }
    assert!(given_up <= 12, "{given_up} of 2,500 handshakes");
}

#[test]
fn ten_thousand_small_transfers_with_a_third_lost_first_quarter() {
    ten_thousand(0);
}

#[test]
fn ten_thousand_small_transfers_with_a_third_lost_second_quarter() {
    ten_thousand(1);
}

#[test]
fn ten_thousand_small_transfers_with_a_third_lost_third_quarter() {
    ten_thousand(2);
}

#[test]
fn ten_thousand_small_transfers_with_a_third_lost_last_quarter() {
    ten_thousand(3);
}

#[test]
fn a_clean_link_needs_no_retransmission_and_both_ends_finish() {
    let mut pair = Pair::new([Profile::LINUX; 2], fast(0.0), 1);
    pair.ends[0].to_send = octets(1, 300_000);
    pair.connect();
    pair.run(Instant::from_secs(200));
    assert_eq!(pair.ends[1].received, octets(1, 300_000));
    let endings = pair.ends.each_ref().map(|end| end.ending);
    assert_eq!(endings, [Some(Ending::Finished); 2]);
    let sent = pair.log.iter().filter(|(_, end, bytes)| *end == 0 && bytes.len() > 100).count();
    assert!(sent < 300_000 / 1_428 + 60, "{sent}");
}

#[test]
fn every_window_fills_the_link_of_pesola_and_keeps_its_buffers_bounded() {
    for row in <dyn Window>::BUILTIN {
        let profile = Profile { window: row, sack: true, ..Profile::PESOLA };
        let mut pair = Pair::new([profile; 2], nb_iot(14_100, lowmesh_wired::Loss::None), 3);
        pair.answer = Some((20, 262));
        pair.ends[0].to_send = vec![b'r'; 100 * 20];
        pair.ends[0].closes = false;
        pair.ends[1].closes = false;
        pair.connect();
        pair.run_until(Instant::from_secs(600), |pair| pair.ends[0].received.len() == 26_200);
        assert!(pair.now < Instant::from_secs(120), "{}: {}", row.name, pair.now);
    }
}
