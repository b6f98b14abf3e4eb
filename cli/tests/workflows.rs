//! `templates`, `plan`, `apply` and `import` against a scripted server.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod scripted_server;

use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

use scripted_server::{Reply, ScriptedServer, mode_of};
use serde_json::{Value, json};

fn template(version: u64, subject: &str) -> Value {
    json!({
        "id": "tpl_1", "alias": "welcome", "name": "Welcome", "category": "transactional", "unsubscribe_enabled": false,
        "from": null, "reply_to": [], "subject": subject, "preheader": null, "html": "<p>Hi</p>\n", "text": null,
        "variables": [], "status": "draft", "draft_version": version, "published_version": null,
        "has_unpublished_changes": true,
    })
}

/// A server with one template, whose version others may change.
fn template_server() -> (ScriptedServer, Arc<Mutex<(u64, String)>>) {
    let state = Arc::new(Mutex::new((1, "Hi".to_owned())));
    let shared = Arc::clone(&state);
    let server = ScriptedServer::start(move |request| {
        let mut state = shared.lock();
        match (request.method.as_str(), request.target.as_str()) {
            ("GET", "/templates?limit=100") => {
                Reply::Json(200, json!({"templates": [template(state.0, &state.1)], "has_more": false}))
            }
            ("GET", "/templates/welcome") => Reply::Json(200, json!({"template": template(state.0, &state.1)})),
            ("PATCH", "/templates/welcome") => {
                let body = request.json();
                if body["if_version"] != state.0 {
                    let error = json!({"code": "conflict", "message": "x", "details": {"draft_version": state.0}});
                    return Reply::Json(409, json!({"error": error}));
                }
                *state = (state.0 + 1, body["subject"].as_str().unwrap().to_owned());
                Reply::Json(200, json!({"template": template(state.0, &state.1)}))
            }
            ("POST", "/templates/welcome/publish") => {
                Reply::Json(200, json!({"template": template(state.0, &state.1), "version": {"number": 1}}))
            }
            ("GET", "/templates/new") => Reply::Json(404, json!({"error": {"code": "not_found", "message": "x"}})),
            ("POST", "/templates") => Reply::Json(200, json!({"template": template(1, "New")})),
            other => panic!("{other:?}"),
        }
    });
    (server, state)
}

fn edit(path: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{text}");
    std::fs::write(path, text.replace(old, new)).unwrap();
}

#[test]
fn templates_are_pulled_changed_and_pushed() {
    let (server, _) = template_server();
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let settings = directory.path().join("welcome/template.toml");
    let rehearsal = server.run(&["templates", "pull", dir, "--dry-run"]);
    assert_eq!(rehearsal.json()["templates"][0]["action"], "would create");
    assert!(!settings.exists());
    assert_eq!(server.run(&["templates", "pull", dir]).json()["templates"][0]["action"], "created");
    assert_eq!(server.run(&["templates", "diff", dir]).status, Some(0));
    edit(&settings, "subject = \"Hi\"", "subject = \"Hello\"");
    let diff = server.run(&["templates", "diff", dir]);
    assert_eq!((diff.status, diff.stderr.as_str()), (Some(1), ""));
    assert!(diff.stdout.contains("-subject = \"Hi\"\n+subject = \"Hello\""), "{diff:?}");
    // The files' changes stay.
    let pull = server.run(&["templates", "pull", dir]);
    assert_eq!((pull.status, pull.json()["templates"][0]["action"].as_str()), (Some(0), Some("unchanged")));
    let before = server.requests().len();
    let rehearsal = server.run(&["templates", "push", dir, "--publish", "--dry-run"]);
    assert_eq!(rehearsal.json()["templates"][0]["action"], "would update");
    assert!(server.lines()[before..].iter().all(|line| line.starts_with("GET ")));
    let push = server.run(&["templates", "push", dir, "--publish"]).json();
    let row = &push["templates"][0];
    assert_eq!(
        (&row["action"], &row["draft_version"], &row["detail"]),
        (&json!("updated"), &json!(2), &json!("published version 1"))
    );
    assert_eq!(server.run(&["templates", "push", dir]).json()["templates"][0]["action"], "unchanged");
}

