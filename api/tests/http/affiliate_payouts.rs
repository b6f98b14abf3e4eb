//! `/affiliate-payouts` for API keys, and the owner's payout runs.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use store::task::PARTITIONS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::affiliate_ledger::{event, invoice, post_event};
use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::affiliates::{all, partner, with_headers};
use crate::world::{TestResponse, TestSession, World};

/// A program without a hold period; returns its owner and its id.
async fn program(world: &World) -> (TestSession, String) {
    let session = set_up(world, 1).await;
    let now = owner(world, &session, Method::PUT, "/campaigns/default", json!({"hold_days": 0})).await;
    assert_eq!(now.status, StatusCode::OK, "{now:?}");
    let view = owner(world, &session, Method::GET, "", json!({})).await.json();
    (session, view["program"]["id"].as_str().unwrap().to_owned())
}

/// A partner with this PayPal address, and a customer `cus_NAME`.
async fn create_seller(world: &World, name: &str, paypal: Option<&str>) -> String {
    let mut body = json!({"email": format!("{name}@example.org"), "token": name});
    if let Some(paypal) = paypal {
        body["paypal_email"] = json!(paypal);
    }
    let made = partner(world, body).await;
    let referral = json!({
        "token": name, "email": format!("{name}.buys@example.net"), "processor_customer_id": format!("cus_{name}"),
    });
    assert_eq!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status, StatusCode::CREATED);
    made["id"].as_str().unwrap().to_owned()
}

/// Records a paid invoice of a seller's customer.
async fn record_sale(world: &World, program: &str, name: &str, number: u32, cents: i64) {
    let (id, customer) = (format!("in_{name}{number}"), format!("cus_{name}"));
    let paid = invoice(world, &id, &customer, cents);
    let paid = event(world, &format!("evt_{name}{number}"), "invoice.paid", &paid);
    assert_eq!(post_event(world, program, &paid).await.json()["status"], "done");
}

/// A draft run with 2,000 for Ada and 400 for Bob.
pub(crate) async fn draft_run(world: &World) -> (TestSession, Value) {
    let (session, program) = program(world).await;
    create_seller(world, "ada", Some("ada@paypal.example")).await;
    create_seller(world, "bob", Some("bob@paypal.example")).await;
    record_sale(world, &program, "ada", 1, 10_000).await;
    record_sale(world, &program, "bob", 1, 2_000).await;
    let draft = owner(world, &session, Method::POST, "/payout-runs", json!({})).await;
    assert_eq!(draft.status, StatusCode::CREATED, "{draft:?}");
    (session, draft.json())
}

#[tokio::test]
async fn draft_follows_the_current_payout_destination() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let path = format!("/payout-runs/{}", draft["run"]["id"].as_str().unwrap());
    let ada = draft["payouts"][0].clone();
    assert_eq!(ada["destination"], "ada@paypal.example");
    let method = format!("/partners/{}/payout-method", ada["affiliate_id"].as_str().unwrap());
    let set = async |body| owner(&world, &session, Method::PUT, &method, body).await;
    let view = async || owner(&world, &session, Method::GET, &path, json!({})).await.json();
    set(json!({"method": "wise", "destination": "ada@wise.example"})).await;
    let run = view().await;
    let payout = &run["payouts"][0];
    assert_eq!((&payout["method"], &payout["destination"]), (&json!("wise"), &json!("ada@wise.example")));
    assert_eq!((&payout["id"], &payout["amount_cents"]), (&ada["id"], &ada["amount_cents"]));
    assert!(run["run"]["rev"].as_u64() > draft["run"]["rev"].as_u64(), "{run}");
    assert_eq!(approve(&world, &session, &draft["run"]).await.status, StatusCode::CONFLICT);
    let of_payout = format!("/affiliate-commissions?payout_id={}", payout["id"].as_str().unwrap());
    let lines = world.get(&of_payout).await.json();
    assert_eq!(
        (lines["data"].as_array().unwrap().len(), &lines["data"][0]["amount_cents"]),
        (1, &payout["amount_cents"])
    );
    // The same change again changes nothing. A payout without a destination leaves the draft.
    set(json!({"method": "wise", "destination": "ada@wise.example"})).await;
    assert_eq!(view().await["run"]["rev"], run["run"]["rev"]);
    set(json!({"method": "stripe", "destination": "acct_ada"})).await;
    let run = view().await;
    assert_eq!((&run["run"]["payouts_count"], &run["run"]["totals"]), (&json!(1), &json!({"usd": 400})));
    assert_eq!(run["skipped"][0]["reason"], "not_ready");
    assert_eq!(approve(&world, &session, &run["run"]).await.status, StatusCode::OK);
    // An approved payout is in progress and keeps its destination.
    let method = format!("/partners/{}/payout-method", run["payouts"][0]["affiliate_id"].as_str().unwrap());
    let elsewhere = json!({"method": "wise", "destination": "bob@wise.example"});
    assert_eq!(owner(&world, &session, Method::PUT, &method, elsewhere).await.status, StatusCode::OK);
    assert_eq!(view().await["payouts"][0]["destination"], "bob@paypal.example");
    check_audit(&world, &session).await;
    world.end().await;
}

