//! Resizable semaphore: a semaphore whose number of permits can change while permits are held.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
struct PermitCount {
    total: u32,
    /// Held permits above `total` after it was lowered.
    surplus: u32,
}

/// The semaphore; acquire it through an [`Arc`].
#[derive(Debug)]
pub struct ResizableSemaphore {
    count: Mutex<PermitCount>,
    free: Arc<Semaphore>,
    waiters: AtomicUsize,
}

/// A permit, released when dropped.
#[derive(Debug)]
pub struct ResizablePermit {
    semaphore: Arc<ResizableSemaphore>,
    /// `None` only while it is dropped.
    permit: Option<OwnedSemaphorePermit>,
}

impl ResizableSemaphore {
    pub fn new(all: u32) -> Self {
        Self {
            count: Mutex::new(PermitCount { total: all, surplus: 0 }),
            free: Arc::new(Semaphore::new(all as usize)),
            waiters: AtomicUsize::new(0),
        }
    }

    /// Changes the number of permits. Held permits above it stay valid and are removed when they are released.
    pub fn resize(&self, wanted: u32) {
        let mut count = self.count.lock();
        if wanted >= count.total {
            let added = wanted - count.total;
            let repaid = added.min(count.surplus);
            count.surplus -= repaid;
            self.free.add_permits((added - repaid) as usize);
        } else {
            let fewer = count.total - wanted;
            let removed = self.free.forget_permits(fewer as usize);
            count.surplus += fewer.saturating_sub(u32::try_from(removed).unwrap_or(u32::MAX));
        }
        count.total = wanted;
    }

    /// Total number of permits.
    pub fn capacity(&self) -> u32 {
        self.count.lock().total
    }

    /// True if a task waits for a permit.
    pub fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Waits for a permit, in FIFO order.
    pub async fn acquire(self: &Arc<Self>) -> ResizablePermit {
        /// Counts a waiter until it is dropped, so that a cancelled wait is counted out, too.
        struct WaiterCount<'a>(&'a AtomicUsize);
        impl Drop for WaiterCount<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let semaphore = Arc::clone(self);
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return ResizablePermit { semaphore, permit: Some(permit) };
        }
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let _waits = WaiterCount(&self.waiters);
        // The semaphore is never closed, so `acquire_owned` does not fail.
        ResizablePermit { semaphore, permit: Arc::clone(&self.free).acquire_owned().await.ok() }
    }

    /// Number of permits that nobody holds.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl Drop for ResizablePermit {
    fn drop(&mut self) {
        let mut count = self.semaphore.count.lock();
        if count.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            count.surplus -= 1;
            permit.forget();
        }
    }
}
