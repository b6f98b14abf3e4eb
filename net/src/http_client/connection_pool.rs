//! Connection pool: idle HTTP connections, bounded for each host, in total and in time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::url_target::{UrlHost, UrlTarget};

/// Idle connections of one host.
const PER_HOST_MAX: usize = 32;
/// Idle connections in total.
const IDLE_CONNECTIONS_MAX: usize = 2_048;
/// Idle timeout; servers usually allow more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the previous exchange to finish.
const READY_TIMEOUT: Duration = Duration::from_millis(50);

/// An HTTP/1.1 connection, closed on drop.
pub(super) struct HttpConnection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// The task that drives the connection.
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

#[derive(Default)]
pub(super) struct HttpConnectionPool(Mutex<IdleConnections>);

impl HttpConnectionPool {
    /// Takes a usable connection to a target: the most recently used one.
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
        let mut waiting = self.0.lock();
        let idle = waiting.by_host.get_mut(key)?;
        let newest = idle.pop();
        if idle.is_empty() {
            waiting.by_host.remove(key);
        }
        let (connection, _) = newest?;
        waiting.count = waiting.count.saturating_sub(1);
        Some(connection)
    }

    /// Returns a connection to the pool. It is dropped if it is closing or the pool is full.
    pub(super) fn put(self: &Arc<Self>, target: &UrlTarget, connection: Option<HttpConnection>) {
        let Some(connection) = connection.filter(|connection| !connection.sender.is_closed()) else { return };
        let mut waiting = self.0.lock();
        if waiting.count >= IDLE_CONNECTIONS_MAX {
            return;
        }
        let idle = waiting.by_host.entry(target.pool_key()).or_default();
        if idle.len() >= PER_HOST_MAX {
            return;
        }
        idle.push((connection, Instant::now()));
        waiting.count = waiting.count.saturating_add(1);
        if !std::mem::replace(&mut waiting.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops connections that timed out or were closed by the peer. Returns whether any are left.
    fn sweep(&self) -> bool {
        let mut waiting = self.0.lock();
        let now = Instant::now();
        for idle in waiting.by_host.values_mut() {
            idle.retain(|(connection, since)| {
                !connection.sender.is_closed() && now.saturating_duration_since(*since) < IDLE_TIMEOUT
            });
        }
        waiting.by_host.retain(|_, idle| !idle.is_empty());
        waiting.count = waiting.by_host.values().map(Vec::len).sum();
        waiting.has_sweeper = waiting.count > 0;
        waiting.has_sweeper
    }
}

async fn sweep(pool: std::sync::Weak<HttpConnectionPool>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 4).await;
        if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
            return;
        }
    }
}