#[tokio::test]
async fn draft_uses_allowed_payout_methods() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let path = format!("/payout-runs/{}", draft["run"]["id"].as_str().unwrap());
    let view = async || owner(&world, &session, Method::GET, &path, json!({})).await.json();
    let bank = json!({"method": "bank", "destination": "DE02"});
    let method = format!("/partners/{}/payout-method", draft["payouts"][0]["affiliate_id"].as_str().unwrap());
    assert_eq!(owner(&world, &session, Method::PUT, &method, bank).await.status, StatusCode::OK);
    let before = view().await;
    let set = json!({"allowed_methods": ["bank", "wise"]});
    assert_eq!(owner(&world, &session, Method::PATCH, "", set).await.status, StatusCode::OK);
    let after = view().await;
    assert_eq!((&after["run"]["payouts_count"], &after["run"]["totals"]), (&json!(1), &json!({"usd": 2000})));
    assert_eq!(after["run"]["rev"].as_u64(), before["run"]["rev"].as_u64().map(|rev| rev + 1));
    assert_eq!(after["skipped"][0]["reason"], "not_ready");
    assert_eq!(approve(&world, &session, &before["run"]).await.status, StatusCode::CONFLICT);
    assert_eq!(approve(&world, &session, &after["run"]).await.status, StatusCode::OK);
    check_audit(&world, &session).await;
    world.end().await;
}

