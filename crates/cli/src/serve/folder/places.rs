//! Places for work that waits for a disk: some in all, and no more than a share of them for one client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::reply::lock;

/// Requests that read or write files at a time; ours, each a thread.
const WORKING_MAX: usize = 16;
/// How many of them may be of one client's address; ours.
const WORKING_PER_CLIENT: usize = 4;
/// How long a request waits for a place before it is answered with 5.03; ours.
const WAIT: Duration = Duration::from_secs(5);

/// All places.
pub struct Places {
    all: Arc<Semaphore>,
    clients: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// A place that is taken until it is dropped.
pub struct Taken {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(WORKING_MAX)), clients: Mutex::default() }
    }
}

impl Places {
    /// A place for a client, as soon as there is one; `None` after [`WAIT`].
    pub async fn take(&self, client: IpAddr) -> Option<Taken> {
        let own = self.share(client);
        let taken = async {
            let own = own.acquire_owned().await.ok()?;
            let of_all = self.all.clone().acquire_owned().await.ok()?;
            Some(Taken { _own: own, _of_all: of_all })
        };
        tokio::time::timeout(WAIT, taken).await.ok().flatten()
    }
    fn share(&self, client: IpAddr) -> Arc<Semaphore> {
        let mut clients = lock(&self.clients);
        // Those of whom nothing is under way are forgotten.
        clients.retain(|_, share| Arc::strong_count(share) > 1);
        let share = clients.entry(client.to_canonical());
        share.or_insert_with(|| Arc::new(Semaphore::new(WORKING_PER_CLIENT))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that is free now.
    async fn free(places: &Places, client: u8) -> Option<Taken> {
        let take = places.take(IpAddr::from([192, 0, 2, client]));
        tokio::time::timeout(Duration::from_millis(10), take).await.ok().flatten()
    }

    #[tokio::test]
    async fn one_client_takes_its_share_and_leaves_the_others_theirs() {
        let places = Places::default();
        let mut taken = Vec::new();
        for client in 0..(WORKING_MAX / WORKING_PER_CLIENT) as u8 {
            for _ in 0..WORKING_PER_CLIENT {
                taken.push(free(&places, client).await.expect("its share"));
            }
            assert!(free(&places, client).await.is_none(), "no more than its share");
        }
        assert!(free(&places, 99).await.is_none(), "all are taken");
        taken.pop();
        assert!(free(&places, 99).await.is_some());
        drop(taken);
        let _one = free(&places, 1).await;
        assert_eq!(lock(&places.clients).len(), 1, "who has gone is forgotten");
    }
}
