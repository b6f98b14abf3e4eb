//! The affiliate program in browsers: script, visits, sign-ups, and links without a script.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::affiliates::partner;
use crate::world::{TestResponse, TestSession, World};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const ORIGIN: &str = "https://shop.example";
const VISITOR: &str = "0123456789abcdef";

/// A live program with a partner, used from a browser.
struct Shop {
    world: World,
    session: TestSession,
    key: String,
    ada: Value,
}

impl Shop {
    async fn open() -> Self {
        let world = World::start().await;
        let session = set_up(&world, 1).await;
        let ada = partner(
            &world,
            json!({"email": "ada@example.org", "first_name": "Ada", "last_name": "L; x", "token": "ada"}),
        );
        let ada = ada.await;
        partner(&world, json!({"email": "bob@example.org", "token": "bob"})).await;
        let program = owner(&world, &session, Method::GET, "", json!({})).await.json();
        let key = program["program"]["publishable_key"].as_str().unwrap().to_owned();
        Self { world, session, key, ada }
    }

    async fn set(&self, settings: Value) {
        let response = owner(&self.world, &self.session, Method::PATCH, "", settings).await;
        assert_eq!(response.status, StatusCode::OK, "{response:?}");
    }

    /// Sends a request like a page, with these header fields.
    async fn send(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> TestResponse {
        let mut request = Request::post(path).header("host", "t").header("content-type", "text/plain");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    fn visit_body(&self, token: &str) -> Value {
        json!({
            "key": self.key, "visitor": VISITOR, "token": token, "param": "via", "sub_id": "june",
            "url": format!("{ORIGIN}/?via={token}"), "referrer": "https://blog.example/",
        })
    }

    async fn report_visit(&self, body: &Value) -> TestResponse {
        self.send("/affiliate/visits", &[("origin", ORIGIN), ("user-agent", FIREFOX)], body).await
    }

    async fn follow(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.world.send(request.body(Full::default()).unwrap()).await
    }

    async fn follow_by_http2(&self, address: &str) -> TestResponse {
        let stream = TokioIo::new(TcpStream::connect(self.world.address).await.unwrap());
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(address).header("user-agent", FIREFOX);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let (head, body) = client.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        TestResponse { status: head.status, headers: head.headers, body }
    }

    /// The referrals, newest first, once there are `count`.
    async fn referrals(&self, count: usize) -> Vec<Value> {
        for _ in 0..200 {
            let found = self.world.get("/affiliate-referrals").await.json()["data"].as_array().unwrap().clone();
            if found.len() >= count {
                return found;
            }
            tokio::task::yield_now().await;
        }
        panic!("there are fewer than {count} referrals");
    }
}

fn allowed_origin(response: &TestResponse) -> Option<&str> {
    response.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn script_is_shared_and_cacheable() {
    let world = World::start().await;
    let got = world.call_without_key(Method::GET, "/stx.js", &Value::Null).await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(&got.body[..], include_bytes!("../../../web/stx.js"));
    assert_eq!(got.headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(got.headers["cross-origin-resource-policy"], "cross-origin");
    assert!(got.headers["cache-control"].to_str().unwrap().starts_with("public, max-age="));
    let tag = got.headers["etag"].to_str().unwrap().to_owned();
    for (known, status) in
        [(tag.clone(), 304), (format!("W/{tag}"), 304), (format!("\"x\", {tag}"), 304), ("\"x\"".to_owned(), 200)]
    {
        let request = Request::get("/stx.js").header("host", "t").header("if-none-match", &known);
        let again = world.send(request.body(Full::default()).unwrap()).await;
        assert_eq!((again.status.as_u16(), again.body.is_empty()), (status, status == 304), "{known}");
        assert_eq!(again.headers["etag"], tag.as_str());
    }
    world.end().await;
}

#[tokio::test]
async fn visit_is_recorded_and_shared_only_with_allowed_origins() {
    let shop = Shop::open().await;
    let rejected_case = shop.report_visit(&shop.visit_body("Ada")).await;
    assert_eq!(
        (rejected_case.status, allowed_origin(&rejected_case)),
        (StatusCode::OK, Some(ORIGIN)),
        "{rejected_case:?}"
    );
    assert_eq!(rejected_case.headers["vary"], "Origin");
    let visit = rejected_case.json();
    assert!(visit["referral"].as_str().unwrap().starts_with("vis_"));
    let affiliate = json!({"id": shop.ada["id"], "name": "Ada L; x", "first_name": "Ada"});
    assert_eq!(visit["affiliate"], affiliate);
    assert!(visit["expires_at"].is_string() && !rejected_case.headers.contains_key("set-cookie"));
    // The first click keeps the credit, also if the page reports another one as JSON.
    let bob = shop
        .send(
            "/affiliate/visits",
            &[("origin", ORIGIN), ("user-agent", FIREFOX), ("content-type", "application/json")],
            &shop.visit_body("bob"),
        )
        .await;
    assert_eq!(bob.json()["referral"], visit["referral"]);
    for (origin, status, allowed) in [
        (ORIGIN, 200, Some(ORIGIN)),
        ("https://shop.example:443", 200, Some("https://shop.example:443")),
        ("https://www.shop.example", 403, None),
        ("http://shop.example", 403, None),
        ("https://evil.example", 403, None),
        ("null", 403, None),
    ] {
        let headers = [("origin", origin), ("user-agent", FIREFOX)];
        let response = shop.send("/affiliate/visits", &headers, &shop.visit_body("ada")).await;
        assert_eq!((response.status.as_u16(), allowed_origin(&response)), (status, allowed), "{origin}");
        assert_eq!(response.headers["vary"], "Origin");
    }
    shop.set(json!({"allowed_origins": ["https://www.shop.example"]})).await;
    assert_eq!(shop.report_visit(&shop.visit_body("ada")).await.status, StatusCode::FORBIDDEN);
    let asks = shop.follow(Method::OPTIONS, "/affiliate/visits", &[("host", "t"), ("origin", ORIGIN)]).await;
    assert_eq!((asks.status, allowed_origin(&asks)), (StatusCode::NO_CONTENT, Some(ORIGIN)));
    assert_eq!(asks.headers["access-control-allow-headers"], "content-type");
    shop.world.end().await;
}

#[tokio::test]
async fn unknown_token_stores_nothing() {
    let shop = Shop::open().await;
    let nobody =
        |response: &TestResponse| (response.status, response.body.is_empty()) == (StatusCode::NO_CONTENT, true);
    for token in ["producthunt", "x", "what is that?", ""] {
        let response = shop.report_visit(&shop.visit_body(token)).await;
        assert!(nobody(&response) && allowed_origin(&response) == Some(ORIGIN), "{token}: {response:?}");
    }
    let with = |name: &str, value: Value| {
        let mut body = shop.visit_body("ada");
        body[name] = value;
        body
    };
    for body in [
        with("key", json!("pk_x")),
        with("key", json!("")),
        with("param", json!("stx_ref")),
        json!({"key": shop.key, "param": "stx_ref", "token": "vis_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"}),
    ] {
        assert!(nobody(&shop.report_visit(&body).await), "{body}");
    }
    for machine in ["Googlebot/2.1 (+http://www.google.com/bot.html)", "WhatsApp/2.23", "facebookexternalhit/1.1"] {
        let headers = [("origin", ORIGIN), ("user-agent", machine)];
        assert!(nobody(&shop.send("/affiliate/visits", &headers, &shop.visit_body("ada")).await), "{machine}");
    }
    let headers = [("origin", ORIGIN), ("user-agent", FIREFOX), ("sec-purpose", "prefetch;prerender")];
    assert!(nobody(&shop.send("/affiliate/visits", &headers, &shop.visit_body("ada")).await));
    for invalid in [json!([]), json!("x"), json!({"key": 1}), with("url", json!(["x"]))] {
        assert_eq!(shop.report_visit(&invalid).await.status, StatusCode::BAD_REQUEST, "{invalid}");
    }
    assert_eq!(shop.report_visit(&with("url", json!("x".repeat(9_000)))).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let id = shop.ada["id"].as_str().unwrap();
    let suspended = shop.world.post(&format!("/affiliates/{id}/suspend"), "{}").await;
    assert_eq!(suspended.status, StatusCode::OK);
    assert!(nobody(&shop.report_visit(&shop.visit_body("ada")).await));
    let paused = owner(&shop.world, &shop.session, Method::POST, "/pause", json!({})).await;
    assert_eq!(paused.status, StatusCode::OK);
    assert!(nobody(&shop.report_visit(&shop.visit_body("bob")).await));
    shop.world.end().await;
}

#[tokio::test]
async fn same_site_host_sets_server_cookies() {
    let shop = Shop::open().await;
    shop.set(json!({"allowed_origins": ["https://www.shop.example", "http://www.shop.example"]})).await;
    for (origin, domain, sets) in [
        ("https://www.shop.example", "shop.example", true),
        ("http://www.shop.example", "shop.example", true),
        ("https://www.shop.example", "example", false),
        ("https://www.shop.example", "other.example", false),
        ("https://www.shop.example", "", false),
    ] {
        let mut body = shop.visit_body("ada");
        body["domain"] = json!(domain);
        let response = shop.send("/affiliate/visits", &[("origin", origin), ("user-agent", FIREFOX)], &body).await;
        let cookies: Vec<_> = response.headers.get_all("set-cookie").iter().map(|c| c.to_str().unwrap()).collect();
        assert_eq!(cookies.len(), if sets { 3 } else { 0 }, "{origin} {domain}: {cookies:?}");
        if !sets {
            continue;
        }
        let id = response.json()["referral"].as_str().unwrap().to_owned();
        let tail = |age: &str| {
            let secure = if origin.starts_with("https") { "; Secure" } else { "" };
            format!("; Path=/; Domain=shop.example; Max-Age={age}; SameSite=Lax{secure}")
        };
        // Sixty days, minus the time since the click.
        let ages = [tail("5184000"), tail("5183999"), tail("5183998")];
        assert!(ages.iter().any(|tail| cookies[0] == format!("stx_ref={id}{tail}")), "{cookies:?}");
        let affiliate = format!(
            "stx_aff=%7B%22id%22%3A%22{}%22%2C%22name%22%3A%22Ada%20L%3B%20x%22%2C%22first_name%22%3A%22Ada%22%7D;",
            shop.ada["id"].as_str().unwrap()
        );
        assert!(cookies[1].starts_with(&affiliate), "{cookies:?}");
        assert_eq!(cookies[2], format!("stx_vid={VISITOR}{}", tail("34214400")));
    }
    shop.world.end().await;
}

#[tokio::test]
async fn sign_ups_create_leads_without_disclosure() {
    let shop = Shop::open().await;
    let visit = shop.report_visit(&shop.visit_body("ada")).await.json()["referral"].clone();
    let is_accepted =
        |response: &TestResponse| (response.status, response.json()) == (StatusCode::ACCEPTED, json!({"ok": true}));
    let page = [("origin", ORIGIN), ("user-agent", FIREFOX)];
    let body = json!({"key": shop.key, "referral": visit, "email": "Grace@Example.net", "visitor": VISITOR});
    let with = |name: &str, value: Value| {
        let mut body = body.clone();
        body[name] = value;
        body
    };
    let elsewhere = [("origin", "https://evil.example"), ("user-agent", FIREFOX)];
    for (headers, body, allowed) in [
        (&page, with("email", json!("nobody")), Some(ORIGIN)),
        (&page, with("email", json!(5)), Some(ORIGIN)),
        (&page, json!("no object"), None),
        (&page, with("referral", json!("vis_01K9ZQ4Y8M3T5V7W2X6B0C1D9E")), Some(ORIGIN)),
        (&page, with("referral", json!("")), Some(ORIGIN)),
        (&page, with("key", json!("pk_x")), None),
        (&elsewhere, body.clone(), None),
        (&[("origin", "null"), ("user-agent", FIREFOX)], body.clone(), None),
        (&[("origin", ORIGIN), ("user-agent", "Googlebot/2.1")], body.clone(), Some(ORIGIN)),
    ] {
        for path in ["/affiliate/signups", "/affiliate/identify"] {
            let response = shop.send(path, headers, &body).await;
            assert!(is_accepted(&response) && allowed_origin(&response) == allowed, "{path} {body}: {response:?}");
        }
    }
    assert!(is_accepted(&shop.send("/affiliate/identify", &page, &body).await));
    assert!(shop.referrals(0).await.is_empty(), "none of them creates a lead");
    for _ in 0..2 {
        assert!(is_accepted(&shop.send("/affiliate/signups", &page, &body).await));
    }
    let found = shop.referrals(1).await;
    assert_eq!(found.len(), 1);
    for (field, value) in [
        ("source", json!("signup")),
        ("status", json!("lead")),
        ("email", json!("grace@example.net")),
        ("affiliate_id", shop.ada["id"].clone()),
        ("sub_id", json!("june")),
    ] {
        assert_eq!(found[0][field], value, "{field}");
    }
    shop.world.end().await;
}

/// Bodies that cannot be read: too large, of another type, compressed, corrupt, nested too deep.
#[tokio::test]
async fn visitor_reports_get_uniform_responses() {
    let shop = Shop::open().await;
    let large = format!("{{\"key\":\"{}\"}}", "x".repeat(100_000)).into_bytes();
    let deep = format!("{{\"key\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000)).into_bytes();
    let reserved = br#"{"key":{"$serde_json::private::RawValue":"1"}}"#.to_vec();
    for (kind, encoding, body) in [
        ("text/plain", "identity", large),
        ("application/json", "identity", deep),
        ("application/json", "identity", reserved),
        ("application/json", "identity", b"{\"key\":".to_vec()),
        ("application/json", "identity", b"\xff\xfe".to_vec()),
        ("application/json", "gzip", b"no gzip".to_vec()),
        ("application/json", "br", b"{}".to_vec()),
        ("application/x-www-form-urlencoded", "identity", b"email=a%40example.org".to_vec()),
        ("multipart/form-data; boundary=x", "identity", b"--x--".to_vec()),
        ("text/plain; charset=utf-16", "identity", b"{}".to_vec()),
        ("", "identity", b"{}".to_vec()),
        ("application/json", "identity", Vec::new()),
    ] {
        for path in ["/affiliate/signups", "/affiliate/identify"] {
            let request = Request::post(path).header("host", "t").header("user-agent", FIREFOX);
            let request = request.header("content-type", kind).header("content-encoding", encoding);
            let response = shop.world.send(request.body(Full::new(body.clone().into())).unwrap()).await;
            let outcome = (response.status, response.json());
            assert_eq!(outcome, (StatusCode::ACCEPTED, json!({"ok": true})), "{path} {kind} {encoding}");
        }
    }
    shop.world.end().await;
}

#[tokio::test]
async fn link_works_without_a_script() {
    let shop = Shop::open().await;
    let id = shop.ada["id"].as_str().unwrap();
    let link = json!({"token": "podcast", "destination_url": "/pricing?plan=pro#top"});
    let made = shop.world.post(&format!("/affiliates/{id}/links"), link.to_string()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let key = &shop.key;
    let to = |response: &TestResponse| response.headers["location"].to_str().unwrap().to_owned();
    let person = [("host", "t"), ("user-agent", FIREFOX)];
    let led = shop.follow(Method::GET, &format!("/r/podcast?key={key}&sub_id=may"), &person).await;
    assert_eq!((led.status, led.headers["cache-control"].as_bytes()), (StatusCode::FOUND, &b"no-store"[..]));
    let (before, rest) = (to(&led), "#top");
    let visit = before
        .strip_prefix("https://shop.example/pricing?plan=pro&stx_ref=")
        .and_then(|visit| visit.strip_suffix(rest))
        .unwrap_or_else(|| panic!("{before}"));
    // The script takes the visit over on any domain.
    let over =
        json!({"key": key, "visitor": VISITOR, "token": visit, "param": "stx_ref", "url": "https://shop.example/"});
    assert_eq!(shop.report_visit(&over).await.json()["referral"], json!(visit));
    let plain = "https://shop.example/pricing?plan=pro#top";
    let bare = |path: String| async move { path };
    for (method, path, headers, destination) in [
        (Method::HEAD, format!("/r/podcast?key={key}"), vec![("user-agent", FIREFOX)], plain),
        (Method::GET, format!("/r/podcast?key={key}"), vec![("user-agent", "bingbot/2.0; x")], plain),
        (Method::GET, format!("/r/podcast?key={key}"), vec![("user-agent", FIREFOX), ("purpose", "prefetch")], plain),
        (Method::GET, format!("/r/nobody?key={key}"), vec![("user-agent", FIREFOX)], "https://shop.example"),
        (Method::GET, format!("/r/%00%ff?key={key}"), vec![("user-agent", FIREFOX)], "https://shop.example"),
    ] {
        let mut all = vec![("host", "t")];
        all.extend(headers);
        let led = shop.follow(method, &bare(path.clone()).await, &all).await;
        assert_eq!((led.status, to(&led).trim_end_matches('/')), (StatusCode::FOUND, destination), "{path} {all:?}");
    }
    for path in ["/r/podcast", "/r/podcast?key=pk_x", "/r/podcast?key="] {
        assert_eq!(shop.follow(Method::GET, path, &person).await.status, StatusCode::NOT_FOUND, "{path}");
        let accepts = [("host", "t"), ("user-agent", FIREFOX), ("accept", "text/html")];
        let page = shop.follow(Method::GET, path, &accepts).await;
        assert!(page.status == StatusCode::NOT_FOUND && page.headers["content-type"] == "text/html; charset=utf-8");
    }
    shop.set(json!({"portal_domain": "partners.example.com"})).await;
    let portal = [("host", "Partners.example.com:8443"), ("user-agent", FIREFOX)];
    let led = shop.follow(Method::GET, "/r/podcast", &portal).await;
    assert!(to(&led).contains("stx_ref=vis_"), "{led:?}");
    // HTTP/2, which browsers use over TLS, sends the host in `:authority`.
    let led = shop.follow_by_http2("http://partners.example.com/r/podcast").await;
    assert!(to(&led).contains("stx_ref=vis_"), "{led:?}");
    // Only clicks of people are counted; prefetches are not.
    let service = shop.world.affiliate.clone();
    let partner: model::id::PartnerId = id.parse().unwrap();
    let account = shop.world.tenant().await.account().id;
    let links = service.context.list_links(account, partner).await.unwrap();
    let counts = service.ledger.count_clicks_of_links(partner, &links).await.unwrap();
    assert_eq!(counts.iter().sum::<u64>(), 3, "{counts:?}");
    shop.world.end().await;
}

#[tokio::test]
async fn two_programs_cannot_have_one_host() {
    let shop = Shop::open().await;
    shop.set(json!({"portal_domain": "partners.example.com", "banned_referrers": ["coupons.example"]})).await;
    shop.world.account(2, model::credential::ApiKeyScope::Full).await;
    let other = shop.world.session(2).await;
    let enable = json!({"website_url": "https://other.example", "currency": "usd"});
    assert_eq!(owner(&shop.world, &other, Method::POST, "", enable).await.status, StatusCode::CREATED);
    let duplicate = json!({"portal_domain": "Partners.example.com"});
    let refused = shop.world.call_with_session(&other, Method::PATCH, PROGRAM, &duplicate).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
    shop.world.end().await;
}

#[tokio::test]
async fn visit_reports_are_rate_limited() {
    let shop = Shop::open().await;
    let mut often = 0;
    for number in 0..40 {
        let response = shop.report_visit(&shop.visit_body(&format!("nobody-{number}"))).await;
        often += usize::from(response.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(often > 0, "requests over the limit are refused");
    shop.world.services.clock.advance(Duration::from_secs(60));
    assert_eq!(shop.report_visit(&shop.visit_body("ada")).await.status, StatusCode::OK);
    shop.world.end().await;
}
