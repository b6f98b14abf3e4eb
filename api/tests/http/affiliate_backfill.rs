//! `…/backfill`: reading the history of a simulated payment processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use store::task::PARTITIONS;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::affiliate_ledger::invoice;
use crate::affiliate_program::{owner, set_up};
use crate::affiliates::{all, partner};
use crate::world::World;

/// Responses of the simulated processor by path prefix. An object is returned as it is. A list is filtered by the
/// requested time range, unless it is `"unfiltered"`: then a filtered request is refused. A number is a status.
/// `{"in_turn": […]}` returns one response after the other, and then always the last one.
pub(crate) type StripePages = Vec<(&'static str, Value)>;

/// A Stripe list object.
pub(crate) fn list(data: Value) -> Value {
    json!({"object": "list", "data": data, "has_more": false})
}

/// The response to a request for a path that was requested `times` times before.
fn response_for(path: &str, body: &Value, times: usize) -> (String, Value) {
    let body = match body["in_turn"].as_array() {
        Some(turns) => turns.get(times).or(turns.last()).cloned().unwrap_or_default(),
        None => body.clone(),
    };
    if body["unfiltered"] == true && (path.contains("created") || path.contains("status")) {
        return ("400 No".to_owned(), json!({"error": {"message": "Unexpected created"}}));
    }
    if let Some(status) = body.as_u64() {
        return (format!("{status} No"), json!({"error": {"message": "no"}}));
    }
    let bound = |name: &str| {
        let (_, rest) = path.split_once(name)?;
        rest.split('&').next()?.parse::<i64>().ok()
    };
    let (from, end) = (bound("created%5Bgte%5D="), bound("created%5Blt%5D="));
    let mut body = body;
    if let Some(data) = body["data"].as_array_mut() {
        data.retain(|entry| {
            let created = entry["created"].as_i64();
            created.is_none_or(|at| from.is_none_or(|from| at >= from) && end.is_none_or(|end| at < end))
        });
    }
    ("200 OK".to_owned(), body)
}

/// Runs the processor; returns its address and the number of requests.
pub(crate) async fn start_processor(pages: StripePages, silent_for: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::default()));
    let request_count = Arc::clone(&requests);
    let turns: Arc<Vec<AtomicUsize>> = Arc::new(pages.iter().map(|_| AtomicUsize::default()).collect());
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let (pages, request_count, turns) = (pages.clone(), Arc::clone(&request_count), Arc::clone(&turns));
            tokio::spawn(async move {
                let (read, mut write) = stream.split();
                let mut lines = BufReader::new(read.take(1 << 20)).lines();
                while let Ok(Some(first)) = lines.next_line().await {
                    while lines.next_line().await.ok().flatten().is_some_and(|line| !line.is_empty()) {}
                    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                    let number =
                        if path == "/v1/account" { usize::MAX } else { request_count.fetch_add(1, Ordering::Relaxed) };
                    let found = pages.iter().position(|(start, _)| path.starts_with(start));
                    let times = found.map(|index| (index, turns[index].fetch_add(1, Ordering::Relaxed)));
                    let (status, body) = match times {
                        _ if number < silent_for => ("503 Busy".to_owned(), json!({})),
                        Some((index, times)) => response_for(&path, &pages[index].1, times),
                        None => ("200 OK".to_owned(), list(json!([]))),
                    };
                    let body = body.to_string();
                    let head = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    write.write_all(format!("{head}{body}").as_bytes()).await.ok();
                }
            });
        }
    });
    (format!("http://{address}"), requests)
}

/// A program with a referral of `grace@example.net` and a simulated processor, which is built one minute later.
pub(crate) async fn connect_program(
    world: &World,
    pages: impl FnOnce() -> StripePages,
    silent_for: usize,
) -> (crate::world::TestSession, Arc<AtomicUsize>) {
    let session = set_up(world, 1).await;
    partner(world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let referral = json!({"token": "ada", "email": "grace@example.net"});
    assert_eq!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status, StatusCode::CREATED);
    world.services.clock.advance(Duration::from_secs(60));
    let (address, requests) = start_processor(pages(), silent_for).await;
    world.services.clock.advance(Duration::from_secs(60));
    let connection = json!({"webhook_secrets": ["whsec_one"], "api_base": address, "restricted_key": "rk_live_1"});
    let response = owner(world, &session, Method::PUT, "/processor", connection).await;
    assert_eq!(response.status, StatusCode::OK, "{response:?}");
    (session, requests)
}

