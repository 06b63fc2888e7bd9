//! The task that has one transport: all requests go through it, and what comes is sorted by request.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lowmesh_coap::exchange::GroupInput;
use lowmesh_coap::{Fault, Input, Output, ResponseTemplate};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_wire::coap::Code;
use tokio::sync::mpsc;

use super::command::{Command, Operation};
use super::error::Error;
use super::mailbox::{Item, Mailbox};
use super::settings::Watcher;
use crate::dtls::LossCause;
use crate::oscore::Contexts;
use crate::params::CLIENT_IDLE;
use crate::peer::Peer;
use crate::transport::{Silent, Transport, misgreeting};

/// A request under way.
#[derive(Debug)]
struct Route {
    peer: Peer,
    mailbox: Arc<Mailbox>,
    /// What was wrong with its answer.
    fault: Option<Fault>,
}

/// All requests of one transport.
#[derive(Debug)]
pub(super) struct Conversation<W> {
    transport: W,
    commands: mpsc::Receiver<Command>,
    /// Whether more requests may come.
    open: bool,
    ends_when_idle: bool,
    /// Its name for monitoring.
    name: &'static str,
    routes: BTreeMap<Handle, Route>,
    /// Tells others that it has requests under way.
    busy: Arc<AtomicBool>,
    contexts: Option<Contexts>,
    watcher: Option<Watcher>,
}

