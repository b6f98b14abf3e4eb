//! Simulated providers on loopback: an HTTPS proxy that answers in place of the provider's host.
//!
//! ```text
//! dns-update ─ CONNECT api.example:443 ─► proxy ─ TLS (certificate of the test's CA) ─► Script::answer
//! ```
//!
//! The test therefore covers the real code path: the providers' fixed host names, TLS verification, dns-update and the
//! code around it. The program under test is this test binary, started again with `HTTPS_PROXY` and `SSL_CERT_FILE`.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A request as the provider received it.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) path: String,
    /// Undecoded, as needed to verify a signature.
    pub(crate) raw_query: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// The behaviour of one provider.
pub(crate) trait Script: Send + Sync + 'static {
    /// Returns the status and the body of the response.
    fn respond(&self, request: &RecordedRequest) -> (u16, String);
}

/// A record in the provider's own notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZoneRecord {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) value: String,
}

pub(crate) fn zone_record(id: u64, name: &str, kind: &str, value: &str) -> ZoneRecord {
    ZoneRecord { id, name: name.to_owned(), kind: kind.to_owned(), value: value.to_owned() }
}

/// A running provider; `requests` records its requests.
pub(crate) struct Provider {
    pub(crate) proxy: String,
    pub(crate) home: TempDir,
    pub(crate) requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Provider {
    /// Starts a provider for one host name.
    pub(crate) async fn start(host: &'static str, script: impl Script) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(home.path().join("authority.pem"), authority.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
        let certificate = params.signed_by(&key, &authority).unwrap();
        let config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key.into())
                .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { host, script: Arc::new(script), requests: Arc::clone(&requests) };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), shared.clone()));
            }
        });
        Self { proxy, home, requests }
    }

    /// All requests but GET, as `METHOD path`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let requests = self.requests.lock();
        let writes = requests.iter().filter(|request| request.method != "GET");
        writes.map(|request| format!("{} {}", request.method, request.path)).collect()
    }
}

#[derive(Clone)]
struct Shared {
    host: &'static str,
    script: Arc<dyn Script>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

/// Serves one proxy connection: reads the CONNECT request, then answers as the host.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Shared) {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    stream.read_line(&mut first).await.unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).await.unwrap() == 0 {
            return;
        }
    }
    if first.split(' ').nth(1) != Some(format!("{}:443", shared.host).as_str()) {
        let _ = stream.write_all(b"HTTP/1.1 502 No such host here\r\n\r\n").await;
        return;
    }
    stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
    let Ok(tls) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move {
            let recorded = read(request).await;
            let (status, body) = shared.script.respond(&recorded);
            shared.requests.lock().push(recorded);
            hyper::Response::builder().status(status).body(Full::new(Bytes::from(body)))
        }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service).await;
}

async fn read(request: hyper::Request<Incoming>) -> RecordedRequest {
    let (head, body) = request.into_parts();
    let raw_query = head.uri.query().unwrap_or_default().to_owned();
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let query = raw_query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect();
    let headers = head.headers.iter();
    let headers: BTreeMap<String, String> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    RecordedRequest {
        method: head.method.to_string(),
        host: headers.get("host").cloned().unwrap_or_default(),
        path: head.uri.path().to_owned(),
        raw_query,
        query,
        headers,
        body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
    }
}
