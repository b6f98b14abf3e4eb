//! The request log over HTTP.

use std::time::Duration;

use crate::world::World;
use api::session_pages::{OperationCall, OperationCaller as _};
use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

fn column(page: &Value, name: &str) -> Vec<Value> {
    page["logs"].as_array().unwrap().iter().map(|log| log[name].clone()).collect()
}

#[tokio::test]
async fn requests_are_filtered_by_result() {
    let world = World::start().await;
    let queries = [
        (Method::POST, "/emails", 400),
        (Method::GET, "/emails?limit=1", 200),
        (Method::GET, "/emails/msg_x@y.example", 404),
        (Method::GET, "/account", 200),
    ];
    let mut ids = Vec::new();
    for (method, path, status) in &queries {
        let response = world.call(method.clone(), path, &json!({})).await;
        assert_eq!(response.status.as_u16(), *status, "{path}");
        ids.push(response.headers["x-request-id"].to_str().unwrap().to_owned());
        world.services.clock.advance(Duration::from_millis(10));
    }
    // Unauthenticated requests are in no account's log.
    world.call_without_key(Method::GET, "/emails", &Value::Null).await;
    let all = world.get("/logs").await.json();
    ids.reverse();
    assert_eq!(column(&all, "id"), ids);
    assert_eq!(column(&all, "path"), ["/account", "/emails/[redacted]", "/emails", "/emails"]);
    let first = &all["logs"][3];
    assert_eq!((&first["operation"], &first["error_code"]), (&json!("send_email"), &json!("validation_error")));
    assert!(first["api_key_id"].as_str().unwrap().starts_with("key_") && first["user_id"].is_null());
    for (query, found) in [
        ("method=post", vec![400]),
        ("status=4xx", vec![404, 400]),
        ("status=404", vec![404]),
        ("status=5xx", vec![]),
        ("path=/acc", vec![200]),
        ("path=/emails&status=2xx", vec![200]),
    ] {
        let page = world.get(&format!("/logs?{query}")).await.json();
        assert_eq!(column(&page, "status"), found, "{query}");
    }
    let time = all["logs"][1]["created_at"].as_str().unwrap();
    let later = world.get(&format!("/logs?created_after={time}")).await.json();
    assert_eq!(column(&later, "path"), ["/account"]);
    let earlier = world.get(&format!("/logs?created_before={time}")).await.json();
    assert_eq!(column(&earlier, "status"), [200, 400]);
    for bad in ["status=6xx", "status=abc", "created_after=x", "cursor=x", "limit=0", "status=200&status=201"] {
        assert_eq!(world.get(&format!("/logs?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    let key = first["api_key_id"].as_str().unwrap();
    for (query, found) in [
        (format!("api_key_id={key}&status=404"), 1),
        ("api_key_id=key_00000000000000000000000000".to_owned(), 0),
        ("user_id=user_00000000000000000000000000".to_owned(), 0),
        ("operation=list_emails".to_owned(), 1),
    ] {
        let page = world.get(&format!("/logs?{query}")).await.json();
        assert_eq!(page["logs"].as_array().unwrap().len(), found, "{query}");
    }
    for bad in ["api_key_id=x", "user_id=key_1"] {
        assert_eq!(world.get(&format!("/logs?{bad}")).await.code(), "validation_error");
    }
    let entry = world.get(&format!("/logs/{}", ids[0])).await.json();
    assert_eq!(entry["log"]["id"], ids[0]);

    let other = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/logs").await.json()["logs"], json!([]));
    assert_eq!(world.get_as(&other, &format!("/logs/{}", ids[0])).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

/// The dashboard calls operations in the process.
#[tokio::test]
async fn changes_of_the_dashboard_are_logged_with_their_user() {
    let world = World::start().await;
    let session = world.session(1).await;
    let mut headers = http::HeaderMap::new();
    headers.insert("cookie", session.cookie.parse().unwrap());
    let user = world.server.session_user(&headers, None).await.unwrap().unwrap();
    let perform = async |operation: &str, path: &[(&str, &str)], body: Value| {
        let path = path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let call = OperationCall {
            operation: operation.to_owned(),
            path,
            body: body.to_string().into(),
            ..OperationCall::default()
        };
        world.services.clock.advance(Duration::from_millis(2));
        world.server.perform(Some(&user), call).await.map(drop).map_err(|problem| problem.code().word)
    };
    assert_eq!(perform("create_suppression", &[], json!({"email": "a@example.net"})).await, Ok(()));
    assert_eq!(perform("list_suppressions", &[], json!({})).await, Ok(()));
    assert_eq!(perform("check_suppressions", &[], json!({"emails": ["a@example.net"]})).await, Ok(()));
    let gone = perform("delete_suppression", &[("id_or_email", "b@example.net")], Value::Null).await;
    assert_eq!(gone, Err("not_found"));
    let logs = world.get("/logs").await.json();
    assert_eq!(column(&logs, "operation"), ["delete_suppression", "create_suppression"], "reads are not logged");
    assert_eq!(column(&logs, "path"), ["/suppressions/[redacted]", "/suppressions"]);
    assert_eq!(column(&logs, "status"), [404, 200]);
    let id = logs["logs"][0]["user_id"].as_str().unwrap();
    assert!(id.starts_with("user_") && logs["logs"][0]["api_key_id"].is_null());
    let of_user = world.get(&format!("/logs?user_id={id}&method=POST")).await.json();
    assert_eq!(column(&of_user, "operation"), ["create_suppression"]);
    world.end().await;
}

#[tokio::test]
async fn pages_contain_each_entry_once() {
    let world = World::start().await;
    for n in 0..7 {
        world.get(if n % 2 == 0 { "/emails" } else { "/account" }).await;
        world.services.clock.advance(Duration::from_millis(2));
    }
    for (query, count) in [("limit=3", 7), ("limit=2&path=/emails", 4)] {
        let (mut collected, mut next) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/logs?{query}{next}")).await.json();
            collected.extend(column(&page, "id"));
            assert_eq!(page["has_more"].as_bool().unwrap(), page["next_cursor"].is_string());
            match page["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(collected.len(), count, "{query}");
        let mut ordered = collected.iter().map(|id| id.as_str().unwrap()).collect::<Vec<_>>();
        ordered.sort_unstable();
        ordered.reverse();
        ordered.dedup();
        assert_eq!(ordered, collected.iter().map(|id| id.as_str().unwrap()).collect::<Vec<_>>());
    }
    world.end().await;
}

#[tokio::test]
async fn a_session_is_logged_as_its_user() {
    let world = World::start().await;
    let session = world.session(1).await;
    let made =
        world.call_with_session(&session, Method::POST, "/api/api-keys", &json!({"name": "n", "scope": "full"})).await;
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    world.call_with_session(&session.forged(), Method::POST, "/api/api-keys", &json!({})).await;
    let logs = world.call_with_session(&session, Method::GET, "/api/logs", &Value::Null).await;
    let text = String::from_utf8_lossy(&logs.body).into_owned();
    assert!(!text.contains(&secret[4..]) && !text.contains(session.csrf.as_deref().unwrap()));
    let logs = logs.json();
    let mut statuses = column(&logs, "status");
    statuses.sort_by_key(Value::as_u64);
    assert_eq!(statuses, [200, 403]);
    assert!(logs["logs"][0]["user_id"].as_str().unwrap().starts_with("user_"));
    assert!(logs["logs"][0]["api_key_id"].is_null());
    world.end().await;
}
