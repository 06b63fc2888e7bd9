//! CoAP messages, options and stream framing (RFC 7252, RFC 8323).
