//! The API over TLS: HTTP/2 and HTTP/1.1, a certificate change at run time, and the PROXY header before TLS.

use std::sync::Arc;

use api::state::{ApiOptions, ConnectionOptions};
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::world::{BASE_URL, Backend, store};

/// A server configuration with its own certificate, and a client configuration that trusts only that one.
fn tls_configs(alpn: &[&[u8]]) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    server.alpn_protocols = api::serve::alpn_protocols();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (Arc::new(server), Arc::new(client))
}

async fn connect(address: std::net::SocketAddr, client: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(client).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

#[tokio::test]
async fn both_versions_and_a_new_certificate() {
    let (server, client) = tls_configs(&[b"h2", b"http/1.1"]);
    let (give, tls) = watch::channel(server);
    let api_server = Backend::new(store().await).await.server(ApiOptions::new(BASE_URL));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve::serve_api(listener, Some(tls), api_server, stop.clone()));

    let stream = connect(address, Arc::clone(&client)).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut h2, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("https://localhost/healthz").body(Empty::<bytes::Bytes>::new()).unwrap();
    assert_eq!(h2.send_request(request).await.unwrap().status(), 200);
    drop(h2);

    let (server, newer) = tls_configs(&[b"http/1.1"]);
    give.send(server).unwrap();
    assert!(connect(address, client).await.is_err(), "the old certificate is no longer used");
    let stream = connect(address, newer).await.unwrap();
    let (mut h1, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request =
        http::Request::get("/healthz").header("host", "localhost").body(Empty::<bytes::Bytes>::new()).unwrap();
    assert_eq!(h1.send_request(request).await.unwrap().status(), 200);
    drop(h1);

    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_proxys_header_comes_before_tls() {
    let (server, client) = tls_configs(&[b"http/1.1"]);
    let (_give, tls) = watch::channel(server);
    let proxies = TrustedProxies::new(&["127.0.0.0/8".parse().unwrap()]);
    let connections = ConnectionOptions { proxies, ..ConnectionOptions::default() };
    let options = ApiOptions { connections, ..ApiOptions::new(BASE_URL) };
    let api_server = Backend::new(store().await).await.server(options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve::serve_api(listener, Some(tls), api_server, stop.clone()));

    assert!(connect(address, Arc::clone(&client)).await.is_err(), "no header, no handshake");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n").await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(client).connect(name, stream).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");

    stop.cancel();
    serving.await.unwrap().unwrap();
}

/// HSTS is sent for the host of the base URL only, and only if this listener terminates TLS.
#[tokio::test]
async fn hsts_is_sent_for_the_base_url_host() {
    let (server, client) = tls_configs(&[b"http/1.1"]);
    let (_give, tls) = watch::channel(server);
    let api_server = Backend::new(store().await).await.server(ApiOptions::new(BASE_URL));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(api::serve::serve_api(listener, Some(tls), api_server, stop.clone()));
    for (host, is_strict) in
        [("api.example.test", true), ("API.example.test:443", true), ("partners.shop.example", false)]
    {
        let stream = connect(address, Arc::clone(&client)).await.unwrap();
        let (mut h1, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get("/healthz").header("host", host).body(Empty::<bytes::Bytes>::new());
        let response = h1.send_request(request.unwrap()).await.unwrap();
        let strict = response.headers().get("strict-transport-security").map(|value| value.to_str().unwrap());
        assert_eq!(strict.is_some_and(|value| value.starts_with("max-age=")), is_strict, "{host} {strict:?}");
    }
    stop.cancel();
    serving.await.unwrap().unwrap();
}
