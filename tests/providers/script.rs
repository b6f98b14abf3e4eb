//! Providers on loopback: a proxy that every host is reached through, and that answers in the hosts' place.
//!
//! ```text
//! dns-update ─ CONNECT api.example:443 ─► proxy ─ TLS (certificate of our own authority) ─► Script::answer
//! ```
//!
//! So what is tested is what runs: the providers' fixed addresses, TLS and its checks, dns-update and what is done
//! beside it. The program under test is this test program again, with `HTTPS_PROXY` and `SSL_CERT_FILE` set for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A request as a provider sees it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) path: String,
    /// As it was sent, to be signed, and read.
    pub(crate) raw_query: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// A provider's part.
pub(crate) trait Script: Send + Sync + 'static {
    /// The status and the body of the answer.
    fn answer(&self, asked: &Asked) -> (u16, String);
}

/// A record that a provider keeps, as it writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) value: String,
}

pub(crate) fn kept(id: u64, name: &str, kind: &str, value: &str) -> Kept {
    Kept { id, name: name.to_owned(), kind: kind.to_owned(), value: value.to_owned() }
}

/// A running provider.
pub(crate) struct Provider {
    pub(crate) proxy: String,
    pub(crate) home: TempDir,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Provider {
    /// Starts a provider for one host.
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
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { host, script: Arc::new(script), asked: Arc::clone(&asked) };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), shared.clone()));
            }
        });
        Self { proxy, home, asked }
    }

    /// What was asked that changes something, as `METHOD path`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let writes = asked.iter().filter(|asked| asked.method != "GET");
        writes.map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

#[derive(Clone)]
struct Shared {
    host: &'static str,
    script: Arc<dyn Script>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// One connection: what it is to lead to is said in the first lines; then it is the host's.
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
            let asked = read(request).await;
            let (status, body) = shared.script.answer(&asked);
            shared.asked.lock().unwrap().push(asked);
            hyper::Response::builder().status(status).body(Full::new(Bytes::from(body)))
        }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service).await;
}

async fn read(request: hyper::Request<Incoming>) -> Asked {
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
    Asked {
        method: head.method.to_string(),
        host: headers.get("host").cloned().unwrap_or_default(),
        path: head.uri.path().to_owned(),
        raw_query,
        query,
        headers,
        body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
    }
}
