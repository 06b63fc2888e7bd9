//! The Entity Manager on real sockets: [`entities`] has its resources on a server, its requests through a client, and its
//! state in a file.

pub mod entities;
pub mod params;
