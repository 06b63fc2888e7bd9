//! Numbers of nodes and links in real time.

use std::net::Ipv6Addr;

/// The largest packet that an emulated link carries in octets: RFC 791 s3.1.
pub const EMULATED_PACKET_OCTETS_MAX: usize = 65_535;
/// Packets of one end that an emulator takes before it looks at the other; ours. The next one waits in the device.
pub const EMULATED_BURST_PACKETS: usize = 64;
/// Letters in the name of an emulated link; ours: a device has 15 (IFNAMSIZ), and `-a` or `-b` follows the name.
pub const EMULATED_NAME_OCTETS_MAX: usize = 13;
/// The IPv4 addresses of the two ends; ours, of a private range (RFC 1918).
pub const EMULATED_IPV4: [&str; 2] = ["10.9.0.1/30", "10.9.0.2/30"];
/// The IPv6 addresses of the two ends; ours, unique local ones (RFC 4193).
pub const EMULATED_IPV6: [&str; 2] = ["fd00:6c6d::1/64", "fd00:6c6d::2/64"];
/// The network of a node in place of an end; ours, another one than that of the namespace: the node sends packets for its
/// own network to its radio.
pub const EMULATED_NODE_PREFIX: &str = "fd00:6c6d:0:1::/64";
/// The address of a node in place of an end; ours.
pub const EMULATED_NODE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c6d, 0, 1, 0, 0, 0, 2);
