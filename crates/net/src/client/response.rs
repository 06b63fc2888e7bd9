//! What a server answers.

use std::fmt;
use std::time::Duration;

use lowmesh_coap::Output;
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber};

use crate::peer::Peer;

/// A response with any code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The peer that answers.
    pub from: Peer,
    /// The answer; its body is whole, however many blocks it took.
    pub message: Message,
    /// From the first copy of the request to now; `None` for a notification.
    pub rtt: Option<Duration>,
    /// Copies of the request after the first.
    pub retransmissions: u8,
}

impl Response {
    /// The answer in a step of an [`Exchange`](super::Exchange), if there is one.
    pub fn of(output: Output<Peer>) -> Option<Self> {
        let (from, message, rtt, retransmissions) = match output {
            Output::Response { from, message, rtt, retransmissions, .. } => {
                (from, message, Some(rtt.into()), retransmissions)
            }
            Output::GroupResponse { from, message, rtt, .. } => {
                (from, message, Some(rtt.into()), 0)
            }
            Output::Notification { from, message, .. } => (from, message, None, 0),
            _ => return None,
        };
        Some(Self { from, message, rtt, retransmissions })
    }
    /// 2.05, 4.04 and so on.
    pub const fn code(&self) -> Code {
        self.message.code
    }
    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.message.payload
    }
    /// The payload as text, with replacement characters for invalid UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.message.payload)
    }
    /// The Content-Format (RFC 7252 s5.10.3), if the response has one.
    pub fn format(&self) -> Option<ContentFormat> {
        let number = self.message.options.get_uint(OptionNumber::CONTENT_FORMAT)?;
        u16::try_from(number).ok().map(ContentFormat)
    }
    /// True for 2.xx.
    pub const fn is_success(&self) -> bool {
        matches!(self.message.code.class(), Class::Success)
    }
}

/// The code, and for an error what the server says about it (RFC 7252 s5.5.2).
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message.code)?;
        let for_people = matches!(self.format(), None | Some(ContentFormat::TEXT_PLAIN));
        if !self.is_success() && for_people && !self.message.payload.is_empty() {
            // Control characters of a peer do not reach a terminal.
            write!(f, ": {}", self.text().replace(char::is_control, " "))?;
        }
        Ok(())
    }
}
