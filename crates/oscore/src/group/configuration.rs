//! A group in a file, in the syntax of the contexts for one peer: one setting a line, as `keyword,encoding,value`.
//!
//! ```text
//!   master_secret,hex,"0102030405060708090a0b0c0d0e0f10"
//!   group_id,hex,"0a0b"
//!   sender_id,ascii,"lamp1"
//!   private_key,hex,"..."          32 octets
//!   credential,hex,"..."           a CWT Claims Set with its public key
//!   member_id,ascii,"switch"       one such pair for each other member
//!   member_credential,hex,"..."
//! ```
//! Reading the file is the caller's.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use super::authenticated::Mode;
use super::context::{Group, GroupError, Inputs};
use super::curve::SignatureAlgorithm;
use crate::Identity;
use crate::hex::unhex;
use crate::params::{PRIVATE_KEY_LEN, REPLAY_WINDOW, REPLAY_WINDOW_MAX, RESERVATION};

/// What a file says. Its secrets are wiped when it is dropped and never printed.
pub struct Configuration {
    draft: Draft,
    master_secret: Zeroizing<Vec<u8>>,
    group_id: Vec<u8>,
    sender_id: Identity,
    private_key: Zeroizing<[u8; PRIVATE_KEY_LEN]>,
    credential: Vec<u8>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration")
            .field("group_id", &self.group_id)
            .field("sender_id", &self.sender_id)
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
    /// A value that is out of its bounds or not of its encoding. Values are not shown: some are secret.
    #[error("{keyword} has a value that is not allowed; allowed: {allowed}")]
    Value {
        /// The keyword.
        keyword: String,
        /// What it can be.
        allowed: &'static str,
    },
    /// A keyword that may stand once, and does so twice.
    #[error("{0} is in an earlier line too")]
    Repeated(String),
    /// A keyword that must stand in the file.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A credential without the identity of its member before it, or an identity without a credential.
    #[error("member_id and member_credential come in pairs, member_id first")]
    Pair,
    /// Values that give no group.
    #[error("{0}")]
    Group(GroupError),
}

const KEYWORDS: &str = "master_secret, master_salt, group_id, sign_alg, group_manager_credential, sender_id, private_key, \
                        credential, member_id, member_credential, responses, replay_window, ssn_freq, sign_protected";

/// Another member, and the line of its credential.
type Member = (Identity, Vec<u8>, usize);

#[derive(Default)]
struct Draft {
    master_secret: Option<Zeroizing<Vec<u8>>>,
    master_salt: Option<Vec<u8>>,
    group_id: Option<Vec<u8>>,
    algorithm: Option<SignatureAlgorithm>,
    manager: Option<Vec<u8>>,
    sender_id: Option<Identity>,
    private_key: Option<Zeroizing<[u8; PRIVATE_KEY_LEN]>>,
    credential: Option<(Vec<u8>, usize)>,
    members: Vec<Member>,
    /// A member whose credential has not come.
    open: Option<Identity>,
    responses: Option<Mode>,
    replay_window: Option<u32>,
    reservation: Option<u32>,
    with_sign_protected: Option<bool>,
}

impl Configuration {
    /// Reads the text of a file, and derives the group once, so that what it says is known to fit.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let mut draft = Draft::default();
        let mut last = 1;
        for (place, line) in text.lines().enumerate() {
            last = place + 1;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let error = |mistake| ConfigurationError { line: last, mistake };
                draft.take(line, last).map_err(error)?;
            }
        }
        draft.finish(last)
    }
    /// The group, in which nothing has been sent yet.
    pub fn group(&self) -> Group {
        self.derive().expect("it was derived when the file was read")
    }
    /// Derives the group; an error has the line of what does not fit.
    fn derive(&self) -> Result<Group, (GroupError, Option<usize>)> {
        let Draft { master_salt, algorithm, manager, responses, with_sign_protected, .. } =
            &self.draft;
        let inputs = Inputs {
            master_secret: &self.master_secret,
            master_salt: master_salt.as_deref().unwrap_or_default(),
            group_id: &self.group_id,
            algorithm: algorithm.unwrap_or_default(),
            manager: manager.as_deref(),
            sender_id: self.sender_id,
            private_key: &self.private_key,
            credential: &self.credential,
            responses: responses.unwrap_or(Mode::Pairwise),
            with_sign_protected: with_sign_protected.unwrap_or(false),
        };
        let own = self.draft.credential.as_ref().map(|(_, line)| *line);
        let mut group = Group::derive(&inputs, []).map_err(|error| (error, own))?;
        for (id, credential, line) in &self.draft.members {
            group.add(&inputs, *id, credential).map_err(|error| (error, Some(*line)))?;
        }
        let window = self.draft.replay_window.map_or(REPLAY_WINDOW, |size| size as u8);
        let reservation = self.draft.reservation.unwrap_or(RESERVATION);
        Ok(group.with_bounds(window, reservation))
    }
}

