//! Which clients may ask a proxy, and which targets it asks: an open relay lends its place in the network to strangers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// A range of addresses, as in `2001:db8::/32` or `192.0.2.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// A text that is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of addresses: write it as in 10.0.0.0/8, fd00::/8 or ::1")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let one = text.parse::<IpAddr>().map(IpNet::from);
        let range = text.parse::<IpNet>().or(one);
        range.map(|range| Self(range.trunc())).map_err(|_| NetworkError(text.to_owned()))
    }
}

impl Network {
    /// True if the range contains the address; IPv4 addresses in IPv6 form count too.
    pub fn contains(&self, address: IpAddr) -> bool {
        let mapped = match address {
            IpAddr::V4(address) => Some(IpAddr::V6(address.to_ipv6_mapped())),
            IpAddr::V6(_) => None,
        };
        let forms = [Some(address), Some(address.to_canonical()), mapped];
        forms.into_iter().flatten().any(|form| self.0.contains(&form))
    }
}

/// Ranges of addresses with and without access. What is denied stays denied if it is allowed too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// The ranges with access.
    pub allowed: Vec<Network>,
    /// The ranges without access.
    pub denied: Vec<Network>,
}

impl Networks {
    fn allows(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|one| one.contains(address))
    }
    fn denies(&self, address: IpAddr) -> bool {
        let forms = std::iter::once(address).chain(embedded(address).into_iter().flatten());
        let mut forms = forms;
        forms.any(|form| self.denied.iter().any(|one| one.contains(form)))
    }
}

/// Which clients may use a proxy, and which targets it contacts.
///
/// | | by default | `allowed` | `denied` |
/// |---|---|---|---|
/// | `clients` | all that reach its ports | these only | all but these |
/// | `targets` | addresses of the public Internet | these too | all but these |
///
/// Targets are judged by the address that is asked, whatever its name, and not the target of a reverse proxy, which its
/// operator has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The clients that may ask.
    pub clients: Networks,
    /// The targets that may be asked.
    pub targets: Networks,
}

impl Access {
    /// True if a client at this address is served.
    pub fn admits_client(&self, address: IpAddr) -> bool {
        let Networks { allowed, .. } = &self.clients;
        !self.clients.denies(address) && (allowed.is_empty() || self.clients.allows(address))
    }
    /// True if the proxy contacts a target at this address.
    pub fn admits_target(&self, address: IpAddr) -> bool {
        !self.targets.denies(address) && (self.targets.allows(address) || is_public(address))
    }
}

/// True for addresses that reach one machine through the public Internet: neither this machine, its links or a private
/// network, nor an address that leads to one of these through a translator or tunnel.
fn is_public(address: IpAddr) -> bool {
    let inner = embedded(address).into_iter().flatten();
    std::iter::once(address).chain(inner).all(|address| match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    })
}

/// IANA IPv4 Special-Purpose Address Registry (RFC 6890): what is not globally reachable, and groups.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        // RFC 1122 s3.2.1.3 and RFC 1112 s4: this network, and what is reserved with the broadcast address.
        || first == 0
        || first >= 240
        // RFC 6598: shared by the customers of a provider.
        || (first == 100 && second & 0xc0 == 64)
        // RFC 6890: protocol assignments. RFC 2544: benchmarks.
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && second & 0xfe == 18);
    !special
}

/// IANA IPv6 Special-Purpose Address Registry (RFC 6890), and groups.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, ..] = address.segments();
    let special = address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        // RFC 3879: site-local, which some networks still have.
        || first & 0xffc0 == 0xfec0
        // RFC 8215: translators within a network.
        || (first, second, third) == (0x64, 0xff9b, 1)
        // RFC 6666: discarded.
        || (first, second, third, fourth) == (0x100, 0, 0, 0);
    !special
}

