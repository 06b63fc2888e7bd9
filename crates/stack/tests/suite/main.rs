//! The public interface of a node.

mod coap_port;
