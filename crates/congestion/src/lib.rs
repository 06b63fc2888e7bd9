//! Retransmission timers and congestion windows.
