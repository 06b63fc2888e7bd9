//! RPL: storing and non-storing DODAGs (RFC 6550).
