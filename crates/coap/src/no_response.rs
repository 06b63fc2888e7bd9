//! The No-Response option: which classes of response a client does not want (RFC 7967 s2).
//!
//! ```text
//!   value   0: all are wanted    2: no 2.xx    8: no 4.xx    16: no 5.xx    26: none at all
//! ```

use lowmesh_wire::coap::{Code, OptionNumber, OptionsIter, decode_uint};

/// Classes of response that do not leave a server, as bits of the option's value.
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
    /// True if a response of this code must not leave.
    pub const fn contains(self, code: Code) -> bool {
        // RFC 7967 s2: bit n-1 stands for class n.
        match code.0 >> 5 {
            0 => false,
            class => self.0 & (1 << (class - 1)) != 0,
        }
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
