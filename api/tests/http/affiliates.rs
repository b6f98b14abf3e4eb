//! `…/affiliates`: partners and their links.

use http::{Method, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::world::{TestResponse, World};

/// Creates a partner.
pub(crate) async fn partner(world: &World, body: Value) -> Value {
    let made = world.call(Method::POST, "/affiliates", &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    made.json()["affiliate"].clone()
}

/// A call with additional header fields.
pub(crate) async fn with_headers(
    world: &World,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> TestResponse {
    let mut request = world.request(method, path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

/// All pages of a list.
pub(crate) async fn all(world: &World, path: &str) -> Vec<Value> {
    let (mut found, mut next) = (Vec::new(), String::new());
    let glue = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = world.get(&format!("{path}{glue}limit=17{next}")).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        let page = page.json();
        found.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => {
                assert_eq!(page["has_more"], json!(false));
                return found;
            }
        }
    }
}

#[tokio::test]
async fn requests_without_a_program_are_404() {
    let world = World::start().await;
    let session = world.session(1).await;
    let everywhere = async |about: &str| {
        for operation in api::affiliate::operations() {
            let path = operation.path.replace("{id}", "x").replace("{link_id}", "x");
            // Responses to browsers do not reveal whether an account has a program.
            if path.starts_with(PROGRAM) || operation.tag == "affiliate_visits" {
                continue;
            }
            let response = with_headers(&world, operation.method, &path, &[], &json!("wrong")).await;
            assert_eq!(
                (response.status, response.code()),
                (StatusCode::NOT_FOUND, "not_found".to_owned()),
                "{about} {path}"
            );
        }
    };
    everywhere("none").await;
    let enable = json!({"website_url": "https://shop.example", "currency": "usd"});
    owner(&world, &session, Method::POST, "", enable).await;
    everywhere("enabled").await;
    owner(&world, &session, Method::PUT, "/processor", json!({"webhook_secrets": ["whsec_one"]})).await;
    everywhere("without a campaign").await;
    owner(&world, &session, Method::PUT, "/campaigns/default", json!({})).await;
    // The program is not live: only referrals are refused.
    assert_eq!(world.get("/affiliates").await.status, StatusCode::OK);
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let referral = json!({"affiliate_id": ada["id"], "email": "grace@example.net"});
    let refused = world.call(Method::POST, "/affiliate-referrals", &referral).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    world.end().await;
}

#[tokio::test]
async fn partners_are_created() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let body = json!({
        "email": "Ada@Example.org", "first_name": " Ada ", "last_name": "Lovelace", "company": "", "country": "gb",
        "paypal_email": "pay@example.org", "tags": ["a", "b", "a"], "notes": "met in\nLondon", "send_invite": false,
    });
    let made = world.call(Method::POST, "/affiliates", &body).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let ada = made.json()["affiliate"].clone();
    for (field, value) in [
        ("object", json!("affiliate")),
        ("first_name", json!("Ada")),
        ("company", Value::Null),
        ("country", json!("GB")),
        ("status", json!("active")),
        ("source", json!("api")),
        ("tags", json!(["a", "b"])),
        ("payout_method", json!("paypal")),
        ("payout_ready", json!(true)),
        ("parent_affiliate_id", Value::Null),
    ] {
        assert_eq!(ada[field], value, "{field}");
    }
    assert!(ada["approved_at"].is_string() && ada.get("notes").is_none());
    assert_eq!(ada["links"][0]["token"], json!("ada-lovelace"));
    assert_eq!(ada["links"][0]["url"], json!("https://shop.example/?via=ada-lovelace"));
    assert_eq!(ada["links"][0]["is_primary"], json!(true));
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["affiliate"], ada);
    let second = partner(&world, json!({"email": "l@example.org", "first_name": "Ada", "last_name": "Lovelace"})).await;
    assert_eq!(second["links"][0]["token"], json!("ada-lovelace-2"));
    world.end().await;
}

#[tokio::test]
async fn partners_are_updated() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let body = json!({"email": "ada@example.org", "first_name": "Ada", "last_name": "Lovelace", "notes": "n",
                      "paypal_email": "pay@example.org"});
    let ada = partner(&world, body).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    let second = partner(&world, json!({"email": "l@example.org"})).await;
    let change = json!({
        "last_name": null, "company": "Engines", "website": "https://ada.example", "tags": [], "notes": null,
        "parent_affiliate_id": second["id"], "email_opt_out": true, "token": "Countess",
        "commission_override": {"commission_type": "percent", "commission_bps": 4000},
        "postback_url": "http://127.0.0.1:9/p", "colour": "blue",
    });
    let changed = world.call(Method::PATCH, &path, &change).await;
    assert_eq!((changed.status, &changed.headers["etag"]), (StatusCode::OK, &"\"2\"".parse().unwrap()));
    assert_eq!(changed.json()["warnings"], json!(["`colour` is not a known field and was ignored"]));
    let now = changed.json()["affiliate"].clone();
    assert_eq!((&now["last_name"], &now["company"]), (&Value::Null, &json!("Engines")));
    assert_eq!((&now["links"][0]["token"], &now["email"]), (&json!("Countess"), &ada["email"]));
    assert_eq!(now["parent_affiliate_id"], second["id"]);
    let inside = owner(&world, &session, Method::GET, &path.replace("/affiliates", "/partners"), json!({})).await;
    let inside = inside.json();
    assert_eq!(inside["commission_override"], json!({"commission_type": "percent", "commission_bps": 4000}));
    assert_eq!((&inside["notes"], &inside["payout_destination"]), (&Value::Null, &json!("pay@example.org")));
    assert_eq!((&inside["postback_url"], &inside["email_opt_out"]), (&json!("http://127.0.0.1:9/p"), &json!(true)));
    assert!(inside["postback_secret"].as_str().unwrap().starts_with("whsec_"));
    // The old token no longer works, and is free.
    partner(&world, json!({"email": "t@example.org", "token": "ada-lovelace"})).await;
    let duplicate = world.call(Method::PATCH, &path, &json!({"token": "ADA-lovelace"})).await;
    assert_eq!(duplicate.status, StatusCode::CONFLICT, "{duplicate:?}");
    world.end().await;
}

