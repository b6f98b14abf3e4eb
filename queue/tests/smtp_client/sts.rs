//! MTA-STS policies (RFC 8461): discovered, cached, and enforced when they cannot be fetched any more.

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;

use dns::resolver::{Resolver, ResolverSettings};
use jiff::{SignedDuration, Timestamp};
use message::mta_sts::MtaStsMode;
use net::http_client::{HttpClient, HttpClientSettings, UrlRules};
use queue::routing::mta_sts::StsPolicies;
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use store::engine::Store;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::zone::NameServer;

const GOOD: &str = "version: STSv1\nmode: enforce\nmx: mx.dest.example\nmax_age: 86400\n";
const TESTING: &str = "version: STSv1\nmode: testing\nmx: *.dest.example\nmax_age: 86400\n";

/// A web server for `mta-sts.dest.example`, and a name server that resolves it.
struct Ground {
    names: NameServer,
    resolver: Resolver,
    store: Store,
    policies: StsPolicies,
    answer: Arc<Mutex<String>>,
    requests: Arc<Mutex<usize>>,
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_hours(hours)
}

fn zone(id: &str) -> String {
    format!("_mta-sts.dest.example 0 TXT \"v=STSv1; id={id}\"\nmta-sts.dest.example A 127.0.0.1\n")
}

fn ok(policy: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{policy}", policy.len())
}

impl Ground {
    async fn new(name: &str) -> Self {
        let (answer, requests) = (Arc::new(Mutex::new(ok(GOOD))), Arc::new(Mutex::new(0)));
        let (address, roots) = web(name, &answer, &requests).await;
        let names = NameServer::start(&zone("1")).await;
        let settings = ResolverSettings { servers: vec![names.address], ..ResolverSettings::default() };
        let resolver = Resolver::new(&settings).unwrap();
        let store = Store::memory();
        let rules = UrlRules { allow_private: true, allow_http: false };
        let poster = HttpClientSettings { rules, roots: Some(roots), ..HttpClientSettings::default() };
        let poster = HttpClient::new(resolver.clone(), poster).unwrap();
        let policies = StsPolicies::new(store.clone(), poster, address.port());
        Self { names, resolver, store, policies, answer, requests }
    }

    fn answers(&self, answer: String) {
        *self.answer.lock() = answer;
    }

    fn request_count(&self) -> usize {
        *self.requests.lock()
    }

    async fn mode(&self, now: Timestamp) -> Option<MtaStsMode> {
        self.resolver.clear_cache();
        let domain = "dest.example".parse().unwrap();
        self.policies.policy_of(&domain, &self.resolver, now).await.unwrap().policy.map(|cached| cached.policy.mode)
    }
}

async fn web(name: &str, answer: &Arc<Mutex<String>>, requests: &Arc<Mutex<usize>>) -> (SocketAddr, RootCertStore) {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, requests) = (Arc::clone(answer), Arc::clone(requests));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = vec![0; 4_096];
            let count = stream.read(&mut request).await.unwrap_or(0);
            assert!(request[..count].starts_with(b"GET /.well-known/mta-sts.txt HTTP/1.1\r\n"));
            *requests.lock() += 1;
            let answer = answer.lock().replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, roots)
}

#[tokio::test]
async fn a_policy_is_fetched_once_and_kept() {
    let ground = Ground::new("mta-sts.dest.example").await;
    for hours in [0, 1, 5] {
        assert_eq!(ground.mode(at(hours)).await, Some(MtaStsMode::Enforce));
    }
    assert_eq!(ground.request_count(), 1);
    let domain = "dest.example".parse().unwrap();
    let cached = store::sts_policy::get(&ground.store, &domain).await.unwrap().unwrap();
    assert_eq!((cached.id.as_str(), cached.lines.len(), cached.fetched_at), ("1", 4, at(0)));
    // A new id means a new policy.
    ground.names.set(&zone("2"));
    ground.answers(ok(TESTING));
    assert_eq!((ground.mode(at(6)).await, ground.request_count()), (Some(MtaStsMode::Testing), 2));
    // The policy is fetched again long before it expires.
    assert_eq!((ground.mode(at(6 + 13)).await, ground.request_count()), (Some(MtaStsMode::Testing), 3));
}

#[tokio::test]
async fn a_cached_policy_stays_valid_until_it_expires() {
    let ground = Ground::new("mta-sts.dest.example").await;
    assert_eq!(ground.mode(at(0)).await, Some(MtaStsMode::Enforce));
    // The TXT record is removed or cannot be resolved, or a new id leads to no policy.
    ground.names.set("dest.example TXT \"nothing\"");
    assert_eq!(ground.mode(at(1)).await, Some(MtaStsMode::Enforce));
    ground.names.set("$SERVFAIL _mta-sts.dest.example");
    assert_eq!(ground.mode(at(2)).await, Some(MtaStsMode::Enforce));
    ground.names.set(&zone("2"));
    ground.answers("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned());
    assert_eq!(ground.mode(at(3)).await, Some(MtaStsMode::Enforce));
    // A failed fetch is not repeated at once.
    let requests = ground.request_count();
    assert_eq!((ground.mode(at(3)).await, ground.request_count()), (Some(MtaStsMode::Enforce), requests));
    // The policy has expired.
    assert_eq!(ground.mode(at(25)).await, None);
}

#[tokio::test]
async fn an_invalid_policy_is_ignored() {
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{GOOD}");
    let long = ok(&format!("{GOOD}{}", "mx: mx.dest.example\n".repeat(4_000)));
    let redirect = "HTTP/1.1 301 Moved\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_owned();
    for answer in [cut, long, redirect, ok("version: STSv1\nmode: enforce\n"), "nonsense\r\n\r\n".to_owned()] {
        let ground = Ground::new("mta-sts.dest.example").await;
        ground.answers(answer.clone());
        assert_eq!(
            (ground.mode(at(0)).await, ground.request_count()),
            (None, 1),
            "{}",
            &answer[..40.min(answer.len())]
        );
        // The fetch is repeated after a while.
        ground.answers(ok(GOOD));
        assert_eq!(ground.mode(at(1)).await, Some(MtaStsMode::Enforce));
    }
    // The web server's certificate must be valid for the name (RFC 8461 3.3).
    let ground = Ground::new("elsewhere.example").await;
    assert_eq!((ground.mode(at(0)).await, ground.request_count()), (None, 0));
    let ground = Ground::new("mta-sts.dest.example").await;
    ground.names.set("mta-sts.dest.example A 127.0.0.1");
    assert_eq!((ground.mode(at(0)).await, ground.request_count()), (None, 0));
}
