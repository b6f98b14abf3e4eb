//! HTTP client against hostile receivers: every exchange is bounded, and errors are classified.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dns::resolver::{Resolver, ResolverSettings};
use net::http_client::{
    HttpClient, HttpClientError, HttpClientSettings, HttpPost, HttpResponse, RESPONSE_BYTES_MAX, RequestIdempotency,
    UrlRules,
};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::zone::NameServer;

const OPEN: UrlRules = UrlRules { allow_private: true, allow_http: true };
/// Long enough for loopback on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);

async fn poster(zone: &str, rules: UrlRules, roots: Option<RootCertStore>) -> (NameServer, HttpClient) {
    let server = NameServer::start(zone).await;
    let settings = ResolverSettings { servers: vec![server.address], ..ResolverSettings::default() };
    let resolver = Resolver::new(&settings).unwrap();
    (server, HttpClient::new(resolver, HttpClientSettings { rules, roots, ..HttpClientSettings::default() }).unwrap())
}

fn post(url: String, timeout: Duration) -> HttpPost {
    HttpPost {
        url,
        headers: vec![("service-signature", "t=1,v1=00".to_owned())],
        body: Bytes::from_static(b"{\"type\":\"email.sent\"}"),
        timeout,
        idempotency: RequestIdempotency::Idempotent,
    }
}

/// Reads one request: head and body.
async fn request<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

/// Starts a receiver that handles each connection's first request with `answer`, and counts connections.
async fn receiver<F, Fut>(answer: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(BufReader<TcpStream>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = BufReader::new(stream);
            if request(&mut stream).await.is_some() {
                tokio::spawn(answer(stream));
            }
        }
    });
    (address, count)
}

/// Posts to a receiver that handles requests with `answer`.
async fn outcome<F, Fut>(timeout: Duration, answer: F) -> Result<HttpResponse, HttpClientError>
where
    F: Fn(BufReader<TcpStream>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (address, _) = receiver(answer).await;
    let (_dns, poster) = poster("", OPEN, None).await;
    poster.post(post(format!("http://{address}/hook"), timeout)).await
}

async fn reply(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    let _ = stream.write_all(text.as_bytes()).await;
}

#[tokio::test]
async fn requests_are_complete_and_connections_reused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = tokio::spawn(async move {
        let mut stream = BufReader::new(listener.accept().await.unwrap().0);
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(request(&mut stream).await.unwrap());
            reply(&mut stream, "HTTP/1.1 200 OK\r\nretry-after: 7\r\ndate: Thu, 01 Jan 2026 10:00:00 GMT\r\ncontent-length: 2\r\n\r\nok").await;
        }
        requests
    });
    let (_dns, poster) = poster("", OPEN, None).await;
    for _ in 0..3 {
        let answer = poster.post(post(format!("http://{address}/hook?a=b"), AMPLE)).await.unwrap();
        let at = Some("2026-01-01T10:00:00Z".parse().unwrap());
        assert_eq!(
            answer,
            HttpResponse {
                status: 200,
                retry_after_s: Some(7),
                date: at,
                content_type: None,
                body: Bytes::from_static(b"ok"),
                is_complete: true
            }
        );
    }
    let requests = requests.await.unwrap();
    let (head, body) = &requests[2];
    assert!(head.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{head}");
    for field in [
        &format!("host: {address}\r\n"),
        "content-type: application/json\r\n",
        "service-signature: t=1,v1=00\r\n",
        "user-agent: postrider/",
    ] {
        assert!(head.contains(field), "{head}");
    }
    assert_eq!(body, "{\"type\":\"email.sent\"}");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let (address, count) = receiver(|mut stream| async move {
        reply(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n").await;
        // A second request on the connection finds it closed, before or while it is sent.
    })
    .await;
    let (_dns, poster) = poster("", OPEN, None).await;
    for _ in 0..5 {
        assert_eq!(poster.post(post(format!("http://{address}/"), AMPLE)).await.unwrap().status, 204);
    }
    assert_eq!(count.load(Ordering::SeqCst), 5);
}

/// The receiver keeps its connections open and accepts a second request without a response.
#[tokio::test]
async fn only_idempotent_requests_are_repeated() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let (address, _) = receiver(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            if request(&mut stream).await.is_some() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let (_dns, poster) = poster("", OPEN, None).await;
    let times = async |idempotency: RequestIdempotency| {
        let before = requests.load(Ordering::SeqCst);
        let post = HttpPost { idempotency, ..post(format!("http://{address}/"), AMPLE) };
        assert_eq!(poster.post(post).await.unwrap().status, 200);
        requests.load(Ordering::SeqCst) - before
    };
    assert_eq!(times(RequestIdempotency::Idempotent).await, 1);
    // Sent over the idle connection and, since that is closed, over another one.
    assert_eq!(times(RequestIdempotency::Idempotent).await, 2);
    assert_eq!(times(RequestIdempotency::NonIdempotent).await, 1);
    assert_eq!(times(RequestIdempotency::NonIdempotent).await, 1);
}

#[tokio::test]
async fn slow_responses_time_out() {
    let short = Duration::from_millis(300);
    let stalled = outcome(short, |stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    });
    assert_eq!(stalled.await, Err(HttpClientError::Timeout(short)));
    let dripped = outcome(short, |mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\nbegun").await;
        let mut drops = tokio::time::interval(Duration::from_millis(10));
        while stream.write_all(b"x").await.is_ok() {
            drops.tick().await;
        }
    });
    // The status was received: it counts, with the part of the body received.
    let answer = dripped.await.unwrap();
    assert!(answer.status == 200 && answer.body.starts_with(b"begunx"), "{answer:?}");
    let dripped = outcome(short, |mut stream| async move {
        let mut drops = tokio::time::interval(Duration::from_millis(10));
        for byte in "HTTP/1.1 200 OK\r\nx: ".bytes().chain(std::iter::repeat(b'x')) {
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
            drops.tick().await;
        }
    });
    assert_eq!(dripped.await, Err(HttpClientError::Timeout(short)));
}

