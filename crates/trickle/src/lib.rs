//! The Trickle timer (RFC 6206).
