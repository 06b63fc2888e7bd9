//! The fixed header's fields: type, code and message ID (RFC 7252 s3 and s12.1).

use core::fmt;

/// The message type (RFC 7252 s3, field T).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// CON: repeated until acknowledged.
    Confirmable = 0,
    /// NON: sent once.
    NonConfirmable = 1,
    /// ACK: answers a CON, empty or with the response piggybacked.
    Acknowledgement = 2,
    /// RST: the message had no context here.
    Reset = 3,
}

impl Kind {
    /// The kind with these two bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }
    /// The abbreviation of RFC 7252.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmable => "CON",
            Self::NonConfirmable => "NON",
            Self::Acknowledgement => "ACK",
            Self::Reset => "RST",
        }
    }
}

/// Ties an ACK or RST to its message, and a duplicate to the first copy (RFC 7252 s4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u16);

/// The top three bits of a code (RFC 7252 s3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// 0.00.
    Empty,
    /// 0.01 to 0.31: a method.
    Request,
    /// 2.xx.
    Success,
    /// 4.xx.
    ClientError,
    /// 5.xx.
    ServerError,
    /// 7.xx: signalling on reliable transports (RFC 8323 s5), reserved over UDP.
    Signaling,
    /// 1.xx, 3.xx and 6.xx: nobody uses them.
    Reserved,
}

/// What is asked or answered: class and detail, written `c.dd` (RFC 7252 s12.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

impl Code {
    /// 0.00 Empty.
    pub const EMPTY: Self = Self(0);
    /// 0.01 GET.
    pub const GET: Self = Self(1);
    /// 0.02 POST.
    pub const POST: Self = Self(2);
    /// 0.03 PUT.
    pub const PUT: Self = Self(3);
    /// 0.04 DELETE.
    pub const DELETE: Self = Self(4);
    /// 0.05 FETCH (RFC 8132).
    pub const FETCH: Self = Self(5);
    /// 0.06 PATCH (RFC 8132).
    pub const PATCH: Self = Self(6);
    /// 0.07 iPATCH (RFC 8132).
    pub const IPATCH: Self = Self(7);
    /// 2.01 Created.
    pub const CREATED: Self = Self::new(2, 1);
    /// 2.02 Deleted.
    pub const DELETED: Self = Self::new(2, 2);
    /// 2.03 Valid.
    pub const VALID: Self = Self::new(2, 3);
    /// 2.04 Changed.
    pub const CHANGED: Self = Self::new(2, 4);
    /// 2.05 Content.
    pub const CONTENT: Self = Self::new(2, 5);
    /// 2.31 Continue (RFC 7959).
    pub const CONTINUE: Self = Self::new(2, 31);
    /// 4.00 Bad Request.
    pub const BAD_REQUEST: Self = Self::new(4, 0);
    /// 4.01 Unauthorized.
    pub const UNAUTHORIZED: Self = Self::new(4, 1);
    /// 4.02 Bad Option.
    pub const BAD_OPTION: Self = Self::new(4, 2);
    /// 4.03 Forbidden.
    pub const FORBIDDEN: Self = Self::new(4, 3);
    /// 4.04 Not Found.
    pub const NOT_FOUND: Self = Self::new(4, 4);
    /// 4.05 Method Not Allowed.
    pub const METHOD_NOT_ALLOWED: Self = Self::new(4, 5);
    /// 4.06 Not Acceptable.
    pub const NOT_ACCEPTABLE: Self = Self::new(4, 6);
    /// 4.08 Request Entity Incomplete (RFC 7959).
    pub const REQUEST_ENTITY_INCOMPLETE: Self = Self::new(4, 8);
    /// 4.09 Conflict (RFC 8132).
    pub const CONFLICT: Self = Self::new(4, 9);
    /// 4.12 Precondition Failed.
    pub const PRECONDITION_FAILED: Self = Self::new(4, 12);
    /// 4.13 Request Entity Too Large.
    pub const REQUEST_ENTITY_TOO_LARGE: Self = Self::new(4, 13);
    /// 4.15 Unsupported Content-Format.
    pub const UNSUPPORTED_CONTENT_FORMAT: Self = Self::new(4, 15);
    /// 4.22 Unprocessable Entity (RFC 8132).
    pub const UNPROCESSABLE_ENTITY: Self = Self::new(4, 22);
    /// 4.29 Too Many Requests (RFC 8516).
    pub const TOO_MANY_REQUESTS: Self = Self::new(4, 29);
    /// 5.00 Internal Server Error.
    pub const INTERNAL_SERVER_ERROR: Self = Self::new(5, 0);
    /// 5.01 Not Implemented.
    pub const NOT_IMPLEMENTED: Self = Self::new(5, 1);
    /// 5.02 Bad Gateway.
    pub const BAD_GATEWAY: Self = Self::new(5, 2);
    /// 5.03 Service Unavailable.
    pub const SERVICE_UNAVAILABLE: Self = Self::new(5, 3);
    /// 5.04 Gateway Timeout.
    pub const GATEWAY_TIMEOUT: Self = Self::new(5, 4);
    /// 5.05 Proxying Not Supported.
    pub const PROXYING_NOT_SUPPORTED: Self = Self::new(5, 5);
    /// 5.08 Hop Limit Reached (RFC 8768).
    pub const HOP_LIMIT_REACHED: Self = Self::new(5, 8);

