//! Places for requests that use the disk: a total, and a share for one source (an IPv4 address or an IPv6 /64).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_net::source::Source;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

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
struct Taken {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(WORKING_MAX)), sources: Mutex::default() }
    }
}

impl Places {
    /// Works in a thread of its own, as soon as there is a place for a request of this source; `None` if there is none
    /// within [`WAIT`], and an error if the work panics.
    ///
    /// A task of its own waits for the place. So the place is never kept by a caller that is not polled, as one whose peer
    /// does not read. Nothing begins before the first poll; dropped before it has a place, nothing begins at all.
    pub async fn work<T: Send + 'static>(
        &self,
        source: Source,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, JoinError> {
        let taken = self.take(source);
        let mut alone = JoinSet::new();
        alone.spawn(async move {
            let Some(taken) = taken.await else { return Ok(None) };
            let working = tokio::task::spawn_blocking(move || {
                // Taken until the work is done, even if nobody waits for it any more.
                let _taken = taken;
                work()
            });
            working.await.map(Some)
        });
        alone.join_next().await.expect("a task has been started").flatten()
    }
    /// A place for a request of this source, as soon as there is one; `None` after [`WAIT`].
    fn take(&self, source: Source) -> impl Future<Output = Option<Taken>> + Send + use<> {
        let (own, all) = (self.share(source), self.all.clone());
        let taken = async {
            let own = own.acquire_owned().await.ok()?;
            let of_all = all.acquire_owned().await.ok()?;
            Some(Taken { _own: own, _of_all: of_all })
        };
        async { tokio::time::timeout(WAIT, taken).await.ok().flatten() }
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
        Source::of([192, 0, 2, host as u8].into())
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
    async fn a_request_that_is_not_polled_keeps_no_place() {
        let places = Places::default();
        let mut taken = Vec::new();
        for _ in 0..WORKING_PER_SOURCE {
            taken.push(free(&places, v4(1)).await.expect("its share"));
        }
        // Its answer is not looked at again, since its peer does not read.
        let mut unread = Box::pin(places.work(v4(1), || ()));
        let soon = Duration::from_millis(10);
        assert!(tokio::time::timeout(soon, &mut unread).await.is_err(), "it waits");
        taken.pop();
        let next = places.work(v4(1), || 7);
        let next = tokio::time::timeout(WAIT / 2, next).await.expect("the place is free again");
        assert_eq!(next.expect("no panic"), Some(7));
        assert_eq!(unread.await.expect("no panic"), Some(()), "it is done meanwhile");
    }

    #[tokio::test]
    async fn a_request_that_is_dropped_while_it_waits_does_nothing() {
        let places = Places::default();
        let mut taken = Vec::new();
        for _ in 0..WORKING_PER_SOURCE {
            taken.push(free(&places, v4(1)).await.expect("its share"));
        }
        let done = Arc::new(Mutex::new(false));
        let works = done.clone();
        let dropped = places.work(v4(1), move || *lock(&works) = true);
        assert!(tokio::time::timeout(Duration::from_millis(10), dropped).await.is_err());
        taken.clear();
        assert_eq!(places.work(v4(1), || ()).await.expect("no panic"), Some(()));
        assert!(!*lock(&done));
    }

    #[tokio::test]
    async fn the_addresses_of_one_ipv6_prefix_share_what_one_source_has() {
        let places = Places::default();
        let v6 = |prefix, host| Source::of([0x2001, 0xdb8, 0, prefix, 0, 0, 0, host].into());
        let mut taken = Vec::new();
        for host in 0..WORKING_MAX as u16 {
            taken.extend(free(&places, v6(1, host)).await);
        }
        assert_eq!(taken.len(), WORKING_PER_SOURCE);
        assert!(free(&places, v6(2, 1)).await.is_some(), "another prefix");
    }
}
