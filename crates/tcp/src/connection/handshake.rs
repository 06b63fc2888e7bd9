//! Opening (RFC 9293 s3.5): actively, passively, and from both ends at once.

use lowmesh_machine::Rejected;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::tcp::Header;

use super::{Agreed, Connection, Ending, Flow, Output, State, Syn, Unproven};
use crate::acks::Acks;
use crate::params::{MSS_MIN, RTO_MAX, SYN_LINEAR_TIMEOUTS, WINDOW_SCALE_MAX};
use crate::receive::Receiver;
use crate::send::{Agreement, Sender};

impl Connection {
    pub(super) fn open(&mut self, now: Instant) -> Result<(), Rejected> {
        if self.state != State::Closed {
            let why = "the connection is in use; make another one";
            return Err(Rejected::WrongState { what: "open", why });
        }
        self.state = State::SynSent;
        self.send_first_syn(false, now);
        Ok(())
    }
    pub(super) fn listen(&mut self) -> Result<(), Rejected> {
        if self.state != State::Closed {
            let why = "the connection is in use; make another one";
            return Err(Rejected::WrongState { what: "listen", why });
        }
        self.state = State::Listen;
        Ok(())
    }
    fn send_first_syn(&mut self, answers: bool, now: Instant) {
        let mut syn = Syn::new(now, now);
        syn.deadline = now + syn.rto;
        self.syn = Some(syn);
        self.emit_syn(answers, now);
    }
    /// The SYN was not answered in time.
    pub(super) fn on_syn_deadline(&mut self, now: Instant) {
        let Some(mut syn) = self.syn.filter(|syn| syn.deadline <= now) else { return };
        // A listener repeats its answer with back-off only.
        let linear = if self.unproven.is_some() { 0 } else { SYN_LINEAR_TIMEOUTS };
        if syn.retries >= linear + u32::from(self.config.profile.syn_retries) {
            self.end(Ending::TimedOut);
            return;
        }
        let is_linear = self.state == State::SynSent && syn.retries < linear;
        if !is_linear {
            syn.rto = (syn.rto * 2).min(RTO_MAX);
        }
        syn.retries += 1;
        syn.deadline = now + syn.rto;
        self.syn = Some(syn);
        self.emit_syn(self.state == State::SynReceived, now);
    }
    /// RFC 9293 s3.10.7.2.
    pub(super) fn on_segment_in_listen(&mut self, header: &Header, payload: &[u8], now: Instant) {
        if header.control.rst {
            return;
        }
        if header.control.ack {
            self.emit_reset_to(header);
        } else if header.control.syn {
            self.config.remote_port = header.source_port;
            self.take_syn(header, now);
            self.state = State::SynReceived;
            let received = header.octets() + payload.len();
            self.unproven = Some(Unproven { received, sent: 0 });
            self.send_first_syn(true, now);
        }
    }
    fn emit_reset_to(&mut self, header: &Header) {
        let port = core::mem::replace(&mut self.config.remote_port, header.source_port);
        self.emit_reset(header.acknowledgment);
        self.config.remote_port = port;
    }
    /// RFC 9293 s3.10.7.3; true when the handshake is over and data may follow.
    pub(super) fn on_segment_in_syn_sent(&mut self, header: &Header, now: Instant) -> bool {
        let control = header.control;
        let acknowledges = control.ack && header.acknowledgment == self.sequence(1);
        if control.ack && !acknowledges {
            if !control.rst {
                self.emit_reset(header.acknowledgment);
            }
            return false;
        }
        if control.rst {
            if acknowledges {
                self.end(Ending::Refused);
            }
            return false;
        }
        if !control.syn {
            return false;
        }
        self.take_syn(header, now);
        if !acknowledges {
            // Both ends open at once.
            self.state = State::SynReceived;
            self.emit_syn(true, now);
            return false;
        }
        self.establish(header, now);
        self.emit_ack(now);
        true
    }
    /// What the peer's SYN offers, as far as this end wants it.
    fn take_syn(&mut self, header: &Header, now: Instant) {
        let (options, profile) = (header.options, self.config.profile);
        let shifts = options.window_scale.filter(|_| profile.window_scale);
        self.agreed = Agreed {
            irs: header.sequence,
            mss: options.mss.unwrap_or(profile.mss_default).max(MSS_MIN).min(profile.mss),
            shifts: shifts.map(|peer| (peer.min(WINDOW_SCALE_MAX), profile.window_shift())),
            timestamps: options.timestamps.is_some() && profile.timestamps,
            sack: options.sack_permitted && profile.sack,
            window: u64::from(header.window),
        };
        if self.agreed.timestamps {
            self.recent = options.timestamps.map(|timestamps| (timestamps.value, now));
        }
    }
    /// The peer has acknowledged our SYN.
    pub(super) fn establish(&mut self, header: &Header, now: Instant) {
        let Some(syn) = self.syn.take() else { return };
        self.unproven = None;
        let agreed = self.agreed;
        let options_octets = if agreed.timestamps { 12 } else { 0 };
        let segment_octets = u32::from(agreed.mss) - options_octets;
        // Karn: a SYN that was sent again gives a sample by its timestamp only.
        let handshake_rtt = match self.echo_rtt(header, now) {
            echo if syn.retries > 0 => echo,
            _ => Some(now.since(syn.sent)),
        };
        let window = if header.control.syn { agreed.window } else { self.window_of(header) };
        let sack = agreed.sack;
        let syn_retries = syn.retries;
        let agreement = Agreement { segment_octets, sack, window, handshake_rtt, syn_retries };
        let profile = &self.config.profile;
        let sender = Sender::open(profile, &agreement, self.clock_offset, now);
        let receiver = Receiver::new(
            profile.receive_buffer_octets,
            profile.receive_window_octets,
            segment_octets,
        );
        let acks = Acks::new(profile.delayed_acks, segment_octets);
        let window_sent = i64::from(profile.receive_window_octets);
        self.flow = Some(Flow { sender, receiver, acks, window_sent });
        self.state = State::Established;
        self.outputs.push(Output::Established);
    }
    /// The round-trip time by the echo of our timestamp (RFC 7323 s4.1), at least a tick of its clock.
    pub(super) fn echo_rtt(&self, header: &Header, now: Instant) -> Option<Duration> {
        let timestamps = header.options.timestamps.filter(|_| self.agreed.timestamps)?;
        let clock = crate::send::clock(self.clock_offset, now);
        let age = clock.wrapping_sub(timestamps.echo);
        let is_valid = timestamps.echo != 0 && age < 1 << 31;
        is_valid.then(|| Duration::from_millis(u64::from(age.max(1))))
    }
    /// The window of a segment that is no SYN, in octets.
    pub(super) fn window_of(&self, header: &Header) -> u64 {
        let shift = self.agreed.shifts.map_or(0, |(peer, _)| peer);
        u64::from(header.window) << shift
    }
}