impl Draft {
    fn take(&mut self, line: &str, number: usize) -> Result<(), Mistake> {
        let mut fields = line.splitn(3, ',').map(str::trim);
        let (Some(keyword), Some(encoding), Some(value)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return Err(Mistake::Form);
        };
        let entry = Entry { keyword, encoding, value: unquoted(value) };
        match keyword {
            "master_secret" => {
                let secret = Zeroizing::new(entry.octets()?);
                if secret.is_empty() {
                    return Err(entry.value("one octet or more; 16 random octets are best"));
                }
                entry.once(&mut self.master_secret, secret)
            }
            "master_salt" => entry.once(&mut self.master_salt, entry.octets()?),
            "group_id" => entry.once(&mut self.group_id, entry.octets()?),
            "group_manager_credential" => entry.once(&mut self.manager, entry.octets()?),
            "sign_alg" => entry.once(&mut self.algorithm, entry.algorithm()?),
            "sender_id" => entry.once(&mut self.sender_id, entry.identity()?),
            "private_key" => {
                let octets = Zeroizing::new(entry.octets()?);
                let octets = <[u8; PRIVATE_KEY_LEN]>::try_from(&octets[..]);
                let octets = octets.map_err(|_| entry.value("32 octets"))?;
                entry.once(&mut self.private_key, Zeroizing::new(octets))
            }
            "credential" => entry.once(&mut self.credential, (entry.octets()?, number)),
            "member_id" => match self.open.replace(entry.identity()?) {
                Some(_) => Err(Mistake::Pair),
                None => Ok(()),
            },
            "member_credential" => {
                let id = self.open.take().ok_or(Mistake::Pair)?;
                self.members.push((id, entry.octets()?, number));
                Ok(())
            }
            "responses" => entry.once(&mut self.responses, entry.mode()?),
            "replay_window" => {
                let bounds = 1..=u32::from(REPLAY_WINDOW_MAX);
                entry.once(&mut self.replay_window, entry.integer(bounds, "1 to 63")?)
            }
            "ssn_freq" => {
                entry.once(&mut self.reservation, entry.integer(1..=u32::MAX, "1 or more")?)
            }
            "sign_protected" => entry.once(&mut self.with_sign_protected, entry.boolean()?),
            other => Err(Mistake::Keyword(other.to_string())),
        }
    }
    fn finish(mut self, last: usize) -> Result<Configuration, ConfigurationError> {
        let missing =
            |keyword| ConfigurationError { line: last, mistake: Mistake::Missing(keyword) };
        let master_secret = self.master_secret.take().ok_or_else(|| missing("master_secret"))?;
        let group_id = self.group_id.take().ok_or_else(|| missing("group_id"))?;
        let sender_id = self.sender_id.ok_or_else(|| missing("sender_id"))?;
        let private_key = self.private_key.take().ok_or_else(|| missing("private_key"))?;
        let (credential, _) = self.credential.clone().ok_or_else(|| missing("credential"))?;
        if self.open.is_some() {
            return Err(ConfigurationError { line: last, mistake: Mistake::Pair });
        }
        if self.members.is_empty() {
            return Err(missing("member_id"));
        }
        let draft = self;
        let configuration =
            Configuration { draft, master_secret, group_id, sender_id, private_key, credential };
        match configuration.derive() {
            Ok(_) => Ok(configuration),
            Err((error, line)) => {
                let (line, mistake) = (line.unwrap_or(last), Mistake::Group(error));
                Err(ConfigurationError { line, mistake })
            }
        }
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
    fn octets(self) -> Result<Vec<u8>, Mistake> {
        match self.encoding {
            "ascii" => Ok(Vec::from(self.value)),
            "hex" => unhex(self.value).ok_or_else(|| self.value("pairs of hexadecimal digits")),
            _ => Err(self.encoding("hex or ascii")),
        }
    }
    fn identity(self) -> Result<Identity, Mistake> {
        Identity::new(&self.octets()?).ok_or_else(|| self.value("at most 7 octets"))
    }
    fn integer(
        self,
        bounds: core::ops::RangeInclusive<u32>,
        allowed: &'static str,
    ) -> Result<u32, Mistake> {
        if self.encoding != "integer" {
            return Err(self.encoding("integer"));
        }
        let number = self.value.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| self.value(allowed))
    }
    fn boolean(self) -> Result<bool, Mistake> {
        if self.encoding != "bool" {
            return Err(self.encoding("bool"));
        }
        self.value.parse().map_err(|_| self.value("true or false"))
    }
    fn algorithm(self) -> Result<SignatureAlgorithm, Mistake> {
        let fits = |one: &SignatureAlgorithm| match self.encoding {
            "integer" => self.value.parse() == Ok(one.number()),
            _ => self.value == one.name(),
        };
        if !matches!(self.encoding, "integer" | "text") {
            return Err(self.encoding("integer or text"));
        }
        let found = SignatureAlgorithm::ALL.into_iter().find(fits);
        found.ok_or_else(|| self.value("-8, EdDSA, -7, ES256"))
    }
    fn mode(self) -> Result<Mode, Mistake> {
        match (self.encoding, self.value) {
            ("text", "group") => Ok(Mode::Group),
            ("text", "pairwise") => Ok(Mode::Pairwise),
            ("text", _) => Err(self.value("group or pairwise")),
            _ => Err(self.encoding("text")),
        }
    }
    fn encoding(self, allowed: &'static str) -> Mistake {
        let (keyword, encoding) = (self.keyword.to_string(), self.encoding.to_string());
        Mistake::Encoding { keyword, encoding, allowed }
    }
    fn value(self, allowed: &'static str) -> Mistake {
        Mistake::Value { keyword: self.keyword.to_string(), allowed }
    }
}

fn unquoted(value: &str) -> &str {
    let inside = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(value)
}
