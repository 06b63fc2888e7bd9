//! Requests of a proxy and what comes of them, on one way: the endpoint for datagrams, or a connection to an origin.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use lowmesh_coap::proxy::failure;
use lowmesh_coap::{Input, Output, RequestTemplate, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::{Code, Message};
use tokio::sync::{mpsc, oneshot, watch};

use super::observations::State;
use crate::clock::Clock;
use crate::metrics::{Kind, Report};
use crate::params::PROXY_IDLE;
use crate::peer::Peer;
use crate::server::Way;

/// What a conversation is told.
pub(super) enum Errand {
    /// A request, and the way back.
    Ask { address: SocketAddr, request: RequestTemplate, reply: Reply },
    /// Somebody wants to know how it stands.
    Inspect(mpsc::UnboundedSender<Report>),
}

/// Where a response goes.
pub(super) enum Reply {
    /// It is one.
    Once(oneshot::Sender<Result<Message, Code>>),
    /// There may be many, of which the last counts. When nobody reads them any more, the observation ends.
    Many(watch::Sender<State>),
}

impl Reply {
    fn end(self, result: Result<Message, Code>) {
        // Whoever asked may be gone.
        match self {
            Self::Once(reply) => drop(reply.send(result)),
            Self::Many(states) => drop(states.send(State::Over(result.map(Box::new)))),
        }
    }
    /// Nobody reads what comes.
    fn is_forgotten(&self) -> bool {
        matches!(self, Self::Many(states) if states.is_closed())
    }
}

/// Requests and their answers on one way.
pub(super) struct Conversation<W> {
    way: W,
    /// Its name for monitoring.
    name: &'static str,
    errands: mpsc::Receiver<Errand>,
    /// Whether more requests may come.
    open: bool,
    ends_when_idle: bool,
    waiting: BTreeMap<Handle, Reply>,
    serial: u64,
    clock: Clock,
}

impl<W: Way> Conversation<W> {
    pub(super) fn new(
        way: W,
        name: &'static str,
        errands: mpsc::Receiver<Errand>,
        clock: Clock,
    ) -> Self {
        let (waiting, serial) = (BTreeMap::new(), 0);
        Self { way, name, errands, open: true, ends_when_idle: false, waiting, serial, clock }
    }
    pub(super) fn ending_when_idle(self) -> Self {
        Self { ends_when_idle: true, ..self }
    }
    /// Goes on until nobody can ask any more and all are answered, or until the way ends; gives it back.
    pub(super) async fn run(mut self, peer: impl Fn(&W, SocketAddr) -> io::Result<Peer>) -> W {
        while self.open || !self.waiting.is_empty() {
            let idle = self.ends_when_idle && self.open && self.waiting.is_empty();
            let goes_on = tokio::select! {
                errand = self.errands.recv(), if self.open => {
                    match errand {
                        Some(Errand::Ask { address, request, reply }) => {
                            match peer(&self.way, address) {
                                Ok(peer) => self.begin(peer, request, reply),
                                Err(_) => reply.end(Err(Code::BAD_GATEWAY)),
                            }
                        }
                        Some(Errand::Inspect(tell)) => self.report(&tell),
                        None => self.close(),
                    }
                    true
                }
                output = self.way.next() => output.is_ok_and(|output| self.on_output(output)),
                () = tokio::time::sleep(PROXY_IDLE), if idle => {
                    // What is asked from now on makes a new connection.
                    self.errands.close();
                    true
                }
            };
            if !goes_on {
                return self.way;
            }
        }
        self.way.release();
        while self.way.poll().is_some() {}
        self.way
    }
    fn begin(&mut self, peer: Peer, request: RequestTemplate, reply: Reply) {
        self.serial += 1;
        let handle = Handle(self.serial);
        match self.way.handle(Input::Request { peer, message: request, handle }) {
            Ok(()) => drop(self.waiting.insert(handle, reply)),
            Err(_) => reply.end(Err(Code::SERVICE_UNAVAILABLE)),
        }
    }
    fn report(&self, tell: &mpsc::UnboundedSender<Report>) {
        let mut report = self.way.report();
        if let Kind::Endpoint { name, .. } = &mut report.kind {
            self.name.clone_into(name);
        }
        // Who asked may have what it needs.
        let _gone = tell.send(report);
    }
    /// Nobody can ask any more: what is asked once is still answered, what is observed ends.
    fn close(&mut self) {
        self.open = false;
        let many = self.waiting.iter().filter(|(_, reply)| matches!(reply, Reply::Many(_)));
        let many: Vec<Handle> = many.map(|(handle, _)| *handle).collect();
        for handle in many {
            self.deregister(handle);
        }
    }
    fn deregister(&mut self, handle: Handle) {
        // Without the origin's answer to it the observation is over as well.
        self.waiting.remove(&handle);
        let _over_already = self.way.handle(Input::Deregister { handle });
    }
    /// False when the way is over.
    fn on_output(&mut self, output: Output<Peer>) -> bool {
        match output {
            Output::Response { handle, message, .. } => self.end(handle, Ok(message)),
            Output::Notification { handle, message, .. } => self.on_notification(handle, message),
            Output::Failed { handle, reason } => self.end(handle, Err(failure(reason))),
            Output::Over { handle } => self.end(handle, Err(Code::GATEWAY_TIMEOUT)),
            // Nothing is served on this side.
            Output::Request { exchange, .. } => {
                let response = ResponseTemplate::new(Code::NOT_FOUND);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                let _expired = self.way.handle(input);
            }
            Output::Close { .. } => return false,
            _ => {}
        }
        true
    }
    fn on_notification(&mut self, handle: Handle, message: Message) {
        let Some(reply) = self.waiting.get(&handle) else { return };
        if reply.is_forgotten() {
            return self.deregister(handle);
        }
        if let Reply::Many(states) = reply {
            let number = match *states.borrow() {
                State::Current { number, .. } => number + 1,
                State::Pending | State::Over(_) => 1,
            };
            let (message, at) = (Box::new(message), self.clock.now());
            states.send_replace(State::Current { message, at, number });
        }
    }
    fn end(&mut self, handle: Handle, result: Result<Message, Code>) {
        if let Some(reply) = self.waiting.remove(&handle) {
            reply.end(result);
        }
    }
}
