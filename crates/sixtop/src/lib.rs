//! 6top: the 6P protocol (RFC 8480) and scheduling functions.
