//! The verbs of CoAP through the built command: what is printed where, and the code they end with.

mod discovery;
mod observations;
mod oscore;
mod requests;
mod server;
