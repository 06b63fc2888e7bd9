//! The Entity Manager on real sockets: its resources on a server, its requests through a client.
//!
//! ```no_run
//! use lowmesh_group::{Config, Manager};
//! use lowmesh_net::client::Client;
//! use lowmesh_net::clock::{Clock, fresh_rng};
//! use lowmesh_net::entities::{self, FileStore};
//! use lowmesh_net::server::{Limits, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::start();
//! let store = Box::new(FileStore::open("groups.state")?);
//! let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now())?;
//! let mut server = Server::new(Limits::default())?;
//! server.listen_udp("[::1]:5683".parse()?)?;
//! let client = Client::builder().build()?;
//! let serving = entities::serve(&mut server, manager, client, clock);
//! tokio::select! {
//!     ended = server.run(std::future::pending()) => ended?,
//!     () = serving => {}
//! }
//! # Ok(())
//! # }
//! ```
//! Members are asked with the client's own congestion control and security. A client that may use the server can make the
//! manager ask any member: who gets access is the choice of the server's address.

mod file;

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use lowmesh_coap::observe::registers;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Output as CoapOutput, RequestTemplate, ResponseTemplate};
use lowmesh_group::{Authority, ExchangeId, Input, Manager, Output, RequestId, params};
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Message;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::client::{Client, Error, Response};
use crate::clock::Clock;
use crate::server::{Changes, Handler, Request, Server};
pub use file::FileStore;

/// Messages to the task of a manager that are not read yet; a sender of one more waits.
const MAILBOX: usize = 256;

/// What the task of a manager gets.
#[derive(Debug)]
enum Event {
    Request { client: IpAddr, message: Message, reply: oneshot::Sender<ResponseTemplate> },
    Member(Input),
}

/// Puts the resources of a manager on a server. The future runs the manager, and ends when the server is gone.
pub fn serve(
    server: &mut Server,
    manager: Manager,
    client: Client,
    clock: Clock,
) -> impl Future<Output = ()> + use<> {
    // The server holds the only sender of requests.
    let (sender, receiver) = mpsc::channel(MAILBOX);
    let handler = Handler::later(move |request: Request| {
        let sender = sender.clone();
        async move { answer(&sender, request).await }
    });
    let path = ["/", params::ROOT].concat();
    let resource = Resource::new(Methods::ALL, handler).subtree();
    // The manager decides which requests register observers: its answer to those has Observe.
    let resource = resource.attribute("rt", "core.entities").flag("obs");
    server.insert(&path, resource.attribute("title", "Groups of resources"));
    let (members, answers) = mpsc::channel(MAILBOX);
    let task = Task {
        manager,
        client,
        clock,
        members,
        serial: 0,
        replies: HashMap::new(),
        exchanges: HashMap::new(),
        observations: HashMap::new(),
        changes: server.changes(),
    };
    task.run(receiver, answers)
}

async fn answer(sender: &mpsc::Sender<Event>, request: Request) -> ResponseTemplate {
    let (reply, response) = oneshot::channel();
    let client = request.peer.address.ip();
    let event = Event::Request { client, message: request.message, reply };
    // A manager that has ended answers nothing any more.
    let sent = sender.send(event).await;
    match (sent, response.await) {
        (Ok(()), Ok(response)) => response,
        _ => ResponseTemplate::busy(),
    }
}

/// A manager with all that it waits for.
struct Task {
    manager: Manager,
    client: Client,
    clock: Clock,
    members: mpsc::Sender<Event>,
    serial: u64,
    replies: HashMap<RequestId, oneshot::Sender<ResponseTemplate>>,
    exchanges: HashMap<ExchangeId, AbortHandle>,
    /// Members that are observed.
    observations: HashMap<ExchangeId, AbortHandle>,
    /// Observers of entities.
    changes: Changes,
}

impl Task {
    async fn run(
        mut self,
        mut requests: mpsc::Receiver<Event>,
        mut answers: mpsc::Receiver<Event>,
    ) {
        loop {
            self.carry_out();
            let due = self.manager.next_deadline().map(|due| self.clock.until(due));
            let deadline = async {
                match due {
                    Some(span) => tokio::time::sleep(span).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => request,
                    None => return,
                },
                Some(answer) = answers.recv() => answer,
                () = deadline => Event::Member(Input::Deadline),
            };
            self.take(event);
        }
    }
    fn take(&mut self, event: Event) {
        let input = match event {
            Event::Request { client, message, reply } => {
                self.serial += 1;
                let request = RequestId(self.serial);
                self.replies.insert(request, reply);
                Input::Request { request, client, message }
            }
            Event::Member(input) => {
                if let Input::Response { exchange, .. }
                | Input::Over { exchange }
                | Input::Failed { exchange, .. } = &input
                {
                    self.exchanges.remove(exchange);
                }
                if let Input::Over { exchange } | Input::Failed { exchange, .. } = &input {
                    self.observations.remove(exchange);
                }
                input
            }
        };
        let taken = self.manager.handle(self.clock.now(), input);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }
    fn carry_out(&mut self) {
        while let Some(request) = self.manager.poll_change() {
            self.changes.tell_request(Arc::new(request));
        }
        while let Some(output) = self.manager.poll_output() {
            match output {
                Output::Request { exchange, to, message }
                    if registers(message.code, &message.options) =>
                {
                    let (client, members) = (self.client.clone(), self.members.clone());
                    let watching = tokio::spawn(async move {
                        let input = observe(&client, &members, exchange, (&to, message)).await;
                        let _ended = members.send(Event::Member(input)).await;
                    });
                    self.observations.insert(exchange, watching.abort_handle());
                }
                Output::Request { exchange, to, message } => {
                    let (client, members) = (self.client.clone(), self.members.clone());
                    let asking = tokio::spawn(async move {
                        let input = ask(&client, exchange, &to, message).await;
                        // Without a manager nobody waits for the answer.
                        let _ended = members.send(Event::Member(input)).await;
                    });
                    self.exchanges.insert(exchange, asking.abort_handle());
                }
                Output::Group { exchange, to, message, wait } => {
                    let (client, members) = (self.client.clone(), self.members.clone());
                    let asking = tokio::spawn(async move {
                        let input = gather(&client, &members, exchange, (&to, message, wait)).await;
                        let _ended = members.send(Event::Member(input)).await;
                    });
                    self.exchanges.insert(exchange, asking.abort_handle());
                }
                Output::Cancel { exchange } => {
                    let observation = self.observations.remove(&exchange);
                    if let Some(asking) = self.exchanges.remove(&exchange).or(observation) {
                        asking.abort();
                    }
                }
                Output::Respond { request, response } => {
                    if let Some(reply) = self.replies.remove(&request) {
                        // The client may have gone.
                        let _gone = reply.send(response);
                    }
                }
            }
        }
    }
}

