//! A resource's state, each time that it changes (RFC 7641).

use std::time::Duration;

use lowmesh_coap::Output;

use super::error::Error;
use super::exchange::Exchange;
use super::response::Response;
use crate::params::FAREWELL;

/// An observation. Dropped, it ends with the next notification, which is answered with RST (RFC 7641 s3.6).
#[derive(Debug)]
pub struct Observation {
    exchange: Exchange,
    first: Option<Response>,
}

impl Observation {
    pub(super) async fn begin(mut exchange: Exchange, patience: Duration) -> Result<Self, Error> {
        let first = exchange.answer_within(patience).await?.ok_or(Error::Unwanted)?.ok()?;
        Ok(Self { exchange, first: Some(first) })
    }
    /// The next state, the first one at once; of those that came while nobody asked the oldest may be left out. `None`
    /// when the server has ended the observation, or has never begun it: then there was one state. May be dropped and
    /// called again at any time.
    ///
    /// [`Error::Missed`] is no end: blocks of a long state have not come, and the next item is the state that was asked for
    /// afresh, or a later one.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            match self.exchange.next().await? {
                Ok(Output::Missed { from, reason, fault, .. }) => {
                    let peer = from.address;
                    let cause = match fault {
                        Some(fault) => Error::Fault { peer, fault },
                        None => Error::Failed { peer, reason },
                    };
                    return Some(Err(Error::Missed(Box::new(cause))));
                }
                Ok(output) => {
                    if let Some(response) = Response::of(output) {
                        return Some(response.ok());
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
    /// Ends the observation at the server or the group, and waits a short time for the response.
    pub async fn end(self) {
        deregister(self.exchange).await;
    }
}

/// The observation of all members of a group (RFC 10020 s3.7). Dropped, it ends with the next notification of each.
#[derive(Debug)]
pub struct GroupObservation {
    exchange: Exchange,
}

impl GroupObservation {
    pub(super) const fn new(exchange: Exchange) -> Self {
        Self { exchange }
    }
    /// The next state of some member, or its error; a member that answers without Observe does not observe. `None` when the
    /// observation is over. May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        self.exchange.answer().await
    }
    /// Tells the group that nobody observes any more, and waits a little.
    pub async fn end(self) {
        deregister(self.exchange).await;
    }
}

async fn deregister(mut exchange: Exchange) {
    exchange.deregister().await;
    let farewell = async { while exchange.next().await.is_some() {} };
    // A server that does not answer any more may still have got the message.
    let _in_time = tokio::time::timeout(FAREWELL, farewell).await;
}
