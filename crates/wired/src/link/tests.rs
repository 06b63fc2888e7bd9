//! Scripts with times, and properties over random links and packets.

use super::*;
use crate::Loss;
use lowmesh_units::{NodeId, Purpose, Seed};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, prop_compose, proptest};

const NO_JITTER: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);

const NB_IOT: Config = Config {
    rate_bits_per_second: 30_000,
    delay: Duration::from_millis(400),
    jitter: NO_JITTER,
    queue_octets_max: 2_500,
    loss: Loss::None,
    samples_max: 100,
};

fn link(config: Config, seed: u64) -> Link<usize> {
    let rng = Rng::stream(Seed(seed), NodeId(0), Purpose::Wired);
    Link::new(config, rng).expect("a valid link")
}

fn offer(link: &mut Link<usize>, at: Instant, packet: usize, octets: u32) {
    link.handle(at, Input::Packet { packet, octets }).expect("a link accepts every packet");
}

/// Takes the outputs until `until`, each with its time.
fn run(link: &mut Link<usize>, until: Instant) -> Vec<(Instant, Output<usize>)> {
    let mut seen = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        while let Some(output) = link.poll_output() {
            seen.push((now, output));
        }
        match link.next_deadline() {
            Some(due) if due <= until => now = due,
            _ => return seen,
        }
        link.handle(now, Input::Deadline).expect("a link accepts its deadline");
    }
}

#[test]
fn a_packet_takes_its_serialisation_and_the_delay() {
    let mut link = link(NB_IOT, 1);
    offer(&mut link, Instant::ZERO, 0, 296);
    let seen = run(&mut link, Instant::from_secs(9));
    // 296 * 8 / 30,000 = 78.933 ms, rounded up to the nanosecond.
    assert_eq!(seen, [(Instant::from_nanos(478_933_334), Output::Arrived(0))]);
}

#[test]
fn the_queue_drops_what_does_not_fit_and_the_packet_being_sent_is_not_counted() {
    let mut link = link(NB_IOT, 1);
    for packet in 0..10 {
        offer(&mut link, Instant::ZERO, packet, 296);
    }
    // One is being sent, 8 * 296 = 2,368 octets wait, and the tenth does not fit.
    assert_eq!((link.queued_octets(), link.packets()), (2_368, 9));
    assert_eq!(link.poll_output(), Some(Output::Dropped(9)));
    offer(&mut link, Instant::ZERO, 10, 132);
    assert_eq!((link.queued_octets(), link.poll_output()), (2_500, None));
}

#[test]
fn an_idle_link_sends_a_packet_that_is_longer_than_its_queue() {
    let mut link = link(Config { queue_octets_max: 0, ..NB_IOT }, 1);
    offer(&mut link, Instant::ZERO, 0, 1_280);
    offer(&mut link, Instant::ZERO, 1, 1);
    assert_eq!(link.poll_output(), Some(Output::Dropped(1)));
    assert_eq!(run(&mut link, Instant::from_secs(9)).len(), 1);
}

#[test]
fn a_driver_that_comes_late_changes_no_transmission() {
    let mut link = link(NB_IOT, 1);
    offer(&mut link, Instant::ZERO, 0, 296);
    offer(&mut link, Instant::ZERO, 1, 296);
    link.handle(Instant::from_millis(120), Input::Deadline).expect("accepted");
    // The second one has been in the serialiser since 78.93 ms, and ends at 157.87 ms.
    assert_eq!(link.next_deadline(), Some(Instant::from_nanos(157_866_667)));
}

#[test]
fn the_history_has_every_change_of_the_queue() {
    let mut link = link(NB_IOT, 1);
    for packet in 0..3 {
        offer(&mut link, Instant::ZERO, packet, 300);
    }
    run(&mut link, Instant::from_secs(9));
    let octets: Vec<u64> = link.history().samples().iter().map(|sample| sample.octets).collect();
    assert_eq!(octets, [300, 600, 300, 0]);
    // 600 octets for 80 ms and 300 for another 80 ms.
    assert!((link.history().mean(Instant::from_millis(160)) - 450.0).abs() < 1e-9);
}

