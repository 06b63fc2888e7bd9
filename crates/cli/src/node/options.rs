//! The options of a node: its air, name, addresses, contexts and routes, and how it sends large packets.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use clap::ValueEnum;
use lowmesh_lowpan::FragmentMode;
use lowmesh_realtime::zep::{self, RealTime};
use lowmesh_stack::{Config, Identity};
use lowmesh_units::{Channel, Duration, Eui64, PanId};
use lowmesh_wire::ipv6::{Address, Prefix};
use lowmesh_wire::lowpan::Contexts;

use crate::duration::positive;
use crate::failure::Failure;

/// The node and its air.
#[derive(Debug, clap::Args)]
#[group(id = "node")]
pub struct Options {
    /// Address of the dispatcher, or of the only other node
    #[arg(long, value_name = "HOST:PORT")]
    pub zep: String,
    /// Local address and port; by default any free port
    #[arg(long, value_name = "ADDR:PORT")]
    pub bind: Option<SocketAddr>,
    /// Link-layer address of the node; its link-local IPv6 address is derived from it
    #[arg(long, value_name = "EUI-64", value_parser = eui64)]
    pub eui64: Eui64,
    /// PAN ID of the network
    #[arg(long, value_name = "ID", default_value = "0x0023", value_parser = pan)]
    pan: PanId,
    /// Radio channel, 11 to 26
    #[arg(long, value_name = "N", default_value = "26", value_parser = channel)]
    pub channel: Channel,
    /// Medium access
    #[arg(long, value_enum, default_value_t = Mac::Csma)]
    mac: Mac,
    /// How the node sends packets larger than a frame
    #[arg(long, value_enum, default_value_t = Fragments::Hwr)]
    fragments: Fragments,
    /// Global IPv6 address of the node (repeatable); the source of a packet is the address nearest to its destination
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = address)]
    pub address: Vec<Global>,
    /// Context of header compression, number 0 unless CID= precedes it (repeatable); every node of the link must have
    /// the same
    #[arg(long, value_name = "[CID=]PREFIX/64", value_parser = context)]
    context: Vec<Context>,
    /// Fragments of one packet in flight (sfr), 1 to 32
    #[arg(long, value_name = "FRAGMENTS", default_value_t = RealTime::default().window,
          value_parser = clap::value_parser!(u32).range(1..=32))]
    window: u32,
    /// Time to wait for the acknowledgement of fragments (sfr)
    #[arg(long, value_name = "TIME", default_value_t = RealTime::default().arq_timeout,
          value_parser = positive)]
    arq_timeout: Duration,
    /// Copies of a fragment after the first (sfr)
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().fragment_retries)]
    fragment_retries: u8,
    /// Restarts of a packet that was refused or given up (sfr)
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().datagram_retries)]
    datagram_retries: u8,
    /// Time for which fragments wait for the rest, up to 60s
    #[arg(long, value_name = "TIME", default_value_t = RealTime::default().reassembly_timeout,
          value_parser = positive)]
    reassembly_timeout: Duration,
    /// Packets in reassembly at a time, 1 to 1024
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().reassembly_buffers,
          value_parser = buffers)]
    reassembly_buffers: usize,
    /// Copies of a frame that is not acknowledged, 0 to 7
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().mac_retries,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    mac_retries: u8,
    /// Maximum number of ICMPv6 errors per second; 0 sends none
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().icmpv6_errors)]
    icmpv6_errors: u32,
    /// Maximum number of refusals of packets in fragments per second (sfr); 0 sends none
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().refusals)]
    refusals: u32,
    /// Route through a neighbour (repeatable)
    #[arg(long, num_args = 3, value_names = ["PREFIX", "via", "LINK-LOCAL"])]
    route: Vec<String>,
}

/// A MAC that works over a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mac {
    /// Unslotted CSMA/CA with acknowledgements
    Csma,
}

/// How the node sends packets larger than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fragments {
    /// Reassembled at every hop (RFC 4944)
    Hwr,
    /// Forwarded as they arrive (RFC 8930)
    Ff,
    /// Forwarded, and recovered by the ends (RFC 8931)
    Sfr,
}

