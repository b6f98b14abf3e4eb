//! `…/affiliate-campaigns`: commission terms of partners.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::affiliate_program::set_up;
use crate::affiliates::{partner, with_headers};
use crate::world::World;

#[tokio::test]
async fn campaigns_are_created_from_the_request() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let plain = world.call(Method::POST, "/affiliate-campaigns", &json!({"name": " Plain "})).await;
    assert_eq!((plain.status, &plain.headers["etag"]), (StatusCode::CREATED, &"\"1\"".parse().unwrap()));
    let plain = plain.json()["campaign"].clone();
    for (field, value) in [
        ("object", json!("affiliate_campaign")),
        ("name", json!("Plain")),
        ("is_default", json!(false)),
        ("visibility", json!("public")),
        ("commission_type", json!("percent")),
        ("commission_bps", json!(2000)),
        ("commission_flat_cents", json!(0)),
        ("commission_duration", json!("recurring")),
        ("recurring_months", Value::Null),
        ("max_commission_cents", Value::Null),
        ("tiers", json!([])),
        ("product_rates", json!([])),
        ("second_tier_bps", json!(0)),
        ("lead_bounty_cents", json!(0)),
        ("cookie_days", json!(60)),
        ("hold_days", json!(30)),
        ("archived_at", Value::Null),
    ] {
        assert_eq!(plain[field], value, "{field}");
    }
    assert!(plain.get("affiliate_count").is_none());
    world.end().await;
}

#[tokio::test]
async fn campaign_response_round_trips() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let complete = json!({
        "name": "Whole", "visibility": "unlisted", "auto_approve": true, "commission_type": "flat",
        "commission_flat_cents": 500, "commission_bps": 0, "commission_duration": "recurring", "recurring_months": 12,
        "max_commission_cents": 9900,
        "tiers": [
            {"min_paid_customers": 21, "commission_flat_cents": 900, "commission_bps": 0},
            {"min_paid_customers": 5, "commission_flat_cents": 700},
        ],
        "product_rates": [
            {"product_id": "prod_1", "commission_type": "percent", "commission_bps": 1000, "label": "Books"},
            {"product_id": "prod_1", "price_id": "price_1", "commission_type": "none"},
        ],
        "second_tier_bps": 500, "lead_bounty_cents": 100, "cookie_days": 1, "hold_days": 365, "make_default": true,
    });
    let made = world.call(Method::POST, "/affiliate-campaigns", &complete).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let made = made.json()["campaign"].clone();
    assert_eq!(made["is_default"], json!(true));
    assert_eq!(
        made["tiers"],
        json!([
            {"min_paid_customers": 5, "commission_bps": 0, "commission_flat_cents": 700},
            {"min_paid_customers": 21, "commission_bps": 0, "commission_flat_cents": 900},
        ])
    );
    assert_eq!(
        made["product_rates"][1],
        json!({"product_id": "prod_1", "price_id": "price_1", "commission_type": "none", "commission_bps": 0,
               "commission_flat_cents": 0, "label": null})
    );
    let odd = json!({"name": "Odd", "tiers": [{"min_paid_customers": 2, "commission_bps": 1, "colour": 1}]});
    let odd = world.call(Method::POST, "/affiliate-campaigns", &odd).await.json();
    assert_eq!(odd["warnings"], json!(["`tiers[0].colour` is not a known field and was ignored"]));
    // The response can be sent back unchanged.
    let path = format!("/affiliate-campaigns/{}", made["id"].as_str().unwrap());
    let same = world.call(Method::PATCH, &path, &made).await;
    assert_eq!(same.json()["campaign"], made, "{same:?}");
    // There is one default campaign at a time; new partners get it.
    let listed = world.get("/affiliate-campaigns").await.json();
    let defaults: Vec<&Value> =
        listed["data"].as_array().unwrap().iter().filter(|entry| entry["is_default"] == true).collect();
    assert_eq!((defaults.len(), &defaults[0]["id"]), (1, &made["id"]));
    assert_eq!((&listed["has_more"], &listed["next_cursor"]), (&json!(false), &Value::Null));
    assert_eq!(partner(&world, json!({"email": "a@example.org"})).await["campaign_id"], made["id"]);
    world.end().await;
}

