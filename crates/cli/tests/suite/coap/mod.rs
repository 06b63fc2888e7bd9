//! The verbs of CoAP through the built command: what is printed where, and the code they end with.

mod discovery;
mod greeting;
mod observations;
mod oscore;
#[cfg(unix)]
mod pipes;
mod requests;
mod server;
