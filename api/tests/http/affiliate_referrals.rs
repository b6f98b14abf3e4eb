//! `…/affiliate-referrals`: people referred by partners.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::affiliate_program::{owner, set_up};
use crate::affiliates::{all, partner};
use crate::world::{TestResponse, World};

async fn create_referral(world: &World, body: &Value) -> TestResponse {
    world.call(Method::POST, "/affiliate-referrals", body).await
}

#[tokio::test]
async fn first_referral_of_a_person_wins() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    partner(&world, json!({"email": "bob@example.org", "token": "bob"})).await;
    let body = json!({"affiliate_id": ada["id"], "email": "Grace@Example.net", "sub_id": "spring",
                      "processor_customer_id": "cus_1"});
    let first = create_referral(&world, &body).await;
    assert_eq!((first.status, &first.json()["created"]), (StatusCode::CREATED, &json!(true)));
    let referral = first.json()["referral"].clone();
    for (field, value) in [
        ("object", json!("affiliate_referral")),
        ("affiliate_id", ada["id"].clone()),
        ("status", json!("lead")),
        ("source", json!("api")),
        ("email", json!("grace@example.net")),
        ("processor_customer_id", json!("cus_1")),
        ("sub_id", json!("spring")),
        ("blocked_reason", Value::Null),
        ("revenue_cents", json!(0)),
        ("converted_at", Value::Null),
    ] {
        assert_eq!(referral[field], value, "{field}");
    }
    for again in [
        json!({"token": "BOB", "email": "grace@example.net"}),
        json!({"token": "bob", "email": "other@example.net", "processor_customer_id": "cus_1"}),
        body,
    ] {
        let response = create_referral(&world, &again).await;
        assert_eq!((response.status, &response.json()["created"]), (StatusCode::OK, &json!(false)), "{again}");
        assert_eq!(response.json()["referral"], referral);
    }
    let path = format!("/affiliate-referrals/{}", referral["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["referral"], referral);
    assert_eq!(world.get("/affiliate-referrals/ref_x").await.code(), "not_found");
    world.end().await;
}

#[tokio::test]
async fn lapsed_referral_passes_to_the_next_partner() {
    let world = World::start().await;
    set_up(&world, 1).await;
    partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    partner(&world, json!({"email": "bob@example.org", "token": "bob"})).await;
    let first = create_referral(&world, &json!({"token": "ada", "email": "grace@example.net"})).await.json();
    world.services.clock.advance(Duration::from_secs(61 * 24 * 3600));
    let second = create_referral(&world, &json!({"token": "bob", "email": "grace@example.net"})).await;
    assert_eq!(second.status, StatusCode::CREATED);
    let path = format!("/affiliate-referrals/{}", first["referral"]["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["referral"]["status"], json!("rejected"));
    world.end().await;
}

#[tokio::test]
async fn self_referral_earns_nothing() {
    let world = World::start().await;
    set_up(&world, 1).await;
    partner(&world, json!({"email": "a.da@gmail.com", "token": "ada", "paypal_email": "pay@example.org"})).await;
    for email in ["ADA+shop@googlemail.com", "a.da@gmail.com", "pay+x@example.org"] {
        let response = create_referral(&world, &json!({"token": "ada", "email": email})).await;
        let referral = response.json()["referral"].clone();
        assert_eq!((response.status, &referral["status"]), (StatusCode::CREATED, &json!("lead")), "{email}");
        assert_eq!(referral["blocked_reason"], json!("self_referral"), "{email}");
    }
    let other = create_referral(&world, &json!({"token": "ada", "email": "pay@example.com"})).await;
    assert_eq!(other.json()["referral"]["blocked_reason"], Value::Null);
    world.end().await;
}

#[tokio::test]
async fn invalid_referrals_are_refused_in_order() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    for (status, token) in [("pending", "pen"), ("invited", "inv")] {
        let email = format!("{token}@example.org");
        partner(&world, json!({"email": email, "token": token, "status": status})).await;
    }
    let refused = async |body: Value| {
        let response = create_referral(&world, &body).await;
        (response.status.as_u16(), response.code())
    };
    for (body, field) in [
        (json!({"token": "ada"}), "email"),
        (json!({"email": "g@example.net"}), "affiliate_id"),
        (json!({"email": "g@example.net", "token": ""}), "token"),
        (json!({"email": "g@example.net", "token": 1}), "token"),
        (json!({"email": "g@example.net", "token": "ada", "affiliate_id": ada["id"]}), "token"),
        (json!({"email": "nobody", "token": "ada"}), "email"),
        (json!({"email": "g@example.net", "token": "ada", "sub_id": "x".repeat(256)}), "sub_id"),
    ] {
        let response = create_referral(&world, &body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}: {response:?}");
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{body}: {response:?}");
    }
    for by in ["pen", "inv", "none", "what is that?", "x"] {
        let body = json!({"email": "g@example.net", "token": by});
        assert_eq!(refused(body).await, (404, "not_found".to_owned()), "{by}");
    }
    for by in ["aff_x", "aff_00000000000000000000000000", "ada"] {
        let body = json!({"email": "g@example.net", "affiliate_id": by});
        assert_eq!(refused(body).await, (404, "not_found".to_owned()), "{by}");
    }
    let path = format!("/affiliates/{}/suspend", ada["id"].as_str().unwrap());
    world.post(&path, "").await;
    assert_eq!(refused(json!({"email": "g@example.net", "token": "ada"})).await.0, 404);
    owner(&world, &session, Method::POST, "/pause", json!({})).await;
    // Order of the checks: validation, then a paused program, then an unknown token.
    assert_eq!(refused(json!({"token": "none"})).await, (400, "validation_error".to_owned()));
    assert_eq!(refused(json!({"email": "g@example.net", "token": "none"})).await, (409, "conflict".to_owned()));
    for path in ["/affiliates", "/affiliate-campaigns", "/affiliate-referrals"] {
        assert_eq!(world.get(path).await.status, StatusCode::OK, "a paused program can be read");
    }
    partner(&world, json!({"email": "new@example.org"})).await;
    world.end().await;
}

#[tokio::test]
async fn referrals_are_filtered() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    partner(&world, json!({"email": "bob@example.org", "token": "bob"})).await;
    let mut times = Vec::new();
    for n in 0..120 {
        let token = if n % 3 == 0 { "ada" } else { "bob" };
        let created =
            create_referral(&world, &json!({"token": token, "email": format!("p{n}@example.net")})).await.json();
        times.push(created["referral"]["created_at"].as_str().unwrap().to_owned());
        world.services.clock.advance(Duration::from_millis(10));
    }
    let emails = async |query: &str| -> Vec<String> {
        let found = all(&world, &format!("/affiliate-referrals{query}")).await;
        found.iter().map(|entry| entry["email"].as_str().unwrap().to_owned()).collect()
    };
    let expected = |passes: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..120).rev().filter(|n| passes(*n)).map(|n| format!("p{n}@example.net")).collect()
    };
    assert_eq!(emails("").await, expected(&|_| true));
    let of_ada = format!("?affiliate_id={}", ada["id"].as_str().unwrap());
    assert_eq!(emails(&of_ada).await, expected(&|n| n % 3 == 0));
    assert_eq!(emails("?status=lead,active&source=api").await, expected(&|_| true));
    assert_eq!(emails("?status=active").await, [""; 0]);
    assert_eq!(emails("?source=checkout").await, [""; 0]);
    assert_eq!(emails("?email=P5%40example.net").await, ["p5@example.net"]);
    let between = format!("?created_after={}&created_before={}", times[40], times[60]);
    assert_eq!(emails(&between).await, expected(&|n| (40..60).contains(&n)));
    assert_eq!(emails(&format!("{of_ada}&created_before={}", times[9])).await, expected(&|n| n % 3 == 0 && n < 9));
    for bad in ["status=gone", "source=sky", "affiliate_id=x", "email=x", "created_after=soon", "limit=x"] {
        let response = world.get(&format!("/affiliate-referrals?{bad}")).await;
        assert_eq!(
            (response.status, response.code()),
            (StatusCode::BAD_REQUEST, "validation_error".to_owned()),
            "{bad}"
        );
    }
    let partners = world.get("/affiliates?limit=1").await.json();
    let foreign = format!("/affiliate-referrals?cursor={}", partners["next_cursor"].as_str().unwrap());
    assert_eq!(world.get(&foreign).await.code(), "invalid_cursor");
    world.end().await;
}

