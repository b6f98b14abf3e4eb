//! Unsubscribe links over HTTP: GET changes nothing, POST unsubscribes once, and preferences.

use crate::world::{BASE_URL, TestResponse, World};
use accounts::suppressions::SuppressionService;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use model::email::Category;
use model::id::{AccountId, EmailId};
use model::suppression::{SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget};
use serde_json::{Value, json};

async fn account(world: &World) -> AccountId {
    world.tenant().await.account().id
}

/// Sends an email to Ada, and returns the path of its unsubscribe link.
async fn send_and_link(world: &World, category: Category) -> (EmailId, String) {
    let body = json!({"from": "Acme & Co <hi@example.com>", "to": "ada@example.net", "subject": "x", "text": "x"});
    let id: EmailId = world.post("/emails", body.to_string()).await.json()["id"].as_str().unwrap().parse().unwrap();
    let to = "Ada@example.net".parse().unwrap();
    let url = world.accounts.links.unsubscribe_links().unwrap().link(account(world).await, id, &to, category);
    (id, url.strip_prefix(BASE_URL).unwrap().to_owned())
}

/// A request of a browser or a mail provider, without a key.
async fn call(world: &World, method: Method, path: &str, form: Option<(&str, &str)>) -> TestResponse {
    let mut request = Request::builder().method(method).uri(path).header("host", "test");
    if let Some((kind, _)) = form {
        request = request.header("content-type", kind);
    }
    let body = form.map_or(String::new(), |(_, body)| body.to_owned());
    world.send(request.body(Full::from(body)).unwrap()).await
}

const FORM: &str = "application/x-www-form-urlencoded";

async fn check_address(world: &World) -> (Value, Value) {
    let body = json!({"emails": ["ada@example.net"]}).to_string();
    let data = world.post("/suppressions/check", body).await.json()["data"][0].clone();
    (data["reason"].clone(), data["categories"].clone())
}

async fn recorded_events(world: &World, id: EmailId) -> Vec<Value> {
    let events = world.get(&format!("/emails/{id}/events")).await.json()["events"].clone();
    let all = events.as_array().unwrap().iter();
    all.filter(|event| event["type"] == "contact.unsubscribed").cloned().collect()
}

fn text(response: &TestResponse) -> String {
    String::from_utf8(response.body.to_vec()).unwrap()
}

#[tokio::test]
async fn get_changes_nothing_and_has_a_strict_policy() {
    let world = World::start().await;
    let (id, path) = send_and_link(&world, Category::Newsletter).await;
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let page = call(&world, method, &path, None).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(
            (&page.headers["cache-control"], &page.headers["referrer-policy"]),
            (&"no-store".parse().unwrap(), &"no-referrer".parse().unwrap())
        );
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    let page = text(&call(&world, Method::GET, &path, None).await);
    assert!(
        page.contains("Acme &amp; Co") && page.contains("Ada@example.net") && page.contains("Newsletter"),
        "{page}"
    );
    assert!(page.contains("<form method=\"post\">") && !page.contains("<script"));
    assert!(text(&call(&world, Method::GET, &format!("{path}/preferences"), None).await).contains("checked"));
    assert_eq!(check_address(&world).await, (Value::Null, json!([])));
    assert!(recorded_events(&world, id).await.is_empty());
    world.end().await;
}

#[tokio::test]
async fn one_click_unsubscribes_in_every_format() {
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n";
    for form in [
        Some((FORM, "List-Unsubscribe=One-Click")),
        Some(("multipart/form-data; boundary=b", multipart)),
        Some((FORM, "")),
        None,
    ] {
        let world = World::start().await;
        let (id, path) = send_and_link(&world, Category::Newsletter).await;
        for _ in 0..2 {
            let done = call(&world, Method::POST, &path, form).await;
            assert_eq!(done.status, StatusCode::OK, "{form:?}");
            assert!(text(&done).contains("You have been unsubscribed"));
        }
        assert_eq!(check_address(&world).await, (Value::Null, json!(["newsletter"])));
        let events = recorded_events(&world, id).await;
        assert_eq!(events.len(), 1, "once: {events:?}");
        let detail = &events[0]["detail"];
        assert_eq!(detail.as_object().unwrap().len(), 8);
        assert_eq!(
            (&detail["scope"], &detail["category"], &detail["email_id"]),
            (&json!("category"), &json!("newsletter"), &json!(id))
        );
        assert_eq!((&detail["category_label"], &detail["source"]), (&json!("Newsletter"), &json!("recipient")));
        let opt_outs = world.get("/category-opt-outs").await.json();
        assert_eq!(detail["category_opt_out_id"], opt_outs["category_opt_outs"][0]["id"]);
        assert_eq!(opt_outs["category_opt_outs"][0]["email_id"], json!(id));
        assert!(text(&call(&world, Method::GET, &path, None).await).contains("You have been unsubscribed"));
        world.end().await;
    }
}

