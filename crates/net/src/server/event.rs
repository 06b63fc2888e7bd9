//! Messages to all transports of a server: that resources have changed, and requests for their numbers, for monitoring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message};
use tokio::sync::{broadcast, mpsc};

use super::handler::Handler;
use crate::metrics::{self, Report, Served, gathered};
use crate::params::CHANGES_MAX;

/// A message to every transport.
#[derive(Clone, Debug)]
pub(crate) enum ServerEvent {
    /// The state of the resource at this path has changed.
    Changed(Arc<str>),
    /// The state that this request asks for has changed.
    RequestChanged(Arc<Message>),
    /// Asks for reports. Each transport sends one.
    Inspected(mpsc::UnboundedSender<Report>),
}

/// Reports changes of resources, from a handler, a task or a thread.
#[derive(Clone, Debug)]
pub struct Changes(broadcast::Sender<ServerEvent>);

impl Changes {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(CHANGES_MAX))
    }
    /// The state of the resource at `path` has changed: its observers are told the new one, which its handler is
    /// asked for (RFC 7641).
    pub fn tell(&self, path: &str) {
        self.send(ServerEvent::Changed(path.into()));
    }
    /// The same for a state that depends on the whole request, as that of a proxy does: only observers whose requests
    /// are like this one are notified.
    pub fn tell_request(&self, request: Arc<Message>) {
        self.send(ServerEvent::RequestChanged(request));
    }
    fn send(&self, event: ServerEvent) {
        // Without receivers there are no observers.
        let _listeners = self.0.send(event);
    }
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ServerEvent> {
        self.0.subscribe()
    }
}

/// What a server has done since its start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    requests: AtomicU64,
    success: AtomicU64,
    client_errors: AtomicU64,
    server_errors: AtomicU64,
}

impl Totals {
    pub(super) fn asked(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
    pub(super) fn answered(&self, code: Code) {
        let total = match code.class() {
            Class::ClientError => &self.client_errors,
            Class::ServerError => &self.server_errors,
            _ => &self.success,
        };
        total.fetch_add(1, Ordering::Relaxed);
    }
    fn served(&self) -> Served {
        let of = |total: &AtomicU64| total.load(Ordering::Relaxed);
        Served {
            requests: of(&self.requests),
            success: of(&self.success),
            client_errors: of(&self.client_errors),
            server_errors: of(&self.server_errors),
        }
    }
}

/// The numbers of a running server: requests and answers, what came to nothing, observers, and what congestion control
/// believes of every peer. They name the addresses of peers, so not everybody should get them.
#[derive(Clone, Debug)]
pub struct Metrics {
    changes: Changes,
    totals: Arc<Totals>,
}

impl Metrics {
    pub(super) const fn new(changes: Changes, totals: Arc<Totals>) -> Self {
        Self { changes, totals }
    }
    /// The metrics as text for Prometheus.
    pub async fn text(&self) -> String {
        let (tell, told) = mpsc::unbounded_channel();
        self.changes.send(ServerEvent::Inspected(tell));
        let reports = gathered(told).await;
        metrics::text(self.totals.served(), &reports)
    }
    /// The metrics as a resource.
    pub fn resource(&self) -> Resource<Handler> {
        self.resource_with(|| std::future::ready(String::new()))
    }
    /// The metrics as a resource, and behind them those of the application.
    pub fn resource_with<F: Future<Output = String> + Send + 'static>(
        &self,
        more: impl Fn() -> F + Send + Sync + 'static,
    ) -> Resource<Handler> {
        let metrics = self.clone();
        let handler = Handler::later(move |_| {
            let (metrics, more) = (metrics.clone(), more());
            async move {
                let text = metrics.text().await + &more.await;
                ResponseTemplate::new(Code::CONTENT)
                    .with_payload(text.into_bytes())
                    .with_format(ContentFormat::TEXT_PLAIN)
            }
        });
        let resource = Resource::new(Methods::GET, handler).format(ContentFormat::TEXT_PLAIN);
        resource.attribute("title", "Counters and congestion control, as Prometheus reads them")
    }
}
