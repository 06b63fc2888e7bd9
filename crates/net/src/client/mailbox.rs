//! What comes of one request, from the task that has its transport to the caller.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lowmesh_coap::Output;
use lowmesh_wire::coap::OptionNumber;
use tokio::sync::Notify;

use super::error::Error;
use crate::params::MAILBOX_MAX;
use crate::peer::Peer;

/// One thing that came.
pub type Item = Result<Output<Peer>, Error>;

/// What came and was not looked at yet, oldest first. Past [`MAILBOX_MAX`] notifications make room for newer ones: an
/// observer needs the newest state, and not each (RFC 7641 s1.3). Other answers of a group are lost.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    event: Notify,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    over: bool,
}

/// Whether it is the state of an observed resource, of a server or of a member of a group.
fn is_state(item: &Item) -> bool {
    match item {
        Ok(Output::Notification { .. }) => true,
        Ok(Output::GroupResponse { message, .. }) => {
            message.options.get(OptionNumber::OBSERVE).is_some()
        }
        _ => false,
    }
}

impl Mailbox {
    /// Something came, and more may.
    pub fn put(&self, output: Output<Peer>) {
        let mut state = self.lock();
        if state.items.len() >= MAILBOX_MAX {
            match state.items.iter().position(is_state) {
                Some(oldest) => drop(state.items.remove(oldest)),
                None => return,
            }
        }
        state.items.push_back(Ok(output));
        drop(state);
        self.event.notify_one();
    }
    /// The last thing.
    pub fn finish(&self, item: Item) {
        let mut state = self.lock();
        if !state.over {
            state.over = true;
            state.items.push_back(item);
        }
        drop(state);
        self.event.notify_one();
    }
    /// The next thing; `None` behind the last. May be dropped and called again at any time.
    pub async fn next(&self) -> Option<Item> {
        loop {
            let event = self.event.notified();
            {
                let mut state = self.lock();
                match state.items.pop_front() {
                    Some(item) => return Some(item),
                    None if state.over => return None,
                    None => {}
                }
            }
            event.await;
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two operations.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