#[test]
fn changes_of_others_are_not_overwritten() {
    let (server, state) = template_server();
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let settings = directory.path().join("welcome/template.toml");
    server.run(&["templates", "pull", dir]);
    edit(&settings, "\"Hi\"", "\"Mine\"");
    *state.lock() = (2, "Theirs".to_owned());
    for verb in ["push", "pull"] {
        let run = server.run(&["templates", verb, dir]);
        assert_eq!((run.status, run.json()["templates"][0]["action"].as_str()), (Some(1), Some("conflict")), "{verb}");
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("keep a copy") && message.contains("`templates pull --force`"), "{message}");
    }
    assert_eq!(state.lock().1, "Theirs");
    assert!(std::fs::read_to_string(&settings).unwrap().contains("Mine"));
    assert_eq!(server.run(&["templates", "push", dir, "--force"]).status, Some(0));
    assert_eq!(*state.lock(), (3, "Mine".to_owned()));
    *state.lock() = (4, "Again".to_owned());
    // The files are those of the last push: they may be replaced.
    assert_eq!(server.run(&["templates", "pull", dir]).json()["templates"][0]["action"], "updated");
    assert!(std::fs::read_to_string(&settings).unwrap().contains("Again"));
}

#[test]
fn a_new_folder_becomes_a_template() {
    let (server, _) = template_server();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("new")).unwrap();
    std::fs::write(directory.path().join("new/template.toml"), "subject = 'New'\n").unwrap();
    let run = server.run(&["templates", "push", directory.path().to_str().unwrap()]);
    assert_eq!(run.json()["templates"][0]["action"], "created", "{run:?}");
    let request = server.requests().last().unwrap().json();
    assert_eq!((&request["alias"], &request["name"], &request["html"]), (&json!("new"), &json!("new"), &Value::Null));
}

/// A server with one template in MJML. It keeps the source if `html` is given, which is what it compiles to.
fn mjml_server() -> ScriptedServer {
    let source = Mutex::new(Some("<mjml>one</mjml>\n".to_owned()));
    ScriptedServer::start(move |request| {
        let mut source = source.lock();
        if request.method == "PATCH" {
            let body = request.json();
            assert_ne!(body["mjml"].is_string(), body["html"].is_string(), "{body}");
            if let Some(mjml) = body.get("mjml") {
                *source = mjml.as_str().map(str::to_owned);
            }
        }
        let mut one = template(1, "Hi");
        (one["mjml"], one["html"]) = (json!(*source), json!("<p>compiled"));
        match request.target.as_str() {
            "/templates?limit=100" => Reply::Json(200, json!({"templates": [one], "has_more": false})),
            _ => Reply::Json(200, json!({"template": one})),
        }
    })
}

#[test]
fn mjml_sources_are_pulled_compared_and_pushed() {
    let server = mjml_server();
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let folder = directory.path().join("welcome");
    assert_eq!(server.run(&["templates", "pull", dir]).json()["templates"][0]["action"], "created");
    assert_eq!(std::fs::read_to_string(folder.join("body.mjml")).unwrap(), "<mjml>one</mjml>\n");
    assert!(!folder.join("body.html").exists());
    assert_eq!(server.run(&["templates", "diff", dir]).status, Some(0));
    edit(&folder.join("body.mjml"), "one", "two");
    let diff = server.run(&["templates", "diff", dir]);
    assert!(diff.stdout.contains("files/welcome/body.mjml\n") && !diff.stdout.contains("body.html"), "{diff:?}");
    assert_eq!(server.run(&["templates", "push", dir]).json()["templates"][0]["action"], "updated");
    assert_eq!(server.run(&["templates", "push", dir]).json()["templates"][0]["action"], "unchanged");
    // Two sources are refused: nobody guesses which one is meant.
    std::fs::write(folder.join("body.html"), "<p>").unwrap();
    let both = server.run(&["templates", "push", dir]);
    assert_eq!(both.status, Some(2), "{both:?}");
    assert!(both.stderr.contains("has both body.html and body.mjml"), "{both:?}");
}

#[test]
fn the_compiled_html_takes_the_place_of_its_source() {
    let server = mjml_server();
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let folder = directory.path().join("welcome");
    server.run(&["templates", "pull", dir]);
    std::fs::remove_file(folder.join("body.mjml")).unwrap();
    std::fs::write(folder.join("body.html"), "<p>compiled").unwrap();
    assert_eq!(server.run(&["templates", "push", dir]).json()["templates"][0]["action"], "updated");
    let request = server.requests().last().unwrap().json();
    assert_eq!((&request["html"], request.get("mjml")), (&json!("<p>compiled"), Some(&Value::Null)));
    // The files are compared with the draft, not with the last push.
    std::fs::remove_file(folder.join(".postrider.json")).unwrap();
    let diff = server.run(&["templates", "diff", dir]);
    assert_eq!(diff.status, Some(0), "{diff:?}");
}

const DECLARATION: &str = r#"
[[domains]]
name = "example.com"
open_tracking = true

[[webhooks]]
url = "https://app.example.com/hooks"
events = ["email.bounced"]
"#;

