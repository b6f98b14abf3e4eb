//! Domains over HTTP: add, publish, verify, rotate, claim, delete.

use std::fmt::Write as _;
use std::time::Duration;

use http::{Method, StatusCode};
use model::account::Plan;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

use crate::world::World;

/// How long a domain check is cached.
const FRESH: Duration = Duration::from_secs(10);

/// The zone of a provider after all records were published.
fn zone(domain: &Value) -> String {
    let mut zone = String::new();
    for record in domain["records"].as_array().unwrap() {
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        let data = match record["type"].as_str().unwrap() {
            "TXT" => format!("\"{}\"", text("value")),
            "MX" => format!("{} {}.", record["priority"], text("value")),
            _ => format!("{}.", text("value")),
        };
        writeln!(zone, "{} {} {data}", text("name"), text("type")).unwrap();
    }
    zone.push_str("spf.example.net TXT \"v=spf1 ip4:192.0.2.1 -all\"\nrp.example.net A 192.0.2.1\n");
    zone.push_str("mx.example.net A 192.0.2.1\napi.example.test A 192.0.2.1\n");
    zone
}

async fn add(world: &World, body: &Value) -> Value {
    let response = world.call(Method::POST, "/domains", body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    response.json()["domain"].clone()
}

async fn post(world: &World, path: &str) -> Value {
    if path.ends_with("/verify") {
        // Advance the clock past the cached check.
        world.services.clock.advance(FRESH);
    }
    let response = world.call(Method::POST, path, &json!({})).await;
    assert_eq!(response.status, StatusCode::OK, "{path}: {}", response.json());
    response.json()
}

async fn get(world: &World, path: &str) -> Value {
    let response = world.call(Method::GET, path, &Value::Null).await;
    assert_eq!(response.status, StatusCode::OK, "{path}: {}", response.json());
    response.json()
}

fn statuses(domain: &Value) -> Vec<(String, String)> {
    let word = |record: &Value, name: &str| record[name].as_str().unwrap().to_owned();
    let records = domain["records"].as_array().unwrap().iter();
    records.map(|record| (word(record, "purpose"), word(record, "status"))).collect()
}

#[tokio::test]
async fn a_domain_is_added_published_and_verified() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"domain": "Mail.Acme.TEST"})).await;
    assert_eq!((&domain["name"], &domain["status"]), (&json!("mail.acme.test"), &json!("unverified")));
    assert_eq!((&domain["dkim"]["key_bits"], &domain["dkim_ready"]), (&json!(2_048), &json!(true)));
    let purposes: Vec<String> = statuses(&domain).into_iter().map(|(purpose, _)| purpose).collect();
    assert_eq!(purposes, ["ownership", "dkim", "dkim", "return_path", "spf", "dmarc"]);
    assert!(statuses(&domain).iter().all(|(_, status)| status == "pending"));
    let mail = json!({"from": "a@mail.acme.test", "to": "b@example.net", "subject": "s", "text": "t"});
    let refused = world.call(Method::POST, "/emails", &mail).await;
    assert_eq!(refused.code(), "domain_not_verified");

    let path = format!("/domains/{}", domain["id"].as_str().unwrap());
    let early = post(&world, &format!("{path}/verify")).await;
    assert_eq!(early["verified"], json!(false));
    assert_eq!(statuses(&early["domain"])[0], ("ownership".to_owned(), "missing".to_owned()));
    assert!(early["domain"]["records"][0]["error"].as_str().unwrap().contains("_service"), "{early}");

    names.set(&zone(&domain));
    let verified = post(&world, "/domains/mail.acme.test/verify").await;
    assert_eq!(verified["verified"], json!(true), "{verified:#}");
    assert!(statuses(&verified["domain"]).iter().all(|(_, status)| status == "verified"), "{verified:#}");
    assert_eq!(world.call(Method::POST, "/emails", &mail).await.status, StatusCode::OK);
    assert_eq!(get(&world, &path).await["domain"], verified["domain"]);
}

