//! `[coap]`, `[cocoa]` and `[traffic]`: what the clients send to the root, and how they hold back.

use lowmesh_congestion::params::{COCOA_FACTOR_MAX, COCOA_K_MAX, COCOA_THRESHOLD_MAX};
use lowmesh_congestion::timer::cocoa::Overrides;
use lowmesh_units::Duration;

use super::section::section;
use super::value::{Any, NodeTime, NotEmpty, Within, choice};

const MS: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);

choice! {
    /// Congestion control of the CoAP endpoints; the names are those of the congestion crate's timers.
    Congestion {
        /// Random first timeout, doubled (RFC 7252 s4.8).
        Default = "default",
        /// CoCoA as in table 2 of Righetti et al. 2023.
        Cocoa = "cocoa",
        /// The same by another name.
        CocoaTable2 = "cocoa/table-2",
        /// CoCoA as in the text of that paper.
        CocoaPaperText = "cocoa/paper-text",
        /// CoCoA as in draft-ietf-core-cocoa-03.
        CocoaDraft03 = "cocoa/draft-03",
        /// CoCoA as in the ECOAP experiments.
        CocoaEcoap = "cocoa/ecoap",
        /// CoCoA tuned for 6TiSCH (Righetti et al. 2023).
        SixCocoa = "6cocoa",
        /// Fast and slow timeouts (draft-ietf-core-fasor-02).
        Fasor = "fasor",
        /// TCP's timer (RFC 6298).
        Rfc6298 = "rfc6298",
        /// Always the same timeout.
        Fixed = "fixed",
    }
}

section! {
    /// CoAP endpoints.
    Coap {
        /// Congestion control.
        congestion: Congestion = Congestion::Default, Any;
        /// Open exchanges to one peer at most (RFC 7252 s4.7: NSTART 1).
        nstart: u16 = 1, Within(1, 256);
        /// Requests that wait in the application at most (Righetti et al. 2023, table 1: 32).
        queue: u16 = 32, Within(0, 4096);
        /// The largest blocks that a body is sent in (RFC 7959 s2.2), octets: a power of two.
        block: u16 = 1024, Within(16, 1024);
        /// Whether requests and responses are protected with OSCORE (RFC 8613), with a context of the root for each node.
        oscore: bool = false, Any;
        /// Retransmissions of a confirmable message (RFC 7252 s4.8: MAX_RETRANSMIT 4).
        max_retransmit: u8 = 4, Within(0, 20);
        /// First timeout without a better estimate (RFC 7252 s4.8: ACK_TIMEOUT 2 s).
        ack_timeout: Duration = Duration::from_secs(2), Within(MS * 10, Duration::from_secs(60));
    }
}

/// The bounds of a gain or of a weight between old and new.
const SHARE: Within<f64> = Within(0.0, 1.0);
/// The bounds of a weight of RTTVAR.
const K: Within<f64> = Within(0.0, COCOA_K_MAX);
/// The bounds of a back-off factor.
const FACTOR: Within<f64> = Within(1.0, COCOA_FACTOR_MAX);
/// The bounds of a threshold between back-off factors.
const THRESHOLD: Within<Duration> = Within(Duration::ZERO, COCOA_THRESHOLD_MAX);

section! {
    /// Numbers that replace those of the CoCoA set that `coap.congestion` names; an absent one leaves the
    /// set's own.
    Cocoa {
        /// Gain of RTT.
        alpha: Option<f64> = None, SHARE;
        /// Gain of RTTVAR.
        beta: Option<f64> = None, SHARE;
        /// Weight of RTTVAR in the strong estimator's RTO.
        k_strong: Option<f64> = None, K;
        /// Weight of RTTVAR in the weak estimator's RTO.
        k_weak: Option<f64> = None, K;
        /// Weight of the strong estimator's RTO in the overall RTO.
        lambda_strong: Option<f64> = None, SHARE;
        /// Weight of the weak estimator's RTO in the overall RTO.
        lambda_weak: Option<f64> = None, SHARE;
        /// First timeouts below this back off by `vbf_below`.
        vbf_lower: Option<Duration> = None, THRESHOLD;
        /// First timeouts above this back off by `vbf_above`.
        vbf_upper: Option<Duration> = None, THRESHOLD;
        /// Back-off factor of short timeouts.
        vbf_below: Option<f64> = None, FACTOR;
        /// Back-off factor of usual timeouts.
        vbf_between: Option<f64> = None, FACTOR;
        /// Back-off factor of long timeouts.
        vbf_above: Option<f64> = None, FACTOR;
    }
}

