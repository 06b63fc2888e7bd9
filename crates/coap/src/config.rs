//! The user's choices for an endpoint.

use alloc::vec::Vec;

use lowmesh_units::Duration;
use lowmesh_wire::coap::{OptionNumber, TOKEN_LEN_MAX};

use crate::{ConfigError, CongestionControl, Leisure, Lifetimes, params};

/// Bounds and algorithms of one endpoint. [`Config::default`] is RFC 7252.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Timer and window (NSTART) of every destination without a choice of its own.
    pub congestion: CongestionControl,
    /// Requests that wait for the window of one peer; 0 means that nothing waits.
    pub queue_max: usize,
    /// Own exchanges open at once over all peers, waiting ones included; 1 to 16,384. Notifications to
    /// unproven addresses take at most half. Separate responses count for `incoming_max` instead.
    pub open_max: usize,
    /// Requests of peers that are not answered, and separate responses that are not acknowledged,
    /// from 1. One more takes the place of a separate response that has had its time, or else is answered with
    /// 5.03. Separate responses take half of the places; past it they leave as NON.
    pub incoming_max: usize,
    /// The same of one source ([`PeerAddress::source`](crate::PeerAddress::source)), from 1; its unproven addresses have
    /// at most half of it.
    pub incoming_per_source: usize,
    /// MAX_RETRANSMIT (RFC 7252 s4.8): copies of a CON after the first.
    pub max_retransmit: u8,
    /// Octets of the tokens it makes, 2 to 8.
    pub token_len: usize,
    /// Peers remembered, from 1: with their timers, windows and duplicates. For one more, an idle peer is
    /// forgotten: of eight, an unproven one that came once, or else the one idle longest. As many may
    /// have a congestion control of their own; a choice is never forgotten, so one more is refused.
    pub peers_max: usize,
    /// Peers of one source remembered, from 1. For one more, an idle one of the same source is forgotten, likewise.
    pub peers_per_source: usize,
    /// Messages remembered per peer against duplicates, from 1. One more displaces the peer's oldest.
    pub dedup_per_peer: usize,
    /// Messages remembered against duplicates over all peers, from 1. One more displaces what has expired, or else the
    /// oldest of the peer with most, of the source with most.
    pub dedup_total: usize,
    /// How long an empty ACK waits for the application's response.
    pub ack_delay: Duration,
    /// How long a client waits for the response after an empty ACK; by default the EXCHANGE_LIFETIME of the destination.
    pub response_timeout: Option<Duration>,
    /// How long a client waits for the response to a NON request, times 1 to ACK_RANDOM_FACTOR. A peer that
    /// answers none of several is sent PROBING_RATE on average (RFC 7252 s4.7).
    pub non_timeout: Duration,
    /// Over how long the answers to a multicast request are spread.
    pub leisure: Leisure,
    /// PROBING_RATE towards a group of which no member answers, octets a second (RFC 10020 s3.6); `None` leaves the pace to
    /// the application.
    pub group_probing_rate: Option<u32>,
    /// Longest message it sends, octets; a longer one is refused before anything leaves.
    pub message_len_max: usize,
    /// Longest token of a peer that it carries along, octets, from 8.
    pub peer_token_len_max: usize,
    /// Critical options beyond those of RFC 7252 that the layers above process; any other is
    /// refused with 4.02.
    pub extensions: Vec<OptionNumber>,
    /// Requests for other hosts (Proxy-Uri, Proxy-Scheme) go to the application, which forwards
    /// them; else they are answered with 5.05. Options that nobody here knows are the application's to judge: in these
    /// requests those that are safe to forward, in responses all (RFC 7252 s5.4.1, s5.7.1).
    pub proxy: bool,
    /// Any request may be one that the application forwards, as a reverse proxy does: options that are safe to forward are
    /// the application's to judge, and it answers with 4.02 itself where it is no proxy.
    pub reverse_proxy: bool,
    /// What leaves to an unproven address is at most this many times what came from it, copies and
    /// notifications included; `None` sets no bound. A host sets it from its
    /// [`HostLimits`](crate::HostLimits).
    pub amplification_max: Option<usize>,
    /// Every peer's address is proven, as by the handshake of DTLS.
    pub proven: bool,
    /// Messages travel in secure sessions that this end opens. A peer that has restarted has lost its session and is
    /// silent, so the endpoint ends a session in which no answer comes ([`Output::SessionOver`](crate::Output)).
    pub opens_sessions: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: CongestionControl::default(),
            queue_max: params::QUEUE_MAX,
            open_max: params::OPEN_MAX,
            incoming_max: params::INCOMING_MAX,
            incoming_per_source: params::INCOMING_PER_SOURCE,
            max_retransmit: params::MAX_RETRANSMIT,
            token_len: params::TOKEN_LEN,
            peers_max: params::PEERS_MAX,
            peers_per_source: params::PEERS_PER_SOURCE,
            dedup_per_peer: params::DEDUP_PER_PEER,
            dedup_total: params::DEDUP_TOTAL,
            ack_delay: params::ACK_DELAY,
            response_timeout: None,
            non_timeout: params::NON_TIMEOUT,
            leisure: Leisure::default(),
            group_probing_rate: Some(params::PROBING_RATE_OCTETS_PER_SECOND as u32),
            message_len_max: params::MESSAGE_LEN_MAX,
            peer_token_len_max: params::PEER_TOKEN_LEN_MAX,
            extensions: Vec::new(),
            proxy: false,
            reverse_proxy: false,
            amplification_max: None,
            proven: false,
            opens_sessions: false,
        }
    }
}

impl Config {
    /// The lifetimes towards a destination with this congestion control: the widest of its own and of the
    /// endpoint's, since its peer may know either.
    pub fn lifetimes(&self, chosen: &CongestionControl) -> Lifetimes {
        let of = |one: &CongestionControl| Lifetimes::of(one.ack_timeout, self.max_retransmit);
        of(&self.congestion).widest(of(chosen))
    }
    /// Checks every setting against its bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let open = 1..=params::OPEN_MAX_LIMIT;
        let token = params::TOKEN_LEN_MIN..=TOKEN_LEN_MAX;
        let (carried, share) = (self.peer_token_len_max, self.incoming_per_source);
        let bounds = [
            ("open_max", self.open_max, open.contains(&self.open_max), "1 to 16384"),
            ("incoming_max", self.incoming_max, self.incoming_max > 0, "1 or more"),
            ("incoming_per_source", share, share > 0, "1 or more"),
            ("token_len", self.token_len, token.contains(&self.token_len), "2 to 8 octets"),
            ("peer_token_len_max", carried, carried >= TOKEN_LEN_MAX, "8 octets or more"),
            ("peers_max", self.peers_max, self.peers_max > 0, "1 or more"),
            ("peers_per_source", self.peers_per_source, self.peers_per_source > 0, "1 or more"),
            ("dedup_per_peer", self.dedup_per_peer, self.dedup_per_peer > 0, "1 or more"),
            ("dedup_total", self.dedup_total, self.dedup_total > 0, "1 or more"),
        ];
        for (key, value, possible, allowed) in bounds {
            if !possible {
                return Err(ConfigError::OutOfBounds { key, value, allowed });
            }
        }
        self.congestion.check()
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
    }

    #[test]
    fn an_unknown_timer_is_answered_with_the_list() {
        let text = CongestionControl::new("coca").expect_err("no such timer").to_string();
        assert!(text.contains("`coca`") && text.contains("6cocoa"), "{text}");
    }
}
