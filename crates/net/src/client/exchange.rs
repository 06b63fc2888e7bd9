//! One request under way, in the hands of its caller.

use std::sync::Arc;
use std::time::Duration;

use lowmesh_coap::Output;
use lowmesh_coap::exchange::Repetition;
use lowmesh_machine::Handle;
use tokio::sync::mpsc;

use super::command::Command;
use super::error::Error;
use super::mailbox::{Item, Mailbox};
use super::response::Response;

/// A request in progress, step by step, for a caller that needs more than the response. Dropping it before its end
/// cancels it.
#[derive(Debug)]
pub struct Exchange {
    handle: Handle,
    mailbox: Arc<Mailbox>,
    commands: mpsc::Sender<Command>,
    over: bool,
}

impl Exchange {
    pub(super) const fn new(
        handle: Handle,
        mailbox: Arc<Mailbox>,
        commands: mpsc::Sender<Command>,
    ) -> Self {
        Self { handle, mailbox, commands, over: false }
    }
    /// What comes next of it: `Started`, `Acknowledged`, `Notification` and `GroupResponse`, and at last one of
    /// `Response`, `Pong`, `Over` and an error; then `None`. May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Item> {
        let item = self.mailbox.next().await;
        let last = matches!(
            item,
            None | Some(
                Err(_) | Ok(Output::Response { .. } | Output::Pong { .. } | Output::Over { .. })
            )
        );
        self.over |= last;
        item
    }
    /// The next answer, of whatever kind; `None` behind the last.
    pub(super) async fn answer(&mut self) -> Option<Result<Response, Error>> {
        while let Some(item) = self.next().await {
            match item.map(Response::of) {
                Ok(None) => {}
                Ok(Some(response)) => return Some(Ok(response)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
    /// What `wanted` finds of it, which has to be in time.
    pub(super) async fn within<T>(
        &mut self,
        patience: Duration,
        wanted: impl AsyncFn(&mut Self) -> T,
    ) -> T {
        if let Ok(found) = tokio::time::timeout(patience, wanted(self)).await {
            return found;
        }
        self.give_up(patience).await;
        wanted(self).await
    }
    /// The next answer, which has to come in time.
    pub(super) async fn answer_within(
        &mut self,
        patience: Duration,
    ) -> Result<Option<Response>, Error> {
        self.within(patience, Self::answer).await.transpose()
    }
    /// Ends it because nothing came within `wait`; what that means comes from [`Exchange::next`], if the answer does
    /// not come first after all.
    async fn give_up(&self, wait: Duration) {
        // The task that has the transport has ended it already.
        let _ended = self.commands.send(Command::GiveUp(self.handle, wait)).await;
    }
    /// Sends a request to a group again, and accepts responses for `wait` from now on (RFC 10020 s3.1.3). Nothing
    /// happens if it is over.
    pub async fn repeat(&self, repetition: Repetition, wait: Duration) {
        let _ended = self.commands.send(Command::Repeat(self.handle, repetition, wait)).await;
    }
    /// Ends the observation at the server (RFC 7641 s3.6); its response is the last event.
    pub async fn deregister(&self) {
        let _ended = self.commands.send(Command::Deregister(self.handle)).await;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            // Without room for the command, the task finds out when the next answer comes.
            let _full = self.commands.try_send(Command::Cancel(self.handle));
        }
    }
}
