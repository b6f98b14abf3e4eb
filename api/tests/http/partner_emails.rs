//! Emails to partners: which are sent, to whom, and that each is sent once.

use http::{Method, StatusCode};
use serde_json::json;

use crate::affiliate_program::set_up;
use crate::affiliates::partner;
use crate::portal::{Browser, affiliate_service, text, update_program};
use crate::portal_pages::{find_link, program_with_sender, sent_emails, stored_emails};
use crate::world::World;

#[tokio::test]
async fn partner_status_changes_send_emails() {
    let world = World::start().await;
    program_with_sender(&world).await;
    for (email, status, send) in [
        ("a@example.org", "active", true),
        ("b@example.org", "pending", true),
        ("c@example.org", "invited", true),
        ("d@example.org", "active", false),
        ("e@example.org", "pending", false),
        ("f@example.org", "pending", false),
    ] {
        partner(&world, json!({"email": email, "status": status, "send_invite": send})).await;
    }
    let mut recipients: Vec<(String, String)> =
        sent_emails(&world).await.into_iter().map(|(to, subject, _)| (to, subject)).collect();
    recipients.sort();
    let expected = [
        ("a@example.org", "Welcome to the partner program of shop.example"),
        ("b@example.org", "Your application to the partner program of shop.example"),
        ("c@example.org", "shop.example invites you to its partner program"),
    ];
    assert_eq!(recipients, expected.map(|(to, subject)| (to.to_owned(), subject.to_owned())));

    let step = async |email: &str, action: &str, body: serde_json::Value| {
        let found = world.get(&format!("/affiliates?email={email}")).await.json();
        let id = found["data"][0]["id"].as_str().unwrap().to_owned();
        let done = world.call(Method::POST, &format!("/affiliates/{id}/{action}"), &body).await;
        assert_eq!(done.status, StatusCode::OK, "{done:?}");
    };
    step("b@example.org", "approve", json!({})).await;
    step("e@example.org", "reject", json!({"reason": "Too few readers"})).await;
    step("f@example.org", "reject", json!({"send_email": false})).await;
    step("f@example.org", "approve", json!({"send_email": false})).await;
    step("a@example.org", "suspend", json!({"reason": "quiet"})).await;
    let new: Vec<_> = sent_emails(&world).await.into_iter().skip(3).collect();
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(new.iter().any(|(to, subject, _)| to == "b@example.org" && subject == "You are a partner of shop.example"));
    assert!(new.iter().any(|(to, _, text)| to == "e@example.org" && text.contains("Too few readers")));
    world.end().await;
}

#[tokio::test]
async fn invitation_link_signs_in() {
    let world = World::start().await;
    program_with_sender(&world).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "status": "invited"})).await;
    let email_text = sent_emails(&world).await.remove(0).2;
    let link = find_link(&email_text, "/portal/link/");
    // An invitation link is valid for days, unlike a login link.
    world.services.clock.advance(std::time::Duration::from_secs(3 * 24 * 3600));
    let mut browser = Browser::new(&world);
    assert!(text(&browser.get(&link).await).contains("You have been invited"));
    let entered = browser.post(&link, &[]).await;
    browser.take_cookie(&entered.headers);
    assert_eq!(browser.submit("accept", &[]).await.status, StatusCode::SEE_OTHER);
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["affiliate"]["status"], "active");
    world.end().await;
}

#[tokio::test]
async fn partner_emails_have_the_program_sender_and_auto_submitted() {
    let world = World::start().await;
    program_with_sender(&world).await;
    partner(&world, json!({"email": "ada@example.org", "first_name": "http://evil.example/"})).await;
    assert_eq!(sent_emails(&world).await.len(), 1);
    let raw = stored_emails(&world).await.remove(0).1;
    for expected in
        ["\r\nAuto-Submitted: auto-generated\r\n", "shop.example", "<partners@example.com>", "text/plain", "text/html"]
    {
        assert!(raw.contains(expected), "{expected}: {raw}");
    }
    assert!(!raw.contains("evil.example") && !raw.contains("List-Unsubscribe"), "{raw}");
    world.end().await;
}

#[tokio::test]
async fn opted_out_partner_gets_requested_emails_only() {
    let world = World::start().await;
    program_with_sender(&world).await;
    let ada = json!({"email": "ada@example.org", "status": "pending", "send_invite": false});
    let ada = partner(&world, ada).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    world.call(Method::PATCH, &path, &json!({"email_opt_out": true})).await;
    world.call(Method::POST, &format!("{path}/approve"), &json!({})).await;
    assert!(sent_emails(&world).await.is_empty());
    let browser = Browser::of(&world, &ada).await;
    browser.submit("payout-method", &[("method", "wise"), ("destination", "w@example.org")]).await;
    assert_eq!(sent_emails(&world).await.len(), 1);
    world.end().await;
}

/// An email that no longer applies is dropped; a failed one is retried for a day; concurrent senders send each once.
#[tokio::test]
async fn partner_emails_are_sent_once_if_still_current() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    // The program has no sender, so nothing is sent.
    partner(&world, json!({"email": "ada@example.org"})).await;
    assert_eq!(affiliate_service(&world).emails.send_due_emails(0..=63).await, 0);
    update_program(&world, &session, json!({"mail_from": "partners@example.com"})).await;
    assert!(sent_emails(&world).await.is_empty(), "the email was given up");
    let bob = partner(&world, json!({"email": "bob@example.org", "status": "pending"})).await;
    let path = format!("/affiliates/{}", bob["id"].as_str().unwrap());
    world.call(Method::POST, &format!("{path}/approve"), &json!({})).await;
    let services: Vec<_> = (0..6).map(|_| affiliate_service(&world)).collect();
    futures_util::future::join_all(services.iter().map(|service| service.emails.send_due_emails(0..=63))).await;
    let written = sent_emails(&world).await;
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0].1, "You are a partner of shop.example");
    // A suspended account sends nothing; its waiting emails are sent once it is restored.
    world.change_account(|account| account.suspended = true).await;
    let eve = affiliate_service(&world);
    world.change_account(|account| account.suspended = false).await;
    partner(&world, json!({"email": "eve@example.org"})).await;
    world.change_account(|account| account.suspended = true).await;
    assert_eq!(eve.emails.send_due_emails(0..=63).await, 0);
    world.change_account(|account| account.suspended = false).await;
    assert_eq!(eve.emails.send_due_emails(0..=63).await, 0, "not before the delay");
    world.services.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(sent_emails(&world).await.len(), 2);
    world.end().await;
}
