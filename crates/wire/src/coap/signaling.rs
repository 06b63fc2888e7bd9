//! Signaling messages on reliable transports (RFC 8323 s5): codes 7.01 to 7.05 and their options,
//! whose numbers mean something else than those of requests and responses.
//!
//! When they are sent, and what they make a connection do, is the connection's.

use alloc::string::String;
use alloc::vec::Vec;

use super::stream::{StreamMessage, StreamView};
use super::{Code, OptionNumber, OptionRef, Token};

/// Max-Message-Size until a CSM says otherwise, octets (RFC 8323 s5.3.1).
pub const MESSAGE_SIZE_BASE: u32 = 1152;
/// Longest token until a CSM says otherwise, octets (RFC 8974 s2.2.1).
pub const EXTENDED_TOKEN_BASE: u32 = 8;
/// Longest Alternative-Address, octets (RFC 8323 s5.5).
const ADDRESS_LEN_MAX: usize = 255;

impl Code {
    /// 7.01 CSM, Capabilities and Settings (RFC 8323 s5.3).
    pub const CSM: Self = Self::new(7, 1);
    /// 7.02 Ping (s5.4).
    pub const PING: Self = Self::new(7, 2);
    /// 7.03 Pong (s5.4).
    pub const PONG: Self = Self::new(7, 3);
    /// 7.04 Release (s5.5).
    pub const RELEASE: Self = Self::new(7, 4);
    /// 7.05 Abort (s5.6).
    pub const ABORT: Self = Self::new(7, 5);
}

/// Option numbers, each within its own code (RFC 8323 s11.2, RFC 8974 s5.1).
mod number {
    use super::OptionNumber;

    pub const MAX_MESSAGE_SIZE: OptionNumber = OptionNumber(2);
    pub const BLOCK_WISE_TRANSFER: OptionNumber = OptionNumber(4);
    pub const EXTENDED_TOKEN_LENGTH: OptionNumber = OptionNumber(6);
    pub const CUSTODY: OptionNumber = OptionNumber(2);
    pub const ALTERNATIVE_ADDRESS: OptionNumber = OptionNumber(2);
    pub const HOLD_OFF: OptionNumber = OptionNumber(4);
    pub const BAD_CSM_OPTION: OptionNumber = OptionNumber(2);
}

/// What one CSM says; what it leaves out stays as it was (RFC 8323 s5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// The largest message that the sender takes, octets.
    pub max_message_size: Option<u32>,
    /// The sender speaks RFC 7959, and BERT if its Max-Message-Size is above
    /// [`MESSAGE_SIZE_BASE`].
    pub block_wise: bool,
    /// The longest token that the sender takes, octets (RFC 8974).
    pub extended_token_length: Option<u32>,
}

/// What a peer's CSMs have said so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest message that the peer takes, octets.
    pub max_message_size: u32,
    /// The peer speaks RFC 7959.
    pub block_wise: bool,
    /// The longest token that the peer takes, octets.
    pub extended_token_length: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_message_size: MESSAGE_SIZE_BASE,
            block_wise: false,
            extended_token_length: EXTENDED_TOKEN_BASE,
        }
    }
}

impl Settings {
    /// Takes in one more CSM.
    pub fn apply(&mut self, csm: Capabilities) {
        // RFC 8323 s5.3: settings are cumulative, a CSM takes none back.
        self.max_message_size = csm.max_message_size.unwrap_or(self.max_message_size);
        self.block_wise |= csm.block_wise;
        let token = csm.extended_token_length.unwrap_or(self.extended_token_length);
        // RFC 8974 s2.2.1: a value below 8 is to be read as 8.
        self.extended_token_length = token.max(EXTENDED_TOKEN_BASE);
    }
    /// Whether the peer takes several blocks of 1024 octets at once (RFC 8323 s5.3.2).
    pub const fn bert(&self) -> bool {
        self.block_wise && self.max_message_size > MESSAGE_SIZE_BASE
    }
}

