//! Emails in a program's name: who receives them, who sends them, and whose text they contain.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::affiliates::partner;
use crate::portal::{Browser, affiliate_service, text, update_program};
use crate::portal_pages::{find_link, program_with_sender, sent_emails, stored_emails};
use crate::world::{BASE_URL, TestResponse, TestSession, World};

/// A malicious owner's text for strangers.
const EVIL: &str = "Your parcel waits: https://evil.example/pay";

/// A service with its own sender, whose domain belongs to another account.
async fn world_with_service_sender() -> World {
    let sender = "hello@service.example".parse().unwrap();
    let world = World::with_parts(|parts| parts.sandbox_sender = Some(sender)).await;
    world.account(9, model::credential::ApiKeyScope::Full).await;
    world.create_domain(9, "service.example").await;
    world
}

/// The same service; its first account is in the sandbox.
async fn sandbox() -> (World, TestSession) {
    let world = world_with_service_sender().await;
    world.change_account(|account| account.production = false).await;
    let session = set_up(&world, 1).await;
    update_program(&world, &session, json!({"website_url": "https://your-parcel-waits.evil.example/pay"})).await;
    (world, session)
}

async fn publishable_key(world: &World, session: &TestSession) -> String {
    let program = owner(world, session, Method::GET, "", json!({})).await.json();
    program["program"]["publishable_key"].as_str().unwrap().to_owned()
}

async fn join(world: &World, key: &str, email: &str) -> TestResponse {
    Browser::new(world).post("/portal/join", &[("key", key), ("email", email), ("first_name", EVIL)]).await
}

/// Number of emails in the list of this account.
async fn count_emails(world: &World, number: u8) -> usize {
    let email = format!("owner{number}@example.com");
    let account = store::account::find(&world.services.store, &email).await.unwrap().unwrap();
    store::email::list(&world.services.store, account.id, None, 1_000).await.unwrap().len()
}

async fn emails_used(world: &World) -> i64 {
    world.queue.events.outbox.plan_usage(&world.tenant().await).await.unwrap().month
}

/// A sandbox account sends nothing to partners who did not ask for it, neither from the service's sender nor from its
/// own.
#[tokio::test]
async fn sandbox_account_sends_no_partner_emails() {
    let (world, session) = sandbox().await;
    for sender in [Value::Null, json!("partners@example.com")] {
        update_program(&world, &session, json!({"mail_from": sender})).await;
        let reason = if sender.is_null() { "`mail_from`" } else { "production access" };
        let view = owner(&world, &session, Method::GET, "", json!({})).await.json()["program"].clone();
        assert!(view["mail_error"].as_str().unwrap().contains(reason), "{view}");
        for number in 0..100 {
            let status = ["active", "pending", "invited"][number % 3];
            let email = format!("{number}-{}@victim.example", sender.is_null());
            let body = json!({"email": email, "status": status, "first_name": EVIL});
            let made = world.call(Method::POST, "/affiliates", &body).await;
            assert_eq!(made.status, StatusCode::CREATED);
            let warning = made.json()["warnings"][0].as_str().unwrap().to_owned();
            assert!(warning.contains("was not emailed") && warning.contains(reason), "{warning}");
            if status == "active" {
                continue;
            }
            let path = format!("/affiliates/{}", made.json()["affiliate"]["id"].as_str().unwrap());
            for (step, body) in [("reject", json!({"reason": EVIL})), ("approve", json!({}))] {
                let done = world.call(Method::POST, &format!("{path}/{step}"), &body).await;
                assert!(done.json()["warnings"][0].as_str().unwrap().contains(reason), "{done:?}");
            }
        }
    }
    let list = "email,status\nx@victim.example,invited\ny@victim.example,active\n";
    let import = world.upload_csv(&session, &format!("{PROGRAM}/imports?send_invites=true"), list).await.json();
    assert_eq!(import["imported"], 2, "{import}");
    assert!(import["warnings"][0].as_str().unwrap().starts_with("2 partners were not emailed"), "{import}");
    let list = "email,status\nz@victim.example,invited\n";
    let import = world.upload_csv(&session, &format!("{PROGRAM}/imports?send_invites=true"), list).await.json();
    assert!(import["warnings"][0].as_str().unwrap().starts_with("1 partner was not emailed: "), "{import}");
    assert_eq!(affiliate_service(&world).emails.send_due_emails(0..=63).await, 0);
    assert_eq!((count_emails(&world, 1).await, count_emails(&world, 9).await), (0, 0));
    // It can send to its own address from its own domain.
    let own = world.call(Method::POST, "/affiliates", &json!({"email": "owner1@example.com"})).await;
    assert_eq!(own.json()["warnings"], Value::Null, "{own:?}");
    assert_eq!(sent_emails(&world).await.len(), 1);
    world.end().await;
}

