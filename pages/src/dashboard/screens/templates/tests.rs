//! The pages of templates with fixed answers.

use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};

const PATH: &str = "/templates/tpl_1";

fn template() -> Value {
    json!({
        "id": "tpl_1", "name": HOSTILE, "alias": HOSTILE, "category": "product", "subject": HOSTILE, "html": HOSTILE,
        "text": HOSTILE, "variables": [{"key": HOSTILE, "type": "string", "required": true, "fallback_value": HOSTILE}],
        "status": "published", "draft_version": 4, "published_version": 2, "has_unpublished_changes": true,
        "unsubscribe_enabled": true, "from": HOSTILE, "reply_to": [HOSTILE], "preheader": null,
    })
}

fn version(number: u32) -> Value {
    let mut version = template();
    version["number"] = number.into();
    version["note"] = HOSTILE.into();
    version["published_at"] = "2026-11-26T11:00:00Z".into();
    version["published_by"] = HOSTILE.into();
    version["html"] = "other".into();
    version
}

fn fake() -> FakeBackend {
    let rendered = json!({
        "subject": HOSTILE, "html": HOSTILE, "text": HOSTILE, "missing_variables": [HOSTILE], "unused_variables": [HOSTILE],
        "suggested_variables": {"name": HOSTILE}, "warnings": [HOSTILE], "size_bytes": 10,
    });
    FakeBackend::new()
        .answer("list_templates", json!({"templates": [template()], "next_cursor": null}))
        .answer("get_template", json!({"template": template()}))
        .answer("update_template", json!({"template": template()}))
        .answer("preview_template", rendered)
        .answer("list_template_versions", json!({"versions": [version(2), version(1)], "next_cursor": null}))
        .answer("get_template_version", json!({"version": version(1)}))
        .answer("delete_template", json!({"ok": true}))
        .answer("roll_back_template", json!({}))
}

/// A template in MJML.
fn with_source(source: &str) -> FakeBackend {
    let of = |mut content: Value| {
        content["mjml"] = source.into();
        content
    };
    fake()
        .answer("get_template", json!({"template": of(template())}))
        .answer("update_template", json!({"template": of(template())}))
        .answer("get_template_version", json!({"version": of(version(1))}))
}

#[test]
fn hostile_texts_cannot_act() {
    let fake = fake();
    assert_harmless(&html(fake.get("/templates")));
    let mjml = with_source(HOSTILE);
    for page in ["", "/compiled", "/versions/1", "/diff?from=1&to=draft", "/publish"] {
        assert_harmless(&html(mjml.get(&format!("{PATH}{page}"))));
    }
    let pages = ["", "/settings", "/versions", "/versions/1", "/diff?from=1&to=draft", "/publish", "/test", "/delete"];
    for page in pages {
        assert_harmless(&html(fake.get(&format!("{PATH}{page}"))));
    }
    let frame = fake.get(&format!("{PATH}/frame?version=draft"));
    assert!(matches!(frame.content, PageContent::Foreign { remote: false, .. }));
}

#[test]
fn a_preview_saves_the_draft_and_shows_it() {
    let fake = fake();
    let entered =
        [("subject", "New"), ("if_version", "3"), ("sample", "{\"a\": 1}"), ("preview", "save"), ("view", "dark")];
    let answer = fake.post(PATH, "content", &entered);
    assert_eq!(answer.status, 200);
    let page = html(answer);
    assert!(page.contains("value=\"New\"") && page.contains("name=\"if_version\" value=\"4\""), "{page}");
    let CallBody::Json(saved) = &fake.calls("update_template")[0].body else { panic!("no body") };
    assert_eq!((&saved["subject"], &saved["if_version"], &saved["html"]), (&json!("New"), &json!(3), &Value::Null));
    let CallBody::Json(rendered) = &fake.calls("preview_template")[0].body else { panic!("no body") };
    assert_eq!(rendered["variables"], json!({"a": 1}));
}

#[test]
fn a_live_preview_saves_nothing() {
    let fake = fake();
    let entered = [("subject", "New"), ("if_version", "3"), ("sample", "{\"a\": 1}"), ("remote", "true")];
    let with = |preview: &'static str| [&entered[..], &[("preview", preview)]].concat();
    let page = html(fake.post(PATH, "content", &with("1")));
    assert!(page.contains("name=\"if_version\" value=\"3\""), "the version that was seen stays: {page}");
    assert!(page.contains("formaction=\"/dashboard/templates/tpl_1/frame\""), "{page}");
    let frame = fake.post(&format!("{PATH}/frame"), "content", &with("frame"));
    assert!(matches!(frame.content, PageContent::Foreign { remote: true, .. }));
    assert!(fake.calls("update_template").is_empty());
    let expected = json!({
        "changes": {"subject": "New", "preheader": null, "html": null, "text": null, "variables": []},
        "variables": {"a": 1},
    });
    for call in fake.calls("preview_template") {
        assert_eq!(call.body, CallBody::Json(expected.clone()));
    }
}

