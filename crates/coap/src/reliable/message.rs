//! Messages of connections, which have neither a type nor a message ID (RFC 8323 s3.2).

use lowmesh_machine::Rejected;
use lowmesh_wire::coap::stream::{StreamMessage, StreamView};
use lowmesh_wire::coap::{Kind, Message, MessageId, Recognition};

/// A message that its peer would not take.
pub(super) const TOO_LONG: Rejected = Rejected::TooLong {
    what: "message",
    why: "longer than the peer's Max-Message-Size (RFC 8323 s5.3.1): send its body block-wise",
};

/// A message for the application. Type and message ID, which connections do not have, are those
/// that say least.
pub(super) fn message(view: &StreamView<'_>, recognition: Recognition) -> Message {
    let StreamMessage { code, token, options, payload } = StreamMessage::from(view);
    let (kind, message_id) = (Kind::Confirmable, MessageId(0));
    let mut message = Message { kind, code, message_id, token, options, payload };
    if recognition.faulty_elective {
        message.options.drop_faulty_electives();
    }
    message
}
