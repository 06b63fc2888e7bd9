//! 6LoWPAN: header compression (RFC 6282) and fragments (RFC 4944).
