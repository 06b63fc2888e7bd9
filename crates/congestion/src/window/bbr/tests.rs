//! BBR over a small model of a bottleneck, and by single signals.

use super::super::tests::{at, window_of};
use super::super::{Message, PhaseChange, RateSample};
use super::*;

const RTT_MS: u64 = 100;

fn bbr() -> Bbr {
    Bbr::new(Limits::messages(10, 10_000))
}

struct InFlight {
    sent_ms: u64,
    delivered_before: u64,
    delivered_ms: u64,
    ack_ms: u64,
}

/// A bottleneck that delivers one segment every `gap_ms` after a round trip of 100 ms; the queue is endless.
struct Path {
    bbr: Bbr,
    now_ms: u64,
    in_flight: VecDeque<InFlight>,
    delivered: u64,
    delivered_ms: u64,
    free_ms: u64,
    next_departure_us: u64,
}

impl Path {
    fn new() -> Self {
        let bbr = bbr();
        Self {
            bbr,
            now_ms: 0,
            in_flight: VecDeque::new(),
            delivered: 0,
            delivered_ms: 0,
            free_ms: 0,
            next_departure_us: 0,
        }
    }
    /// Runs with a full application until `end_ms`, a millisecond a step.
    fn run(&mut self, gap_ms: u64, end_ms: u64) {
        while self.now_ms < end_ms {
            self.now_ms += 1;
            while self.in_flight.front().is_some_and(|sent| sent.ack_ms <= self.now_ms) {
                self.acknowledge();
            }
            while self.now_ms * 1_000 >= self.next_departure_us
                && (self.in_flight.len() as u32) < self.bbr.window
            {
                self.free_ms = self.free_ms.max(self.now_ms) + gap_ms;
                self.in_flight.push_back(InFlight {
                    sent_ms: self.now_ms,
                    delivered_before: self.delivered,
                    delivered_ms: self.delivered_ms,
                    ack_ms: self.free_ms + RTT_MS,
                });
                let gap = self.bbr.pacing_gap(1).expect("BBR paces").as_micros();
                // A departure that is up to a millisecond late makes the next one no later.
                let earliest = (self.now_ms * 1_000).saturating_sub(1_000);
                self.next_departure_us = self.next_departure_us.max(earliest) + gap;
                self.bbr.on_sent(1, at(self.now_ms));
            }
        }
    }
    fn acknowledge(&mut self) {
        let InFlight { sent_ms, delivered_before, delivered_ms, .. } =
            self.in_flight.pop_front().expect("checked");
        self.delivered += 1;
        self.delivered_ms = self.now_ms;
        let span = Duration::from_millis(self.now_ms - sent_ms);
        let rate = RateSample {
            delivered: (self.delivered - delivered_before) as u32,
            interval: Duration::from_millis(self.now_ms - delivered_ms),
            delivered_before,
            is_application_limited: false,
        };
        let message = Message { size: 1, sent: at(sent_ms) };
        let ack = Ack {
            acked: &[message],
            advances: true,
            delivered: 1,
            in_flight_before: self.in_flight.len() as u32 + 1,
            in_flight: self.in_flight.len() as u32,
            rtt: Some(span),
            srtt: Some(span),
            rate: Some(rate),
            segment_octets: 250,
            paced_until: Instant::from_nanos(self.next_departure_us * 1_000),
            ..Ack::default()
        };
        self.bbr.on_ack(&ack, at(self.now_ms));
    }
}

#[test]
fn it_finds_the_bandwidth_drains_the_queue_and_keeps_to_twice_the_product() {
    let mut path = Path::new();
    path.run(10, 3_000);
    assert_eq!(path.bbr.mode(), Mode::ProbeBw);
    // 100 segments a second: 25,000 octets/s, at most 5/4 of it and one percent less.
    let rate = path.bbr.pacing_rate().expect("BBR paces");
    assert!((18_000..=31_000).contains(&rate), "{rate}");
    // BDP 11 (10 and one in service), gain 2, and three bursts of a segment.
    assert!((22..=30).contains(&window_of(&path.bbr)), "{}", window_of(&path.bbr));
    path.run(10, 8_000);
    assert!(path.in_flight.len() <= 20, "{}", path.in_flight.len());
}

