//! IPv6 for constrained nodes: addresses, routes, forwarding, UDP.