#[tokio::test]
async fn concurrent_referrals_of_a_person_have_one_winner() {
    let world = World::start().await;
    set_up(&world, 1).await;
    for token in ["ada", "bob"] {
        partner(&world, json!({"email": format!("{token}@example.org"), "token": token})).await;
    }
    for n in 0..8 {
        let body = |token: &str| json!({"token": token, "email": format!("p{n}@example.net")});
        let (ada, bob) = (body("ada"), body("bob"));
        let (one, other) = tokio::join!(create_referral(&world, &ada), create_referral(&world, &bob));
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 201]);
        assert_eq!(one.json()["referral"], other.json()["referral"]);
    }
    world.end().await;
}

/// Each change emits its event, with an event id of its own.
#[tokio::test]
async fn changes_emit_events() {
    let world = World::with_worker().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    create_referral(&world, &json!({"token": "ada", "email": "grace@example.net"})).await;
    create_referral(&world, &json!({"token": "ada", "email": "grace@example.net"})).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    world.call(Method::PATCH, &path, &json!({"company": "Engines"})).await;
    world.call(Method::PATCH, &path, &json!({"company": "Engines"})).await;
    world.call(Method::POST, &format!("{path}/suspend"), &json!({"reason": "spam"})).await;
    world.queue.events.outbox.dispatch_outbox().await.unwrap();
    let response = world.get("/webhook-events?limit=50").await.json();
    let response = response["events"].as_array().or(response["data"].as_array()).unwrap().clone();
    let mut kinds: Vec<&str> = response.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["affiliate.approved", "affiliate.created", "affiliate.updated", "affiliate.updated", "referral.created"]
    );
    for event in &response {
        assert_eq!(event["data"]["affiliate_id"], ada["id"], "{event}");
        assert!(event["data"]["program_id"].is_string() && event["data"]["event_id"].is_string(), "{event}");
    }
    let created = response.iter().find(|entry| entry["type"] == "referral.created").unwrap();
    assert_eq!(created["data"]["referral"]["email"], json!("grace@example.net"));
    let reason = response.iter().find(|entry| !entry["data"]["reason"].is_null()).unwrap();
    assert_eq!(reason["data"]["affiliate"]["status"], json!("suspended"));
    world.end().await;
}
