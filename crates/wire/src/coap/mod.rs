//! CoAP messages (RFC 7252 s3 and s5.10).
//!
//! Two faces of the same bytes: [`MessageView`] borrows a datagram and allocates nothing,
//! [`Message`] owns its parts and is what gets built and sent. Options stay in their wire form in
//! both; an iterator decodes them one by one.
//!
//! The parts that other transports share are apart from the UDP header: `body` splits options from
//! payload, so that the stream framing of RFC 8323 can put another header before it, and [`Token`]
//! takes the long tokens of RFC 8974 too. What a message means (matching,
//! deduplication, methods) is the endpoint's.

mod body;
mod code;
mod content_format;
mod message;
mod option;
mod options;
pub mod signaling;
pub mod stream;
mod token;
pub mod uri;
mod view;

pub use code::{Class, Code, Kind, MessageId};
pub use content_format::ContentFormat;
pub use message::Message;
pub use option::{Definition, Format, OptionNumber, UintBytes, decode_uint, encode_uint};
pub use options::{OptionRef, Options, OptionsIter, Recognition};
pub use token::{TOKEN_LEN_EXTENDED_MAX, Token};
pub use view::{Head, MessageView};

/// Octets of the fixed header: version, type, token length, code, message ID (RFC 7252 s3, figure
/// 7).
pub const HEADER_LEN: usize = 4;
/// The octet between options and payload (RFC 7252 s3).
pub const PAYLOAD_MARKER: u8 = 0xff;
/// The only version (RFC 7252 s3).
pub const VERSION: u8 = 1;
/// The longest token of RFC 7252 s3, in octets; longer ones need RFC 8974.
pub const TOKEN_LEN_MAX: usize = 8;
/// Name of the header in a [`crate::DecodeError`].
const HEADER: &str = "CoAP";
