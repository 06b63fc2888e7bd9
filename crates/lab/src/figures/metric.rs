//! The metrics that line figures draw.

/// A metric that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in the results.
    pub name: &'static str,
    /// The title of the figure.
    pub title: &'static str,
    /// The label of the y axis.
    pub label: &'static str,
    /// Whether the axis starts at zero.
    pub from_zero: bool,
    /// The factor from the metric's unit to the axis' unit.
    pub factor: f64,
    /// Whether it is drawn only for runs with datagrams.
    pub of_datagrams: bool,
}

impl Metric {
    /// `value`, limited to 1 if the metric is a ratio.
    pub(super) fn at_most(self, value: f64) -> f64 {
        match self.name {
            "tdr" | "pdr_up" | "duty_cycle" | "datagram_pdr" => value.min(1.0),
            _ => value,
        }
    }
}

/// The metrics that are drawn.
pub const METRICS: [Metric; 11] = [
    Metric {
        name: "tdr",
        title: "Transaction delivery ratio",
        label: "delivery ratio",
        from_zero: false,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "delay_p95_ms",
        title: "Delay, 95th percentile",
        label: "delay p95 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: false,
    },
    Metric {
        name: "delay_p50_ms",
        title: "Delay, median",
        label: "delay p50 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: false,
    },
    Metric {
        name: "retransmissions_per_transaction",
        title: "Retransmissions a transaction",
        label: "retransmissions",
        from_zero: true,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "pdr_up",
        title: "Packet delivery ratio of requests",
        label: "delivery ratio",
        from_zero: false,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "duty_cycle",
        title: "Radio duty cycle",
        label: "duty cycle (%)",
        from_zero: true,
        factor: 100.0,
        of_datagrams: false,
    },
    Metric {
        name: "datagram_pdr",
        title: "Delivery ratio of datagrams",
        label: "delivery ratio",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
    Metric {
        name: "latency_p50_ms",
        title: "Latency of datagrams, median",
        label: "latency p50 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: true,
    },
    Metric {
        name: "latency_per_hop_ms",
        title: "Latency of datagrams for each hop",
        label: "latency a hop (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: true,
    },
    Metric {
        name: "packet_buffer_peak_octets",
        title: "Packet buffer, most that a node used",
        label: "octets",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
    Metric {
        name: "link_retransmissions",
        title: "Retransmissions of the link layer",
        label: "copies a node",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
];