    /// The code `class.detail`; class has 3 bits, detail 5, higher bits are cut off.
    pub const fn new(class: u8, detail: u8) -> Self {
        Self((class & 7) << 5 | (detail & 0x1f))
    }
    /// What sort of code it is.
    pub const fn class(self) -> Class {
        match (self.0 >> 5, self.detail()) {
            (0, 0) => Class::Empty,
            (0, _) => Class::Request,
            (2, _) => Class::Success,
            (4, _) => Class::ClientError,
            (5, _) => Class::ServerError,
            (7, _) => Class::Signaling,
            _ => Class::Reserved,
        }
    }
    /// The low five bits.
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }
    /// True for a method.
    pub const fn is_request(self) -> bool {
        matches!(self.class(), Class::Request)
    }
    /// Its name in the registry (RFC 7252 s12.1, RFC 8132 s6, RFC 8323 s11.1, RFC 7959 s6).
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::GET => "GET",
            Self::POST => "POST",
            Self::PUT => "PUT",
            Self::DELETE => "DELETE",
            Self::FETCH => "FETCH",
            Self::PATCH => "PATCH",
            Self::IPATCH => "iPATCH",
            Self::CREATED => "Created",
            Self::DELETED => "Deleted",
            Self::VALID => "Valid",
            Self::CHANGED => "Changed",
            Self::CONTENT => "Content",
            Self::CONTINUE => "Continue",
            Self::BAD_REQUEST => "Bad Request",
            Self::UNAUTHORIZED => "Unauthorized",
            Self::BAD_OPTION => "Bad Option",
            Self::FORBIDDEN => "Forbidden",
            Self::NOT_FOUND => "Not Found",
            Self::METHOD_NOT_ALLOWED => "Method Not Allowed",
            Self::NOT_ACCEPTABLE => "Not Acceptable",
            Self::REQUEST_ENTITY_INCOMPLETE => "Request Entity Incomplete",
            Self::CONFLICT => "Conflict",
            Self::PRECONDITION_FAILED => "Precondition Failed",
            Self::REQUEST_ENTITY_TOO_LARGE => "Request Entity Too Large",
            Self::UNSUPPORTED_CONTENT_FORMAT => "Unsupported Content-Format",
            Self::UNPROCESSABLE_ENTITY => "Unprocessable Entity",
            Self::TOO_MANY_REQUESTS => "Too Many Requests",
            Self::INTERNAL_SERVER_ERROR => "Internal Server Error",
            Self::NOT_IMPLEMENTED => "Not Implemented",
            Self::BAD_GATEWAY => "Bad Gateway",
            Self::SERVICE_UNAVAILABLE => "Service Unavailable",
            Self::GATEWAY_TIMEOUT => "Gateway Timeout",
            Self::PROXYING_NOT_SUPPORTED => "Proxying Not Supported",
            Self::HOP_LIMIT_REACHED => "Hop Limit Reached",
            Self::CSM => "CSM",
            Self::PING => "Ping",
            Self::PONG => "Pong",
            Self::RELEASE => "Release",
            Self::ABORT => "Abort",
            _ => return None,
        })
    }
    /// True for 2.xx, 4.xx and 5.xx.
    pub const fn is_response(self) -> bool {
        matches!(self.class(), Class::Success | Class::ClientError | Class::ServerError)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 >> 5, self.detail())
    }
}
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_class_dot_detail() {
        assert_eq!(format!("{} {}", Code::CONTENT, Code::GET), "2.05 0.01");
        assert_eq!(Code::UNSUPPORTED_CONTENT_FORMAT.0, 0x8f);
    }

    #[test]
    fn every_code_has_one_class_and_only_2_4_and_5_are_responses() {
        for number in 0..=u8::MAX {
            let code = Code(number);
            assert_eq!(code.is_response(), matches!(number >> 5, 2 | 4 | 5), "{code}");
            assert_eq!(code.is_request(), (1..32).contains(&number), "{code}");
        }
        assert_eq!(Code::new(1, 0).class(), Class::Reserved);
        assert_eq!(Code::new(7, 1).class(), Class::Signaling);
    }

    #[test]
    fn the_kind_is_in_the_low_two_bits() {
        for kind in [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset] {
            assert_eq!(Kind::from_bits(kind as u8 | 0xfc), kind);
        }
    }
}
