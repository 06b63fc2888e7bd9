//! Takes the connections of one port, each from its handshakes to its end.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::budget::Budget;
use super::limits::Limits;
use super::places::{Place, Places};
use super::state::ServerState;
use super::transport_task::TransportTask;
use crate::clock::fresh_rng;
use crate::oscore::{Protection, over_connections};
use crate::params::ACCEPT_PAUSE;
use crate::stream_transport::{Incoming, Listener};
use crate::transport::{Connected, Patience};

/// Takes the connections of one port.
pub(super) struct Reception {
    pub(super) server: Arc<ServerState>,
    pub(super) limits: Arc<Limits>,
    pub(super) places: Places,
    pub(super) budget: Budget,
    pub(super) protection: Option<Protection>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Reception {
    pub(super) async fn run(self, listener: Listener) -> io::Result<()> {
        let mut open = JoinSet::new();
        let mut stop = self.stop.clone();
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept() => incoming,
                Some(_) = open.join_next() => continue,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match incoming {
                Ok(incoming) => {
                    // Without a place the connection is dropped, which closes it.
                    if let Some(place) = self.places.admit(incoming.peer) {
                        // The errors of a connection are its peer's.
                        let cut = place.cut();
                        let serving = self.serve(incoming, place);
                        open.spawn(async move {
                            tokio::select! {
                                ended = serving => drop(ended),
                                () = cut.wait() => {}
                            }
                        });
                    }
                }
                // The peer has gone already: the next one does not wait for that.
                Err(error) if is_of_the_peer(error.kind()) => {}
                // The system has no room for more.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        while open.join_next().await.is_some() {}
        Ok(())
    }
    /// One connection, from its handshakes to its end.
    fn serve(
        &self,
        incoming: Incoming,
        place: Place,
    ) -> impl Future<Output = io::Result<()>> + use<> {
        let (server, limits, mut stop) =
            (self.server.clone(), self.limits.clone(), self.stop.clone());
        let (protection, scheme) = (self.protection.clone(), incoming.scheme());
        let kept = self.budget.open(incoming.peer);
        async move {
            let begun = tokio::time::Instant::now();
            let opening = tokio::time::timeout(limits.handshake_max, incoming.open());
            let line = tokio::select! {
                line = opening => line?.map_err(io::Error::other)?,
                () = place.evicted() => return Ok(()),
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let (mut connection, bounds) = (limits.connection.clone(), limits.of_connection());
            // The CSM is part of the handshake.
            let left = limits.handshake_max.saturating_sub(begun.elapsed());
            connection.csm_timeout = connection.csm_timeout.min(left.into());
            let host = over_connections(connection, bounds, protection, fresh_rng());
            let patience = Patience {
                silence: limits.idle_max,
                pong: limits.pong_max,
                sending: limits.send_max,
            };
            let line = line.receiving_within(limits.receive_max);
            let connected = Connected::new(line, host).served(patience, place, kept);
            let transport_task = TransportTask::new(connected, scheme, server);
            let (transport, result) = transport_task.serve(stop, limits.answers_within()).await;
            tokio::time::timeout(limits.grace, transport.close()).await??;
            result
        }
    }
}

/// Errors of `accept` that say something of one connection, and nothing of the system.
fn is_of_the_peer(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
