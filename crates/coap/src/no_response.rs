//! The No-Response option: which classes of response a client does not want (RFC 7967 s2).
//!
//! ```text
//!   value   0: all are wanted    2: no 2.xx    8: no 4.xx    16: no 5.xx    26: none at all
//! ```

use lowmesh_wire::coap::{Code, OptionNumber, OptionsIter, decode_uint};

use crate::event::ResponseTemplate;

/// Classes of responses that a server does not send, as bits of the option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unwanted(u8);

impl Unwanted {
    /// Every response is wanted.
    pub const NOTHING: Self = Self(0);
    /// 4.xx and 5.xx.
    pub const ERRORS: Self = Self(8 | 16);
    /// No response is wanted.
    pub const EVERYTHING: Self = Self(2 | 8 | 16);

    /// What the No-Response option among `options` says, if there is one.
    ///
    /// ```
    /// use lowmesh_coap::Unwanted;
    /// use lowmesh_wire::coap::{Code, OptionNumber, Options};
    /// let mut options = Options::new();
    /// options.insert_uint(OptionNumber::NO_RESPONSE, 2);
    /// let unwanted = Unwanted::from_options(options.iter()).expect("just inserted");
    /// assert!(unwanted.contains(Code::CHANGED) && !unwanted.contains(Code::NOT_FOUND));
    /// ```
    pub fn from_options(options: OptionsIter<'_>) -> Option<Self> {
        let value = options.values(OptionNumber::NO_RESPONSE).next()?;
        // Bits for classes that do not exist say nothing.
        decode_uint(value).map(|bits| Self(bits as u8 & Self::EVERYTHING.0))
    }
    /// True if a response with this code must not be sent.
    pub const fn contains(self, code: Code) -> bool {
        // RFC 7967 s2: bit n-1 stands for class n.
        match code.0 >> 5 {
            0 => false,
            class => self.0 & (1 << (class - 1)) != 0,
        }
    }
}

/// Which responses to a request do not leave: by the choice of its client, or else by where it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suppression {
    unwanted: Unwanted,
    /// The client has said nothing, so what it needs in order to be answered leaves all the same.
    challenges: bool,
}

impl Suppression {
    /// What the options of a request say, or else what its way does: errors are not sent to a group's client (RFC 7252
    /// s8.2, RFC 10020 s3.1.2).
    pub(crate) fn of(options: OptionsIter<'_>, multicast: bool) -> Self {
        let otherwise = if multicast { Unwanted::ERRORS } else { Unwanted::NOTHING };
        match Unwanted::from_options(options) {
            Some(unwanted) => Self { unwanted, challenges: false },
            None => Self { unwanted: otherwise, challenges: true },
        }
    }
    /// True if a response must not leave.
    pub(crate) fn applies_to(self, response: &ResponseTemplate) -> bool {
        // RFC 9175 s2.3: 4.01 with Echo asks the client to prove its address, and is no error.
        let challenge = response.code == Code::UNAUTHORIZED
            && response.options.get(OptionNumber::ECHO).is_some();
        self.unwanted.contains(response.code) && !(self.challenges && challenge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::Options;

    #[test]
    fn each_bit_keeps_one_class_away() {
        for (value, code) in [(2, Code::CONTENT), (8, Code::NOT_FOUND), (16, Code::BAD_GATEWAY)] {
            let mut options = Options::new();
            options.insert_uint(OptionNumber::NO_RESPONSE, value);
            let unwanted = Unwanted::from_options(options.iter()).expect("present");
            for other in [Code::CONTENT, Code::NOT_FOUND, Code::BAD_GATEWAY] {
                assert_eq!(unwanted.contains(other), other == code, "{value} {other}");
            }
        }
    }

    #[test]
    fn no_option_and_zero_are_told_apart() {
        let mut options = Options::new();
        assert_eq!(Unwanted::from_options(options.iter()), None);
        options.insert_uint(OptionNumber::NO_RESPONSE, 0);
        assert_eq!(Unwanted::from_options(options.iter()), Some(Unwanted::NOTHING));
        options.set_uint(OptionNumber::NO_RESPONSE, 26);
        assert_eq!(Unwanted::from_options(options.iter()), Some(Unwanted::EVERYTHING));
    }
}
