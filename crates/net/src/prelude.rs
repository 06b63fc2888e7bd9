//! The names that a program with a CoAP client or server needs: `use lowmesh_net::prelude::*`.
//!
//! ```no_run
//! use lowmesh_net::prelude::*;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = Server::new(Limits::default())?;
//! let hello = Handler::new(|_| ResponseTemplate::new(Code::CONTENT).with_payload(b"hello".to_vec()));
//! server.insert("/hello", Resource::new(Methods::GET, hello));
//! server.listen_udp("[::1]:5683".parse()?)?;
//! # Ok(()) }
//! ```

pub use lowmesh_coap::ResponseTemplate;
pub use lowmesh_coap::resource::{Methods, Resource};
pub use lowmesh_wire::coap::{Code, ContentFormat};

pub use crate::client::Client;
pub use crate::server::{Handler, Limits, Server};
