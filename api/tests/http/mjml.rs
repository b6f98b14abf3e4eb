//! Templates in MJML over HTTP: source and compiled HTML, versions, previews, refusals, sending.

use http::StatusCode;
use serde_json::{Value, json};

use crate::templates::{patch, post};
use crate::world::World;

/// A source that says a text.
fn source(text: &str) -> String {
    format!(
        "<mjml><mj-body>{{{{#if vip}}}}<mj-section><mj-column><mj-text>VIP</mj-text></mj-column></mj-section>{{{{/if}}}}\
         <mj-section><mj-column><mj-text>{text} {{{{name}}}}</mj-text><mj-button href=\"https://a.example/?u={{{{user.id}}}}\">\
         Open</mj-button></mj-column></mj-section></mj-body></mjml>"
    )
}

fn template(text: &str) -> Value {
    json!({"alias": "promo", "from": "ada@example.com", "subject": "S", "text": "T", "mjml": source(text)})
}

fn html(template: &Value) -> &str {
    template["html"].as_str().unwrap()
}

#[tokio::test]
async fn the_source_is_kept_beside_the_compiled_html() {
    let world = World::start().await;
    let made = post(&world, "/templates", template("Hi")).await;
    assert_eq!(made.status, StatusCode::OK, "{:?}", made.body);
    let made = made.json()["template"].clone();
    assert_eq!(made["mjml"], source("Hi"));
    assert!(html(&made).starts_with("<!doctype html>") && html(&made).contains(">Hi {{name}}</div>"), "{made}");
    assert!(html(&made).contains("href=\"https://a.example/?u={{user.id}}\""), "{made}");
    assert_eq!(world.get("/templates/promo").await.json()["template"], made);
    assert!(world.get("/templates").await.json()["templates"][0].get("mjml").is_none());

    // A change of another field keeps both; a new source replaces both.
    let changed = patch(&world, "/templates/promo", json!({"subject": "New"})).await.json()["template"].clone();
    assert_eq!((&changed["mjml"], &changed["html"]), (&made["mjml"], &made["html"]));
    let changed = patch(&world, "/templates/promo", json!({"mjml": source("Bye"), "html": null})).await.json();
    let changed = &changed["template"];
    assert!(changed["mjml"] == source("Bye") && html(changed).contains("Bye {{name}}"), "{changed}");
    // HTML that is sent back unchanged does not replace the source; other HTML does, and the answer says so.
    let same = patch(&world, "/templates/promo", json!({"html": html(changed)})).await.json();
    assert_eq!((&same["template"]["mjml"], same.get("warnings")), (&changed["mjml"], None));
    let other = patch(&world, "/templates/promo", json!({"html": "<p>plain"})).await.json();
    assert_eq!((&other["template"]["mjml"], &other["template"]["html"]), (&Value::Null, &json!("<p>plain")));
    assert_eq!(other["warnings"], json!(["The MJML source was removed, because `html` was given"]));
    world.end().await;
}

#[tokio::test]
async fn a_conversion_keeps_the_html() {
    let world = World::start().await;
    let made = post(&world, "/templates", template("Hi")).await.json()["template"].clone();
    let converted = patch(&world, "/templates/promo", json!({"mjml": null})).await.json();
    assert_eq!((&converted["template"]["mjml"], &converted["template"]["html"]), (&Value::Null, &made["html"]));
    assert_eq!(converted["template"]["draft_version"], 2);
    patch(&world, "/templates/promo", json!({"mjml": source("Again")})).await;
    let removed = patch(&world, "/templates/promo", json!({"html": null})).await.json()["template"].clone();
    assert_eq!((&removed["mjml"], &removed["html"]), (&Value::Null, &Value::Null));
    world.end().await;
}

#[tokio::test]
async fn versions_copies_and_rollbacks_have_the_source() {
    let world = World::start().await;
    post(&world, "/templates", template("One")).await;
    let first = post(&world, "/templates/promo/publish", json!({})).await.json()["template"].clone();
    patch(&world, "/templates/promo", json!({"mjml": source("Two")})).await;
    let second = post(&world, "/templates/promo/publish", json!({})).await.json()["template"].clone();
    assert_ne!(first["html"], second["html"]);
    let version = world.get("/templates/promo/versions/1").await.json()["version"].clone();
    assert_eq!((&version["mjml"], &version["html"]), (&first["mjml"], &first["html"]));
    let back = post(&world, "/templates/promo/rollback", json!({"version": 1})).await.json();
    assert_eq!((&back["template"]["mjml"], &back["template"]["html"]), (&first["mjml"], &first["html"]));
    assert_eq!(world.get("/templates/promo/versions/3").await.json()["version"]["mjml"], first["mjml"]);
    let copy = post(&world, "/templates/promo/duplicate", json!({})).await.json();
    assert_eq!((&copy["template"]["mjml"], &copy["template"]["html"]), (&first["mjml"], &first["html"]));
    // Converted, the draft differs from the version that has a source.
    let converted = patch(&world, "/templates/promo", json!({"mjml": null})).await.json();
    assert_eq!(converted["template"]["has_unpublished_changes"], true);
    let again = patch(&world, "/templates/promo", json!({"mjml": first["mjml"]})).await.json();
    assert_eq!(again["template"]["has_unpublished_changes"], false);
    world.end().await;
}

