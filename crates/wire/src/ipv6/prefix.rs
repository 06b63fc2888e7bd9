//! A prefix: the first bits of many addresses (RFC 4291 s2.3).

use alloc::string::{String, ToString};
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use super::Address;

/// Bits of an address.
const BITS_MAX: u8 = 128;

/// The first bits of an address, and how many they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: Address,
    bits: u8,
}

impl Prefix {
    /// The first `bits` bits of `address`; `None` for more than 128.
    pub fn new(address: Address, bits: u8) -> Option<Self> {
        if bits > BITS_MAX {
            return None;
        }
        let number = u128::from_be_bytes(address.0) & mask(bits);
        Some(Self { address: Address(number.to_be_bytes()), bits })
    }
    /// How many bits.
    pub const fn bits(&self) -> u8 {
        self.bits
    }
    /// The bits, with zeros behind them.
    pub const fn address(&self) -> Address {
        self.address
    }
    /// True when `address` begins with it.
    pub fn contains(&self, address: &Address) -> bool {
        u128::from_be_bytes(address.0) & mask(self.bits) == u128::from_be_bytes(self.address.0)
    }
}

const fn mask(bits: u8) -> u128 {
    match BITS_MAX - bits {
        BITS_MAX => 0,
        rest => u128::MAX << rest,
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a prefix: write an IPv6 address and its bits, as in 2001:db8::/64")]
pub struct ParsePrefixError(String);

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (address, bits) = text.split_once('/')?;
            let address: Ipv6Addr = address.parse().ok()?;
            Self::new(address.into(), bits.parse().ok()?)
        };
        read().ok_or_else(|| ParsePrefixError(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }
    fn address(text: &str) -> Address {
        text.parse::<Ipv6Addr>().expect("an address").into()
    }

    #[test]
    fn a_prefix_holds_the_addresses_that_begin_with_it() {
        assert!(prefix("2001:db8::/64").contains(&address("2001:db8::1")));
        assert!(!prefix("2001:db8::/64").contains(&address("2001:db8:0:1::1")));
        assert!(prefix("2001:db8::/33").contains(&address("2001:db8:7fff::")));
        assert!(!prefix("2001:db8::/33").contains(&address("2001:db8:8000::")));
        assert!(prefix("::/0").contains(&address("fe80::1")));
        assert!(!prefix("fe80::1/128").contains(&address("fe80::2")));
    }

    #[test]
    fn bits_behind_the_prefix_do_not_count() {
        assert_eq!(prefix("2001:db8::77/64"), prefix("2001:db8::/64"));
        assert_eq!(format!("{}", prefix("2001:db8::77/64")), "2001:db8::/64");
    }

    #[test]
    fn what_is_not_a_prefix_is_named_in_the_error() {
        for text in ["", "2001:db8::", "2001:db8::/129", "2001:db8::/x", "10.0.0.0/8"] {
            let error = text.parse::<Prefix>().expect_err(text);
            assert!(format!("{error}").contains(text));
        }
    }
}
