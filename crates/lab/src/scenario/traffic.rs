//! `[coap]` and `[traffic]`: what the clients send to the root, and how they hold back.

use lowmesh_units::Duration;

use super::section::section;
use super::value::{Any, NotEmpty, Within, choice};

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
        /// Retransmissions of a confirmable message (RFC 7252 s4.8: MAX_RETRANSMIT 4).
        max_retransmit: u8 = 4, Within(0, 20);
        /// First timeout without a better estimate (RFC 7252 s4.8: ACK_TIMEOUT 2 s).
        ack_timeout: Duration = Duration::from_secs(2), Within(MS * 10, Duration::from_secs(60));
    }
}

section! {
    /// What each node but the root POSTs to the root; each starts at a random moment of its first period.
    Traffic {
        /// Time between two requests of a node.
        period: Duration = Duration::from_secs(30), Within(MS * 10, DAY);
        /// When the first requests are due.
        start: Duration = Duration::from_secs(360), Within(Duration::ZERO, DAY);
        /// Share of the period by which each gap varies, up and down.
        jitter: f64 = 0.1, Within(0.0, 1.0);
        /// Octets of payload in a request.
        payload_bytes: u16 = 20, Within(0, 1024);
        /// Whether requests are confirmable (RFC 7252 s2.1).
        confirmable: bool = true, Any;
        /// Their Uri-Path, segments parted by slashes.
        path: String = "sensor".to_owned(), NotEmpty;
    }
}
