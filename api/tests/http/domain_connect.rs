//! Domain Connect with a simulated DNS provider on loopback.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use provider::{FetchSettings, RequestKey};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::world::{TestResponse, World};

const HOST: &str = "connect.dns.example";
const ZONE: &str = "
    acme.test NS ns.acme.test.
    ns.acme.test A 127.0.0.1
    connect.dns.example A 127.0.0.1
";
const SETTINGS: &str = "/dc/v2/acme.test/settings";
const TEMPLATE: &str = "/dc/v2/domainTemplates/providers/example.net/services/email";

type Pages = Arc<Mutex<HashMap<&'static str, (u16, String)>>>;

/// A provider with these pages only.
async fn provider() -> (FetchSettings, Pages) {
    let pages = Pages::default();
    let issued = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served_pages = Arc::clone(&pages);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let served_pages = Arc::clone(&served_pages);
            let response = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let found = served_pages.lock().get(request.uri().path()).cloned();
                let (status, body) = found.unwrap_or((404, String::new()));
                let response = Response::builder().status(status).header("location", "https://127.0.0.1/");
                std::future::ready(Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap()))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), response));
        }
    });
    (FetchSettings { port, authorities: Some(vec![certificate.to_vec()]) }, pages)
}

async fn connect(world: &World) -> TestResponse {
    // Advance the clock past the cached check.
    world.services.clock.advance(std::time::Duration::from_secs(10));
    world.call(Method::POST, "/domains/acme.test/dns/connect", &json!({})).await
}

/// Reason and message of an error.
fn error_text(response: &TestResponse) -> (String, String) {
    assert_eq!((response.status, response.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "upstream_error"));
    let error = response.json()["error"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&error["details"]["reason"]), text(&error["message"]))
}

#[tokio::test]
async fn connect_returns_the_provider_url() {
    let (web, pages) = provider().await;
    let template = Some("example.net/email".parse().unwrap());
    let (world, names) = World::with_provider(ZONE, template, None, web).await;
    let added = world.call(Method::POST, "/domains", &json!({"name": "acme.test"})).await.json();
    assert_eq!(error_text(&connect(&world).await).0, "not_offered", "the zone says nothing");

    let offered = format!("{ZONE}_domainconnect.acme.test TXT \"{HOST}/dc\"\n");
    names.set(&offered);
    assert_eq!(error_text(&connect(&world).await).0, "not_offered", "the provider knows no such zone");
    let set = |path: &'static str, status: u16, body: Value| {
        pages.lock().insert(path, (status, body.to_string()));
    };
    let settings = json!({"urlSyncUX": "https://dns.example/page", "urlAPI": format!("https://{HOST}/dc")});
    set(SETTINGS, 302, settings.clone());
    assert_eq!(error_text(&connect(&world).await).0, "malformed", "no redirect is followed");
    set(SETTINGS, 200, json!({"urlAPI": format!("https://{HOST}/dc")}));
    set(TEMPLATE, 200, json!({}));
    let (word, sentence) = error_text(&connect(&world).await);
    assert_eq!(word, "not_offered");
    assert!(sentence.contains("does not offer") && sentence.contains("/dns/apply"), "{sentence}");
    set(SETTINGS, 200, settings);
    set(TEMPLATE, 404, json!({}));
    assert_eq!(error_text(&connect(&world).await).0, "unknown_template");
    set(TEMPLATE, 200, json!({}));

    let response = connect(&world).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    let url = response.json()["url"].as_str().unwrap().to_owned();
    let (page, query) = url.split_once('?').unwrap();
    assert_eq!(page, "https://dns.example/page/v2/domainTemplates/providers/example.net/services/email/apply");
    let selector = added["domain"]["dkim"]["selector"].as_str().unwrap();
    for part in [
        "domain=acme.test",
        "groupId=sending%2Cdmarc",
        "ownership=postrider-verification",
        &format!("dkimhost={selector}._domainkey"),
        &format!("dkimhost2={selector}e._domainkey"),
        "spf=include%3Aspf.example.net",
        "returnpath=rp.example.net",
    ] {
        assert!(query.split('&').any(|actual| actual.starts_with(part)), "{part}: {query}");
    }
    // The owner's own policy is preserved.
    names.set(&format!("{offered}_dmarc.acme.test TXT \"v=DMARC1; p=reject\"\n"));
    let url = connect(&world).await.json()["url"].as_str().unwrap().to_owned();
    assert!(url.contains("groupId=sending&") && !url.contains("dmarc="), "{url}");
}

#[tokio::test]
async fn requests_are_signed_where_the_operator_has_a_key() {
    const KEY: &str = include_str!("../../../dns/tests/keys/rsa2048.pkcs8.pem");
    let (web, pages) = provider().await;
    let template = Some("example.net/email".parse().unwrap());
    let key = RequestKey::new(KEY, &"_dck1.example.net".parse().unwrap()).unwrap();
    let zone = format!("{ZONE}_domainconnect.acme.test TXT \"{HOST}/dc\"\n");
    let (world, _names) = World::with_provider(&zone, template, Some(key), web).await;
    world.call(Method::POST, "/domains", &json!({"name": "acme.test"})).await;
    let settings = json!({"urlSyncUX": "https://dns.example/page"});
    pages.lock().insert(SETTINGS, (200, settings.to_string()));
    let url = connect(&world).await.json()["url"].as_str().unwrap().to_owned();
    let (_, query) = url.split_once('?').unwrap();
    let fields: Vec<&str> = query.split('&').map(|field| field.split_once('=').unwrap().0).collect();
    assert!(fields.ends_with(&["sig", "key"]) && fields.starts_with(&["domain"]), "{fields:?}");
    assert!(query.ends_with("&key=_dck1"), "{query}");
}

#[tokio::test]
async fn no_request_without_a_template() {
    let (web, _) = provider().await;
    let (world, _names) = World::with_provider(ZONE, None, None, web).await;
    world.call(Method::POST, "/domains", &json!({"name": "acme.test"})).await;
    assert_eq!(error_text(&connect(&world).await).0, "no_template");
    let none = world.call(Method::POST, "/domains/other.test/dns/connect", &json!({})).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}
