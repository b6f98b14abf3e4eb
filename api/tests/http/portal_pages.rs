//! `/portal/{page}` and its forms.

use affiliate::error::{AffiliateError, ConflictReason};
use affiliate::partners::lookup::PartnerView;
use http::{Method, StatusCode};
use model::affiliate::partner::Partner;
use model::affiliate::portal::PortalLinkSecret;
use model::parsed_body::ParsedBody;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::affiliate_program::{owner, set_up};
use crate::affiliates::partner;
use crate::portal::{Browser, affiliate_service, login_link, text, update_program};
use crate::world::{TestResponse, TestSession, World};

/// The emails to partners: recipient, subject and text.
pub(crate) async fn sent_emails(world: &World) -> Vec<(String, String, String)> {
    affiliate_service(world).emails.send_due_emails(0..=63).await;
    let mut found = Vec::new();
    for (email, raw) in stored_emails(world).await {
        let contents = ParsedBody::parse(raw.as_bytes());
        let to = email["to"][0].as_str().unwrap().to_owned();
        found.push((to, email["subject"].as_str().unwrap().to_owned(), contents.text.unwrap()));
    }
    found
}

/// The emails of the account, oldest first: as listed, and as sent. The API does not show the content of partner
/// emails.
pub(crate) async fn stored_emails(world: &World) -> Vec<(Value, String)> {
    let listed = world.get("/emails?limit=100").await.json();
    let account = world.tenant().await.account().id;
    let mut found = Vec::new();
    for email in listed["emails"].as_array().unwrap().iter().rev() {
        let id = email["id"].as_str().unwrap();
        let view = world.get(&format!("/emails/{id}")).await.json();
        assert_eq!((&view["email"]["text"], &view["email"]["html"]), (&Value::Null, &Value::Null));
        let raw = world.read_message(account, id.parse().unwrap()).await;
        found.push((email.clone(), String::from_utf8(raw.to_vec()).unwrap()));
    }
    found
}

/// A program with a sender at its own domain.
pub(crate) async fn program_with_sender(world: &World) -> TestSession {
    let session = set_up(world, 1).await;
    update_program(world, &session, json!({"mail_from": "partners@example.com"})).await;
    session
}

/// The link in an email.
pub(crate) fn find_link(email: &str, marker: &str) -> String {
    let line = email.lines().find(|line| line.contains(marker)).unwrap();
    line.to_owned()
}

async fn get_partner(world: &World, partner: &Value) -> Value {
    let path = format!("/affiliates/{}", partner["id"].as_str().unwrap());
    world.get(&path).await.json()["affiliate"].clone()
}

fn assert_contains(response: &TestResponse, expected: &str) {
    assert!(text(response).contains(expected), "{expected}: {}", text(response));
}

/// All text from strangers, owners and partners is escaped.
#[tokio::test]
async fn foreign_text_is_escaped() {
    const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    update_program(
        &world,
        &session,
        json!({"share_customer_email": true, "terms_url": "https://shop.example/t?a=1&b=\"x"}),
    )
    .await;
    let ada = json!({
        "email": "\"<b>ada\"@example.org", "first_name": EVIL, "company": EVIL, "token": "ada",
        "website": "https://example.org/\"><script>",
    });
    let ada = partner(&world, ada).await;
    let path = format!("/affiliates/{}/links", ada["id"].as_str().unwrap());
    world.call(Method::POST, &path, &json!({"token": "two", "label": EVIL, "destination_url": "/x?\"><script>"})).await;
    let referral = json!({"token": "ada", "email": "\"<script>\"@example.net", "sub_id": EVIL});
    let made = world.call(Method::POST, "/affiliate-referrals", &referral).await;
    assert!(made.status.is_success(), "{made:?}");
    let payout = json!({"method": "other", "destination": EVIL});
    let put = format!("/partners/{}/payout-method", ada["id"].as_str().unwrap());
    let put = owner(&world, &session, Method::PUT, &put, payout).await;
    assert_eq!(put.status, StatusCode::OK, "{put:?}");
    let browser = Browser::of(&world, &ada).await;
    for page in ["home", "links", "referrals", "earnings", "payouts", "settings"] {
        for query in ["", "?done=<script>", "?before=<script>", "?done=link-added&before=x"] {
            let response =
                browser.get(&format!("/portal/{page}{}", query.replace('<', "%3C").replace('>', "%3E"))).await;
            assert_eq!(response.status, StatusCode::OK);
            let text = text(&response);
            for evil in ["<script", "<img", "\"><", "<b>ada"] {
                assert!(!text.contains(evil) || (evil == "\"><" && !text.contains("\"><script")), "{page}: {evil}");
            }
        }
    }
    // Rejected forms repeat the input, and public pages repeat their query.
    let invalid = browser.submit("add-link", &[("token", EVIL), ("label", EVIL), ("destination_url", EVIL)]).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    assert_contains(&invalid, "&lt;script&gt;");
    let key = owner(&world, &session, Method::GET, "", json!({})).await.json()["program"]["publishable_key"].clone();
    let key = key.as_str().unwrap();
    let other_browser = Browser::new(&world);
    let fields = [("key", key), ("email", EVIL), ("first_name", EVIL), ("via", EVIL), ("campaign", "")];
    let join = other_browser.post("/portal/join", &fields).await;
    let sign_in = other_browser.post("/portal/sign-in", &[("key", key), ("email", EVIL)]).await;
    for response in [&invalid, &join, &sign_in] {
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert!(!text(response).contains("<script") && !text(response).contains("<img"), "{}", text(response));
    }
    world.end().await;
}