/// A global address with the bits of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// The whole address.
    pub address: Address,
    bits: u8,
}

/// A prefix with its number among the contexts of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Context {
    index: u8,
    prefix: Prefix,
}

impl Options {
    /// The settings of the node.
    pub fn config(&self) -> Config {
        let mode = match self.fragments {
            Fragments::Hwr => FragmentMode::HopWise,
            Fragments::Ff => FragmentMode::Forwarded,
            Fragments::Sfr => FragmentMode::Recovered,
        };
        let settings = RealTime {
            window: self.window,
            arq_timeout: self.arq_timeout,
            fragment_retries: self.fragment_retries,
            datagram_retries: self.datagram_retries,
            reassembly_timeout: self.reassembly_timeout,
            reassembly_buffers: self.reassembly_buffers,
            mac_retries: self.mac_retries,
            icmpv6_errors: self.icmpv6_errors,
            refusals: self.refusals,
        };
        match self.mac {
            Mac::Csma => settings.config(self.pan, mode),
        }
    }

    /// The name, addresses, contexts and routes of the node.
    pub fn identity(&self) -> Result<Identity, Failure> {
        let mut identity = Identity::new(self.eui64);
        for Global { address, bits } in &self.address {
            identity = identity.with_address(*address, *bits).map_err(|refusal| {
                Failure::usage(
                    format!("--address {address}/{bits}: {}", refusal.why()),
                    "give each address once",
                )
            })?;
        }
        let mut contexts = Contexts::new();
        for Context { index, prefix } in &self.context {
            if contexts.prefix(*index).is_some() {
                let message = format!("--context {index}={prefix}: context {index} has a prefix");
                let hint = "give each context its own number, as in 1=2001:db8::/64";
                return Err(Failure::usage(message, hint));
            }
            contexts = contexts.with(*index, prefix.address().prefix());
            identity = identity.with_context(*index, prefix.address().prefix());
        }
        self.route.chunks(3).try_fold(identity, with_route)
    }

    /// True if packets to `destination` have somewhere to go: it is on the link, or a route leads there.
    pub fn reaches(&self, destination: &Address) -> bool {
        let leads = |words: &[String]| {
            words[0].parse::<Prefix>().is_ok_and(|prefix| prefix.contains(destination))
        };
        destination.is_link_local() || destination.is_multicast() || self.route.chunks(3).any(leads)
    }

    /// True for an address of the node itself.
    pub fn is_own(&self, address: &Address) -> bool {
        *address == Address::link_local(self.eui64)
            || self.address.iter().any(|global| global.address == *address)
    }

    /// The address of the dispatcher or of the other node.
    pub fn peer(&self) -> Result<SocketAddr, Failure> {
        resolve(&self.zep)
    }
}

fn with_route(identity: Identity, words: &[String]) -> Result<Identity, Failure> {
    let wrong = |why: String| Failure::Usage {
        message: format!("--route {}: {why}", words.join(" ")),
        hint: Some("write --route 2001:db8:1::/64 via fe80::1".to_owned()),
    };
    let [prefix, via, next_hop] = words else { return Err(wrong("three words".to_owned())) };
    if via != "via" {
        return Err(wrong(format!("`{via}` should be `via`")));
    }
    let prefix: Prefix = prefix.parse().map_err(|error| wrong(format!("{error}")))?;
    let next_hop: Ipv6Addr =
        next_hop.parse().map_err(|_| wrong(format!("`{next_hop}` is not an IPv6 address")))?;
    identity.with_route(prefix, next_hop.into()).map_err(|refusal| wrong(refusal.why().to_owned()))
}

fn resolve(peer: &str) -> Result<SocketAddr, Failure> {
    let usage = |message: String| Failure::Usage {
        message,
        hint: Some(format!("write HOST:PORT; the port of ZEP is {}", zep::PORT)),
    };
    let found = peer.to_socket_addrs().map_err(|error| usage(format!("--zep {peer}: {error}")))?;
    found.into_iter().next().ok_or_else(|| usage(format!("--zep {peer}: the host has no address")))
}