/// Requests by a form are answered by the service with a fixed text, as email of the account.
#[tokio::test]
async fn form_requests_get_fixed_texts() {
    let (world, session) = sandbox().await;
    let key = publishable_key(&world, &session).await;
    let campaign = json!({"visibility": "public", "auto_approve": false});
    assert_eq!(owner(&world, &session, Method::PUT, "/campaigns/default", campaign).await.status, StatusCode::OK);
    assert!(text(&join(&world, &key, "bob@example.org").await).contains("We have sent an email to"));
    let bob = world.get("/affiliates?email=bob@example.org").await.json()["data"][0].clone();
    let path = format!("/affiliates/{}", bob["id"].as_str().unwrap());
    assert_eq!(sent_emails(&world).await.len(), 1);
    let refused = world.call(Method::POST, &format!("{path}/reject"), &json!({"reason": EVIL})).await;
    let warning = refused.json()["warnings"][0].as_str().unwrap().to_owned();
    assert!(warning.contains("without the reason"), "{warning}");
    assert_eq!(sent_emails(&world).await.len(), 2);
    let approved = world.call(Method::POST, &format!("{path}/approve"), &json!({})).await;
    assert_eq!(approved.json()["warnings"], Value::Null, "{approved:?}");
    // Every partner can request a sign-in link, whoever added the partner.
    partner(&world, json!({"email": "ada@example.org", "send_invite": false})).await;
    let response = Browser::new(&world).post("/portal/sign-in", &[("key", &key), ("email", "ada@example.org")]).await;
    assert!(text(&response).contains("email with a sign-in link"));
    let email_text = sent_emails(&world).await.into_iter().find(|(to, ..)| to == "ada@example.org").unwrap().2;
    let mut browser = Browser::new(&world);
    let entered = browser.post(&find_link(&email_text, "/portal/link/"), &[]).await;
    browser.take_cookie(&entered.headers);
    let confirm = [("method", "other"), ("destination", EVIL)];
    assert_eq!(browser.submit("payout-method", &confirm).await.status, StatusCode::SEE_OTHER);
    assert_eq!(sent_emails(&world).await.len(), 5);
    for (_, raw) in stored_emails(&world).await {
        let raw = raw.to_ascii_lowercase();
        assert!(raw.contains("no-reply@service.example"), "{raw}");
        assert!(!raw.contains("evil") && !raw.contains("parcel"), "{raw}");
        let from = raw.lines().find(|line| line.starts_with("from:")).unwrap();
        assert!(!from.contains('"') && !from.contains("example.com"), "no name: {from}");
    }
    // These emails are in the account's list and count towards its plan.
    assert_eq!((count_emails(&world, 1).await, count_emails(&world, 9).await), (5, 0));
    assert_eq!(emails_used(&world).await, 5);
    // A suspended account sends none.
    world.change_account(|account| account.suspended = true).await;
    Browser::new(&world).post("/portal/sign-in", &[("key", &key), ("email", "bob@example.org")]).await;
    assert_eq!(affiliate_service(&world).emails.send_due_emails(0..=63).await, 0);
    world.end().await;
}

/// With a verified domain the fixed text names the program's host.
#[tokio::test]
async fn fixed_texts_name_only_verified_hosts() {
    let (world, session) = sandbox().await;
    update_program(&world, &session, json!({"mail_from": "partners@example.com"})).await;
    let key = publishable_key(&world, &session).await;
    partner(&world, json!({"email": "ada@example.org", "send_invite": false})).await;
    Browser::new(&world).post("/portal/sign-in", &[("key", &key), ("email", "ada@example.org")]).await;
    let email_text = sent_emails(&world).await.remove(0).2;
    assert!(email_text.contains("the partner program of example.com") && !email_text.contains("evil"), "{email_text}");
    world.end().await;
}

/// Without a service sender and a program sender, no page promises an email.
#[tokio::test]
async fn pages_promise_no_email_without_a_sender() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let key = publishable_key(&world, &session).await;
    owner(&world, &session, Method::PUT, "/campaigns/default", json!({"visibility": "public"})).await;
    let joined = text(&join(&world, &key, "bob@example.org").await);
    assert!(joined.contains("was received") && !joined.contains("sent an email"), "{joined}");
    let fields = [("key", key.as_str()), ("email", "bob@example.org")];
    let response = Browser::new(&world).post("/portal/sign-in", &fields).await;
    assert_eq!(response.status, StatusCode::CONFLICT);
    assert!(text(&response).contains("cannot send email"), "{}", text(&response));
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let browser = Browser::of(&world, &ada).await;
    let changed = browser.submit("payout-method", &[("method", "wise"), ("destination", "w@example.org")]).await;
    assert_eq!(changed.status, StatusCode::CONFLICT, "{}", text(&changed));
    world.end().await;
}

