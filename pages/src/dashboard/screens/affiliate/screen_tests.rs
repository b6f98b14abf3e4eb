//! The pages with fixed answers: texts of strangers, what forms send, and refused forms.

use serde_json::{Value, json};

use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

const TIME: &str = "2026-11-26T10:00:00.000Z";

fn partner() -> Value {
    json!({
        "id": "aff_1", "email": "ada@example.org", "first_name": HOSTILE, "last_name": null, "company": HOSTILE,
        "status": "active", "source": "api", "campaign_id": "cmp_1", "tags": [HOSTILE], "payout_method": "paypal",
        "payout_ready": true, "created_at": TIME,
        "links": [{"id": "afl_1", "token": "ada", "url": "https://shop.example/?via=ada", "is_primary": true, "label": HOSTILE}],
    })
}

fn campaign() -> Value {
    json!({
        "id": "cmp_1", "name": HOSTILE, "is_default": true, "visibility": "public", "commission_type": "percent",
        "commission_bps": 2000, "commission_duration": "recurring", "hold_days": 30, "cookie_days": 60,
        "product_rates": [{"product_id": HOSTILE, "commission_type": "flat", "commission_flat_cents": 1250, "label": HOSTILE}],
    })
}

fn referral() -> Value {
    json!({
        "id": "ref_1", "affiliate_id": "aff_1", "status": "active", "source": "api", "email": HOSTILE, "sub_id": HOSTILE,
        "revenue_cents": 4900, "currency": "usd", "converted_at": TIME, "created_at": TIME, "blocked_reason": "self_referral",
    })
}

fn commission() -> Value {
    json!({
        "id": "com_1", "affiliate_id": "aff_1", "referral_id": "ref_1", "tier": 1, "status": "pending",
        "amount_cents": 980, "sale_amount_cents": 4900, "currency": "usd", "description": HOSTILE, "earns_at": TIME,
        "created_at": TIME,
    })
}

fn payout() -> Value {
    json!({
        "id": "pay_1", "affiliate_id": "aff_1", "run_id": "prn_1", "amount_cents": 980, "currency": "usd",
        "method": "bank", "status": "processing", "failure_reason": HOSTILE, "created_at": TIME, "destination": HOSTILE,
    })
}

fn run(status: &str) -> Value {
    json!({
        "run": {"id": "prn_1", "status": status, "rev": 7, "totals": {"jpy": 5, "usd": 980}, "payouts_count": 1, "created_at": TIME},
        "payouts": [payout()],
        "skipped": [{"affiliate_id": "aff_1", "currency": "usd", "amount_cents": 5, "reason": "below_minimum"}],
    })
}

fn list(row: Value) -> Value {
    json!({"data": [row], "has_more": false, "next_cursor": null})
}

/// A live program with one row of each kind.
fn live() -> FakeBackend {
    let program = json!({
        "program": {
            "id": "prog_1", "status": "live", "mode": "live", "website_url": HOSTILE, "currency": "usd",
            "attribution": "first_click", "default_campaign_id": "cmp_1", "allowed_origins": [HOSTILE],
            "publishable_key": "pk_1", "mail_error": HOSTILE, "min_payout": {"jpy": 1000},
        },
        "processor": {"webhook_url": "https://api.example.com/processor/stripe/prog_1", "has_key": true, "failed_events": 1},
        "webhook_url": "https://api.example.com/processor/stripe/prog_1",
        "missing": [],
    });
    let event = json!({"id": HOSTILE, "type": HOSTILE, "status": "failed", "error": HOSTILE, "attempts": 2});
    let review =
        json!({"referral_id": "ref_1", "affiliate_id": "aff_1", "flags": ["same_ip", HOSTILE], "status": "open"});
    let inside =
        json!({"notes": HOSTILE, "payout_destination": HOSTILE, "postback_url": HOSTILE, "postback_secret": "s"});
    let broken = json!({"invariant": "I2", "subject": HOSTILE, "message": HOSTILE});
    FakeBackend::new()
        .answer("get_affiliate_program", program)
        .answer("list_affiliates", list(partner()))
        .answer("get_affiliate", json!({"affiliate": partner()}))
        .answer("get_affiliate_inside", inside)
        .answer("list_affiliate_campaigns", list(campaign()))
        .answer("get_affiliate_campaign", json!({"campaign": campaign()}))
        .answer("list_affiliate_referrals", list(referral()))
        .answer("get_affiliate_referral", json!({"referral": referral()}))
        .answer("list_affiliate_commissions", list(commission()))
        .answer("get_affiliate_commission", json!({
            "commission": commission(), "formula": HOSTILE,
            "calculation": {"currency": "usd", "paid_cents": 5_900, "tax_cents": 1_000, "base_cents": 4_900,
                "remaining_base_cents": 4_900, "paying_customers": 2, "rates": [
                    {"base_cents": 4_900, "commission_bps": 2000, "rule": "product", "product": HOSTILE}]},
        }))
        .answer("list_affiliate_ledger", list(json!({
            "commission": commission(), "formula": HOSTILE, "balance_after_cents": 1_960,
        })))
        .answer("list_affiliate_backfills", list(json!({
            "id": "bkf_1", "status": "done", "since": TIME, "invoices_seen": 7, "lines_written": 3, "created_at": TIME,
        })))
        .answer("get_affiliate_review", json!({"review": review}))
        .answer("list_affiliate_reviews", list(review))
        .answer("list_affiliate_payouts", list(payout()))
        .answer("get_affiliate_payout", json!({"payout": payout()}))
        .answer("list_affiliate_payout_runs", list(run("draft")["run"].clone()))
        .answer("get_affiliate_payout_run", run("draft"))
        .answer("list_affiliate_processor_events", list(event))
        .answer("list_affiliate_postbacks", list(json!({"type": HOSTILE, "status": "failed", "error": HOSTILE})))
        .answer("audit_affiliate_program", json!({
            "status": "done", "ok": false, "complete": true, "checked": {}, "broken": [broken],
            "invariants": [{"invariant": "I2", "description": "Sums", "violations": 1}],
        }))
}

