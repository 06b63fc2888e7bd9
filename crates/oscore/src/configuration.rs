//! Security contexts in the file format of libcoap (coap-oscore-conf(5)): one setting a line, as
//! `keyword,encoding,value`.
//!
//! ```text
//!   # a comment
//!   master_secret,hex,"0102030405060708090a0b0c0d0e0f10"
//!   sender_id,ascii,"client"
//!   recipient_id,ascii,"server"          a server may have several
//! ```
//! Reading the file is the caller's.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use crate::hex::unhex;
use crate::params::{
    AEAD_ALGORITHM, HKDF_ALGORITHM, ID_CONTEXT_LEN_MAX, RECIPIENTS_MAX, REPLAY_WINDOW,
    REPLAY_WINDOW_MAX, RESERVATION,
};
use crate::{Identity, Inputs, Renewal, RenewalKey, SecurityContext};

/// What a file says. The secret is wiped when it is dropped and never printed.
pub struct Configuration {
    master_secret: Zeroizing<Vec<u8>>,
    master_salt: Vec<u8>,
    id_context: Option<Vec<u8>>,
    sender_id: Identity,
    recipients: Vec<Identity>,
    replay_window: u8,
    reservation: u32,
    echo: bool,
    renews: bool,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration")
            .field("id_context", &self.id_context)
            .field("sender_id", &self.sender_id)
            .field("recipients", &self.recipients)
            .finish_non_exhaustive()
    }
}

/// A file that cannot be used: which line, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {mistake}")]
pub struct ConfigurationError {
    /// The line, from 1; for what is missing the last.
    pub line: usize,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What can be wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// Not of the form.
    #[error("this is not `keyword,encoding,value`")]
    Form,
    /// A keyword that does not exist.
    #[error("keyword {0:?} does not exist; the keywords are {KEYWORDS}")]
    Keyword(String),
    /// A keyword of libcoap that does not exist here.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// An encoding that the keyword does not take.
    #[error("{keyword} cannot be given as {encoding:?}; allowed: {allowed}")]
    Encoding {
        /// The keyword.
        keyword: String,
        /// The encoding.
        encoding: String,
        /// What it can be.
        allowed: &'static str,
    },
    /// A value that is out of its bounds or not of its encoding.
    #[error("{keyword} cannot be {value}; allowed: {allowed}")]
    Value {
        /// The keyword.
        keyword: String,
        /// The value; of a secret only its kind.
        value: String,
        /// What it can be.
        allowed: &'static str,
    },
    /// A keyword that may stand once, and does so twice.
    #[error("{0} is in an earlier line too")]
    Repeated(String),
    /// A keyword that must stand in the file.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// Both ends would have the same key (RFC 8613 s3.3).
    #[error("sender_id and recipient_id must differ")]
    SameIdentity,
}

const KEYWORDS: &str = "master_secret, master_salt, id_context, sender_id, recipient_id, \
                        replay_window, ssn_freq, aead_alg, hkdf_alg, rfc8613_b_1_2, rfc8613_b_2";
/// Known to libcoap only.
const FOREIGN: [&str; 4] =
    ["break_sender_key", "break_recipient_key", "complex_sender", "complex_recipient"];

/// What has been read so far.
#[derive(Default)]
struct Draft {
    master_secret: Option<Zeroizing<Vec<u8>>>,
    master_salt: Option<Vec<u8>>,
    id_context: Option<Vec<u8>>,
    sender_id: Option<Identity>,
    recipients: Vec<Identity>,
    replay_window: Option<i64>,
    reservation: Option<i64>,
    echo: Option<i64>,
    renews: Option<i64>,
    aead: Option<i64>,
    hkdf: Option<i64>,
}

