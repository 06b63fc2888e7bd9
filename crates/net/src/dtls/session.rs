//! One session of dimpl, and what it wants.

use std::collections::VecDeque;
use std::time::Instant;

use dimpl::{Dtls, Output};

use super::Event;
use super::cookie::{self, RANDOM_LEN};
use crate::params::HANDSHAKE_STALL;
use crate::peer::Peer;

/// A session, by what it can do.
///
/// ```text
///   Handshake ── finished ──► Open ── an error, or the peer's close ──► gone
///       └── timeout, wrong key ──► gone
/// ```
pub(super) struct Session {
    pub(super) dtls: Dtls,
    pub(super) deadline: Option<Instant>,
    /// The entry of the index by deadline: when [`Sessions::on_deadline`] is due for the session.
    pub(super) indexed: Option<Instant>,
    pub(super) state: State,
    /// What the client has drawn for this handshake; `None` if we are the client.
    pub(super) random: Option<[u8; RANDOM_LEN]>,
    /// What the sequence numbers of our records in the clear are ahead of dimpl's.
    pub(super) ahead: u64,
    /// When the peer was heard first.
    pub(super) heard: Option<Instant>,
    /// By which identity the client is known, once it has said one.
    pub(super) identity: Option<Vec<u8>>,
}

pub(super) enum State {
    /// What is to be sent waits.
    Handshake(VecDeque<Vec<u8>>),
    Open,
}

/// What is left of a session after it has been drained.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Lives,
    Closed,
}

impl Session {
    /// When something has to happen.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.deadline, self.stalls_from()].into_iter().flatten().min()
    }
    /// From when on our handshake has been without its end for too long.
    pub(super) fn stalls_from(&self) -> Option<Instant> {
        let ours = matches!(self.state, State::Handshake(_)) && self.random.is_none();
        self.heard.filter(|_| ours).map(|heard| heard + HANDSHAKE_STALL)
    }
    /// Turns what dimpl wants into events. After the handshake sends what has waited.
    pub(super) fn drain(
        &mut self,
        peer: Peer,
        buffer: &mut Vec<u8>,
        events: &mut VecDeque<Event>,
    ) -> Result<Outcome, dimpl::Error> {
        let mut outcome = Outcome::Lives;
        loop {
            match self.dtls.poll_output(buffer) {
                Output::Packet(bytes) => {
                    let mut bytes = bytes.to_vec();
                    cookie::advance(&mut bytes, self.ahead);
                    events.push_back(Event::Transmit { to: peer, bytes });
                }
                Output::ApplicationData(bytes) => {
                    events.push_back(Event::Received { from: peer, bytes: bytes.to_vec() });
                }
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Connected => {
                    if let State::Handshake(waiting) =
                        std::mem::replace(&mut self.state, State::Open)
                    {
                        for bytes in waiting {
                            self.dtls.send_application_data(&bytes)?;
                        }
                    }
                }
                Output::CloseNotify => outcome = Outcome::Closed,
                Output::Timeout(deadline) => {
                    self.deadline = Some(deadline);
                    return Ok(outcome);
                }
                // Certificates and keys for media, which pre-shared keys do without.
                _ => {}
            }
        }
    }
}
