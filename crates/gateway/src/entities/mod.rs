//! The Entity Manager on real sockets: its resources on a server, its requests through a client.
//!
//! ```no_run
//! use lowmesh_group::{Config, Manager};
//! use lowmesh_net::client::Client;
//! use lowmesh_net::clock::{Clock, fresh_rng};
//! use lowmesh_gateway::entities::{self, FileStore, Setup};
//! use lowmesh_net::server::{Limits, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::start();
//! let store = Box::new(FileStore::open("groups.state")?);
//! let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now())?;
//! let mut server = Server::new(Limits::default())?;
//! server.listen_udp("[::1]:5683".parse()?)?;
//! let client = Client::builder().build()?;
//! let (serving, _status) = entities::serve(&mut server, manager, client, Setup::new(clock));
//! tokio::select! {
//!     ended = server.run(std::future::pending()) => ended?,
//!     () = serving => {}
//! }
//! # Ok(())
//! # }
//! ```
//! Members are asked with the client's own congestion control and security. A client that may use the server can make the
//! manager ask any member: who gets access is the choice of the server's address.

mod attempts;
mod file;
mod status;

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use lowmesh_coap::observe::registers;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Output as CoapOutput, PeerAddress as _, RequestTemplate, ResponseTemplate};
use lowmesh_group::{Authority, ExchangeId, Input, Manager, Output, RequestId, params};
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_units::Duration;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use lowmesh_wire::coap::{Code, Message};
use tokio::sync::{mpsc, oneshot};

use attempts::{Attempt, Attempts};
pub use file::FileStore;
use lowmesh_net::client::{Client, Error, Exchange, Response};
use lowmesh_net::clock::Clock;
use lowmesh_net::server::{Changes, Handler, Request, Server};
pub use status::Status;

/// The links of all entities.
type Listed = Arc<Mutex<Vec<String>>>;

/// Messages to the task of a manager that are not read yet; a sender of one more waits.
const MAILBOX: usize = 256;

/// What the task of a manager gets.
#[derive(Debug)]
enum Event {
    Request { client: IpAddr, message: Message, reply: oneshot::Sender<ResponseTemplate> },
    Member { attempt: Attempt, input: Input },
    Inspect { reply: oneshot::Sender<String> },
    Deadline,
}

/// What a client must have shown before the manager sends requests for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// That it receives at its address: by a connection, a DTLS session, or an Echo option.
    Needed,
    /// Nothing. A datagram with a forged address makes the manager send requests to all members.
    Unneeded,
}

/// How a manager is served.
pub struct Setup {
    /// The clock of the manager.
    pub clock: Clock,
    /// What clients must have shown.
    pub proof: Proof,
    /// Where the operator hears of what goes wrong; nowhere by default.
    pub tell: Box<dyn Fn(&str) + Send>,
}

impl Setup {
    /// Clients prove their addresses, and nobody hears of what goes wrong.
    pub fn new(clock: Clock) -> Self {
        Self { clock, proof: Proof::Needed, tell: Box::new(|_| {}) }
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("proof", &self.proof).finish_non_exhaustive()
    }
}

/// Adds the resources of a manager to a server. The future runs the manager, and ends when the server is gone; the other
/// result shows its state meanwhile.
pub fn serve(
    server: &mut Server,
    manager: Manager,
    client: Client,
    setup: Setup,
) -> (impl Future<Output = ()> + use<>, Status) {
    let Setup { clock, proof, tell } = setup;
    // The server holds the only sender of requests.
    let (sender, receiver) = mpsc::channel(MAILBOX);
    let status = Status(sender.downgrade());
    let handler = Handler::later(move |request: Request| {
        let sender = sender.clone();
        async move {
            // RFC 9175 s2.4, RFC 7252 s11.3: one datagram of an unproven address must not become many at third parties. The
            // host asks for notifications of registrations that were proven.
            let is_proven = proof == Proof::Unneeded || request.proven || request.refresh;
            if !is_proven && asks_members(&request) {
                return ResponseTemplate::challenge();
            }
            answer(sender, request).await
        }
    });
    let path = ["/", params::ROOT].concat();
    let resource = Resource::new(Methods::ALL, handler).subtree();
    // The manager decides which requests register observers: its answer to those has Observe.
    let resource = resource.attribute("rt", "core.entities").flag("obs");
    let listed = Listed::default();
    let shown = listed.clone();
    let resource = resource.lists(move || shown.lock().expect("no holder panics").clone());
    server.insert(&path, resource.attribute("title", "Groups of resources"));
    let (mut task, answers) = Task::new(manager, client, clock, server.changes());
    (task.tell, task.listed) = (tell, listed);
    task.list();
    (task.run(receiver, answers), status)
}

