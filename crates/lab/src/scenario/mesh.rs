//! `[clock]`, `[energy]`, `[lowpan]`, `[ipv6]` and `[rpl]`: the layers under the transport.
//!
//! Defaults are those of Contiki-NG 5.0 unless an RFC or a paper is named.

use lowmesh_registry::Choice;
use lowmesh_rpl::ObjectiveFunction;
use lowmesh_units::Duration;

use super::section::section;
use super::value::{Any, Within, choice};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

section! {
    /// Clocks of the nodes.
    Clock {
        /// Maximum drift in parts per million; each node draws its own, positive or negative.
        drift_ppm: f64 = 20.0, Within(0.0, 1000.0);
        /// Maximum time after the start at which a node boots; the time is random. The root boots at the start.
        boot_spread: Duration = SECOND, Within(Duration::ZERO, HOUR);
    }
}

section! {
    /// Currents of the radio in milliamperes (CC2538 data sheet).
    Energy {
        /// Current while sending, in milliamperes.
        tx_ma: f64 = 24.0, Within(0.0, 1e6);
        /// Current while receiving or listening.
        rx_ma: f64 = 20.0, Within(0.0, 1e6);
        /// Current while the radio is off.
        sleep_ma: f64 = 0.0013, Within(0.0, 1e6);
    }
}

section! {
    /// 6LoWPAN adaptation.
    Lowpan {
        /// Datagrams that one node reassembles at a time (Contiki-NG: 2).
        reassembly_buffers: u16 = 4, Within(1, 256);
        /// Datagrams that the root reassembles at a time; if unset, as in other nodes (Lenders et al. 2021: 16 at the sink, 1 elsewhere).
        root_reassembly_buffers: Option<u16> = None, Within(1, 256);
        /// Total octets of the datagrams that one node reassembles at a time (ours: two packets of the minimum MTU).
        reassembly_octets: u32 = 2560, Within(80, 1_000_000);
        /// Datagrams that one node sends in fragments at a time (Lenders et al. 2021: 64, and 4 in its second study).
        fragmentation_buffers: u16 = 8, Within(1, 1024);
        /// Maximum octets of packets and frames that wait in one node (Lenders et al. 2021: 6 KiB, and 40 KiB in its second
        /// study).
        packet_buffer_octets: u32 = 6144, Within(1408, 1_000_000);
        /// Time after which an unfinished datagram is dropped (RFC 4944 s5.3: 60 s at most; RIOT's evaluation: 10 s).
        reassembly_timeout: Duration = Duration::from_secs(10), Within(MS * 100, Duration::from_secs(60));
    }
}

section! {
    /// IPv6 forwarding.
    Ipv6 {
        /// Hop limit of new packets (RFC 8200 s3; the value of RFC 1700: 64).
        hop_limit: u8 = 64, Within(1, 255);
    }
}

choice! {
    /// Where routes come from.
    Routes {
        /// RPL finds them.
        Rpl = "rpl",
        /// Routes follow the tree in `[topology]`; nodes send no routing messages.
        Static = "static",
    }
}

choice! {
    /// RPL's mode of operation (RFC 6550 s6.3.1).
    RplMode {
        /// Every router has routes to the nodes below it.
        Storing = "storing",
        /// Only the root has routes, and writes the path into each packet.
        NonStoring = "non-storing",
        /// As storing; routers also know which nodes below them are in which group.
        StoringMulticast = "storing-multicast",
    }
}

choice! {
    /// What RPL sends to measure a link.
    Probe {
        /// A unicast DIS; the neighbour answers with a unicast DIO, which contains its rank.
        Dis = "dis",
        /// A unicast DIO.
        Dio = "dio",
    }
}

section! {
    /// Routing.
    Rpl {
        /// Mode of operation.
        mode: RplMode = RplMode::Storing, Any;
        /// Objective function.
        objective: Choice<dyn ObjectiveFunction> = Choice::default(), Any;
        /// Shortest Trickle interval of DIOs, as a power of 2 in milliseconds: 12 is 4.096 s (RFC 6550 s17: 3).
        dio_interval_min: u8 = 12, Within(0, 24);
        /// Number of times that this interval doubles (RFC 6550 s17: DEFAULT_DIO_INTERVAL_DOUBLINGS 20; Contiki-NG: 8).
        dio_doublings: u8 = 8, Within(0, 20);
        /// Number of consistent DIOs after which a node suppresses its own; 0 suppresses none (RFC 6550 s17: 10).
        dio_redundancy: u8 = 10, Within(0, 255);
        /// Delay before a DAO, so that one DAO contains several changes.
        dao_delay: Duration = Duration::from_secs(4), Within(Duration::ZERO, HOUR);
        /// Whether a DAO requests an acknowledgement.
        dao_ack: bool = true, Any;
        /// Whether a DCO ends the former path of a node that moves, in storing modes (RFC 9009).
        dco: bool = true, Any;
        /// Lifetime of a route, in whole minutes.
        path_lifetime: Duration = Duration::from_secs(1800), Within(Duration::from_secs(60), Duration::from_secs(254 * 60));
        /// Time between two solicitations of a node without a parent.
        dis_period: Duration = Duration::from_secs(30), Within(SECOND, HOUR);
        /// Mean time between probes of a link without fresh measurements; zero never probes.
        probe_period: Duration = Duration::from_secs(90), Within(Duration::ZERO, HOUR);
        /// Message that probes a link: a DIS, whose answer contains the neighbour's rank, or a DIO (Contiki-NG: dio).
        probe: Probe = Probe::Dis, Any;
        /// Whether the RPL option in data packets has the type 0x23, as the root announces (RFC 9008 s4.1.3; Contiki-NG: 0x63).
        rpi_0x23: bool = true, Any;
        /// Whether RPL's headers in packets are compressed with 6LoRH (RFC 8138), as the root announces (RFC 9035).
        sixlorh: bool = false, Any;
        /// Nodes that run no RPL: leaves, each of which registers its address with a router (RFC 9010).
        leaves: Vec<u16> = Vec::new(), Any;
    }
}