#[tokio::test]
async fn transactional_link_unsubscribes_from_all() {
    let world = World::start().await;
    let (id, path) = send_and_link(&world, Category::Transactional).await;
    call(&world, Method::POST, &path, None).await;
    assert_eq!(check_address(&world).await.0, "unsubscribe");
    let suppression = world.get("/suppressions/ada@example.net").await.json()["suppression"].clone();
    assert_eq!((&suppression["source"], &suppression["email_id"]), (&json!("recipient"), &json!(id)));
    let events = recorded_events(&world, id).await;
    assert_eq!(
        (&events[0]["detail"]["scope"], &events[0]["detail"]["suppression_id"]),
        (&json!("all"), &suppression["id"])
    );
    world.end().await;
}

#[tokio::test]
async fn preferences_can_be_changed_back() {
    let world = World::start().await;
    let (_, path) = send_and_link(&world, Category::Product).await;
    let page = format!("{path}/preferences");
    let save = async |body: &'static str| call(&world, Method::POST, &page, Some((FORM, body))).await;
    assert!(text(&save("form=preferences&newsletter=on").await).contains("saved"));
    assert_eq!(check_address(&world).await, (Value::Null, json!(["product"])));
    save("form=preferences&newsletter=on&nothing=on").await;
    assert_eq!(check_address(&world).await, (json!("unsubscribe"), json!(["product"])));
    assert!(text(&call(&world, Method::GET, &page, None).await).contains("name=\"nothing\" checked"));
    save("form=preferences&newsletter=on&product=on").await;
    assert_eq!(check_address(&world).await, (Value::Null, json!([])));
    // A one-click POST to this path does not clear the preferences.
    let other = save("List-Unsubscribe=One-Click").await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
    assert_eq!(check_address(&world).await, (Value::Null, json!([])));
    world.end().await;
}

#[tokio::test]
async fn bounced_address_cannot_resubscribe() {
    for reason in [SuppressionReason::HardBounce, SuppressionReason::Complaint] {
        let world = World::start().await;
        let (_, path) = send_and_link(&world, Category::Product).await;
        let grounds = [SuppressionCause::new(
            "ada@example.net".parse::<SuppressionTarget>().unwrap(),
            reason,
            SuppressionSource::System,
        )];
        SuppressionService::new(&world.services).suppress(account(&world).await, &grounds, &|_, _| {}).await.unwrap();
        let body = Some((FORM, "form=preferences&newsletter=on&product=on"));
        let page = call(&world, Method::POST, &format!("{path}/preferences"), body).await;
        assert!(text(&page).contains("Only the sender can change that"));
        assert_eq!(check_address(&world).await.0, reason.word());
        world.end().await;
    }
}

#[tokio::test]
async fn link_works_after_the_email_was_deleted() {
    let world = World::start().await;
    let id = EmailId::new(world.services.clock.now(), 7);
    let to = "ada@example.net".parse().unwrap();
    let url = world.accounts.links.unsubscribe_links().unwrap().link(account(&world).await, id, &to, Category::Product);
    let path = url.strip_prefix(BASE_URL).unwrap();
    assert!(text(&call(&world, Method::GET, path, None).await).contains("this sender"));
    assert_eq!(call(&world, Method::POST, path, None).await.status, StatusCode::OK);
    assert_eq!(check_address(&world).await.1, json!(["product"]));
    world.end().await;
}

#[tokio::test]
async fn invalid_link_is_a_plain_404() {
    let world = World::start().await;
    let (_, path) = send_and_link(&world, Category::Product).await;
    let nobody = AccountId::new(world.services.clock.now(), 99);
    let to = "ada@example.net".parse().unwrap();
    let foreign_link = world.accounts.links.unsubscribe_links().unwrap();
    let foreign_link = foreign_link.link(nobody, EmailId::new(world.services.clock.now(), 1), &to, Category::Product);
    let cut = &path[..path.len() - 1];
    let long = format!("/u/{}", "A".repeat(1_900));
    for path in ["/u/x", "/u/%00", cut, long.as_str(), foreign_link.strip_prefix(BASE_URL).unwrap()] {
        for (method, path) in [
            (Method::GET, path.to_owned()),
            (Method::POST, path.to_owned()),
            (Method::GET, format!("{path}/preferences")),
        ] {
            let response = call(&world, method, &path, None).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
            assert!(text(&response).contains("This link does not work"), "{path}");
            assert_eq!(response.headers["content-type"], "text/html; charset=utf-8");
        }
    }
    assert_eq!(check_address(&world).await, (Value::Null, json!([])));
    world.end().await;
}
