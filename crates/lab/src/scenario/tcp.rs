//! `[tcp]`: the connections that carry CoAP where `coap.transport = "tcp"`.

use lowmesh_coap::params::EXCHANGE_LIFETIME;
use lowmesh_congestion::Window;
use lowmesh_congestion::window::newreno;
use lowmesh_registry::Row;
use lowmesh_stack::{StreamLimits, config, params};
use lowmesh_units::Duration;

use super::Transport;
use super::section::{Cursor, Section as _, section};
use super::value::{Any, Within, choice};

const SECOND: Duration = Duration::from_secs(1);

choice! {
    /// Behaviour in which implementations differ.
    Profile {
        /// A host with the defaults of Linux 6.
        Linux = "linux",
        /// The ends of Pesola 2020: Linux without SACK, over an MTU of 296 octets.
        Pesola = "pesola",
        /// A node of a low-power network: buffers of four segments.
        Lln = "lln",
    }
}

choice! {
    /// When a client sends the first request on a new connection.
    Csm {
        /// After the CSM of the peer has arrived, as in libcoap.
        Wait = "wait",
        /// At once, without waiting for the CSM (RFC 8323 s5.3).
        Early = "early",
    }
}

section! {
    /// TCP under CoAP (RFC 8323), with `coap.transport = "tcp"`.
    Tcp {
        /// Behaviour in which implementations differ.
        profile: Profile = Profile::Linux, Any;
        /// Congestion window.
        window: &'static Row<dyn Window> = &newreno::ROW, Any;
        /// Whether nodes offer selective acknowledgements (RFC 2018); by default as in the profile.
        sack: Option<bool> = None, Any;
        /// When a client sends the first request on a new connection.
        csm: Csm = Csm::Wait, Any;
        /// Maximum number of connections of a node.
        connections: u16 = params::STREAMS_MAX as u16, Within(1, 16_384);
        /// Maximum number of connections between a node and one address.
        connections_per_address: u16 = params::STREAMS_PER_ADDRESS as u16, Within(1, 16_384);
        /// Time to wait for a response, and for the CSM of the peer (RFC 7252 s4.8.2: 247 s).
        response_timeout: Duration = EXCHANGE_LIFETIME, Within(SECOND, Duration::from_secs(86_400));
    }
}

impl Tcp {
    /// Reads the section, whose keys are refused where CoAP has another transport.
    pub(super) fn read_for(transport: Transport, cursor: &mut Cursor<'_, '_>) -> Self {
        cursor.within("tcp", |cursor| {
            let tcp = Self::read(cursor);
            match transport {
                Transport::Tcp => tcp,
                Transport::Udp => {
                    cursor.refuse_all("coap.transport", "udp", "tcp");
                    Self::default()
                }
            }
        })
    }
    /// The connections in the stack's own type.
    pub fn settings(&self) -> config::Tcp {
        let profile = match self.profile {
            Profile::Linux => lowmesh_tcp::Profile::LINUX,
            Profile::Pesola => lowmesh_tcp::Profile::PESOLA,
            Profile::Lln => lowmesh_tcp::Profile::LLN,
        };
        let sack = self.sack.unwrap_or(profile.sack);
        config::Tcp {
            profile: lowmesh_tcp::Profile { window: self.window, sack, ..profile },
            limits: StreamLimits {
                connections_max: self.connections.into(),
                connections_per_address: self.connections_per_address.into(),
                ..StreamLimits::default()
            },
            csm: match self.csm {
                Csm::Wait => lowmesh_stack::Csm::Wait,
                Csm::Early => lowmesh_stack::Csm::Early,
            },
            response_timeout: self.response_timeout,
        }
    }
}