/// The program of [`live`], with an audit without violations.
fn audited(status: &str, complete: bool) -> FakeBackend {
    let is_done = status == "done";
    let audit = json!({"status": status, "ok": is_done, "complete": complete, "checked": {}, "broken": []});
    live().answer("audit_affiliate_program", audit)
}

#[test]
fn texts_of_strangers_are_harmless() {
    let backend = live();
    for path in [
        "",
        "/install",
        "/processor/events",
        "/partners",
        "/partners/aff_1",
        "/partners/aff_1/ledger",
        "/partners/aff_1/edit",
        "/partners/aff_1/payout-method",
        "/partners/aff_1/suspend",
        "/partners/aff_1/delete",
        "/campaigns",
        "/campaigns/cmp_1",
        "/campaigns/cmp_1/edit",
        "/referrals",
        "/referrals/ref_1",
        "/commissions",
        "/commissions/com_1",
        "/commissions/com_1/reverse",
        "/commissions/com_1/reinstate",
        "/reviews",
        "/reviews/ref_1",
        "/payouts/all",
        "/payouts/pay_1",
        "/payouts/pay_1/mark-paid",
        "/payouts/pay_1/fail",
        "/payouts/runs/prn_1",
        "/payouts/runs/prn_1/approve",
        "/audit",
        "/settings",
    ] {
        let answer = backend.get(&format!("/affiliate{path}"));
        assert_eq!(answer.status, 200, "{path}");
        assert_harmless(&html(answer));
    }
}

#[test]
fn links_to_the_settings_need_the_right_to_change_them() {
    let link = "href=\"/dashboard/affiliate/settings\"";
    let setting_up = || {
        let program = json!({"program": {"status": "setup", "currency": "usd"}, "webhook_url": "", "missing": []});
        live().answer("get_affiliate_program", program)
    };
    for backend in [live(), setting_up()] {
        assert!(html(backend.get("/affiliate")).contains(link));
        assert!(html(backend.get("/affiliate/install")).contains(link));
        let viewer = backend.forbid("update_affiliate_program");
        assert!(!html(viewer.get("/affiliate")).contains(link));
        assert!(!html(viewer.get("/affiliate/install")).contains(link));
    }
}