impl Configuration {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let mut draft = Draft::default();
        let mut last = 1;
        for (place, line) in text.lines().enumerate() {
            last = place + 1;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let error = |mistake| ConfigurationError { line: last, mistake };
                draft.take(line).map_err(error)?;
            }
        }
        draft.finish().map_err(|mistake| ConfigurationError { line: last, mistake })
    }
    /// One context for each recipient, none of them used yet.
    pub fn contexts(&self) -> Vec<SecurityContext> {
        let context = |recipient_id: &Identity| {
            let context = SecurityContext::derive(&self.inputs(*recipient_id));
            context.with_bounds(self.replay_window, self.reservation)
        };
        self.recipients.iter().map(context).collect()
    }
    /// Whether contexts are derived many times (`rfc8613_b_2`): then [`renewals`](Self::renewals)
    /// take the place of [`contexts`](Self::contexts), and `id_context` is not used, as in libcoap.
    pub const fn derives_many_times(&self) -> bool {
        self.renews
    }
    /// What the contexts of each recipient are derived from; `key` draws a random key for each.
    pub fn renewals<E>(
        &self,
        mut key: impl FnMut() -> Result<RenewalKey, E>,
    ) -> Result<Vec<Renewal>, E> {
        let renewal = |recipient_id: &Identity| {
            let inputs = self.inputs(*recipient_id);
            Ok(Renewal::new(&inputs, self.replay_window, self.reservation, key()?))
        };
        self.recipients.iter().map(renewal).collect()
    }
    /// What this end calls itself.
    pub const fn sender_id(&self) -> Identity {
        self.sender_id
    }
    /// Whether a lost replay window is replaced by an Echo (`rfc8613_b_1_2`); without it a restart
    /// that was not orderly accepts replays.
    pub const fn echo_after_loss(&self) -> bool {
        self.echo
    }
    fn inputs(&self, recipient_id: Identity) -> Inputs<'_> {
        Inputs {
            master_secret: &self.master_secret,
            master_salt: &self.master_salt,
            id_context: self.id_context.as_deref(),
            sender_id: self.sender_id,
            recipient_id,
        }
    }
}

impl Draft {
    fn take(&mut self, line: &str) -> Result<(), Mistake> {
        let mut fields = line.splitn(3, ',').map(str::trim);
        let (Some(keyword), Some(encoding), Some(value)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return Err(Mistake::Form);
        };
        let entry = Entry { keyword, encoding, value: unquoted(value) };
        match keyword {
            "master_secret" => {
                let secret = Zeroizing::new(entry.octets("octets")?);
                if secret.is_empty() {
                    return Err(
                        entry.value("empty", "one octet or more; 16 random octets are best")
                    );
                }
                entry.once(&mut self.master_secret, secret)
            }
            "master_salt" => entry.once(&mut self.master_salt, entry.octets(entry.value)?),
            "id_context" => {
                let context = entry.octets(entry.value)?;
                if context.len() > ID_CONTEXT_LEN_MAX {
                    return Err(entry.value("so long", "at most 255 octets"));
                }
                entry.once(&mut self.id_context, context)
            }
            "sender_id" => entry.once(&mut self.sender_id, entry.identity()?),
            "recipient_id" => {
                let id = entry.identity()?;
                if self.recipients.contains(&id) || self.recipients.len() == RECIPIENTS_MAX {
                    return Err(Mistake::Repeated(keyword.to_string()));
                }
                self.recipients.push(id);
                Ok(())
            }
            "replay_window" => {
                let bounds = 1..=i64::from(REPLAY_WINDOW_MAX);
                entry.once(&mut self.replay_window, entry.integer(bounds, "1 to 63")?)
            }
            "ssn_freq" => {
                let bounds = 1..=i64::from(u32::MAX);
                entry.once(&mut self.reservation, entry.integer(bounds, "1 or more")?)
            }
            "aead_alg" => {
                let number = entry.algorithm(AEAD_ALGORITHM, "AES-CCM-16-64-128")?;
                entry.once(&mut self.aead, number)
            }
            "hkdf_alg" => {
                let number = entry.algorithm(HKDF_ALGORITHM, "direct+HKDF-SHA-256")?;
                entry.once(&mut self.hkdf, number)
            }
            "rfc8613_b_1_2" => entry.once(&mut self.echo, i64::from(entry.boolean()?)),
            "rfc8613_b_2" => entry.once(&mut self.renews, i64::from(entry.boolean()?)),
            // Off is what they are here.
            "break_sender_key" | "break_recipient_key" if !entry.boolean()? => Ok(()),
            other if FOREIGN.contains(&other) => Err(Mistake::Unsupported(other.to_string())),
            other => Err(Mistake::Keyword(other.to_string())),
        }
    }
    fn finish(self) -> Result<Configuration, Mistake> {
        let master_secret = self.master_secret.ok_or(Mistake::Missing("master_secret"))?;
        let sender_id = self.sender_id.ok_or(Mistake::Missing("sender_id"))?;
        if self.recipients.is_empty() {
            return Err(Mistake::Missing("recipient_id"));
        }
        // RFC 8613 s3.3: within one Master Secret each Sender ID MUST be unique.
        if self.recipients.contains(&sender_id) {
            return Err(Mistake::SameIdentity);
        }
        Ok(Configuration {
            master_secret,
            master_salt: self.master_salt.unwrap_or_default(),
            id_context: self.id_context,
            sender_id,
            recipients: self.recipients,
            replay_window: self.replay_window.map_or(REPLAY_WINDOW, |size| size as u8),
            reservation: self.reservation.map_or(RESERVATION, |count| count as u32),
            echo: self.echo != Some(0),
            renews: self.renews == Some(1),
        })
    }
}

