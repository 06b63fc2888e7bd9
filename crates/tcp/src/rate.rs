//! Samples of the rate at which the path delivers (draft-cheng-iccrg-delivery-rate-estimation-02, Linux tcp_rate.c).

use lowmesh_congestion::window::RateSample;
use lowmesh_units::{Duration, Instant};

/// The delivery state that a segment records when it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    sent: Instant,
    first_sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    is_application_limited: bool,
}

/// The delivered total of a connection, and when it grew.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Deliveries up to here were limited by the application.
    limited_until: u64,
}

/// The newest segment among those that one acknowledgement delivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    stamp: Option<(Stamp, i64)>,
    send_interval: Duration,
}

impl Newest {
    /// What had been delivered in total when it left; 0 without a segment.
    pub fn delivered_before(&self) -> u64 {
        self.stamp.map_or(0, |(stamp, _)| stamp.delivered)
    }
}

impl Sampler {
    /// Nothing but the SYN is delivered.
    pub const fn new(now: Instant) -> Self {
        Self { delivered: 1, delivered_at: now, first_sent: now, limited_until: 0 }
    }
    /// Segments delivered in total.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
    /// A segment leaves; `is_alone` when nothing was on its way before it.
    pub fn on_sent(&mut self, is_alone: bool, now: Instant) -> Stamp {
        if is_alone {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Stamp {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            is_application_limited: self.limited_until > 0,
        }
    }
    /// A segment that ends at `end` was delivered.
    pub fn on_delivered(&mut self, stamp: Stamp, end: i64, newest: &mut Newest) {
        let is_newer = newest.stamp.is_none() || (stamp.sent, end) > newest_key(newest);
        if is_newer {
            newest.stamp = Some((stamp, end));
            self.first_sent = stamp.sent;
            newest.send_interval = stamp.sent.since(stamp.first_sent);
        }
    }
    /// `count` more segments are delivered.
    pub fn count(&mut self, count: u32) {
        self.delivered += u64::from(count);
    }
    /// The sample of an acknowledgement that delivered `count` segments, counted already.
    pub fn sample(
        &mut self,
        newest: &Newest,
        count: u32,
        rtt_min: Option<Duration>,
        now: Instant,
    ) -> Option<RateSample> {
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if count > 0 {
            self.delivered_at = now;
        }
        let (stamp, _) = newest.stamp?;
        let interval = newest.send_interval.max(now.since(stamp.delivered_at));
        if interval.is_zero() || rtt_min.is_some_and(|least| interval < least) {
            return None;
        }
        Some(RateSample {
            delivered: (self.delivered - stamp.delivered) as u32,
            interval,
            delivered_before: stamp.delivered,
            is_application_limited: stamp.is_application_limited,
        })
    }
    /// True while the application, or the window on purpose, limits the rate.
    pub const fn is_limited(&self) -> bool {
        self.limited_until > 0
    }
    /// The sender has less to send than the path can carry, or the window holds it back, with `in_flight` unacknowledged.
    pub fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }
}

fn newest_key(newest: &Newest) -> (Instant, i64) {
    newest.stamp.map_or((Instant::ZERO, i64::MIN), |(stamp, end)| (stamp.sent, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_rate_is_that_of_the_slower_one_of_sending_and_acknowledging() {
        let mut sampler = Sampler::new(at(0));
        let stamps: Vec<Stamp> = (0..4).map(|i| sampler.on_sent(i == 0, at(i * 10))).collect();
        let mut last = None;
        for (i, stamp) in stamps.iter().enumerate() {
            let mut newest = Newest::default();
            sampler.on_delivered(*stamp, i as i64, &mut newest);
            sampler.count(1);
            last = sampler.sample(&newest, 1, None, at(100 + i as u64 * 50));
        }
        let last = last.expect("an interval");
        // Four segments since the start of the flight at 0 ms, the last at 250 ms.
        assert_eq!((last.delivered, last.interval), (4, Duration::from_millis(250)));
        assert_eq!(last.delivered_before, 1);
    }

    #[test]
    fn an_interval_under_the_least_round_trip_is_no_sample() {
        let mut sampler = Sampler::new(at(0));
        let stamp = sampler.on_sent(true, at(0));
        let mut newest = Newest::default();
        sampler.on_delivered(stamp, 1, &mut newest);
        sampler.count(1);
        assert!(sampler.sample(&newest, 1, Some(Duration::from_millis(60)), at(50)).is_none());
    }

    #[test]
    fn samples_are_limited_until_what_was_in_flight_then_has_arrived() {
        let mut sampler = Sampler::new(at(0));
        sampler.limit(1);
        let first = sampler.on_sent(true, at(1));
        let limited = |sampler: &mut Sampler, stamp, now| {
            let mut newest = Newest::default();
            sampler.on_delivered(stamp, 1, &mut newest);
            sampler.count(1);
            sampler.sample(&newest, 1, None, now).expect("an interval").is_application_limited
        };
        assert!(limited(&mut sampler, first, at(50)));
        let second = sampler.on_sent(true, at(60));
        assert!(limited(&mut sampler, second, at(100)));
        let third = sampler.on_sent(true, at(110));
        assert!(!limited(&mut sampler, third, at(150)));
    }
}