#[tokio::test]
async fn an_endless_response_is_truncated() {
    let (closed, closed_receiver) = tokio::sync::oneshot::channel();
    let closed = Arc::new(parking_lot::Mutex::new(Some(closed)));
    let answer = outcome(AMPLE, move |mut stream| {
        let closed = Arc::clone(&closed);
        async move {
            reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n").await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            closed.lock().take().unwrap().send(()).unwrap();
        }
    });
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, RESPONSE_BYTES_MAX));
    // The connection was closed rather than read on.
    closed_receiver.await.unwrap();
    let chunked = outcome(AMPLE, |mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"3\r\nabc\r\n").await.is_ok() {}
    });
    assert_eq!(chunked.await.unwrap().body.len(), RESPONSE_BYTES_MAX);
}

#[tokio::test]
async fn endless_heads_are_refused() {
    let one_field = outcome(AMPLE, |mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    assert!(matches!(one_field.await, Err(HttpClientError::ConnectionFailed(_))));
    let many_headers = outcome(AMPLE, |mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"x: y\r\n").await.is_ok() {}
    });
    assert!(matches!(many_headers.await, Err(HttpClientError::ConnectionFailed(_))));
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let (redirect_target, visits) = receiver(|_| async {}).await;
    for status in [301, 302, 303, 307, 308] {
        let answer = outcome(AMPLE, move |mut stream| async move {
            let text =
                format!("HTTP/1.1 {status} Go\r\nlocation: http://{redirect_target}/\r\ncontent-length: 0\r\n\r\n");
            reply(&mut stream, &text).await;
        });
        assert_eq!(answer.await.unwrap().status, status);
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn dropped_connections_and_other_protocols_fail() {
    let dropped = outcome(AMPLE, |stream| async move { drop(stream) }).await;
    assert!(matches!(dropped, Err(HttpClientError::ConnectionFailed(_))), "{dropped:?}");
    let other = outcome(AMPLE, |mut stream| async move {
        reply(&mut stream, "220 mail.example ESMTP\r\n").await;
    });
    assert!(matches!(other.await, Err(HttpClientError::ConnectionFailed(_))));
    let half = outcome(AMPLE, |mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    });
    let answer = half.await.unwrap();
    assert_eq!((answer.status, answer.body), (200, Bytes::from_static(b"half")));
    let (_dns, poster) = poster("", OPEN, None).await;
    let dead_address = super::script::dead_end().await;
    let refused = poster.post(post(format!("http://{dead_address}/"), AMPLE)).await;
    assert!(matches!(refused, Err(HttpClientError::ConnectionFailed(_))), "{refused:?}");
}

