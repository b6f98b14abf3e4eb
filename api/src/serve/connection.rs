//! One connection: HTTP/1.1 or HTTP/2 by hyper, and the watch over its time.
//!
//! hyper bounds the head of an HTTP/1 request in size and time (that time also ends an idle
//! keep-alive). The watch adds what it does not: a first request in time whatever the version, an
//! end for an idle HTTP/2 connection, a greatest age, and a hard end after a polite one.

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
use super::head;
use super::stall::WriteTimeout;

/// What hyper reads of a head, and so an HTTP/1 connection's read buffer: more than we take ([`super::head`]).
const HEAD_BYTES_READ_MAX: usize = 2 * head::HEAD_BYTES_MAX;
/// The same for its fields.
const FIELDS_READ_MAX: usize = 2 * head::FIELDS_MAX;
/// How long the head of a request may take; also how long an HTTP/1 connection may stay idle.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an HTTP/2 connection may stay idle.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// A connection older than this is asked to end after its request, so that clients spread out again
/// behind a load balancer, and no slow reader stays for ever.
const AGE_MAX: Duration = Duration::from_secs(3_600);
/// Requests at once on an HTTP/2 connection. A stream that the client resets is closed for HTTP/2, but what
/// was begun for it is not stopped half way ([`crate::dispatch`]): so each request takes a [`Place`] that goes back
/// when its work is done, and a client that resets without end (CVE-2023-44487) keeps no more at work than
/// one that does not. Resets of what was not even looked at are counted by h2, which ends the connection.
const STREAMS_MAX: u32 = 100;
/// HTTP/2 flow-control window of a stream: what it may send before the handler reads.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The same for the connection.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Pings of HTTP/2, so that a peer that is gone is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// And how long their answer may take.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A place among the requests that may be at work for one connection.
#[derive(Debug, Clone)]
pub struct RequestPermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// How a connection is ended from outside.
#[derive(Debug, Clone)]
pub struct ShutdownSignal {
    /// No new requests.
    pub stop: CancellationToken,
    /// How long those that have begun may still take.
    pub drain_max: Duration,
}

/// What the watch sees of a connection.
#[derive(Debug, Default)]
struct RequestCounters {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A request that is being answered, until it is, or the client does not want to know any more.
struct RequestGuard(Arc<RequestCounters>);

impl RequestGuard {
    fn begin(pulse: &Arc<RequestCounters>) -> Self {
        pulse.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(pulse))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// What answers the requests of a listener. Its type is unsaid: HTTP is compiled once, and not for each of them.
pub type HttpService = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<ResponseBody>> + Send + Sync>;

/// Answers with this.
pub fn http_service<F>(answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> HttpService
where
    F: Future<Output = Response<ResponseBody>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)))
}

/// Serves a connection to its end.
pub async fn serve_connection<T>(stream: T, answer: HttpService, ending: ShutdownSignal)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pulse = Arc::new(RequestCounters::default());
    let beating = Arc::clone(&pulse);
    let places = Arc::new(Semaphore::new(STREAMS_MAX as usize));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let beat = RequestGuard::begin(&beating);
        let (places, answer) = (Arc::clone(&places), Arc::clone(&answer));
        async move {
            let _beat = beat;
            if let Ok(held) = places.acquire_owned().await {
                request.extensions_mut().insert(RequestPermit { _permit: Arc::new(held) });
            }
            Ok::<_, Infallible>(answer(request).await)
        }
    });
    let builder = builder();
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(WriteTimeout::new(stream)), service));
    let mut watch = ConnectionTimer::new(ending);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "connection ended");
                }
                return;
            }
            verdict = watch.next_action(&pulse) => match verdict {
                ConnectionAction::Keep => {}
                ConnectionAction::Drain => connection.as_mut().graceful_shutdown(),
                ConnectionAction::Close => return,
            }
        }
    }
}

/// What becomes of a connection.
enum ConnectionAction {
    /// Nothing.
    Keep,
    /// It ends after the requests that have begun.
    Drain,
    /// It ends now.
    Close,
}

/// Watches the time of a connection.
struct ConnectionTimer {
    opened_at: Instant,
    /// When to look again.
    next_check: Instant,
    /// How many requests there had been at the last look.
    requests_seen: u64,
    /// It was asked to leave: at `next` it is put out.
    draining: bool,
    shutdown: ShutdownSignal,
}

impl ConnectionTimer {
    fn new(shutdown: ShutdownSignal) -> Self {
        let now = Instant::now();
        Self { opened_at: now, next_check: now + HEAD_TIME_MAX, requests_seen: 0, draining: false, shutdown }
    }

    /// Waits for the next moment to look, and looks.
    async fn next_action(&mut self, pulse: &RequestCounters) -> ConnectionAction {
        tokio::select! {
            () = self.shutdown.stop.cancelled(), if !self.draining => return self.start_drain(self.shutdown.drain_max),
            () = tokio::time::sleep_until(self.next_check) => {}
        }
        let begun = pulse.begun.load(Ordering::Relaxed);
        if self.draining || begun == 0 {
            return ConnectionAction::Close;
        }
        let working = begun != pulse.ended.load(Ordering::Relaxed);
        let idle = !working && begun == self.requests_seen;
        if idle || self.opened_at.elapsed() > AGE_MAX {
            return self.start_drain(IDLE_MAX);
        }
        self.requests_seen = begun;
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
        // A client may close its half after the request and still read the answer.
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