#[tokio::test]
async fn partner_pages_are_isolated() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "first_name": "Ada", "token": "ada"})).await;
    let bob = partner(&world, json!({"email": "bob@example.org", "first_name": "Bob", "token": "bob"})).await;
    for (token, email) in [("ada", "grace@customer.example"), ("bob", "eve@elsewhere.example")] {
        let referral = json!({"token": token, "email": email, "sub_id": format!("tag-of-{token}")});
        assert!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status.is_success());
    }
    let browser = Browser::of(&world, &ada).await;
    let pages = async || {
        let mut all = String::new();
        for page in ["home", "links", "referrals", "earnings", "payouts", "settings"] {
            all.push_str(&text(&browser.get(&format!("/portal/{page}")).await));
        }
        all
    };
    let all = pages().await;
    for own in ["Hello, Ada", "https://shop.example/?via=ada", "g•••@c•••.example", "tag-of-ada"] {
        assert!(all.contains(own), "{own}: {all}");
    }
    for others in ["bob", "Bob", "eve@", "e•••@", "grace@", bob["id"].as_str().unwrap()] {
        assert!(!all.contains(others), "{others}");
    }
    update_program(&world, &session, json!({"share_customer_email": true})).await;
    assert!(pages().await.contains("grace@customer.example"));
    // Another partner's link cannot be changed.
    let links = bob["links"][0]["id"].as_str().unwrap();
    let stolen = browser.submit("change-link", &[("id", links), ("token", "mine")]).await;
    assert_eq!(stolen.status, StatusCode::NOT_FOUND);
    assert_eq!(get_partner(&world, &bob).await["links"][0]["token"], "bob");
    world.end().await;
}