/// A signaling message, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// 7.01: what the sender can do.
    Csm(Capabilities),
    /// 7.02: asks for a Pong with the same token.
    Ping {
        /// The Pong is to wait until earlier messages are processed.
        custody: bool,
    },
    /// 7.03: the answer.
    Pong {
        /// Earlier messages have been processed.
        custody: bool,
    },
    /// 7.04: the sender wants the connection to end in order.
    Release {
        /// Where to connect instead: authorities, any of which will do.
        alternatives: Vec<String>,
        /// How long not to come back, seconds.
        hold_off: Option<u32>,
        /// For people.
        diagnostic: String,
    },
    /// 7.05: the sender ends the connection at once.
    Abort {
        /// The option of our CSM that it cannot process.
        bad_csm_option: Option<u16>,
        /// For people.
        diagnostic: String,
    },
}

/// Why a signaling message is not understood; a connection aborts for both (RFC 8323 s5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// A critical option that nobody here knows.
    #[error("signaling code {code} has the unknown critical option {number}")]
    CriticalOption {
        /// The message's code.
        code: Code,
        /// The option's number, within that code.
        number: u16,
    },
    /// A code of class 7 that nobody here knows.
    #[error("signaling code {0} is unknown")]
    Code(Code),
}

impl Signal {
    /// Reads a message of class 7. Elective options that are unknown or have a wrong value are
    /// ignored.
    pub fn parse(view: &StreamView<'_>) -> Result<Self, SignalError> {
        let code = view.code();
        let diagnostic = || String::from_utf8_lossy(view.payload()).into_owned();
        // RFC 8323 s5.2: a critical option that is not understood MUST abort the connection. All
        // that are defined are elective.
        if let Some(option) = view.options().find(|option| option.number.is_critical()) {
            return Err(SignalError::CriticalOption { code, number: option.number.0 });
        }
        let uint = |wanted: OptionNumber, len_max: usize| {
            let found = view.options().find(|one| one.number == wanted);
            found.filter(|one| one.value.len() <= len_max).and_then(|one| one.as_uint())
        };
        let has = |wanted: OptionNumber| view.option(wanted).is_some_and(<[u8]>::is_empty);
        Ok(match code {
            Code::CSM => Self::Csm(Capabilities {
                max_message_size: uint(number::MAX_MESSAGE_SIZE, 4),
                block_wise: has(number::BLOCK_WISE_TRANSFER),
                extended_token_length: uint(number::EXTENDED_TOKEN_LENGTH, 3),
            }),
            Code::PING => Self::Ping { custody: has(number::CUSTODY) },
            Code::PONG => Self::Pong { custody: has(number::CUSTODY) },
            Code::RELEASE => Self::Release {
                alternatives: view.options().filter_map(|option| address(&option)).collect(),
                hold_off: uint(number::HOLD_OFF, 3),
                diagnostic: diagnostic(),
            },
            Code::ABORT => Self::Abort {
                bad_csm_option: uint(number::BAD_CSM_OPTION, 2).map(|number| number as u16),
                diagnostic: diagnostic(),
            },
            other => return Err(SignalError::Code(other)),
        })
    }
    /// The message for it, with this token; only a Pong's token has a meaning.
    pub fn into_message(self, token: Token) -> StreamMessage {
        let mut message = StreamMessage::new(self.code());
        message.token = token;
        let options = &mut message.options;
        match self {
            Self::Csm(csm) => {
                if let Some(size) = csm.max_message_size {
                    options.insert_uint(number::MAX_MESSAGE_SIZE, size);
                }
                if csm.block_wise {
                    options.insert(number::BLOCK_WISE_TRANSFER, &[]);
                }
                if let Some(len) = csm.extended_token_length {
                    options.insert_uint(number::EXTENDED_TOKEN_LENGTH, len);
                }
            }
            Self::Ping { custody } | Self::Pong { custody } => {
                if custody {
                    options.insert(number::CUSTODY, &[]);
                }
            }
            Self::Release { alternatives, hold_off, diagnostic } => {
                for address in alternatives {
                    options.insert(number::ALTERNATIVE_ADDRESS, address.as_bytes());
                }
                if let Some(seconds) = hold_off {
                    options.insert_uint(number::HOLD_OFF, seconds);
                }
                message.payload = diagnostic.into_bytes();
            }
            Self::Abort { bad_csm_option, diagnostic } => {
                if let Some(bad) = bad_csm_option {
                    options.insert_uint(number::BAD_CSM_OPTION, u32::from(bad));
                }
                message.payload = diagnostic.into_bytes();
            }
        }
        message
    }
    /// The code that says so.
    pub const fn code(&self) -> Code {
        match self {
            Self::Csm(_) => Code::CSM,
            Self::Ping { .. } => Code::PING,
            Self::Pong { .. } => Code::PONG,
            Self::Release { .. } => Code::RELEASE,
            Self::Abort { .. } => Code::ABORT,
        }
    }
}

