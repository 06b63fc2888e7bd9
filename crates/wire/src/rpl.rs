//! RPL messages (RFC 6550).
