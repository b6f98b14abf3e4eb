//! The pages of suppressions and opt-outs, with fixed answers.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dashboard::answer::PageContent;
use crate::dashboard::backend::{CallBody, Failure};
use crate::dashboard::fake_backend::{FakeBackend, HOSTILE, assert_harmless, html, location};
use crate::dashboard::request::UploadedFile;

fn suppression(reason: &str) -> Value {
    json!({
        "id": "sup_1", "email": "grace@example.net", "reason": reason, "source": "system", "email_id": "msg_1",
        "detail": {"smtp_code": 550, "enhanced_code": "5.1.1", "diagnostic": HOSTILE}, "note": HOSTILE,
        "expires_at": null, "created_at": "2026-11-26T10:00:00Z",
    })
}

fn import() -> Value {
    json!({"id": "imp_1", "status": "running",
        "counts": {"total": 4, "processed": 2, "created": 1, "exists": 0, "invalid": 1, "refused": 0},
        "errors": [{"line": 2, "message": HOSTILE}], "created_at": "2026-11-26T10:00:00Z", "completed_at": null})
}

fn backend(reason: &str) -> FakeBackend {
    let opt_out = json!({"id": "opt_1", "email": HOSTILE, "category": "newsletter", "category_label": "Newsletter",
        "source": "recipient", "email_id": "msg_1", "created_at": "2026-11-26T10:00:00Z"});
    FakeBackend::new()
        .answer("list_suppressions", json!({"suppressions": [suppression(reason)], "next_cursor": "c2"}))
        .answer("get_suppression", json!({"suppression": suppression(reason)}))
        .answer("delete_suppression", json!({"ok": true}))
        .answer("list_category_opt_outs", json!({"category_opt_outs": [opt_out], "next_cursor": null}))
        .answer("delete_category_opt_out", json!({"ok": true}))
        .answer("get_suppression_import", json!({"import": import()}))
        .answer("list_suppression_imports", json!({"imports": [import()], "next_cursor": null}))
}

#[test]
fn texts_of_strangers_are_harmless() {
    let backend = backend("hard_bounce");
    for target in [
        "/suppressions",
        "/suppressions/sup_1",
        "/suppressions/opt-outs",
        "/suppressions/opt-outs/opt_1/delete?email=x",
        "/suppressions/imports/imp_1",
    ] {
        let answer = backend.get(target);
        assert_eq!(answer.status, 200, "{target}");
        assert_harmless(&html(answer));
    }
    assert_eq!(backend.get("/suppressions/opt-outs/opt_2/delete?email=x").status, 404);
}