#[tokio::test]
async fn a_partner_adds_and_changes_links() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    partner(&world, json!({"email": "bob@example.org", "token": "bob"})).await;
    let browser = Browser::of(&world, &ada).await;
    let added = browser
        .submit("add-link", &[("token", "Ada-Pod"), ("label", "Podcast"), ("destination_url", "/pricing")])
        .await;
    assert_eq!(added.status, StatusCode::SEE_OTHER, "{added:?}");
    assert_eq!(added.headers["location"], "links?done=link-added");
    let page = browser.get("/portal/links?done=link-added").await;
    assert_contains(&page, "The link was added.");
    assert_contains(&page, "https://shop.example/pricing?via=Ada-Pod");
    for (fields, status, reason) in [
        (vec![("token", "BOB")], StatusCode::CONFLICT, "Another link has this token."),
        (vec![("token", "x")], StatusCode::BAD_REQUEST, "must be from 2 to 40"),
        (
            vec![("token", "evil"), ("destination_url", "https://evil.example/")],
            StatusCode::BAD_REQUEST,
            "The destination page",
        ),
    ] {
        let refused = browser.submit("add-link", &fields).await;
        assert_eq!(refused.status, status, "{fields:?}");
        assert_contains(&refused, reason);
        assert_contains(&refused, &format!("value=\"{}\"", fields[0].1));
    }
    let links = get_partner(&world, &ada).await["links"].clone();
    let find_row = |token: &str| {
        let all = links.as_array().unwrap();
        all.iter().find(|link| link["token"] == token).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let renamed = browser.submit("change-link", &[("id", &find_row("ada")), ("token", "Countess")]).await;
    assert_eq!(renamed.status, StatusCode::SEE_OTHER, "{renamed:?}");
    let moved = [("id", find_row("Ada-Pod")), ("token", "ada-pod".to_owned()), ("label", String::new())];
    let moved: Vec<(&str, &str)> = moved.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(browser.submit("change-link", &moved).await.status, StatusCode::SEE_OTHER);
    let now = get_partner(&world, &ada).await["links"].clone();
    let tokens: Vec<&str> = now.as_array().unwrap().iter().map(|link| link["token"].as_str().unwrap()).collect();
    assert!(tokens.contains(&"Countess") && tokens.contains(&"ada-pod") && tokens.len() == 2, "{now}");
    // The old token is free.
    partner(&world, json!({"email": "new@example.org", "token": "ada"})).await;
    world.end().await;
}

#[tokio::test]
async fn inactive_partner_has_read_only_access() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let pending = partner(&world, json!({"email": "p@example.org", "status": "pending"})).await;
    let suspended = partner(&world, json!({"email": "s@example.org"})).await;
    let path = format!("/affiliates/{}/suspend", suspended["id"].as_str().unwrap());
    assert_eq!(world.call(Method::POST, &path, &json!({})).await.status, StatusCode::OK);
    let invited = partner(&world, json!({"email": "i@example.org", "status": "invited"})).await;
    for partner in [&pending, &suspended, &invited] {
        let browser = Browser::of(&world, partner).await;
        for page in ["home", "links", "referrals", "earnings", "payouts", "settings"] {
            let response = browser.get(&format!("/portal/{page}")).await;
            assert_eq!(response.status, StatusCode::OK);
            assert!(!text(&response).contains("action=\"add-link\""), "{page}");
        }
        let before = get_partner(&world, partner).await;
        for form in api::portal::request::FORMS {
            if ["sign-in", "join", "sign-out"].contains(form) || (*form == "accept" && partner == &invited) {
                continue;
            }
            let fields = [
                ("token", "fresh"),
                ("method", "paypal"),
                ("destination", "x@example.org"),
                ("first_name", "X"),
                ("postback_url", "https://example.org/"),
                ("terms", "on"),
            ];
            let refused = browser.submit(form, &fields).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{form}");
        }
        assert_eq!(get_partner(&world, partner).await, before);
    }
    world.end().await;
}

#[tokio::test]
async fn an_invited_partner_accepts_the_terms_and_is_active() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    update_program(&world, &session, json!({"terms_url": "https://shop.example/terms"})).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "status": "invited"})).await;
    let browser = Browser::of(&world, &ada).await;
    assert_eq!(get_partner(&world, &ada).await["status"], "invited", "viewing a page does not accept the invitation");
    let page = browser.get("/portal/home").await;
    assert_contains(&page, "You have been invited to become a partner of shop.example");
    assert_contains(&page, "href=\"https://shop.example/terms\"");
    let without = browser.submit("accept", &[]).await;
    assert_eq!(without.status, StatusCode::BAD_REQUEST);
    let accepted = browser.submit("accept", &[("terms", "on")]).await;
    assert_eq!(
        (accepted.status, &accepted.headers["location"]),
        (StatusCode::SEE_OTHER, &"home?done=accepted".parse().unwrap())
    );
    let now = get_partner(&world, &ada).await;
    assert_eq!(now["status"], "active");
    assert!(now["approved_at"].is_string());
    assert_contains(&browser.get("/portal/settings").await, "You accepted them on");
    assert_eq!(browser.submit("accept", &[("terms", "on")]).await.status, StatusCode::FORBIDDEN);
    world.end().await;
}

