//! Loss recovery by single events: which segments are lost is given, and what the sender does is counted.

use lowmesh_congestion::window::Phase;
use lowmesh_tcp::{Input, Profile, SendCounters};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::tcp::{Control, Ends, Header, Segment};

use crate::pair::{Pair, fast};

const SACK: Profile = Profile { mss: 512, ..Profile::LINUX };
const NO_SACK: Profile = Profile { sack: false, ..SACK };

/// A client that has sent `octets` to a warm connection, of which these segments are lost.
fn sent(profile: Profile, octets: usize, loses: &[usize]) -> Pair {
    let mut pair = Pair::new([profile; 2], fast(0.0), 1);
    pair.ends[0].closes = false;
    pair.ends[1].closes = false;
    pair.ends[0].write_octets = 100_000;
    pair.connect();
    pair.run(Instant::from_secs(1));
    pair.loses = loses.to_vec();
    pair.ends[0].to_send = (0..octets).map(|i| (i % 251) as u8).collect();
    pair.input(0, Input::Deadline);
    pair
}

fn finish(pair: &mut Pair) -> (SendCounters, Duration) {
    let start = pair.now;
    let wanted = pair.ends[0].to_send.len();
    pair.run_until(Instant::from_secs(100), |pair| pair.ends[1].received.len() == wanted);
    let took = pair.now.since(start);
    assert_eq!(pair.ends[1].received, pair.ends[0].to_send);
    pair.run(pair.now + Duration::from_secs(1));
    (pair.ends[0].connection.sending().expect("it is open").counters, took)
}

#[test]
fn one_lost_segment_is_sent_again_after_three_duplicates_and_halves_the_window_once() {
    for profile in [SACK, NO_SACK] {
        let mut pair = sent(profile, 5_000, &[2]);
        let (counters, took) = finish(&mut pair);
        assert_eq!((counters.retransmissions, counters.recoveries, counters.timeouts), (1, 1, 0));
        assert!(took < Duration::from_millis(60), "{took}");
        let sending = pair.ends[0].connection.sending().expect("it is open");
        assert!(matches!(sending.threshold, Some(5 | 6)), "{sending:?}");
        assert_eq!(sending.lost, 0);
    }
}

#[test]
fn without_sack_a_round_trip_repairs_one_of_several_losses_and_with_sack_all() {
    let took = |profile| {
        let (counters, took) = finish(&mut sent(profile, 5_000, &[1, 3, 5]));
        assert_eq!((counters.retransmissions, counters.timeouts), (3, 0));
        took
    };
    let (with, without) = (took(SACK), took(NO_SACK));
    // A round trip takes 10 to 14 ms.
    assert!(with < Duration::from_millis(40), "{with}");
    assert!(without > with + Duration::from_millis(15), "{with} {without}");
}

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    // The probe is the last segment again; its SACK shows that the one before it is lost, too.
    let (counters, took) = finish(&mut sent(SACK, 6 * 500, &[4, 5]));
    assert_eq!((counters.probes, counters.timeouts, counters.retransmissions), (1, 0, 2));
    let profile = Profile { loss_probes: false, ..SACK };
    let (counters, without) = finish(&mut sent(profile, 6 * 500, &[4, 5]));
    assert_eq!((counters.probes, counters.timeouts), (0, 1));
    assert!(took < without, "{took} {without}");
}

#[test]
fn when_a_whole_flight_is_lost_the_timeout_sends_it_again_in_slow_start() {
    for profile in [SACK, NO_SACK] {
        let profile = Profile { loss_probes: false, ..profile };
        let all: Vec<usize> = (0..10).collect();
        let (counters, took) = finish(&mut sent(profile, 5_000, &all));
        assert_eq!((counters.retransmissions, counters.timeouts), (10, 1));
        assert!(took < Duration::from_millis(400), "{took}");
    }
}

/// A client whose flight arrives only after its timer has expired.
fn delayed(profile: Profile) -> (SendCounters, u32) {
    let profile = Profile { loss_probes: false, ..profile };
    let mut pair = sent(profile, 20_000, &[]);
    pair.pause = Some((pair.now, pair.now + Duration::from_millis(300)));
    let (counters, _) = finish(&mut pair);
    let sending = pair.ends[0].connection.sending().expect("it is open");
    assert_eq!(sending.phase, Phase::Open);
    (counters, sending.window)
}

#[test]
fn a_spurious_timeout_is_undone_by_timestamps() {
    for profile in [SACK, NO_SACK] {
        let (counters, window) = delayed(profile);
        assert!(counters.timeouts == 1 && counters.undos >= 1, "{counters:?}");
        assert!(window >= 10, "{window}");
        assert!(counters.retransmissions <= 3, "{counters:?}");
    }
}

#[test]
fn the_first_acknowledgement_after_a_spurious_timeout_brings_new_data_with_f_rto() {
    let without = Profile { timestamps: false, ..NO_SACK };
    let (counters, _) = delayed(without);
    assert_eq!(counters.timeouts, 1);
    let (blind, _) = delayed(Profile { frto: false, ..without });
    assert!(counters.retransmissions < blind.retransmissions, "{counters:?} {blind:?}");
}

#[test]
fn much_reordering_causes_few_copies_and_no_timeout() {
    let mut pair = Pair::new([SACK; 2], fast(0.0), 1);
    pair.reorders = 0.2;
    pair.ends[0].closes = false;
    pair.ends[1].closes = false;
    pair.ends[0].to_send = vec![7; 300_000];
    pair.connect();
    let (counters, _) = finish(&mut pair);
    let share = counters.retransmissions as f64 / counters.segments as f64;
    // A fifth of the segments is up to three round trips late.
    assert!(share < 0.15, "{counters:?}");
    assert_eq!(counters.timeouts, 0);
}

#[test]
fn a_peer_that_acknowledges_half_a_segment_in_recovery_does_not_upset_the_counts() {
    // The server gets nothing; its acknowledgements are written here.
    let all: Vec<usize> = (0..100).collect();
    let mut pair = sent(NO_SACK, 5_000, &all);
    let (_, _, bytes) = pair.log.iter().rfind(|(_, end, _)| *end == 0).expect("it has sent");
    let ends = Ends::V4([10, 9, 0, 2], [10, 9, 0, 1]);
    let last = Segment::parse(&ends, bytes).expect("our own octets").header;
    let base = last.sequence.wrapping_sub(4_500);
    let mut acknowledge = |octets: u32| {
        let header = Header {
            source_port: 5_683,
            destination_port: 40_000,
            sequence: last.acknowledgment,
            acknowledgment: base.wrapping_add(octets),
            control: Control { ack: true, ..Control::default() },
            window: 30_000,
            ..Header::default()
        };
        pair.now += Duration::from_millis(10);
        pair.input(0, Input::Segment { header: &header, payload: &[] });
        pair.ends[0].connection.sending().expect("it is open")
    };
    // The first one brings the window, three are duplicates.
    for _ in 0..4 {
        acknowledge(0);
    }
    assert_eq!(acknowledge(0).phase, Phase::Recovery);
    // Half of the first of two segments that left together.
    assert_eq!(acknowledge(1_250).phase, Phase::Recovery);
    let sending = acknowledge(2_000);
    assert!(sending.lost <= sending.out, "{sending:?}");
    assert_eq!((acknowledge(5_000).lost, acknowledge(5_000).out), (0, 0));
}