/// Asks one member; what becomes of it.
async fn ask(
    client: &Client,
    exchange: ExchangeId,
    to: &Authority,
    message: RequestTemplate,
) -> Input {
    let request = client.request(message.code, uri(to)).template(message);
    match request.within(params::DEADLINE_MAX.into()).await {
        Ok(Response { message, rtt, retransmissions, .. }) => {
            let rtt = rtt.map_or(Duration::ZERO, Duration::from);
            Input::Response { exchange, message, rtt, retransmissions }
        }
        Err(error) => Input::Failed { exchange, reason: reason(&error) },
    }
}

/// Asks one member, and passes on its answer and its notifications; the end. Aborted, it answers the next notification
/// with RST (RFC 7641 s3.6).
async fn observe(
    client: &Client,
    members: &mpsc::Sender<Event>,
    exchange: ExchangeId,
    (to, message): (&Authority, RequestTemplate),
) -> Input {
    let request = client.request(message.code, uri(to)).template(message);
    let failed = |error: &Error| Input::Failed { exchange, reason: reason(error) };
    let mut states = match request.begin().await {
        Ok(states) => states,
        Err(error) => return failed(&error),
    };
    let first = async {
        while let Some(item) = states.next().await {
            if let Some(response) = item.map(Response::of).transpose() {
                return Some(response);
            }
        }
        None
    };
    let Response { message, rtt, retransmissions, .. } =
        match tokio::time::timeout(params::DEADLINE_MAX.into(), first).await {
            Ok(Some(Ok(response))) => response,
            Ok(Some(Err(error))) => return failed(&error),
            Ok(None) | Err(_) => return Input::Failed { exchange, reason: DropReason::GaveUp },
        };
    let rtt = rtt.map_or(Duration::ZERO, Duration::from);
    let response = Input::Response { exchange, message, rtt, retransmissions };
    let _ended = members.send(Event::Member(response)).await;
    while let Some(item) = states.next().await {
        match item.map(Response::of) {
            Ok(Some(Response { message, .. })) => {
                let input = Input::Notification { exchange, message };
                let _ended = members.send(Event::Member(input)).await;
            }
            Ok(None) => {}
            Err(error) => return failed(&error),
        }
    }
    Input::Over { exchange }
}

/// Asks a group, and passes on what its members answer; the end.
async fn gather(
    client: &Client,
    members: &mpsc::Sender<Event>,
    exchange: ExchangeId,
    (to, message, wait): (&Authority, RequestTemplate, Duration),
) -> Input {
    let request = client.request(message.code, uri(to)).template(message);
    let mut answers = match request.begin_group(wait.into()).await {
        Ok(answers) => answers,
        Err(error) => return Input::Failed { exchange, reason: reason(&error) },
    };
    while let Some(item) = answers.next().await {
        match item {
            Ok(output @ CoapOutput::GroupResponse { .. }) => {
                let Some(Response { from, message, .. }) = Response::of(output) else { continue };
                let from = authority(from.address);
                let input = Input::GroupResponse { exchange, from, message };
                let _ended = members.send(Event::Member(input)).await;
            }
            Ok(_) => {}
            Err(error) => return Input::Failed { exchange, reason: reason(&error) },
        }
    }
    Input::Over { exchange }
}

fn reason(error: &Error) -> DropReason {
    match error {
        Error::Failed { reason, .. } => *reason,
        Error::Silence { .. } | Error::Unwanted | Error::Unprotected { .. } => DropReason::GaveUp,
        Error::Rejected(_) | Error::Crowded(_) => DropReason::QueueFull,
        _ => DropReason::NoRoute,
    }
}

fn uri(to: &Authority) -> Uri {
    let (path, query) = (Vec::new(), Vec::new());
    Uri { scheme: to.scheme, host: to.host.clone(), explicit_port: Some(to.port), path, query }
}

fn authority(address: std::net::SocketAddr) -> Authority {
    let host = match address.ip() {
        IpAddr::V4(address) => Host::V4(address),
        IpAddr::V6(address) => Host::V6(address, None),
    };
    Authority { scheme: Scheme::Coap, host, port: address.port() }
}

#[cfg(test)]
mod tests;
