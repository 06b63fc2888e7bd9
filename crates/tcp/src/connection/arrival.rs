//! A segment comes to a connection that knows its peer (RFC 9293 s3.10.7.4, RFC 5961, RFC 7323 s5).

use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::tcp::Header;

use super::{Connection, Ending, Output, State};
use crate::params::{PAWS_AGE, TIME_WAIT};
use crate::send::Acknowledgement;

impl Connection {
    pub(super) fn on_segment(&mut self, header: &Header, payload: &[u8], now: Instant) {
        if self.state == State::SynReceived {
            if !self.on_segment_in_syn_received(header, payload, now) {
                return;
            }
        } else if !self.is_acceptable(header, payload, now) {
            return;
        }
        self.hear(now);
        if self.state == State::TimeWait && self.is_astray(header, payload) {
            self.emit_challenge(now);
            return;
        }
        if !header.control.ack || !self.take_acknowledgement(header, payload, now) {
            return;
        }
        self.remember_timestamp(header, now);
        self.follow_own_fin(now);
        if self.state != State::Closed && (!payload.is_empty() || header.control.fin) {
            self.take_data(header, payload, now);
        }
    }
    /// Our SYN is not acknowledged yet; true when it is now.
    fn on_segment_in_syn_received(
        &mut self,
        header: &Header,
        payload: &[u8],
        now: Instant,
    ) -> bool {
        if let Some(unproven) = &mut self.unproven {
            unproven.received += header.octets() + payload.len();
        }
        let position = self.peer_position(header.sequence, 1);
        let last = 1 + i64::from(self.config.profile.receive_window_octets);
        if header.control.rst {
            // RFC 5961 s3.2, as after the handshake: only the exact number resets. RFC 9293 s3.10.7.4: the opener is refused.
            if position == 1 {
                let is_listener = self.unproven.is_some();
                self.end(if is_listener { Ending::Reset } else { Ending::Refused });
            } else if (1..last).contains(&position) {
                self.emit_challenge(now);
            }
            return false;
        }
        if header.control.syn && !header.control.ack {
            if position == 0 {
                // The peer did not get our answer.
                self.emit_syn(true, now);
            }
            return false;
        }
        if !header.control.ack {
            return false;
        }
        if header.acknowledgment != self.sequence(1) {
            self.emit_reset(header.acknowledgment);
            return false;
        }
        // RFC 9293 s3.10.7.4: a number outside of the window opens nothing. The SYN of an answer stands before it.
        let first = 1 - i64::from(header.control.syn);
        let end = position + i64::from(header.control.syn) + payload.len() as i64;
        if position > last || (position < first && end <= 1) {
            self.emit_challenge(now);
            return false;
        }
        self.establish(header, now);
        // A SYN with ACK is the peer's half of a simultaneous opening.
        !header.control.syn
    }
    /// Checks sequence number, timestamp, RST and SYN; true when the segment is processed further.
    fn is_acceptable(&mut self, header: &Header, payload: &[u8], now: Instant) -> bool {
        let Some(flow) = &self.flow else { return false };
        let next = flow.receiver.next();
        let start = self.peer_position(header.sequence, next);
        let fin = i64::from(header.control.fin);
        let end = start + payload.len() as i64 + fin;
        let is_inside = end >= flow.receiver.acknowledged() && start <= flow.receiver.right_edge();
        if !is_inside || self.is_old_duplicate(header, now) {
            if !header.control.rst {
                self.hurry(header, payload, now);
            }
            return false;
        }
        if header.control.rst {
            // RFC 5961 s3.2: only the exact number resets.
            if start == next {
                self.end(if self.state == State::TimeWait {
                    Ending::Finished
                } else {
                    Ending::Reset
                });
            } else {
                self.emit_challenge(now);
            }
            return false;
        }
        if header.control.syn {
            // RFC 5961 s4.2.
            self.emit_challenge(now);
            return false;
        }
        true
    }
    /// A segment without data that is not the next one: in TIME-WAIT it shows that the peer does not know the end.
    fn is_astray(&self, header: &Header, payload: &[u8]) -> bool {
        let next = self.flow.as_ref().map_or(0, |flow| flow.receiver.next());
        let is_empty = payload.is_empty() && !header.control.fin;
        is_empty && self.peer_position(header.sequence, next) != next
    }
    /// A copy of what is known, or something that does not fit: the peer should learn where we are.
    fn hurry(&mut self, header: &Header, payload: &[u8], now: Instant) {
        if payload.is_empty() && !header.control.fin {
            self.emit_challenge(now);
            return;
        }
        let next = self.flow.as_ref().map_or(0, |flow| flow.receiver.next());
        let start = self.peer_position(header.sequence, next);
        if let Some(flow) = &mut self.flow {
            flow.receiver.refuse(start, payload.len(), header.control.fin);
            flow.acks.hurry(flow.window_sent);
        }
        if self.state == State::TimeWait {
            self.time_wait = Some(now + TIME_WAIT);
        }
        self.emit_ack(now);
    }
    /// RFC 7323 s5.3: a timestamp from before the last one belongs to an old segment.
    fn is_old_duplicate(&self, header: &Header, now: Instant) -> bool {
        let (Some((recent, at)), Some(timestamps)) = (self.recent, header.options.timestamps)
        else {
            return false;
        };
        let is_old = (timestamps.value.wrapping_sub(recent) as i32) < 0;
        self.agreed.timestamps && is_old && !header.control.rst && now.since(at) < PAWS_AGE
    }
    /// RFC 7323 s4.3: the timestamp of a segment at the left edge is echoed; s5.5: any timestamp after 24 days.
    fn remember_timestamp(&mut self, header: &Header, now: Instant) {
        let Some(timestamps) = header.options.timestamps.filter(|_| self.agreed.timestamps) else {
            return;
        };
        let Some(flow) = &self.flow else { return };
        let acknowledged = flow.receiver.acknowledged();
        let is_newer = self.recent.is_none_or(|(recent, at)| {
            timestamps.value.wrapping_sub(recent) as i32 >= 0 || now.since(at) >= PAWS_AGE
        });
        if self.peer_position(header.sequence, acknowledged) <= acknowledged && is_newer {
            self.recent = Some((timestamps.value, now));
        }
    }
    /// True when the acknowledgement is in range (RFC 5961 s5.2), so that the data counts.
    fn take_acknowledgement(&mut self, header: &Header, payload: &[u8], now: Instant) -> bool {
        let Some(flow) = &self.flow else { return false };
        let (una, next) = (flow.sender.una(), flow.sender.next());
        let position = self.own_position(header.acknowledgment, una);
        // Linux, too: what the peer has acknowledged bounds how old an acknowledgement of it can be.
        let oldest = una - (flow.sender.peer_window_max() as i64).min(una - 1);
        if position > next || position < oldest {
            self.emit_challenge(now);
            return false;
        }
        let segment = self.peer_position(header.sequence, flow.receiver.next());
        let blocks: Vec<(i64, i64)> = header
            .options
            .sack
            .as_slice()
            .iter()
            .map(|block| (self.own_position(block.left, una), self.own_position(block.right, una)))
            .collect();
        let timestamps = header.options.timestamps.filter(|_| self.agreed.timestamps);
        let acknowledgement = Acknowledgement {
            position,
            window: self.window_of(header),
            segment,
            has_data: !payload.is_empty() || header.control.fin,
            echo_rtt: self.echo_rtt(header, now),
            echo: timestamps.map(|timestamps| timestamps.echo).filter(|echo| *echo != 0),
            blocks: &blocks,
        };
        if let Some(flow) = &mut self.flow {
            flow.sender.on_acknowledgement(&acknowledgement, now);
        }
        true
    }
    /// The states that follow from the acknowledgement of our FIN.
    fn follow_own_fin(&mut self, now: Instant) {
        if !self.flow.as_ref().is_some_and(|flow| flow.sender.is_fin_acknowledged()) {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(Ending::Finished),
            _ => {}
        }
    }
    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.time_wait = Some(now + TIME_WAIT);
    }
    fn take_data(&mut self, header: &Header, payload: &[u8], now: Instant) {
        let Some(flow) = &self.flow else { return };
        let start = self.peer_position(header.sequence, flow.receiver.next());
        let Some(flow) = &mut self.flow else { return };
        let around = flow.circumstances();
        let unread = flow.receiver.unread();
        let arrival = flow.receiver.accept(start, payload, header.control.fin);
        flow.reserve_blocks(self.agreed.sack, self.agreed.timestamps);
        flow.sender.send_new(now);
        flow.acks.on_data(payload.len(), &around, now);
        if arrival.wants_ack_now && !arrival.is_in_order {
            flow.acks.hurry(around.window);
        }
        let unacknowledged = flow.receiver.next() - flow.receiver.acknowledged();
        let is_urgent = arrival.wants_ack_now || arrival.fills_hole || arrival.finishes;
        let leaves = flow.acks.leaves_now(unacknowledged, is_urgent, &around, now);
        if flow.receiver.unread() > unread {
            self.outputs.push(Output::Readable);
        }
        if arrival.finishes {
            self.outputs.push(Output::PeerClosed);
            match self.state {
                State::Established => self.state = State::CloseWait,
                State::FinWait1 => self.state = State::Closing,
                State::FinWait2 => self.enter_time_wait(now),
                _ => {}
            }
        } else if self.state == State::TimeWait && header.control.fin {
            // RFC 9293 s3.10.7.4: the peer has not got the acknowledgement of its FIN.
            self.time_wait = Some(now + TIME_WAIT);
        }
        // New data of ours takes the acknowledgement along.
        let before = flow_departs(self);
        self.emit_departures(now);
        if leaves && !before {
            self.emit_ack(now);
        }
    }
}

/// True when the sender has something ready.
fn flow_departs(connection: &Connection) -> bool {
    connection.flow.as_ref().is_some_and(|flow| flow.sender.departs())
}