/// A program's emails from its own sender count as email of the account, and suppressions apply.
#[tokio::test]
async fn partner_emails_count_and_honour_suppressions() {
    let world = world_with_service_sender().await;
    let session = program_with_sender(&world).await;
    update_program(&world, &session, json!({"website_url": "https://your-parcel-waits.evil.example"})).await;
    assert_eq!(emails_used(&world).await, 0);
    let made = world.call(Method::POST, "/affiliates", &json!({"email": "ada@example.org"})).await;
    assert_eq!(made.json()["warnings"], Value::Null, "{made:?}");
    assert_eq!(sent_emails(&world).await.len(), 1);
    assert_eq!(emails_used(&world).await, 1);
    let raw = stored_emails(&world).await.remove(0).1;
    let from = raw.lines().find(|line| line.to_ascii_lowercase().starts_with("from:")).unwrap();
    assert!(from.contains("example.com") && !from.contains("evil"), "{from}");
    world.call(Method::POST, "/suppressions", &json!({"email": "bob@example.org"})).await;
    partner(&world, json!({"email": "bob@example.org"})).await;
    affiliate_service(&world).emails.send_due_emails(0..=63).await;
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let listed = world.get("/emails?to=bob@example.org").await.json();
    assert_eq!(listed["emails"][0]["last_event"], "email.suppressed", "{listed}");
    assert_eq!((emails_used(&world).await, count_emails(&world, 9).await), (1, 0));
    world.end().await;
}

/// The plan's limit applies to partner emails too; they wait for the next day.
#[tokio::test]
async fn partner_emails_stay_within_the_plan() {
    let world = World::start().await;
    program_with_sender(&world).await;
    world.change_account(|account| account.plan = model::account::Plan::Free).await;
    let to: Vec<_> = (0..98).map(|number| format!("{number}@example.net")).collect();
    for some in to.chunks(49) {
        let email = json!({"from": "ada@example.com", "to": some, "subject": "s", "text": "t"});
        assert_eq!(world.call(Method::POST, "/emails", &email).await.status, StatusCode::OK);
    }
    for number in 0..3 {
        partner(&world, json!({"email": format!("{number}@example.org")})).await;
    }
    assert_eq!(affiliate_service(&world).emails.send_due_emails(0..=63).await, 2, "the plan allows a hundred a day");
    world.services.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(affiliate_service(&world).emails.send_due_emails(0..=63).await, 0);
    world.end().await;
}

/// The service notifies the owner once of an application that waits for review; an application that is approved at
/// once causes no email.
#[tokio::test]
async fn owner_is_notified_of_an_application() {
    let world = world_with_service_sender().await;
    let session = program_with_sender(&world).await;
    let key = publishable_key(&world, &session).await;
    let campaign = json!({"visibility": "public", "auto_approve": false});
    owner(&world, &session, Method::PUT, "/campaigns/default", campaign).await;
    join(&world, &key, "bob@example.org").await;
    let automatic = json!({"auto_approve": true});
    owner(&world, &session, Method::PUT, "/campaigns/default", automatic).await;
    join(&world, &key, "eve@example.org").await;
    let bob = world.get("/affiliates?email=bob@example.org").await.json()["data"][0].clone();
    assert_eq!(count_emails(&world, 9).await, 0, "the next process sends it");
    accounts::background_tasks::start_accounts(&world.queue, &world.accounts, None);
    let sent = async {
        while count_emails(&world, 9).await == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), sent).await.expect("the email");
    let account = store::account::find(&world.services.store, "owner9@example.com").await.unwrap().unwrap();
    let stored = store::email::list(&world.services.store, account.id, None, 10).await.unwrap();
    assert_eq!(stored.len(), 1);
    let raw = world.read_message(account.id, stored[0].email.id).await;
    // Quoted-printable (RFC 2045 6.7) breaks lines with `=`.
    let raw = String::from_utf8(raw.to_vec()).unwrap().replace("=\r\n", "");
    assert!(raw.contains("To: <owner1@example.com>") && raw.contains("bob@example.org"), "{raw}");
    let page = format!("{BASE_URL}/dashboard/affiliate/partners/{}", bob["id"].as_str().unwrap());
    assert!(raw.contains(&page) && !raw.contains("evil"), "{raw}");
    world.end().await;
}

/// The join form sends one email to an address, however often it is submitted, and is rate-limited by client.
#[tokio::test]
async fn join_form_sends_one_email() {
    let world = world_with_service_sender().await;
    let session = program_with_sender(&world).await;
    let key = publishable_key(&world, &session).await;
    owner(&world, &session, Method::PUT, "/campaigns/default", json!({"visibility": "public"})).await;
    let first = text(&join(&world, &key, "bob@example.org").await);
    for spelling in ["bob@example.org", "BOB@example.org", "Bob@EXAMPLE.org"] {
        let again = text(&join(&world, &key, spelling).await);
        assert_eq!(again.to_lowercase(), first.to_lowercase());
    }
    assert_eq!(sent_emails(&world).await.len(), 1);
    world.services.clock.advance(std::time::Duration::from_secs(301));
    join(&world, &key, "bob@example.org").await;
    assert_eq!(sent_emails(&world).await.len(), 2, "a sign-in link");
    // Many addresses from one network.
    let mut accepted = 0;
    for number in 0..80 {
        let response = join(&world, &key, &format!("{number}@example.org")).await;
        accepted += usize::from(response.status == StatusCode::OK);
    }
    assert!((45..=51).contains(&accepted), "{accepted}");
    world.end().await;
}