#[test]
fn imports_are_listed_with_their_progress() {
    let page = html(backend("import").get("/suppressions/imports"));
    for part in ["/dashboard/suppressions/imports/imp_1", "2 of 4", "Running"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let link = "href=\"/dashboard/suppressions/imports\"";
    let viewer = backend("import").forbid("import_suppressions");
    assert!(html(viewer.get("/suppressions")).contains(link), "whoever may not import finds the list too");
    assert!(!html(viewer.forbid("list_suppression_imports").get("/suppressions")).contains(link));
    let none = FakeBackend::new().answer("list_suppression_imports", json!({"imports": []}));
    assert!(html(none.get("/suppressions/imports")).contains("No lists imported yet"));
}

#[test]
fn the_export_has_the_filters() {
    let answer = backend("manual").get("/suppressions/export.csv?reason=manual&cursor=x&email=example.net");
    let PageContent::Download { call, file_name } = answer.content else { panic!("no download") };
    assert_eq!(file_name, "suppressions-2026-11-26.csv");
    assert_eq!(
        call.query,
        [("email", "@example.net"), ("reason", "manual")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn a_suppression_is_removed_by_its_name() {
    let backend = backend("hard_bounce");
    let refused = backend.post("/suppressions/sup_1/delete", "remove", &[("confirm", "ada@example.net")]);
    assert_eq!((refused.status, backend.calls("delete_suppression").len()), (400, 0));
    let done = backend.post("/suppressions/sup_1/delete", "remove", &[("confirm", "grace@example.net")]);
    assert_eq!(location(done), "/dashboard/suppressions?done=deleted");
}

#[test]
fn what_a_complaint_caused_is_removed_only_on_request() {
    let backend = backend("complaint");
    assert!(html(backend.get("/suppressions/selected?id=sup_1&id=sup_1")).contains("reported an email as spam"));
    let name = ("confirm", "grace@example.net");
    let refused = backend.post("/suppressions/sup_1/delete", "remove", &[name]);
    assert_eq!(refused.status, 400);
    let kept = html(backend.post("/suppressions/selected", "remove", &[("ids", "sup_1")]));
    assert!(kept.contains("Kept"), "{kept}");
    assert!(backend.calls("delete_suppression").is_empty());
    let done = backend.post("/suppressions/selected", "remove", &[("ids", "sup_1"), ("force", "true")]);
    assert_eq!(location(done), "/dashboard/suppressions?done=deleted");
    assert_eq!(backend.calls("delete_suppression")[0].query, [("force".to_owned(), "true".to_owned())]);
}

#[test]
fn added_addresses_with_errors_are_listed() {
    let entries = json!({"data": [
        {"index": 0, "id": "sup_1", "status": "created"},
        {"index": 1, "id": null, "status": "failed", "error": {"message": HOSTILE, "code": "validation_error"}},
    ]});
    let backend = backend("manual").answer("create_suppression", entries);
    let page =
        html(backend.post("/suppressions/new", "add", &[("emails", "grace@example.net\nnobody"), ("note", "x")]));
    assert_harmless(&page);
    assert!(page.contains("Not added") && page.contains("/dashboard/suppressions/sup_1"));
    assert_eq!(backend.post("/suppressions/new", "add", &[("emails", " ")]).status, 400);
}

#[test]
fn checked_addresses_say_whether_mail_goes_to_them() {
    let checked = json!({"data": [
        {"email": "a@example.net", "suppressed": true, "reason": "complaint", "categories": [], "suppression_id": "sup_1"},
        {"email": "b@example.net", "suppressed": false, "reason": null, "categories": ["newsletter"]},
        {"email": HOSTILE, "suppressed": false, "reason": null, "categories": [], "error": {"message": "is no address"}},
    ]});
    let backend = backend("manual").answer("check_suppressions", checked);
    let page = html(backend.post("/suppressions/check", "check", &[("emails", "a@example.net\nb@example.net")]));
    assert_harmless(&page);
    for text in ["Not sent", "Partly sent", "Newsletter", "No address", "is no address"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_list_is_tried_before_it_is_imported() {
    let dry_run = json!({"dry_run": {
        "counts": {"total": 1_004, "created": 1, "exists": 2, "repeated": 1, "invalid": 1_001, "refused": 3},
        "left_out": [{"line": 4, "email": null, "result": "invalid", "message": HOSTILE}],
        "lines": [
            {"line": 2, "email": HOSTILE, "reason": "hard_bounce", "result": "created"},
            {"line": 3, "email": "b@example.net", "reason": "import", "result": "exists", "existing_reason": "manual"},
            {"line": 5, "email": "a@example.net", "reason": "import", "result": "repeated"},
        ],
    }});
    let backend = backend("manual")
        .answer("dry_run_suppression_import", dry_run)
        .answer("import_suppressions", json!({"import": {"id": "imp_1"}}));
    assert_eq!(backend.post("/suppressions/import", "dry-run", &[("csv", "")]).status, 400);
    let list = "email,reason\na@example.net,bounce\n";
    let file = UploadedFile { field: "file".into(), file_name: "list.csv".into(), content: Bytes::from(list) };
    let page = html(backend.post_files("/suppressions/import", "dry-run", &[("csv", "")], vec![file]));
    assert_harmless(&page);
    for text in
        ["Repeated", "Already present", "The first 100 of 1\u{202f}001", "Your plan has no room for", "Import the list"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    let sent = CallBody::File("text/csv", Bytes::from(list));
    assert_eq!(backend.calls("dry_run_suppression_import")[0].body, sent);
    assert!(backend.calls("import_suppressions").is_empty());
    let done = backend.post("/suppressions/import", "import", &[("csv", list)]);
    assert_eq!(location(done), "/dashboard/suppressions/imports/imp_1?done=imported");
    assert_eq!(backend.calls("import_suppressions")[0].body, sent);
}

#[test]
fn errors_of_the_list_are_beside_its_field() {
    let refused = Failure::field("csv", "no address column found");
    let backend = backend("manual").refuse("dry_run_suppression_import", refused);
    let page = html(backend.post("/suppressions/import", "dry-run", &[("csv", "name")]));
    assert!(page.contains("id=\"dry-run-csv-error\""), "{page}");
    let file = UploadedFile { field: "file".into(), file_name: "x.csv".into(), content: Bytes::from("name") };
    let page = html(backend.post_files("/suppressions/import", "dry-run", &[], vec![file]));
    assert!(page.contains("id=\"dry-run-file-error\""), "{page}");
}

#[test]
fn lists_without_entries_say_what_to_do() {
    let backend = FakeBackend::new()
        .answer("list_suppressions", json!({"suppressions": []}))
        .answer("list_category_opt_outs", json!({"category_opt_outs": []}));
    assert!(html(backend.get("/suppressions")).contains("Import a list"));
    assert!(html(backend.get("/suppressions?reason=manual")).contains("No suppressions match"));
    assert!(html(backend.get("/suppressions/opt-outs")).contains("No opt-outs yet"));
    assert!(html(backend.get("/suppressions/selected")).contains("No suppressions selected"));
}
