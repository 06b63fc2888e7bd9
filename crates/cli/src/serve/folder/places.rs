//! Places for requests that use the disk: a total, and a share for one source (an IPv4 address or an IPv6 /64).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_net::source::Source;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::reply::lock;

/// Requests that read or write files at a time; ours, each a thread.
const WORKING_MAX: usize = 16;
/// How many of them may come from one source; ours, a quarter.
const WORKING_PER_SOURCE: usize = 4;
/// How long a request waits for a place before it is answered with 5.03; ours.
const WAIT: Duration = Duration::from_secs(5);

/// All places.
pub struct Places {
    all: Arc<Semaphore>,
    sources: Mutex<HashMap<Source, Arc<Semaphore>>>,
}

/// A place that is taken until it is dropped.
pub struct Taken {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(WORKING_MAX)), sources: Mutex::default() }
    }
}

impl Places {
    /// A place for a request of this source, as soon as there is one; `None` after [`WAIT`].
    pub async fn take(&self, source: Source) -> Option<Taken> {
        let own = self.share(source);
        let taken = async {
            let own = own.acquire_owned().await.ok()?;
            let of_all = self.all.clone().acquire_owned().await.ok()?;
            Some(Taken { _own: own, _of_all: of_all })
        };
        tokio::time::timeout(WAIT, taken).await.ok().flatten()
    }
    fn share(&self, source: Source) -> Arc<Semaphore> {
        let mut sources = lock(&self.sources);
        // Sources without a request under way are forgotten.
        sources.retain(|_, share| Arc::strong_count(share) > 1);
        let share = sources.entry(source);
        share.or_insert_with(|| Arc::new(Semaphore::new(WORKING_PER_SOURCE))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(host: usize) -> Source {
        Source::of(([192, 0, 2, host as u8], 1).into())
    }

    /// A place that is free now.
    async fn free(places: &Places, source: Source) -> Option<Taken> {
        tokio::time::timeout(Duration::from_millis(10), places.take(source)).await.ok().flatten()
    }

    #[tokio::test]
    async fn one_source_takes_its_share_and_leaves_the_others_theirs() {
        let places = Places::default();
        let mut taken = Vec::new();
        for host in 0..WORKING_MAX / WORKING_PER_SOURCE {
            for _ in 0..WORKING_PER_SOURCE {
                taken.push(free(&places, v4(host)).await.expect("its share"));
            }
            assert!(free(&places, v4(host)).await.is_none(), "no more than its share");
        }
        assert!(free(&places, v4(99)).await.is_none(), "all are taken");
        taken.pop();
        assert!(free(&places, v4(99)).await.is_some());
        drop(taken);
        let _one = free(&places, v4(1)).await;
        assert_eq!(lock(&places.sources).len(), 1, "a source that has gone is forgotten");
    }

    #[tokio::test]
    async fn the_addresses_of_one_ipv6_prefix_share_what_one_source_has() {
        let places = Places::default();
        let v6 = |prefix, host| Source::of(([0x2001, 0xdb8, 0, prefix, 0, 0, 0, host], 1).into());
        let mut taken = Vec::new();
        for host in 0..WORKING_MAX as u16 {
            taken.extend(free(&places, v6(1, host)).await);
        }
        assert_eq!(taken.len(), WORKING_PER_SOURCE);
        assert!(free(&places, v6(2, 1)).await.is_some(), "another prefix");
    }
}