#[tokio::test]
async fn deleted_recruiter_is_removed_from_recruits() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let parent = partner(&world, json!({"email": "ada@example.org"})).await;
    let recruit = partner(&world, json!({"email": "l@example.org"})).await;
    let path = format!("/affiliates/{}", recruit["id"].as_str().unwrap());
    let set = world.call(Method::PATCH, &path, &json!({"parent_affiliate_id": parent["id"]})).await;
    assert_eq!(set.json()["affiliate"]["parent_affiliate_id"], parent["id"]);
    let parent_path = format!("/affiliates/{}", parent["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &parent_path, &json!({})).await.status, StatusCode::OK);
    let listed = world.get("/affiliates").await.json()["data"][0].clone();
    let changed = world.call(Method::PATCH, &path, &json!({"company": "Engines"})).await.json();
    for view in [world.get(&path).await.json()["affiliate"].clone(), listed, changed["affiliate"].clone()] {
        assert_eq!((&view["id"], &view["parent_affiliate_id"]), (&recruit["id"], &Value::Null), "{view}");
    }
    world.end().await;
}

#[tokio::test]
async fn create_refuses_fields_of_other_operations() {
    let world = World::start().await;
    set_up(&world, 1).await;
    for (field, value) in [
        ("parent_affiliate_id", json!("aff_x")),
        ("postback_url", Value::Null),
        ("email_opt_out", json!(true)),
        ("commission_override", json!({"commission_type": "percent", "commission_bps": 1})),
    ] {
        let mut body = json!({"email": "ada@example.org", "send_invite": false});
        body[field] = value;
        let refused = world.call(Method::POST, "/affiliates", &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
        let reason = refused.json()["error"]["details"]["fields"][field].clone();
        assert_eq!(reason, "is not accepted here; set it with `PATCH /affiliates/{id}`", "{field}");
    }
    // A token generated from a name uses base letters.
    let named = json!({"email": "l@example.org", "first_name": "Łukasz", "last_name": "Żak"});
    assert_eq!(partner(&world, named).await["links"][0]["token"], "lukasz-zak");
    world.end().await;
}

#[tokio::test]
async fn invalid_changes_are_refused() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    let second = partner(&world, json!({"email": "l@example.org"})).await;
    world.call(Method::PATCH, &path, &json!({"parent_affiliate_id": second["id"]})).await;
    let loop_ = json!({"parent_affiliate_id": ada["id"]});
    let second_path = format!("/affiliates/{}", second["id"].as_str().unwrap());
    for (path, body, field) in [
        (&second_path, loop_, "parent_affiliate_id"),
        (&path, json!({"parent_affiliate_id": ada["id"]}), "parent_affiliate_id"),
        (&path, json!({"parent_affiliate_id": "aff_x"}), "parent_affiliate_id"),
        (&path, json!({"campaign_id": "nothing"}), "campaign_id"),
        (&path, json!({"country": "England"}), "country"),
        (&path, json!({"tags": vec!["t"; 21]}), "tags"),
        (&path, json!({"tags": [""]}), "tags"),
        (&path, json!({"postback_url": "ftp://example.org"}), "postback_url"),
        (&path, json!({"commission_override": {"commission_bps": 10_001}}), "commission_override.commission_bps"),
        (&path, json!({"commission_override": {"commission_type": "flat"}}), "commission_override.commission_type"),
        (&path, json!({"commission_override": 1}), "commission_override"),
        (&path, json!({"token": "a b"}), "token"),
        // These fields are accepted on creation, or have an operation of their own.
        (&path, json!({"status": "suspended"}), "status"),
        (&path, json!({"email": "x@example.org"}), "email"),
        (&path, json!({"paypal_email": null}), "paypal_email"),
        (&path, json!({"send_invite": true}), "send_invite"),
        (&path, json!({"notes": "x".repeat(10_001)}), "notes"),
    ] {
        let refused = world.call(Method::PATCH, path, &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}: {refused:?}");
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{body}: {refused:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn errors_name_each_field() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let body = json!({
        "email": "nobody", "status": "suspended", "token": "x", "country": 1, "tags": "t", "send_invite": "yes",
        "paypal_email": "p", "first_name": "a\u{0}", "campaign_id": "x",
    });
    let refused = world.call(Method::POST, "/affiliates", &body).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::BAD_REQUEST, "validation_error".to_owned()));
    let fields = refused.json()["error"]["details"]["fields"].clone();
    for field in ["email", "status", "token", "country", "tags", "send_invite", "paypal_email", "first_name"] {
        assert!(fields[field].is_string(), "{field}: {fields}");
    }
    for (body, field) in [(json!({}), "email"), (json!({"email": "a@example.org", "campaign_id": "x"}), "campaign_id")]
    {
        let refused = world.call(Method::POST, "/affiliates", &body).await;
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{refused:?}");
    }
    assert_eq!(world.post("/affiliates", "{").await.code(), "invalid_json");
    partner(&world, json!({"email": "ada@example.org", "token": "Ada"})).await;
    for duplicate in [json!({"email": "ADA@example.org"}), json!({"email": "b@example.org", "token": "ada"})] {
        let refused = world.call(Method::POST, "/affiliates", &duplicate).await;
        assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    }
    world.end().await;
}

#[tokio::test]
async fn status_transitions_are_checked() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let mut number = 0;
    for (begins, action, ends) in [
        ("pending", "approve", Some("active")),
        ("invited", "approve", Some("active")),
        ("active", "approve", None),
        ("pending", "reject", Some("rejected")),
        ("invited", "reject", Some("rejected")),
        ("active", "reject", None),
        ("pending", "suspend", Some("suspended")),
        ("invited", "suspend", Some("suspended")),
        ("active", "suspend", Some("suspended")),
        ("active", "reactivate", None),
    ] {
        number += 1;
        let email = format!("p{number}@example.org");
        let made = partner(&world, json!({"email": email, "status": begins})).await;
        assert_eq!(made["approved_at"].is_string(), begins == "active");
        let id = made["id"].as_str().unwrap();
        let moved = if action == "reactivate" {
            owner(&world, &session, Method::POST, &format!("/partners/{id}/reactivate"), json!({})).await
        } else {
            world.post(&format!("/affiliates/{id}/{action}"), "").await
        };
        match ends {
            Some(ends) => {
                let after = moved.json()["affiliate"].clone();
                assert_eq!((moved.status, &after["status"]), (StatusCode::OK, &json!(ends)), "{begins} {action}");
                assert_eq!(after["approved_at"].is_string(), begins == "active" || ends == "active");
            }
            None => assert_eq!(
                (moved.status, moved.code()),
                (StatusCode::BAD_REQUEST, "validation_error".to_owned()),
                "{begins} {action}: {moved:?}"
            ),
        }
    }
    let made = partner(&world, json!({"email": "back@example.org"})).await;
    let id = made["id"].as_str().unwrap();
    let suspended = world.call(Method::POST, &format!("/affiliates/{id}/suspend"), &json!({"reason": "spam"})).await;
    assert_eq!(suspended.json()["affiliate"]["status"], json!("suspended"));
    let back = owner(&world, &session, Method::POST, &format!("/partners/{id}/reactivate"), json!({})).await;
    assert_eq!(back.json()["affiliate"]["status"], json!("active"));
    let rejected = partner(&world, json!({"email": "r@example.org", "status": "pending"})).await;
    let path = format!("/affiliates/{}", rejected["id"].as_str().unwrap());
    world.call(Method::POST, &format!("{path}/reject"), &json!({"reason": "x", "send_email": false})).await;
    let again = world.call(Method::POST, &format!("{path}/approve"), &json!({"send_email": true})).await;
    assert_eq!(again.json()["affiliate"]["status"], json!("active"), "{again:?}");
    let invalid = world.call(Method::POST, &format!("{path}/suspend"), &json!({"reason": 1})).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn stale_if_match_is_refused() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "status": "pending"})).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    let patch = async |if_match: &str, name: &str| {
        with_headers(&world, Method::PATCH, &path, &[("if-match", if_match)], &json!({"company": name})).await
    };
    assert_eq!(patch("\"1\"", "one").await.status, StatusCode::OK);
    let stale = patch("\"1\"", "two").await;
    assert_eq!((stale.status, stale.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    let view = world.get(&path).await;
    assert_eq!(
        (&view.headers["etag"], &view.json()["affiliate"]["company"]),
        (&"\"2\"".parse().unwrap(), &json!("one"))
    );
    let updated_at = view.json()["affiliate"]["updated_at"].as_str().unwrap().to_owned();
    world.services.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(patch(&updated_at, "three").await.status, StatusCode::OK);
    assert_eq!(patch(&updated_at, "four").await.status, StatusCode::CONFLICT);
    assert_eq!(patch("*", "five").await.status, StatusCode::OK);
    assert_eq!(patch("soon", "six").await.status, StatusCode::BAD_REQUEST);
    let approve = format!("{path}/approve");
    let stale = with_headers(&world, Method::POST, &approve, &[("if-match", "\"1\"")], &json!({})).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    let approved = with_headers(&world, Method::POST, &approve, &[("if-match", "\"4\"")], &json!({})).await;
    assert_eq!(
        (approved.status, &approved.headers["etag"]),
        (StatusCode::OK, &"\"5\"".parse().unwrap()),
        "{approved:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn partners_are_listed_page_by_page() {
    let world = World::start().await;
    let owner_session = set_up(&world, 1).await;
    let other = world.call(Method::POST, "/affiliate-campaigns", &json!({"name": "Other"})).await;
    assert_eq!(other.status, StatusCode::CREATED, "{other:?}");
    let other = other.json()["campaign"]["id"].as_str().unwrap().to_owned();
    for n in 0..230 {
        let status = ["active", "pending", "invited"][n % 3];
        let campaign = if n % 2 == 0 { json!("other") } else { Value::Null };
        let body = json!({"email": format!("p{n}@example.org"), "status": status, "campaign_id": campaign});
        partner(&world, body).await;
        world.services.clock.advance(std::time::Duration::from_millis(2));
    }
    let emails = |found: Vec<Value>| -> Vec<String> {
        found.iter().map(|entry| entry["email"].as_str().unwrap().to_owned()).collect()
    };
    let expected = |passes: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..230).rev().filter(|n| passes(*n)).map(|n| format!("p{n}@example.org")).collect()
    };
    assert_eq!(emails(all(&world, "/affiliates").await), expected(&|_| true));
    assert_eq!(emails(all(&world, "/affiliates?status=pending").await), expected(&|n| n % 3 == 1));
    assert_eq!(emails(all(&world, "/affiliates?status=active,invited").await), expected(&|n| n % 3 != 1));
    for named in [other.as_str(), "Other"] {
        let both = format!("/affiliates?campaign_id={named}&status=pending");
        assert_eq!(emails(all(&world, &both).await), expected(&|n| n % 3 == 1 && n % 2 == 0));
    }
    assert_eq!(emails(all(&world, "/affiliates?email=P7%40example.org").await), ["p7@example.org"]);
    assert_eq!(emails(all(&world, "/affiliates?email=p7%40example.org&status=invited").await), [""; 0]);
    assert_eq!(emails(all(&world, "/affiliates?campaign_id=none").await), [""; 0]);
    assert_eq!(world.get("/affiliates").await.json()["data"].as_array().unwrap().len(), 25);
    let listed = world.get("/affiliates?limit=1").await.json();
    assert_eq!(listed["data"][0]["links"].as_array().unwrap().len(), 1);
    for (bad, code) in [
        ("limit=0", "validation_error"),
        ("limit=101", "validation_error"),
        ("status=away", "validation_error"),
        ("email=nobody", "validation_error"),
        ("cursor=x", "invalid_cursor"),
    ] {
        assert_eq!(world.get(&format!("/affiliates?{bad}")).await.code(), code, "{bad}");
    }
    let session = world.call_with_session(&owner_session, Method::GET, "/api/affiliates?limit=1", &Value::Null).await;
    assert_eq!(session.status, StatusCode::OK);
    let campaigns = world.get("/affiliate-campaigns").await.json();
    let counts: Vec<_> = campaigns["data"].as_array().unwrap().iter().map(|entry| &entry["affiliate_count"]).collect();
    assert_eq!(counts, [115, 115]);
    world.end().await;
}

