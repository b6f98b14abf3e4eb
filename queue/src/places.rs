//! Places: as many as there are may be held at a time. How many there are may change while they are held.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
struct Count {
    all: u32,
    /// Held beyond those there are, since they became fewer.
    too_many: u32,
}

/// Places, all alike.
#[derive(Debug)]
pub(crate) struct Places {
    count: Mutex<Count>,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// One of them, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    of: Arc<Places>,
    /// None only while it is dropped, or where there were no places any more.
    permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(all: u32) -> Self {
        Self {
            count: Mutex::new(Count { all, too_many: 0 }),
            free: Arc::new(Semaphore::new(all as usize)),
            waiting: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how many there are. Those held beyond them are not taken away; they are the last of their kind.
    pub(crate) fn limit(&self, wanted: u32) {
        let mut count = self.lock();
        if wanted >= count.all {
            let more = wanted - count.all;
            let settled = more.min(count.too_many);
            count.too_many -= settled;
            self.free.add_permits((more - settled) as usize);
        } else {
            let fewer = count.all - wanted;
            let gone = self.free.forget_permits(fewer as usize);
            count.too_many += fewer.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        count.all = wanted;
    }

    /// How many there are.
    pub(crate) fn all(&self) -> u32 {
        self.lock().all
    }

    /// Whether somebody waits for one.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits for one; who waits longest gets the next.
    pub(crate) async fn take(self: &Arc<Self>) -> Place {
        /// Counts who waits, also who gives up waiting.
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let of = Arc::clone(self);
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Place { of, permit: Some(permit) };
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        // It is never closed.
        Place { of, permit: Arc::clone(&self.free).acquire_owned().await.ok() }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut count = self.of.lock();
        if count.too_many > 0
            && let Some(permit) = self.permit.take()
        {
            count.too_many -= 1;
            permit.forget();
        }
    }
}
