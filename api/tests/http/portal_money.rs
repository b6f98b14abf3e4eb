//! Money in the portal: commissions with reasons, payouts with receipts, and their emails.

use std::time::Duration;

use affiliate::context::no_extension;
use affiliate::payouts::settle::PayoutQuery;
use http::{Method, StatusCode};
use model::id::{AccountId, PayoutId};
use serde_json::{Value, json};
use store::affiliate::listing::ListPageRequest;

use crate::affiliate_ledger::{event, invoice, post_event};
use crate::affiliate_program::owner;
use crate::affiliates::partner;
use crate::portal::{Browser, affiliate_service, text};
use crate::portal_pages::{program_with_sender, sent_emails};
use crate::world::{TestSession, World};

/// A partner with one earned commission, who got no email yet.
async fn partner_with_commission(world: &World) -> (TestSession, Value) {
    let session = program_with_sender(world).await;
    let set = owner(world, &session, Method::PUT, "/campaigns/default", json!({"hold_days": 0})).await;
    assert_eq!(set.status, StatusCode::OK);
    let ada =
        json!({"email": "ada@example.org", "token": "ada", "paypal_email": "pay@example.org", "send_invite": false});
    let ada = partner(world, ada).await;
    let program = owner(world, &session, Method::GET, "", json!({})).await.json()["program"]["id"].clone();
    for (n, cents) in [("1", 4_900), ("2", 123_400)] {
        let referral =
            json!({"token": "ada", "email": format!("g{n}@example.net"), "processor_customer_id": format!("cus_{n}")});
        assert_eq!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status, StatusCode::CREATED);
        let object = invoice(world, &format!("in_{n}"), &format!("cus_{n}"), cents);
        let paid = event(world, &format!("evt_{n}"), "invoice.paid", &object);
        assert_eq!(post_event(world, program.as_str().unwrap(), &paid).await.json()["status"], "done");
    }
    world.services.clock.advance(Duration::from_secs(5));
    (session, ada)
}

/// Drafts and approves a run of everything earned, and returns its only payout.
async fn approve_payout(world: &World, account: AccountId) -> PayoutId {
    let ledger = affiliate_service(world).ledger;
    let run = ledger.begin_run(account, None, &no_extension).await.unwrap();
    let run = ledger.finish_draft(account, run).await.unwrap().run.unwrap();
    ledger.approve_run(account, run.id, run.rev, &run.totals, &no_extension).await.unwrap();
    let query = PayoutQuery { run: Some(run.id), ..PayoutQuery::default() };
    let expected = ListPageRequest { before: None, limit: 9, from: None };
    let [only] = &ledger.list_payouts(account, &query, expected).await.unwrap().rows[..] else { panic!("{run:?}") };
    only.payout.id
}

#[tokio::test]
async fn commissions_show_their_formula() {
    let world = World::start().await;
    let (_, ada) = partner_with_commission(&world).await;
    let browser = Browser::of(&world, &ada).await;
    let page = text(&browser.get("/portal/earnings").await);
    for expected in ["20 % of 49.00 USD = 9.80 USD (the campaign's rate)", "246.80 USD", "earned"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("in_1") && !page.contains("cus_1"), "the processor's ids are not shown to partners");
    let home = text(&browser.get("/portal/home").await);
    assert!(home.contains("<dt>Earned</dt><dd class=\"tile-value\">256.60 <small>USD</small>"), "{home}");
    assert!(home.contains("Commissions are earned at once."), "{home}");
    assert!(home.contains("<svg class=\"plot\"") && home.contains("256.60 USD in commissions"), "{home}");
    world.end().await;
}

