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

use super::target::{Place, Target};

/// Connections kept for one host.
const PER_HOST_MAX: usize = 32;
/// Connections kept in all.
const ALL_MAX: usize = 2_048;
/// How long one is kept: less than what servers usually allow.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long the last exchange may take to be over for both sides.
const READY_MAX: Duration = Duration::from_millis(50);

/// A connection on which HTTP/1.1 is spoken; dropped, it is closed.
pub(super) struct Connection {
    /// Sends requests.
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// Reads and writes.
    #[expect(dead_code, reason = "held for its drop, which ends the connection")]
    pub(super) driver: AbortOnDropHandle<()>,
}

type Key = (bool, Place, u16);

#[derive(Default)]
struct Waiting {
    by_host: HashMap<Key, Vec<(Connection, Instant)>>,
    count: usize,
    swept: bool,
}

/// The connections kept.
#[derive(Default)]
pub(super) struct Kept(Mutex<Waiting>);

impl Kept {
    /// A connection to a target that can be used, if one is kept: the one that waited the least.
    pub(super) async fn take(&self, target: &Target) -> Option<Connection> {
        let key = target.key();
        loop {
            let mut connection = self.pop(&key)?;
            let ready = match connection.sender.ready().now_or_never() {
                Some(ready) => ready.is_ok(),
                None => {
                    matches!(tokio::time::timeout(READY_MAX, connection.sender.ready()).await, Ok(Ok(())))
                }
            };
            if ready {
                return Some(connection);
            }
        }
    }

    fn pop(&self, key: &Key) -> Option<Connection> {
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
    pub(super) fn put(self: &Arc<Self>, target: &Target, connection: Option<Connection>) {
        let Some(connection) = connection.filter(|connection| !connection.sender.is_closed()) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.count >= ALL_MAX {
            return;
        }
        let line = waiting.by_host.entry(target.key()).or_default();
        if line.len() >= PER_HOST_MAX {
            return;
        }
        line.push((connection, Instant::now()));
        waiting.count = waiting.count.saturating_add(1);
        if !std::mem::replace(&mut waiting.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Lets go of what waited too long, or was closed from the other side. Whether anything is left.
    fn sweep(&self) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        for line in waiting.by_host.values_mut() {
            line.retain(|(connection, since)| {
                !connection.sender.is_closed() && now.saturating_duration_since(*since) < IDLE_MAX
            });
        }
        waiting.by_host.retain(|_, line| !line.is_empty());
        waiting.count = waiting.by_host.values().map(Vec::len).sum();
        waiting.swept = waiting.count > 0;
        waiting.swept
    }
}

async fn sweep(kept: std::sync::Weak<Kept>) {
    loop {
        tokio::time::sleep(IDLE_MAX / 4).await;
        if !kept.upgrade().is_some_and(|kept| kept.sweep()) {
            return;
        }
    }
}