#[tokio::test]
async fn names_of_private_addresses_are_refused() {
    let zone = "
        private.example A 10.0.0.1
        meta.example A 169.254.169.254
        six.example AAAA ::ffff:127.0.0.1
        nat64.example AAAA 64:ff9b::a9fe:a9fe
        ula.example AAAA fd00:ec2::254
        alias.example CNAME private.example.
        cgnat.example A 100.64.0.1
        teredo.example AAAA 2001:0:4136:e378:8000:63bf:3fff:fdd2
        sixtofour.example AAAA 2002:7f00:1::1
        compatible.example AAAA ::127.0.0.1
        zero.example A 0.0.0.0
        several.example A 127.0.0.1
        several.example AAAA ::1";
    let (_dns, poster) = poster(zone, UrlRules::default(), None).await;
    for host in [
        "private",
        "meta",
        "six",
        "nat64",
        "ula",
        "alias",
        "cgnat",
        "teredo",
        "sixtofour",
        "compatible",
        "zero",
        "several",
    ] {
        // A trailing dot of the root is the same name.
        for end in ["", "."] {
            let refused = poster.post(post(format!("https://{host}.example{end}/"), AMPLE)).await;
            assert!(matches!(refused, Err(HttpClientError::NotPublic(_))), "{host}{end}: {refused:?}");
        }
    }
    let nowhere = poster.post(post("https://nowhere.example/".to_owned(), AMPLE)).await;
    assert!(matches!(nowhere, Err(HttpClientError::ConnectionFailed(_))), "{nowhere:?}");
    for host in ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "127.0.0.1.", "[::ffff:7f00:1]", "localhost."] {
        let literal = poster.post(post(format!("https://{host}/"), AMPLE)).await;
        assert!(matches!(literal, Err(HttpClientError::Url(_))), "{host}: {literal:?}");
    }
    let clear = poster.post(post("http://private.example/".to_owned(), AMPLE)).await;
    assert!(matches!(clear, Err(HttpClientError::Url(_))), "{clear:?}");
}

/// A name is resolved once, so a second DNS answer cannot redirect the connection (DNS rebinding).
#[tokio::test]
async fn a_name_is_resolved_once() {
    let (address, _) = receiver(|mut stream| async move {
        reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    })
    .await;
    let (dns, poster) = poster("rebind.example 0 A 127.0.0.1", OPEN, None).await;
    let url = format!("http://rebind.example:{}/", address.port());
    poster.post(post(url, AMPLE)).await.unwrap();
    // One query each for A and AAAA.
    assert!(dns.queries() <= 2, "{}", dns.queries());
}

async fn over_tls(names: &str) -> (SocketAddr, RootCertStore) {
    let certified = rcgen::generate_simple_self_signed([names.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut stream = BufReader::new(stream);
            if request(&mut stream).await.is_some() {
                reply(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    });
    (address, roots)
}

#[tokio::test]
async fn certificates_are_checked() {
    let rules = UrlRules { allow_private: true, allow_http: false };
    let zone = "*.example A 127.0.0.1";
    let (address, roots) = over_tls("good.example").await;
    let port = address.port();
    let (_dns, trusting) = poster(zone, rules, Some(roots)).await;
    let trusted = trusting.post(post(format!("https://good.example:{port}/"), AMPLE)).await;
    assert_eq!(trusted.unwrap().status, 200);
    let other = trusting.post(post(format!("https://other.example:{port}/"), AMPLE)).await;
    assert!(matches!(&other, Err(HttpClientError::ConnectionFailed(why)) if why.contains("TLS")), "{other:?}");
    let (_dns, public) = poster(zone, rules, None).await;
    let unknown = public.post(post(format!("https://good.example:{port}/"), AMPLE)).await;
    assert!(matches!(&unknown, Err(HttpClientError::ConnectionFailed(why)) if why.contains("TLS")), "{unknown:?}");
    // The host does not speak TLS.
    let (clear, _) = receiver(|_| async {}).await;
    let plain = public.post(post(format!("https://good.example:{}/", clear.port()), Duration::from_millis(500)));
    assert!(plain.await.is_err());
}
