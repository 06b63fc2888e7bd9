//! When an acknowledgement leaves: at once at the start and where the sender needs it, delayed by the gap of arrivals
//! otherwise (RFC 5681 s4.2, with the quick acknowledgements and the adaptive delay of Linux).

use lowmesh_units::{Duration, Instant};

use crate::params::{ACK_DELAY_MAX, ACK_DELAY_MIN, QUICK_ACKS_MAX};

/// What the connection knows that the delay depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) rto: Duration,
    pub(crate) srtt: Option<Duration>,
    /// Octets of the receive window.
    pub(crate) window: i64,
}

#[derive(Debug)]
pub(crate) struct Acks {
    delays: bool,
    quick: u32,
    /// The estimated gap of arrivals; `None` before the first data.
    delay: Option<Duration>,
    last_data: Instant,
    deadline: Option<Instant>,
    /// Data came that is not acknowledged.
    is_due: bool,
    /// Our data answers the peer's, and carries the acknowledgements.
    is_interactive: bool,
    segment_octets: u32,
}

impl Acks {
    pub(crate) const fn new(delays: bool, segment_octets: u32) -> Self {
        Self {
            delays,
            quick: 0,
            delay: None,
            last_data: Instant::ZERO,
            deadline: None,
            is_due: false,
            is_interactive: false,
            segment_octets,
        }
    }
    /// Data came in order or not.
    pub(crate) fn on_data(&mut self, octets: usize, around: &Circumstances, now: Instant) {
        self.is_due = true;
        self.segment_octets = self.segment_octets.max(octets as u32);
        let gap = now.since(self.last_data);
        self.last_data = now;
        let half = ACK_DELAY_MIN / 2;
        self.delay = Some(match self.delay {
            None => {
                self.quicken(around.window);
                ACK_DELAY_MIN
            }
            Some(delay) if gap <= half => delay / 2 + half,
            Some(delay) if gap < delay => (delay / 2 + gap).min(around.rto),
            Some(delay) => {
                if gap > around.rto {
                    self.quicken(around.window);
                }
                delay
            }
        });
    }
    /// The next acknowledgements are not delayed: the sender is in slow start, or has lost something.
    fn quicken(&mut self, window: i64) {
        let segments = window / (2 * i64::from(self.segment_octets.max(1)));
        let segments = (segments.max(2) as u32).min(QUICK_ACKS_MAX);
        self.quick = self.quick.max(segments);
    }
    /// Something is wrong: acknowledge at once for a while.
    pub(crate) fn hurry(&mut self, window: i64) {
        self.quicken(window);
        self.is_interactive = false;
        self.delay = Some(ACK_DELAY_MIN);
    }
    /// Decides about data that came: true when the acknowledgement leaves now. `unacknowledged` are octets in order.
    pub(crate) fn leaves_now(
        &mut self,
        unacknowledged: i64,
        is_urgent: bool,
        around: &Circumstances,
        now: Instant,
    ) -> bool {
        if !self.is_due {
            return false;
        }
        let is_quick = self.quick > 0 && !self.is_interactive;
        let is_long = unacknowledged > i64::from(self.segment_octets);
        if !self.delays || is_urgent || is_quick || is_long {
            return true;
        }
        self.schedule(around, now)
    }
    /// Sets the timer; true when it would expire so soon that the acknowledgement may leave now.
    fn schedule(&mut self, around: &Circumstances, now: Instant) -> bool {
        let mut delay = self.delay.unwrap_or(ACK_DELAY_MIN);
        if delay > ACK_DELAY_MIN {
            let most = around.srtt.map_or(ACK_DELAY_MAX, |srtt| srtt.max(ACK_DELAY_MIN));
            delay = delay.min(most);
        }
        let deadline = now + delay.min(ACK_DELAY_MAX);
        match self.deadline {
            Some(earlier) if earlier <= now + delay / 4 => return true,
            Some(earlier) => self.deadline = Some(earlier.min(deadline)),
            None => self.deadline = Some(deadline),
        }
        false
    }
    /// A segment leaves, and carries the acknowledgement.
    pub(crate) fn on_sent(&mut self, has_data: bool, now: Instant) {
        if self.is_due && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = Some(ACK_DELAY_MIN);
            }
        }
        if has_data && self.delay.is_some_and(|delay| now.since(self.last_data) < delay) {
            self.is_interactive = true;
        }
        self.is_due = false;
        self.deadline = None;
    }
    /// True when the delay is over; a delay without an answer of the application was too short to be of use.
    pub(crate) fn on_deadline(&mut self, rto: Duration, now: Instant) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        self.deadline = None;
        if self.is_interactive {
            self.is_interactive = false;
            self.delay = Some(ACK_DELAY_MIN);
        } else {
            self.delay = self.delay.map(|delay| (delay * 2).min(rto));
        }
        self.is_due
    }
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AROUND: Circumstances = Circumstances {
        rto: Duration::from_millis(1_900),
        srtt: Some(Duration::from_millis(650)),
        window: 64_000,
    };

    fn arrives(acks: &mut Acks, ms: u64) -> bool {
        let now = Instant::from_millis(ms);
        acks.on_data(244, &AROUND, now);
        let leaves = acks.leaves_now(244, false, &AROUND, now);
        if leaves {
            acks.on_sent(false, now);
        }
        leaves
    }

    #[test]
    fn the_first_sixteen_are_quick_and_the_next_ones_wait() {
        let mut acks = Acks::new(true, 244);
        let quick = (0..30).take_while(|i| arrives(&mut acks, i * 79)).count();
        assert_eq!(quick, 16);
        // The delay starts at 40 ms again.
        assert_eq!(acks.deadline(), Some(Instant::from_millis(16 * 79 + 40)));
    }

    #[test]
    fn a_missed_delay_doubles_and_never_passes_200_ms() {
        let mut acks = Acks::new(true, 244);
        for i in 0..16 {
            arrives(&mut acks, i * 10);
        }
        let mut now = 1_000;
        for wanted in [40, 80, 160, 200, 200] {
            arrives(&mut acks, now);
            assert_eq!(acks.deadline(), Some(Instant::from_millis(now + wanted)));
            assert!(acks.on_deadline(AROUND.rto, Instant::from_millis(now + wanted)));
            acks.on_sent(false, Instant::from_millis(now + wanted));
            now += 1_000;
        }
    }

    #[test]
    fn more_than_a_segment_or_something_urgent_is_acknowledged_at_once() {
        let mut acks = Acks::new(true, 244);
        for i in 0..16 {
            arrives(&mut acks, i * 10);
        }
        let now = Instant::from_millis(200);
        acks.on_data(244, &AROUND, now);
        assert!(!acks.leaves_now(244, false, &AROUND, now));
        assert!(acks.leaves_now(488, false, &AROUND, now));
        assert!(acks.leaves_now(244, true, &AROUND, now));
    }

    #[test]
    fn without_delay_every_segment_is_acknowledged() {
        let mut acks = Acks::new(false, 244);
        assert!((0..40).all(|i| arrives(&mut acks, i * 100)));
    }
}
