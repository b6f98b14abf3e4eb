//! Product events: ingest, redaction, filters, counts; conversions, visits, funnels; invalid input.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::world::{TestResponse, World};

async fn post_event(world: &World, event: &Value) -> TestResponse {
    world.post("/events", event.to_string()).await
}

async fn send_event(world: &World, event: &Value) -> Value {
    let response = post_event(world, event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{event} {response:?}");
    response.json()
}

async fn with_key(world: &World, key: &str, event: &Value) -> TestResponse {
    let request = world.request(Method::POST, "/events").header("idempotency-key", key);
    world.send(request.body(Full::new(event.to_string().into())).unwrap()).await
}

#[tokio::test]
async fn an_event_is_stored_without_its_secrets() {
    let world = World::start().await;
    let event = json!({"type": "auth.code_requested", "user_id": "u1", "email": "Grace@example.net", "colour": 1,
        "data": {"code": 123, "plan": "trial", "n": [{"Reset-Token": {"a": 1}}], "url": "https://a.example/?otp=9&x=1"}});
    let response = send_event(&world, &event).await;
    let stored = json!({"code": "REDACTED", "plan": "trial", "n": [{"Reset-Token": "REDACTED"}],
                        "url": "https://a.example/?otp=REDACTED&x=1"});
    assert_eq!(response["event"]["data"], stored);
    assert_eq!(response["event"]["name"], "auth.code_requested");
    assert_eq!(response["event"]["source"], "api");
    for count in ["matched_automations", "resumed_runs", "cancelled_runs"] {
        assert_eq!(response[count], 0);
    }
    assert_eq!(response["warnings"], json!(["`colour` is not a known field and was ignored"]));
    let id = response["event"]["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("ae_"));
    let event_response = world.get(&format!("/events/{id}")).await.json();
    assert_eq!(event_response["event"], response["event"]);
    // The event does not exist for another account.
    let other = world.account(2, model::credential::ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, &format!("/events/{id}")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get_as(&other, "/events").await.json()["events"], json!([]));
    // The minimum: no address, no user, no data.
    let least = send_event(&world, &json!({"name": "a"})).await["event"].clone();
    assert_eq!((&least["user_id"], &least["email"], &least["data"]), (&Value::Null, &Value::Null, &json!({})));
    world.end().await;
}

#[tokio::test]
async fn errors_name_the_field() {
    let world = World::start().await;
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let many: Value = (0..10_000).map(|n| (format!("{n:x}"), Value::Null)).collect();
    for (body, status, field) in [
        (json!({}).to_string(), 400, "name"),
        (json!({"name": ""}).to_string(), 400, "name"),
        (json!({"name": 7}).to_string(), 400, "name"),
        (json!({"name": " a"}).to_string(), 400, "name"),
        (json!({"name": "a\u{0}"}).to_string(), 400, "name"),
        (json!({"name": "x".repeat(201)}).to_string(), 400, "name"),
        (json!({"name": "a", "type": "b"}).to_string(), 400, "name"),
        (json!({"Name": "a"}).to_string(), 400, "Name"),
        (json!({"name": "a", "user_id": 7}).to_string(), 400, "user_id"),
        (json!({"name": "a", "user_id": "x".repeat(256)}).to_string(), 400, "user_id"),
        (json!({"name": "a", "email": "nobody"}).to_string(), 400, "email"),
        (json!({"name": "a", "data": []}).to_string(), 400, "data"),
        (json!({"name": "a", "data": "x"}).to_string(), 400, "data"),
        (json!({"name": "a", "data": {"x": "y".repeat(65_536)}}).to_string(), 400, "data"),
        (json!({"name": "a", "data": many}).to_string(), 400, "data"),
        (format!("{{\"name\":\"a\",\"data\":{}}}", deep(33)), 400, "data"),
        ("{\"name\":\"a\",\"data\":{\"x\":\"\\ud800\"}}".to_owned(), 400, "data"),
        (json!({"name": "a", "dry_run": true}).to_string(), 400, "dry_run"),
        (json!({"name": "a", "test_send": false}).to_string(), 400, "test_send"),
        (json!({"name": "a", "automation_id": "aut_x"}).to_string(), 400, "automation_id"),
    ] {
        let response = world.post("/events", body.clone()).await;
        let summary: String = body.chars().take(60).collect();
        assert_eq!(response.status, status, "{summary} {response:?}");
        assert_eq!(response.code(), "validation_error", "{summary}");
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{summary} {response:?}");
    }
    for (body, status) in [
        (b"{\"name\":\"a\",\"data\":{\"x\":NaN}}".to_vec(), 400),
        (b"{\"name\":\"a\",\"data\":{\"x\":Infinity}}".to_vec(), 400),
        (b"{\"name\":\"\xff\"}".to_vec(), 400),
        (b"{\"name\":\"a\",".to_vec(), 400),
        (b"[]".to_vec(), 400),
        (format!("{{\"name\":\"a\",\"data\":{}}}", deep(100_000 / 6)).into_bytes(), 400),
        (vec![b' '; 200 << 10], 413),
    ] {
        let response = world.post("/events", body).await;
        assert_eq!(response.status, status, "{response:?}");
    }
    // The maximum size.
    let full = format!("{{\"name\":\"{}\",\"data\":{}}}", "ä".repeat(100), deep(32));
    assert_eq!(world.post("/events", full).await.status, StatusCode::ACCEPTED);
    let numbers = "{\"name\":\"a\",\"data\":{\"x\":-0.0,\"y\":18446744073709551616,\"z\":1e-400,\"u\":1e999}}";
    assert_eq!(world.post("/events", numbers).await.status, StatusCode::ACCEPTED);
    let many: Value = (0..5_000).map(|n| (format!("{n:x}"), Value::Null)).collect();
    assert_eq!(post_event(&world, &json!({"name": "a", "data": many})).await.status, StatusCode::ACCEPTED);
    for bad in ["/events/ae_1", "/events/msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E"] {
        assert_eq!(world.get(bad).await.status, StatusCode::NOT_FOUND, "{bad}");
    }
    for bad in ["limit=0", "cursor=x", "created_after=soon", &format!("name={}", "x".repeat(201)), "name=a&name=b"] {
        assert_eq!(world.get(&format!("/events?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    world.end().await;
}

#[tokio::test]
async fn numbers_keep_their_notation() {
    let world = World::start().await;
    // Number formats and field order are preserved, in the response and in later reads.
    let data = r#"{"z":19.90,"order":12345678901234567890123,"a":[-0,1E+2,{"rate":0.1000}],"token":"REDACTED"}"#;
    let sent = format!(r#"{{"name":"exact","data":{}}}"#, data.replace("\"REDACTED\"", "7.50"));
    let complete = |response: &TestResponse| String::from_utf8(response.body.to_vec()).unwrap();
    let posted = world.post("/events", sent).await;
    assert!(complete(&posted).contains(data), "{posted:?}");
    let listed = world.get("/events?name=exact").await;
    assert!(complete(&listed).contains(data), "{listed:?}");
    world.end().await;
}

#[tokio::test]
async fn repeated_events_are_idempotent() {
    let [world, other] = World::start_pair().await;
    let event = json!({"name": "a", "user_id": "u", "data": {"x": 1, "token": "t"}});
    let first = with_key(&world, "k", &event).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    assert!(first.headers.get("idempotent-replayed").is_none());
    for at in [&world, &other] {
        // The same request written differently is the same.
        let again = with_key(at, "k", &json!({"data": {"token": "t", "x": 1}, "type": "a", "userId": "u"})).await;
        assert_eq!((again.status, &again.json()), (StatusCode::ACCEPTED, &first.json()));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        // A request that differs only before redaction is another request.
        let changed = with_key(at, "k", &json!({"name": "a", "user_id": "u", "data": {"x": 1, "token": "s"}})).await;
        assert_eq!((changed.status, changed.code().as_str()), (StatusCode::CONFLICT, "idempotency_conflict"));
    }
    // A key is bound to one operation, and a refused request leaves it free.
    assert_eq!(with_key(&world, "free", &json!({})).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(with_key(&world, "free", &event).await.status, StatusCode::ACCEPTED);
    assert_eq!(with_key(&world, "", &event).await.code(), "invalid_idempotency_key");
    // Many at once: one is stored, the others replay it or get 409.
    let together = futures_util::future::join_all((0..16).map(|_| with_key(&world, "many", &event))).await;
    for response in &together {
        let fine = response.status == StatusCode::ACCEPTED || response.code() == "idempotency_in_progress";
        assert!(fine, "{response:?}");
    }
    let ids: std::collections::BTreeSet<String> = together
        .iter()
        .filter(|response| response.status == StatusCode::ACCEPTED)
        .map(|response| response.json()["event"]["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1);
    // After a day the key is free.
    world.services.clock.advance(Duration::from_secs(24 * 3600));
    let later = with_key(&world, "k", &json!({"name": "b"})).await;
    assert_eq!(later.status, StatusCode::ACCEPTED);
    assert_ne!(later.json()["event"]["id"], first.json()["event"]["id"]);
    assert_eq!(world.get("/events").await.json()["events"].as_array().unwrap().len(), 4);
    world.end().await;
    other.end().await;
}

#[tokio::test]
async fn events_are_found_by_each_filter() {
    let world = World::start().await;
    for n in 0..12 {
        let event = json!({"name": (["a", "b"][n % 2]), "user_id": format!("u{}", n % 3), "email": "Ada@example.net",
                           "data": {"n": n}});
        send_event(&world, &event).await;
        world.services.clock.advance(Duration::from_millis(10));
    }
    let found = async |query: &str| {
        let (mut visible, mut next) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/events?limit=2{query}{next}")).await.json();
            visible.extend(page["events"].as_array().unwrap().iter().map(|event| event["data"]["n"].as_u64().unwrap()));
            assert_eq!(page["has_more"], !page["next_cursor"].is_null());
            match page["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return visible,
            }
        }
    };
    assert_eq!(found("").await, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(found("&name=a").await, [10, 8, 6, 4, 2, 0]);
    assert_eq!(found("&user_id=u2&name=b").await, [11, 5]);
    assert_eq!(found("&email=ada@example.NET&user_id=u0").await, [9, 6, 3, 0]);
    assert_eq!(found("&name=none").await, [0u64; 0]);
    let page = world.get("/events?limit=100").await.json();
    let at = |n: usize| page["events"][11 - n]["created_at"].as_str().unwrap().to_owned();
    assert_eq!(found(&format!("&created_after={}&created_before={}", at(3), at(7))).await, [6, 5, 4]);
    // A sending key sees only what it sent.
    let made = world.post("/api-keys", json!({"name": "s", "scope": "sending"}).to_string()).await.json();
    let sending = made["secret"].as_str().unwrap();
    let event = json!({"name": "a", "data": {"n": 99}});
    let own = world.call_as(sending, Method::POST, "/events", &event).await;
    assert_eq!(own.status, StatusCode::ACCEPTED);
    for query in ["", "?name=a"] {
        let visible = world.get_as(sending, &format!("/events{query}")).await.json();
        assert_eq!(visible["events"].as_array().unwrap().len(), 1, "{query}");
    }
    let id = page["events"][0]["id"].as_str().unwrap();
    assert_eq!(world.get_as(sending, &format!("/events/{id}")).await.status, StatusCode::NOT_FOUND);
    let id = own.json()["event"]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get_as(sending, &format!("/events/{id}")).await.status, StatusCode::OK);
    // A session sees all.
    let session = world.session(1).await;
    let visible = world.call_with_session(&session, Method::GET, "/api/events?limit=100", &Value::Null).await.json();
    assert_eq!(visible["events"].as_array().unwrap().len(), 13);
    let response = world.call_with_session(&session, Method::POST, "/api/events", &json!({"name": "c"})).await;
    assert_eq!(response.status, StatusCode::ACCEPTED);
    let forged = world.call_with_session(&session.forged(), Method::POST, "/api/events", &json!({"name": "c"})).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let both = json!({"name": "c", "dry_run": true, "test_send": true, "automation_id": "x"});
    assert_eq!(
        world.call_with_session(&session, Method::POST, "/api/events", &both).await.status,
        StatusCode::BAD_REQUEST
    );
    world.end().await;
}

#[tokio::test]
async fn conversions_are_deduplicated_and_internal_users_excluded() {
    let world = World::start().await;
    let created = |id: &str, email: &str, extra: Value| {
        let mut data = json!({"id": id, "signup_method": "google"});
        data.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"name": "user.created", "email": email, "data": data})
    };
    for event in [
        created("u1", "grace@example.net", json!({"gclid": "g1", "came_from": "friend"})),
        created("u1", "grace@example.net", json!({"gclid": "g2"})),
        created("u1", "other@example.net", json!({})),
        created("u2", "b@example.net", json!({"rnl_ad": "{\"wbraid\":\"w\"}", "value": 5, "currency": "eur"})),
        created("u3", "c@example.net", json!({"invited": true})),
        created("u4", "d@example.net", json!({"internal": true})),
        // The owner, and a plus address of the owner.
        created("u5", "OWNER1@example.com", json!({})),
        created("u6", "owner1+test@example.com", json!({})),
        json!({"name": "subscription.started", "user_id": "u1", "data": {"id": "s1"}}),
        json!({"name": "subscription.started", "user_id": "u1", "data": {"id": "s1"}}),
        json!({"name": "subscription.started", "user_id": "u1", "data": {}}),
    ] {
        send_event(&world, &event).await;
        world.services.clock.advance(Duration::from_millis(5));
    }
    let listed = world.get("/conversions").await.json();
    let summary: Vec<(&str, &str)> = listed["conversions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["subject_id"].as_str().unwrap()))
        .collect();
    assert_eq!(summary, [("subscription", "s1"), ("sign_up", "u2"), ("sign_up", "u1")]);
    let (u2, u1) = (&listed["conversions"][1], &listed["conversions"][2]);
    assert_eq!((&u1["gclid"], &u1["came_from"]), (&json!("g1"), &json!("friend")));
    assert_eq!((&u2["wbraid"], &u2["value"], &u2["currency"]), (&json!("w"), &json!(5.0), &json!("EUR")));
    for (query, subjects) in [
        ("kind=sign_up", vec!["u2", "u1"]),
        ("kind=subscription", vec!["s1"]),
        ("email=GRACE@example.net", vec!["u1"]),
        ("user_id=u1", vec!["s1"]),
        ("source=news", vec![]),
        ("created_before=2001-01-01T00:00:00Z", vec![]),
        ("created_after=2001-01-01T00:00:00Z&kind=sign_up&limit=1", vec!["u2"]),
    ] {
        let page = world.get(&format!("/conversions?{query}")).await.json();
        let found: Vec<_> =
            page["conversions"].as_array().unwrap().iter().map(|entry| entry["subject_id"].as_str().unwrap()).collect();
        assert_eq!(found, subjects, "{query}");
        assert_eq!(page["has_more"].as_bool().unwrap(), query.ends_with("limit=1"), "{query}");
    }
    assert_eq!(world.get("/conversions?kind=gift").await.code(), "validation_error");
    let page = world.get("/conversions?limit=2").await.json();
    let next = format!("/conversions?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(world.get(&next).await.json()["conversions"].as_array().unwrap().len(), 1);
    let counts = world.get("/events/counts?granularity=hour").await.json();
    let totals_of =
        |name: &str| counts["totals"].as_array().unwrap().iter().find(|total| total["name"] == name).unwrap();
    let created = totals_of("user.created");
    let expected = (json!(4), json!(1), json!(3), json!(2));
    let summary = (&created["count"], &created["seats"], &created["excluded"], &created["sign_ups"]);
    assert_eq!(summary, (&expected.0, &expected.1, &expected.2, &expected.3), "{counts}");
    assert_eq!(
        (&totals_of("subscription.started")["count"], &totals_of("subscription.started")["subscriptions"]),
        (&json!(3), &json!(1))
    );
    let entry = world.get("/events/counts?name=user.created,none").await.json();
    assert_eq!((entry["counts"].as_array().unwrap().len(), entry["totals"].as_array().unwrap().len()), (1, 2));
    assert_eq!(world.get("/events?name=user.created&limit=100").await.json()["events"].as_array().unwrap().len(), 8);
    for bad in ["from=x", "granularity=week", "from=2026-01-02&to=2026-01-01", "from=1990-01-01"] {
        assert_eq!(world.get(&format!("/events/counts?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    world.end().await;
}

#[tokio::test]
async fn internal_users_are_known_by_user_id() {
    let world = World::start().await;
    let paid = |user: &str, id: &str| json!({"name": "subscription.started", "user_id": user, "data": {"id": id}});
    for event in [
        // These user ids are known to be internal, …
        json!({"name": "user.created", "user_id": "u1", "email": "owner1+test@example.com"}),
        json!({"name": "user.created", "user_id": "u2", "data": {"internal": true}}),
        paid("u1", "s1"),
        paid("u2", "s2"),
        // … the first one is internal by its address, the second is a customer.
        paid("Owner1+b@example.com", "s3"),
        paid("u3", "s4"),
    ] {
        send_event(&world, &event).await;
        world.services.clock.advance(Duration::from_millis(5));
    }
    let listed = world.get("/conversions").await.json();
    let subjects: Vec<_> = listed["conversions"].as_array().unwrap().iter().map(|entry| &entry["subject_id"]).collect();
    assert_eq!(subjects, [&json!("s4")], "{listed}");
    let counts = world.get("/events/counts?name=subscription.started").await.json();
    assert_eq!((&counts["totals"][0]["count"], &counts["totals"][0]["excluded"]), (&json!(1), &json!(3)), "{counts}");
    world.end().await;
}

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

async fn visit(world: &World, visitor: &str, url: &str, extra: &[(&'static str, &str)]) -> TestResponse {
    let site = world.tenant().await.account().id;
    let body = json!({"site": site, "visitor_id": visitor, "url": url, "referrer": "https://search.example/"});
    let mut request =
        Request::post("/visits").header("host", "test").header("content-type", "text/plain;charset=UTF-8");
    if extra.iter().all(|(name, _)| *name != "user-agent") {
        request = request.header("user-agent", BROWSER);
    }
    for (name, value) in extra {
        request = request.header(*name, *value);
    }
    world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

#[tokio::test]
async fn visits_lead_to_funnels() {
    let world = World::start().await;
    let script =
        world.send(Request::get("/visits.js?site=x").header("host", "test").body(Full::default()).unwrap()).await;
    assert_eq!(script.headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(script.headers["cache-control"], "public, max-age=3600");
    assert!(script.body.len() < 4 << 10 && script.body.starts_with(b"//"));
    for n in 0..4 {
        let url = if n == 0 { "https://a.example/?utm_source=News" } else { "https://a.example/" };
        let response = visit(&world, &format!("visitor-{n}"), url, &[]).await;
        assert_eq!(response.status, StatusCode::ACCEPTED, "{response:?}");
        assert_eq!(response.headers["access-control-allow-origin"], "*");
    }
    visit(&world, "visitor-1", "https://a.example/again", &[]).await;
    // Bots, and visitors who send GPC or DNT, get 202 and are not counted.
    visit(&world, "visitor-8", "https://a.example/", &[("user-agent", "curl/8")]).await;
    visit(&world, "visitor-9", "https://a.example/", &[("sec-gpc", "1")]).await;
    visit(&world, "visitor-9", "https://a.example/", &[("dnt", "1")]).await;
    let counts = world.get("/visits").await.json();
    assert_eq!(counts["totals"][0]["source"], "news");
    assert_eq!((&counts["totals"][0]["visits"], &counts["totals"][0]["visitors"]), (&json!(1), &json!(1)));
    assert_eq!((&counts["totals"][1]["visits"], &counts["totals"][1]["visitors"]), (&json!(4), &json!(3)), "{counts}");
    world.services.clock.advance(Duration::from_millis(5));
    for n in 0..3 {
        let data = json!({"id": format!("u{n}"), "visitor_id": format!("visitor-{n}"), "signup_method": (["x", "y"][n % 2]),
                          "internal": n == 2});
        send_event(&world, &json!({"name": "user.created", "data": data})).await;
    }
    world.services.clock.advance(Duration::from_millis(5));
    send_event(&world, &json!({"name": "user.activated", "user_id": "u0"})).await;
    send_event(&world, &json!({"name": "subscription.started", "user_id": "u0", "data": {"id": "s0"}})).await;
    let steps = "steps=visit,user.created,user.activated,subscription.started";
    let funnel = world.get(&format!("/funnels?{steps}&group_by=source")).await.json()["funnel"].clone();
    let count_people = |steps: &Value| -> Vec<u64> {
        steps.as_array().unwrap().iter().map(|step| step["people"].as_u64().unwrap()).collect()
    };
    // The third person is one of the customer's own people.
    assert_eq!(count_people(&funnel["steps"]), [3, 2, 1, 1], "{funnel}");
    assert_eq!(
        (&funnel["steps"][1]["of_first_bp"], &funnel["steps"][2]["of_previous_bp"]),
        (&json!(6_666), &json!(5_000))
    );
    assert_eq!(funnel["groups"][0]["group"], "search.example");
    assert_eq!(count_people(&funnel["groups"][0]["steps"]), [2, 1, 0, 0]);
    assert_eq!(count_people(&funnel["groups"][1]["steps"]), [1, 1, 1, 1]);
    let by_method = world.get("/funnels?steps=user.created,user.activated&group_by=signup_method").await.json();
    assert_eq!(by_method["funnel"]["groups"][0]["group"], "x");
    let counts = world.get("/visits").await.json();
    assert_eq!((&counts["totals"][0]["sign_ups"], &counts["totals"][0]["subscriptions"]), (&json!(1), &json!(1)));
    assert_eq!(world.get("/conversions").await.json()["conversions"][0]["source"], "news");
    world.end().await;
}

#[tokio::test]
async fn invalid_funnels_are_refused() {
    let world = World::start().await;
    for bad in
        ["", "steps=", "steps=a,a", "steps=a,b,c,d,e,f,g,h,i,j,k", "steps=a&group_by=b", "steps=a&from=2020-01-01"]
    {
        assert_eq!(world.get(&format!("/funnels?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    world.end().await;
}

#[tokio::test]
async fn public_visit_reports_are_limited() {
    let world = World::start().await;
    let post_visit = async |body: String| {
        let request = Request::post("/visits").header("host", "test").header("user-agent", BROWSER);
        world.send(request.body(Full::new(body.into())).unwrap()).await
    };
    let unknown = json!({"site": "acct_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "visitor_id": "visitor-0"});
    assert_eq!(post_visit(unknown.to_string()).await.status, StatusCode::NOT_FOUND);
    for (body, status) in [
        ("{}".to_owned(), 400),
        ("x".to_owned(), 400),
        (json!({"site": 1, "visitor_id": []}).to_string(), 400),
        ("[".repeat(8_000), 400),
        (" ".repeat(9_000), 413),
    ] {
        assert_eq!(post_visit(body).await.status, status);
    }
    let mut refused = 0;
    for _ in 0..40 {
        let response = visit(&world, "visitor-0", "https://a.example/", &[]).await;
        refused += usize::from(response.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused > 0, "one address is rate-limited");
    world.end().await;
}
