//! Times that follow from the transmission parameters of a destination (RFC 7252 s4.8.2).

use lowmesh_units::Duration;

use crate::params::{ACK_RANDOM_FACTOR, ACK_TIMEOUT, MAX_LATENCY, MAX_RETRANSMIT};

/// How long the copies of one message take, and how long its message ID stays in use.
///
/// ```text
///   first copy      last copy    give up
///      |---- span ------|           |
///      |---- wait ------------------|
///      |---- span ------|-- MAX_LATENCY --|                                      NON
///      |---- span ------|-- MAX_LATENCY --|-- PROCESSING_DELAY --|-- MAX_LATENCY --|   exchange
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// MAX_TRANSMIT_SPAN, from the first to the last copy.
    pub transmit_span: Duration,
    /// MAX_TRANSMIT_WAIT, from the first copy to giving up.
    pub transmit_wait: Duration,
    /// EXCHANGE_LIFETIME, during which the message ID of a CON is not used again.
    pub exchange: Duration,
    /// NON_LIFETIME, during which the message ID of a NON is not used again.
    pub non_confirmable: Duration,
    /// The longest span over which a timer of another kind may spread the copies, ours: a copy that arrives later than
    /// EXCHANGE_LIFETIME after the one before is a new request to the server, so it leaves MAX_LATENCY earlier.
    pub span_limit: Duration,
}

impl Lifetimes {
    /// The lifetimes that follow from ACK_TIMEOUT and MAX_RETRANSMIT. ACK_RANDOM_FACTOR and MAX_LATENCY are those of
    /// RFC 7252.
    pub fn of(ack_timeout: Duration, max_retransmit: u8) -> Self {
        let doublings = |count: u8| ((1_u64 << count.min(32)) - 1) as f64;
        let span = ack_timeout.mul_f64(doublings(max_retransmit) * ACK_RANDOM_FACTOR);
        let wait =
            ack_timeout.mul_f64(doublings(max_retransmit.saturating_add(1)) * ACK_RANDOM_FACTOR);
        // RFC 7252 s4.8.2 sets PROCESSING_DELAY to ACK_TIMEOUT.
        let span_limit = span + MAX_LATENCY + ack_timeout;
        Self {
            transmit_span: span,
            transmit_wait: wait,
            // RFC 7252 s4.8.2: the wait counts only where the last timeout is longer than MAX_LATENCY.
            exchange: (span_limit + MAX_LATENCY).max(wait),
            non_confirmable: span + MAX_LATENCY,
            span_limit,
        }
    }
    /// The longer of the two, time by time.
    #[must_use]
    pub fn widest(self, other: Self) -> Self {
        Self {
            transmit_span: self.transmit_span.max(other.transmit_span),
            transmit_wait: self.transmit_wait.max(other.transmit_wait),
            exchange: self.exchange.max(other.exchange),
            non_confirmable: self.non_confirmable.max(other.non_confirmable),
            span_limit: self.span_limit.max(other.span_limit),
        }
    }
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self::of(ACK_TIMEOUT, MAX_RETRANSMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{EXCHANGE_LIFETIME, NON_LIFETIME};

    #[test]
    fn the_default_parameters_give_the_numbers_of_the_rfc() {
        let times = Lifetimes::default();
        assert_eq!(times.transmit_span, Duration::from_secs(45));
        assert_eq!(times.transmit_wait, Duration::from_secs(93));
        assert_eq!(times.exchange, EXCHANGE_LIFETIME);
        assert_eq!(times.non_confirmable, NON_LIFETIME);
        assert_eq!(times.span_limit, Duration::from_secs(147));
    }

    #[test]
    fn a_slow_timer_makes_all_times_longer() {
        // 20 s * 15 * 1.5, and 20 s * 31 * 1.5, which is longer than 450 + 200 + 20 s.
        let times = Lifetimes::of(Duration::from_secs(20), 4);
        let seconds =
            [times.transmit_span, times.transmit_wait, times.exchange, times.non_confirmable]
                .map(Duration::as_secs_f64);
        assert_eq!(seconds.map(|s| s as u64), [450, 930, 930, 550]);
        assert_eq!(times.widest(Lifetimes::default()), times);
        assert_eq!(Lifetimes::default().widest(times), times);
    }

    #[test]
    fn no_parameters_overflow() {
        let times = Lifetimes::of(Duration::MAX, u8::MAX);
        assert_eq!(times.exchange, Duration::MAX);
        assert_eq!(Lifetimes::of(ACK_TIMEOUT, 0).transmit_span, Duration::ZERO);
    }
}
