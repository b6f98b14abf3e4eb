//! Tests of the pages of domains, with fixed answers of the API.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

fn record(purpose: &str, status: &str, found: &[&str]) -> Value {
    json!({
        "purpose": purpose, "type": "TXT", "name": "_x.example.com", "value": "v=spf1 include:spf.example.net ~all", "ttl": 3600,
        "priority": null, "required": true, "status": status, "found": found, "error": HOSTILE, "checked_at": null,
    })
}

fn domain() -> Value {
    json!({
        "id": "dom_1", "name": "example.com", "status": "unverified", "inbound_enabled": false, "inbound_addresses": [],
        "open_tracking": false, "click_tracking": true, "tls_mode": "opportunistic", "tracking_host": null,
        "dkim": {"selector": "a", "key_bits": 2048, "pending_selector": "b", "former_selector": null, "former_until": null},
        "dkim_ready": true,
        "records": [record("ownership", "verified", &[]), record("spf", "mismatch", &[HOSTILE])],
        "degraded_since": null, "verified_at": null, "last_checked_at": null, "created_at": "2026-11-01T00:00:00Z",
    })
}

fn claim(status: &str) -> Value {
    json!({"claim": {
        "id": "clm_1", "name": "example.com", "status": status, "record": record("ownership", "missing", &[]),
        "blocked_reason": "grace_period", "grace_ends_at": null, "created_at": "2026-11-01T00:00:00Z",
        "expires_at": "2026-11-08T00:00:00Z",
    }})
}

fn backend() -> FakeBackend {
    let change = json!({
        "action": "update", "outcome": "done", "record": record("spf", "mismatch", &[]), "replaces": HOSTILE, "reason": null,
    });
    FakeBackend::new()
        .answer("list_domains", json!({"domains": [domain()], "next_cursor": null}))
        .answer("get_domain", json!({"domain": domain()}))
        .answer("apply_domain_dns", json!({"domain": domain(), "changes": [change], "applied": true}))
        .answer("connect_domain_dns", json!({"url": "https://dns.example/?a=1"}))
        .answer(
            "list_dns_credentials",
            json!({"dns_credentials": [{"provider": "cloudflare", "saved_at": "2026-11-01T00:00:00Z"}]}),
        )
        .answer("save_dns_credentials", json!({}))
        .answer("delete_dns_credentials", json!({}))
        .answer("verify_domain", json!({}))
        .answer("update_domain", json!({}))
        .answer("delete_domain", json!({}))
        .answer("rotate_domain_dkim", json!({}))
        .answer("get_domain_claim", claim("blocked"))
        .answer("create_domain_claim", claim("pending"))
        .answer("verify_domain_claim", claim("completed"))
}

#[test]
fn a_domain_shows_its_wrong_record() {
    let page = html(backend().get("/domains/example.com"));
    assert_harmless(&page);
    assert!(
        page.contains("Wrong value") && page.contains("<ins>") && page.contains("example.com cannot send yet."),
        "{page}"
    );
    // The words of the command line and the assistants' tools.
    assert!(page.contains("The record for senders (SPF) has the wrong value."), "{page}");
    assert!(page.contains("to the value shown, then check the domain again."), "{page}");
    assert!(html(backend().get("/domains")).contains("Permitted senders (SPF)"));
    let viewer = backend().forbid("verify_domain").forbid("delete_domain").forbid("apply_domain_dns");
    let page = html(viewer.get("/domains/example.com"));
    assert!(!page.contains("Verify now") && !page.contains("/delete") && !page.contains("/publish"), "{page}");
}

#[test]
fn a_verified_domain_that_was_never_checked_has_no_warning() {
    let mut domain = domain();
    domain["status"] = "verified".into();
    domain["records"] = json!([record("spf", "pending", &[])]);
    let page = html(backend().answer("get_domain", json!({"domain": domain})).get("/domains/example.com"));
    let notice =
        "<div class=\"notice\" role=\"status\"><p>example.com can send. Its records have not been checked yet.";
    assert!(page.contains(notice), "{page}");
}

#[test]
fn records_are_published_with_saved_and_with_one_time_access() {
    let backend = backend();
    let page = html(backend.post(
        "/domains/dom_1/publish",
        "apply-saved",
        &[("provider", "cloudflare"), ("dry_run", "true"), ("merge_spf", "true")],
    ));
    assert_harmless(&page);
    let body = json!({"provider": "cloudflare", "merge_spf": true, "dry_run": true, "use_saved": true});
    assert_eq!(backend.calls("apply_domain_dns")[0].body, CallBody::Json(body));
    let fields = [
        ("provider", "porkbun"),
        ("credentials.api_key", "k"),
        ("credentials.secret_api_key", "s"),
        ("dry_run", "false"),
    ];
    html(backend.post("/domains/dom_1/publish", "apply", &fields));
    let body = json!({
        "provider": "porkbun", "credentials": {"api_key": "k", "secret_api_key": "s"}, "merge_spf": false, "dry_run": false,
        "use_saved": false,
    });
    assert_eq!(backend.calls("apply_domain_dns")[1].body, CallBody::Json(body));
    assert!(html(backend.get("/domains/dom_1/publish?provider=porkbun")).contains("Secret API key"));
    assert!(html(backend.post("/domains/dom_1/publish", "connect", &[])).contains("href=\"https://dns.example/?a=1\""));
    let hostile = backend.answer("connect_domain_dns", json!({"url": "javascript:alert(1)"}));
    assert!(!html(hostile.post("/domains/dom_1/publish", "connect", &[])).contains("href=\"javascript"));
}

