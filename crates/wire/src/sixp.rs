//! 6P messages (RFC 8480).
