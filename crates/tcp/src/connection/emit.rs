//! Segments leave: header, options and acknowledgement around what the halves want to send.

use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::tcp::{Control, Header, Options, SACK_BLOCKS_MAX, SackBlock, Timestamps};

use super::{Connection, Flow, Output, State, Transmit, Unproven};
use crate::params::{CHALLENGE_ACK_GAP, UNPROVEN_ANSWER_FACTOR};
use crate::send;

/// Octets of the SACK option with its padding, and of a block in it (RFC 2018 s3).
const SACK_OCTETS: (usize, usize) = (4, 8);

impl Connection {
    fn header(&self, sequence: u32, control: Control) -> Header {
        Header {
            source_port: self.config.local_port,
            destination_port: self.config.remote_port,
            sequence,
            control,
            ..Header::default()
        }
    }
    fn timestamps(&self, now: Instant) -> Timestamps {
        let echo = self.recent.map_or(0, |(value, _)| value);
        Timestamps { value: send::clock(self.clock_offset, now), echo }
    }
    fn push(&mut self, header: Header, payload: Vec<u8>) {
        if let Some(unproven) = &mut self.unproven {
            unproven.sent += header.octets() + payload.len();
        }
        self.outputs.push(Output::Segment(Transmit { header, payload }));
    }
    /// A SYN, with ACK when the peer's SYN is known. The options of an answer are those that the peer offered. An answer
    /// that is too much for an address that is not proven does not leave.
    pub(super) fn emit_syn(&mut self, answers: bool, now: Instant) {
        let profile = self.config.profile;
        let offers = |own: bool, peer: bool| own && (!answers || peer);
        let shift = profile.window_shift();
        let scales = offers(profile.window_scale, self.agreed.shifts.is_some());
        let timestamps = offers(profile.timestamps, self.agreed.timestamps);
        let control = Control { syn: true, ack: answers, ..Control::default() };
        let mut header = self.header(self.sequence(0), control);
        if answers {
            header.acknowledgment = self.agreed.irs.wrapping_add(1);
        }
        // RFC 7323 s2.2: the window of a SYN is not scaled.
        header.window = u16::try_from(profile.receive_window_octets).unwrap_or(u16::MAX);
        header.options = Options {
            mss: Some(profile.mss),
            window_scale: scales.then_some(shift),
            sack_permitted: offers(profile.sack, self.agreed.sack),
            timestamps: timestamps.then(|| self.timestamps(now)),
            ..Options::default()
        };
        let octets = header.octets();
        let has_room = |one: Unproven| {
            one.sent + octets <= UNPROVEN_ANSWER_FACTOR.saturating_mul(one.received)
        };
        if self.unproven.is_none_or(has_room) {
            self.push(header, Vec::new());
        }
    }
    /// A reset at `sequence`, for a segment that this connection does not want.
    pub(super) fn emit_reset(&mut self, sequence: u32) {
        let header = self.header(sequence, Control { rst: true, ..Control::default() });
        self.push(header, Vec::new());
    }
    /// An acknowledgement without data.
    pub(super) fn emit_ack(&mut self, now: Instant) {
        self.emit_bare(Control { ack: true, ..Control::default() }, now);
    }
    /// The reset of an end that gives the connection up. It has timestamps (RFC 7323 s3.2, SHOULD), and like that of Linux
    /// an acknowledgement.
    pub(super) fn emit_abort(&mut self, now: Instant) {
        self.emit_bare(Control { ack: true, rst: true, ..Control::default() }, now);
    }
    /// A segment without data of a connection that knows its peer.
    fn emit_bare(&mut self, control: Control, now: Instant) {
        let shift = self.agreed.shifts.map_or(0, |(peer, _)| peer);
        if let Some(start) = self.flow.as_ref().map(|flow| flow.sender.acceptable(1 << shift)) {
            self.emit(start, Vec::new(), control, now);
        } else if self.state == State::SynReceived {
            let shift = self.agreed.shifts.map_or(0, |(_, own)| own);
            let window = self.config.profile.receive_window_octets >> shift;
            let mut header = self.header(self.sequence(1), control);
            header.acknowledgment = self.agreed.irs.wrapping_add(1);
            header.window = u16::try_from(window).unwrap_or(u16::MAX);
            header.options.timestamps = self.agreed.timestamps.then(|| self.timestamps(now));
            self.push(header, Vec::new());
        }
    }
    /// Answers a segment that may be forged, or was not for this window (RFC 5961 s3 to s5), at a bounded rate (s7).
    pub(super) fn emit_challenge(&mut self, now: Instant) {
        if now >= self.challenge_after {
            self.challenge_after = now + CHALLENGE_ACK_GAP;
            self.emit_ack(now);
        }
    }
    /// Everything that the sender has ready.
    pub(super) fn emit_departures(&mut self, now: Instant) {
        while let Some(departure) = self.flow.as_mut().and_then(|flow| flow.sender.poll()) {
            let control = Control {
                ack: true,
                psh: departure.push && !departure.data.is_empty(),
                fin: departure.fin,
                ..Control::default()
            };
            self.emit(departure.start, departure.data, control, now);
        }
    }
    fn emit(&mut self, start: i64, data: Vec<u8>, control: Control, now: Instant) {
        let timestamps = self.agreed.timestamps.then(|| self.timestamps(now));
        let mut header = self.header(self.sequence(start), control);
        let (irs, sack, mss) = (self.agreed.irs, self.agreed.sack, self.agreed.mss);
        let shift = self.agreed.shifts.map_or(0, |(_, own)| own);
        let Some(flow) = &mut self.flow else { return };
        let window = flow.receiver.window();
        let scaled = (window >> shift).min(i64::from(u16::MAX));
        flow.window_sent = scaled << shift;
        header.window = scaled as u16;
        header.acknowledgment = irs.wrapping_add(flow.receiver.next() as u32);
        header.options.timestamps = timestamps;
        if sack {
            // RFC 6691: options and data share the MSS, so blocks take only what the data leaves.
            let options = if timestamps.is_some() { 12 } else { 0 };
            let left = usize::from(mss).saturating_sub(options + data.len());
            let blocks = blocks_that_fit(left, timestamps.is_some());
            for (left, right) in flow.receiver.blocks().take(blocks) {
                let edge = |position: i64| irs.wrapping_add(position as u32);
                header.options.sack.push(SackBlock { left: edge(left), right: edge(right) });
            }
        }
        flow.receiver.on_acknowledged();
        flow.acks.on_sent(!data.is_empty(), now);
        flow.reserve_blocks(sack, timestamps.is_some());
        self.push(header, data);
    }
}

/// Blocks of SACK in `octets`, and in a header with or without timestamps.
fn blocks_that_fit(octets: usize, timestamps: bool) -> usize {
    let most = if timestamps { SACK_BLOCKS_MAX - 1 } else { SACK_BLOCKS_MAX };
    (octets.saturating_sub(SACK_OCTETS.0) / SACK_OCTETS.1).min(most)
}

impl Flow {
    /// Leaves room in the next data for the blocks that will go with it.
    pub(super) fn reserve_blocks(&mut self, sack: bool, timestamps: bool) {
        let most = blocks_that_fit(usize::MAX, timestamps);
        let count = if sack { self.receiver.blocks().take(most).count() } else { 0 };
        let octets = if count == 0 { 0 } else { SACK_OCTETS.0 + SACK_OCTETS.1 * count };
        self.sender.reserve(octets as u32);
    }
}