#[tokio::test]
async fn links_are_added_and_removed() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let path = format!("/affiliates/{}/links", ada["id"].as_str().unwrap());
    let body = json!({"token": "Podcast_1", "destination_url": "/pricing?plan=pro", "label": "Show"});
    let made = world.call(Method::POST, &path, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let link = made.json()["link"].clone();
    assert_eq!(link["url"], json!("https://shop.example/pricing?plan=pro&via=Podcast_1"));
    assert_eq!((&link["is_primary"], &link["label"]), (&json!(false), &json!("Show")));
    for (body, status, code) in [
        (json!({"token": "podcast_1"}), StatusCode::CONFLICT, "conflict"),
        (json!({"token": "ADA"}), StatusCode::CONFLICT, "conflict"),
        (json!({"token": "é"}), StatusCode::BAD_REQUEST, "validation_error"),
        (json!({}), StatusCode::BAD_REQUEST, "validation_error"),
        (
            json!({"token": "ok", "destination_url": "https://evil.example/"}),
            StatusCode::BAD_REQUEST,
            "validation_error",
        ),
    ] {
        let refused = world.call(Method::POST, &path, &body).await;
        assert_eq!((refused.status, refused.code()), (status, code.to_owned()), "{body}");
    }
    for n in 0..48 {
        let made = world.call(Method::POST, &path, &json!({"token": format!("t-{n}")})).await;
        assert_eq!(made.status, StatusCode::CREATED);
    }
    let full = world.call(Method::POST, &path, &json!({"token": "one-more"})).await;
    assert_eq!((full.status, full.code()), (StatusCode::BAD_REQUEST, "validation_error".to_owned()));
    let listed = all(&world, &path).await;
    assert_eq!((listed.len(), &listed[0]["token"]), (50, &json!("t-47")));
    let delete =
        async |id: &Value| world.call(Method::DELETE, &format!("{path}/{}", id.as_str().unwrap()), &json!({})).await;
    let primary = delete(&ada["links"][0]["id"]).await;
    assert_eq!((primary.status, primary.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
    assert_eq!(delete(&link["id"]).await.json(), json!({"ok": true}));
    assert_eq!(delete(&link["id"]).await.status, StatusCode::NOT_FOUND);
    let again = world.call(Method::POST, &path, &json!({"token": "podcast_1"})).await;
    assert_eq!(again.status, StatusCode::CREATED, "a deleted link's token is free");
    world.end().await;
}

#[tokio::test]
async fn deleted_partner_keeps_its_tokens_reserved() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    world.call(Method::POST, &format!("{path}/links"), &json!({"token": "more"})).await;
    assert_eq!(world.call(Method::DELETE, &path, &json!({})).await.json(), json!({"ok": true}));
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::PATCH, path.clone()),
        (Method::GET, format!("{path}/links")),
        (Method::POST, format!("{path}/suspend")),
    ] {
        assert_eq!(world.call(method, &path, &json!({})).await.status, StatusCode::NOT_FOUND);
    }
    let referral = json!({"token": "ada", "email": "grace@example.net"});
    assert_eq!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status, StatusCode::NOT_FOUND);
    let back = partner(&world, json!({"email": "ada@example.org", "first_name": "Ada"})).await;
    assert_eq!(back["links"][0]["token"], json!("ada-2"));
    for token in ["ada", "MORE"] {
        let duplicate =
            world.call(Method::POST, "/affiliates", &json!({"email": "b@example.org", "token": token})).await;
        assert_eq!(duplicate.status, StatusCode::CONFLICT);
    }
    world.services.clock.advance(std::time::Duration::from_secs(90 * 24 * 3600 + 1));
    partner(&world, json!({"email": "b@example.org", "token": "ada"})).await;
    // A partner who was ever paid cannot be deleted.
    let id = back["id"].as_str().unwrap().parse().unwrap();
    let account = world.tenant().await.account().id;
    let before = store::affiliate::partner::get(&world.services.store, account, id).await.unwrap().unwrap();
    let mut batch = store::engine::Batch::progress();
    let after = model::affiliate::partner::Partner { was_paid: true, ..before.clone() };
    store::affiliate::partner::update(&mut batch, &before, &after);
    world.services.store.commit(batch).await.unwrap();
    let unchanged = world.call(Method::DELETE, &format!("/affiliates/{id}"), &json!({})).await;
    assert_eq!((unchanged.status, unchanged.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
    world.end().await;
}

#[tokio::test]
async fn idempotency_keys_apply() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let once = async |path: &str, key: &str, body: Value| {
        with_headers(&world, Method::POST, path, &[("idempotency-key", key)], &body).await
    };
    let body = json!({"email": "ada@example.org", "token": "ada", "status": "pending"});
    let first = once("/affiliates", "k1", body.clone()).await;
    let again =
        once("/affiliates", "k1", json!({"token": "ada", "status": "pending", "email": "ada@example.org"})).await;
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!((first.json(), &first.headers["etag"]), (again.json(), &again.headers["etag"]));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other = once("/affiliates", "k1", json!({"email": "b@example.org"})).await;
    assert_eq!((other.status, other.code()), (StatusCode::CONFLICT, "idempotency_conflict".to_owned()));
    assert_eq!(once("/affiliates", "k2", body).await.code(), "conflict");
    // A refused request leaves its key free.
    assert_eq!(once("/affiliates", "k2", json!({"email": "b@example.org"})).await.status, StatusCode::CREATED);
    let path = format!("/affiliates/{}", first.json()["affiliate"]["id"].as_str().unwrap());
    let approve = format!("{path}/approve");
    let approved = once(&approve, "k1", json!({})).await;
    assert_eq!(approved.json()["affiliate"]["status"], json!("active"));
    assert_eq!(once(&approve, "k1", json!({})).await.json(), approved.json());
    assert_eq!(once(&format!("{path}/suspend"), "k1", json!({})).await.code(), "idempotency_conflict");
    let link = once(&format!("{path}/links"), "k1", json!({"token": "more"})).await;
    assert_eq!(once(&format!("{path}/links"), "k1", json!({"token": "more"})).await.json(), link.json());
    let campaign = once("/affiliate-campaigns", "k1", json!({"name": "C"})).await;
    assert_eq!(once("/affiliate-campaigns", "k1", json!({"name": "C"})).await.json(), campaign.json());
    let referral = json!({"token": "ada", "email": "grace@example.net"});
    let new = once("/affiliate-referrals", "k1", referral.clone()).await;
    let existing = once("/affiliate-referrals", "k2", referral.clone()).await;
    for (key, first, status) in [("k1", new, StatusCode::CREATED), ("k2", existing, StatusCode::OK)] {
        let again = once("/affiliate-referrals", key, referral.clone()).await;
        assert_eq!((first.status, again.status), (status, status), "{key}");
        assert_eq!(first.json(), again.json());
    }
    assert_eq!(once("/affiliates", "", json!({"email": "c@example.org"})).await.code(), "invalid_idempotency_key");
    world.end().await;
}

