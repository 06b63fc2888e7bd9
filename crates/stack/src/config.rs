//! The settings of a node.

use alloc::boxed::Box;
use alloc::string::String;

use lowmesh_coap::{ConnectionLimits, Endpoint, Host, HostLimits};
use lowmesh_ipv6::{Addresses, reassemble};
use lowmesh_lowpan::{FragmentMode, StackProfile};
use lowmesh_multicast::Engine;
use lowmesh_oscore::transport::{
    Protected, Protection, VolatileContexts, extensions, over_connections,
};
use lowmesh_registry::{Choice, ParameterError};
use lowmesh_sixtop::SchedulingFunction;
use lowmesh_sixtop::functions::{Children, msf};
use lowmesh_units::{Addressing, Duration, NodeId, Purpose, Rng};
use lowmesh_wire::lowpan::Contexts;

use crate::coap_host::{CoapHost, Csm};
use crate::peer::Peer;
use crate::security::Oscore;
use crate::streams::StreamLimits;
use crate::tree::{Tree, TreeError};

/// The settings of all layers. Addresses and the role come with each node.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which EUI-64s the nodes of a planned network have.
    pub addressing: Addressing,
    /// Which MAC gives the node its neighbours.
    pub link: LinkLayer,
    /// TSCH, where that is the MAC.
    pub mac: lowmesh_mac::config::Config,
    /// How long a node stays in a network of TSCH without a DODAG.
    pub orphan_max: Duration,
    /// Who decides about the cells of TSCH.
    pub scheduling: Choice<dyn SchedulingFunction>,
    /// Settings of 6LoWPAN.
    pub lowpan: lowmesh_lowpan::Config,
    /// Datagrams that the root reassembles at a time, if other than `lowpan` says: it is the end of many paths.
    pub root_reassembly_buffers: Option<usize>,
    /// The first 64 bits of every global address, which is also 6LoWPAN's context 0.
    pub prefix: [u8; 8],
    /// Hop limit of new packets.
    pub hop_limit: u8,
    /// ICMPv6 errors that a node sends a second at most (RFC 4443 s2.4 (f)); 0 sends none, as simulated nodes do, whose
    /// drops are counted instead.
    pub icmpv6_errors: u32,
    /// Whether packets for other prefixes leave the mesh at the root ([`Output::Uplink`](crate::event::Output::Uplink));
    /// if not, there is no route for them.
    pub uplink: bool,
    /// Where routes come from.
    pub routes: Routes,
    /// Whether the node is a leaf that runs no RPL (RFC 9010), where other nodes do.
    pub is_leaf: bool,
    /// RPL, where routes come from it; the addresses in it are replaced by each node's own.
    pub rpl: lowmesh_rpl::Config,
    /// The engine that forwards packets to groups.
    pub multicast: Choice<dyn Engine>,
    /// Settings of the CoAP endpoint.
    pub coap: lowmesh_coap::Config,
    /// The CoAP host above it: blocks and observers.
    pub host: HostLimits,
    /// What carries CoAP.
    pub transport: Transport,
    /// OSCORE between each node and the root of a planned network; every request is protected then.
    pub oscore: Option<Oscore>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            addressing: Addressing::default(),
            link: LinkLayer::Tsch,
            mac: lowmesh_mac::config::Config::default(),
            orphan_max: crate::params::ORPHAN_MAX,
            scheduling: Choice::from(&msf::BACKLOG),
            lowpan: lowmesh_lowpan::Config::default(),
            root_reassembly_buffers: None,
            prefix: lowmesh_ipv6::params::PREFIX,
            hop_limit: lowmesh_ipv6::params::HOP_LIMIT,
            icmpv6_errors: 0,
            uplink: false,
            routes: Routes::Rpl,
            is_leaf: false,
            rpl: lowmesh_rpl::Config::router([0; 16]),
            multicast: Choice::default(),
            // Applications of nodes pace their own requests to groups, as those of publications do.
            coap: lowmesh_coap::Config { group_probing_rate: None, ..Default::default() },
            // The nodes of a mesh trust the addresses of each other.
            host: HostLimits { amplification_max: None, ..HostLimits::default() },
            transport: Transport::Udp,
            oscore: None,
        }
    }
}

/// The settings of its layers.
impl Config {
    /// The CoAP host of a node.
    pub(crate) fn coap_host(
        &self,
        protection: Option<Protection<Peer, VolatileContexts>>,
        stream: &impl Fn(Purpose) -> Rng,
    ) -> Result<CoapHost, ConfigError> {
        if let Transport::Tcp(tcp) = &self.transport {
            let (limits, mut rng) = (self.host.clone(), stream(Purpose::Host));
            let host = over_connections(tcp.connections(), limits, protection, rng.fork());
            return Ok(CoapHost::over_connections(host, tcp.csm, self.coap.queue_max));
        }
        let mut settings = self.coap.clone();
        settings.extensions.extend(extensions(protection.is_some()));
        settings.amplification_max = self.host.amplification_max;
        let endpoint = Endpoint::new(settings, stream(Purpose::Coap))?;
        let mut rng = stream(Purpose::Host);
        let protected = Protected::new(endpoint, protection, &self.host, rng.fork());
        Ok(CoapHost::Datagrams(Box::new(Host::new(protected, self.host.clone(), rng))))
    }