#[tokio::test]
async fn commissions_in_a_draft_are_shown_as_earned() {
    let world = World::start().await;
    let (_, ada) = partner_with_commission(&world).await;
    let account = world.tenant().await.account().id;
    let ledger = affiliate_service(&world).ledger;
    let browser = Browser::of(&world, &ada).await;
    let run = ledger.begin_run(account, None, &no_extension).await.unwrap();
    let run = ledger.finish_draft(account, run).await.unwrap().run.unwrap();
    let home = text(&browser.get("/portal/home").await);
    assert!(home.contains("<dt>Earned</dt><dd class=\"tile-value\">256.60 "), "{home}");
    assert!(home.contains("<dt>Being paid</dt><dd class=\"tile-value\">0.00 "), "{home}");
    let earnings = text(&browser.get("/portal/earnings").await);
    assert!(earnings.contains(">earned<") && !earnings.contains("being paid"), "{earnings}");
    assert!(text(&browser.get("/portal/payouts").await).contains("No payouts yet"));
    ledger.approve_run(account, run.id, run.rev, &run.totals, &no_extension).await.unwrap();
    let home = text(&browser.get("/portal/home").await);
    assert!(home.contains("<dt>Earned</dt><dd class=\"tile-value\">0.00 "), "{home}");
    assert!(home.contains("<dt>Being paid</dt><dd class=\"tile-value\">256.60 "), "{home}");
    assert!(text(&browser.get("/portal/earnings").await).contains(">being paid<"));
    world.end().await;
}

