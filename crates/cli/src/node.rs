//! `lowmesh node`: one node in real time over ZEP, together with native builds of other stacks.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use clap::ValueEnum;
use lowmesh_applications::Clock;
use lowmesh_lowpan::Way;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::zep::{self, Host, RealTime, Settings};
use lowmesh_stack::{COAP_PORT, Config, ECHO_PORT, Identity, Node};
use lowmesh_units::{Channel, Duration, Eui64, PanId};
use lowmesh_wire::ipv6::{Address, Prefix};

use crate::failure::Failure;

/// Run one node in real time over ZEP (IEEE 802.15.4 frames in UDP)
///
/// It answers ping, UDP echo on port 7, neighbour solicitations, and CoAP requests for /clock and
/// /.well-known/core, and forwards packets, until it is killed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, with RIOT's dispatcher:\n  lowmesh node --zep localhost:17754 \
                        --eui64 02:4c:4d:00:00:00:00:01 --address 2001:db8::1/64 \
                        --route ::/0 via fe80::4c:4d00:0:2")]
pub struct Args {
    /// Address of the dispatcher, or of the only other node
    #[arg(long, value_name = "HOST:PORT")]
    zep: String,
    /// Local address and port; by default any free port
    #[arg(long, value_name = "ADDR:PORT")]
    bind: Option<SocketAddr>,
    /// Link-layer address of the node; its link-local IPv6 address is derived from it
    #[arg(long, value_name = "EUI-64", value_parser = eui64)]
    eui64: Eui64,
    /// PAN ID of the network
    #[arg(long, value_name = "ID", default_value = "0x0023", value_parser = pan)]
    pan: PanId,
    /// Radio channel, 11 to 26
    #[arg(long, value_name = "N", default_value = "26", value_parser = channel)]
    channel: Channel,
    /// Medium access
    #[arg(long, value_enum, default_value_t = Mac::Csma)]
    mac: Mac,
    /// How packets larger than a frame are sent
    #[arg(long, value_enum, default_value_t = Fragments::Hwr)]
    fragments: Fragments,
    /// Global IPv6 address of the node
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = address)]
    address: Option<Address>,
    /// Context 0 of header compression, which every node of the link must have too
    #[arg(long, value_name = "PREFIX/64", value_parser = context)]
    context: Option<Prefix>,
    /// Fragments of one packet on their way at a time (sfr), 1 to 32
    #[arg(long, value_name = "FRAGMENTS", default_value_t = RealTime::default().window,
          value_parser = clap::value_parser!(u32).range(1..=32))]
    window: u32,
    /// Wait for the acknowledgement of fragments (sfr)
    #[arg(long, value_name = "TIME", default_value_t = RealTime::default().arq_timeout,
          value_parser = positive)]
    arq_timeout: Duration,
    /// Copies of a fragment after the first (sfr)
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().fragment_retries)]
    fragment_retries: u8,
    /// Times that a packet begins again after it was refused or given up (sfr)
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().datagram_retries)]
    datagram_retries: u8,
    /// How long fragments wait for the rest, up to 60s
    #[arg(long, value_name = "TIME", default_value_t = RealTime::default().reassembly_timeout,
          value_parser = positive)]
    reassembly_timeout: Duration,
    /// Packets put together from fragments at a time, 1 to 1024
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().reassembly_buffers,
          value_parser = buffers)]
    reassembly_buffers: usize,
    /// Copies of a frame that is not acknowledged, 0 to 7
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().mac_retries,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    mac_retries: u8,
    /// ICMPv6 errors sent a second at most; 0 sends none
    #[arg(long, value_name = "NUMBER", default_value_t = RealTime::default().icmpv6_errors)]
    icmpv6_errors: u32,
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

/// How packets larger than a frame are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fragments {
    /// Reassembled at every hop (RFC 4944)
    Hwr,
    /// Forwarded as they come (RFC 8930)
    Ff,
    /// Forwarded, and recovered by the ends (RFC 8931)
    Sfr,
}