fn address(option: &OptionRef<'_>) -> Option<String> {
    let fits = (1..=ADDRESS_LEN_MAX).contains(&option.value.len());
    let wanted = option.number == number::ALTERNATIVE_ADDRESS && fits;
    wanted.then(|| option.as_str().map(String::from)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::stream::Framing;
    use super::*;

    fn through_bytes(message: &StreamMessage) -> Result<Signal, SignalError> {
        let mut bytes = Vec::new();
        message.emit(Framing::Stream, &mut bytes);
        let view = StreamView::parse(&bytes, Framing::Stream).expect("own bytes");
        assert_eq!(Signal::parse(&view), Signal::parse(&message.as_view()));
        Signal::parse(&view)
    }

    #[test]
    fn every_signal_reads_back() {
        let signals = [
            Signal::Csm(Capabilities::default()),
            Signal::Csm(Capabilities {
                max_message_size: Some(65_536),
                block_wise: true,
                extended_token_length: Some(20),
            }),
            Signal::Ping { custody: false },
            Signal::Ping { custody: true },
            Signal::Pong { custody: true },
            Signal::Release {
                alternatives: vec!["[2001:db8::1]:5683".into(), "example.org".into()],
                hold_off: Some(600),
                diagnostic: "moving house".into(),
            },
            Signal::Abort { bad_csm_option: Some(3), diagnostic: String::new() },
        ];
        for signal in signals {
            let message = signal.clone().into_message(Token::from_number(7, 1));
            assert_eq!(through_bytes(&message), Ok(signal));
        }
    }

    #[test]
    fn a_csm_takes_nothing_back_and_bert_needs_both() {
        let mut settings = Settings::default();
        settings.apply(Capabilities { block_wise: true, ..Capabilities::default() });
        assert!(!settings.bert());
        settings
            .apply(Capabilities { max_message_size: Some(8_388_864), ..Capabilities::default() });
        assert!(settings.bert() && settings.block_wise);
        settings.apply(Capabilities { max_message_size: Some(1152), ..Capabilities::default() });
        assert!(!settings.bert());
        settings.apply(Capabilities { extended_token_length: Some(3), ..Capabilities::default() });
        assert_eq!(settings.extended_token_length, 8);
    }

    #[test]
    fn an_unknown_critical_option_is_an_error_that_names_it() {
        let mut message = StreamMessage::new(Code::CSM);
        message.options.insert(OptionNumber(3), &[]);
        let error = SignalError::CriticalOption { code: Code::CSM, number: 3 };
        assert_eq!(through_bytes(&message), Err(error));
    }

    #[test]
    fn an_unknown_elective_option_and_one_of_wrong_length_are_ignored() {
        let mut message = StreamMessage::new(Code::CSM);
        message.options.insert(OptionNumber(200), b"what");
        message.options.insert(number::MAX_MESSAGE_SIZE, &[0, 1, 2, 3, 4]);
        message.options.insert(number::BLOCK_WISE_TRANSFER, b"not empty");
        assert_eq!(through_bytes(&message), Ok(Signal::Csm(Capabilities::default())));
    }

    #[test]
    fn an_unknown_code_of_class_seven_is_an_error() {
        let code = Code::new(7, 31);
        assert_eq!(through_bytes(&StreamMessage::new(code)), Err(SignalError::Code(code)));
    }
}