#[tokio::test]
async fn payout_destination_is_confirmed_by_email() {
    let world = World::start().await;
    program_with_sender(&world).await;
    let ada = json!({"email": "ada@example.org", "paypal_email": "old@example.org", "send_invite": false});
    let ada = partner(&world, ada).await;
    let browser = Browser::of(&world, &ada).await;
    assert_contains(&browser.get("/portal/settings").await, "old@example.org");
    for (method, destination, reason) in [
        ("stripe", "acct_1", "is not a payout method of this program"),
        ("gold", "x", "is not a payout method of this program"),
        ("paypal", "", "is required"),
        ("wise", "no address", "must be an email address"),
        ("bank", "\u{1b}[2J", "control characters"),
    ] {
        let refused = browser.submit("payout-method", &[("method", method), ("destination", destination)]).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{method}");
        assert_contains(&refused, reason);
    }
    assert!(sent_emails(&world).await.is_empty());
    let fields = [("method", "bank"), ("destination", "Ada Lovelace\r\nDE00 1234")];
    let queries = browser.submit("payout-method", &fields).await;
    assert_eq!(queries.headers["location"], "settings?done=payout-asked");
    let written = sent_emails(&world).await;
    let [(to, subject, email_text)] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!((to.as_str(), subject.as_str()), ("ada@example.org", "Confirm where shop.example pays you"));
    assert_eq!(get_partner(&world, &ada).await["payout_method"], "paypal", "nothing changes before the confirmation");
    let link = find_link(email_text, "/portal/payout/");
    let phone = Browser::new(&world);
    for _ in 0..2 {
        assert_contains(&phone.get(&link).await, "DE00 1234");
    }
    // The confirmation link does not sign in.
    let token = link.rsplit('/').next().unwrap();
    assert_eq!(phone.get(&format!("/portal/enter/{token}")).await.status, StatusCode::GONE);
    assert_eq!(phone.post(&format!("/portal/link/{token}"), &[]).await.status, StatusCode::GONE);
    // One of many concurrent confirmations succeeds.
    let phones: Vec<_> = (0..8).map(|_| Browser::new(&world)).collect();
    let pressed = futures_util::future::join_all(phones.iter().map(|phone| phone.post(&link, &[]))).await;
    let done = pressed.iter().filter(|response| response.status == StatusCode::OK).count();
    assert_eq!(done, 1, "{pressed:?}");
    assert!(pressed.iter().all(|response| matches!(response.status.as_u16(), 200 | 410)));
    assert_eq!(phone.get(&link).await.status, StatusCode::GONE);
    assert_eq!(get_partner(&world, &ada).await["payout_method"], "bank");
    let recipients: Vec<(String, String)> =
        sent_emails(&world).await.into_iter().skip(1).map(|(to, subject, _)| (to, subject)).collect();
    assert!(
        recipients.contains(&("ada@example.org".to_owned(), "Your payout details for shop.example changed".to_owned())),
        "{recipients:?}"
    );
    assert!(
        recipients.contains(&(
            "old@example.org".to_owned(),
            "Payouts from shop.example no longer go to this address".to_owned()
        )),
        "{recipients:?}"
    );
    assert_eq!(recipients.len(), 2);
    world.end().await;
}

#[tokio::test]
async fn confirmation_expires_and_needs_an_active_partner() {
    let world = World::start().await;
    program_with_sender(&world).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "send_invite": false})).await;
    let browser = Browser::of(&world, &ada).await;
    let send_request = async || {
        let fields = [("method", "wise"), ("destination", "new@example.org")];
        assert_eq!(browser.submit("payout-method", &fields).await.status, StatusCode::SEE_OTHER);
        find_link(&sent_emails(&world).await.pop().unwrap().2, "/portal/payout/")
    };
    let (first, second) = (send_request().await, send_request().await);
    assert_eq!(browser.get(&first).await.status, StatusCode::GONE, "a new link replaces the previous one");
    world.services.clock.advance(std::time::Duration::from_secs(3600));
    assert_eq!(browser.post(&second, &[]).await.status, StatusCode::GONE);
    let third = send_request().await;
    let path = format!("/affiliates/{}/suspend", ada["id"].as_str().unwrap());
    world.call(Method::POST, &path, &json!({})).await;
    assert_eq!(browser.post(&third, &[]).await.status, StatusCode::GONE);
    assert_eq!(get_partner(&world, &ada).await["payout_method"], Value::Null);
    assert_eq!(
        browser.get(&format!("/portal/payout/{}", PortalLinkSecret::new([1; 32]).text())).await.status,
        StatusCode::GONE
    );
    world.end().await;
}

