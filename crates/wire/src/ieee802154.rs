//! IEEE 802.15.4 MAC frames.
