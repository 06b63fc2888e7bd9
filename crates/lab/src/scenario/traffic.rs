//! `[coap]` and `[traffic]`: what the clients send to the root, and how they hold back.

use lowmesh_coap::params::NON_TIMEOUT;
use lowmesh_congestion::Timer;
use lowmesh_registry::Choice;
use lowmesh_units::Duration;
use lowmesh_wire::ipv6::{Address, Scope};

use super::section::section;
use super::value::{Any, Group, NodeTime, NotEmpty, Within, choice};

const MS: Duration = Duration::from_millis(1);
/// ff05::fd.
const ALL_COAP_NODES: Address = Address::ALL_COAP_NODES.in_scope(Scope::SITE_LOCAL);
const DAY: Duration = Duration::from_secs(86_400);

choice! {
    /// What carries CoAP.
    Transport {
        /// Datagrams (RFC 7252).
        Udp = "udp",
        /// TCP connections (RFC 8323).
        Tcp = "tcp",
    }
}

section! {
    /// CoAP endpoints.
    Coap {
        /// What carries CoAP; TCP has a section of its own.
        transport: Transport = Transport::Udp, Any;
        /// Congestion control.
        congestion: Choice<dyn Timer> = Choice::default(), Any;
        /// Maximum number of open exchanges to one peer (RFC 7252 s4.7: NSTART 1).
        nstart: u16 = 1, Within(1, 256);
        /// Maximum number of requests that wait in the application (Righetti et al. 2023, table 1: 32); over TCP they wait
        /// for the connection.
        queue: u16 = 32, Within(0, 4096);
        /// Largest block of a body (RFC 7959 s2.2), in octets: a power of two.
        block: u16 = 1024, Within(16, 1024);
        /// Whether requests and responses are protected with OSCORE (RFC 8613), with a context of the root for each node.
        oscore: bool = false, Any;
        /// Retransmissions of a confirmable message (RFC 7252 s4.8: MAX_RETRANSMIT 4).
        max_retransmit: u8 = 4, Within(0, 20);
        /// First timeout without a better estimate (RFC 7252 s4.8: ACK_TIMEOUT 2 s).
        ack_timeout: Duration = Duration::from_secs(2), Within(MS * 10, Duration::from_secs(60));
        /// Wait for the response to a non-confirmable request (RIOT's gcoap: 5 s), times 1 to 1.5; then the next leaves.
        non_timeout: Duration = NON_TIMEOUT, Within(MS * 10, Duration::from_secs(3600));
    }
}

choice! {
    /// What carries the readings of the nodes.
    Application {
        /// CoAP requests, which the root answers.
        Coap = "coap",
        /// UDP datagrams without answers.
        Udp = "udp",
        /// CoAP requests of the root to each node.
        Poll = "poll",
        /// Notifications of each node, which the root observes (RFC 7641).
        Observe = "observe",
        /// GET requests of the nodes to node 0, which answers with the payload; border routers are clients, too.
        Fetch = "fetch",
        /// Non-confirmable CoAP requests of one node to a group, without answers.
        Group = "group",
        /// Queries of entities, which an Entity Manager answers: `[groups]` and `[[entity]]`.
        Entities = "entities",
    }
}

choice! {
    /// The arrival process of a node's requests, datagrams or states.
    Arrivals {
        /// One event in each period.
        Periodic = "periodic",
        /// Random events with exponential gaps.
        Poisson = "poisson",
        /// Bursts of several events, one burst in each period.
        Bursts = "bursts",
    }
}

choice! {
    /// Which node receives the readings of a node.
    Collector {
        /// That of its own mesh.
        Own = "own",
        /// Node 0, over the backbone if there are several meshes.
        First = "first",
        /// The next node of the mesh, and the first one for the last: traffic from node to node. Border routers take none.
        Next = "next",
    }
}

section! {
    /// The traffic between the root and each other node. Each node starts at a random time in its first period.
    Traffic {
        /// What carries the readings of the nodes.
        application: Application = Application::Coap, Any;
        /// Time between two requests of a node.
        period: Duration = Duration::from_secs(30), Within(MS * 10, DAY);
        /// Arrival process; the period is the mean gap between events or between bursts.
        arrivals: Arrivals = Arrivals::Periodic, Any;
        /// Requests in a burst, with `arrivals = "bursts"`.
        burst: u32 = 5, Within(1, 1000);
        /// Nodes with their own period.
        periods: Vec<NodeTime> = Vec::new(), Any;
        /// Nodes that are switched off permanently at a time of the run, by a defect or an empty battery.
        failures: Vec<NodeTime> = Vec::new(), Any;
        /// When the first requests are due.
        start: Duration = Duration::from_secs(360), Within(Duration::ZERO, DAY);
        /// Share of the period by which each gap varies, up and down.
        jitter: f64 = 0.1, Within(0.0, 1.0);
        /// Requests or datagrams of a node; if unset, as many as fit the duration.
        packets: Option<u32> = None, Within(1, u32::MAX);
        /// Only nodes at least this many hops from the root send; needs `routes = "static"` (Lenders et al. 2021: 2).
        hops_min: u16 = 1, Within(1, 255);
        /// Nodes that only forward packets and send no requests.
        silent: Vec<u16> = Vec::new(), Any;
        /// Number of clients with `application = "fetch"`: the first nodes that are not silent; if unset, all nodes.
        clients: Option<u16> = None, Within(1, 4096);
        /// Maximum span from the oldest open request of a node to its newest, in requests; the node skips readings beyond
        /// it. If unset, the endpoint gets every reading.
        window: Option<u16> = None, Within(1, 4096);
        /// Which node receives the readings.
        collector: Collector = Collector::Own, Any;
        /// The node that sends, with `application = "group"`.
        sender: u16 = 0, Any;
        /// The group that the sender addresses (RFC 7252 s12.8: ff05::fd for all CoAP nodes of a site).
        group: Group = Group(ALL_COAP_NODES), Any;
        /// The members of the group; if unset, all nodes but the sender.
        members: Vec<u16> = Vec::new(), Any;
        /// Time that the root, or a member of an entity, takes to answer a request.
        service: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(60));
        /// Octets of payload in a request or datagram, or in a response if the root or a client reads.
        payload_bytes: u16 = 20, Within(0, 1232);
        /// Whether requests are confirmable (RFC 7252 s2.1).
        confirmable: bool = true, Any;
        /// Uri-Path of the requests, with slashes between segments.
        path: String = "sensor".to_owned(), NotEmpty;
    }
}
