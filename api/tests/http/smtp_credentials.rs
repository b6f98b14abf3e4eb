//! SMTP credentials over HTTP. (smtp/tests/credentials.rs tests their use.)

use std::time::Duration;

use crate::world::World;
use api::state::SubmissionEndpoint;
use http::{Method, StatusCode};
use model::credential::SecretHash;
use serde_json::json;

#[tokio::test]
async fn credential_response_has_client_settings() {
    let world = World::with_options(|options| {
        let (host, username) = ("smtp.example.test".to_owned(), "postrider".to_owned());
        options.submission = SubmissionEndpoint { host, port: 465, implicit_tls: true, username };
    })
    .await;
    let response = world.call(Method::POST, "/smtp-credentials", &json!({"name": "office"})).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    let (json, credential) = (response.json(), response.json()["smtp_credential"].clone());
    let password = json["password"].as_str().unwrap().to_owned();
    assert!(password.starts_with("stxsmtp_") && credential["id"].as_str().unwrap().starts_with("smtp_"));
    assert_eq!(credential["host"], "smtp.example.test");
    assert_eq!((&credential["port"], &credential["security"]), (&json!(465), &json!("tls")));
    assert_eq!(credential["username"], "postrider");
    assert_eq!(credential["hint"], format!("stxsmtp_...{}", &password[password.len() - 4..]));
    let path = format!("/smtp-credentials/{}", credential["id"].as_str().unwrap());
    assert!(!String::from_utf8_lossy(&world.get(&path).await.body).contains(&password[8..]));

    let hash = SecretHash::from_smtp_password(&password).unwrap();
    let client_ip = Some("192.0.2.1".parse().unwrap());
    world.accounts.credentials.authenticate_smtp_password(&hash, client_ip).await.unwrap();
    let used = world.get(&path).await.json()["smtp_credential"].clone();
    assert_eq!(used["last_used_ip"], "192.0.2.1");
    let listed = world.get("/smtp-credentials").await.json();
    assert_eq!(listed["smtp_credentials"], json!([used]));
    assert_eq!(listed["has_more"], false);

    let changed = world.call(Method::PATCH, &path, &json!({"name": "home", "enabled": false})).await;
    assert_eq!(changed.json()["smtp_credential"]["name"], "home");
    assert!(world.accounts.credentials.authenticate_smtp_password(&hash, client_ip).await.is_err());
    world.call(Method::PATCH, &path, &json!({"enabled": true})).await;
    let rotated = world.call(Method::POST, &format!("{path}/rotate"), &json!({})).await.json();
    let fresh = SecretHash::from_smtp_password(rotated["password"].as_str().unwrap()).unwrap();
    for hash in [&hash, &fresh] {
        world.accounts.credentials.authenticate_smtp_password(hash, client_ip).await.unwrap();
    }
    world.services.clock.advance(Duration::from_secs(24 * 3600));
    assert!(world.accounts.credentials.authenticate_smtp_password(&hash, client_ip).await.is_err());
    world.accounts.credentials.authenticate_smtp_password(&fresh, client_ip).await.unwrap();

    let deleted = world.call(Method::DELETE, &path, &json!({})).await;
    assert_eq!(deleted.json(), json!({"ok": true}));
    assert!(world.accounts.credentials.authenticate_smtp_password(&fresh, client_ip).await.is_err());
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}
