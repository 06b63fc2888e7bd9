//! The user's choices for an endpoint.

use alloc::vec::Vec;

use lowmesh_congestion::{TimerError, TimerSpec};
use lowmesh_units::Duration;
use lowmesh_wire::coap::{OptionNumber, TOKEN_LEN_MAX};

use crate::params;

/// Bounds and algorithms of one endpoint. [`Config::default`] is RFC 7252.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Outstanding interactions per peer (NSTART), from 1.
    pub nstart: u32,
    /// Requests that wait for the window, over all peers; 0 means that nothing waits.
    pub queue_max: usize,
    /// Own exchanges open at once, waiting ones included; 1 to 16,384.
    pub open_max: usize,
    /// Unanswered requests of peers, from 1.
    pub incoming_max: usize,
    /// MAX_RETRANSMIT.
    pub max_retransmit: u8,
    /// The retransmission timer: its name in [`lowmesh_congestion::TIMER_NAMES`], and the user's own
    /// numbers.
    pub timer: TimerSpec,
    /// ACK_TIMEOUT, where the timer starts; above zero.
    pub ack_timeout: Duration,
    /// Octets of the tokens it makes, 2 to 8.
    pub token_len: usize,
    /// Peers remembered, from 1.
    pub peers_max: usize,
    /// Messages remembered per peer against duplicates, from 1.
    pub dedup_per_peer: usize,
    /// Messages remembered against duplicates over all peers, from 1.
    pub dedup_total: usize,
    /// How long an empty ACK waits for the application's response.
    pub ack_delay: Duration,
    /// How long a client waits for the response after an empty ACK, or to a NON request.
    pub response_timeout: Duration,
    /// Over how long the answers to a multicast request are spread (DEFAULT_LEISURE).
    pub leisure: Duration,
    /// Longest message it sends, octets; a longer one is refused before anything leaves.
    pub message_len_max: usize,
    /// Longest token of a peer that it carries along, octets, from 8.
    pub peer_token_len_max: usize,
    /// Critical options beyond those of RFC 7252 that the layers above process; any other is
    /// refused with 4.02.
    pub extensions: Vec<OptionNumber>,
    /// Requests for other hosts (Proxy-Uri, Proxy-Scheme) go to the application, which forwards
    /// them; else they are answered with 5.05.
    pub proxy: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nstart: params::NSTART,
            queue_max: params::QUEUE_MAX,
            open_max: params::OPEN_MAX,
            incoming_max: params::INCOMING_MAX,
            max_retransmit: params::MAX_RETRANSMIT,
            timer: TimerSpec::from("default"),
            ack_timeout: params::ACK_TIMEOUT,
            token_len: params::TOKEN_LEN,
            peers_max: params::PEERS_MAX,
            dedup_per_peer: params::DEDUP_PER_PEER,
            dedup_total: params::DEDUP_TOTAL,
            ack_delay: params::ACK_DELAY,
            response_timeout: params::EXCHANGE_LIFETIME,
            leisure: params::DEFAULT_LEISURE,
            message_len_max: params::MESSAGE_LEN_MAX,
            peer_token_len_max: params::PEER_TOKEN_LEN_MAX,
            extensions: Vec::new(),
            proxy: false,
        }
    }
}

/// A setting that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number out of its bounds.
    #[error("{key} = {value} is not possible: {allowed}")]
    OutOfBounds {
        /// The setting.
        key: &'static str,
        /// What it was set to.
        value: usize,
        /// What it can be.
        allowed: &'static str,
    },
    /// A timer that does not exist, or not with these numbers.
    #[error("timer: {0}")]
    Timer(TimerError),
}

impl Config {
    /// Checks every setting against its bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let open = 1..=params::OPEN_MAX_LIMIT;
        let token = params::TOKEN_LEN_MIN..=TOKEN_LEN_MAX;
        let carried = self.peer_token_len_max;
        let nstart = usize::try_from(self.nstart).unwrap_or(usize::MAX);
        let bounds = [
            ("nstart", nstart, self.nstart > 0, "1 or more"),
            ("open_max", self.open_max, open.contains(&self.open_max), "1 to 16384"),
            ("incoming_max", self.incoming_max, self.incoming_max > 0, "1 or more"),
            ("token_len", self.token_len, token.contains(&self.token_len), "2 to 8 octets"),
            ("peer_token_len_max", carried, carried >= TOKEN_LEN_MAX, "8 octets or more"),
            ("peers_max", self.peers_max, self.peers_max > 0, "1 or more"),
            ("dedup_per_peer", self.dedup_per_peer, self.dedup_per_peer > 0, "1 or more"),
            ("dedup_total", self.dedup_total, self.dedup_total > 0, "1 or more"),
        ];
        for (key, value, possible, allowed) in bounds {
            if !possible {
                return Err(ConfigError::OutOfBounds { key, value, allowed });
            }
        }
        self.timer.timer(self.ack_timeout).map(|_| ()).map_err(ConfigError::Timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_defaults_are_possible() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn an_impossible_setting_is_named_with_what_is_allowed() {
        let error = Config { token_len: 9, ..Config::default() }.check().expect_err("too long");
        assert_eq!(error.to_string(), "token_len = 9 is not possible: 2 to 8 octets");
        let error = Config { nstart: 0, ..Config::default() }.check().expect_err("closed");
        assert!(error.to_string().contains("nstart = 0"));
    }

    #[test]
    fn an_unknown_timer_is_answered_with_the_list() {
        let config = Config { timer: TimerSpec::from("coca"), ..Config::default() };
        let text = config.check().expect_err("no such timer").to_string();
        assert!(text.contains("`coca`") && text.contains("6cocoa"), "{text}");
    }
}