/// One line, taken apart.
#[derive(Clone, Copy)]
struct Entry<'a> {
    keyword: &'a str,
    encoding: &'a str,
    value: &'a str,
}

impl Entry<'_> {
    fn once<T>(self, slot: &mut Option<T>, value: T) -> Result<(), Mistake> {
        match slot.replace(value) {
            Some(_) => Err(Mistake::Repeated(self.keyword.to_string())),
            None => Ok(()),
        }
    }
    /// Octets in `hex` or `ascii`; `shown` is what an error may say of them.
    fn octets(self, shown: &str) -> Result<Vec<u8>, Mistake> {
        match self.encoding {
            "ascii" => Ok(Vec::from(self.value)),
            "hex" => unhex(self.value).ok_or_else(|| {
                self.value(&alloc::format!("the hex {shown}"), "pairs of hexadecimal digits")
            }),
            _ => Err(self.encoding("hex or ascii")),
        }
    }
    fn identity(self) -> Result<Identity, Mistake> {
        let octets = self.octets(self.value)?;
        Identity::new(&octets).ok_or_else(|| self.value(self.value, "at most 7 octets"))
    }
    fn integer(
        self,
        bounds: core::ops::RangeInclusive<i64>,
        allowed: &'static str,
    ) -> Result<i64, Mistake> {
        if self.encoding != "integer" {
            return Err(self.encoding("integer"));
        }
        let number = self.value.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| self.value(self.value, allowed))
    }
    fn algorithm(self, number: i32, name: &'static str) -> Result<i64, Mistake> {
        let fits = match self.encoding {
            "integer" => self.value.parse() == Ok(number),
            "text" => self.value == name,
            _ => return Err(self.encoding("integer or text")),
        };
        if fits { Ok(i64::from(number)) } else { Err(self.value(self.value, name)) }
    }
    fn boolean(self) -> Result<bool, Mistake> {
        if self.encoding != "bool" {
            return Err(self.encoding("bool"));
        }
        self.value.parse().map_err(|_| self.value(self.value, "true or false"))
    }
    fn encoding(self, allowed: &'static str) -> Mistake {
        let (keyword, encoding) = (self.keyword.to_string(), self.encoding.to_string());
        Mistake::Encoding { keyword, encoding, allowed }
    }
    fn value(self, value: &str, allowed: &'static str) -> Mistake {
        Mistake::Value { keyword: self.keyword.to_string(), value: value.to_string(), allowed }
    }
}

fn unquoted(value: &str) -> &str {
    let inside = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(value)
}