impl<W: Transport> Conversation<W> {
    pub fn new(
        transport: W,
        commands: mpsc::Receiver<Command>,
        busy: Arc<AtomicBool>,
        contexts: Option<Contexts>,
        watcher: Option<Watcher>,
    ) -> Self {
        let (open, ends_when_idle, routes) = (true, false, BTreeMap::new());
        let name = "connection";
        Self { transport, commands, open, ends_when_idle, name, routes, busy, contexts, watcher }
    }
    /// What it is called in monitoring.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
    /// Ends too when nobody has needed it for [`CLIENT_IDLE`].
    pub fn ending_when_idle(self) -> Self {
        Self { ends_when_idle: true, ..self }
    }
    /// Runs until no caller is left and all requests are answered, or until the transport ends.
    pub async fn run(mut self) {
        let lost = loop {
            self.busy.store(!self.routes.is_empty(), Ordering::Relaxed);
            if !self.open && self.routes.is_empty() {
                break None;
            }
            let idle = self.ends_when_idle && self.open && self.routes.is_empty();
            tokio::select! {
                command = self.commands.recv(), if self.open => match command {
                    Some(command) => self.on_command(command),
                    None => self.open = false,
                },
                output = self.transport.next() => match output {
                    Ok(Output::Close { .. }) => break Some(Lost::Ended("its peer has ended it".into())),
                    Ok(output) => self.on_output(output),
                    Err(error) => break Some(Lost::of(&error)),
                },
                () = tokio::time::sleep(CLIENT_IDLE), if idle => {
                    // The next request opens a new connection.
                    self.commands.close();
                }
            }
        };
        if let Some(lost) = lost {
            self.lose(&lost);
        } else {
            self.transport.release();
            while self.transport.poll().is_some() {}
        }
        self.transport.end().await;
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Begin { address, operation, handle, mailbox } => {
                self.begin(address, operation, handle, mailbox);
            }
            Command::Deregister(handle) => {
                if let Err(rejected) = self.transport.handle(Input::Deregister { handle }) {
                    self.finish(handle, Err(rejected.into()));
                }
            }
            Command::Repeat(handle, repetition, wait) => {
                let wait = wait.into();
                let input = Input::Group(GroupInput::Repeat { handle, repetition, wait });
                // One that is over, or waits for its turn, is not repeated.
                let _over = self.transport.handle(input);
            }
            Command::Cancel(handle) => self.cancel(handle),
            Command::Choose { address, chosen, reply } => {
                let peer = self.transport.peer(address);
                let no_way = |error| Error::NoWay { to: address.ip(), error };
                let choice = peer
                    .map_err(no_way)
                    .and_then(|peer| Ok(self.transport.choose_congestion_control(peer, chosen)?));
                // The caller may be gone.
                let _gone = reply.send(choice);
            }
            Command::Inspect(tell) => {
                for report in self.transport.reports(self.name) {
                    // The caller may be gone.
                    let _gone = tell.send(report);
                }
            }
            Command::GiveUp(handle, wait) => {
                if let Some(route) = self.routes.get(&handle) {
                    let error = self.silence(route.peer, wait);
                    self.finish(handle, Err(error));
                    let _known = self.transport.handle(Input::Cancel { handle });
                }
            }
        }
    }
    fn begin(
        &mut self,
        address: SocketAddr,
        operation: Operation,
        handle: Handle,
        mailbox: Arc<Mailbox>,
    ) {
        let peer = match self.transport.peer(address) {
            Ok(peer) => peer,
            Err(error) => {
                return mailbox.finish(Err(Error::NoWay { to: address.ip(), error }));
            }
        };
        let input = match operation {
            Operation::Request(message) => Input::Request { peer, message, handle },
            Operation::Group(message, wait) => Input::Group(GroupInput::Request {
                group: peer,
                message,
                wait: wait.into(),
                handle,
            }),
            Operation::Ping => Input::Ping { peer, handle },
        };
        match self.transport.handle(input) {
            Ok(()) => drop(self.routes.insert(handle, Route { peer, mailbox, fault: None })),
            Err(rejected) => mailbox.finish(Err(rejected.into())),
        }
    }
    fn cancel(&mut self, handle: Handle) {
        self.routes.remove(&handle);
        // A request that is over is not known any more.
        let _known = self.transport.handle(Input::Cancel { handle });
    }
    fn on_output(&mut self, output: Output<Peer>) {
        if let Some(Watcher(watch)) = &self.watcher {
            watch(&output);
        }
        match output {
            Output::Response { handle, .. }
            | Output::Pong { handle, .. }
            | Output::Over { handle } => self.finish(handle, Ok(output)),
            Output::Fault { handle, fault } => {
                if let Some(route) = self.routes.get_mut(&handle) {
                    route.fault = Some(fault);
                }
            }
            Output::Missed { handle, from, reason, fault } => {
                // What was wrong with an answer may have come before.
                let earlier = self.routes.get_mut(&handle).and_then(|route| route.fault.take());
                let fault = fault.or(earlier);
                self.pass_on(handle, Output::Missed { handle, from, reason, fault });
            }
            Output::Failed { handle, reason } => {
                if let Some(route) = self.routes.get_mut(&handle) {
                    let (peer, fault) = (route.peer, route.fault.take());
                    let error = self.failure(peer, reason, fault);
                    self.finish(handle, Err(error));
                }
            }
            Output::Notification { handle, .. }
            | Output::GroupResponse { handle, .. }
            | Output::Started { handle, .. }
            | Output::Acknowledged { handle, .. } => self.pass_on(handle, output),
            // Nothing is served on this side.
            Output::Request { exchange, .. } => {
                let response = ResponseTemplate::new(Code::NOT_FOUND);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                let _expired = self.transport.handle(input);
            }
            Output::Refused { .. }
            | Output::Send { .. }
            | Output::Close { .. }
            | Output::SessionOver { .. }
            | Output::Discarded { .. } => {}
        }
    }
    fn pass_on(&mut self, handle: Handle, output: Output<Peer>) {
        match self.routes.get(&handle) {
            // The caller is gone.
            Some(route) if Arc::strong_count(&route.mailbox) == 1 => self.cancel(handle),
            Some(route) => route.mailbox.put(output),
            None => {}
        }
    }
    fn finish(&mut self, handle: Handle, item: Item) {
        if let Some(route) = self.routes.remove(&handle) {
            // The caller finds the connection free when it gets the answer.
            self.busy.store(!self.routes.is_empty(), Ordering::Relaxed);
            route.mailbox.finish(item);
        }
    }
    /// What it means that a request has failed.
    fn failure(&mut self, peer: Peer, reason: DropReason, fault: Option<Fault>) -> Error {
        let address = peer.address;
        if let Some(fault) = fault {
            return Error::Fault { peer: address, fault };
        }
        if let Some(error) = self.misgreeted(address) {
            return error;
        }
        if let Some(loss) = self.transport.take_session_loss(peer) {
            return match loss.cause {
                LossCause::Handshake => Error::Handshake { peer: address, reason: loss.reason },
                LossCause::Unheard | LossCause::Closed => {
                    Error::Ended { peer: address, reason: loss.reason }
                }
            };
        }
        match self.contexts.as_ref().and_then(Contexts::take_refusal) {
            Some(reason) => Error::Unprotected { peer: address, reason },
            None => Error::Failed { peer: address, reason },
        }
    }
    /// What it means that nothing came in this time.
    fn silence(&self, peer: Peer, wait: Duration) -> Error {
        let address = peer.address;
        if let Some(error) = self.misgreeted(address) {
            return error;
        }
        if self.transport.is_shaking_hands(peer) {
            let reason = format!("the handshake did not finish within {} s", wait.as_secs_f64());
            return Error::Handshake { peer: address, reason };
        }
        // RFC 8613 s8.4: what does not verify is no answer, but people want to know of it.
        if let Some(reason) = self.contexts.as_ref().and_then(Contexts::take_refusal) {
            return Error::Unprotected { peer: address, reason };
        }
        Error::Silence { peer: address.to_string(), wait }
    }
    /// That nothing came on a connection before the peer's CSM, which has not come.
    fn misgreeted(&self, peer: SocketAddr) -> Option<Error> {
        let awaited = self.transport.awaits_csm()?;
        let what = format!("no CSM arrived within {:.1} s", awaited.as_secs_f64());
        Some(Error::Ended { peer, reason: misgreeting(&what) })
    }
    /// The transport has ended, and with it all requests.
    fn lose(&mut self, lost: &Lost) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Begin { address, mailbox, .. } = command {
                mailbox.finish(Err(lost.error(address)));
            }
        }
        for route in std::mem::take(&mut self.routes).into_values() {
            route.mailbox.finish(Err(lost.error(route.peer.address)));
        }
    }
}

/// How a transport was lost.
#[derive(Debug)]
enum Lost {
    /// Its peer has been silent for so long.
    Silent(Duration),
    /// It has ended, for this reason.
    Ended(String),
}

impl Lost {
    fn of(error: &io::Error) -> Self {
        let silent = error.get_ref().and_then(|inner| inner.downcast_ref::<Silent>());
        silent.map_or_else(|| Self::Ended(error.to_string()), |silent| Self::Silent(silent.0))
    }
    /// What it means for a request.
    fn error(&self, peer: SocketAddr) -> Error {
        match self {
            Self::Silent(wait) => Error::Silence { peer: peer.to_string(), wait: *wait },
            Self::Ended(reason) => Error::Ended { peer, reason: reason.clone() },
        }
    }
}
