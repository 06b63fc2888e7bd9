//! Clients and servers on loopback, over every transport and over paths that lose.

mod client;
mod coap_line;
mod coap_udp;
mod faulty;
mod lossy;
mod product;
mod refusals;