impl Cocoa {
    /// Whether it replaces nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The numbers in the congestion crate's own type.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            alpha: self.alpha,
            beta: self.beta,
            k_strong: self.k_strong,
            k_weak: self.k_weak,
            lambda_strong: self.lambda_strong,
            lambda_weak: self.lambda_weak,
            vbf_lower: self.vbf_lower,
            vbf_upper: self.vbf_upper,
            vbf_below: self.vbf_below,
            vbf_between: self.vbf_between,
            vbf_above: self.vbf_above,
        }
    }
}

choice! {
    /// What carries the readings of the nodes.
    Application {
        /// CoAP requests, which the root answers.
        Coap = "coap",
        /// UDP datagrams, which nobody answers.
        Udp = "udp",
        /// CoAP requests of the root to each node.
        Poll = "poll",
        /// Notifications of each node, which the root observes (RFC 7641).
        Observe = "observe",
    }
}

choice! {
    /// The arrival process of a node's requests, datagrams or states.
    Arrivals {
        /// One a period.
        Periodic = "periodic",
        /// At random, with exponential gaps.
        Poisson = "poisson",
        /// Bursts of several events, one burst a period.
        Bursts = "bursts",
    }
}

choice! {
    /// Which border router takes the readings of a node.
    Collector {
        /// That of its own mesh.
        Own = "own",
        /// Node 0, over the backbone where there are several meshes.
        First = "first",
    }
}

section! {
    /// The traffic between the root and each other node. Each node starts at a random time in its first period.
    Traffic {
        /// What carries it.
        application: Application = Application::Coap, Any;
        /// Time between two requests of a node.
        period: Duration = Duration::from_secs(30), Within(MS * 10, DAY);
        /// Their arrival process. The period is the mean gap between events, or between bursts.
        arrivals: Arrivals = Arrivals::Periodic, Any;
        /// Requests of a burst, where `arrivals = "bursts"`.
        burst: u32 = 5, Within(1, 1000);
        /// Nodes with a period of their own.
        periods: Vec<NodeTime> = Vec::new(), Any;
        /// Nodes that are switched off permanently at a time of the run, by a defect or an empty battery.
        failures: Vec<NodeTime> = Vec::new(), Any;
        /// When the first requests are due.
        start: Duration = Duration::from_secs(360), Within(Duration::ZERO, DAY);
        /// Share of the period by which each gap varies, up and down.
        jitter: f64 = 0.1, Within(0.0, 1.0);
        /// Requests or datagrams of a node; without it, as many as the duration takes.
        packets: Option<u32> = None, Within(1, u32::MAX);
        /// Only nodes at least so many hops below the root send, where `routes = "static"` tells (Lenders et al.
        /// 2021: 2).
        hops_min: u16 = 1, Within(1, 255);
        /// Nodes that forward only and send nothing of their own.
        silent: Vec<u16> = Vec::new(), Any;
        /// Requests of a node from the oldest that is not over to the newest; a reading that finds no room among them
        /// is left out. Without it, every reading goes to the endpoint.
        window: Option<u16> = None, Within(1, 4096);
        /// Which border router takes them.
        collector: Collector = Collector::Own, Any;
        /// How long the root takes to answer a request.
        service: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(60));
        /// Octets of payload in a request or datagram.
        payload_bytes: u16 = 20, Within(0, 1232);
        /// Whether requests are confirmable (RFC 7252 s2.1).
        confirmable: bool = true, Any;
        /// Their Uri-Path, segments separated by slashes.
        path: String = "sensor".to_owned(), NotEmpty;
    }
}
