//! Suppressions and opt-outs over HTTP: list, add, remove, check, import, export.

use std::time::Duration;

use crate::world::{TestResponse, World};
use accounts::suppressions::SuppressionService;
use http::{Method, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use model::suppression::{SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

async fn call(world: &World, method: Method, path: &str) -> TestResponse {
    let request = world.request(method, path).body(Full::default()).unwrap();
    world.send(request).await
}

async fn post(world: &World, path: &str, body: Value) -> TestResponse {
    world.post(path, body.to_string()).await
}

async fn import(world: &World, csv: &str) -> TestResponse {
    let request = world.request(Method::POST, "/suppressions/import").header("content-type", "text/csv");
    world.send(request.body(Full::from(csv.to_owned())).unwrap()).await
}

/// Records a suppression as the service does.
async fn suppress(world: &World, email: &str, reason: SuppressionReason) {
    let tenant = world.tenant().await;
    let grounds =
        [SuppressionCause::new(email.parse::<SuppressionTarget>().unwrap(), reason, SuppressionSource::System)];
    SuppressionService::new(&world.services).suppress(tenant.account().id, &grounds, &|_, _| {}).await.unwrap();
}

fn emails(response: &Value) -> Vec<&str> {
    response["suppressions"].as_array().unwrap().iter().map(|s| s["email"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn suppression_is_added_shown_and_removed() {
    let world = World::start().await;
    let added =
        post(&world, "/suppressions", json!({"email": "Ada@Example.NET", "note": "asked by phone", "x": 1})).await;
    assert_eq!(added.status, StatusCode::OK);
    let added = added.json();
    let suppression = &added["suppression"];
    assert!(suppression["id"].as_str().unwrap().starts_with("sup_"));
    assert_eq!(suppression["email"], "ada@example.net");
    assert_eq!((&suppression["reason"], &suppression["source"]), (&json!("manual"), &json!("api")));
    assert_eq!(
        (&suppression["note"], &suppression["expires_at"], &suppression["detail"]),
        (&json!("asked by phone"), &Value::Null, &Value::Null)
    );
    assert_eq!(added["warnings"].as_array().unwrap().len(), 1);
    let again = post(&world, "/suppressions", json!({"email": "ada@example.net"})).await.json();
    assert_eq!(again["suppression"]["id"], suppression["id"], "it existed already");
    for name in ["ADA@example.net", "ada%40example.net", suppression["id"].as_str().unwrap()] {
        assert_eq!(world.get(&format!("/suppressions/{name}")).await.json()["suppression"], *suppression);
    }
    let removed = call(&world, Method::DELETE, "/suppressions/ada@example.net").await;
    assert_eq!((removed.status, &removed.json()["ok"]), (StatusCode::OK, &json!(true)));
    for name in ["ada@example.net", suppression["id"].as_str().unwrap(), "nonsense", "sup_x", "%ff"] {
        assert_eq!(world.get(&format!("/suppressions/{name}")).await.status, StatusCode::NOT_FOUND, "{name}");
        let removed = call(&world, Method::DELETE, &format!("/suppressions/{name}")).await;
        assert_eq!(removed.status, StatusCode::NOT_FOUND, "{name}");
    }
    world.end().await;
}

#[tokio::test]
async fn existing_suppression_is_extended_with_a_warning() {
    let world = World::start().await;
    let add = async |extra: Value| {
        let mut body = json!({"email": "Ada@example.net"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        post(&world, "/suppressions", body).await.json()
    };
    let (soon, later) = ("2098-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z");
    let first = add(json!({"expires_at": soon})).await;
    assert!(first.get("warnings").is_none(), "{first}");
    let again = add(json!({"expires_at": soon})).await;
    assert_eq!((&again["suppression"], again.get("warnings")), (&first["suppression"], None));
    for (ends, until) in [(json!(later), json!(later)), (json!(soon), json!(later)), (Value::Null, Value::Null)] {
        let repeated = add(json!({"expires_at": ends})).await;
        assert_eq!(repeated["suppression"]["expires_at"], until);
        assert_eq!(repeated["suppression"]["id"], first["suppression"]["id"]);
        let words = if until.is_null() { "permanently" } else { later };
        assert!(repeated["warnings"][0].as_str().unwrap().contains(words), "{repeated}");
    }
    let noted = add(json!({"note": "by phone"})).await;
    assert!(noted["suppression"]["note"].is_null() && noted["warnings"][0].is_string(), "{noted}");
    let many = json!({"emails": ["ADA@example.net", "b@example.net"], "expires_at": later});
    let data = post(&world, "/suppressions", many).await.json()["data"].clone();
    assert_eq!((&data[0]["status"], &data[1]["status"]), (&json!("exists"), &json!("created")));
    assert!(data[0]["warnings"][0].as_str().unwrap().contains("permanently") && data[1].get("warnings").is_none());
    world.end().await;
}

/// A suppression by a signed-in user has the source `dashboard`, not `api`.
#[tokio::test]
async fn session_suppressions_have_source_dashboard() {
    let world = World::start().await;
    let session = world.session(1).await;
    let post = async |path: &str, body: Value| world.call_with_session(&session, Method::POST, path, &body).await;
    let suppression = post("/api/suppressions", json!({"email": "a@example.net"})).await;
    assert_eq!(suppression.json()["suppression"]["source"], "dashboard", "{suppression:?}");
    let two = post("/api/category-opt-outs", json!({"email": "a@example.net", "category": "product"})).await;
    assert_eq!(two.json()["category_opt_out"]["source"], "dashboard", "{two:?}");
    let made = post("/api/templates", json!({"name": "n", "subject": "s", "text": "t"})).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let (forged, body) = (session.forged(), json!({"email": "b@example.net"}));
    let refused = world.call_with_session(&forged, Method::POST, "/api/suppressions", &body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let path = "/api/suppressions?source=dashboard";
    let listed = world.call_with_session(&session, Method::GET, path, &Value::Null).await.json();
    assert_eq!(emails(&listed), ["a@example.net"]);
    world.end().await;
}

#[tokio::test]
async fn bulk_add_returns_an_entry_for_each() {
    let world = World::start().await;
    let many = json!({"emails": ["a@example.net", "nobody", "@example.org", "A@example.net", 7], "expires_at": "2099-01-01T00:00:00Z"});
    let added = post(&world, "/suppressions", many).await.json();
    let column = |name: &str| -> Vec<Value> {
        added["data"].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect()
    };
    assert_eq!(column("status"), ["created", "failed", "created", "exists", "failed"]);
    assert_eq!(column("index"), [0, 1, 2, 3, 4]);
    assert_eq!(added["data"][1]["error"]["code"], "validation_error");
    assert_eq!((&added["data"][1]["id"], &added["data"][0]["id"]), (&Value::Null, &added["data"][3]["id"]));
    let suppression = world.get("/suppressions/a@example.net").await.json();
    assert_eq!(suppression["suppression"]["expires_at"], "2099-01-01T00:00:00.000Z");
    let too_many: Vec<String> = (0..1_001).map(|n| format!("a{n}@example.net")).collect();
    for bad in [
        json!({}),
        json!({"email": "nobody"}),
        json!({"emails": []}),
        json!({"emails": too_many}),
        json!({"email": "a@example.net", "emails": ["b@example.net"]}),
        json!({"email": "a@example.net", "expires_at": "2001-01-01T00:00:00Z"}),
        json!({"email": "a@example.net", "expires_at": "soon"}),
        json!({"email": "a@example.net", "note": "x".repeat(501)}),
        json!({"EmailAddress": "a@example.net"}),
    ] {
        let response = post(&world, "/suppressions", bad.clone()).await;
        assert_eq!((response.status, response.code()), (StatusCode::BAD_REQUEST, "validation_error".into()), "{bad}");
    }
    let largest: Vec<String> = (0..1_000).map(|n| format!("a{n}@example.net")).collect();
    assert_eq!(post(&world, "/suppressions", json!({"emails": largest})).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn list_is_filtered_paged_and_omits_expired() {
    let world = World::start().await;
    for n in 0..5 {
        suppress(&world, &format!("hard{n}@example.net"), SuppressionReason::HardBounce).await;
        suppress(&world, &format!("soft{n}@example.net"), SuppressionReason::SoftBounce).await;
    }
    world.services.clock.advance(Duration::from_millis(1));
    post(&world, "/suppressions", json!({"email": "@example.org"})).await;
    let all = world.get("/suppressions").await.json();
    assert_eq!((emails(&all).len(), &all["has_more"], &all["next_cursor"]), (11, &json!(false), &Value::Null));
    assert_eq!(emails(&all)[0], "@example.org", "newest first");
    let mut collected = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("/suppressions?limit=3&reason=hard_bounce,manual&cursor={cursor}")).await.json();
        collected.extend(emails(&page).into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(
        collected,
        [
            "@example.org",
            "hard4@example.net",
            "hard3@example.net",
            "hard2@example.net",
            "hard1@example.net",
            "hard0@example.net"
        ]
    );
    let by_source = world.get("/suppressions?source=api").await.json();
    assert_eq!(emails(&by_source), ["@example.org"]);
    let by_email = world.get("/suppressions?email=SOFT1@example.net").await.json();
    assert_eq!(emails(&by_email), ["soft1@example.net"]);
    assert!(emails(&world.get("/suppressions?email=soft1@example.net&reason=manual").await.json()).is_empty());
    assert!(emails(&world.get("/suppressions?created_after=2099-01-01T00:00:00Z").await.json()).is_empty());
    assert_eq!(emails(&world.get("/suppressions?created_before=2099-01-01T00:00:00Z").await.json()).len(), 11);
    for bad in ["reason=x", "source=x", "created_after=x", "email=x", "limit=0"] {
        assert_eq!(world.get(&format!("/suppressions?{bad}")).await.code(), "validation_error", "{bad}");
    }
    assert_eq!(world.get("/suppressions?cursor=xyz").await.code(), "invalid_cursor");
    world.services.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(emails(&world.get("/suppressions").await.json()).len(), 6, "soft-bounce suppressions have expired");
    assert!(emails(&world.get("/suppressions?email=soft1@example.net").await.json()).is_empty());
    assert_eq!(world.get("/suppressions/soft1@example.net").await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn complaint_removal_needs_force() {
    let world = World::start().await;
    suppress(&world, "angry@example.net", SuppressionReason::Complaint).await;
    let refused = call(&world, Method::DELETE, "/suppressions/angry@example.net").await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "conflict".into()));
    let bad = call(&world, Method::DELETE, "/suppressions/angry@example.net?force=maybe").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let forced = call(&world, Method::DELETE, "/suppressions/angry@example.net?force=true").await;
    assert_eq!(forced.json()["ok"], true);
    world.end().await;
}

#[tokio::test]
async fn check_returns_suppressions_and_opt_outs() {
    let world = World::start().await;
    suppress(&world, "soft@example.net", SuppressionReason::SoftBounce).await;
    post(&world, "/suppressions", json!({"email": "@example.org"})).await;
    post(&world, "/category-opt-outs", json!({"email": "new@example.net", "category": "newsletter"})).await;
    let body = json!({"emails": ["Soft@example.net", "x@example.org", "new@example.net", "free@example.net"]});
    let data = post(&world, "/suppressions/check", body).await.json()["data"].clone();
    let column = |name: &str| -> Vec<Value> { data.as_array().unwrap().iter().map(|e| e[name].clone()).collect() };
    assert_eq!(column("suppressed"), [true, true, false, false]);
    assert_eq!(column("reason"), [json!("soft_bounce"), json!("manual"), Value::Null, Value::Null]);
    assert_eq!(column("categories"), [json!([]), json!([]), json!(["newsletter"]), json!([])]);
    assert!(data[0]["expires_at"].is_string() && data[1]["expires_at"].is_null());
    // An invalid entry does not affect the others.
    let mixed = json!({"emails": ["nobody", "Soft@example.net"]});
    let data = post(&world, "/suppressions/check", mixed).await.json()["data"].clone();
    assert_eq!((&data[0]["email"], &data[0]["suppressed"]), (&json!("nobody"), &json!(false)));
    assert_eq!(data[0]["error"]["code"], "validation_error");
    assert!(data[1]["suppressed"] == true && data[1].get("error").is_none());
    assert!(data[0]["error"]["details"]["fields"]["email"].is_string());
    for bad in [json!({}), json!({"emails": ["a@example.net", 7]})] {
        assert_eq!(post(&world, "/suppressions/check", bad).await.code(), "validation_error");
    }
    world.end().await;
}

/// No exported cell starts a formula, and an import restores the original text.
#[tokio::test]
async fn exports_contain_no_formulas() {
    let world = World::start().await;
    let formulas = ["=cmd", "+1", "-1", "@SUM(A1)"];
    for (number, note) in formulas.iter().enumerate() {
        let body = json!({"email": format!("{}{number}@example.net", &note[..1]), "note": note});
        // A local part cannot begin with `@`.
        let body = if number < 3 { body } else { json!({"email": format!("{number}@example.net"), "note": note}) };
        let made = post(&world, "/suppressions", body).await;
        assert!(made.status.is_success(), "{made:?}");
    }
    post(&world, "/suppressions", json!({"email": "@domain.example"})).await;
    let exported = world.get("/suppressions/export").await;
    let text = String::from_utf8(exported.body.to_vec()).unwrap();
    let rows: Vec<_> = model::csv::CsvReader::new(&text).skip(1).filter_map(|row| row.fields).collect();
    assert!(rows.len() >= formulas.len(), "{text}");
    for cell in rows.iter().flatten() {
        assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}: {text}");
    }
    assert!(text.contains(",'=0@example.net,") && text.contains(",'+1@example.net,"), "{text}");
    let again = post(&world, "/suppressions/import", json!({"csv": text})).await.json()["import"].clone();
    accounts::suppression_import::process_open_imports(
        &SuppressionService::new(&world.services),
        Some(&world.accounts.limits.storage),
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    let path = format!("/suppressions/import/{}", again["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["import"]["counts"]["exists"], rows.len());
    world.end().await;
}

#[tokio::test]
async fn a_list_is_imported_in_the_background_and_exported_again() {
    let world = World::start().await;
    let mut csv = "EmailAddress,Reason,LastUpdateTime\r\n".to_owned();
    for n in 0..1_300 {
        csv.push_str(&format!("a{n}@example.net,{},x\r\n", if n % 2 == 0 { "BOUNCE" } else { "COMPLAINT" }));
    }
    csv.push_str("nobody,BOUNCE,x\r\n");
    let started = import(&world, &csv).await.json()["import"].clone();
    assert_eq!((&started["status"], &started["counts"]["total"]), (&json!("queued"), &json!(1_301)));
    let path = format!("/suppressions/import/{}", started["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["import"]["status"], "queued");
    accounts::suppression_import::process_open_imports(
        &SuppressionService::new(&world.services),
        Some(&world.accounts.limits.storage),
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    let done = world.get(&path).await.json()["import"].clone();
    assert_eq!(done["status"], "completed");
    let counts = json!({"total": 1_301, "processed": 1_301, "created": 1_300, "exists": 0, "invalid": 1, "refused": 0});
    assert_eq!((&done["counts"], &done["errors"][0]["line"]), (&counts, &json!(1_302)));
    assert_eq!(world.get("/suppressions/a1@example.net").await.json()["suppression"]["reason"], "complaint");
    let exported = world.get("/suppressions/export?reason=hard_bounce").await;
    assert_eq!(exported.headers["content-type"], "text/csv; charset=utf-8");
    assert!(!exported.headers.contains_key("content-length"), "created while the list is read");
    let text = String::from_utf8(exported.body.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 651);
    assert!(text.starts_with("id,email,reason,source,"), "{text}");
    let other = world.account(2, ApiKeyScope::Full).await;
    let foreign = World::get_as(&world, &other, "/suppressions/export").await;
    assert_eq!(String::from_utf8(foreign.body.to_vec()).unwrap().lines().count(), 1);
    // The import restores the exported list.
    let again = post(&world, "/suppressions/import", json!({"csv": text})).await.json()["import"].clone();
    accounts::suppression_import::process_open_imports(
        &SuppressionService::new(&world.services),
        Some(&world.accounts.limits.storage),
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    let path = format!("/suppressions/import/{}", again["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["import"]["counts"]["exists"], 650);
    assert_eq!(world.get_as(&other, &path).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn a_dry_run_of_an_import_writes_nothing() {
    let world = World::start().await;
    post(&world, "/suppressions", json!({"email": "old@example.net"})).await;
    let mut csv =
        "email,reason\nnew@example.net,bounce\nOLD@example.net,import\nnobody,\nNew@example.net,bounce\n".to_owned();
    let path = "/suppressions/import/dry-run";
    let found = post(&world, path, json!({"csv": csv})).await.json()["dry_run"].clone();
    let counts = json!({"total": 4, "created": 1, "exists": 2, "repeated": 1, "invalid": 1, "refused": 0});
    assert_eq!(found["counts"], counts);
    let lines: Vec<_> =
        found["lines"].as_array().unwrap().iter().map(|line| [&line["line"], &line["result"]]).collect();
    assert_eq!(json!(lines), json!([[2, "created"], [3, "exists"], [5, "repeated"]]));
    assert_eq!(
        (&found["lines"][0]["email"], &found["lines"][0]["reason"], &found["lines"][1]["existing_reason"]),
        (&json!("new@example.net"), &json!("hard_bounce"), &json!("manual"))
    );
    let left_out = &found["left_out"][0];
    assert_eq!((&left_out["line"], &left_out["result"]), (&json!(4), &json!("invalid")));
    assert!(left_out["message"].as_str().unwrap().contains("not an address"), "{left_out}");
    for n in 0..1_200 {
        csv.push_str(&format!("a{n}@example.net,\n"));
    }
    let request = world.request(Method::POST, path).header("content-type", "text/csv");
    let many = world.send(request.body(Full::from(csv.clone())).unwrap()).await.json()["dry_run"].clone();
    assert_eq!((&many["counts"]["created"], many["lines"].as_array().unwrap().len()), (&json!(1_201), 100));
    assert_eq!(world.get("/suppressions").await.json()["suppressions"].as_array().unwrap().len(), 1);
    assert_eq!(world.get("/suppressions/import").await.json()["imports"], json!([]));
    assert_eq!(post(&world, path, json!({"csv": "name\nAda"})).await.code(), "validation_error");

    // The import does what the dry run says.
    import(&world, &csv).await;
    import(&world, "b@example.net").await;
    accounts::suppression_import::process_open_imports(
        &SuppressionService::new(&world.services),
        Some(&world.accounts.limits.storage),
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    let imports = world.get("/suppressions/import?limit=1").await.json();
    assert_eq!((&imports["imports"][0]["counts"]["created"], &imports["has_more"]), (&json!(1), &json!(true)));
    let next = format!("/suppressions/import?limit=1&cursor={}", imports["next_cursor"].as_str().unwrap());
    let first = world.get(&next).await.json();
    assert_eq!(first["imports"][0]["counts"]["created"], many["counts"]["created"], "{first}");
    assert_eq!((&first["imports"][0]["counts"]["exists"], &first["next_cursor"]), (&json!(2), &Value::Null));
    let other = world.account(2, ApiKeyScope::Full).await;
    assert_eq!(world.get_as(&other, "/suppressions/import").await.json()["imports"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn invalid_list_is_refused() {
    let world = World::start().await;
    let none = import(&world, "name,phone\nAda,1").await;
    assert_eq!((none.status, none.code()), (StatusCode::BAD_REQUEST, "validation_error".into()));
    assert!(none.json()["error"]["message"].as_str().unwrap().contains("name, phone"));
    assert_eq!(import(&world, "").await.code(), "validation_error");
    assert_eq!(post(&world, "/suppressions/import", json!({})).await.code(), "validation_error");
    assert_eq!(post(&world, "/suppressions/import", json!({"csv": 1})).await.code(), "validation_error");
    let request = world.request(Method::POST, "/suppressions/import").header("content-type", "text/plain");
    let other = world.send(request.body(Full::from("a@example.net")).unwrap()).await;
    assert_eq!(other.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for _ in 0..10 {
        assert_eq!(import(&world, "a@example.net").await.status, StatusCode::OK);
    }
    assert_eq!(import(&world, "a@example.net").await.code(), "conflict", "ten imports are unfinished");
    for path in ["/suppressions/import/imp_x", "/suppressions/import/x"] {
        assert_eq!(world.get(path).await.status, StatusCode::NOT_FOUND);
    }
    world.end().await;
}

#[tokio::test]
async fn opt_outs_are_created_listed_and_removed() {
    let world = World::start().await;
    let made = post(&world, "/category-opt-outs", json!({"email": "Ada@example.net", "category": "product"})).await;
    let suppression = made.json()["category_opt_out"].clone();
    assert!(suppression["id"].as_str().unwrap().starts_with("opt_"));
    assert_eq!((&suppression["category_label"], &suppression["source"]), (&json!("Product updates"), &json!("api")));
    let again = post(&world, "/category-opt-outs", json!({"email": "ada@example.net", "category": "product"})).await;
    assert_eq!(again.json()["category_opt_out"]["id"], suppression["id"]);
    for n in 0..4 {
        let body = json!({"email": format!("a{n}@example.net"), "category": "newsletter"});
        post(&world, "/category-opt-outs", body).await;
    }
    let count = |response: TestResponse| response.json()["category_opt_outs"].as_array().unwrap().len();
    assert_eq!(count(world.get("/category-opt-outs").await), 5);
    assert_eq!(count(world.get("/category-opt-outs?category=newsletter").await), 4);
    assert_eq!(count(world.get("/category-opt-outs?email=ADA@example.net").await), 1);
    let first = world.get("/category-opt-outs?limit=2").await.json();
    let rest = format!("/category-opt-outs?cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(count(world.get(&rest).await), 3);
    let path = format!("/category-opt-outs/{}", suppression["id"].as_str().unwrap());
    assert_eq!(call(&world, Method::DELETE, &path).await.json(), json!({"ok": true}));
    assert_eq!(call(&world, Method::DELETE, &path).await.status, StatusCode::NOT_FOUND);
    for bad in [
        json!({"email": "a@example.net", "category": "transactional"}),
        json!({"email": "@example.net", "category": "product"}),
        json!({"category": 1}),
    ] {
        assert_eq!(post(&world, "/category-opt-outs", bad).await.code(), "validation_error");
    }
    assert_eq!(world.get("/category-opt-outs?category=x").await.code(), "validation_error");
    world.end().await;
}

#[tokio::test]
async fn suppressions_are_isolated_and_need_a_full_key() {
    let world = World::start().await;
    let id = post(&world, "/suppressions", json!({"email": "a@example.net"})).await.json()["suppression"]["id"].clone();
    let other = world.account(2, ApiKeyScope::Full).await;
    assert!(emails(&world.get_as(&other, "/suppressions").await.json()).is_empty());
    for name in ["a@example.net", id.as_str().unwrap()] {
        assert_eq!(world.get_as(&other, &format!("/suppressions/{name}")).await.status, StatusCode::NOT_FOUND);
    }
    let sending = world.account(3, ApiKeyScope::Sending).await;
    for path in ["/suppressions", "/suppressions/export", "/category-opt-outs", "/suppressions/a@example.net"] {
        assert_eq!(world.get_as(&sending, path).await.code(), "forbidden", "{path}");
    }
    world.end().await;
}