/// A server with one domain, which others change after a number of reads.
fn account_server(changed_after_reads: usize) -> ScriptedServer {
    let reads = Mutex::new(0);
    ScriptedServer::start(move |request| {
        let domain = |click_tracking: bool| json!({"id": "dom_1", "name": "example.com", "open_tracking": false, "click_tracking": click_tracking});
        let mut reads = reads.lock();
        match (request.method.as_str(), request.target.as_str()) {
            ("GET", "/domains?limit=100") => Reply::Json(200, json!({"domains": [domain(false)], "has_more": false})),
            ("GET", "/webhooks?limit=100") => {
                let other = json!({"id": "whk_2", "url": "https://other.example/"});
                Reply::Json(200, json!({"webhooks": [other], "has_more": false}))
            }
            ("GET", "/domains/dom_1") => {
                *reads += 1;
                Reply::Json(200, json!({"domain": domain(*reads > changed_after_reads)}))
            }
            ("PATCH", "/domains/dom_1") => Reply::Json(200, json!({"domain": domain(false)})),
            ("POST", "/webhooks") => Reply::Json(200, json!({"webhook": {"id": "whk_1"}, "secret": "whsec_new"})),
            other => panic!("{other:?}"),
        }
    })
}

fn declaration() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mail.toml");
    std::fs::write(&path, DECLARATION).unwrap();
    (directory, path.to_str().unwrap().to_owned())
}

#[test]
fn a_plan_shows_changes_and_writes_nothing() {
    let server = account_server(9);
    let (_directory, file) = declaration();
    let run = server.run(&["plan", &file, "--json"]);
    assert_eq!((run.status, run.stderr.as_str()), (Some(5), ""));
    let plan = run.json();
    assert_eq!(plan["changes"][0]["fields"], json!([{"field": "open_tracking", "old": false, "new": true}]));
    assert_eq!(
        (&plan["changes"][1]["action"], &plan["not_in_file"][0]["key"]),
        (&json!("create"), &json!("https://other.example/"))
    );
    assert!(server.requests().iter().all(|request| request.method == "GET"));
    std::fs::write(&file, "[[domains]]\nname = 'example.com'\n").unwrap();
    assert_eq!(server.run(&["plan", &file]).status, Some(0));
}