#[tokio::test]
async fn verification_of_a_receiving_domain_checks_mx() {
    let (world, names) = World::with_names("").await;
    for (number, (mx, status)) in
        [("10 mx.other.test.", "conflict"), ("10 mx.example.net.", "verified")].into_iter().enumerate()
    {
        let name = format!("acme{number}.test");
        let domain = add(&world, &json!({"name": name, "inbound_enabled": true})).await;
        names.set(&format!("{}{name} MX {mx}\n", zone(&domain)));
        let verified = post(&world, &format!("/domains/{name}/verify")).await;
        assert_eq!(verified["verified"], json!(true), "{verified:#}");
        let last = statuses(&verified["domain"]).pop().unwrap();
        assert_eq!(last, ("inbound".to_owned(), status.to_owned()), "{verified:#}");
    }
}

#[tokio::test]
async fn existing_spf_record_is_merged() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"name": "acme.test"})).await;
    let other = "v=spf1 include:other.test -all";
    let zone = zone(&domain).replace("v=spf1 include:spf.example.net ~all", other);
    names.set(&format!("{zone}other.test TXT \"v=spf1 ip4:192.0.2.9 -all\"\n"));
    let verified = post(&world, "/domains/acme.test/verify").await;
    let spf = &verified["domain"]["records"][4];
    assert_eq!((&spf["purpose"], &spf["status"]), (&json!("spf"), &json!("mismatch")), "{spf:#}");
    assert_eq!(spf["found"], json!([other]));
    assert_eq!(spf["value"], json!("v=spf1 include:other.test include:spf.example.net -all"));
    let file = world.call(Method::GET, "/domains/acme.test/zone-file", &Value::Null).await;
    let file = String::from_utf8(file.body.to_vec()).unwrap();
    assert!(
        file.contains("acme.test. 3600 IN TXT \"v=spf1 include:other.test include:spf.example.net -all\""),
        "{file}"
    );
    assert!(file.contains("rp.acme.test. 3600 IN CNAME rp.example.net."), "{file}");
}

#[tokio::test]
async fn missing_records_have_three_days_grace() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"name": "acme.test"})).await;
    names.set(&zone(&domain));
    accounts::background_tasks::start_accounts(&world.queue, &world.accounts, None);
    let state = async |expected: &str, degraded: bool| {
        loop {
            let domain = get(&world, "/domains/acme.test").await["domain"].clone();
            if domain["status"] == json!(expected) && domain["degraded_since"].is_null() != degraded {
                return domain;
            }
            // The background check runs every few seconds of its own clock.
            world.services.clock.advance(Duration::from_secs(600));
            tokio::task::yield_now().await;
        }
    };
    state("verified", false).await;
    names.set("");
    let degraded = state("verified", true).await;
    assert_ne!(degraded["degraded_since"], json!(null));
    names.set(&zone(&domain));
    state("verified", false).await;
    names.set("");
    state("verified", true).await;
    world.services.clock.advance(Duration::from_secs(72 * 3_600));
    state("unverified", false).await;
}

#[tokio::test]
async fn rotated_keys_sign_once_published() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"name": "acme.test", "dkim_selector": "Mine"})).await;
    assert_eq!(domain["dkim"]["selector"], json!("mine"));
    names.set(&zone(&domain));
    assert_eq!(post(&world, "/domains/acme.test/verify").await["verified"], json!(true));
    let turning = post(&world, "/domains/acme.test/dkim/rotate").await["domain"].clone();
    let next = turning["dkim"]["pending_selector"].as_str().unwrap().to_owned();
    assert_eq!(turning["dkim"]["selector"], json!("mine"));
    let again = post(&world, "/domains/acme.test/dkim/rotate").await["domain"].clone();
    assert_eq!(again["dkim"]["pending_selector"], json!(next), "a second rotation creates no third key pair");
    let waiting = post(&world, "/domains/acme.test/verify").await["domain"].clone();
    assert_eq!((&waiting["dkim"]["selector"], &waiting["status"]), (&json!("mine"), &json!("verified")));
    names.set(&zone(&turning));
    let turned = post(&world, "/domains/acme.test/verify").await["domain"].clone();
    assert_eq!(turned["dkim"]["selector"], json!(next));
    assert_eq!(turned["dkim"]["former_selector"], json!("mine"));
    assert_eq!(turned["dkim"]["pending_selector"], json!(null));
    let listed = turned["records"].as_array().unwrap();
    for former in ["mine._domainkey.acme.test", "minee._domainkey.acme.test"] {
        assert!(listed.iter().any(|record| record["name"] == json!(former)), "{former}: {turned:#}");
    }
}

