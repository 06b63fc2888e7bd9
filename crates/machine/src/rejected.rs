//! Why a machine does not take an input.

use core::fmt;

/// An input that is not acceptable now; the machine is as it was before.
///
/// The variant says what the caller can do about it. `what` names what was asked, and `why` says for people why it cannot
/// be done and what would mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the type describes the fields of all variants")]
pub enum Rejected {
    /// The input is about something that has ended or never was there: the caller can drop it.
    Gone { what: &'static str, why: &'static str },
    /// The message is longer than its transport can carry; a shorter one is accepted.
    TooLong { what: &'static str, why: &'static str },
    /// All places or numbers are in use: there may be one later.
    Full { what: &'static str, why: &'static str },
    /// The name that the caller chose belongs to something else: another name is accepted.
    Taken { what: &'static str, why: &'static str },
    /// The value is not allowed in any state.
    Invalid { what: &'static str, why: &'static str },
    /// The state of the machine does not allow the input.
    WrongState { what: &'static str, why: &'static str },
    /// This machine never does what was asked.
    Unsupported { what: &'static str, why: &'static str },
    /// Something that the machine depends on has failed, such as its storage.
    Failed { what: &'static str, why: &'static str },
}

impl Rejected {
    /// What was asked.
    pub const fn what(&self) -> &'static str {
        self.parts().0
    }
    /// Why it cannot be done, and what would mend it.
    pub const fn why(&self) -> &'static str {
        self.parts().1
    }
    const fn parts(&self) -> (&'static str, &'static str) {
        match self {
            Self::Gone { what, why }
            | Self::TooLong { what, why }
            | Self::Full { what, why }
            | Self::Taken { what, why }
            | Self::Invalid { what, why }
            | Self::WrongState { what, why }
            | Self::Unsupported { what, why }
            | Self::Failed { what, why } => (what, why),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, why) = self.parts();
        write!(f, "{what}: {why}")
    }
}

impl core::error::Error for Rejected {}