#[tokio::test]
async fn concurrent_partners_with_one_address_have_one_winner() {
    let world = World::start().await;
    set_up(&world, 1).await;
    for n in 0..8 {
        let body = json!({"email": format!("p{n}@example.org"), "token": format!("token-{n}")});
        let post = || world.call(Method::POST, "/affiliates", &body);
        let (entry, other) = tokio::join!(post(), post());
        let mut statuses = [entry.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{entry:?} {other:?}");
    }
    // Generated tokens do not collide.
    let named = |n: usize| json!({"email": format!("n{n}@example.org"), "first_name": "Grace"});
    let bodies = [named(1), named(2), named(3)];
    let post = |n: usize| world.call(Method::POST, "/affiliates", &bodies[n]);
    let (a, b, c) = tokio::join!(post(0), post(1), post(2));
    let mut tokens: Vec<String> =
        [a, b, c].iter().map(|entry| entry.json()["affiliate"]["links"][0]["token"].to_string()).collect();
    tokens.sort();
    assert_eq!(tokens, ["\"grace\"", "\"grace-2\"", "\"grace-3\""]);
    world.end().await;
}

#[tokio::test]
async fn affiliates_are_isolated_between_accounts() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let foreign = set_up(&world, 2).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let reported = json!({"token": "ada", "email": "grace@example.net"});
    let referral = world.call(Method::POST, "/affiliate-referrals", &reported).await.json()["referral"].clone();
    let campaign = world.get("/affiliate-campaigns").await.json()["data"][0].clone();
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let partner_path = format!("/affiliates/{}", id(&ada));
    for (method, path) in [
        (Method::GET, partner_path.clone()),
        (Method::PATCH, partner_path.clone()),
        (Method::DELETE, partner_path.clone()),
        (Method::POST, format!("{partner_path}/approve")),
        (Method::POST, format!("{partner_path}/reject")),
        (Method::POST, format!("{partner_path}/suspend")),
        (Method::GET, format!("{partner_path}/links")),
        (Method::DELETE, format!("{partner_path}/links/{}", id(&ada["links"][0]))),
        (Method::GET, format!("/affiliate-campaigns/{}", id(&campaign))),
        (Method::PATCH, format!("/affiliate-campaigns/{}", id(&campaign))),
        (Method::GET, format!("/affiliate-referrals/{}", id(&referral))),
    ] {
        let response = world.call_as(&other, method.clone(), &path, &json!({})).await;
        assert_eq!(
            (response.status, response.code()),
            (StatusCode::NOT_FOUND, "not_found".to_owned()),
            "{method} {path}"
        );
    }
    for reported in [reported.clone(), json!({"affiliate_id": ada["id"], "email": "grace@example.net"})] {
        let response = world.call_as(&other, Method::POST, "/affiliate-referrals", &reported).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{reported}");
    }
    let link = json!({"token": "more"});
    let response = world.call_as(&other, Method::POST, &format!("{partner_path}/links"), &link).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    let body = json!({"email": "a@example.org", "campaign_id": campaign["id"]});
    let response = world.call_as(&other, Method::POST, "/affiliates", &body).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let inside = owner(&world, &foreign, Method::GET, &format!("/partners/{}", id(&ada)), json!({})).await;
    assert_eq!(inside.status, StatusCode::NOT_FOUND);
    // In another account the same address and token are free.
    let same = json!({"email": "ada@example.org", "token": "ada"});
    assert_eq!(world.call_as(&other, Method::POST, "/affiliates", &same).await.status, StatusCode::CREATED);
    let foreign = world.call_as(&other, Method::POST, "/affiliate-referrals", &reported).await;
    assert_eq!((foreign.status, &foreign.json()["created"]), (StatusCode::CREATED, &json!(true)));
    world.end().await;
}

