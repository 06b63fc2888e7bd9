//! IPv6 headers (RFC 8200).