fn eui64(text: &str) -> Result<Eui64, String> {
    let octets: Option<Vec<u8>> = text
        .split([':', '-'])
        .map(|octet| u8::from_str_radix(octet, 16).ok().filter(|_| octet.len() == 2))
        .collect();
    octets.and_then(|octets| octets.try_into().ok()).map(Eui64).ok_or_else(|| {
        "write eight octets of two hexadecimal digits, as in 02:4c:4d:00:00:00:00:01".to_owned()
    })
}

fn buffers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "write a number from 1 to 1024".to_owned())
}

fn pan(text: &str) -> Result<PanId, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    // 0xffff is not a network but all of them (IEEE 802.15.4-2015 s8.4.2, macPanId).
    number
        .ok()
        .map(PanId)
        .filter(|pan| *pan != PanId::BROADCAST)
        .ok_or_else(|| "write a number below 65535, as in 0x0023 or 35".to_owned())
}

fn channel(text: &str) -> Result<Channel, String> {
    let number = text.parse().ok().and_then(Channel::new);
    number.ok_or_else(|| "the band has the channels 11 to 26".to_owned())
}

fn address(text: &str) -> Result<Global, String> {
    let prefix: Prefix = text.parse().map_err(|error| format!("{error}"))?;
    // The prefix forgets the bits behind it, which are what is wanted here.
    let address = text.split_once('/').and_then(|(address, _)| address.parse::<Ipv6Addr>().ok());
    let address = Address::from(address.unwrap_or(prefix.address().into()));
    if address.is_multicast() || address.is_unspecified() || address.is_link_local() {
        return Err(format!("`{address}` is not a global address"));
    }
    Ok(Global { address, bits: prefix.bits() })
}

