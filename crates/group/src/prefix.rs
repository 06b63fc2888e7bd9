//! Addresses that members may have.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Host;

use crate::refusal::Refusal;
use crate::target::Target;

/// An address, and how many of its first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Whether an address begins with it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                u128::from(one.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differ.leading_zeros() >= u32::from(self.bits)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a prefix such as fd00:1::/64 or 10.0.0.0/8");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            "" if !text.contains('/') => most,
            bits => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
        };
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Refuses a member outside of all prefixes, if there are any. A name can lead anywhere, so it is outside.
pub(crate) fn check(allowed: &[Prefix], targets: &[Target]) -> Result<(), Refusal> {
    let is_allowed = |target: &&Target| {
        let address: IpAddr = match target {
            Target::Entity { .. } => return true,
            Target::Resource(uri) => match &uri.host {
                Host::V4(address) => (*address).into(),
                Host::V6(address, _) => (*address).into(),
                Host::Name(_) => return false,
            },
        };
        allowed.iter().any(|prefix| prefix.contains(address))
    };
    match targets.iter().find(|target| !is_allowed(target)).filter(|_| !allowed.is_empty()) {
        None => Ok(()),
        Some(target) => {
            let detail = format!("er: {target} is outside of the addresses that members may have");
            Err(Refusal::new(Code::FORBIDDEN, "member not allowed", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_the_addresses_that_begin_with_it() {
        for (prefix, inside, outside) in [
            ("fd00:1::/64", "fd00:1::7", "fd00:2::7"),
            ("10.0.0.0/8", "10.9.9.9", "11.0.0.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "192.0.2.1", "::1"),
        ] {
            let prefix: Prefix = prefix.parse().expect(prefix);
            assert!(prefix.contains(inside.parse().expect(inside)), "{prefix} {inside}");
            assert!(!prefix.contains(outside.parse().expect(outside)), "{prefix} {outside}");
        }
        for text in ["fd00::/129", "10.0.0.0/33", "lamp", "10.0.0.0/", "/8"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn members_outside_are_refused_with_their_uri() {
        let target = |uri: &str| Target::parse(uri, &[]).expect(uri);
        let allowed = ["fd00:1::/64".parse().expect("a prefix")];
        assert!(check(&allowed, &[target("coap://[fd00:1::1]/t"), target("/e/room")]).is_ok());
        for uri in ["coap://[fd00:2::1]/t", "coap://127.0.0.1/t", "coap://lamp.example/t"] {
            let refusal = check(&allowed, &[target(uri)]).expect_err(uri);
            assert_eq!(refusal.code, Code::FORBIDDEN);
            assert!(refusal.detail.contains(uri), "{refusal:?}");
            assert!(check(&[], &[target(uri)]).is_ok());
        }
    }
}
