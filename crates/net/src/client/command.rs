//! What a client tells the task that has a transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::exchange::Repetition;
use lowmesh_coap::{CongestionControl, RequestTemplate};
use lowmesh_machine::Handle;
use tokio::sync::{mpsc, oneshot};

use super::error::Error;
use super::mailbox::Mailbox;
use crate::metrics::Report;

/// What is wanted of a peer.
#[derive(Debug)]
pub(super) enum Operation {
    Request(RequestTemplate),
    /// All answers that come in this time.
    Group(RequestTemplate, Duration),
    Ping,
}

/// What the task is told.
#[derive(Debug)]
pub(super) enum Command {
    Begin {
        address: SocketAddr,
        operation: Operation,
        handle: Handle,
        mailbox: Arc<Mailbox>,
    },
    Deregister(Handle),
    /// A request to a group is sent once more.
    Repeat(Handle, Repetition, Duration),
    Cancel(Handle),
    /// This destination has a congestion control of its own, or with `None` that of the endpoint again.
    Choose {
        address: SocketAddr,
        chosen: Option<CongestionControl>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Asks for the reports of the transport.
    Inspect(mpsc::UnboundedSender<Report>),
    /// Nothing came in this time.
    GiveUp(Handle, Duration),
}