#[tokio::test]
async fn confirmation_of_a_method_that_is_not_offered_any_more_says_so() {
    let world = World::start().await;
    let who = program_with_sender(&world).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "send_invite": false})).await;
    let browser = Browser::of(&world, &ada).await;
    let fields = [("method", "wise"), ("destination", "new@example.org")];
    assert_eq!(browser.submit("payout-method", &fields).await.status, StatusCode::SEE_OTHER);
    let link = find_link(&sent_emails(&world).await.pop().unwrap().2, "/portal/payout/");
    update_program(&world, &who, json!({"allowed_methods": ["paypal"]})).await;
    let refused = browser.post(&link, &[]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_contains(&refused, "no longer offers this payout method");
    // The link remains valid, in case that the owner allows the method again.
    update_program(&world, &who, json!({"allowed_methods": ["paypal", "wise"]})).await;
    assert_eq!(browser.post(&link, &[]).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn conflict_without_a_link_is_not_reported_as_an_expired_link() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = json!({"email": "ada@example.org", "paypal_email": "ada@example.org", "send_invite": false});
    let ada = partner(&world, ada).await;
    let (account, id) = (world.tenant().await.account().id, ada["id"].as_str().unwrap().parse().unwrap());
    let affiliate = affiliate_service(&world);
    let before = affiliate.context.get_partner(account, id).await.unwrap();
    let payout = before.payout.clone().unwrap();
    let stale = Partner { rev: before.rev + 1, ..before };
    let conflict = |batch: &mut Batch, _: &PartnerView| store::affiliate::partner::check_unchanged(batch, &stale);
    let refused = affiliate.partners.set_payout_destination(account, id, &payout, None, &conflict).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::Changed))), "{refused:?}");
    world.end().await;
}

#[tokio::test]
async fn partner_changes_profile_postbacks_and_preferences() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let browser = Browser::of(&world, &ada).await;
    let profile = [("first_name", "Ada"), ("last_name", "Lovelace"), ("website", "example.org/ada")];
    assert_eq!(browser.submit("profile", &profile).await.headers["location"], "settings?done=profile-changed");
    let now = get_partner(&world, &ada).await;
    assert_eq!(
        (&now["last_name"], &now["website"], &now["company"]),
        (&json!("Lovelace"), &json!("https://example.org/ada"), &Value::Null)
    );
    let long = "x".repeat(201);
    let invalid = browser.submit("profile", &[("first_name", &long)]).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    assert_contains(&invalid, "The first name is too long.");
    assert!(!text(&invalid).contains("A field"), "{}", text(&invalid));
    assert_eq!(browser.submit("profile", &[("website", "javascript://x")]).await.status, StatusCode::BAD_REQUEST);

    let inside = async || {
        let path = format!("/partners/{}", ada["id"].as_str().unwrap());
        owner(&world, &session, Method::GET, &path, json!({})).await.json()
    };
    let before = inside().await["postback_secret"].clone();
    assert_eq!(browser.submit("postback", &[("postback_url", "ftp://x")]).await.status, StatusCode::BAD_REQUEST);
    // The first URL shows the secret; a later one does not.
    let set = browser.submit("postback", &[("postback_url", "http://127.0.0.1:9/first")]).await;
    assert_contains(&set, before.as_str().unwrap());
    let set = browser.submit("postback", &[("postback_url", "http://127.0.0.1:9/p")]).await;
    assert_eq!(set.headers["location"], "settings?done=postback-changed");
    let made = browser.submit("postback-secret", &[]).await;
    let after = inside().await;
    assert_ne!(after["postback_secret"], before);
    assert_contains(&made, after["postback_secret"].as_str().unwrap());
    let page = text(&browser.get("/portal/settings").await);
    assert!(!page.contains("whsec_") && page.contains("http://127.0.0.1:9/p"), "the secret is shown once");
    assert_eq!(browser.submit("mail", &[]).await.headers["location"], "settings?done=mail-changed");
    assert_eq!(inside().await["email_opt_out"], json!(true));
    browser.submit("mail", &[("mail", "on")]).await;
    assert_eq!(inside().await["email_opt_out"], json!(false));
    world.end().await;
}

