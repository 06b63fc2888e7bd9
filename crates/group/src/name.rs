//! Names that clients choose: of entities, and of members in results.

use crate::params::NAME_LEN_MAX;

/// Letters, digits, `-` and `_`: what needs no encoding in a URI, and is allowed in SenML.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-_".contains(&octet);
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// RFC 8428 s4.5.1: a name in SenML begins with a letter or digit.
pub(crate) fn is_member_name(name: &str) -> bool {
    is_name(name) && name.starts_with(|one: char| one.is_ascii_alphanumeric())
}