#[tokio::test]
async fn both_numbers_of_a_rate_are_kept() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let complete = json!({
        "name": "Both", "commission_type": "percent", "commission_bps": 2500, "commission_flat_cents": 700,
        "tiers": [{"min_paid_customers": 5, "commission_bps": 3000, "commission_flat_cents": 900}],
        "product_rates": [{"product_id": "prod_1", "price_id": null, "commission_type": "flat",
            "commission_bps": 1000, "commission_flat_cents": 300, "label": null}],
    });
    let made = world.call(Method::POST, "/affiliate-campaigns", &complete).await.json()["campaign"].clone();
    for field in ["commission_bps", "commission_flat_cents", "tiers", "product_rates"] {
        assert_eq!(made[field], complete[field], "{field}");
    }
    // When the type changes, also of tiers, the stored number of the other type applies again.
    let path = format!("/affiliate-campaigns/{}", made["id"].as_str().unwrap());
    for kind in ["flat", "percent"] {
        let turned = world.call(Method::PATCH, &path, &json!({"commission_type": kind})).await;
        assert_eq!(turned.status, StatusCode::OK, "{turned:?}");
        let turned = turned.json()["campaign"].clone();
        assert_eq!(turned["commission_type"], kind);
        for field in ["commission_bps", "commission_flat_cents", "tiers", "product_rates"] {
            assert_eq!(turned[field], complete[field], "{field} with {kind}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn invalid_campaigns_are_refused() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let tier = |n: i64| json!({"min_paid_customers": n, "commission_bps": 1});
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": " "}), "name"),
        (json!({"name": "n", "visibility": "secret"}), "visibility"),
        (json!({"name": "n", "commission_bps": 10_001}), "commission_bps"),
        (json!({"name": "n", "commission_bps": -1}), "commission_bps"),
        (json!({"name": "n", "commission_bps": 1.5}), "commission_bps"),
        (json!({"name": "n", "commission_bps": "2000"}), "commission_bps"),
        (json!({"name": "n", "commission_type": "flat"}), "commission_flat_cents"),
        (json!({"name": "n", "commission_flat_cents": 5}), "commission_type"),
        (json!({"name": "n", "commission_type": "flat", "commission_flat_cents": -5}), "commission_flat_cents"),
        (json!({"name": "n", "commission_duration": "always"}), "commission_duration"),
        (json!({"name": "n", "recurring_months": 0}), "recurring_months"),
        (json!({"name": "n", "commission_duration": "once", "recurring_months": 3}), "recurring_months"),
        (json!({"name": "n", "max_commission_cents": 0}), "max_commission_cents"),
        (json!({"name": "n", "cookie_days": 0}), "cookie_days"),
        (json!({"name": "n", "cookie_days": 366}), "cookie_days"),
        (json!({"name": "n", "hold_days": 366}), "hold_days"),
        (json!({"name": "n", "hold_days": -1}), "hold_days"),
        (json!({"name": "n", "tiers": [tier(2), tier(2)]}), "tiers"),
        (json!({"name": "n", "tiers": [tier(0)]}), "tiers[0].min_paid_customers"),
        (json!({"name": "n", "tiers": [{"min_paid_customers": 2}]}), "tiers[0].commission_bps"),
        (json!({"name": "n", "tiers": [1]}), "tiers[0]"),
        (json!({"name": "n", "tiers": (1..=21).map(tier).collect::<Vec<_>>()}), "tiers"),
        (json!({"name": "n", "product_rates": [{"commission_type": "none"}]}), "product_rates[0].product_id"),
        (json!({"name": "n", "product_rates": [{"product_id": "p"}]}), "product_rates[0].commission_type"),
        (
            json!({"name": "n", "product_rates": [{"product_id": "p", "commission_type": "flat"}]}),
            "product_rates[0].commission_flat_cents",
        ),
        (
            json!({"name": "n", "product_rates": [
                {"product_id": "p", "commission_type": "none"}, {"product_id": "p", "commission_type": "none"}]}),
            "product_rates",
        ),
        (json!({"name": "n", "archived_at": "yesterday"}), "archived_at"),
    ] {
        let refused = world.call(Method::POST, "/affiliate-campaigns", &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}: {refused:?}");
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{body}: {refused:?}");
    }
    let duplicate = world.call(Method::POST, "/affiliate-campaigns", &json!({"name": "PARTNERS"})).await;
    assert_eq!((duplicate.status, duplicate.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    world.end().await;
}

#[tokio::test]
async fn campaigns_are_updated_and_archived() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let listed = world.get("/affiliate-campaigns").await.json();
    let default = format!("/affiliate-campaigns/{}", listed["data"][0]["id"].as_str().unwrap());
    let body = json!({"name": "Other", "tiers": [{"min_paid_customers": 2, "commission_bps": 2500}]});
    let other = world.call(Method::POST, "/affiliate-campaigns", &body).await.json()["campaign"].clone();
    let other = format!("/affiliate-campaigns/{}", other["id"].as_str().unwrap());
    let patch = async |path: &str, body: Value| world.call(Method::PATCH, path, &body).await;
    let flat = patch(&other, json!({"commission_type": "flat", "commission_flat_cents": 100})).await;
    assert!(flat.json()["error"]["details"]["fields"]["tiers"].is_string(), "{flat:?}");
    let flat = json!({"commission_type": "flat", "commission_flat_cents": 100, "tiers": []});
    assert_eq!(patch(&other, flat).await.json()["campaign"]["commission_flat_cents"], json!(100));
    let unchanged = patch(&other, json!({"commission_duration": "once"})).await.json()["campaign"].clone();
    assert_eq!((&unchanged["commission_flat_cents"], &unchanged["commission_duration"]), (&json!(100), &json!("once")));
    let now = "2026-01-01T00:00:00.000Z";
    let stays = patch(&default, json!({"archived_at": now})).await;
    assert_eq!((stays.status, stays.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    assert_eq!(patch(&other, json!({"archived_at": now})).await.json()["campaign"]["archived_at"], json!(now));
    let names = async |path: &str| -> Vec<Value> {
        let listed = world.get(path).await.json();
        listed["data"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect()
    };
    assert_eq!(names("/affiliate-campaigns").await, ["Partners"]);
    assert_eq!(names("/affiliate-campaigns?include_archived=true").await, ["Other", "Partners"]);
    let joins = json!({"email": "a@example.org", "campaign_id": "Other"});
    assert_eq!(world.call(Method::POST, "/affiliates", &joins).await.status, StatusCode::BAD_REQUEST);
    let archived = patch(&other, json!({"make_default": true})).await;
    assert_eq!(archived.status, StatusCode::CONFLICT, "an archived campaign cannot be the default");
    let back = patch(&other, json!({"archived_at": null, "make_default": true})).await;
    assert_eq!((back.status, &back.json()["campaign"]["is_default"]), (StatusCode::OK, &json!(true)));
    assert_eq!(world.get(&default).await.json()["campaign"]["is_default"], json!(false));
    let stale = json!({"hold_days": 1});
    let stale = with_headers(&world, Method::PATCH, &other, &[("if-match", "\"1\"")], &stale).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert_eq!(patch(&default, json!({"name": "other"})).await.status, StatusCode::CONFLICT);
    assert_eq!(patch("/affiliate-campaigns/cmp_x", json!({})).await.status, StatusCode::NOT_FOUND);
    world.end().await;
}
