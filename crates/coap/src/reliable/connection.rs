//! One connection: its state, what its peer can do, and the octets of a message that is not whole.

use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::signaling::Settings;
use lowmesh_wire::coap::stream::{Framing, StreamMessage, frame_len};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The peer's CSM is not here yet.
    Opening,
    /// Everything may be sent.
    Open,
    /// One end has sent Release: what is open comes to its end, and nothing new begins.
    Releasing,
}

#[derive(Debug)]
pub(super) struct Connection {
    framing: Framing,
    pub(super) state: State,
    /// What the peer's CSMs have said.
    pub(super) peer: Settings,
    /// When the peer's first CSM is too late.
    pub(super) greeted_by: Instant,
    /// Requests of the peer that the application has not answered.
    pub(super) incoming: usize,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(framing: Framing, greeted_by: Instant) -> Self {
        let (peer, state) = (Settings::default(), State::Opening);
        Self { framing, state, peer, greeted_by, incoming: 0, buffer: Vec::new() }
    }
    pub(super) const fn framing(&self) -> Framing {
        self.framing
    }
    pub(super) fn bytes_of(&self, message: &StreamMessage) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.emit(self.framing, &mut bytes);
        bytes
    }
    /// Adds octets of a byte stream and takes out the whole messages among them; `Err` once one is
    /// no message or longer than `message_max`.
    pub(super) fn frames(
        &mut self,
        octets: &[u8],
        message_max: usize,
    ) -> (Vec<Vec<u8>>, Result<(), DecodeError>) {
        if self.framing == Framing::WebSocket {
            // A WebSocket keeps messages apart by itself (RFC 8323 s4.2).
            return (Vec::from([octets.to_vec()]), Ok(()));
        }
        self.buffer.extend_from_slice(octets);
        let (mut frames, mut at) = (Vec::new(), 0);
        let verdict = loop {
            match frame_len(&self.buffer[at..], message_max) {
                Ok(Some(len)) if at + len <= self.buffer.len() => {
                    frames.push(self.buffer[at..at + len].to_vec());
                    at += len;
                }
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.buffer.drain(..at);
        (frames, verdict)
    }
}