#[tokio::test]
async fn payout_has_a_receipt_and_an_email() {
    let world = World::start().await;
    let (_, ada) = partner_with_commission(&world).await;
    let bob = partner(&world, json!({"email": "bob@example.org", "send_invite": false})).await;
    let account = world.tenant().await.account().id;
    let (browser, bobs) = (Browser::of(&world, &ada).await, Browser::of(&world, &bob).await);
    let ledger = affiliate_service(&world).ledger;
    let payout = approve_payout(&world, account).await;
    let receipt = format!("/portal/payouts/{payout}");
    let page = text(&browser.get("/portal/payouts").await);
    assert!(page.contains("on its way") && page.contains("PayPal: pay@example.org"), "{page}");
    assert!(text(&browser.get("/portal/home").await).contains("<dt>Being paid</dt><dd class=\"tile-value\">256.60"));
    ledger.mark_payout_paid(account, payout, "tx <b>42</b>", None, &no_extension).await.unwrap();
    let page = text(&browser.get(&receipt).await);
    for expected in ["256.60 USD", "tx &lt;b&gt;42&lt;/b&gt;", "20 % of 1,234.00 USD", "https://shop.example", "paid"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(page.contains("href=\"../settings\"") && page.contains("href=\"../style.css"), "{page}");
    assert_eq!(bobs.get(&receipt).await.status, StatusCode::NOT_FOUND);
    let other_browser = Browser::new(&world);
    assert_eq!(other_browser.get(&receipt).await.status, StatusCode::UNAUTHORIZED);
    assert!(text(&browser.get("/portal/home").await).contains("<dt>Paid</dt><dd class=\"tile-value\">256.60"));
    let written = sent_emails(&world).await;
    let [(to, subject, email_text)] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!((to.as_str(), subject.as_str()), ("ada@example.org", "shop.example has paid you 256.60 USD"));
    assert!(
        email_text.contains("PayPal: pay@example.org") && email_text.contains("Reference: tx <b>42</b>"),
        "{email_text}"
    );
    // Marking it as paid again sends no second email.
    ledger.mark_payout_paid(account, payout, "tx <b>42</b>", None, &no_extension).await.unwrap();
    assert_eq!(sent_emails(&world).await.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn deductions_are_announced_and_counted_in_what_was_paid() {
    let world = World::start().await;
    let (session, ada) = partner_with_commission(&world).await;
    let set = owner(&world, &session, Method::PATCH, "", json!({"payout_after_refund": "offset"})).await;
    assert_eq!(set.status, StatusCode::OK);
    let program = owner(&world, &session, Method::GET, "", json!({})).await.json()["program"]["id"].clone();
    let ingest = async |id: &str, kind: &str, object: &Value| {
        let event = event(&world, id, kind, object);
        assert_eq!(post_event(&world, program.as_str().unwrap(), &event).await.json()["status"], "done");
        world.services.clock.advance(Duration::from_secs(5));
    };
    let account = world.tenant().await.account().id;
    let ledger = affiliate_service(&world).ledger;
    let pay = async |reference: &str| {
        let payout = approve_payout(&world, account).await;
        ledger.mark_payout_paid(account, payout, reference, None, &no_extension).await.unwrap();
        payout
    };
    let browser = Browser::of(&world, &ada).await;
    let home = async || text(&browser.get("/portal/home").await);
    pay("r1").await;
    assert!(!home().await.contains("Your next payout is"));
    let dispute = |status| json!({"id": "dp_1", "object": "dispute", "charge": "ch_in_1", "status": status});
    ingest("evt_3", "charge.dispute.created", &dispute("needs_response")).await;
    let page = home().await;
    assert!(page.contains("Your next payout is reduced by 9.80 USD"), "{page}");
    ingest("evt_4", "invoice.paid", &invoice(&world, "in_3", "cus_1", 10_000)).await;
    // A draft nets the deduction: the partner still sees it apart from the commission.
    let run = ledger.begin_run(account, None, &no_extension).await.unwrap();
    let run = ledger.finish_draft(account, run).await.unwrap().run.unwrap();
    let page = home().await;
    assert!(page.contains("<dt>Earned</dt><dd class=\"tile-value\">20.00 "), "{page}");
    assert!(page.contains("Your next payout is reduced by 9.80 USD"), "{page}");
    ledger.cancel_run(account, run.id, None, &no_extension).await.unwrap();
    let payout = approve_payout(&world, account).await;
    let page = home().await;
    assert!(page.contains("<dt>Being paid</dt><dd class=\"tile-value\">10.20 "), "{page}");
    ledger.mark_payout_paid(account, payout, "r2", None, &no_extension).await.unwrap();
    // 256.60 and 20.00 − 9.80, not the sum of the commissions.
    let page = home().await;
    assert!(page.contains("<dt>Paid</dt><dd class=\"tile-value\">266.80 "), "{page}");
    ingest("evt_5", "charge.dispute.closed", &dispute("won")).await;
    let page = home().await;
    assert!(page.contains("Your next payout is raised by 9.80 USD"), "{page}");
    let payout = pay("r3").await;
    let page = home().await;
    assert!(page.contains("<dt>Paid</dt><dd class=\"tile-value\">276.60 "), "{page}");
    assert!(!page.contains("Your next payout is"), "{page}");
    let receipt = text(&browser.get(&format!("/portal/payouts/{payout}")).await);
    assert!(receipt.contains("9.80 USD") && receipt.contains("earlier deductions that were too high"), "{receipt}");
    world.end().await;
}

#[tokio::test]
async fn two_failed_payouts_notify_the_partner() {
    let world = World::start().await;
    let (_, ada) = partner_with_commission(&world).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    // Emails about failed payouts ignore the email preference.
    world.call(Method::PATCH, &path, &json!({"email_opt_out": true})).await;
    let account = world.tenant().await.account().id;
    let browser = Browser::of(&world, &ada).await;
    for n in 1..=2 {
        let payout = approve_payout(&world, account).await;
        affiliate_service(&world)
            .ledger
            .fail_payout(account, payout, "no such account", None, &no_extension)
            .await
            .unwrap();
        let page = text(&browser.get(&format!("/portal/payouts/{payout}")).await);
        assert!(page.contains(">failed<") && page.contains("no such account"), "{page}");
        assert_eq!(sent_emails(&world).await.len(), n - 1);
    }
    let (to, subject, email_text) = sent_emails(&world).await.remove(0);
    assert_eq!((to.as_str(), subject.as_str()), ("ada@example.org", "shop.example could not pay you"));
    assert!(email_text.contains("256.60 USD") && email_text.contains("no such account"), "{email_text}");
    assert_eq!(world.get(&path).await.json()["affiliate"]["payout_ready"], false);
    assert!(text(&browser.get("/portal/payouts").await).contains("Payouts cannot be sent there at the moment"));
    world.end().await;
}
