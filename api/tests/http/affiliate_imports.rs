//! `…/imports`: imports of partner lists.

use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::affiliate_program::{PROGRAM, set_up};
use crate::affiliates::{all, partner};
use crate::world::{TestResponse, TestSession, World};

async fn import(world: &World, session: &TestSession, query: &str, list: &str) -> TestResponse {
    let request = http::Request::post(format!("{PROGRAM}/imports{query}"))
        .header("host", "test")
        .header("cookie", &session.cookie)
        .header("x-csrf-token", session.csrf.as_deref().unwrap_or_default())
        .header("content-type", "text/csv");
    world.send(request.body(Full::new(list.to_owned().into())).unwrap()).await
}

const LIST: &str = "\u{feff}EMAIL,First Name,token,status,parent_email,country,campaign,note\r\n\
    grace@example.org,Grace,My Shop!,,bob@example.org,us,,x\r\n\
    bob@example.org,\"Bob, the first\",ADA,pending,,,,\r\n\
    not an address,,,,,,,\r\n\
    Grace@Example.org,,,,,,,\r\n\
    ada@example.org,,,,,,,\r\n\
    eve@example.org,,,gone,,,,\r\n\
    mallory@example.org,,,,nobody@example.org,,,\r\n\
    one@example.org,,,,two@example.org,,,\r\n\
    two@example.org,,,,one@example.org,,,\r\n\
    dan@example.org,,,,,,No such plan,\r\n\
    alan@example.org,,,invited,ada@example.org,,Partners,\r\n";

#[tokio::test]
async fn import_supports_a_dry_run() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let tried = import(&world, &session, "?dry_run=true", LIST).await;
    assert_eq!(tried.status, StatusCode::OK, "{tried:?}");
    let tried = tried.json();
    assert_eq!((&tried["dry_run"], &tried["imported"]), (&json!(true), &json!(3)));
    let outline = |view: &Value| -> Vec<(u64, String, String)> {
        let rows = view.as_array().unwrap().iter();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        rows.map(|row| (row["row"].as_u64().unwrap(), text(row, "email"), text(row, "token") + &text(row, "reason")))
            .collect()
    };
    let rows = |rows: &[(u64, &str, &str)]| -> Vec<(u64, String, String)> {
        rows.iter().map(|(row, email, outcome)| (*row, (*email).to_owned(), (*outcome).to_owned())).collect()
    };
    let partners = rows(&[
        (1, "grace@example.org", "my-shop-"),
        (2, "bob@example.org", "ada-2"),
        (11, "alan@example.org", "alan"),
    ]);
    let skipped = rows(&[
        (3, "not an address", "invalid_email"),
        (4, "Grace@Example.org", "duplicate_in_file"),
        (5, "ada@example.org", "already_partner"),
        (6, "eve@example.org", "invalid_status"),
        (7, "mallory@example.org", "invalid_parent_email"),
        (8, "one@example.org", "invalid_parent_email"),
        (9, "two@example.org", "invalid_parent_email"),
        (10, "dan@example.org", "invalid_campaign"),
    ]);
    assert_eq!((outline(&tried["partners"]), outline(&tried["skipped"])), (partners.clone(), skipped.clone()));
    assert_eq!(tried["partners"][0]["id"], Value::Null);
    assert_eq!(tried["ignored_columns"], json!([]));
    assert_eq!(all(&world, "/affiliates").await.len(), 1, "nothing is written");

    let done = import(&world, &session, "", LIST).await.json();
    assert_eq!((outline(&done["partners"]), outline(&done["skipped"])), (partners, skipped));
    let get = async |row: usize| {
        let id = done["partners"][row]["id"].as_str().unwrap().to_owned();
        world.get(&format!("/affiliates/{id}")).await.json()["affiliate"].clone()
    };
    let (grace, bob, alan) = (get(0).await, get(1).await, get(2).await);
    assert_eq!((&grace["parent_affiliate_id"], &grace["source"]), (&bob["id"], &json!("import")));
    assert_eq!((&bob["status"], &bob["first_name"]), (&json!("pending"), &json!("Bob, the first")));
    assert_eq!((&alan["parent_affiliate_id"], &alan["status"]), (&ada["id"], &json!("invited")));
    assert_eq!(grace["country"], "US");
    let again = import(&world, &session, "", LIST).await.json();
    assert_eq!(again["imported"], 0, "{again}");
    world.end().await;
}

#[tokio::test]
async fn foreign_columns_are_mapped_or_reported() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let list = "Name,E-Mail,PayPal,Total earned\nŁukasz Żak,l@example.org,pay@example.org,12\n";
    let done = import(&world, &session, "", list).await.json();
    assert_eq!((&done["imported"], &done["ignored_columns"]), (&json!(1), &json!(["Total earned"])), "{done}");
    let found = world.get("/affiliates?email=l@example.org").await.json()["data"][0].clone();
    assert_eq!((&found["first_name"], &found["last_name"]), (&json!("Łukasz"), &json!("Żak")));
    assert_eq!((&found["payout_method"], &found["links"][0]["token"]), (&json!("paypal"), &json!("lukasz-zak")));
    world.end().await;
}

#[tokio::test]
async fn invalid_csv_is_refused() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let long: String = (0..=5_000).map(|n| format!("p{n}@example.org\n")).collect();
    for list in ["", "name\nAda\n", &format!("email\n{long}")] {
        let refused = import(&world, &session, "", list).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
        assert!(refused.json()["error"]["details"]["fields"]["body"].is_string(), "{refused:?}");
    }
    assert_eq!(all(&world, "/affiliates").await.len(), 0);
    assert_eq!(import(&world, &session, "?dry_run=perhaps", "email\n").await.status, StatusCode::BAD_REQUEST);
    let with_key = world.call(Method::POST, &format!("{PROGRAM}/imports"), &json!({})).await;
    assert_eq!(with_key.status, StatusCode::FORBIDDEN);
    world.end().await;
}
