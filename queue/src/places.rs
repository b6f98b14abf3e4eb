//! Places: as many as there are may be held at a time. How many there are may change while they are held.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
struct PermitCount {
    total: u32,
    /// Held beyond those there are, since they became fewer.
    surplus: u32,
}

/// Places, all alike.
#[derive(Debug)]
pub(crate) struct ResizableSemaphore {
    count: Mutex<PermitCount>,
    free: Arc<Semaphore>,
    waiters: AtomicUsize,
}

/// One of them, held until it is dropped.
#[derive(Debug)]
pub(crate) struct ResizablePermit {
    semaphore: Arc<ResizableSemaphore>,
    /// None only while it is dropped, or where there were no places any more.
    permit: Option<OwnedSemaphorePermit>,
}

impl ResizableSemaphore {
    pub(crate) fn new(all: u32) -> Self {
        Self {
            count: Mutex::new(PermitCount { total: all, surplus: 0 }),
            free: Arc::new(Semaphore::new(all as usize)),
            waiters: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PermitCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how many there are. Those held beyond them are not taken away; they are the last of their kind.
    pub(crate) fn resize(&self, wanted: u32) {
        let mut count = self.lock();
        if wanted >= count.total {
            let more = wanted - count.total;
            let settled = more.min(count.surplus);
            count.surplus -= settled;
            self.free.add_permits((more - settled) as usize);
        } else {
            let fewer = count.total - wanted;
            let gone = self.free.forget_permits(fewer as usize);
            count.surplus += fewer.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        count.total = wanted;
    }

    /// How many there are.
    pub(crate) fn capacity(&self) -> u32 {
        self.lock().total
    }

    /// Whether somebody waits for one.
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Waits for one; who waits longest gets the next.
    pub(crate) async fn acquire(self: &Arc<Self>) -> ResizablePermit {
        /// Counts who waits, also who gives up waiting.
        struct WaiterCount<'a>(&'a AtomicUsize);
        impl Drop for WaiterCount<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let of = Arc::clone(self);
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return ResizablePermit { semaphore: of, permit: Some(permit) };
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let _waits = WaiterCount(&self.waiters);
        // It is never closed.
        ResizablePermit { semaphore: of, permit: Arc::clone(&self.free).acquire_owned().await.ok() }
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for ResizablePermit {
    fn drop(&mut self) {
        let mut count = self.semaphore.lock();
        if count.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            count.surplus -= 1;
            permit.forget();
        }
    }
}