/// The IPv4 addresses that a datagram to an IPv6 address is delivered to by translators and tunnels.
fn embedded(address: IpAddr) -> [Option<IpAddr>; 3] {
    let IpAddr::V6(address) = address else { return [None; 3] };
    let segments = address.segments();
    let v4 =
        |high: u16, low: u16| Some(IpAddr::V4(((u32::from(high) << 16) | u32::from(low)).into()));
    let [.., high, low] = segments;
    let (first, second) = match segments {
        // RFC 4291 s2.5.5.1: IPv4-compatible, which `::` and `::1` are not.
        [0, 0, 0, 0, 0, 0, ..] if high > 0 || low > 1 => (v4(high, low), None),
        // RFC 4291 s2.5.5.2: IPv4-mapped. RFC 6052 s2.1: NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => (v4(high, low), None),
        // RFC 3056 s2: 6to4.
        [0x2002, high, low, ..] => (v4(high, low), None),
        // RFC 4380 s4: Teredo, server and client, the latter inverted.
        [0x2001, 0, server_high, server_low, ..] => (v4(server_high, server_low), v4(!high, !low)),
        _ => (None, None),
    };
    // RFC 5214 s6.1: ISATAP, in any network.
    let isatap = matches!(segments, [_, _, _, _, 0 | 0x200, 0x5efe, ..]);
    [first, second, v4(high, low).filter(|_| isatap)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|_| panic!("{text} is no address"))
    }

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().expect("a range")).collect()
    }

    #[test]
    fn without_rules_targets_are_public_addresses_only() {
        let access = Access::default();
        for public in ["192.0.2.1", "8.8.8.8", "2001:db8::1", "2606::1", "2002:808:808::1"] {
            assert!(access.admits_target(ip(public)), "{public}");
        }
        for special in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "0.0.0.0",
            "::",
            "0.1.2.3",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.8",
            "224.0.1.187",
            "255.255.255.255",
            "240.0.0.1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::fd",
            "ff0e::1",
            "100::1",
            "64:ff9b:1::808:808",
        ] {
            assert!(!access.admits_target(ip(special)), "{special}");
        }
    }

    #[test]
    fn an_address_that_leads_to_a_private_one_is_as_private() {
        let access = Access::default();
        for special in [
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2001:0:808:808::80ff:fffe",
            "2001:0:a00:1::f7f7:f7f7",
            "2001:db8::5efe:10.0.0.1",
            "2001:db8::200:5efe:192.168.0.1",
            "2002:808:808::5efe:10.0.0.1",
        ] {
            assert!(!access.admits_target(ip(special)), "{special}");
        }
        assert!(access.admits_target(ip("64:ff9b::8.8.8.8")));
    }

    #[test]
    fn a_range_that_is_allowed_is_asked_in_every_form_and_one_that_is_denied_in_none() {
        let allowed = networks(&["127.0.0.0/8", "fd00::/8"]);
        let denied = networks(&["127.0.0.2", "8.0.0.0/8"]);
        let access = Access { targets: Networks { allowed, denied }, ..Access::default() };
        for yes in ["127.0.0.1", "::ffff:127.0.0.1", "fd00::1", "2606::1"] {
            assert!(access.admits_target(ip(yes)), "{yes}");
        }
        for no in [
            "127.0.0.2",
            "::ffff:127.0.0.2",
            "8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "::1",
            "64:ff9b::127.0.0.1",
        ] {
            assert!(!access.admits_target(ip(no)), "{no}");
        }
    }

    #[test]
    fn clients_are_all_or_those_that_are_allowed_but_never_those_that_are_denied() {
        let clients = |allowed: &[&str], denied: &[&str]| Access {
            clients: Networks { allowed: networks(allowed), denied: networks(denied) },
            ..Access::default()
        };
        assert!(Access::default().admits_client(ip("fe80::1")));
        let some = clients(&["192.0.2.0/24", "2001:db8::/32"], &["192.0.2.7"]);
        assert!(
            some.admits_client(ip("::ffff:192.0.2.1")) && some.admits_client(ip("2001:db8::9"))
        );
        assert!(!some.admits_client(ip("192.0.2.7")) && !some.admits_client(ip("192.0.3.1")));
        assert!(clients(&[], &["10.0.0.0/8"]).admits_client(ip("192.0.2.1")));
    }

    #[test]
    fn a_range_is_an_address_or_has_a_length() {
        for text in ["10.0.0.0/8", "10.1.2.3/8", "::1", "fd00::/8"] {
            assert!(text.parse::<Network>().is_ok(), "{text}");
        }
        for text in ["10.0.0.0/33", "localhost", "", "fd00::/8/8"] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains("10.0.0.0/8"), "{error}");
        }
    }
}