#[tokio::test]
async fn the_ledger_has_the_balance_after_each_line() {
    let world = World::start().await;
    let (session, program) = program(&world).await;
    create_seller(&world, "ada", Some("ada@paypal.example")).await;
    for (number, cents) in [(1, 10_000), (2, 2_000), (3, 4_000)] {
        record_sale(&world, &program, "ada", number, cents).await;
        world.services.clock.advance(Duration::from_secs(1));
    }
    let lines = world.get("/affiliate-commissions").await.json()["data"].clone();
    let reversed = format!("/affiliate-commissions/{}", lines[1]["id"].as_str().unwrap());
    assert_eq!(world.call(Method::PATCH, &reversed, &json!({"status": "reversed"})).await.status, StatusCode::OK);
    let path = format!("/partners/{}/ledger", lines[0]["affiliate_id"].as_str().unwrap());
    let page =
        async |query: &str| owner(&world, &session, Method::GET, &format!("{path}?{query}"), json!({})).await.json();
    let row = |line: &Value| json!([line["commission"]["amount_cents"], line["balance_after_cents"]]);
    let whole = page("").await;
    let rows: Vec<_> = whole["data"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(json!(rows), json!([[800, 2_800], [400, 2_000], [2_000, 2_000]]), "the second one is reversed");
    assert!(whole["data"][0]["formula"].as_str().unwrap().contains("20 %"), "{whole}");
    let (mut paged, mut next) = (Vec::new(), String::new());
    loop {
        let found = page(&format!("limit=1{next}")).await;
        paged.extend(found["data"].as_array().unwrap().iter().map(row));
        match found["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(paged, rows);
    let gone = owner(&world, &session, Method::GET, "/partners/aff_x/ledger", json!({})).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    world.end().await;
}

/// The id of a payout in progress.
pub(crate) async fn processing(world: &World) -> String {
    let (session, draft) = draft_run(world).await;
    assert_eq!(approve(world, &session, &draft["run"]).await.status, StatusCode::OK);
    draft["payouts"][0]["id"].as_str().unwrap().to_owned()
}

async fn approve(world: &World, session: &TestSession, run: &Value) -> TestResponse {
    let path = format!("/payout-runs/{}/approve", run["id"].as_str().unwrap());
    let reviewed = json!({"rev": run["rev"], "totals": run["totals"]});
    owner(world, session, Method::POST, &path, reviewed).await
}

async fn check_audit(world: &World, session: &TestSession) -> Value {
    let audit = owner(world, session, Method::GET, "/audit", json!({})).await.json();
    assert_eq!(audit["ok"], true, "{audit}");
    audit["checked"].clone()
}

#[tokio::test]
async fn a_run_is_drafted_approved_and_paid() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let call = async |method, path: &str, body| owner(&world, &session, method, path, body).await;
    let run = draft["run"].clone();
    for (field, value) in [
        ("status", json!("draft")),
        ("partial", json!(false)),
        ("totals", json!({"usd": 2_400})),
        ("payouts_count", json!(2)),
        ("approved_at", Value::Null),
        ("completed_at", Value::Null),
    ] {
        assert_eq!(run[field], value, "{field}");
    }
    assert_eq!((draft["payouts"].as_array().unwrap().len(), &draft["skipped"]), (2, &json!([])));
    let id = run["id"].as_str().unwrap();
    let view = call(Method::GET, &format!("/payout-runs/{id}"), json!({})).await;
    assert_eq!((view.status, view.json()), (StatusCode::OK, draft.clone()));
    assert_eq!(view.headers["etag"], format!("\"{}\"", run["rev"]).as_str());
    assert_eq!(call(Method::GET, "/payout-runs", json!({})).await.json()["data"], json!([run]));
    assert_eq!(call(Method::POST, "/payout-runs", json!({})).await.code(), "conflict");
    assert_eq!(call(Method::GET, &format!("/payout-runs/{id}/csv"), json!({})).await.code(), "conflict");
    // An API key sees drafts but cannot mark them as paid.
    let payouts = all(&world, "/affiliate-payouts").await;
    let ada = payouts.iter().find(|entry| entry["amount_cents"] == 2_000).unwrap().clone();
    assert_eq!((&ada["status"], &ada["method"], &ada["run_id"]), (&json!("draft"), &json!("paypal"), &run["id"]));
    let paid_path = format!("/affiliate-payouts/{}/mark-paid", ada["id"].as_str().unwrap());
    let reference = json!({"reference": "BATCH-1"});
    let early = world.call(Method::POST, &paid_path, &reference).await;
    assert_eq!((early.status, early.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    let line = all(&world, "/affiliate-commissions?status=earned").await[0].clone();
    assert!(line["payout_id"].is_string());
    let reversal = format!("/affiliate-commissions/{}", line["id"].as_str().unwrap());
    let refused = world.call(Method::PATCH, &reversal, &json!({"status": "reversed"})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    let partner_path = format!("/affiliates/{}", ada["affiliate_id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &partner_path, &json!({})).await.code(), "conflict", "it is in a payout");

    world.end().await;
}

#[tokio::test]
async fn payouts_of_an_approved_run_are_paid_or_fail() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let call = async |method, path: &str, body| owner(&world, &session, method, path, body).await;
    let run = draft["run"].clone();
    let id = run["id"].as_str().unwrap();
    let payouts = all(&world, "/affiliate-payouts").await;
    let ada = payouts.iter().find(|entry| entry["amount_cents"] == 2_000).unwrap().clone();
    let paid_path = format!("/affiliate-payouts/{}/mark-paid", ada["id"].as_str().unwrap());
    let reference = json!({"reference": "BATCH-1"});
    let partner_path = format!("/affiliates/{}", ada["affiliate_id"].as_str().unwrap());
    let approved = approve(&world, &session, &run).await;
    assert_eq!((approved.status, &approved.json()["run"]["status"]), (StatusCode::OK, &json!("approved")));
    assert_eq!(approve(&world, &session, &run).await.code(), "conflict");
    assert_eq!(call(Method::POST, &format!("/payout-runs/{id}/cancel"), json!({})).await.code(), "conflict");
    for (query, found) in [
        ("status=processing", 2),
        ("status=draft", 0),
        ("status=draft,processing", 2),
        ("status=paid,failed", 0),
        (&format!("affiliate_id={}", ada["affiliate_id"].as_str().unwrap()), 1),
        (&format!("run_id={id}"), 2),
        (&format!("run_id={id}&status=paid"), 0),
    ] {
        assert_eq!(all(&world, &format!("/affiliate-payouts?{query}")).await.len(), found, "{query}");
    }
    for query in ["status=gone", "affiliate_id=x", "run_id=pay_1", "limit=0"] {
        let refused = world.get(&format!("/affiliate-payouts?{query}")).await;
        assert_eq!(refused.code(), "validation_error", "{query}");
    }
    for invalid in
        [json!({}), json!({"reference": ""}), json!({"reference": "  "}), json!({"reference": "x".repeat(201)})]
    {
        let refused = world.call(Method::POST, &paid_path, &invalid).await;
        assert!(refused.json()["error"]["details"]["fields"]["reference"].is_string(), "{invalid} {refused:?}");
    }
    let keyed = [("idempotency-key", "k1")];
    let paid = with_headers(&world, Method::POST, &paid_path, &keyed, &reference).await;
    assert_eq!(paid.status, StatusCode::OK, "{paid:?}");
    let payout = paid.json()["payout"].clone();
    assert_eq!((&payout["status"], &payout["external_reference"]), (&json!("paid"), &json!("BATCH-1")));
    assert!(payout["paid_at"].is_string());
    let again = with_headers(&world, Method::POST, &paid_path, &keyed, &reference).await;
    assert_eq!((again.json(), again.headers.contains_key("idempotent-replayed")), (paid.json(), true));
    let again = world.call(Method::POST, &paid_path, &reference).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, paid.json()));
    let other = world.call(Method::POST, &paid_path, &json!({"reference": "BATCH-2"})).await;
    assert_eq!((other.status, other.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    assert_eq!(all(&world, "/affiliate-commissions?status=paid").await.len(), 1);
    assert_eq!(world.call(Method::DELETE, &partner_path, &json!({})).await.code(), "forbidden", "it was paid already");
    assert_eq!(world.get("/affiliate-payouts/pay_1").await.code(), "not_found");

    let bob = all(&world, "/affiliate-payouts?status=processing").await[0].clone();
    let fail = format!("/payouts/{}/fail", bob["id"].as_str().unwrap());
    assert_eq!(call(Method::POST, &fail, json!({})).await.code(), "validation_error");
    let failed = call(Method::POST, &fail, json!({"reason": "The account is closed"})).await.json();
    assert_eq!(failed["payout"]["status"], "failed");
    assert_eq!(failed["payout"]["failure_reason"], "The account is closed");
    assert_eq!(call(Method::POST, &fail, json!({"reason": "again"})).await.code(), "conflict");
    let done = call(Method::GET, &format!("/payout-runs/{id}"), json!({})).await.json()["run"].clone();
    assert_eq!((&done["status"], &done["partial"]), (&json!("completed"), &json!(true)));
    assert!(done["completed_at"].is_string());
    assert_eq!(check_audit(&world, &session).await["payouts"], 2);
    world.end().await;
}

#[tokio::test]
async fn payout_files_match_each_method() {
    let world = World::start().await;
    let (session, program) = program(&world).await;
    create_seller(&world, "ada", Some("ada@paypal.example")).await;
    let bob = create_seller(&world, "bob", None).await;
    let method = format!("/partners/{bob}/payout-method");
    let bank = json!({"method": "bank", "destination": "=IBAN()"});
    assert_eq!(owner(&world, &session, Method::PUT, &method, bank).await.status, StatusCode::OK);
    record_sale(&world, &program, "ada", 1, 10_000).await;
    record_sale(&world, &program, "bob", 1, 2_000).await;
    let draft = owner(&world, &session, Method::POST, "/payout-runs", json!({})).await.json();
    approve(&world, &session, &draft["run"]).await;
    let id = draft["run"]["id"].as_str().unwrap();
    let get =
        async |path: &str| owner(&world, &session, Method::GET, &format!("/payout-runs/{id}/{path}"), json!({})).await;
    let file = get("csv?method=paypal").await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    let text = String::from_utf8(file.body.to_vec()).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!((lines[0], lines.len(), lines[2]), ("email,amount,currency,id,note", 3, ""));
    assert!(lines[1].starts_with("ada@paypal.example,20.00,USD,pay_"), "{text}");
    let text = String::from_utf8(get("csv?method=bank&currency=usd&part=1").await.body.to_vec()).unwrap();
    assert!(text.contains(",bank,'=IBAN(),4.00,USD,400\r\n"), "{text}");
    for (path, field) in [
        ("csv", "method"),
        ("csv?method=cash", "method"),
        ("csv?method=bank&format=wise", "format"),
        ("csv?method=bank&part=2", "part"),
        ("csv?method=bank&part=0", "part"),
        ("csv?method=bank&currency=dollars", "currency"),
    ] {
        let refused = get(path).await;
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{path} {refused:?}");
    }
    let files = get("files").await.json()["files"].clone();
    assert_eq!(files.as_array().unwrap().len(), 2);
    assert_eq!((&files[0]["format"], &files[0]["rows"]), (&json!("paypal"), &json!(1)));
    // A paid payout is left out when the file is downloaded again.
    let payout = lines[1].split(',').nth(3).unwrap();
    let paid = json!({"reference": "PP-1"});
    let marked = world.call(Method::POST, &format!("/affiliate-payouts/{payout}/mark-paid"), &paid).await;
    assert_eq!(marked.status, StatusCode::OK, "{marked:?}");
    let text = String::from_utf8(get("csv?method=paypal").await.body.to_vec()).unwrap();
    assert_eq!(text, "email,amount,currency,id,note\r\n");
    world.end().await;
}

#[tokio::test]
async fn run_without_payees_is_not_created() {
    let world = World::start().await;
    let (session, program) = program(&world).await;
    let draft = async || owner(&world, &session, Method::POST, "/payout-runs", json!({"cutoff": null})).await;
    let nobody = draft().await;
    assert_eq!(nobody.status, StatusCode::OK, "{nobody:?}");
    assert_eq!(nobody.json(), json!({"run": null, "payouts": [], "skipped": []}));
    let ada = create_seller(&world, "ada", None).await;
    record_sale(&world, &program, "ada", 1, 10_000).await;
    let skipped = json!([{"affiliate_id": ada, "currency": "usd", "amount_cents": 2_000, "reason": "not_ready"}]);
    assert_eq!(draft().await.json(), json!({"run": null, "payouts": [], "skipped": skipped}));
    assert_eq!(owner(&world, &session, Method::GET, "/payout-runs", json!({})).await.json()["data"], json!([]));
    for invalid in ["yesterday", ""] {
        let refused = owner(&world, &session, Method::POST, "/payout-runs", json!({"cutoff": invalid})).await;
        assert!(refused.json()["error"]["details"]["fields"]["cutoff"].is_string(), "{refused:?}");
    }
    // A commission outside of payouts is deleted with its partner.
    let path = format!("/affiliates/{ada}");
    assert_eq!(world.call(Method::DELETE, &path, &json!({})).await.status, StatusCode::OK);
    let line = all(&world, "/affiliate-commissions").await[0].clone();
    assert_eq!((&line["status"], &line["reverse_reason"]), (&json!("reversed"), &json!("partner_deleted")));
    check_audit(&world, &session).await;
    world.end().await;
}

#[tokio::test]
async fn approval_needs_a_fresh_sign_in_and_the_current_revision() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let run = draft["run"].clone();
    let path = format!("/payout-runs/{}/approve", run["id"].as_str().unwrap());
    let call = async |session: &TestSession, body| owner(&world, session, Method::POST, &path, body).await;
    for (body, field) in [
        (json!({}), "rev"),
        (json!({"rev": 1}), "totals"),
        (json!({"rev": "x", "totals": {}}), "rev"),
        (json!({"rev": 1, "totals": {"dollars": 1}}), "totals"),
        (json!({"rev": 1, "totals": {"usd": 1.5}}), "totals"),
    ] {
        let refused = call(&session, body).await;
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{refused:?}");
    }
    for body in [
        json!({"rev": 99, "totals": run["totals"]}),
        json!({"rev": run["rev"], "totals": {"usd": 2_399}}),
        json!({"rev": run["rev"], "totals": {}}),
    ] {
        assert_eq!(call(&session, body).await.code(), "conflict");
    }
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    let reviewed = json!({"rev": run["rev"], "totals": {"USD": 2_400}});
    let stale = call(&session, reviewed.clone()).await;
    assert_eq!((stale.status, stale.code()), (StatusCode::FORBIDDEN, "reauthentication_required".to_owned()));
    assert_eq!(all(&world, "/affiliate-payouts?status=draft").await.len(), 2, "nothing has changed");
    let fresh = world.session(1).await;
    assert_eq!(call(&fresh, reviewed).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn suspended_partner_leaves_the_draft() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let ada = draft["payouts"].as_array().unwrap().iter().find(|entry| entry["amount_cents"] == 2_000).unwrap();
    let path = format!("/affiliates/{}/suspend", ada["affiliate_id"].as_str().unwrap());
    assert_eq!(world.call(Method::POST, &path, &json!({})).await.status, StatusCode::OK);
    let path = format!("/payout-runs/{}", draft["run"]["id"].as_str().unwrap());
    let view = owner(&world, &session, Method::GET, &path, json!({})).await.json();
    assert_eq!((&view["run"]["totals"], view["payouts"].as_array().unwrap().len()), (&json!({"usd": 400}), 1));
    assert!(view["run"]["rev"].as_u64() > draft["run"]["rev"].as_u64());
    let skipped = &view["skipped"][0];
    assert_eq!((&skipped["amount_cents"], &skipped["reason"]), (&json!(2_000), &json!("not_active")));
    assert_eq!(approve(&world, &session, &draft["run"]).await.code(), "conflict");
    assert_eq!(approve(&world, &session, &view["run"]).await.status, StatusCode::OK);
    check_audit(&world, &session).await;
    world.end().await;
}

#[tokio::test]
async fn cancelled_run_is_deleted_with_its_payouts() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let id = draft["run"]["id"].as_str().unwrap();
    let cancelled = owner(&world, &session, Method::POST, &format!("/payout-runs/{id}/cancel"), json!({})).await;
    assert_eq!(cancelled.json()["run"]["status"], "cancelled");
    let payout = format!("/affiliate-payouts/{}", draft["payouts"][0]["id"].as_str().unwrap());
    assert_eq!(world.get(&payout).await.code(), "not_found");
    assert!(all(&world, "/affiliate-payouts").await.is_empty());
    let lines = all(&world, "/affiliate-commissions").await;
    assert!(lines.iter().all(|line| line["status"] == "earned" && line["payout_id"].is_null()), "{lines:?}");
    let view = owner(&world, &session, Method::GET, &format!("/payout-runs/{id}"), json!({})).await.json();
    assert_eq!((&view["run"]["status"], &view["payouts"]), (&json!("cancelled"), &json!([])));
    check_audit(&world, &session).await;
    world.end().await;
}

#[tokio::test]
async fn payouts_are_isolated_between_accounts() {
    let world = World::start().await;
    let (_, draft) = draft_run(&world).await;
    world.account(2, model::credential::ApiKeyScope::Full).await;
    let other = set_up(&world, 2).await;
    let id = draft["run"]["id"].as_str().unwrap();
    let payout = draft["payouts"][0]["id"].as_str().unwrap();
    for (method, path, body) in [
        (Method::GET, format!("/payout-runs/{id}"), json!({})),
        (Method::POST, format!("/payout-runs/{id}/approve"), json!({"rev": 1, "totals": {}})),
        (Method::POST, format!("/payout-runs/{id}/cancel"), json!({})),
        (Method::GET, format!("/payout-runs/{id}/csv"), json!({})),
        (Method::GET, format!("/payout-runs/{id}/files"), json!({})),
        (Method::POST, format!("/payouts/{payout}/fail"), json!({"reason": "x"})),
    ] {
        let refused = owner(&world, &other, method, &path, body).await;
        assert_eq!(refused.code(), "not_found", "{path}");
    }
    world.end().await;
}

/// No API key can change a payout run (I12); this is the complete list of payout operations for keys.
#[test]
fn api_keys_cannot_change_payout_runs() {
    let keyed: Vec<_> = api::operations::operation_table()
        .iter()
        .filter(|operation| operation.scope().is_some() && operation.path.contains("payout"))
        .map(|operation| operation.id)
        .collect();
    assert_eq!(keyed, ["list_affiliate_payouts", "get_affiliate_payout", "mark_affiliate_payout_paid"]);
}

/// A processor that pays; collects its requests.
async fn processor(requests: Arc<Mutex<Vec<String>>>) -> String {
    account("acct_own", Arc::new(AtomicBool::new(true)), requests).await
}

/// An account of a processor, which pays or fails.
async fn account(id: &'static str, pays: Arc<AtomicBool>, requests: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut all = Vec::new();
            let text = loop {
                let mut some = vec![0; 4096];
                let read = stream.read(&mut some).await.unwrap();
                all.extend_from_slice(&some[..read]);
                let text = String::from_utf8_lossy(&all).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.to_lowercase();
                let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break text;
                }
            };
            let response = match text.split(' ').nth(1).unwrap() {
                "/v1/account" => json!({"id": id, "livemode": true}),
                "/v1/accounts/acct_ada" => json!({"id": "acct_ada", "capabilities": {"transfers": "active"}}),
                "/v1/transfers" => json!({"id": "tr_1", "object": "transfer"}),
                path => json!({"error": path}),
            };
            let body = response.to_string();
            let is_well = pays.load(Ordering::Relaxed) || !text.starts_with("POST /v1/transfers ");
            let status = if is_well { "200 OK" } else { "500 Trouble" };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            requests.lock().push(text);
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn payouts_are_transferred_by_the_processor() {
    let world = World::start().await;
    let (session, program) = program(&world).await;
    let ada = create_seller(&world, "ada", None).await;
    let requests = Arc::new(Mutex::new(Vec::new()));
    let base = processor(Arc::clone(&requests)).await;
    let connect = json!({"webhook_secrets": ["whsec_one"], "api_base": base, "restricted_key": "rk_live_1"});
    assert_eq!(owner(&world, &session, Method::PUT, "/processor", connect).await.status, StatusCode::OK);
    let method = format!("/partners/{ada}/payout-method");
    for (account, is_ready) in [("acct_other", false), ("acct_ada", true)] {
        let body = json!({"method": "stripe", "destination": account});
        let set = owner(&world, &session, Method::PUT, &method, body).await.json();
        assert_eq!(set["affiliate"]["payout_ready"], is_ready, "{account}");
    }
    record_sale(&world, &program, "ada", 1, 10_000).await;
    let draft = owner(&world, &session, Method::POST, "/payout-runs", json!({})).await.json();
    approve(&world, &session, &draft["run"]).await;
    let payout = draft["payouts"][0]["id"].as_str().unwrap();
    let path = format!("/affiliate-payouts/{payout}");
    let refused = world.call(Method::POST, &format!("{path}/mark-paid"), &json!({"reference": "r"})).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
    let (service, now) = (world.affiliate.clone(), world.services.clock.now());
    service.payout_jobs().run_due_jobs(0..=PARTITIONS - 1, now).await.unwrap();
    let paid = world.get(&path).await.json()["payout"].clone();
    assert_eq!((&paid["status"], &paid["processor_transfer_id"]), (&json!("paid"), &json!("tr_1")));
    let requests = requests.lock().clone();
    let transfer = requests.iter().find(|text| text.starts_with("POST /v1/transfers ")).unwrap();
    for part in [
        format!("idempotency-key: {payout}:1\r\n"),
        "content-type: application/x-www-form-urlencoded\r\n".to_owned(),
        "authorization: Bearer rk_live_1\r\n".to_owned(),
        "amount=2000&currency=usd&destination=acct_ada&transfer_group=prn_".to_owned(),
        format!("metadata%5Bpayout_id%5D={payout}"),
    ] {
        assert!(transfer.contains(&part), "{part}: {transfer}");
    }
    let run = format!("{PROGRAM}/payout-runs/{}", draft["run"]["id"].as_str().unwrap());
    let view = world.call_with_session(&session, Method::GET, &run, &json!({})).await.json();
    assert_eq!(view["run"]["status"], "completed");
    check_audit(&world, &session).await;
    world.end().await;
}

/// A processor that did not respond may have paid, so another account never gets the request instead.
#[tokio::test]
async fn unconfirmed_transfer_is_not_repeated_by_another_account() {
    let world = World::start().await;
    let (session, program) = program(&world).await;
    let ada = create_seller(&world, "ada", None).await;
    let pays = [false, true].map(|pays| Arc::new(AtomicBool::new(pays)));
    let requests = [(), ()].map(|()| Arc::new(Mutex::new(Vec::new())));
    let own = account("acct_own", Arc::clone(&pays[0]), Arc::clone(&requests[0])).await;
    let other = account("acct_another", Arc::clone(&pays[1]), Arc::clone(&requests[1])).await;
    let connect = async |base: &str| {
        let body = json!({"webhook_secrets": ["whsec_one"], "api_base": base, "restricted_key": "rk_live_1"});
        // The clock advances by hours, so each change of the key needs a new sign-in.
        let session = world.session(1).await;
        assert_eq!(owner(&world, &session, Method::PUT, "/processor", body).await.status, StatusCode::OK);
    };
    connect(&own).await;
    let method = json!({"method": "stripe", "destination": "acct_ada"});
    owner(&world, &session, Method::PUT, &format!("/partners/{ada}/payout-method"), method).await;
    record_sale(&world, &program, "ada", 1, 10_000).await;
    let draft = owner(&world, &session, Method::POST, "/payout-runs", json!({})).await.json();
    approve(&world, &session, &draft["run"]).await;
    let path = format!("/affiliate-payouts/{}", draft["payouts"][0]["id"].as_str().unwrap());
    let service = world.affiliate.clone();
    let go_on = async || {
        let now = world.services.clock.now();
        service.payout_jobs().run_due_jobs(0..=PARTITIONS - 1, now).await.unwrap();
        world.get(&path).await.json()["payout"]["status"].clone()
    };
    let transfers = |nth: usize| {
        let requests = requests[nth].lock();
        requests.iter().filter(|text| text.starts_with("POST /v1/transfers ")).count()
    };
    assert_eq!((go_on().await, transfers(0)), (json!("processing"), 1));
    connect(&other).await;
    for _ in 0..3 {
        world.services.clock.advance(Duration::from_secs(3_600));
        assert_eq!((go_on().await, transfers(1)), (json!("processing"), 0));
    }
    connect(&own).await;
    pays[0].store(true, Ordering::Relaxed);
    world.services.clock.advance(Duration::from_secs(3_600));
    assert_eq!((go_on().await, transfers(0), transfers(1)), (json!("paid"), 2, 0));
    check_audit(&world, &session).await;
    world.end().await;
}

/// PayPal's results file marks payouts; rows that do not match are reported; the same file again changes nothing.
#[tokio::test]
async fn results_file_marks_payouts() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let run = draft["run"].clone();
    let ids: Vec<&str> =
        draft["payouts"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    let file = format!(
        "Transaction ID,Transaction Status,Unique ID,Reason\r\n8AB,Completed,{0},\r\n9CD,Returned,{1},closed\r\n\
         1,Completed,none,\r\n2,Perhaps,{1},\r\n",
        ids[0], ids[1]
    );
    let send = async |file: String| {
        let path = format!("{PROGRAM}/payout-runs/{}/results", run["id"].as_str().unwrap());
        let request = http::Request::post(path)
            .header("host", "test")
            .header("cookie", &session.cookie)
            .header("x-csrf-token", session.csrf.as_deref().unwrap_or_default())
            .header("content-type", "text/csv");
        world.send(request.body(http_body_util::Full::new(file.into())).unwrap()).await
    };
    let early = send(file.clone()).await.json();
    assert_eq!((&early["paid"], early["skipped"].as_array().unwrap().len()), (&json!(0), 4), "{early}");
    assert_eq!(approve(&world, &session, &run).await.status, StatusCode::OK);
    let skipped = json!([
        {"row": 3, "id": null, "reason": "invalid_id"}, {"row": 4, "id": ids[1], "reason": "invalid_status"},
    ]);
    let waiting = send(format!("id,status\n{},Unclaimed\n", ids[0])).await;
    let expected = json!({"paid": 0, "failed": 0, "unchanged": 0, "in_progress": 1, "skipped": []});
    assert_eq!(waiting.json(), expected);
    let marked = send(file.clone()).await;
    let expected = json!({"paid": 1, "failed": 1, "unchanged": 0, "in_progress": 0, "skipped": skipped});
    assert_eq!(marked.json(), expected);
    let expected = json!({"paid": 0, "failed": 0, "unchanged": 2, "in_progress": 0, "skipped": skipped});
    assert_eq!(send(file).await.json(), expected);
    let payout = world.get(&format!("/affiliate-payouts/{}", ids[0])).await.json()["payout"].clone();
    assert_eq!((&payout["status"], &payout["external_reference"]), (&json!("paid"), &json!("8AB")));
    let payout = world.get(&format!("/affiliate-payouts/{}", ids[1])).await.json()["payout"].clone();
    assert_eq!((&payout["status"], &payout["failure_reason"]), (&json!("failed"), &json!("closed")));
    assert_eq!(send("name\nada\n".to_owned()).await.status, StatusCode::BAD_REQUEST);
    check_audit(&world, &session).await;
    world.end().await;
}
