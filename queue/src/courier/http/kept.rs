//! Connections that wait for the next request: a few for each host, not for long, and not many in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::target::{UrlHost, UrlTarget};

/// Connections kept for one host.
const PER_HOST_MAX: usize = 32;
/// Connections kept in all.
const IDLE_CONNECTIONS_MAX: usize = 2_048;
/// How long one is kept: less than what servers usually allow.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the last exchange may take to be over for both sides.
const READY_TIMEOUT: Duration = Duration::from_millis(50);

/// A connection on which HTTP/1.1 is spoken; dropped, it is closed.
pub(super) struct HttpConnection {
    /// Sends requests.
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// Reads and writes.
    #[expect(dead_code, reason = "held for its drop, which ends the connection")]
    pub(super) driver: AbortOnDropHandle<()>,
}

type HttpPoolKey = (bool, UrlHost, u16);

#[derive(Default)]
struct IdleConnections {
    by_host: HashMap<HttpPoolKey, Vec<(HttpConnection, Instant)>>,
    count: usize,
    has_sweeper: bool,
}

/// The connections kept.
#[derive(Default)]
pub(super) struct HttpConnectionPool(Mutex<IdleConnections>);

impl HttpConnectionPool {
    /// A connection to a target that can be used, if one is kept: the one that waited the least.
    pub(super) async fn take(&self, target: &UrlTarget) -> Option<HttpConnection> {
        let key = target.pool_key();
        loop {
            let mut connection = self.pop(&key)?;
            let ready = match connection.sender.ready().now_or_never() {
                Some(ready) => ready.is_ok(),
                None => {
                    matches!(tokio::time::timeout(READY_TIMEOUT, connection.sender.ready()).await, Ok(Ok(())))
                }
            };
            if ready {
                return Some(connection);
            }
        }
    }

    fn pop(&self, key: &HttpPoolKey) -> Option<HttpConnection> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = waiting.by_host.get_mut(key)?;
        let taken = line.pop();
        if line.is_empty() {
            waiting.by_host.remove(key);
        }
        let (connection, _) = taken?;
        waiting.count = waiting.count.saturating_sub(1);
        Some(connection)
    }

    /// Keeps a connection for the next one; where there are enough, or it is closing, it is dropped.
    pub(super) fn put(self: &Arc<Self>, target: &UrlTarget, connection: Option<HttpConnection>) {
        let Some(connection) = connection.filter(|connection| !connection.sender.is_closed()) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.count >= IDLE_CONNECTIONS_MAX {
            return;
        }
        let line = waiting.by_host.entry(target.pool_key()).or_default();
        if line.len() >= PER_HOST_MAX {
            return;
        }
        line.push((connection, Instant::now()));
        waiting.count = waiting.count.saturating_add(1);
        if !std::mem::replace(&mut waiting.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Lets go of what waited too long, or was closed from the other side. Whether anything is left.
    fn sweep(&self) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        for line in waiting.by_host.values_mut() {
            line.retain(|(connection, since)| {
                !connection.sender.is_closed() && now.saturating_duration_since(*since) < IDLE_TIMEOUT
            });
        }
        waiting.by_host.retain(|_, line| !line.is_empty());
        waiting.count = waiting.by_host.values().map(Vec::len).sum();
        waiting.has_sweeper = waiting.count > 0;
        waiting.has_sweeper
    }
}

async fn sweep(kept: std::sync::Weak<HttpConnectionPool>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 4).await;
        if !kept.upgrade().is_some_and(|kept| kept.sweep()) {
            return;
        }
    }
}