#[test]
fn the_least_round_trip_is_probed_after_ten_seconds_and_the_window_comes_back() {
    let mut path = Path::new();
    path.run(10, 8_000);
    let before = window_of(&path.bbr);
    let mut least = before;
    while path.now_ms < 14_000 {
        path.run(10, path.now_ms + 1);
        least = least.min(window_of(&path.bbr));
    }
    assert_eq!(least, 4, "ProbeRtt holds four");
    assert!(window_of(&path.bbr) >= before - 4, "{} {before}", window_of(&path.bbr));
}

#[test]
fn a_slower_path_is_believed_after_ten_rounds() {
    let mut path = Path::new();
    path.run(10, 6_000);
    path.run(20, 20_000);
    let rate = path.bbr.pacing_rate().expect("BBR paces");
    assert!((9_000..=16_000).contains(&rate), "{rate}");
}

#[test]
fn the_first_rate_is_the_window_in_a_round_trip_times_the_high_gain() {
    let mut bbr = bbr();
    assert_eq!(bbr.pacing_rate(), None, "the octets of a segment are not known yet");
    let rtt = Some(Duration::from_micros(650_571));
    bbr.on_ack(&Ack { rtt, srtt: rtt, segment_octets: 244, ..Ack::default() }, at(650));
    assert_eq!((bbr.pacing_rate(), window_of(&bbr)), (Some(10_681), 10));
}

#[test]
fn recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut bbr = bbr();
    let change = |phase| PhaseChange { phase, is_new_episode: true, lost: &[] };
    bbr.on_phase(&change(Phase::Recovery), at(1));
    let ack =
        Ack { delivered: 1, in_flight: 5, newly_lost: 1, phase: Phase::Recovery, ..Ack::default() };
    bbr.on_ack(&ack, at(2));
    assert_eq!(window_of(&bbr), 6, "in flight, and what was delivered");
    bbr.on_ack(&Ack { delivered: 1, in_flight: 4, phase: Phase::Open, ..Ack::default() }, at(3));
    assert_eq!(window_of(&bbr), 11, "ten as before, and one more in Startup");
}

#[test]
fn a_timeout_restarts_the_search_for_the_full_pipe_and_the_window_comes_back_after_it() {
    let mut path = Path::new();
    path.run(10, 3_000);
    let before = window_of(&path.bbr);
    let change = PhaseChange { phase: Phase::Loss, is_new_episode: true, lost: &[] };
    path.bbr.on_phase(&change, at(3_000));
    path.bbr.resize(1);
    assert_eq!(path.bbr.full_pipe.bandwidth, 0);
    path.bbr.on_ack(&Ack { delivered: 1, phase: Phase::Loss, ..Ack::default() }, at(3_001));
    assert_eq!(window_of(&path.bbr), 4, "the least of BBR");
    path.bbr.on_ack(&Ack { delivered: 1, phase: Phase::Open, ..Ack::default() }, at(3_002));
    assert!(window_of(&path.bbr) >= before);
}

#[test]
fn two_intervals_with_losses_at_one_rate_are_a_policer() {
    let mut bbr = bbr();
    let mut now = 0;
    // One segment every 50 ms; every third is lost.
    for delivered in 0..30_u64 {
        now += 50;
        let rate = RateSample {
            delivered: 2,
            interval: Duration::from_millis(100),
            delivered_before: delivered,
            is_application_limited: false,
        };
        let newly_lost = u32::from(delivered % 3 == 0);
        let rate = Some(rate);
        bbr.on_ack(
            &Ack { delivered: 1, newly_lost, rate, segment_octets: 250, ..Ack::default() },
            at(now),
        );
    }
    let policed = bbr.policer.bandwidth().expect("a policer is seen");
    let rate = rate::octets_per_second(policed, rate::GAIN_ONE, 250);
    assert!((4_500..=5_500).contains(&rate), "{rate}: 20 segments of 250 octets a second");
}

#[test]
fn a_caller_without_rate_samples_gets_a_rate_from_its_departures() {
    let mut bbr = Bbr::new(Limits::messages(5, 5));
    for round in 0..20_u64 {
        let sent = at(round * 100);
        for _ in 0..5 {
            bbr.on_sent(1, sent);
        }
        for one in 0..5_u64 {
            let now = at(round * 100 + 60 + one * 10);
            bbr.on_acked(Message { size: 1, sent }, Some(now.since(sent)), now);
        }
    }
    let gap = bbr.pacing_gap(1).expect("BBR paces").as_millis();
    assert!((10..=30).contains(&gap), "five in 100 ms: {gap} ms");
}
