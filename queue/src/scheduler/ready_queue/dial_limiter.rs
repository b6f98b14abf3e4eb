//! Limits dials to hosts that have not answered yet: one at a time where a provider's connections are shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::limit::resizable_semaphore::ResizableSemaphore;
use tokio::sync::Notify;

use crate::scheduler::provider_limits::{ProviderConnectionPermit, ProviderLimits};

/// Limits the dials of one ready queue.
#[derive(Debug)]
pub(crate) struct DialLimiter {
    /// True if the hosts answered promptly at the last dial.
    is_responsive: AtomicBool,
    /// Notified when the hosts begin to answer.
    first_answer: Notify,
    /// Permit to dial hosts that have not answered yet.
    permits: Arc<ResizableSemaphore>,
}

impl DialLimiter {
    pub(super) fn new() -> Self {
        Self {
            is_responsive: AtomicBool::new(false),
            first_answer: Notify::new(),
            permits: Arc::new(ResizableSemaphore::new(1)),
        }
    }

    /// True if the hosts answered promptly at the last dial.
    pub(super) fn is_responsive(&self) -> bool {
        self.is_responsive.load(Ordering::Acquire)
    }

    /// Records whether the hosts answered promptly when dialled.
    pub(crate) fn record_dial(&self, answers: bool) {
        let answered_before = self.is_responsive.swap(answers, Ordering::AcqRel);
        if answers && !answered_before {
            self.first_answer.notify_waiters();
        }
    }

    /// Waits for a permit to open a connection. `provider` returns the limits that apply at present.
    pub(super) async fn acquire(&self, provider: impl Fn() -> Option<Arc<ProviderLimits>>) -> ProviderConnectionPermit {
        loop {
            let first_answer = self.first_answer.notified();
            let Some(provider) = provider() else { return ProviderConnectionPermit::UNLIMITED };
            if self.is_responsive() {
                let permit = provider.acquire().await;
                // The hosts may have stopped answering meanwhile.
                if self.is_responsive() {
                    return permit;
                }
                continue;
            }
            tokio::select! {
                permit = provider.acquire_for_dial(&self.permits) => return permit,
                () = first_answer => {}
            }
        }
    }
}