#[tokio::test]
async fn errors_have_their_place_in_the_source() {
    let world = World::start().await;
    let both = post(&world, "/templates", json!({"name": "T", "html": "<p>", "mjml": source("x")})).await;
    assert_eq!(both.code(), "validation_error");
    let fields = both.json()["error"]["details"]["fields"].clone();
    assert!(fields["html"].as_str().unwrap().contains("`mjml`") && fields["mjml"].as_str().unwrap().contains("`html`"));
    for (mjml, line, column, words) in [
        ("<mjml>\n<mj-body>\n  <mj-txt>".to_owned(), 3, 3, "`<mj-txt>` is not an element"),
        ("<mjml>\n<mj-body>\n  {{#if x}}".to_owned(), 3, 12, "a block is not closed"),
        ("<mjml><mj-body>\n<mj-include path=\"/etc/passwd\" />".to_owned(), 2, 1, "cannot read files"),
        ("<p>x</p>".to_owned(), 1, 1, "single `<mjml>` element"),
        ("<mj-wrapper>".repeat(40_000), 1, 1, "single `<mjml>` element"),
        (format!("<mjml><mj-body>{}", "<mj-wrapper>".repeat(40_000)), 1, 28, "is not allowed in"),
        (format!("<mjml><mj-body>{}", "{{#if a}}".repeat(40_000)), 1, 232, "more than 24 deep"),
        // The layout repeats a background.
        (
            format!(
                "<mjml><mj-body><mj-section background-url=\"{}\"></mj-section></mj-body></mjml>",
                "{{a}}".repeat(900)
            ),
            1,
            1,
            "the HTML that it compiles to is refused: has more than 2000 tags",
        ),
    ] {
        let refused = post(&world, "/templates", json!({"name": "T", "mjml": mjml})).await;
        assert_eq!((refused.status, refused.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
        let details = refused.json()["error"]["details"].clone();
        let text = details["fields"]["mjml"].as_str().unwrap_or_else(|| panic!("{details}"));
        assert_eq!((&details["line"], &details["column"]), (&json!(line), &json!(column)), "{details}");
        assert!(text.contains(words), "{details}");
        assert_eq!(details["markup"][0]["field"], "mjml", "{details}");
    }
    let long = post(&world, "/templates", json!({"name": "T", "mjml": "x".repeat(600_000)})).await;
    assert!(long.json()["error"]["details"]["fields"]["mjml"].as_str().unwrap().contains("longer than"));
    assert_eq!(world.get("/templates").await.json()["templates"], json!([]), "nothing was stored");
    world.end().await;
}

#[tokio::test]
async fn unsaved_sources_are_previewed() {
    let world = World::start().await;
    post(&world, "/templates", template("Hi")).await;
    let path = "/templates/promo/preview";
    let variables = json!({"name": "<Ada>", "user": {"id": "u_1"}, "vip": false});
    let preview = post(&world, path, json!({"variables": variables})).await.json();
    assert!(html(&preview).contains(">Hi &lt;Ada&gt;</div>") && !html(&preview).contains("VIP"), "{preview}");
    assert!(html(&preview).contains("href=\"https://a.example/?u=u_1\""), "{preview}");
    let advised =
        source("New").replace("</mj-button>", "</mj-button><mj-social><mj-social-element name=\"x\" /></mj-social>");
    let preview = post(&world, path, json!({"variables": variables, "changes": {"mjml": &advised}})).await.json();
    assert!(html(&preview).contains(">New &lt;Ada&gt;</div>"), "{preview}");
    let advice = |preview: &Value| preview["warnings"].to_string().matches("www.mailjet.com").count();
    assert_eq!(advice(&preview), 1, "{preview}");
    let refused = post(&world, path, json!({"changes": {"mjml": "<mjml>\n<mj-body>"}})).await;
    let details = refused.json()["error"]["details"].clone();
    assert!(details["fields"]["changes.mjml"].as_str().unwrap().starts_with("line 2, column 1: "), "{details}");
    assert_eq!(world.get("/templates/promo").await.json()["template"]["mjml"], source("Hi"));
    // The advice about a stored source.
    patch(&world, "/templates/promo", json!({"mjml": advised})).await;
    let preview = post(&world, path, json!({"variables": variables})).await.json();
    assert_eq!(advice(&preview), 1, "{preview}");
    world.end().await;
}

#[tokio::test]
async fn emails_have_the_compiled_html() {
    let world = World::start().await;
    post(&world, "/templates", template("Hi")).await;
    post(&world, "/templates/promo/publish", json!({})).await;
    let variables = json!({"name": "Ada", "user": {"id": "u_1"}, "vip": true});
    let send = json!({"to": "b@example.net", "template": "promo", "variables": variables});
    let sent = post(&world, "/emails", send).await;
    assert_eq!(sent.status, StatusCode::OK, "{:?}", sent.body);
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let email = world.get(&format!("/emails/{id}")).await.json()["email"].clone();
    assert_eq!(email["subject"], "S");
    let raw = world.get(&format!("/emails/{id}/raw")).await;
    let raw = String::from_utf8_lossy(&raw.body).replace("=\r\n", "");
    assert!(raw.contains("Hi Ada") && raw.contains("VIP") && !raw.contains("mj-section"), "{raw}");
    world.end().await;
}

/// The source that the dashboard gives a new template.
#[tokio::test]
async fn the_dashboards_first_source_compiles() {
    let world = World::start().await;
    let source = include_str!("../../../pages/src/dashboard/screens/templates/start.mjml");
    let made = post(&world, "/templates", json!({"name": "T", "mjml": source})).await.json();
    assert!(html(&made["template"]).contains("Hello {{name}}"), "{made}");
    assert_eq!(made.get("warnings"), None);
    world.end().await;
}