/// Runs the node until it is killed.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let peer = resolve(&args.zep)?;
    let identity = identity(args)?;
    let mut node = Node::alone(&config(args), identity, fresh_seed()).map_err(Failure::own)?;
    node.install(Box::new(Clock::default())).map_err(Failure::own)?;
    let settings = Settings { peer, local: args.bind, channel: args.channel, node: args.eui64 };
    let mut host = Host::open(settings, node)
        .map_err(|error| Failure::own(format!("cannot open a socket towards {peer}: {error}")))?;
    let here = host.local_addr().map_err(Failure::own)?;
    writeln!(out, "node {} on {here}, ZEP to {peer}", args.eui64)?;
    writeln!(out, "  link-local {}", Address::link_local(args.eui64))?;
    if let Some(address) = args.address {
        writeln!(out, "  global     {address}")?;
    }
    writeln!(out, "  CoAP on port {COAP_PORT}, echo on port {ECHO_PORT}")?;
    out.flush()?;
    host.run(|_, output| output.not_found())
        .map_err(|error| Failure::own(format!("the socket towards {peer} failed: {error}")))
}

fn config(args: &Args) -> Config {
    let way = match args.fragments {
        Fragments::Hwr => Way::HopWise,
        Fragments::Ff => Way::Forwarded,
        Fragments::Sfr => Way::Recovered,
    };
    let settings = RealTime {
        window: args.window,
        arq_timeout: args.arq_timeout,
        fragment_retries: args.fragment_retries,
        datagram_retries: args.datagram_retries,
        reassembly_timeout: args.reassembly_timeout,
        reassembly_buffers: args.reassembly_buffers,
        mac_retries: args.mac_retries,
        icmpv6_errors: args.icmpv6_errors,
    };
    match args.mac {
        Mac::Csma => settings.config(args.pan, way),
    }
}

fn identity(args: &Args) -> Result<Identity, Failure> {
    let mut identity = Identity::new(args.eui64);
    if let Some(address) = args.address {
        identity = identity.with_address(address);
    }
    if let Some(context) = args.context {
        identity = identity.with_context(context.address().prefix());
    }
    for words in args.route.chunks(3) {
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
        identity = identity
            .with_route(prefix, next_hop.into())
            .map_err(|refusal| wrong(refusal.why.to_owned()))?;
    }
    Ok(identity)
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

fn positive(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be longer than 0s".to_owned()) } else { Ok(time) }
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

fn address(text: &str) -> Result<Address, String> {
    let prefix: Prefix = text.parse().map_err(|error| format!("{error}"))?;
    // The prefix forgets the bits behind it, which are what is wanted here.
    let address = text.split_once('/').and_then(|(address, _)| address.parse::<Ipv6Addr>().ok());
    let address = Address::from(address.unwrap_or(prefix.address().into()));
    if address.is_multicast() || address.is_unspecified() || address.is_link_local() {
        return Err(format!("`{address}` is not a global address"));
    }
    Ok(address)
}

fn context(text: &str) -> Result<Prefix, String> {
    let prefix: Prefix = text.parse().map_err(|error| format!("{error}"))?;
    if prefix.bits() == 64 { Ok(prefix) } else { Err("a context has 64 bits here".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const NODE: [&str; 5] = ["node", "--zep", "127.0.0.1:9", "--eui64", "02:4c:4d:00:00:00:00:01"];

    fn parsed(more: &[&str]) -> Result<Args, String> {
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
        assert_eq!(args.address.map(|address| address.to_string()), Some("2001:db8::1".into()));
        assert_eq!(config(&args).lowpan.way, Way::Recovered);
        assert!(identity(&args).is_ok());
    }

    #[test]
    fn the_settings_of_the_line_reach_the_node() {
        let plain = parsed(&[]).expect("a whole line");
        assert_eq!(config(&plain).lowpan.reassembly_timeout, Duration::from_secs(3));
        let args = parsed(&["--reassembly-timeout", "10s", "--fragment-retries", "2"]);
        let config = config(&args.expect("a whole line"));
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
            let Err(Failure::Usage { message, .. }) = identity(&args) else {
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