#[tokio::test]
async fn owner_sets_the_payout_method() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    assert_eq!((&ada["payout_method"], &ada["payout_ready"]), (&Value::Null, &json!(false)));
    let path = format!("/partners/{}/payout-method", ada["id"].as_str().unwrap());
    let put = async |method: &str, destination: &str| {
        let body = json!({"method": method, "destination": destination});
        owner(&world, &session, Method::PUT, &path, body).await
    };
    for (method, destination, ready) in [
        ("wise", "ada@example.org", true),
        ("bank", "IBAN DE02 1203 0000 0000 2020 51\nAda Lovelace", true),
        ("other", "by pigeon", true),
        ("stripe", "acct_1abc", false),
    ] {
        let set = put(method, destination).await.json()["affiliate"].clone();
        assert_eq!((&set["payout_method"], &set["payout_ready"]), (&json!(method), &json!(ready)));
    }
    for (method, destination) in
        [("paypal", "nobody"), ("stripe", "cus_1"), ("cash", "here"), ("bank", " "), ("stripe", "acct_")]
    {
        assert_eq!(put(method, destination).await.status, StatusCode::BAD_REQUEST, "{method} {destination}");
    }
    put("wise", "ada@example.org").await;
    owner(&world, &session, Method::PATCH, "", json!({"allowed_methods": ["paypal"]})).await;
    let view = world.get(&format!("/affiliates/{}", ada["id"].as_str().unwrap())).await.json();
    assert_eq!(view["affiliate"]["payout_ready"], json!(false));
    world.end().await;
}

/// The form, the import and the API apply the same rule: a website must be a URL that browsers can open.
#[tokio::test]
async fn websites_must_be_http_urls() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "website": "ada.example"})).await;
    assert_eq!(ada["website"], "https://ada.example");
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    for website in ["javascript:alert(1)", "ftp://ada.example", "no address"] {
        let refused = world.call(Method::PATCH, &path, &json!({"website": website})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{website}");
    }
    let none = world.call(Method::PATCH, &path, &json!({"website": null})).await;
    assert_eq!(none.json()["affiliate"]["website"], Value::Null);
    world.end().await;
}