#[test]
fn apply_asks_or_needs_yes() {
    let server = account_server(9);
    let (_directory, file) = declaration();
    let run = server.run(&["apply", &file]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(2), Some("usage")));
    assert!(server.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn apply_writes_changes_and_saves_secrets() {
    let server = account_server(9);
    let (directory, file) = declaration();
    let secrets = directory.path().join("secrets");
    let run = server.run(&["apply", &file, "--yes", "--save-secrets", secrets.to_str().unwrap()]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let written: Vec<(String, Value)> = server
        .requests()
        .iter()
        .filter(|request| request.method != "GET")
        .map(|request| (request.line(), request.json()))
        .collect();
    assert_eq!(
        written,
        [
            ("PATCH /domains/dom_1".to_owned(), json!({"open_tracking": true})),
            ("POST /webhooks".to_owned(), json!({"url": "https://app.example.com/hooks", "events": ["email.bounced"]})),
        ]
    );
    let secret = secrets.join("app.example.com-hooks.secret");
    assert_eq!((std::fs::read_to_string(&secret).unwrap().trim(), mode_of(&secret)), ("whsec_new", 0o600));
    assert!(!run.stdout.contains("whsec_new") && !run.stderr.contains("whsec_new"));
    // Without a directory, the secret is in the results.
    let shown = account_server(9).run(&["apply", &file, "--yes"]).json();
    assert_eq!(shown["results"][1]["secret"], "whsec_new");
}

#[test]
fn apply_writes_nothing_that_others_changed() {
    let server = account_server(0);
    let (_directory, file) = declaration();
    let run = server.run(&["apply", &file, "--yes"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.error()["message"].as_str().unwrap().contains("someone else has changed it"));
    assert!(server.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn suppressions_are_imported_with_the_lines_of_their_file() {
    let server = ScriptedServer::start(|request| match (request.method.as_str(), request.target.as_str()) {
        ("POST", "/suppressions/import") => {
            Reply::Json(200, json!({"import": {"id": "imp_1", "status": "queued", "counts": {}}}))
        }
        ("GET", "/suppressions/import/imp_1") => {
            let counts = json!({"processed": 2, "created": 1, "exists": 0, "invalid": 1, "refused": 0});
            let errors = json!([{"line": 3, "message": "is not an address"}]);
            Reply::Json(
                200,
                json!({"import": {"id": "imp_1", "status": "completed", "counts": counts, "errors": errors}}),
            )
        }
        other => panic!("{other:?}"),
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("export.csv");
    let rows = "EmailAddress,SuppressionReason,Origin\n\na@example.net,HardBounce,Recipient\nnobody,HardBounce,x\n\
                A@example.net,HardBounce,x\nb@example.net,SpamComplaint,Recipient\n";
    std::fs::write(&path, rows).unwrap();
    let path = path.to_str().unwrap();
    let rehearsal = server.run(&["import", "postmark", path, "--dry-run"]);
    let report = rehearsal.json();
    assert_eq!((rehearsal.status, server.requests().len()), (Some(1), 0));
    assert_eq!(rehearsal.error()["message"], "1 row cannot be read");
    assert_eq!(report["by_reason"], json!({"hard_bounce": 1, "complaint": 1}));
    assert_eq!((&report["duplicates"], &report["errors"][0]["line"]), (&json!(1), &json!(4)));
    let run = server.run(&["import", "postmark", path]);
    assert_eq!(
        server.requests()[0].json()["csv"],
        "\"email\",\"reason\"\n\"a@example.net\",\"hard_bounce\"\n\"b@example.net\",\"complaint\"\n"
    );
    // Line 3 of the list was line 6 of the file.
    assert_eq!(run.json()["import"]["errors"][0]["line"], 6, "{run:?}");
}

#[test]
fn an_import_without_the_last_page_of_the_list_is_noticed() {
    let server = ScriptedServer::start(|request| panic!("{request:?}"));
    let directory = tempfile::tempdir().unwrap();
    let page = |name: &str, content: Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let row = |email: &str| json!([{"EmailAddress": email, "Reason": "BOUNCE"}]);
    let first = page("1.json", json!({"SuppressedDestinationSummaries": row("a@example.net"), "NextToken": "t"}));
    let last = page("2.json", json!({"SuppressedDestinationSummaries": row("b@example.net")}));
    let old = directory.path().join("old.csv");
    std::fs::write(&old, "email,origin\ra@example.net,bounce\rb@example.net,bounce\r").unwrap();
    let run = server.run(&["import", "resend", old.to_str().unwrap(), "--dry-run"]);
    assert_eq!(run.json()["suppressions"], 2, "{run:?}");
    let resend = page("3.json", json!({"data": [{"email": "c@example.net", "origin": "bounce"}], "has_more": true}));
    for (arguments, is_missing) in
        [(vec!["ses", &first], true), (vec!["ses", &first, &last], false), (vec!["resend", &resend], true)]
    {
        let run = server.run(&[&["import"], arguments.as_slice(), &["--dry-run"]].concat());
        assert_eq!((run.status, run.json()["last_page_missing"].as_bool()), (Some(0), Some(is_missing)), "{run:?}");
        assert_eq!(run.stderr.contains("more pages"), is_missing, "{run:?}");
    }
}

#[test]
fn a_held_call_is_no_result_and_can_be_waited_for() {
    let asked = Arc::new(Mutex::new(0));
    let server = ScriptedServer::start(move |request| match (request.method.as_str(), request.target.as_str()) {
        ("POST", "/emails") => Reply::Json(
            202,
            json!({
                "status": "approval_required", "approval_id": "apr_1", "message": "A person decides",
                "url": "https://x.example/dashboard/approvals/apr_1", "expires_at": "2026-01-02T00:00:00Z",
            }),
        ),
        ("GET", "/approvals/apr_1") => {
            let mut asked = asked.lock();
            *asked += 1;
            let (status, response) = match *asked {
                1 => ("pending", Value::Null),
                _ => ("executed", json!({"id": "msg_1"})),
            };
            Reply::Json(200, json!({"approval": {"id": "apr_1", "status": status, "response": response}}))
        }
        ("GET", "/approvals/apr_2") => {
            let error = json!({"error": {"code": "conflict", "message": "The email differs"}});
            Reply::Json(200, json!({"approval": {"id": "apr_2", "status": "failed", "response": error}}))
        }
        other => panic!("{other:?}"),
    });
    let send = ["emails", "send", "--from", "a@example.com", "--to", "b@example.net", "--subject", "x", "--text", "x"];
    let held = server.run(&send);
    assert_eq!((held.status, held.stdout.as_str()), (Some(6), ""), "{held:?}");
    let error: Value = serde_json::from_str(&held.stderr).unwrap();
    assert_eq!(error["error"]["code"], "approval_required");
    assert_eq!(error["error"]["details"]["approval_id"], "apr_1");
    let done = server.run(&["approvals", "wait", "apr_1"]);
    assert_eq!((done.status, &done.json()["id"]), (Some(0), &json!("msg_1")));
    let failed = server.run(&["approvals", "wait", "apr_2"]);
    assert_eq!(failed.status, Some(1));
    assert!(failed.stderr.contains("The email differs"), "{failed:?}");
}
