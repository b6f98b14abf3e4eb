//! One connection: HTTP/1.1 or HTTP/2 by hyper, and the timer that bounds its life.
//!
//! hyper bounds size and time of the header section of an HTTP/1 request; that time limit also closes an idle
//! keep-alive connection. The timer adds the rest: a time limit for the first request in any version, an idle timeout
//! for HTTP/2, a maximum age, and a forced close after a graceful one.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::ResponseBody;
use super::header_limits;
use super::write_timeout::WriteTimeout;

/// Bytes of a header section that hyper reads, and so the HTTP/1 read buffer; more than the API accepts
/// ([`super::header_limits`]).
const HEAD_BYTES_READ_MAX: usize = 2 * header_limits::HEAD_BYTES_MAX;
/// Header fields that hyper reads; more than the API accepts.
const FIELDS_READ_MAX: usize = 2 * header_limits::FIELDS_MAX;
/// Time limit for the header section of a request; also the idle timeout of HTTP/1.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Idle timeout of HTTP/2.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// Maximum age of a connection; then it ends after its current request. So clients spread again behind a load
/// balancer, and a slow reader does not stay connected indefinitely.
const AGE_MAX: Duration = Duration::from_secs(3_600);
/// Concurrent requests of an HTTP/2 connection. After a reset by the client the stream is closed, but its handler
/// runs on (`dispatch` of the crate `api`). So each request holds a [`RequestPermit`] until its handler ends: a client that
/// resets endlessly (CVE-2023-44487) causes no more concurrent work than any other. h2 counts resets of streams that
/// were not yet accepted, and closes the connection.
const STREAMS_MAX: u32 = 100;
/// HTTP/2 flow-control window of a stream: bytes that the client may send before the handler reads.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// HTTP/2 flow-control window of the connection.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Interval of HTTP/2 pings, which detect a dead peer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A permit for one of the concurrent requests of a connection.
#[derive(Debug, Clone)]
pub struct RequestPermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// The shutdown of a listener, as its connections see it.
#[derive(Debug, Clone)]
pub struct ShutdownSignal {
    /// Cancelled at the start of the shutdown: no new requests are accepted.
    pub stop: CancellationToken,
    /// Time for requests in progress after that.
    pub drain_max: Duration,
}

/// Requests of a connection that began and ended.
#[derive(Debug, Default)]
struct RequestCounters {
    started: AtomicU64,
    ended: AtomicU64,
}

/// Counts a request as ended when it is dropped: it was answered, or the client gave up.
struct RequestGuard(Arc<RequestCounters>);

impl RequestGuard {
    fn begin(counters: &Arc<RequestCounters>) -> Self {
        counters.started.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counters))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The service of a listener. The type is erased, so that hyper's HTTP code is compiled once and not for each
/// listener.
pub type HttpService = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<ResponseBody>> + Send + Sync>;

/// Makes a service from an async function.
pub fn http_service<F>(handler: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> HttpService
where
    F: Future<Output = Response<ResponseBody>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

/// Serves a connection until it ends.
pub async fn serve_connection<T>(stream: T, handler: HttpService, ending: ShutdownSignal)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let counters = Arc::new(RequestCounters::default());
    let request_counters = Arc::clone(&counters);
    let permits = Arc::new(Semaphore::new(STREAMS_MAX as usize));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let guard = RequestGuard::begin(&request_counters);
        let (permits, handler) = (Arc::clone(&permits), Arc::clone(&handler));
        async move {
            let _guard = guard;
            if let Ok(permit) = permits.acquire_owned().await {
                request.extensions_mut().insert(RequestPermit { _permit: Arc::new(permit) });
            }
            Ok::<_, Infallible>(handler(request).await)
        }
    });
    let builder = builder();
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(WriteTimeout::new(stream)), service));
    let mut timer = ConnectionTimer::new(ending);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "connection ended");
                }
                return;
            }
            action = timer.next_action(&counters) => match action {
                ConnectionAction::Keep => {}
                ConnectionAction::Drain => connection.as_mut().graceful_shutdown(),
                ConnectionAction::Close => return,
            }
        }
    }
}

/// Decision of the timer about a connection.
enum ConnectionAction {
    /// Leave open.
    Keep,
    /// Close after the requests in progress.
    Drain,
    /// Close immediately.
    Close,
}

/// Bounds the time of a connection.
struct ConnectionTimer {
    opened_at: Instant,
    /// Time of the next check.
    next_check: Instant,
    /// Requests begun at the last check.
    requests_seen: u64,
    /// A graceful shutdown has begun; the connection is closed at `next_check`.
    draining: bool,
    shutdown: ShutdownSignal,
}

impl ConnectionTimer {
    fn new(shutdown: ShutdownSignal) -> Self {
        let now = Instant::now();
        Self { opened_at: now, next_check: now + HEAD_TIME_MAX, requests_seen: 0, draining: false, shutdown }
    }

    /// Waits for the next check or the shutdown.
    async fn next_action(&mut self, counters: &RequestCounters) -> ConnectionAction {
        tokio::select! {
            () = self.shutdown.stop.cancelled(), if !self.draining => return self.start_drain(self.shutdown.drain_max),
            () = tokio::time::sleep_until(self.next_check) => {}
        }
        let started = counters.started.load(Ordering::Relaxed);
        if self.draining || started == 0 {
            return ConnectionAction::Close;
        }
        let is_busy = started != counters.ended.load(Ordering::Relaxed);
        let is_idle = !is_busy && started == self.requests_seen;
        if is_idle || self.opened_at.elapsed() > AGE_MAX {
            return self.start_drain(IDLE_MAX);
        }
        self.requests_seen = started;
        self.next_check = Instant::now() + IDLE_MAX;
        ConnectionAction::Keep
    }

    fn start_drain(&mut self, rest: Duration) -> ConnectionAction {
        self.draining = true;
        self.next_check = Instant::now() + rest;
        ConnectionAction::Drain
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_READ_MAX)
        .max_headers(FIELDS_READ_MAX)
        // A client may close its write side after the request and still read the response.
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_READ_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