fn context(text: &str) -> Result<Context, String> {
    let (index, prefix) = match text.split_once('=') {
        Some((number, prefix)) => (number.parse().ok(), prefix),
        None => (Some(0), text),
    };
    let index = index.filter(|index| usize::from(*index) < Contexts::COUNT);
    let index = index.ok_or("contexts have the numbers 0 to 15, as in 1=2001:db8::/64")?;
    let prefix: Prefix = prefix.parse().map_err(|error| format!("{error}"))?;
    if prefix.bits() != 64 {
        return Err("a context must have 64 bits".to_owned());
    }
    Ok(Context { index, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Options,
    }

    const NODE: [&str; 5] = ["node", "--zep", "127.0.0.1:9", "--eui64", "02:4c:4d:00:00:00:00:01"];

    fn parsed(more: &[&str]) -> Result<Options, String> {
        let words = NODE.iter().chain(more);
        Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_line_of_the_manual_is_understood() {
        let args = parsed(&[
            "--pan",
            "0x0023",
            "--channel",
            "26",
            "--mac",
            "csma",
            "--fragments",
            "sfr",
            "--address",
            "2001:db8::1/64",
            "--route",
            "::/0",
            "via",
            "fe80::1",
            "--route",
            "2001:db8:2::/48",
            "via",
            "fe80::2",
        ])
        .expect("a whole line");
        assert_eq!(args.eui64, Eui64([2, 0x4c, 0x4d, 0, 0, 0, 0, 1]));
        assert_eq!(args.pan, PanId(0x23));
        assert_eq!(args.address, [address("2001:db8::1/64").expect("a global one")]);
        assert_eq!(args.config().lowpan.mode, FragmentMode::Recovered);
        assert!(args.identity().is_ok());
    }

    #[test]
    fn an_address_or_a_context_that_is_given_twice_is_refused_by_its_name() {
        for (words, told) in [
            (
                ["--address", "2001:db8::1/64", "--address", "2001:db8::1/48"],
                "2001:db8::1/48: the node has it",
            ),
            (
                ["--context", "3=2001:db8::/64", "--context", "3=fd00::/64"],
                "3=fd00::/64: context 3 has",
            ),
        ] {
            let args = parsed(&words).expect("each is well by itself");
            let Err(Failure::Usage { message, .. }) = args.identity() else { panic!("{words:?}") };
            assert!(message.contains(told), "{message}");
        }
        let many = [
            "--address",
            "2001:db8::1/64",
            "--address",
            "fd00::1/48",
            "--context",
            "fd00::/64",
            "--context",
            "1=2001:db8::/64",
        ];
        assert!(parsed(&many).expect("a whole line").identity().is_ok());
    }

    #[test]
    fn a_destination_without_a_route_is_known_before_anything_is_sent() {
        let args = parsed(&["--route", "2001:db8:7::/48", "via", "fe80::1"]).expect("a whole line");
        for (text, reached) in [("fe80::9", true), ("2001:db8:7:1::1", true), ("fd00::1", false)] {
            let to: Ipv6Addr = text.parse().expect("an address");
            assert_eq!(args.reaches(&to.into()), reached, "{text}");
        }
    }

    #[test]
    fn the_settings_of_the_line_reach_the_node() {
        let plain = parsed(&[]).expect("a whole line");
        assert_eq!(plain.config().lowpan.reassembly_timeout, Duration::from_secs(3));
        let args = parsed(&["--reassembly-timeout", "10s", "--fragment-retries", "2"]);
        let config = args.expect("a whole line").config();
        assert_eq!(config.lowpan.reassembly_timeout, Duration::from_secs(10));
        assert_eq!(config.lowpan.recovery.fragment_retries, 2);
    }

    #[test]
    fn a_wrong_value_says_what_is_right() {
        for (words, told) in [
            (&["--pan", "0xffff"][..], "below 65535"),
            (&["--channel", "27"], "11 to 26"),
            (&["--address", "2001:db8::1"], "2001:db8::/64"),
            (&["--address", "fe80::1/64"], "not a global address"),
            (&["--context", "2001:db8::/48"], "64 bits"),
            (&["--context", "16=2001:db8::/64"], "0 to 15"),
            (&["--context", "one=2001:db8::/64"], "0 to 15"),
            (&["--mac", "tsch"], "csma"),
            (&["--window", "33"], "1..=32"),
            (&["--arq-timeout", "0s"], "longer than 0s"),
            (&["--reassembly-buffers", "0"], "from 1 to 1024"),
            (&["--mac-retries", "8"], "0..=7"),
        ] {
            let error = parsed(words).expect_err("a wrong value");
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }

    #[test]
    fn an_eui64_has_eight_octets_with_colons_or_dashes() {
        let node = Eui64([2, 0x4c, 0x4d, 0, 0, 0, 0, 0xff]);
        for text in ["02:4c:4d:00:00:00:00:ff", "02-4C-4D-00-00-00-00-FF"] {
            assert_eq!(eui64(text), Ok(node));
        }
        for text in ["", "1:2", "02:4c:4d:00:00:00:00:ff:01", "2:4c:4d:00:00:00:00:ff", "node"] {
            assert!(eui64(text).is_err_and(|why| why.contains("eight octets")), "{text}");
        }
    }

    #[test]
    fn a_wrong_route_says_what_is_right() {
        for (route, told) in [
            (["::/0", "over", "fe80::1"], "should be `via`"),
            (["::", "via", "fe80::1"], "not a prefix"),
            (["::/0", "via", "here"], "not an IPv6 address"),
            (["::/0", "via", "2001:db8::1"], "link-local"),
        ] {
            let words = ["--route", route[0], route[1], route[2]];
            let args = parsed(&words).expect("three words each");
            let Err(Failure::Usage { message, .. }) = args.identity() else {
                panic!("{route:?} passed")
            };
            assert!(message.contains(told), "{message}");
        }
    }

    #[test]
    fn a_peer_without_a_port_is_a_wrong_value() {
        let Err(Failure::Usage { hint, .. }) = resolve("localhost") else { panic!("no port") };
        assert!(hint.is_some_and(|hint| hint.contains("17754")));
    }
}