    /// Whether its nodes know which neighbours route through them.
    pub(crate) const fn children(&self) -> Children {
        match self.rpl.mode {
            lowmesh_rpl::Mode::NonStoring => Children::Unknown,
            _ => Children::Known,
        }
    }

    /// RPL's settings with the addresses of a node and its role in them.
    pub(crate) fn rpl_of(
        &self,
        addresses: &Addresses,
        is_root: bool,
    ) -> Result<lowmesh_rpl::Config, ConfigError> {
        let mut rpl = self.rpl.clone();
        rpl.link_local = addresses.link_local().0;
        rpl.role = if is_root {
            lowmesh_rpl::Role::Root { dodag_id: addresses.global().0 }
        } else {
            lowmesh_rpl::Role::Router
        };
        rpl.check()?;
        rpl.objective.check()?;
        Ok(rpl)
    }

    /// IPv6's settings at one node, above a 6LoWPAN with these.
    pub(crate) fn ipv6_of(
        &self,
        (node, losses): (NodeId, u16),
        is_root: bool,
        lowpan: &lowmesh_lowpan::Config,
        contexts: Contexts,
    ) -> lowmesh_ipv6::Config {
        let profile = match lowpan.profile {
            StackProfile::Native => reassemble::StackProfile::Native,
            StackProfile::RiotGnrc => reassemble::StackProfile::RiotGnrc,
        };
        let (packets, timeout) = (lowpan.reassembly_buffers, lowpan.reassembly_timeout);
        lowmesh_ipv6::Config {
            node,
            losses,
            hop_limit: self.hop_limit,
            frame_payload: (lowpan.mode == FragmentMode::EndToEnd).then_some(lowpan.frame_payload),
            reassembly: reassemble::Config { packets, timeout, profile, ..Default::default() },
            errors: self.icmpv6_errors,
            uplink: is_root && self.uplink,
            contexts,
        }
    }
}

/// A MAC.
#[derive(Clone, Debug)]
pub enum LinkLayer {
    /// Timeslots and channel hopping.
    Tsch,
    /// Carrier sense.
    Csma(lowmesh_mac::csma::Config),
}

/// What carries CoAP.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// Datagrams (RFC 7252).
    Udp,
    /// Connections (RFC 8323). Groups are not reached.
    Tcp(Tcp),
}

/// CoAP over TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// How its connections behave.
    pub profile: lowmesh_tcp::Profile,
    /// Bounds of its connections.
    pub limits: StreamLimits,
    /// When the first request leaves on a new connection.
    pub csm: Csm,
    /// How long a response is waited for, and the peer's CSM.
    pub response_timeout: Duration,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            profile: lowmesh_tcp::Profile::LINUX,
            limits: StreamLimits::default(),
            csm: Csm::default(),
            response_timeout: lowmesh_coap::params::EXCHANGE_LIFETIME,
        }
    }
}

impl Tcp {
    /// The bounds of CoAP's connections: TCP accepts no more than its own bounds allow.
    fn connections(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections_max: self.limits.connections_max,
            connections_per_source: self.limits.connections_per_address,
            csm_timeout: self.response_timeout,
            response_timeout: self.response_timeout,
            ..ConnectionLimits::default()
        }
    }
}

/// Where routes come from.
#[derive(Clone, Debug)]
pub enum Routes {
    /// RPL finds them.
    Rpl,
    /// They are given.
    Static(Tree),
}

/// A setting that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Of RPL.
    #[error("rpl: {0}")]
    Rpl(#[from] lowmesh_rpl::ConfigError),
    /// Of a parameter of the scheduling function or the objective function.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Of static routes.
    #[error("routes: {0}")]
    Tree(#[from] TreeError),
    /// A leaf registers with routers of RPL.
    #[error("a leaf is no root, and needs routes of RPL")]
    Leaf,
    /// Of the MAC.
    #[error("mac: {0}")]
    Csma(#[from] lowmesh_mac::csma::ConfigError),
    /// Of CoAP.
    #[error("coap: {0}")]
    Coap(#[from] lowmesh_coap::ConfigError),
    /// Of TCP.
    #[error("tcp: {0}")]
    Tcp(#[from] lowmesh_tcp::ConfigError),
    /// Two applications of a node claim one path.
    #[error("two applications of a node claim the path `{0}`: give one of them another path")]
    ClaimedPath(String),
    /// A port is taken.
    #[error(
        "an application claims UDP port {0}, which another application or the node itself uses: give it another port"
    )]
    ClaimedPort(u16),
    /// A node has more applications than it takes.
    #[error(
        "a node can have at most {} applications: remove some",
        crate::params::APPLICATIONS_MAX
    )]
    TooManyApplications,
}
