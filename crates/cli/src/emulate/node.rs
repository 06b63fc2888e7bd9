//! A node of Lowmesh in place of namespace b: how its TCP behaves, and what it serves.

use clap::builder::PossibleValuesParser;
use lowmesh_applications::Document;
use lowmesh_lab::scenario::Rows;
use lowmesh_lowpan as lowpan;
use lowmesh_mac::csma;
use lowmesh_realtime::zep::RealTime;
use lowmesh_stack::config::{Tcp, Transport};
use lowmesh_stack::{Application, Config, LinkLayer};
use lowmesh_tcp::Profile;
use lowmesh_wire::{ipv6, tcp};

use crate::failure::Failure;
use crate::rows;

/// The resource of the node.
const PATH: &str = "/body";
/// The smallest MTU of IPv6: RFC 8200 s5.
const MTU_MIN: u16 = lowpan::params::MTU as u16;
/// The headers of IPv6 and TCP.
const HEADER_OCTETS: u16 = (ipv6::HEADER_OCTETS + tcp::HEADER_OCTETS) as u16;

/// The node.
#[derive(Debug, clap::Args)]
#[group(id = "end_node")]
pub struct Options {
    /// Put a node of Lowmesh in place of namespace b, at fd00:6c6d:0:1::2, with its own IPv6 and TCP; it serves
    /// coap+tcp and keeps what is PUT to /body
    #[arg(long, conflicts_with = "peer")]
    pub node: bool,
    /// How the TCP of the node behaves
    #[arg(long, value_name = "NAME", requires = "node", default_value = "linux",
          value_parser = PossibleValuesParser::new(Profile::NAMED.map(|(name, _)| name)))]
    profile: String,
    /// Congestion window of the node
    #[arg(long, value_name = "NAME", requires = "node", default_value = "newreno",
          value_parser = rows::windows())]
    window: String,
}

impl Options {
    /// The settings of the node on a link with this MTU.
    pub fn config(&self, mtu: u16) -> Result<Config, Failure> {
        if mtu < MTU_MIN {
            let message =
                format!("--mtu {mtu} is too small for --node, whose IPv6 needs {MTU_MIN} or more");
            let hint = "--profile pesola has short segments on any link";
            return Err(Failure::usage(message, hint));
        }
        let named = Profile::NAMED.into_iter().find(|(name, _)| *name == self.profile);
        let (_, profile) = named.expect("the parser takes these names only");
        let window = Rows::default().windows.row(&self.window);
        let window = window.map_err(|error| Failure::usage(error, "see --window"))?;
        let mss = profile.mss.min(mtu - HEADER_OCTETS);
        let transport = Tcp { profile: Profile { window, mss, ..profile }, ..Tcp::default() };
        Ok(Config {
            link: LinkLayer::Csma(csma::Config::default()),
            icmpv6_errors: RealTime::default().icmpv6_errors,
            transport: Transport::Tcp(transport),
            ..Config::default()
        })
    }
    /// What the node serves.
    pub fn applications() -> Vec<Box<dyn Application>> {
        vec![Box::new(Document::new(PATH))]
    }
}