#[tokio::test]
async fn pending_rotation_can_be_cancelled() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"name": "acme.test"})).await;
    names.set(&zone(&domain));
    post(&world, "/domains/acme.test/verify").await;
    let turning = post(&world, "/domains/acme.test/dkim/rotate").await["domain"].clone();
    assert!(turning["dkim"]["pending_selector"].is_string());
    for _ in 0..2 {
        let dropped = world.call(Method::DELETE, "/domains/acme.test/dkim/rotate", &Value::Null).await;
        assert_eq!(dropped.json()["domain"]["dkim"], domain["dkim"], "{}", dropped.json());
        assert_eq!(dropped.json()["domain"]["records"].as_array().unwrap().len(), 6);
    }
    names.set(&zone(&turning));
    let verified = post(&world, "/domains/acme.test/verify").await["domain"].clone();
    assert_eq!(verified["dkim"]["selector"], domain["dkim"]["selector"]);
}

#[tokio::test]
async fn links_use_the_tracking_host_once_its_record_is_found() {
    let (world, names) = World::with_names("").await;
    let body = json!({"name": "acme.test", "click_tracking": true, "tracking_host": "links.acme.test"});
    let domain = add(&world, &body).await;
    let complete = zone(&domain);
    let untracked: Vec<&str> = complete.lines().filter(|line| !line.starts_with("links.")).collect();
    let mail = json!({
        "from": "a@acme.test", "to": "b@example.net", "subject": "s",
        "html": "<a href=\"https://shop.example/\">x</a>",
    });
    let link = async || {
        let sent = world.call(Method::POST, "/emails", &mail).await.json();
        let raw = format!("/emails/{}/raw", sent["id"].as_str().unwrap());
        let raw = world.call(Method::GET, &raw, &Value::Null).await.body;
        let text = String::from_utf8_lossy(&raw).replace("=\r\n", "");
        text.split("/c/").next().unwrap().rsplit("https://").next().unwrap().to_owned()
    };
    names.set(&untracked.join("\n"));
    let verified = post(&world, "/domains/acme.test/verify").await;
    assert_eq!(verified["verified"], json!(true), "{verified:#}");
    let through_us = link().await;
    assert!(through_us == "api.example.test", "{through_us}");
    names.set(&complete);
    post(&world, "/domains/acme.test/verify").await;
    assert_eq!(link().await, "links.acme.test");
    // Another host needs another record.
    let change = json!({"tracking_host": "go.acme.test"});
    world.call(Method::PATCH, "/domains/acme.test", &change).await;
    assert_eq!(link().await, "api.example.test");
}

#[tokio::test]
async fn reserved_domain_names_are_refused() {
    let world = World::start().await;
    for (name, reason) in [
        ("github.io", "is a public suffix"),
        ("mx.example.net", "is a host of this service"),
        ("rp.example.net", "is a host of this service"),
    ] {
        let refused = world.call(Method::POST, "/domains", &json!({"name": name})).await;
        let message = refused.json()["error"]["details"]["fields"]["name"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == StatusCode::BAD_REQUEST && message.contains(reason), "{name}: {message}");
    }
    add(&world, &json!({"name": "acme.github.io"})).await;
    let world = World::with_public_dns().await;
    for name in ["printer.local", "acme.test", "x.onion", "db.internal"] {
        let refused = world.call(Method::POST, "/domains", &json!({"name": name})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}");
    }
    add(&world, &json!({"name": "acme.net"})).await;
}

