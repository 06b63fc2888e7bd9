//! Messages as they are sent and received, one line each: `-v` of the CoAP verbs.

use std::fmt::Write as _;

use lowmesh_net::tap::{Direction, Traffic};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Class, Code, MessageView, OptionRef};

use crate::answer::option_line;
use crate::body::plain;
use crate::console::say;
use crate::diagnostic::hex;

/// Writes one message to stderr.
pub fn tell(traffic: Traffic<'_>) {
    let arrow = match traffic.direction {
        Direction::Out => "->",
        Direction::In => "<-",
    };
    say!("{arrow} {}", line(&traffic));
}

fn line(traffic: &Traffic<'_>) -> String {
    let bytes = traffic.bytes;
    let text = match traffic.framing {
        None => MessageView::parse(bytes).map(|message| {
            let (kind, mid) = (message.kind().name(), message.message_id().0);
            let head = format!("{kind} {} mid {mid}", name(message.code()));
            whole(
                message.code(),
                head,
                message.token().as_bytes(),
                message.options(),
                message.payload(),
            )
        }),
        Some(framing) => StreamMessage::parse(bytes, framing).map(|message| {
            let (head, token) = (name(message.code), message.token.as_bytes());
            whole(message.code, head, token, message.options.iter(), &message.payload)
        }),
    };
    // DTLS hands on whatever its peer has sent.
    text.unwrap_or_else(|error| {
        format!("{} octets that are not a CoAP message: {error}", bytes.len())
    })
}

/// Methods and signals by their names, answers by their numbers.
fn name(code: Code) -> String {
    let name = code.name().filter(|_| !code.is_response());
    name.map_or_else(|| code.to_string(), str::to_owned)
}

/// Option numbers of a signal depend on its code (RFC 8323 s5, RFC 8974 s2.2.1).
fn signal_option(signal: Code, option: OptionRef<'_>) -> String {
    let number = || option.as_uint().map_or_else(|| hex(option.value), |value| value.to_string());
    match (signal, option.number.0) {
        (Code::CSM, 2) => format!("Max-Message-Size: {}", number()),
        (Code::CSM, 4) => "Block-wise-Transfer".to_owned(),
        (Code::CSM, 6) => format!("Extended-Token-Length: {}", number()),
        (Code::PING | Code::PONG, 2) => "Custody".to_owned(),
        (Code::RELEASE, 2) => format!("Alternative-Address: {}", plain(option.value)),
        (Code::RELEASE, 4) => format!("Hold-Off: {}", number()),
        (Code::ABORT, 2) => format!("Bad-CSM-Option: {}", number()),
        (_, unknown) => format!("option {unknown}: {}", hex(option.value)),
    }
}

fn whole<'a>(
    code: Code,
    head: String,
    token: &[u8],
    options: impl Iterator<Item = OptionRef<'a>>,
    payload: &[u8],
) -> String {
    let mut line = head;
    // Writing into a string cannot fail.
    if !token.is_empty() {
        _ = write!(line, " token {}", hex(token));
    }
    for option in options {
        let text = match code.class() {
            Class::Signaling => signal_option(code, option),
            _ => option_line(option),
        };
        _ = write!(line, "; {text}");
    }
    if !payload.is_empty() {
        _ = write!(line, "; {} octets of payload", payload.len());
    }
    line
}

#[cfg(test)]
mod tests {
    use lowmesh_net::peer::Peer;
    use lowmesh_wire::coap::stream::Framing;

    use super::*;

    fn told(framing: Option<Framing>, bytes: &[u8]) -> String {
        let peer = Peer::new("192.0.2.1:5683".parse().expect("an address"), None);
        line(&Traffic { direction: Direction::In, peer, framing, bytes })
    }

    #[test]
    fn a_datagram_is_one_line_with_its_options() {
        let get = [0x41, 0x01, 0x12, 0x34, 0x07, 0xb4, b't', b'e', b'm', b'p', 0xff, 1, 2];
        let expected = "CON GET mid 4660 token 07; Uri-Path: temp; 2 octets of payload";
        assert_eq!(told(None, &get), expected);
        assert_eq!(told(None, &[0x60, 0, 0, 1]), "ACK 0.00 mid 1");
    }

    #[test]
    fn a_message_of_a_connection_has_no_type() {
        assert_eq!(told(Some(Framing::WebSocket), &[0x01, 0x45, 9]), "2.05 token 09");
        let csm = [0x00, 0xe1, 0x21, 0x80, 0x20];
        let expected = "CSM; Max-Message-Size: 128; Block-wise-Transfer";
        assert_eq!(told(Some(Framing::WebSocket), &csm), expected);
    }

    #[test]
    fn what_is_no_message_says_so() {
        assert!(told(None, &[0x40]).starts_with("1 octets that are not a CoAP message: "));
    }
}