#[test]
fn markup_that_cannot_be_rendered_is_named_in_the_preview() {
    let fake = fake().refuse("preview_template", Failure::field("changes.html", "a block is not closed"));
    let answer = fake.post(PATH, "content", &[("html", "{{#if x}}"), ("preview", "1")]);
    assert_eq!(answer.status, 200);
    assert!(html(answer).contains("id=\"content-html-error\""));
}

#[test]
fn markup_that_cannot_be_saved_is_named() {
    let fake = fake().refuse("update_template", Failure::field("html", "a block is not closed"));
    let answer = fake.post(PATH, "content", &[("html", "{{#if x}}"), ("preview", "save")]);
    assert_eq!(answer.status, 200);
    assert!(html(answer).contains("id=\"content-html-error\""));
}

#[test]
fn a_template_in_mjml_is_edited_as_mjml() {
    let fake = with_source("<mjml>1");
    let page = html(fake.get(PATH));
    assert!(page.contains("name=\"mjml\"") && !page.contains("name=\"html\""), "{page}");
    assert!(page.contains("&lt;mjml&gt;1") && page.contains("/dashboard/templates/tpl_1/compiled"), "{page}");
    assert!(page.contains("Compiled HTML: "), "{page}");
    fake.post(PATH, "content", &[("mjml", "<mjml>2"), ("if_version", "4")]);
    let CallBody::Json(saved) = &fake.calls("update_template")[0].body else { panic!("no body") };
    assert_eq!((&saved["mjml"], saved.get("html")), (&json!("<mjml>2"), None));
    // An empty source would be a conversion.
    let page = html(fake.post(PATH, "content", &[("mjml", " "), ("preview", "save")]));
    assert!(page.contains("id=\"content-mjml-error\""), "{page}");
    assert_eq!(fake.calls("update_template").len(), 1);
}

#[test]
fn an_error_of_mjml_is_shown_with_its_line() {
    let text = "line 3, column 5: `<mj-section>` is not closed";
    let fake = with_source("<mjml>").refuse("preview_template", Failure::field("changes.mjml", text));
    let page = html(fake.post(PATH, "content", &[("mjml", "<mjml>"), ("preview", "1")]));
    assert!(page.contains("id=\"content-mjml-error\"") && page.contains("ine 3, column 5"), "{page}");
}

#[test]
fn a_conversion_is_confirmed() {
    let fake = with_source("<mjml>");
    let path = format!("{PATH}/compiled");
    assert_eq!(fake.post(&path, "convert", &[("seen_version", "4")]).status, 400);
    assert!(fake.calls("update_template").is_empty());
    let answer = fake.post(&path, "convert", &[("seen_version", "4"), ("confirm", "true")]);
    assert_eq!(location(answer), "/dashboard/templates/tpl_1?done=changed");
    assert_eq!(fake.calls("update_template")[0].body, CallBody::Json(json!({"mjml": null, "if_version": 4})));
}

#[test]
fn sources_of_mjml_are_compared() {
    let page = html(with_source("<mjml>").get(&format!("{PATH}/versions/1")));
    assert!(page.contains("<summary>MJML</summary>") && page.contains("<summary>Compiled HTML</summary>"), "{page}");
    // The compiled HTML differs; the source does not.
    let page = html(with_source("<mjml>").get(&format!("{PATH}/diff?from=1&to=draft")));
    assert!(page.contains("There are no differences"), "{page}");
}

#[test]
fn a_new_template_starts_in_the_chosen_format() {
    let fake = fake().answer("create_template", json!({"template": template()}));
    for (format, starts) in [("html", false), ("mjml", true)] {
        fake.post("/templates/new", "create", &[("name", "N"), ("category", "product"), ("format", format)]);
        let calls = fake.calls("create_template");
        let CallBody::Json(body) = &calls[calls.len() - 1].body else { panic!("no body") };
        assert_eq!(body["mjml"].as_str().is_some_and(|mjml| mjml.starts_with("<mjml>")), starts);
        assert_eq!(body.get("format"), None);
    }
}

#[test]
fn deletion_asks_for_the_name() {
    let fake = fake();
    let delete = format!("{PATH}/delete");
    assert_eq!(fake.post(&delete, "delete", &[("confirm", "other")]).status, 400);
    assert!(fake.calls("delete_template").is_empty());
    assert_eq!(location(fake.post(&delete, "delete", &[("confirm", HOSTILE)])), "/dashboard/templates?done=deleted");
}

#[test]
fn an_earlier_version_is_published_again() {
    let fake = fake();
    let answer = fake.post(&format!("{PATH}/versions/1"), "roll-back", &[("note", "Back")]);
    assert_eq!(location(answer), "/dashboard/templates/tpl_1/versions?done=rolled_back");
    assert_eq!(fake.calls("roll_back_template")[0].body, CallBody::Json(json!({"note": "Back", "version": 1})));
}
