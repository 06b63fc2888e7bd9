//! The state of a manager as metrics for Prometheus.

use std::fmt::Write as _;

use lowmesh_group::Manager;
use lowmesh_units::Instant;
use tokio::sync::{mpsc, oneshot};

use super::Event;
use crate::params::STATUS_NODES_MAX;

/// Shows the state of a manager that is served.
#[derive(Clone, Debug)]
pub struct Status(pub(super) mpsc::WeakSender<Event>);

impl Status {
    /// The metrics as text; empty once the manager has ended.
    pub async fn text(&self) -> String {
        let (reply, text) = oneshot::channel();
        let Some(sender) = self.0.upgrade() else { return String::new() };
        let sent = sender.send(Event::Inspect { reply }).await;
        drop(sender);
        match sent {
            Ok(()) => text.await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }
}

pub(super) fn text(manager: &Manager, now: Instant) -> String {
    let (clients, members) = manager.open_requests();
    let (nodes, down) = manager.count_nodes();
    let failed = usize::from(manager.store_fault().is_some());
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: usize| {
        writeln!(text, "# HELP lowmesh_{name} {help}").expect("a String takes everything");
        writeln!(text, "# TYPE lowmesh_{name} gauge\nlowmesh_{name} {value}")
            .expect("a String takes everything");
    };
    gauge("entities", "Entities that answer queries", manager.names().count());
    gauge("entity_requests_open", "Requests of clients without a response", clients);
    gauge("member_requests_open", "Requests to members that wait or are under way", members);
    gauge("member_nodes", "Nodes of members that were asked", nodes);
    gauge("member_nodes_down", "Nodes of members whose queries fail at once", down);
    gauge("entities_store_failed", "1 while changes cannot be stored", failed);
    let name = "lowmesh_member_silent_seconds";
    writeln!(text, "# HELP {name} How long a node of members has not answered")
        .expect("a String takes everything");
    writeln!(text, "# TYPE {name} gauge").expect("a String takes everything");
    for (node, standing) in manager.failing().take(STATUS_NODES_MAX) {
        let Some(since) = standing.failing else { continue };
        let seconds = now.since(since).as_secs_f64();
        writeln!(text, "{name}{{node=\"{node}\"}} {seconds:.0}")
            .expect("a String takes everything");
    }
    text
}
