//! The build of the program that made a run.
//!
//! The id of a build is a hash over its sources, from the scenario to the metrics. The build script computes it. The same
//! sources have the same id on every machine. The commit tells readers where to find these sources; no code decides by
//! it.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Digits of an id in messages and in the names of folders.
const SHORT_DIGITS: usize = 12;

/// Digits of a commit in messages.
const COMMIT_DIGITS: usize = 12;

/// The suffix of a commit whose sources were changed before the build.
const DIRTY: &str = "-dirty";

static COMMIT: OnceLock<Commit> = OnceLock::new();

/// The name of a build: a hash over its sources, 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildId(pub u128);

impl BuildId {
    /// The id of this program.
    pub fn own() -> Self {
        env!("LOWMESH_BUILD").parse().expect("the build script writes 32 digits")
    }

    /// Whether the dependencies of this program can differ from the lock file. No other build has this id then.
    pub fn is_unlocked() -> bool {
        env!("LOWMESH_UNLOCKED") == "true"
    }

    /// The first twelve digits.
    pub fn short(self) -> String {
        self.to_string()[..SHORT_DIGITS].to_owned()
    }

    /// Whether `text` can be the first twelve digits of an id.
    pub fn is_short(text: &str) -> bool {
        text.len() == SHORT_DIGITS
            && text.bytes().all(|octet| octet.is_ascii_digit() || (b'a'..=b'f').contains(&octet))
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is not the id of a build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a build: an id has 32 hexadecimal digits")]
pub struct NoBuildId(pub String);

impl FromStr for BuildId {
    type Err = NoBuildId;

    fn from_str(text: &str) -> Result<Self, NoBuildId> {
        let plain = text.len() == 32 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
        let id = if plain { u128::from_str_radix(text, 16).ok() } else { None };
        id.map(Self).ok_or_else(|| NoBuildId(text.to_owned()))
    }
}

impl Serialize for BuildId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BuildId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The commit from which a program was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its hash.
    pub hash: String,
    /// Whether sources of the program differed from it.
    pub dirty: bool,
}

impl Commit {
    /// Reads a hash, followed by `-dirty` if the sources differed; none if the hash is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let clean = text.strip_suffix(DIRTY);
        let hash = clean.unwrap_or(text).to_owned();
        (!hash.is_empty()).then(|| Self { hash, dirty: clean.is_some() })
    }
}

/// The first digits of the hash, followed by `-dirty` if the sources differed.
impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = self.hash.get(..COMMIT_DIGITS).unwrap_or(&self.hash);
        write!(f, "{hash}{}", if self.dirty { DIRTY } else { "" })
    }
}

/// A build with the commit that holds its sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The hash over its sources.
    pub id: BuildId,
    /// The commit, if it is known.
    pub commit: Option<Commit>,
}

impl Build {
    /// This program.
    pub fn own() -> Self {
        Self { id: BuildId::own(), commit: COMMIT.get().cloned() }
    }
}

/// As in `build 9f3ac04be1d2 (commit 147307f0a1b2-dirty)`.
impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.id.short(), self.commit.as_ref()))
    }
}

/// A build by its first twelve digits, as [`Build`] is displayed.
pub(crate) fn words(short: &str, commit: Option<&Commit>) -> String {
    let commit = commit.map_or_else(String::new, |commit| format!(" (commit {commit})"));
    format!("build {short}{commit}")
}

/// Sets the commit of the program, in the form that [`Commit::parse`] reads. Only the first call has an effect.
pub fn declare(commit: &str) {
    if let Some(commit) = Commit::parse(commit) {
        // A second call has the same commit: a program has only one.
        _ = COMMIT.set(commit);
    }
}

/// The program that makes a report: version, build, commit.
pub fn program() -> String {
    format!("lowmesh {VERSION}, {}", Build::own())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_back_from_its_text() {
        assert_eq!(Commit::parse(""), None);
        assert_eq!(Commit::parse("-dirty"), None);
        let clean = Commit::parse("147307f0a1b2c3d4").expect("a hash");
        assert_eq!((clean.dirty, clean.to_string().as_str()), (false, "147307f0a1b2"));
        let dirty = Commit::parse("147307f0a1b2c3d4-dirty").expect("a hash");
        assert_eq!((dirty.hash.as_str(), dirty.dirty), ("147307f0a1b2c3d4", true));
        assert_eq!(dirty.to_string(), "147307f0a1b2-dirty");
        assert_eq!(Commit::parse("v1").expect("a name").to_string(), "v1");
    }

    #[test]
    fn a_build_is_shown_with_twelve_digits_and_stored_with_all() {
        let commit = Commit::parse("147307f-dirty");
        let build = Build { id: BuildId(0x9f3a << 112), commit };
        assert_eq!(build.to_string(), "build 9f3a00000000 (commit 147307f-dirty)");
        assert!(BuildId::is_short(&build.id.short()) && !BuildId::is_short("9F3A00000000"));
        let text = serde_json::to_string(&build).expect("plain data");
        let id = "9f3a0000000000000000000000000000";
        assert_eq!(
            text,
            format!("{{\"id\":\"{id}\",\"commit\":{{\"hash\":\"147307f\",\"dirty\":true}}}}")
        );
        assert_eq!(serde_json::from_str::<Build>(&text).expect("own output"), build);
        assert_eq!(id.parse(), Ok(build.id));
        assert!("9f3a".parse::<BuildId>().is_err());
    }
}
