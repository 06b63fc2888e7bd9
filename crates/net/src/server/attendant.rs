//! Serves one transport: takes its requests to the resources and their answers back, until the transport or the server
//! ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lowmesh_coap::{ExchangeId, Input, Output, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Scheme;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::handler::Reply;
use super::log::Journal;
use super::news::News;
use super::site::{Finish, Outcome, Site};
use crate::params::END_LOOK;
use crate::peer::Peer;
use crate::way::Way;

type Pending = Pin<Box<dyn Future<Output = (ExchangeId, ResponseTemplate)> + Send>>;

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
pub(super) struct Attendant<W> {
    way: W,
    site: Arc<Site>,
    pending: FuturesUnordered<Pending>,
    state: State,
    journal: Journal,
}

impl<W: Way> Attendant<W> {
    /// The host of `way` says how many answers are made at a time.
    pub(super) fn new(way: W, scheme: Scheme, site: Arc<Site>) -> Self {
        let journal = Journal::new(site.log.clone(), scheme);
        let (pending, state) = (FuturesUnordered::new(), State::Serving);
        Self { way, site, pending, state, journal }
    }
    /// Serves until the transport ends, or until `stop` and at most `grace` longer; gives the transport back.
    pub(super) async fn serve(
        mut self,
        mut stop: watch::Receiver<bool>,
        grace: Duration,
    ) -> (W, io::Result<()>) {
        let mut news = self.site.changes.subscribe();
        let result = tokio::select! {
            result = self.run(&mut news) => result,
            // An error says that the server is gone, which is a stop too.
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        };
        if result.is_ok() && self.state == State::Serving {
            self.end();
            let rest = tokio::time::timeout(grace, self.run(&mut news));
            let rest = rest.await.unwrap_or(Ok(()));
            return (self.way, rest);
        }
        (self.way, result)
    }
    /// Runs until nothing is left to do. May be dropped and called again at any time.
    async fn run(&mut self, news: &mut broadcast::Receiver<News>) -> io::Result<()> {
        loop {
            while let Some(output) = self.way.poll() {
                self.on_output(output);
            }
            match self.state {
                State::Over => return Ok(()),
                State::Ending if self.pending.is_empty() && self.way.is_done() => return Ok(()),
                State::Serving | State::Ending => {}
            }
            // A peer that does not read gets nothing new: its answers and its notifications wait.
            let room = self.way.has_room();
            tokio::select! {
                biased;
                Some((exchange, response)) = self.pending.next(), if room => {
                    self.respond(exchange, response);
                }
                one = news.recv(), if room => self.on_news(one),
                // It ends with each flush too, after which there is room again.
                stepped = self.way.step() => stepped?,
                // An acknowledgement is no output, so this looks whether all have come.
                () = tokio::time::sleep(END_LOOK), if self.state == State::Ending => {}
            }
        }
    }
    /// The server ends.
    fn end(&mut self) {
        self.state = State::Ending;
        // RFC 7641 s4.2: an error tells observers that no more notifications come.
        self.way.all_changed();
        self.way.release();
    }
    fn on_news(&mut self, news: Result<News, RecvError>) {
        match news {
            Ok(News::Changed(path)) => self.way.changed(&path),
            Ok(News::RequestChanged(request)) => self.way.request_changed(&request),
            Ok(News::Inspected(tell)) => {
                // The caller may be gone.
                let _gone = tell.send(self.way.report());
            }
            // What was missed may be any change.
            Err(RecvError::Lagged(_)) => self.way.all_changed(),
            Err(RecvError::Closed) => {}
        }
    }
    fn on_output(&mut self, output: Output<Peer>) {
        match output {
            Output::Request { exchange, from, message, multicast } => {
                self.site.totals.asked();
                self.journal.asked(exchange, from, &message);
                if self.state != State::Serving {
                    self.decline(exchange, multicast);
                    return;
                }
                let proven = self.way.is_proven(from);
                match self.site.ask(from, proven, message, multicast, exchange.is_refresh()) {
                    Outcome::Reply(Reply::Now(response), finish) => {
                        self.respond(exchange, finish.apply(response));
                    }
                    Outcome::Reply(Reply::Later(answer), finish) => {
                        // An answer that is never polled has no effects.
                        match self.way.defer(exchange) {
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
            Output::Close { .. } => self.state = State::Over,
            // A server ignores what becomes of its answers.
            _ => {}
        }
    }
    /// The server ends and accepts no more requests. RFC 7252 s5.9.3.4: the 5.03 says when to try again.
    fn decline(&mut self, exchange: ExchangeId, multicast: bool) {
        if multicast {
            self.pass_over(exchange);
        } else {
            self.respond(exchange, ResponseTemplate::busy());
        }
    }
    /// A request stays without an answer.
    fn pass_over(&mut self, exchange: ExchangeId) {
        self.journal.declined(exchange);
        let _expired = self.way.handle(Input::Decline { exchange });
    }
    fn respond(&mut self, exchange: ExchangeId, response: ResponseTemplate) {
        let handle = Handle::NONE;
        self.site.totals.answered(response.code);
        let block1 = self.way.request_block(exchange);
        let entry = self.journal.answered(exchange, &response);
        // The client may be gone. An answer that cannot be sent, as one that is too long, is the fault of the application.
        if self.way.handle(Input::Respond { exchange, response, handle }).is_err() {
            let response = ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR);
            let _gone = self.way.handle(Input::Respond { exchange, response, handle });
        }
        if let Some(entry) = entry {
            self.journal.write(entry, block1, self.way.response_block());
        }
    }
}

async fn finished(
    exchange: ExchangeId,
    answer: impl Future<Output = ResponseTemplate>,
    finish: Finish,
) -> (ExchangeId, ResponseTemplate) {
    (exchange, finish.apply(answer.await))
}
