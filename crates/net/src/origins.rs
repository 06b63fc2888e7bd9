//! Which web pages may open WebSockets here (RFC 6455 s10.2).
//!
//! A browser lets any page open a WebSocket to any server, also to one on loopback that nobody else can reach, and names
//! the page in `Origin`. Other clients send none.

use std::collections::BTreeSet;
use std::str::FromStr;

/// The web pages that may open WebSockets. By default none may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    any: bool,
    named: BTreeSet<Origin>,
}

/// The origin of web pages, or all of them (`*`).
///
/// ```
/// use lowmesh_net::origins::Origin;
///
/// assert!("https://example.org:8443".parse::<Origin>().is_ok());
/// assert!("https://example.org/page".parse::<Origin>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(String);

/// A text that is no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an origin such as https://example.org or http://localhost:8080, nor *")]
pub struct OriginError(String);

const ANY: &str = "*";

impl FromStr for Origin {
    type Err = OriginError;

    /// RFC 6454 s6.2: scheme, host and a port that is not the default one.
    fn from_str(text: &str) -> Result<Self, OriginError> {
        let is_origin = |text: &str| {
            let (scheme, host) = text.split_once("://")?;
            let scheme_is_name = scheme.starts_with(|one: char| one.is_ascii_alphabetic())
                && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one));
            let host_is_name = !host.is_empty()
                && host.chars().all(|one| one.is_ascii_alphanumeric() || "-._:[]".contains(one));
            (scheme_is_name && host_is_name).then_some(())
        };
        if text != ANY && is_origin(text).is_none() {
            return Err(OriginError(text.to_owned()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl FromIterator<Origin> for Origins {
    fn from_iter<I: IntoIterator<Item = Origin>>(all: I) -> Self {
        let (any, named): (BTreeSet<_>, _) = all.into_iter().partition(|one| one.0 == ANY);
        Self { any: !any.is_empty(), named }
    }
}

impl Origins {
    /// Whether a page of this origin may open a WebSocket; `None` for a header that is no text.
    pub(crate) fn admit(&self, origin: Option<&str>) -> bool {
        let named = |origin: &str| self.named.contains(&Origin(origin.to_ascii_lowercase()));
        self.any || origin.is_some_and(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(all: &[&str]) -> Origins {
        all.iter().map(|one| one.parse::<Origin>().expect("an origin")).collect()
    }

    #[test]
    fn only_pages_that_are_named_are_admitted() {
        let named = origins(&["https://Example.org", "http://localhost:8080"]);
        assert!(named.admit(Some("https://example.org")));
        assert!(named.admit(Some("http://localhost:8080")));
        for other in ["https://example.org:8443", "http://example.org", "null", "*", ""] {
            assert!(!named.admit(Some(other)), "{other}");
            assert!(!Origins::default().admit(Some(other)), "{other}");
        }
        assert!(!named.admit(None));
        assert!(origins(&["*"]).admit(Some("null")) && origins(&["*"]).admit(None));
    }

    #[test]
    fn what_no_browser_sends_is_no_origin() {
        for text in ["", "example.org", "https://", "https://a/", "https://a b", "://a", "null"] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
