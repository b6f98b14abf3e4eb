//! Unknown fields are ignored and listed in the `warnings` of the response, in every operation.

use std::time::Duration;

use api::operation::Operation;
use api::operations::operation_table;
use http::{Method, StatusCode};
use httpd::request::Media;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

use crate::world::{BASE_URL, World};

/// Creates the object that an operation needs, and returns the path.
async fn operation_path(world: &World, operation: &Operation) -> String {
    let email = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    let mut later = email.clone();
    later["scheduled_at"] = json!(format!("{:.3}", world.services.clock.now() + Duration::from_secs(3600)));
    let (path, body, noun) = match operation.path.split('/').nth(1).unwrap() {
        "emails" if operation.method == Method::PATCH => ("/emails", later, "/id"),
        "emails" => ("/emails", email, "/id"),
        "api-keys" => ("/api-keys", json!({"name": "n", "scope": "full"}), "/api_key/id"),
        "smtp-credentials" => ("/smtp-credentials", json!({"name": "n"}), "/smtp_credential/id"),
        "templates" => {
            let body = json!({"name": "n", "from": "ada@example.com", "subject": "s", "html": "<p>Hi</p>"});
            ("/templates", body, "/template/id")
        }
        "webhooks" => ("/webhooks", json!({"url": "http://127.0.0.1:9/"}), "/webhook/id"),
        "automations" => {
            let steps = json!([{"type": "delay", "duration": "1d"}]);
            let body = json!({"name": "n", "trigger": {"event": "user.created"}, "steps": steps});
            ("/automations", body, "/automation/id")
        }
        "domains" if operation.id == "create_domain_claim" => {
            let other = world.account(2, ApiKeyScope::Full).await;
            let added = world.call_as(&other, Method::POST, "/domains", &json!({"name": "example.net"})).await;
            assert_eq!(added.status, StatusCode::OK, "{added:?}");
            return operation.path.to_owned();
        }
        "received-emails" => {
            let id = crate::received::arrive(world, 1, |_| {}).await.id;
            return operation.path.replace("{id}", &id.to_string());
        }
        "affiliate-commissions" => {
            let id = crate::affiliate_ledger::commission(world).await;
            return operation.path.replace("{id}", &id);
        }
        "affiliate-payouts" => {
            let id = crate::affiliate_payouts::processing(world).await;
            return operation.path.replace("{id}", &id);
        }
        path if path.starts_with("affiliate") => {
            crate::affiliate_program::set_up(world, 1).await;
            let status = if operation.id == "create_affiliate_referral" { "active" } else { "pending" };
            let body = json!({"email": "bob@example.org", "token": "ada", "status": status});
            let made = crate::affiliates::partner(world, body).await;
            let campaign = world.get("/affiliate-campaigns").await.json()["data"][0]["id"].clone();
            let id = if path == "affiliates" { &made["id"] } else { &campaign };
            return operation.path.replace("{id}", id.as_str().unwrap());
        }
        "dns-credentials" => return operation.path.replace("{provider}", "rfc2136"),
        "domains" => return operation.path.replace("{id_or_name}", crate::world::DOMAIN),
        _ => return operation.path.to_owned(),
    };
    if !operation.path.contains('{') {
        return operation.path.to_owned();
    }
    let made = world.post(path, body.to_string()).await.json();
    let id = made.pointer(noun).and_then(Value::as_str).unwrap();
    // Only a template that was never published can become a draft again.
    if path == "/templates" && operation.method != Method::PATCH {
        let published = world.post(&format!("/templates/{id}/publish"), "").await;
        assert_eq!(published.status, StatusCode::OK, "{published:?}");
    }
    operation.path.replace("{id}", id).replace("{id_or_alias}", id)
}

/// Sends the document's example request with one additional field.
#[tokio::test]
async fn every_operation_reports_ignored_fields() {
    let document = api::openapi::document(&operation_table(), BASE_URL);
    let mut silent = Vec::new();
    let takes_json = |o: &&Operation| o.body_bytes_max.is_some() && o.media != Media::Form;
    // This operation forwards its fields to a DNS provider, which answers.
    let by_us = |o: &&Operation| o.scope().is_some() && o.id != "apply_domain_dns";
    for operation in operation_table().iter().filter(takes_json).filter(by_us) {
        let method = operation.method.as_str().to_lowercase();
        let entry = &document["paths"][operation.path][&method];
        let mut body = entry["requestBody"]["content"]["application/json"]["example"].clone();
        body["colour"] = json!("blue");
        // An email id that does not exist.
        body.as_object_mut().unwrap().remove("email_id");
        // A new world for each operation, so that they do not affect each other.
        let world = World::start().await;
        let path = operation_path(&world, operation).await;
        let response = world.call(operation.method.clone(), &path, &body).await;
        let warning_text = format!("{}: {body} {response:?}", operation.id);
        let warnings = response.status.is_success().then(|| response.json()["warnings"].to_string());
        if warnings.is_none_or(|warnings| !warnings.contains("`colour` is not a known field")) {
            silent.push(warning_text);
        }
        let view =
            &entry["responses"][operation.response_spec.status.as_str()]["content"]["application/json"]["example"];
        assert!(view["warnings"].is_array(), "{} does not tell of `warnings`: {view}", operation.id);
        world.end().await;
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

/// Fields of other operations, which clients expect to have an effect.
#[tokio::test]
async fn fields_of_other_operations_are_reported() {
    let world = World::start().await;
    let email = json!({"from": "ada@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    let id = world.post("/emails", email.to_string()).await.json()["id"].as_str().unwrap().to_owned();
    let again = world.post(&format!("/emails/{id}/resend"), r#"{"to": "c@example.net"}"#).await.json();
    assert_eq!(again["warnings"], json!(["`to` is not a known field and was ignored"]));
    let key = json!({"name": "n", "scope": "sending", "colour": 1});
    let key = world.post("/api-keys", key.to_string()).await.json();
    assert_eq!(key["warnings"], json!(["`colour` is not a known field and was ignored"]));
    let path = format!("/api-keys/{}", key["api_key"]["id"].as_str().unwrap());
    let change = json!({"scope": "full", "expires_at": "2030-01-01T00:00:00Z"});
    let changed = world.call(Method::PATCH, &path, &change).await.json();
    assert_eq!(changed["warnings"].as_array().unwrap().len(), 2, "{changed}");
    assert_eq!(changed["api_key"]["scope"], "sending");
    // Errors list ignored fields too: a missing field may have been sent under a wrong name.
    for (path, invalid) in
        [("/api-keys", json!({"names": "n", "scope": "full"})), ("/emails", json!({"too": "b@x.example"}))]
    {
        let refused = world.post(path, invalid.to_string()).await;
        assert_eq!(refused.code(), "validation_error", "{path}");
        let warning_text = refused.json()["error"]["details"]["warnings"].to_string();
        assert!(warning_text.contains("is not a known field and was ignored"), "{path}: {warning_text}");
    }
    // Without ignored fields there is no `warnings`.
    let quiet = world.call(Method::PATCH, &path, &json!({"name": "m"})).await.json();
    assert!(quiet.get("warnings").is_none(), "{quiet}");
    world.end().await;
}
