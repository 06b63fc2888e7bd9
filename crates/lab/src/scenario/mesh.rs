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
        /// Largest drift; each node draws its own from minus to plus this, in parts per million.
        drift_ppm: f64 = 20.0, Within(0.0, 1000.0);
        /// Each node boots at a moment drawn from the start to this; the root at the start.
        boot_spread: Duration = SECOND, Within(Duration::ZERO, HOUR);
    }
}

section! {
    /// Currents of the radio in milliamperes (CC2538 data sheet).
    Energy {
        /// While sending.
        tx_ma: f64 = 24.0, Within(0.0, 1e6);
        /// While receiving or listening.
        rx_ma: f64 = 20.0, Within(0.0, 1e6);
        /// While the radio is off.
        sleep_ma: f64 = 0.0013, Within(0.0, 1e6);
    }
}

section! {
    /// 6LoWPAN adaptation.
    Lowpan {
        /// Datagrams that one node reassembles at a time (Contiki-NG: 2).
        reassembly_buffers: u16 = 4, Within(1, 256);
        /// The same at the root, if it is other there (Lenders et al. 2021: 16 at the sink, 1 elsewhere).
        root_reassembly_buffers: Option<u16> = None, Within(1, 256);
        /// Octets of all datagrams together that one node reassembles (ours: two packets of the least MTU).
        reassembly_octets: u32 = 2560, Within(80, 1_000_000);
        /// Datagrams that one node sends in fragments at a time (Lenders et al. 2021: 64, and 4 in its second study).
        fragmentation_buffers: u16 = 8, Within(1, 1024);
        /// Octets of packets and frames that wait in one node at most (Lenders et al. 2021: 6 KiB, and 40 KiB in its second
        /// study).
        packet_buffer_octets: u32 = 6144, Within(1408, 1_000_000);
        /// Life of an unfinished datagram (RFC 4944 s5.3: 60 s at most; RIOT's evaluation: 10 s).
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
        /// They are those of the tree in `[topology]`, and there is no routing message.
        Static = "static",
    }
}

choice! {
    /// RPL's mode of operation (RFC 6550 s6.3.1).
    RplMode {
        /// Every router knows the way to the nodes below it.
        Storing = "storing",
        /// Only the root knows; it writes the way into the packet.
        NonStoring = "non-storing",
        /// As storing, and routers know which nodes below them are in which group.
        StoringMulticast = "storing-multicast",
    }
}

choice! {
    /// What RPL sends to measure a link.
    Probe {
        /// A unicast DIS, which is answered by a unicast DIO: the neighbour's rank is fresh too.
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
        /// How often that interval doubles (RFC 6550 s17: DEFAULT_DIO_INTERVAL_DOUBLINGS 20; Contiki-NG: 8).
        dio_doublings: u8 = 8, Within(0, 20);
        /// Number of consistent DIOs after which a node suppresses its own; 0 suppresses none (RFC 6550 s17: 10).
        dio_redundancy: u8 = 10, Within(0, 255);
        /// Delay before a DAO, so that several changes go in one.
        dao_delay: Duration = Duration::from_secs(4), Within(Duration::ZERO, HOUR);
        /// Whether a DAO requests an acknowledgement.
        dao_ack: bool = true, Any;
        /// Life of a route; whole minutes count.
        path_lifetime: Duration = Duration::from_secs(1800), Within(Duration::from_secs(60), Duration::from_secs(254 * 60));
        /// Time between two solicitations of a node without a parent.
        dis_period: Duration = Duration::from_secs(30), Within(SECOND, HOUR);
        /// Mean time between probes of a link without fresh measurements; zero never probes.
        probe_period: Duration = Duration::from_secs(90), Within(Duration::ZERO, HOUR);
        /// What a probe is: a DIS, whose answer tells the neighbour's rank, or a DIO (Contiki-NG: dio).
        probe: Probe = Probe::Dis, Any;
    }
}