/// Runs backfills until none is left.
async fn run_backfills(world: &World) {
    let service = world.affiliate.clone();
    while service.processor.backfill_due(0..=PARTITIONS - 1, world.services.clock.now()).await.unwrap() {}
}

/// Starts a backfill and runs it to its end.
async fn run_backfill(world: &World, session: &crate::world::TestSession, since: i64) -> Value {
    let started = owner(world, session, Method::POST, "/backfill", json!({"since": since})).await;
    assert_eq!(started.status, StatusCode::ACCEPTED, "{started:?}");
    let path = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
    for _ in 0..3 {
        run_backfills(world).await;
        world.services.clock.advance(Duration::from_secs(15));
    }
    owner(world, session, Method::GET, &path, json!({})).await.json()["backfill"].clone()
}

#[tokio::test]
async fn backfill_reads_oldest_first() {
    let world = World::start().await;
    let pages = || {
        let newest = invoice(&world, "in_2", "cus_1", 1_000);
        let oldest = invoice(&world, "in_1", "cus_1", 4_900);
        let customer = json!({"id": "cus_1", "object": "customer", "email": "Grace@example.net", "metadata": {}});
        vec![
            ("/v1/account", json!({"id": "acct_1", "object": "account"})),
            ("/v1/customers/cus_1", customer),
            ("/v1/invoices", list(json!([newest, oldest]))),
        ]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = json!({"since": world.services.clock.now().as_second() - 3600});
    let started = owner(&world, &session, Method::POST, "/backfill", since).await;
    assert_eq!(started.status, StatusCode::ACCEPTED, "{started:?}");
    let started = started.json()["backfill"].clone();
    assert_eq!((&started["status"], &started["invoices_seen"]), (&json!("running"), &json!(0)));
    let twice = owner(&world, &session, Method::POST, "/backfill", json!({})).await;
    assert_eq!((twice.status, twice.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    run_backfills(&world).await;
    let path = format!("/backfill/{}", started["id"].as_str().unwrap());
    let done = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!((&done["invoices_seen"], &done["lines_written"], &done["error"]), (&json!(2), &json!(2), &Value::Null));
    let lines = all(&world, "/affiliate-commissions").await;
    let amounts: Vec<_> = lines.iter().map(|line| line["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [200, 980], "newest first, as stored");
    // A second backfill changes nothing.
    let again =
        owner(&world, &session, Method::POST, "/backfill", json!({"silent": true, "since": 1_790_000_000})).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    run_backfills(&world).await;
    let listed = owner(&world, &session, Method::GET, "/backfill?limit=1", json!({})).await.json();
    let newest = &listed["data"][0];
    assert_eq!(
        (&newest["silent"], &newest["status"], &listed["has_more"]),
        (&json!(true), &json!("done"), &json!(true))
    );
    assert_eq!(newest["since"], "2026-09-21T14:13:20.000Z");
    let next = format!("/backfill?cursor={}", listed["next_cursor"].as_str().unwrap());
    let first = owner(&world, &session, Method::GET, &next, json!({})).await.json();
    assert_eq!((&first["data"][0]["id"], &first["next_cursor"]), (&started["id"], &Value::Null));
    assert_eq!(all(&world, "/affiliate-commissions").await.len(), 2);
    let audit = owner(&world, &session, Method::GET, "/audit", json!({})).await.json();
    assert_eq!(audit["broken"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn unresponsive_processor_is_retried_then_fails() {
    let world = World::start().await;
    let pages = || vec![("/v1/account", json!({"id": "acct_1"}))];
    let (session, requests) = connect_program(&world, pages, 1_000).await;
    let started = owner(&world, &session, Method::POST, "/backfill", json!({"since": 1_760_000_000})).await;
    let path = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
    for _ in 0..5 {
        run_backfills(&world).await;
        world.services.clock.advance(Duration::from_secs(301));
    }
    let failed = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("503"), "{failed}");
    assert_eq!(requests.load(Ordering::Relaxed), 3);
    world.end().await;
}

#[tokio::test]
async fn backfill_needs_an_api_key() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let refused = owner(&world, &session, Method::POST, "/backfill", json!({})).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    for invalid in [json!({"since": "soon"}), json!({"silent": 1})] {
        let refused = owner(&world, &session, Method::POST, "/backfill", invalid.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{invalid}");
    }
    let unknown = owner(&world, &session, Method::GET, "/backfill/bkf_1", json!({})).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    world.end().await;
}

/// Covers invoices billed before the range and paid in it, a deleted customer, a processor that stops responding in
/// the middle of a window (which is read again), and objects of the second in which the backfill starts.
#[tokio::test]
async fn backfill_records_every_object() {
    let world = World::start().await;
    let since = world.services.clock.now().as_second() + 60;
    let pages = || {
        let mut billed_before = invoice(&world, "in_1", "cus_1", 1_000);
        billed_before["created"] = json!(since - 40 * 86_400);
        let mut too_old = invoice(&world, "in_0", "cus_1", 1_000);
        too_old["created"] = json!(since - 40 * 86_400);
        too_old["status_transitions"]["paid_at"] = json!(since - 39 * 86_400);
        let (deleted_customer, other) =
            (invoice(&world, "in_2", "cus_gone", 2_000), invoice(&world, "in_3", "cus_2", 3_000));
        let mut last = invoice(&world, "in_4", "cus_1", 4_000);
        // The clock advances by a minute before the backfill starts.
        last["created"] = json!(world.services.clock.now().as_second() + 60);
        let customer = |id: &str| json!({"id": id, "object": "customer", "email": "grace@example.net", "metadata": {}});
        let note = json!({"id": "cn_1", "object": "credit_note", "invoice": "in_4", "currency": "usd",
            "status": "issued", "post_payment_amount": 2_000, "out_of_band_amount": 2_000});
        vec![
            ("/v1/account", json!({"id": "acct_1", "object": "account"})),
            ("/v1/customers/cus_1", customer("cus_1")),
            ("/v1/customers/cus_2", json!({"in_turn": [503, customer("cus_2")]})),
            ("/v1/customers/cus_gone", json!(404)),
            ("/v1/invoices", list(json!([last, other, deleted_customer, too_old, billed_before]))),
            ("/v1/credit_notes", list(json!([note]))),
        ]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let done = run_backfill(&world, &session, since).await;
    assert_eq!((&done["status"], &done["error"]), (&json!("done"), &Value::Null), "{done}");
    // The buyer is known for all invoices but the deleted customer's: one line each. The other two belong to one
    // person.
    assert_eq!((&done["invoices_seen"], &done["lines_written"]), (&json!(4), &json!(3)), "{done}");
    let lines = all(&world, "/affiliate-commissions").await;
    let amounts: Vec<_> = lines.iter().map(|line| line["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [400, 600, 200], "half of the last one was refunded: {lines:?}");
    // No event was received from the processor itself.
    let view = owner(&world, &session, Method::GET, "", json!({})).await.json();
    assert_eq!(view["processor"]["last_event_at"], Value::Null);
    let events = owner(&world, &session, Method::GET, "/processor/events", json!({})).await.json();
    assert_eq!(events["data"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn unrecordable_objects_are_reported() {
    let world = World::start().await;
    let pages = || {
        let mut broken = invoice(&world, "in_1", "cus_1", 1_000);
        broken["amount_paid"] = json!("much");
        let account = json!({"id": "acct_1", "object": "account"});
        let lists = json!({"in_turn": [list(json!([broken]))]});
        vec![("/v1/account", account), ("/v1/customers", json!(404)), ("/v1/invoices", lists)]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = world.services.clock.now().as_second() - 3_600;
    let ended = run_backfill(&world, &session, since).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("in_1") && error.contains("amount_paid"), "{error}");
    let failed = owner(&world, &session, Method::GET, "/processor/events?status=failed", json!({})).await.json();
    assert_eq!(failed["data"][0]["id"], "asked_in_1", "{failed}");
    let processor = owner(&world, &session, Method::GET, "", json!({})).await.json()["processor"].clone();
    assert_eq!((&processor["failed_events"], &processor["last_event_at"]), (&json!(1), &Value::Null));
    world.end().await;
}

#[tokio::test]
async fn error_names_the_failed_request() {
    let world = World::start().await;
    let pages = || vec![("/v1/account", json!({"id": "acct_1"})), ("/v1/charges", json!(403))];
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = world.services.clock.now().as_second() - 3_600;
    let started = owner(&world, &session, Method::POST, "/backfill", json!({"since": since})).await;
    let path = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
    run_backfills(&world).await;
    let failed = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(
        failed["error"],
        "the processor answered /v1/charges with status 403: the key may not read charges (no)"
    );
    world.end().await;
}

/// A permanent refusal is not retried.
#[tokio::test]
async fn permanent_refusal_ends_the_backfill() {
    for (path, status, error) in [
        ("/v1/invoices", 401, "the processor rejects the API key: it answered /v1/invoices with status 401 (no)"),
        ("/v1/invoices", 404, "the processor answered /v1/invoices with status 404 (no)"),
        ("/v1/checkout", 403, "answered /v1/checkout/sessions with status 403: the key may not read checkout sessions"),
    ] {
        let world = World::start().await;
        let pages = || vec![("/v1/account", json!({"id": "acct_1"})), (path, json!(status))];
        let (session, requests) = connect_program(&world, pages, 0).await;
        // Without `since` the first window covers all objects, not only invoices.
        let started = owner(&world, &session, Method::POST, "/backfill", json!({})).await;
        let at = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
        run_backfills(&world).await;
        let failed = owner(&world, &session, Method::GET, &at, json!({})).await.json()["backfill"].clone();
        assert_eq!(failed["status"], "failed", "{failed}");
        assert!(failed["error"].as_str().unwrap().contains(error), "{failed}");
        assert!(requests.load(Ordering::Relaxed) <= 3, "{path}");
        world.end().await;
    }
}

/// Like localstripe: lists are not filtered, and some endpoints are missing.
#[tokio::test]
async fn processor_without_filters_is_backfilled() {
    let world = World::start().await;
    let pages = || {
        let list_of = |data: Value| {
            let mut list = list(data);
            list["unfiltered"] = json!(true);
            list
        };
        let now = world.services.clock.now().as_second();
        let mut unpaid = invoice(&world, "in_3", "cus_1", 7_000);
        unpaid["status"] = json!("open");
        let mut early = invoice(&world, "in_0", "cus_1", 9_000);
        (early["created"], early["status_transitions"]["paid_at"]) =
            (json!(now - 30 * 86_400), json!(now - 30 * 86_400));
        let paid = |id: &str, cents: i64| invoice(&world, id, "cus_1", cents);
        let mut renewal = paid("in_4", 3_000);
        renewal["subscription"] = json!("sub_1");
        let subscription = json!({"id": "sub_1", "object": "subscription", "customer": "cus_1", "status": "active",
            "created": now, "metadata": {"stx": "false"}});
        let flagged = json!({"id": "ch_in_2", "object": "charge", "amount": 2_000, "amount_refunded": 0,
            "currency": "usd", "created": now, "metadata": {"stx": "false"}});
        let refunded = json!({"id": "ch_in_1", "object": "charge", "amount": 4_000, "amount_refunded": 1_000,
            "currency": "usd", "created": now, "metadata": {}});
        let customer = json!({"id": "cus_1", "object": "customer", "email": "Grace@example.net", "metadata": {}});
        vec![
            ("/v1/account", json!({"id": "acct_1", "object": "account"})),
            ("/v1/customers/cus_1", customer),
            ("/v1/invoices", list_of(json!([unpaid, renewal, paid("in_2", 2_000), paid("in_1", 4_000), early]))),
            ("/v1/charges", list_of(json!([flagged, refunded]))),
            ("/v1/subscriptions", list_of(json!([subscription]))),
            ("/v1/checkout/sessions", json!(404)),
            ("/v1/disputes", json!(404)),
            ("/v1/credit_notes", json!(404)),
            ("/v1/refunds", list_of(json!([]))),
            ("/v1/events", json!(400)),
        ]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = world.services.clock.now().as_second() - 3_600;
    let done = run_backfill(&world, &session, since).await;
    assert_eq!((&done["status"], &done["error"]), (&json!("done"), &Value::Null), "{done}");
    assert_eq!(done["invoices_seen"], 3, "neither the open invoice nor the early one: {done}");
    let lines = all(&world, "/affiliate-commissions").await;
    let amounts: Vec<_> = lines.iter().map(|line| line["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [600], "a quarter of one was refunded; two flags exclude the others");
    world.end().await;
}

/// A flag on the customer may exclude the purchases. If the key cannot read customers, nothing is recorded.
#[tokio::test]
async fn unreadable_customers_stop_the_backfill() {
    let world = World::start().await;
    let pages = || {
        let mut paid = invoice(&world, "in_1", "cus_1", 1_000);
        paid["customer_email"] = json!("grace@example.net");
        let account = json!({"id": "acct_1", "object": "account"});
        vec![("/v1/account", account), ("/v1/customers", json!(403)), ("/v1/invoices", list(json!([paid])))]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = world.services.clock.now().as_second() - 3_600;
    let started = owner(&world, &session, Method::POST, "/backfill", json!({"since": since})).await;
    let path = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
    for _ in 0..6 {
        run_backfills(&world).await;
        world.services.clock.advance(Duration::from_secs(300));
    }
    let failed = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(failed["status"], "failed", "{failed}");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("403") && error.contains("may not read customers"), "{error}");
    assert_eq!(all(&world, "/affiliate-commissions").await, [json!(null); 0]);
    world.end().await;
}

/// An expired key, or one that cannot read charges, gives no information about refunds: the comparison is repeated
/// until it succeeds.
#[tokio::test]
async fn charges_without_permission_are_not_reconciled() {
    let world = World::start().await;
    let pages = || {
        let mut paid = invoice(&world, "in_1", "cus_1", 10_000);
        (paid["charge"], paid["customer_email"]) = (json!("ch_1"), json!("grace@example.net"));
        let refunded = json!({"id": "ch_1", "object": "charge", "amount": 10_000, "amount_refunded": 10_000,
            "currency": "usd", "customer": "cus_1", "disputed": false, "metadata": {}});
        vec![
            ("/v1/account", json!({"id": "acct_1", "object": "account"})),
            ("/v1/customers/cus_1", json!(404)),
            ("/v1/invoices", list(json!([paid]))),
            ("/v1/charges/ch_1", json!({"in_turn": [401, 403, refunded]})),
        ]
    };
    let (session, requests) = connect_program(&world, pages, 0).await;
    let done = run_backfill(&world, &session, world.services.clock.now().as_second() - 3_600).await;
    assert_eq!(done["status"], "done", "{done}");
    let (service, before) = (world.affiliate.clone(), requests.load(Ordering::Relaxed));
    world.services.clock.advance(Duration::from_secs(29 * 86_400 + 3_600));
    for status in ["pending", "pending", "reversed"] {
        let now = world.services.clock.now();
        service.reconciliation().reconcile_due(0..=PARTITIONS - 1, now).await.unwrap();
        assert_eq!(all(&world, "/affiliate-commissions").await[0]["status"], status);
        world.services.clock.advance(Duration::from_secs(601));
    }
    assert_eq!(requests.load(Ordering::Relaxed), before + 3);
    world.end().await;
}

/// A refund and a dispute without an event are detected when a payout run is drafted.
#[tokio::test]
async fn charges_are_reconciled_before_a_draft() {
    let world = World::start().await;
    let pages = || {
        let paid = |id: &str, charge: &str| {
            let mut invoice = invoice(&world, id, "cus_1", 10_000);
            invoice["charge"] = json!(charge);
            invoice
        };
        let charge = |id: &str, refunded: i64, disputed: bool| {
            json!({"id": id, "object": "charge", "amount": 10_000, "amount_refunded": refunded, "currency": "usd",
                "customer": "cus_1", "disputed": disputed, "metadata": {}})
        };
        let lost = json!([{"id": "dp_1", "object": "dispute", "charge": "ch_3", "status": "lost", "amount": 10_000,
            "currency": "usd"}]);
        let customer = json!({"id": "cus_1", "object": "customer", "email": "grace@example.net", "metadata": {}});
        // Neither the invoice nor an event names the payment that paid it.
        let mut silent = invoice(&world, "in_4", "cus_1", 10_000);
        silent["charge"] = Value::Null;
        let invoices = json!([silent, paid("in_3", "ch_3"), paid("in_2", "ch_2"), paid("in_1", "ch_1")]);
        let payment = json!([{"id": "inpay_4", "object": "invoice_payment", "invoice": "in_4", "status": "paid",
            "payment": {"type": "payment_intent", "payment_intent": "pi_4"}}]);
        let mut refunded = charge("ch_4", 10_000, false);
        refunded["payment_intent"] = json!("pi_4");
        vec![
            ("/v1/account", json!({"id": "acct_1", "object": "account"})),
            ("/v1/customers/cus_1", customer),
            ("/v1/invoices", list(invoices)),
            ("/v1/charges/ch_1", charge("ch_1", 10_000, false)),
            ("/v1/charges/ch_2", charge("ch_2", 0, false)),
            ("/v1/charges/ch_3", charge("ch_3", 0, true)),
            ("/v1/disputes?charge=ch_3", list(lost)),
            ("/v1/invoice_payments?invoice=in_4", list(payment)),
            ("/v1/charges?payment_intent=pi_4", list(json!([refunded]))),
        ]
    };
    let (session, _) = connect_program(&world, pages, 0).await;
    let since = json!({"since": world.services.clock.now().as_second() - 3600});
    owner(&world, &session, Method::POST, "/backfill", since).await;
    run_backfills(&world).await;
    let lines = all(&world, "/affiliate-commissions").await;
    assert!(lines.len() == 4 && lines.iter().all(|line| line["status"] == "pending"), "{lines:?}");
    let service = world.affiliate.clone();
    // Each line is checked a day before its hold ends, and waits for the response.
    world.services.clock.advance(Duration::from_secs(29 * 86_400 + 3_600));
    let now = world.services.clock.now();
    service.reconciliation().reconcile_due(0..=PARTITIONS - 1, now).await.unwrap();
    let status = |lines: &[Value]| lines.iter().map(|line| line["status"].clone()).collect::<Vec<_>>();
    let lines = all(&world, "/affiliate-commissions").await;
    assert_eq!(status(&lines), ["reversed", "reversed", "pending", "reversed"], "newest first");
    let reasons: Vec<_> = lines.iter().map(|line| line["reverse_reason"].clone()).collect();
    assert_eq!(reasons, [json!("refund"), json!("dispute"), Value::Null, json!("refund")]);
    let account = world.tenant().await.account().id;
    let audit = affiliate::audit::audit(&service.ledger, account).await.unwrap();
    assert!(audit.ok, "{:#?}", audit.broken);
    world.end().await;
}

/// A program with a started backfill; returns the backfill's id.
async fn start_backfill(world: &World, pages: StripePages) -> (crate::world::TestSession, Arc<AtomicUsize>, String) {
    let pages = || [pages, vec![("/v1/account", json!({"id": "acct_1", "object": "account"}))]].concat();
    let (session, requests) = connect_program(world, pages, 0).await;
    let since = json!({"since": world.services.clock.now().as_second() - 3_600});
    let started = owner(world, &session, Method::POST, "/backfill", since).await;
    let path = format!("/backfill/{}", started.json()["backfill"]["id"].as_str().unwrap());
    (session, requests, path)
}

/// Waits until the processor has received more than `before` requests.
async fn wait_for_requests(requests: &AtomicUsize, before: usize) {
    while requests.load(Ordering::Relaxed) <= before {
        tokio::task::yield_now().await;
    }
}

/// A window in which the process is repeatedly killed, for example out of memory, is not retried forever.
#[tokio::test]
async fn window_that_kills_the_process_is_abandoned() {
    let world = World::start().await;
    let (session, requests, path) = start_backfill(&world, Vec::new()).await;
    let service = world.affiliate.clone();
    let mut started = 0;
    for _ in 0..10 {
        let (before, now) = (requests.load(Ordering::Relaxed), world.services.clock.now());
        tokio::select! {
            biased;
            () = wait_for_requests(&requests, before) => started += 1,
            // No window was left, or only its end was recorded.
            _ = service.processor.backfill_due(0..=PARTITIONS - 1, now) => {}
        }
        world.services.clock.advance(Duration::from_secs(301));
    }
    assert_eq!(started, 3);
    let failed = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("the server stopped"), "{failed}");
    // The owner may start another backfill.
    let session = world.session(1).await;
    let another = owner(&world, &session, Method::POST, "/backfill", json!({})).await;
    assert_eq!(another.status, StatusCode::ACCEPTED);
    world.end().await;
}

#[tokio::test]
async fn graceful_stop_is_not_a_failure() {
    let world = World::start().await;
    let (session, requests, path) = start_backfill(&world, Vec::new()).await;
    let service = world.affiliate.clone();
    for _ in 0..4 {
        let before = requests.load(Ordering::Relaxed);
        service.processor.run_backfills(wait_for_requests(&requests, before)).await;
    }
    run_backfills(&world).await;
    let done = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(done["status"], "done", "{done}");
    world.end().await;
}

#[tokio::test]
async fn oversized_object_is_reported_and_others_recorded() {
    let world = World::start().await;
    let mut large = invoice(&world, "in_large", "cus_1", 1_000);
    large["description"] = json!("x".repeat(64 << 10));
    let mut small = invoice(&world, "in_small", "cus_1", 2_000);
    // Paid after the referral, which is created while the clock advances by two minutes.
    let paid_at = world.services.clock.now().as_second() + 60;
    for invoice in [&mut large, &mut small] {
        invoice["created"] = json!(paid_at);
        invoice["status_transitions"]["paid_at"] = json!(paid_at);
    }
    let customer = json!({"id": "cus_1", "object": "customer", "email": "grace@example.net", "metadata": {}});
    let pages = vec![("/v1/customers/cus_1", customer), ("/v1/invoices", list(json!([small, large])))];
    let (session, _, path) = start_backfill(&world, pages).await;
    run_backfills(&world).await;
    let ended = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended["error"].as_str().unwrap().contains("in_large is larger than 65536 bytes"), "{ended}");
    let failed = owner(&world, &session, Method::GET, "/processor/events?status=failed", json!({})).await.json();
    assert_eq!(failed["data"][0]["id"], "asked_in_large", "{failed}");
    let lines = all(&world, "/affiliate-commissions").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["amount_cents"], 400);
    world.end().await;
}

/// If a window does not fit into memory, it is split into shorter ones.
#[tokio::test]
async fn oversized_window_is_split() {
    let world = World::start().await;
    let now = world.services.clock.now().as_second();
    let filler = "x".repeat(60 << 10);
    let charges: Vec<Value> =
        (0..100).map(|nth| json!({"id": format!("ch_{nth}"), "created": now - 3_000, "filler": filler})).collect();
    let refunds: Vec<Value> = (0..100)
        .map(|nth| {
            json!({"id": format!("re_{nth}"), "created": now - 60, "amount": 1, "currency": "usd",
                "filler": filler})
        })
        .collect();
    let pages = vec![("/v1/charges", list(json!(charges))), ("/v1/refunds", list(json!(refunds)))];
    let (session, _, path) = start_backfill(&world, pages).await;
    run_backfills(&world).await;
    let done = owner(&world, &session, Method::GET, &path, json!({})).await.json()["backfill"].clone();
    assert_eq!((&done["status"], &done["error"]), (&json!("done"), &Value::Null), "{done}");
    world.end().await;
}