#[tokio::test]
async fn invalid_names_and_keys_name_the_error() {
    let world = World::start().await;
    let long = format!("{0}.{0}.{0}.{1}.test", "a".repeat(63), "a".repeat(50));
    let short = include_str!("../../../dns/tests/keys/rsa1024.pem");
    for (body, field, words) in [
        (json!({}), "name", "is required"),
        (json!({"name": "co.uk"}), "name", "public suffix"),
        (json!({"name": "localhost"}), "name", "domain name"),
        (json!({"name": "https://acme.com/"}), "name", "`acme.com`"),
        (json!({"name": "acme.test", "tls_mode": "maybe"}), "tls_mode", "opportunistic"),
        (json!({"name": "acme.test", "dkim_selector": "a.b"}), "dkim_selector", "letters"),
        (json!({"name": "acme.test", "dkim_private_key": "secret"}), "dkim_private_key", "PEM"),
        (json!({"name": "acme.test", "dkim_private_key": short}), "dkim_private_key", "2,048"),
        (json!({"name": "acme.test", "tracking_host": "x y"}), "tracking_host", "host name"),
        (json!({"name": "acme.test", "tracking_host": "t.other.test"}), "tracking_host", "below the domain"),
        (json!({"name": "acme.test", "tracking_host": "rp.acme.test"}), "tracking_host", "return path"),
        (json!({"name": long}), "name", "253 bytes"),
    ] {
        let response = world.call(Method::POST, "/domains", &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        let sent_bytes = response.json()["error"]["details"]["fields"][field].as_str().unwrap_or_default().to_owned();
        assert!(sent_bytes.contains(words), "{body}: {}", response.json());
    }
}

#[tokio::test]
async fn existing_dkim_key_is_imported() {
    let world = World::start().await;
    for pem in [
        include_str!("../../../dns/tests/keys/rsa2048.pkcs8.pem"),
        include_str!("../../../dns/tests/keys/rsa2048.pkcs1.pem"),
    ] {
        let body = json!({"name": "acme.test", "dkim_private_key": pem, "dkim_selector": "old"});
        let domain = add(&world, &body).await;
        let value = domain["records"][1]["value"].as_str().unwrap();
        assert!(value.starts_with("v=DKIM1; k=rsa; p=MIIBIjANBgkq"), "{value}");
        assert!(!domain.to_string().contains("PRIVATE"));
        let deleted = world.call(Method::DELETE, "/domains/acme.test", &Value::Null).await;
        assert_eq!(deleted.json(), json!({"ok": true}));
    }
}

#[tokio::test]
async fn settings_are_changed_and_a_domain_is_deleted() {
    let world = World::with_auto_verify().await;
    let domain = add(&world, &json!({"name": "acme.test", "open_tracking": true, "inbound_enabled": true})).await;
    assert_eq!((&domain["status"], &domain["open_tracking"]), (&json!("verified"), &json!(true)));
    assert_eq!(statuses(&domain).last().unwrap().0, "inbound");
    let change = json!({"open_tracking": false, "tls_mode": "enforced", "tracking_host": "links.acme.test"});
    let changed = world.call(Method::PATCH, "/domains/acme.test", &change).await.json()["domain"].clone();
    assert_eq!((&changed["tls_mode"], &changed["open_tracking"]), (&json!("enforced"), &json!(false)));
    assert_eq!(statuses(&changed).last().unwrap().0, "tracking");
    let other_word = world.call(Method::PATCH, "/domains/acme.test", &json!({"tls": "opportunistic"})).await;
    assert_eq!(other_word.json()["domain"]["tls_mode"], json!("opportunistic"));
    let cleared = world.call(Method::PATCH, "/domains/acme.test", &json!({"tracking_host": null})).await;
    assert_eq!(cleared.json()["domain"]["tracking_host"], json!(null));

    let later = json!({
        "from": "a@acme.test", "to": "b@example.net", "subject": "s", "text": "t",
        "scheduled_at": (world.services.clock.now() + jiff::SignedDuration::from_hours(2)).to_string(),
    });
    assert_eq!(world.call(Method::POST, "/emails", &later).await.status, StatusCode::OK);
    let unchanged = world.call(Method::DELETE, "/domains/acme.test", &Value::Null).await;
    assert_eq!((unchanged.status, unchanged.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    let deleted = world.call(Method::DELETE, "/domains/acme.test?force=true", &Value::Null).await;
    assert_eq!(deleted.json(), json!({"ok": true}));
    let none = world.call(Method::GET, "/domains/acme.test", &Value::Null).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert_eq!(add(&world, &json!({"name": "acme.test"})).await["status"], json!("verified"));
}

#[tokio::test]
async fn lists_are_paged_and_filtered() {
    let world = World::start().await;
    for number in 0..5 {
        add(&world, &json!({"name": format!("d{number}.acme.test")})).await;
    }
    let names = |page: &Value| -> Vec<String> {
        page["domains"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = get(&world, "/domains?limit=2").await;
    assert_eq!(names(&first), ["d4.acme.test", "d3.acme.test"]);
    let next = format!("/domains?limit=50&cursor={}", first["next_cursor"].as_str().unwrap());
    let rest = get(&world, &next).await;
    assert_eq!(names(&rest), ["d2.acme.test", "d1.acme.test", "d0.acme.test", "example.com"]);
    assert_eq!((&rest["has_more"], &rest["next_cursor"]), (&json!(false), &json!(null)));
    assert_eq!(names(&get(&world, "/domains?status=verified").await), ["example.com"]);
    assert_eq!(names(&get(&world, "/domains?q=D3").await), ["d3.acme.test"]);
    add(&world, &json!({"name": "Bücher.test"})).await;
    for q in ["b%C3%BCch", "B%C3%9CCHER.test", "xn--bcher-kva"] {
        assert_eq!(names(&get(&world, &format!("/domains?q={q}")).await), ["xn--bcher-kva.test"], "{q}");
    }
}

#[tokio::test]
async fn plan_limits_domains() {
    let world = World::start().await;
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let mut batch = store::engine::Batch::progress();
    let free = model::account::Account { plan: Plan::Free, ..account.clone() };
    store::account::update(&mut batch, &account, &free);
    world.services.store.commit(batch).await.unwrap();
    let refused = world.call(Method::POST, "/domains", &json!({"name": "acme.test"})).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "plan_limit"));
    let error = refused.json()["error"].clone();
    assert_eq!(error["details"], json!({"limit": "domains", "used": 1, "cap": 1}));
    assert_eq!(error.get("upgrade_url"), None, "{error}");
}

#[tokio::test]
async fn dns_control_proves_a_claim() {
    let (world, names) = World::with_names("").await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let domain = add(&world, &json!({"name": "acme.test"})).await;
    let again = world.call(Method::POST, "/domains", &json!({"name": "acme.test"})).await;
    assert_eq!((again.status, again.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    names.set(&zone(&domain));
    assert_eq!(post(&world, "/domains/acme.test/verify").await["verified"], json!(true));

    let call = async |method: Method, path: &str, body: &Value| world.call_as(&other, method, path, body).await;
    let duplicate = call(Method::POST, "/domains", &json!({"name": "acme.test"})).await;
    assert_eq!((duplicate.status, duplicate.code().as_str()), (StatusCode::CONFLICT, "domain_claimed"));
    let details = duplicate.json()["error"]["details"].clone();
    assert_eq!(details["claim"]["create"], json!("POST /domains/claims"));
    let claim = call(Method::POST, "/domains/claims", &json!({"name": "acme.test"})).await.json()["claim"].clone();
    assert_eq!(claim["status"], json!("pending"));
    assert_eq!(claim["record"]["value"], details["claim"]["value"]);
    let path = format!("/domains/claims/{}", claim["id"].as_str().unwrap());
    let verify = format!("{path}/verify");
    let early = call(Method::POST, &verify, &json!({})).await.json()["claim"].clone();
    assert_eq!((&early["status"], &early["record"]["status"]), (&json!("pending"), &json!("mismatch")), "{early:#}");
    let foreign = world.call(Method::GET, &path, &Value::Null).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "only the claimant sees the claim");

    let both = format!("{}_service.acme.test TXT \"{}\"\n", zone(&domain), claim["record"]["value"].as_str().unwrap());
    names.set(&both);
    world.services.clock.advance(FRESH);
    let proven = call(Method::POST, &verify, &json!({})).await.json()["claim"].clone();
    assert_eq!(
        (&proven["status"], &proven["blocked_reason"]),
        (&json!("blocked"), &json!("grace_period")),
        "{proven:#}"
    );
    world.services.clock.advance(Duration::from_secs(73 * 3_600));
    let disputed = call(Method::POST, &verify, &json!({})).await.json()["claim"].clone();
    assert_eq!(disputed["blocked_reason"], json!("recent_owner_activity"), "both records are published");
    let queries = names.queries();
    for _ in 0..20 {
        assert_eq!(call(Method::POST, &verify, &json!({})).await.json()["claim"], disputed);
    }
    assert_eq!(names.queries(), queries, "the cached results are returned");
    let own = domain["records"][0]["value"].as_str().unwrap();
    names.set(&both.lines().filter(|line| !line.contains(own)).collect::<Vec<_>>().join("\n"));
    world.services.clock.advance(FRESH);
    let done = call(Method::POST, &verify, &json!({})).await.json()["claim"].clone();
    assert_eq!((&done["status"], &done["blocked_reason"]), (&json!("completed"), &json!(null)));
    let moved = call(Method::GET, "/domains/acme.test", &Value::Null).await.json()["domain"].clone();
    assert_eq!(moved["status"], json!("unverified"));
    assert_ne!(moved["dkim"]["selector"], domain["dkim"]["selector"], "the new owner gets new keys");
    let deleted = world.call(Method::GET, "/domains/acme.test", &Value::Null).await;
    assert_eq!(deleted.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn unverified_domain_moves_to_the_claimant() {
    let (world, names) = World::with_names("").await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let body = json!({"name": "acme.test"});
    let free = world.call_as(&other, Method::POST, "/domains/claims", &body).await;
    assert_eq!(free.status, StatusCode::NOT_FOUND, "the domain belongs to nobody");
    add(&world, &body).await;
    let claim = world.call_as(&other, Method::POST, "/domains/claims", &body).await.json()["claim"].clone();
    let value = claim["record"]["value"].as_str().unwrap();
    names.set(&format!("_service.acme.test TXT \"{value}\"\n"));
    let path = format!("/domains/claims/{}/verify", claim["id"].as_str().unwrap());
    let done = world.call_as(&other, Method::POST, &path, &json!({})).await.json()["claim"].clone();
    assert_eq!(done["status"], json!("completed"), "{done:#}");
}

#[tokio::test]
async fn dns_credentials_are_sealed_and_used() {
    let (world, _names) = World::with_names("").await;
    add(&world, &json!({"name": "acme.test"})).await;
    let secret = "c2VjcmV0IG9mIGF0IGxlYXN0IDMyIGJ5dGVzLCBhcyBpcyBtZWV0";
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let credentials = json!({"server": nobody.to_string(), "key_name": "postrider", "secret": secret});
    let path = "/dns-credentials/rfc2136";
    let apply = "/domains/acme.test/dns/apply";
    let by_saved = json!({"provider": "rfc2136", "use_saved": true});
    let none = world.call(Method::POST, apply, &by_saved).await;
    assert_eq!((none.status, none.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
    let invalid = world.call(Method::PUT, path, &json!({"credentials": {"server": "x", "colour": "blue"}})).await;
    let fields = invalid.json()["error"]["details"]["fields"].clone();
    assert!(fields["credentials.secret"].is_string() && fields["credentials.colour"].is_string(), "{fields}");
    let saved = world.call(Method::PUT, path, &json!({"credentials": credentials})).await;
    assert_eq!(saved.status, StatusCode::OK, "{}", saved.json());
    let listed = get(&world, "/dns-credentials").await;
    assert_eq!(listed["dns_credentials"][0]["provider"], json!("rfc2136"));
    assert!(!listed.to_string().contains(secret) && !saved.json().to_string().contains(secret));
    let other = world.account(2, ApiKeyScope::Full).await;
    let foreign = world.call_as(&other, Method::GET, "/dns-credentials", &Value::Null).await.json();
    assert_eq!(foreign["dns_credentials"], json!([]));

    // Nothing listens there: the error shows that the saved credentials were decrypted and used.
    let refused = world.call(Method::POST, apply, &by_saved).await;
    let message = refused.json()["error"].to_string();
    assert!(message.contains("credentials.server") || message.contains("upstream_error"), "{message}");
    let once = json!({"provider": "rfc2136", "credentials": credentials, "use_saved": true});
    assert_eq!(world.call(Method::POST, apply, &once).await.status, StatusCode::BAD_REQUEST);
    let deleted = world.call(Method::DELETE, path, &Value::Null).await;
    assert_eq!(deleted.json(), json!({"ok": true}));
    assert_eq!(world.call(Method::DELETE, path, &Value::Null).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn domain_checks_are_cached() {
    let (world, names) = World::with_names("").await;
    let domain = add(&world, &json!({"domain": "acme.test"})).await;
    names.set(&zone(&domain));
    let verify = async || {
        let response = world.call(Method::POST, "/domains/acme.test/verify", &json!({})).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.json());
        response.json()
    };
    // One of many concurrent requests performs the check.
    let first = verify().await;
    let once = names.queries();
    assert_eq!(first["verified"], json!(true), "{first:#}");
    names.set("");
    let again = futures_util::future::join_all((0..50).map(|_| verify())).await;
    assert!(again.iter().all(|response| *response == first), "the cached result");
    assert_eq!(names.queries(), once, "no DNS query was sent");
    world.services.clock.advance(FRESH);
    let responses = futures_util::future::join_all((0..50).map(|_| verify())).await;
    assert!(responses.iter().all(|response| response["domain"]["degraded_since"].is_string()));
    let extra_queries = names.queries() - once;
    assert!(extra_queries <= 3 * once, "one check, not fifty: {extra_queries} queries");

    // A check of other records is not cached.
    let before = names.queries();
    world.call(Method::POST, "/domains/acme.test/dkim/rotate", &json!({})).await;
    verify().await;
    assert!(names.queries() > before);
}

#[tokio::test]
async fn dns_lookups_are_limited_by_account() {
    const BURST: usize = 200;
    /// Most queries of one check.
    const ONE_MAX: usize = 100;
    let (world, names) = World::with_names("").await;
    let other = world.account(2, ApiKeyScope::Full).await;
    for n in 0..60 {
        add(&world, &json!({"domain": format!("d{n}.test")})).await;
    }
    let send_request = async |n: usize| {
        let path = format!("/domains/d{n}.test/verify");
        world.call(Method::POST, &path, &json!({})).await
    };
    let started = world.services.clock.now();
    let responses = futures_util::future::join_all((0..60).map(send_request)).await;
    let elapsed_s = world.services.clock.now().duration_since(started).as_secs_f64();
    eprintln!("QUESTIONS {} {}", names.queries(), responses.iter().filter(|a| a.status == StatusCode::OK).count());
    let refused = responses.iter().position(|response| response.status != StatusCode::OK);
    let number = refused.expect("sixty domains are too many at once");
    let refused = &responses[number];
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"));
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
    let bound = BURST + ONE_MAX + (elapsed_s * 20.0) as usize;
    assert!(names.queries() <= bound, "{} of {bound}", names.queries());
    // The stored result of a domain is still returned, however many requests ask for it.
    world.services.clock.advance(FRESH);
    let again = futures_util::future::join_all((0..60).map(send_request)).await;
    let known = responses.iter().zip(&again).filter(|(before, _)| before.status == StatusCode::OK);
    assert!(known.map(|(_, after)| after.status).all(|status| status == StatusCode::OK));
    let before = names.queries();
    // Another account is still served.
    let body = json!({"domain": "other.test"});
    world.call_as(&other, Method::POST, "/domains", &body).await;
    let foreign = world.call_as(&other, Method::POST, "/domains/other.test/verify", &json!({})).await;
    assert_eq!(foreign.status, StatusCode::OK, "{}", foreign.json());
    assert!(names.queries() > before);
    world.services.clock.advance(Duration::from_secs(20));
    assert_eq!(send_request(number).await.status, StatusCode::OK);
}