/// Whether the manager may send requests because of a request. What it knows itself is below an entity, or the list.
fn asks_members(request: &Request) -> bool {
    request.method() != Code::GET || request.below().count() == 1
}

async fn answer(sender: mpsc::Sender<Event>, request: Request) -> ResponseTemplate {
    let (reply, response) = oneshot::channel();
    // A subscriber with a /64 has one share, as everywhere on the server.
    let client = request.peer.source().address.ip();
    let event = Event::Request { client, message: request.message, reply };
    // A manager that has ended answers nothing any more.
    let sent = sender.send(event).await;
    // The manager ends with the server, although requests may still be open.
    drop(sender);
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
    attempts: Attempts,
    /// Observers of entities.
    changes: Changes,
    tell: Box<dyn Fn(&str) + Send>,
    /// Whether the operator knows that the store has failed.
    store_failed: bool,
    listed: Listed,
    /// The changes of entities that the list has.
    revision: u64,
}

impl Task {
    /// The task, and what its requests to members lead to.
    fn new(
        manager: Manager,
        client: Client,
        clock: Clock,
        changes: Changes,
    ) -> (Self, mpsc::Receiver<Event>) {
        let (members, answers) = mpsc::channel(MAILBOX);
        let (serial, replies, attempts) = (0, HashMap::new(), Attempts::default());
        let task = Self {
            manager,
            client,
            clock,
            members,
            serial,
            replies,
            attempts,
            changes,
            tell: Box::new(|_| {}),
            store_failed: false,
            listed: Listed::default(),
            revision: 0,
        };
        (task, answers)
    }
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
                () = deadline => Event::Deadline,
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
            Event::Member { attempt, input } if self.attempts.admits(attempt, &input) => input,
            Event::Member { .. } => return,
            Event::Inspect { reply } => {
                // Who asked may have gone.
                let _gone = reply.send(status::text(&self.manager, self.clock.now()));
                return;
            }
            Event::Deadline => Input::Deadline,
        };
        let taken = self.manager.handle(self.clock.now(), input);
        debug_assert!(taken.is_ok(), "{taken:?}");
        if self.revision != self.manager.revision() {
            self.list();
        }
        match (self.manager.store_fault(), self.store_failed) {
            (Some(error), false) => {
                (self.tell)(&format!("{error}: no entity can be changed, and queries go on"));
            }
            (None, true) => (self.tell)("the state is stored again"),
            _ => return,
        }
        self.store_failed = !self.store_failed;
    }
    /// Lists the entities for `/.well-known/core`.
    fn list(&mut self) {
        self.revision = self.manager.revision();
        *self.listed.lock().expect("no holder panics") = self.manager.links().collect();
    }
    fn carry_out(&mut self) {
        while let Some(request) = self.manager.poll_change() {
            self.changes.tell_request(Arc::new(request));
        }
        while let Some(output) = self.manager.poll_output() {
            match output {
                Output::Request { exchange, to, message } => {
                    let (client, members) = (self.client.clone(), self.members.clone());
                    let observes = registers(message.code, &message.options);
                    self.attempts.begin(exchange, observes, |attempt| {
                        let report = Report { exchange, attempt, members };
                        let asking = async move {
                            let input = if observes {
                                observe(&client, &report, &to, message).await
                            } else {
                                ask(&client, &report, &to, message).await
                            };
                            report.send(input).await;
                        };
                        tokio::spawn(asking).abort_handle()
                    });
                }
                Output::Group { exchange, to, message, wait } => {
                    let (client, members) = (self.client.clone(), self.members.clone());
                    self.attempts.begin(exchange, false, |attempt| {
                        let report = Report { exchange, attempt, members };
                        let asking = async move {
                            let input = gather(&client, &report, &to, message, wait).await;
                            report.send(input).await;
                        };
                        tokio::spawn(asking).abort_handle()
                    });
                }
                Output::Cancel { exchange } => self.attempts.cancel(exchange),
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

/// Where an attempt reports to.
struct Report {
    exchange: ExchangeId,
    attempt: Attempt,
    members: mpsc::Sender<Event>,
}

impl Report {
    /// Without a manager nobody waits for the input.
    async fn send(&self, input: Input) {
        let _ended = self.members.send(Event::Member { attempt: self.attempt, input }).await;
    }
    /// The first answer of a member, or why there is none. The manager learns of an empty ACK before it.
    async fn first(&self, states: &mut Exchange) -> Result<Input, Input> {
        let exchange = self.exchange;
        let first = async {
            while let Some(item) = states.next().await {
                if let Ok(CoapOutput::Acknowledged { .. }) = &item {
                    self.send(Input::Acknowledged { exchange }).await;
                }
                if let Some(response) = item.map(Response::of).transpose() {
                    return Some(response);
                }
            }
            None
        };
        match tokio::time::timeout(params::DEADLINE_MAX.into(), first).await {
            Ok(Some(Ok(Response { message, rtt, retransmissions, .. }))) => {
                let rtt = rtt.map_or(Duration::ZERO, Duration::from);
                Ok(Input::Response { exchange, message, rtt, retransmissions })
            }
            Ok(Some(Err(error))) => Err(failure(exchange, error)),
            Ok(None) | Err(_) => Err(Input::Failed { exchange, reason: DropReason::GaveUp }),
        }
    }
}

/// Asks one member; what becomes of it.
async fn ask(client: &Client, report: &Report, to: &Authority, message: RequestTemplate) -> Input {
    let request = client.request(message.code, uri(to)).template(message);
    match request.within(params::DEADLINE_MAX.into()).begin().await {
        Ok(mut states) => report.first(&mut states).await.unwrap_or_else(|end| end),
        Err(error) => failure(report.exchange, error),
    }
}

/// Asks one member, and passes on its answer and its notifications; the end. Aborted, it answers the next notification
/// with RST (RFC 7641 s3.6).
async fn observe(
    client: &Client,
    report: &Report,
    to: &Authority,
    message: RequestTemplate,
) -> Input {
    let exchange = report.exchange;
    let request = client.request(message.code, uri(to)).template(message);
    let mut states = match request.begin().await {
        Ok(states) => states,
        Err(error) => return failure(exchange, error),
    };
    match report.first(&mut states).await {
        Ok(response) => report.send(response).await,
        Err(end) => return end,
    }
    while let Some(item) = states.next().await {
        match item.map(Response::of) {
            Ok(Some(Response { message, .. })) => {
                report.send(Input::Notification { exchange, message }).await;
            }
            Ok(None) => {}
            Err(error) => return failure(exchange, error),
        }
    }
    Input::Over { exchange }
}

/// Asks a group, and passes on what its members answer; the end.
async fn gather(
    client: &Client,
    report: &Report,
    to: &Authority,
    message: RequestTemplate,
    wait: Duration,
) -> Input {
    let exchange = report.exchange;
    let request = client.request(message.code, uri(to)).template(message);
    let mut answers = match request.begin_group(wait.into()).await {
        Ok(answers) => answers,
        Err(error) => return failure(exchange, error),
    };
    while let Some(item) = answers.next().await {
        match item {
            Ok(output @ CoapOutput::GroupResponse { .. }) => {
                let Some(Response { from, message, .. }) = Response::of(output) else { continue };
                let from = authority(from.address);
                report.send(Input::GroupResponse { exchange, from, message }).await;
            }
            Ok(_) => {}
            Err(error) => return failure(exchange, error),
        }
    }
    Input::Over { exchange }
}

/// What the manager learns of a request without an answer.
fn failure(exchange: ExchangeId, error: Error) -> Input {
    let reason = match error {
        Error::Fault { fault, .. } => return Input::Faulty { exchange, fault },
        Error::Failed { reason, .. } => reason,
        Error::Silence { .. } | Error::Unwanted | Error::Unprotected { .. } => DropReason::GaveUp,
        Error::Rejected(_) | Error::Crowded(_) => DropReason::QueueFull,
        _ => DropReason::NoRoute,
    };
    Input::Failed { exchange, reason }
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