#[test]
fn a_claimed_domain_can_be_claimed() {
    let details = json!({"domain": "example.com", "claim": {"name": "_service.example.com", "value": HOSTILE}});
    let claimed = Failure {
        status: 409,
        code: "domain_claimed".into(),
        message: "Another account".into(),
        details: Box::new(details),
        ..Failure::default()
    };
    let backend = backend().refuse("create_domain", claimed);
    let answer = backend.post("/domains/new", "add", &[("name", "example.com")]);
    assert_eq!(answer.status, 409);
    let page = html(answer);
    assert_harmless(&page);
    assert!(page.contains("Start the claim") && page.contains("_service.example.com"), "{page}");
    assert_eq!(
        location(backend.post("/domains/new", "claim", &[("name", "example.com")])),
        "/dashboard/domains/claims/clm_1?done=created"
    );
    assert!(html(backend.get("/domains/claims/clm_1")).contains("The other account was notified"));
    assert_eq!(
        location(backend.post("/domains/claims/clm_1", "verify", &[])),
        "/dashboard/domains/claims/clm_1?done=verified"
    );
}

#[test]
fn settings_keys_and_deletion_call_their_operations() {
    let backend = backend();
    let fields =
        [("open_tracking", "true"), ("tracking_host", ""), ("tls_mode", "enforced"), ("inbound_addresses", "")];
    location(backend.post("/domains/dom_1/settings", "settings", &fields));
    let body = json!({
        "open_tracking": true, "click_tracking": false, "tracking_host": null, "tls_mode": "enforced", "inbound_enabled": false,
        "inbound_addresses": [],
    });
    assert_eq!(backend.calls("update_domain")[0].body, CallBody::Json(body));
    assert!(html(backend.get("/domains/dom_1/keys")).contains("Cancel the rotation"));
    assert_eq!(
        location(backend.post("/domains/dom_1/keys", "rotate", &[])),
        "/dashboard/domains/dom_1/keys?done=created"
    );
    let refused = backend.post("/domains/dom_1/delete", "delete", &[("confirm", "example.org")]);
    assert!(html(refused).contains("This is not the name") && backend.calls("delete_domain").is_empty());
    location(backend.post("/domains/dom_1/delete", "delete", &[("confirm", "example.com"), ("force", "true")]));
    assert_eq!(backend.calls("delete_domain")[0].query, [("force".to_owned(), "true".to_owned())]);
    match backend.get("/domains/dom_1/zone-file").content {
        PageContent::Download { call, file_name } => {
            assert_eq!((call.operation, file_name.as_str()), ("get_domain_zone_file", "example.com.zone"));
        }
        other => panic!("no file: {other:?}"),
    }
}

#[test]
fn saved_access_is_listed_saved_and_deleted_by_name() {
    let backend = backend();
    assert!(html(backend.get("/domains/dns-credentials")).contains("Cloudflare"));
    let fields = [("provider", "cloudflare"), ("credentials.api_token", "t")];
    location(backend.post("/domains/dns-credentials/new?provider=cloudflare", "save", &fields));
    let saved = &backend.calls("save_dns_credentials")[0];
    assert_eq!(
        (&saved.path[0].1, &saved.body),
        (&"cloudflare".to_owned(), &CallBody::Json(json!({"credentials": {"api_token": "t"}})))
    );
    location(backend.post("/domains/dns-credentials/cloudflare/delete", "delete", &[("confirm", "Cloudflare")]));
    assert_eq!(backend.calls("delete_dns_credentials").len(), 1);
    assert_eq!(backend.get("/domains/dns-credentials/gandi/delete").status, 404);
}

#[test]
fn reports_are_shown() {
    let tally = json!({"messages": 200, "passed": 150, "failed": 50, "dkim_aligned": 150, "spf_aligned": 100, "quarantined": 0, "rejected": 0});
    let mut source = tally.clone();
    source["ip"] = json!("192.0.2.1");
    source["host"] = json!(HOSTILE);
    source["ours"] = json!(false);
    let report = json!({"dmarc": {
        "domain": "example.com", "policy": {"p": "none", "sp": null, "adkim": "relaxed", "aspf": "relaxed"}, "totals": tally,
        "sources": [source], "reporters": [], "days": [{"date": "2026-11-20", "sent": null, "reported": 200, "passed": 150, "failed": 50}],
    }});
    let page = html(backend().answer("get_domain_dmarc", report).get("/domains/dom_1/dmarc"));
    assert_harmless(&page);
    assert!(page.contains("Some email fails") && page.contains("75.0%"), "{page}");
}
