//! Serves one transport: takes its requests to the resources and their answers back, until the transport or the server
//! ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lowmesh_coap::{IncomingId, Input, Output, ResponseTemplate};
use lowmesh_machine::{Handle, Rejected};
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Scheme;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::event::ServerEvent;
use super::handler::Reply;
use super::log::Journal;
use super::state::{Finish, Outcome, ServerState};
use crate::params::END_LOOK;
use crate::peer::Peer;
use crate::transport::Transport;

type Pending = Pin<Box<dyn Future<Output = (IncomingId, ResponseTemplate)> + Send>>;

/// ```text
///   Serving ── stop ──► Ending: requests in progress are finished, new ones are answered with 5.03
///      └── the transport ends ──► Over ◄── nothing left, or the grace is over ──┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serving,
    Ending,
    Over,
}

/// Serves one transport.
pub(super) struct TransportTask<W> {
    transport: W,
    server: Arc<ServerState>,
    pending: FuturesUnordered<Pending>,
    state: State,
    journal: Journal,
}

impl<W: Transport> TransportTask<W> {
    /// The host of `way` says how many answers are made at a time.
    pub(super) fn new(transport: W, scheme: Scheme, server: Arc<ServerState>) -> Self {
        let journal = Journal::new(server.log.clone(), scheme);
        let (pending, state) = (FuturesUnordered::new(), State::Serving);
        Self { transport, server, pending, state, journal }
    }
    /// Serves until the transport ends, or until `stop` and at most `grace` longer; gives the transport back.
    pub(super) async fn serve(
        mut self,
        mut stop: watch::Receiver<bool>,
        grace: Duration,
    ) -> (W, io::Result<()>) {
        let mut event = self.server.changes.subscribe();
        let result = tokio::select! {
            result = self.run(&mut event) => result,
            // An error says that the server is gone, which is a stop too.
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        };
        if result.is_ok() && self.state == State::Serving {
            self.end();
            let rest = tokio::time::timeout(grace, self.run(&mut event));
            let rest = rest.await.unwrap_or(Ok(()));
            return (self.transport, rest);
        }
        (self.transport, result)
    }
    /// Runs until nothing is left to do. May be dropped and called again at any time.
    async fn run(&mut self, event: &mut broadcast::Receiver<ServerEvent>) -> io::Result<()> {
        loop {
            while let Some(output) = self.transport.poll() {
                self.on_output(output);
            }
            while let Some(loss) = self.transport.take_failed_handshake() {
                self.journal.refused(loss.peer, None, None, loss.reason);
            }
            match self.state {
                State::Over => return Ok(()),
                State::Ending if self.pending.is_empty() && self.transport.is_done() => {
                    return Ok(());
                }
                State::Serving | State::Ending => {}
            }
            // A peer that does not read gets nothing new: its answers and its notifications wait.
            let room = self.transport.has_room();
            tokio::select! {
                biased;
                Some((exchange, response)) = self.pending.next(), if room => {
                    self.respond(exchange, response);
                }
                one = event.recv(), if room => self.on_news(one),
                // It ends with each flush too, after which there is room again.
                stepped = self.transport.step() => stepped?,
                // An acknowledgement is no output, so this looks whether all have come.
                () = tokio::time::sleep(END_LOOK), if self.state == State::Ending => {}
            }
        }
    }
    /// The server ends.
    fn end(&mut self) {
        self.state = State::Ending;
        // RFC 7641 s4.2: an error tells observers that no more notifications come.
        self.transport.all_changed();
        self.transport.release();
    }
    fn on_news(&mut self, event: Result<ServerEvent, RecvError>) {
        match event {
            Ok(ServerEvent::Changed(path)) => self.transport.changed(&path),
            Ok(ServerEvent::RequestChanged(request)) => self.transport.request_changed(&request),
            Ok(ServerEvent::Inspected(tell)) => {
                // The caller may be gone.
                let _gone = tell.send(self.transport.report());
            }
            // What was missed may be any change.
            Err(RecvError::Lagged(_)) => self.transport.all_changed(),
            Err(RecvError::Closed) => {}
        }
    }
    fn on_output(&mut self, output: Output<Peer>) {
        match output {
            Output::Request { exchange, from, message, multicast } => {
                self.server.totals.asked();
                let identity = || self.transport.identity(exchange, from);
                self.journal.asked(exchange, from, &message, identity);
                if self.state != State::Serving {
                    self.decline(exchange, multicast);
                    return;
                }
                let proven = self.transport.is_proven(from);
                match self.server.ask(from, proven, message, multicast, exchange.is_refresh()) {
                    Outcome::Reply(Reply::Now(response), finish) => {
                        self.respond(exchange, finish.apply(response));
                    }
                    Outcome::Reply(Reply::Later(answer), finish) => {
                        // An answer that is never polled has no effects.
                        match self.transport.defer(exchange) {
                            Ok(()) => {
                                self.pending.push(Box::pin(finished(exchange, answer, finish)));
                            }
                            Err(_) if multicast => self.pass_over(exchange),
                            Err(response) => self.respond(exchange, response),
                        }
                    }
                    Outcome::Silence => self.pass_over(exchange),
                }
            }
            Output::Refused { from, message, code, why } => {
                self.journal.refused(from, Some(&message), Some(code), why);
            }
            Output::Close { .. } => self.state = State::Over,
            // A server ignores what becomes of its answers.
            _ => {}
        }
    }
    /// The server ends and accepts no more requests. RFC 7252 s5.9.3.4: the 5.03 says when to try again.
    fn decline(&mut self, exchange: IncomingId, multicast: bool) {
        if multicast {
            self.pass_over(exchange);
        } else {
            self.respond(exchange, ResponseTemplate::busy());
        }
    }
    /// A request stays without an answer.
    fn pass_over(&mut self, exchange: IncomingId) {
        self.journal.declined(exchange);
        let _expired = self.transport.handle(Input::Decline { exchange });
    }
    fn respond(&mut self, exchange: IncomingId, response: ResponseTemplate) {
        let handle = Handle::NONE;
        self.server.totals.answered(response.code);
        let block1 = self.transport.request_block(exchange);
        let entry = self.journal.answered(exchange, &response);
        match self.transport.handle(Input::Respond { exchange, response, handle }) {
            // The client waits no longer, so there is nobody to answer.
            Ok(()) | Err(Rejected::Gone { .. }) => {}
            // An answer that cannot be sent, as one that is too long, is the fault of the application.
            Err(_) => {
                let response = ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR);
                let _gone = self.transport.handle(Input::Respond { exchange, response, handle });
            }
        }
        if let Some(entry) = entry {
            self.journal.write(entry, block1, self.transport.response_block());
        }
    }
}

async fn finished(
    exchange: IncomingId,
    answer: impl Future<Output = ResponseTemplate>,
    finish: Finish,
) -> (IncomingId, ResponseTemplate) {
    (exchange, finish.apply(answer.await))
}

#[cfg(test)]
mod tests;