#[tokio::test]
async fn lists_are_paged() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    for n in 0..60 {
        let referral = json!({"token": "ada", "email": format!("u{n}@example.net"), "sub_id": format!("s{n}")});
        assert!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status.is_success());
    }
    let browser = Browser::of(&world, &ada).await;
    let first = text(&browser.get("/portal/referrals").await);
    let (_, rest) = first.split_once("href=\"referrals?before=").unwrap();
    let next = rest.split('"').next().unwrap();
    let second = text(&browser.get(&format!("/portal/referrals?before={next}")).await);
    let rows = |page: &str| page.matches("u•••@e•••.net").count();
    assert_eq!((rows(&first), rows(&second)), (50, 10));
    assert!(!second.contains("Older</a>") && second.contains("Newest</a>"));
    let home = text(&browser.get("/portal/links").await);
    // Counts by link and in total.
    assert_eq!(home.matches("60 referrals · 0 customers").count(), 2, "{home}");
    world.end().await;
}

#[tokio::test]
async fn link_request_does_not_reveal_partners() {
    let world = World::start().await;
    let session = program_with_sender(&world).await;
    let key = owner(&world, &session, Method::GET, "", json!({})).await.json()["program"]["publishable_key"].clone();
    let key = key.as_str().unwrap();
    let ada = partner(&world, json!({"email": "ada@example.org", "send_invite": false})).await;
    let no = partner(&world, json!({"email": "no@example.org", "status": "pending", "send_invite": false})).await;
    let path = format!("/affiliates/{}/reject", no["id"].as_str().unwrap());
    world.call(Method::POST, &path, &json!({"send_email": false})).await;
    let other_browser = Browser::new(&world);
    assert_eq!(other_browser.get("/portal/sign-in?key=pk_nobody").await.status, StatusCode::NOT_FOUND);
    assert_contains(&other_browser.get(&format!("/portal/sign-in?key={key}")).await, "Partner portal of shop.example");
    let mut responses = Vec::new();
    for email in ["ada@example.org", "xyz@example.org", "noo@example.org"] {
        let response = other_browser.post("/portal/sign-in", &[("key", key), ("email", email)]).await;
        assert_eq!(response.status, StatusCode::OK);
        responses.push(text(&response).replace(email, "…"));
    }
    let rejected = other_browser.post("/portal/sign-in", &[("key", key), ("email", "no@example.org")]).await;
    responses.push(text(&rejected).replace("no@example.org", "…"));
    responses.dedup();
    assert_eq!(responses.len(), 1);
    let written = sent_emails(&world).await;
    let [(to, _, email_text)] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!(to, "ada@example.org");
    // Opening the link does nothing; its button works once.
    let link = find_link(email_text, "/portal/link/");
    for _ in 0..3 {
        assert_contains(&other_browser.get(&link).await, "type=\"submit\">Continue</button>");
    }
    let token = link.rsplit('/').next().unwrap();
    assert_eq!(other_browser.get(&format!("/portal/enter/{token}")).await.status, StatusCode::GONE);
    let mut browser = Browser::new(&world);
    let entered = browser.post(&link, &[]).await;
    assert_eq!(
        (entered.status, &entered.headers["location"]),
        (StatusCode::SEE_OTHER, &"/portal/home".parse().unwrap())
    );
    browser.take_cookie(&entered.headers);
    assert_eq!(browser.get("/portal/home").await.status, StatusCode::OK);
    assert_eq!(other_browser.post(&link, &[]).await.status, StatusCode::GONE);
    // A login link and a mailed link do not invalidate each other.
    let url = login_link(&world, &ada).await;
    assert_eq!(other_browser.get(&url).await.status, StatusCode::FOUND);
    // Repeated requests are rate-limited.
    let mut last = StatusCode::OK;
    for _ in 0..8 {
        last = other_browser.post("/portal/sign-in", &[("key", key), ("email", "ada@example.org")]).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    world.end().await;
}

#[tokio::test]
async fn people_join_by_the_public_form() {
    let world = World::start().await;
    let session = program_with_sender(&world).await;
    let key = owner(&world, &session, Method::GET, "", json!({})).await.json()["program"]["publishable_key"].clone();
    let key = key.as_str().unwrap();
    let other_browser = Browser::new(&world);
    let set = async |campaign: Value| {
        let set = owner(&world, &session, Method::PUT, "/campaigns/default", campaign).await;
        assert_eq!(set.status, StatusCode::OK, "{set:?}");
        set.json()["campaign"]["id"].as_str().unwrap().to_owned()
    };
    let id = set(json!({"visibility": "private"})).await;
    for path in [format!("/portal/join?key={key}"), format!("/portal/join?key={key}&campaign={id}")] {
        assert_eq!(other_browser.get(&path).await.status, StatusCode::NOT_FOUND);
    }
    set(json!({"visibility": "unlisted"})).await;
    assert_eq!(other_browser.get(&format!("/portal/join?key={key}")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(other_browser.get(&format!("/portal/join?key={key}&campaign={id}")).await.status, StatusCode::OK);
    set(json!({"visibility": "public", "auto_approve": false, "second_tier_bps": 500})).await;
    let page = other_browser.get(&format!("/portal/join?key={key}")).await;
    assert_contains(&page, "You earn 20 % of each sale");
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada", "send_invite": false})).await;
    let recruiting = text(&Browser::of(&world, &ada).await.get("/portal/links").await);
    assert!(recruiting.contains(&format!("/portal/join?key={key}&amp;via=ada")), "{recruiting}");

    let join = async |fields: &[(&str, &str)]| {
        let fields: Vec<_> = fields.iter().copied().chain([("key", key)]).collect();
        other_browser.post("/portal/join", &fields).await
    };
    let bob = join(&[("email", "bob@example.org"), ("first_name", "Bob"), ("via", "ada")]).await;
    assert_eq!(bob.status, StatusCode::OK, "{bob:?}");
    let found = async |email: &str| world.get(&format!("/affiliates?email={email}")).await.json()["data"][0].clone();
    let row = found("bob@example.org").await;
    assert_eq!(
        (&row["status"], &row["source"], &row["parent_affiliate_id"]),
        (&json!("pending"), &json!("portal"), &ada["id"])
    );
    // The page does not reveal that the address already belongs to a partner; the email does.
    let again = join(&[("email", "ada@example.org")]).await;
    assert_eq!(text(&again).replace("ada@", "…"), text(&bob).replace("bob@", "…"));
    set(json!({"auto_approve": true})).await;
    update_program(&world, &session, json!({"terms_url": "https://shop.example/terms"})).await;
    assert_eq!(join(&[("email", "eve@example.org")]).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(join(&[("email", "eve@example.org"), ("terms", "on"), ("via", "nobody")]).await.status, StatusCode::OK);
    let row = found("eve@example.org").await;
    assert_eq!((&row["status"], &row["parent_affiliate_id"]), (&json!("active"), &Value::Null));
    let mut recipients: Vec<(String, String)> =
        sent_emails(&world).await.into_iter().map(|(to, subject, _)| (to, subject)).collect();
    recipients.sort();
    let expected = [
        ("ada@example.org", "Sign in to the partner portal of shop.example"),
        ("bob@example.org", "Your application to the partner program of shop.example"),
        ("eve@example.org", "Welcome to the partner program of shop.example"),
    ];
    assert_eq!(recipients, expected.map(|(to, subject)| (to.to_owned(), subject.to_owned())));
    world.end().await;
}

/// Test postbacks and changes of the payout destination are rate-limited, because each causes a request or an email.
#[tokio::test]
async fn session_emails_and_tests_are_rate_limited() {
    let world = World::start().await;
    program_with_sender(&world).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let browser = Browser::of(&world, &ada).await;
    browser.submit("postback", &[("postback_url", "http://127.0.0.1:9/p")]).await;
    for (form, fields) in
        [("postback-test", &[][..]), ("payout-method", &[("method", "paypal"), ("destination", "ada@paypal.example")])]
    {
        for _ in 0..5 {
            assert_eq!(browser.submit(form, fields).await.status, StatusCode::SEE_OTHER, "{form}");
        }
        let refused = browser.submit(form, fields).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{form}");
        assert!(refused.headers.contains_key("retry-after"));
    }
    world.end().await;
}