#[test]
fn amounts_are_explained_by_the_api() {
    let backend = live();
    let page = html(backend.get("/affiliate/commissions/com_1"));
    for part in ["Calculation", "59.00", "The partner's paying customers", "20"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = html(backend.get("/affiliate/partners/aff_1/ledger"));
    assert!(page.contains("19.60"), "{page}");
    let page = html(backend.get("/affiliate/backfill"));
    assert!(page.contains("/dashboard/affiliate/backfill/bkf_1"), "{page}");
    backend.get("/affiliate/payouts/pay_1");
    let lines = backend.calls("list_affiliate_commissions");
    assert!(lines.iter().any(|call| call.query.contains(&("payout_id".to_owned(), "pay_1".to_owned()))), "{lines:?}");
}

#[test]
fn pages_say_to_set_the_program_up_first() {
    let lists = ["partners", "campaigns", "referrals", "commissions", "reviews", "payouts", "payouts/all"];
    let others = ["partners/new", "audit", "settings", "backfill", "processor", "processor/events"];
    for path in lists.into_iter().chain(others) {
        let page = html(FakeBackend::new().get(&format!("/affiliate/{path}")));
        assert!(page.contains("Set up the program"), "{path}");
    }
    let page = html(FakeBackend::new().get("/affiliate"));
    assert!(page.contains("Turn the program on"));
}

#[test]
fn an_approval_sends_what_was_seen() {
    let backend =
        audited("done", true).answer("reauthenticate", json!({})).answer("approve_affiliate_payout_run", json!({}));
    let page = html(backend.get("/affiliate/payouts/runs/prn_1/approve"));
    assert!(page.contains(r#"value="jpy=5,usd=980""#) && page.contains(r#"name="proof""#));
    assert!(page.contains(r#"name="audit" value="holds""#) && !page.contains("Approve although"), "{page}");
    let fields = [("rev", "7"), ("totals", "jpy=5,usd=980"), ("audit", "holds"), ("proof", "secret")];
    let answer = backend.post("/affiliate/payouts/runs/prn_1/approve", "approve", &fields);
    assert_eq!(location(answer), "/dashboard/affiliate/payouts/runs/prn_1?done=approved");
    let calls = backend.calls("approve_affiliate_payout_run");
    assert_eq!(calls[0].body, CallBody::Json(json!({"rev": 7, "totals": {"jpy": 5, "usd": 980}})));
}

#[test]
fn an_approval_stops_at_a_wrong_password_or_a_changed_run() {
    let refused = Failure { status: 401, code: "unauthorized".into(), message: "Wrong".into(), ..Failure::default() };
    let backend = live().refuse("reauthenticate", refused);
    let fields = [("rev", "7"), ("totals", "usd=980"), ("audit_accepted", "true"), ("proof", "x")];
    let page = html(backend.post("/affiliate/payouts/runs/prn_1/approve", "approve", &fields));
    assert!(page.contains("Wrong") && backend.calls("approve_affiliate_payout_run").is_empty());
    let changed =
        Failure { status: 409, code: "conflict".into(), message: "The run changed".into(), ..Failure::default() };
    let backend = live().answer("reauthenticate", json!({})).refuse("approve_affiliate_payout_run", changed);
    let page = html(backend.post("/affiliate/payouts/runs/prn_1/approve", "approve", &fields));
    assert!(
        page.contains("The run changed") && !page.contains(r#"value="approve""#),
        "what was seen is not sent again"
    );
}

#[test]
fn an_approval_despite_the_audit_takes_a_tick() {
    let path = "/affiliate/payouts/runs/prn_1/approve";
    let backends = [
        (live(), "Approve although the audit found the ledger inconsistent"),
        (audited("done", false), "Approve although the audit did not check all rows"),
        (audited("running", false), "Approve although the audit has not finished"),
    ];
    for (backend, label) in backends {
        let backend = backend.answer("reauthenticate", json!({})).answer("approve_affiliate_payout_run", json!({}));
        let page = html(backend.get(path));
        assert!(page.contains(label) && page.contains(r#"name="audit" value="""#), "{page}");
        assert!(!page.contains("The ledger is consistent"), "{page}");
        let fields = [("rev", "7"), ("totals", "usd=980"), ("audit", ""), ("proof", "x"), ("audit_accepted", "true")];
        let page = html(backend.post(path, "approve", &fields[..4]));
        assert!(page.contains(r#"id="approve-audit_accepted-error""#) && page.contains("Tick this box"), "{page}");
        assert!(backend.calls("approve_affiliate_payout_run").is_empty(), "{label}");
        let answer = backend.post(path, "approve", &fields);
        assert_eq!(location(answer), "/dashboard/affiliate/payouts/runs/prn_1?done=approved");
    }
}

#[test]
fn the_page_of_a_run_shows_that_its_audit_failed() {
    let failure =
        Failure { status: 500, code: "internal_error".into(), message: "Damaged".into(), ..Failure::default() };
    let page = html(live().refuse("audit_affiliate_program", failure).get("/affiliate/payouts/runs/prn_1"));
    assert!(page.contains("The audit failed") && page.contains("Damaged") && page.contains("By method"), "{page}");
}

#[test]
fn an_import_is_checked_first() {
    let report = |dry_run: bool| {
        json!({"dry_run": dry_run, "imported": 1, "partners": [{"row": 1, "email": HOSTILE, "token": "ada", "id": null}],
            "skipped": [{"row": 2, "email": HOSTILE, "reason": "already_partner"}], "ignored_columns": [HOSTILE]})
    };
    let backend = live().answer("import_affiliates", report(true));
    let page = html(backend.post("/affiliate/partners/import", "check", &[("csv", "email\n\"a@b.example\"\n")]));
    assert_harmless(&page);
    assert!(page.contains("This person is already a partner") && page.contains("a@b.example&quot;"));
    assert!(backend.calls("import_affiliates")[0].query.contains(&("dry_run".into(), "true".into())));
    backend.post("/affiliate/partners/import", "import", &[("csv", "email\na@b.example\n")]);
    let sent = &backend.calls("import_affiliates")[1];
    assert!(sent.query.is_empty() && sent.body == CallBody::File("text/csv", "email\na@b.example\n".into()));
    let page = html(backend.post("/affiliate/partners/import", "check", &[("csv", " ")]));
    assert!(page.contains("Choose a file, or paste its rows"));
}

#[test]
fn forms_send_exact_amounts() {
    let backend = live().answer("update_affiliate_campaign", json!({})).answer("update_affiliate", json!({}));
    let fields = [
        ("name", "A"),
        ("commission_type", "flat"),
        ("commission_flat_cents", "19.99"),
        ("commission_duration", "once"),
        ("hold_days", "30"),
        ("cookie_days", "60"),
        ("tiers", "5: 25.00"),
    ];
    backend.post("/affiliate/campaigns/cmp_1/edit", "edit", &fields);
    let CallBody::Json(body) = &backend.calls("update_affiliate_campaign")[0].body else { panic!("no body") };
    assert_eq!(
        (&body["commission_flat_cents"], &body["tiers"][0]["commission_flat_cents"]),
        (&json!(1999), &json!(2500))
    );
    let fields = [("token", "ada"), ("token_before", "ada"), ("commission_override", "30"), ("notes", "")];
    backend.post("/affiliate/partners/aff_1/edit", "edit", &fields);
    let CallBody::Json(body) = &backend.calls("update_affiliate")[0].body else { panic!("no body") };
    assert!(body.get("token").is_none() && body["notes"].is_null());
    assert_eq!(body["commission_override"], json!({"commission_type": "percent", "commission_bps": 3000}));
}

#[test]
fn a_change_of_somebody_else_is_not_overwritten() {
    let changed = Failure {
        status: 409,
        code: "conflict".into(),
        message: "The object has changed".into(),
        details: Box::new(json!({"reason": "changed"})),
        ..Failure::default()
    };
    let edits = [
        ("/affiliate/partners/aff_1/edit", "edit", "update_affiliate"),
        ("/affiliate/partners/aff_1/payout-method", "payout-method", "set_affiliate_payout_method"),
        ("/affiliate/campaigns/cmp_1/edit", "edit", "update_affiliate_campaign"),
        ("/affiliate/settings", "tracking", "update_affiliate_program"),
    ];
    let fields = [
        ("name", "A"),
        ("commission_type", "percent"),
        ("commission_bps", "20"),
        ("commission_duration", "once"),
        ("hold_days", "30"),
        ("cookie_days", "60"),
        ("seen_version", "\"6\""),
    ];
    for (path, form, operation) in edits {
        let backend = live().refuse(operation, changed.clone());
        assert!(html(backend.get(path)).contains(r#"name="seen_version" value="&quot;7&quot;""#), "{path}");
        let page = html(backend.post(path, form, &fields));
        assert_eq!(backend.calls(operation)[0].if_match.as_deref(), Some("\"6\""), "{path}");
        assert!(page.contains("Someone else has changed this"), "{path}: {page}");
        assert!(page.contains(r#"value="&quot;6&quot;""#), "{path}: sent again, it is refused again: {page}");
    }
}

#[test]
fn only_drafts_are_audited_and_the_page_of_a_run_does_not_wait() {
    let backend = live();
    html(backend.get("/affiliate/payouts/runs/prn_1"));
    let audits = backend.calls("audit_affiliate_program");
    assert_eq!(audits[0].query, [("wait".to_owned(), "false".to_owned())]);
    let backend = live().answer("get_affiliate_payout_run", run("processing"));
    assert!(html(backend.get("/affiliate/payouts/runs/prn_1/approve")).contains("no longer a draft"));
    html(backend.get("/affiliate/payouts/runs/prn_1"));
    assert!(backend.calls("audit_affiliate_program").is_empty());
}

#[test]
fn lists_without_a_match_so_far_lead_on() {
    let paused = json!({"data": [], "has_more": true, "next_cursor": "next"});
    for (path, operation) in [
        ("partners?status=active", "list_affiliates"),
        ("referrals?status=lead", "list_affiliate_referrals"),
        ("commissions?status=earned", "list_affiliate_commissions"),
        ("payouts/all?status=paid", "list_affiliate_payouts"),
    ] {
        let page = html(live().answer(operation, paused.clone()).get(&format!("/affiliate/{path}")));
        assert!(page.contains("Nothing found so far") && page.contains("cursor=next"), "{path}: {page}");
        let page = html(live().answer(operation, json!({"data": []})).get(&format!("/affiliate/{path}")));
        assert!(page.contains("No matching"), "{path}");
    }
}

#[test]
fn deletion_asks_for_the_name() {
    let backend = live().answer("delete_affiliate", json!({}));
    let page = html(backend.post("/affiliate/partners/aff_1/delete", "delete", &[("email", "bob@example.org")]));
    assert!(page.contains("Enter ada@example.org to confirm") && backend.calls("delete_affiliate").is_empty());
    let answer = backend.post("/affiliate/partners/aff_1/delete", "delete", &[("email", "ada@example.org")]);
    assert_eq!(location(answer), "/dashboard/affiliate/partners?done=deleted");
}

#[test]
fn secrets_are_sent_and_not_shown_again() {
    let refused = Failure::field("webhook_secrets[0]", "is too short");
    let backend = live().refuse("connect_affiliate_processor", refused);
    let fields = [("webhook_secrets[0]", "whsec_secret"), ("webhook_secrets[1]", ""), ("restricted_key", "rk_secret")];
    let page = html(backend.post("/affiliate/processor", "connect", &fields));
    assert!(page.contains("is too short") && !page.contains("whsec_secret") && !page.contains("rk_secret"));
    let body = json!({"webhook_secrets": ["whsec_secret"], "restricted_key": "rk_secret"});
    assert_eq!(backend.calls("connect_affiliate_processor")[0].body, CallBody::Json(body));
}

#[test]
fn roles_see_only_what_they_may_do() {
    let backend =
        live().forbid("reverse_affiliate_commission").forbid("create_affiliate").forbid("get_affiliate_inside");
    assert!(!html(backend.get("/affiliate/commissions/com_1")).contains("/reverse"));
    assert!(!html(backend.get("/affiliate/partners")).contains("/partners/new"));
    assert!(!html(backend.get("/affiliate/partners/aff_1")).contains("Postbacks"));
    assert_eq!(backend.get("/affiliate/partners/new").status, 403);
}

#[test]
fn a_refused_filter_keeps_the_filters() {
    let failure = Failure::field("affiliate_id", "`affiliate_id`: is no id of a partner");
    for (path, operation) in [
        ("partners", "list_affiliates"),
        ("referrals", "list_affiliate_referrals"),
        ("commissions", "list_affiliate_commissions"),
        ("payouts/all", "list_affiliate_payouts"),
    ] {
        let backend = live().refuse(operation, failure.clone());
        let page = html(backend.get(&format!("/affiliate/{path}?affiliate_id=x&status=active")));
        assert!(page.contains("is no id of a partner") && page.contains("Filter</button>"), "{path}");
    }
}

#[test]
fn a_new_campaign_has_its_share_filled_in() {
    let page = html(FakeBackend::new().get("/affiliate/campaigns/new"));
    assert!(page.contains("name=\"commission_bps\" type=\"text\" value=\"20\""), "{page}");
}

#[test]
fn filters_use_the_words_of_the_list() {
    let backend = FakeBackend::new()
        .answer("list_affiliate_payouts", list(payout()))
        .answer("list_affiliate_commissions", list(commission()))
        .answer("list_affiliate_referrals", list(referral()));
    for (target, option) in [
        ("/affiliate/payouts/all", "value=\"processing\">To be paid<"),
        ("/affiliate/commissions", "value=\"pending\">On hold<"),
        ("/affiliate/commissions", "value=\"earned\">Earned, or in a payout<"),
        ("/affiliate/referrals", "value=\"api\">API or dashboard<"),
    ] {
        let page = html(backend.get(target));
        assert!(page.contains(option), "{target} {option}: {page}");
    }
    let page = html(backend.get("/affiliate/referrals"));
    assert!(page.contains("<span class=\"address\"><a href=\"/dashboard/affiliate/referrals/ref_1\">"), "{page}");
}

#[test]
fn the_steps_after_the_first_begin_with_two() {
    assert!(html(FakeBackend::new().get("/affiliate")).contains("start=\"2\""));
}
