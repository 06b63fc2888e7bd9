//! CoAP endpoint, sans-IO (RFC 7252).
