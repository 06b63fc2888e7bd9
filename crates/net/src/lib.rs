//! The protocol crates on real sockets. Here, and nowhere below, a clock is read, a thread is started and a
//! seed is made.
//!
//! | module | drives |
//! |---|---|
//! | [`driver`] | a CoAP endpoint over UDP, or over DTLS |
//! | [`client`] | requests to any server, by their URIs |
//! | [`server`] | resources as functions, over all transports at once |
//! | [`udp`], [`multicast`] | the socket under it, and its groups |
//! | [`dtls`] | sessions with pre-shared keys |
//! | [`stream_transport`] | one connection for CoAP: TCP, TLS, WebSockets |
//! | [`stream`], [`tls`], [`websocket`] | what a connection is made of |
//! | [`origins`] | the web pages that may open WebSockets |
//! | [`oscore`] | a security context and its file |
//! | [`proxy`] | a proxy between all of these |
//! | [`resolve`] | from the host of a URI to addresses |
//! | [`tap`] | messages as they come and go, to look at |
//! | [`metrics`] | what timers, windows and counters show to monitoring |
//! | [`clock`] | the time of all drivers |
//! | [`prelude`] | the names that most programs use |

mod batch;
pub mod client;
pub mod clock;
pub mod driver;
pub mod dtls;
mod icmp;
mod meter;
pub mod metrics;
pub mod multicast;
pub mod origins;
pub mod oscore;
pub mod params;
pub mod peer;
pub mod prelude;
pub mod proxy;
mod registered;
pub mod resolve;
pub mod server;
mod share;
pub mod source;
pub mod stream;
pub mod stream_transport;
pub mod tap;
pub mod tls;
mod transport;
pub mod udp;
pub mod websocket;