#[test]
fn the_same_stream_gives_the_same_link() {
    let lossy = Config {
        jitter: (Duration::from_millis(10), Duration::from_millis(20)),
        loss: Loss::Independent { probability: 0.5 },
        queue_octets_max: 1_000_000,
        ..NB_IOT
    };
    let trace = |seed| {
        let mut link = link(lossy, seed);
        for packet in 0..100 {
            offer(&mut link, Instant::ZERO, packet, 100);
        }
        run(&mut link, Instant::from_secs(1_000))
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

prop_compose! {
    fn any_config()(
        rate in 100u64..10_000_000,
        delay_ms in 0u64..1_000,
        jitter_ms in 0u64..100,
        queue in 0u64..20_000,
        loss in 0usize..3,
    ) -> Config {
        let loss = [
            Loss::None,
            Loss::Independent { probability: 0.3 },
            Loss::GilbertElliott {
                good: 0.0,
                bad: 1.0,
                mean_good: Duration::from_millis(50),
                mean_bad: Duration::from_millis(20),
            },
        ][loss];
        Config {
            rate_bits_per_second: rate,
            delay: Duration::from_millis(delay_ms),
            jitter: (Duration::ZERO, Duration::from_millis(jitter_ms)),
            queue_octets_max: queue,
            loss,
            samples_max: 10,
        }
    }
}

proptest! {
    #[test]
    fn every_packet_ends_once_and_the_order_is_kept(
        config in any_config(),
        packets in prop::collection::vec((0u64..50, 1u32..1_500), 1..80),
        seed in 0u64..1_000,
    ) {
        let mut link = link(config, seed);
        let mut now = Instant::ZERO;
        let mut ends = vec![0; packets.len()];
        let mut arrived = Vec::new();
        let mut drain = |link: &mut Link<usize>| while let Some(output) = link.poll_output() {
            match output {
                Output::Arrived(packet) => { ends[packet] += 1; arrived.push(packet); }
                Output::Lost(packet) | Output::Dropped(packet) => ends[packet] += 1,
            }
        };
        for (packet, (gap_ms, octets)) in packets.iter().enumerate() {
            now += Duration::from_millis(*gap_ms);
            offer(&mut link, now, packet, *octets);
            prop_assert!(link.queued_octets() <= config.queue_octets_max);
            drain(&mut link);
        }
        while let Some(due) = link.next_deadline() {
            prop_assert!(due >= Instant::ZERO);
            link.handle(due, Input::Deadline).expect("accepted");
            drain(&mut link);
        }
        prop_assert!(ends.iter().all(|ends| *ends == 1), "{ends:?}");
        prop_assert!(arrived.is_sorted(), "{arrived:?}");
        let counters = link.counters();
        prop_assert_eq!(counters.offered, packets.len() as u64);
        prop_assert_eq!(counters.offered, counters.arrived + counters.lost + counters.dropped);
    }

    #[test]
    fn a_busy_period_has_exactly_the_rate(
        rate in 100u64..10_000_000,
        octets in prop::collection::vec(1u32..1_500, 1..200),
    ) {
        let config = Config {
            rate_bits_per_second: rate,
            delay: Duration::ZERO,
            queue_octets_max: u64::MAX,
            ..NB_IOT
        };
        let mut link = link(config, 1);
        for (packet, octets) in octets.iter().enumerate() {
            offer(&mut link, Instant::ZERO, packet, *octets);
        }
        let seen = run(&mut link, Instant::FAR_FUTURE);
        let bits = octets.iter().map(|octets| u128::from(*octets) * 8).sum::<u128>();
        let end = seen.last().expect("all arrive").0;
        prop_assert_eq!(u128::from(end.as_nanos()), (bits * 1_000_000_000).div_ceil(u128::from(rate)));
    }
}
