//! The program against a scripted server: exit statuses, errors, secrets, questions, paging, and answers that go wrong.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod scripted_server;

use std::io::Write as _;
use std::process::Stdio;

use scripted_server::{KEY, Reply, ScriptedServer, finish, mode_of, program};
use serde_json::{Value, json};

fn error(status: u16, code: &str) -> Reply {
    Reply::Json(status, json!({"error": {"message": format!("It is {code}"), "code": code, "request_id": "req_1"}}))
}

#[test]
fn exit_statuses_tell_what_to_do() {
    let server = ScriptedServer::start(|request| match request.target.as_str() {
        "/account" => Reply::Json(200, json!({"account": {"id": "acct_1"}})),
        "/emails/gone" => error(404, "not_found"),
        "/emails/later" => {
            let body = json!({"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}).to_string();
            // Longer than the timeout, so it is not waited for.
            Reply::Raw(429, vec![("retry-after", "600".to_owned())], body.into_bytes())
        }
        "/emails" => error(504, "send_unconfirmed"),
        other => panic!("{other}"),
    });
    let send: &[&str] = &["emails", "send", "--from", "a@example.com", "--to", "b@example.net", "--subject", "x"];
    for (arguments, status, code) in [
        (&["account", "get"][..], 0, ""),
        (&["client", "account", "get"], 0, ""),
        (&["emails", "get", "gone"], 1, "not_found"),
        (&["emails", "got"], 2, "usage"),
        (&["templates", "push", "/no/such/directory"], 2, "usage"),
        (&["emails", "get", "later"], 3, "rate_limit_exceeded"),
        (send, 4, "send_unconfirmed"),
    ] {
        let run = server.run(arguments);
        assert_eq!(run.status, Some(status), "{arguments:?} {run:?}");
        if status == 0 {
            assert_eq!((run.json()["account"]["id"].as_str(), run.stderr.as_str()), (Some("acct_1"), ""));
        } else {
            assert_eq!((run.error()["code"].as_str(), run.stdout.as_str()), (Some(code), ""), "{arguments:?}");
        }
    }
    for words in [&["emails", "get", "x"][..], &["explain", "x"], &["login"], &["whoami"]] {
        let run = server.run(&[words, &["--colour", "red"]].concat());
        let message = run.error()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((run.status, run.error()["code"].as_str()), (Some(2), Some("usage")), "{run:?}");
        assert!(message.starts_with("unexpected argument '--colour'"), "{run:?}");
    }
    let help = server.run(&["whoami", "--help"]);
    assert!(help.status == Some(0) && help.stdout.contains("Usage: postrider whoami"), "{help:?}");
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[test]
fn the_version_needs_no_server() {
    let run = finish(program().arg("--version").output().unwrap());
    assert_eq!((run.status, run.stdout.as_str()), (Some(0), concat!("postrider ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn the_help_of_doctor_names_its_command() {
    let run = finish(program().args(["client", "doctor", "--help"]).output().unwrap());
    assert!(run.status == Some(0) && run.stdout.contains("Usage: postrider client doctor"), "{run:?}");
}

#[test]
fn nobody_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut command = program();
    command.args(["account", "get", "--timeout", "1"]).env("POSTRIDER_API_KEY", KEY);
    let run = finish(command.env("POSTRIDER_BASE_URL", format!("http://{address}")).output().unwrap());
    assert_eq!((run.status, run.error()["reason"].as_str()), (Some(3), Some("refused")), "{run:?}");
}

#[test]
fn keys_are_never_printed() {
    let server = ScriptedServer::start(|_| error(401, "authentication_error"));
    assert_eq!(server.run(&["account", "get"]).status, Some(1));
    // A key in two lines is refused, and not shown.
    let mut command = server.command(&["account", "get"]);
    let run = finish(command.env("POSTRIDER_API_KEY", format!("{KEY}\n{KEY}")).output().unwrap());
    assert_eq!(run.status, Some(2));
    assert_eq!(server.requests().len(), 1);
    // Neither does the request that `--dry-run` prints have it.
    assert_eq!(server.run(&["emails", "send", "--to", "a@example.net", "--dry-run"]).status, Some(0));
}

#[test]
fn secrets_go_to_new_private_files() {
    let server = ScriptedServer::start(|request| match request.method.as_str() {
        "POST" => Reply::Json(200, json!({"api_key": {"id": "key_1"}, "secret": "rnl_new"})),
        _ => panic!(),
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let shown = path.to_str().unwrap();
    let run = server.run(&["api-keys", "create", "--name", "x", "--save-secret", shown]);
    assert_eq!((run.status, mode_of(&path)), (Some(0), 0o600), "{run:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "rnl_new\n");
    assert!(!run.stdout.contains("rnl_new") && run.json()["saved_to"] == shown);
    // A file that exists is not replaced, and the request is not sent.
    let again = server.run(&["api-keys", "create", "--name", "x", "--save-secret", shown]);
    assert_eq!((again.status, server.requests().len()), (Some(2), 1));
}

#[test]
fn deletions_need_yes_without_a_terminal() {
    let server = ScriptedServer::start(|_| Reply::Json(200, json!({"ok": true})));
    let refused = server.run(&["domains", "delete", "example.com"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--yes") && server.requests().is_empty());
    assert_eq!(server.run(&["domains", "delete", "example.com", "--yes"]).status, Some(0));
    assert_eq!(server.lines(), ["DELETE /domains/example.com"]);
    assert_eq!(server.run(&["domains", "delete", "example.com", "--dry-run"]).status, Some(0));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn numbers_keep_all_their_digits() {
    let event = r#"{"id":"ae_1","data":{"order_id":12345678901234567890123,"price":19.90}}"#;
    let server = ScriptedServer::start(move |request| {
        let body = match request.target.as_str() {
            "/events/ae_1" => format!(r#"{{"event":{event}}}"#),
            _ => format!(r#"{{"events":[{event}],"has_more":false,"next_cursor":null}}"#),
        };
        Reply::Raw(200, vec![("content-type", "application/json".to_owned())], body.into_bytes())
    });
    for arguments in [
        &["events", "get", "ae_1"][..],
        &["events", "get", "ae_1", "--fields", "event.data"],
        &["events", "list"],
        &["events", "list", "--fields", "data"],
        &["events", "list", "--jsonl"],
        &["events", "list", "--all"],
    ] {
        let run = server.run(arguments);
        let has_digits = run.stdout.contains(r#"{"order_id":12345678901234567890123,"price":19.90}"#);
        assert!(run.status == Some(0) && has_digits, "{arguments:?} {run:?}");
    }
    let data = r#"{"price":19.90,"order_id":12345678901234567890123}"#;
    let body = format!(r#"{{"name":"order","data":{data}}}"#);
    for arguments in [&["--name", "order", "--data", data][..], &["--body", body.as_str()]] {
        let run = server.run(&[&["events", "send", "--dry-run"][..], arguments].concat());
        let message = run.error()["message"].as_str().unwrap_or_default().to_owned();
        let is_named = message.contains("the number 12345678901234567890123 would lose digits");
        assert!(run.status == Some(2) && is_named, "{run:?}");
    }
}

/// A page of `/emails`: the cursor is the number of the page.
fn page(target: &str, pages: usize) -> Reply {
    let cursor = target.split_once("cursor=").map_or("0", |(_, cursor)| cursor);
    let number: usize = cursor.split('&').next().unwrap().parse().unwrap();
    let emails: Vec<Value> = (0..2).map(|one| json!({"id": format!("msg_{number}_{one}"), "to": ["a"]})).collect();
    let next = (number + 1 < pages).then(|| (number + 1).to_string());
    Reply::Json(200, json!({"emails": emails, "has_more": next.is_some(), "next_cursor": next}))
}

#[test]
fn all_pages_are_walked() {
    let server = ScriptedServer::start(|request| page(&request.target, 3));
    let lines = server.run(&["emails", "list", "--all", "--jsonl", "--fields", "id", "--limit", "2"]);
    let ids: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = ["msg_0_0", "msg_0_1", "msg_1_0", "msg_1_1", "msg_2_0", "msg_2_1"];
    assert_eq!(ids, expected.map(|id| json!({"id": id})), "{lines:?}");
    assert_eq!(server.lines()[2], "GET /emails?limit=2&cursor=2");
    let array = server.run(&["emails", "list", "--all"]);
    assert_eq!(array.json().as_array().map(Vec::len), Some(6));
    let endless =
        ScriptedServer::start(|_| Reply::Json(200, json!({"emails": [], "has_more": true, "next_cursor": "same"})));
    let run = endless.run(&["emails", "list", "--all"]);
    assert_eq!((run.status, endless.requests().len()), (Some(1), 2));
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    for arguments in [&["emails", "list", "--all", "--jsonl"][..], &["emails", "list", "--all"]] {
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = parking_lot::Mutex::new(wait);
        let server = ScriptedServer::start(move |request| {
            // Until the pipe is closed.
            let _ = wait.lock().recv();
            page(&request.target, 1_000)
        });
        let mut child = server.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        drop(release);
        let run = finish(child.wait_with_output().unwrap());
        assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(server.requests().len() <= 1);
    }
}

#[test]
fn large_errors_are_cut() {
    let server = ScriptedServer::start(|_| Reply::Raw(400, Vec::new(), vec![b'x'; 10 << 20]));
    let run = server.run(&["account", "get"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(1), Some("unexpected_response")));
    assert!(run.stderr.len() < 1_000, "{} bytes", run.stderr.len());
}

#[test]
fn a_proxy_says_when_to_repeat() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        // In the past: at once.
        0 => {
            let at = ("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned());
            let date = ("date", "Thu, 01 Jan 2026 00:00:01 GMT".to_owned());
            Reply::Raw(429, vec![at, date], b"<html>Slow down</html>".to_vec())
        }
        1 => Reply::Json(200, json!({"account": {"id": "acct_1"}})),
        _ => Reply::Raw(429, vec![("retry-after", "600".to_owned())], b"<html>Slow down</html>".to_vec()),
    });
    let run = server.run(&["account", "get"]);
    assert_eq!((run.status, server.requests().len()), (Some(0), 2), "{run:?}");
    // Longer than the timeout.
    let run = server.run(&["account", "get"]);
    assert_eq!((run.status, server.requests().len()), (Some(3), 3), "{run:?}");
    assert_eq!((&run.error()["code"], &run.error()["retry_after"]), (&json!("unexpected_response"), &json!(600)));
}

#[test]
fn a_garbled_answer_to_a_send_names_its_idempotency_key() {
    for body in ["", "<html>Sign in</html>", "{\"id\":"] {
        let server = ScriptedServer::start(move |_| Reply::Raw(200, Vec::new(), body.as_bytes().to_vec()));
        let run = server.run(&["emails", "send", "--from", "a@example.com", "--to", "b@example.net"]);
        let key = server.requests()[0].header("idempotency-key").unwrap().to_owned();
        assert_eq!((run.status, &run.error()["idempotency_key"]), (Some(3), &json!(key)), "{run:?}");
    }
}

#[test]
fn an_earlier_attempt_that_may_have_sent_names_its_idempotency_key() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => error(500, "internal_error"),
        _ => {
            let body = json!({"error": {"message": "Later", "code": "service_unavailable"}}).to_string();
            // Longer than the timeout, so it is not waited for.
            Reply::Raw(503, vec![("retry-after", "600".to_owned())], body.into_bytes())
        }
    });
    let run = server.run(&["emails", "send", "--from", "a@example.com", "--to", "b@example.net"]);
    let key = server.requests()[1].header("idempotency-key").unwrap().to_owned();
    assert_eq!((run.status, &run.error()["idempotency_key"]), (Some(3), &json!(key)), "{run:?}");
}

#[test]
fn only_the_api_says_that_an_earlier_attempt_did_nothing() {
    for (status, code) in [(Some(3), "internal_error"), (Some(1), "validation_error")] {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let server = ScriptedServer::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => error(500, "internal_error"),
            _ if code == "validation_error" => error(422, code),
            _ => Reply::Raw(403, Vec::new(), b"<html>Blocked</html>".to_vec()),
        });
        let run = server.run(&["emails", "send", "--from", "a@example.com", "--to", "b@example.net"]);
        let key = server.requests()[1].header("idempotency-key").unwrap().to_owned();
        let expected = if code == "internal_error" { json!(key) } else { Value::Null };
        assert_eq!((run.status, &run.error()["code"]), (status, &json!(code)), "{run:?}");
        assert_eq!(run.error()["idempotency_key"], expected, "{run:?}");
    }
}

#[test]
fn an_assistant_learns_that_nothing_was_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut command = program();
    command.args(["mcp"]).env("POSTRIDER_BASE_URL", url).env("POSTRIDER_API_KEY", KEY);
    let text = send_through_mcp(command);
    assert!(text.ends_with("nothing was done; try again later.") && !text.contains("idempotency_key"), "{text}");
}

/// The text of the result when an assistant sends an email.
fn send_through_mcp(mut command: std::process::Command) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let arguments = json!({"from": "a@example.com", "to": ["b@example.net"], "subject": "x", "text": "x"});
    let params = json!({"name": "send_email", "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    writeln!(child.stdin.take().unwrap(), "{call}").unwrap();
    let run = finish(child.wait_with_output().unwrap());
    run.json()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_assistant_learns_the_key_of_a_send_without_an_answer() {
    let server = ScriptedServer::start(|_| Reply::Raw(504, Vec::new(), b"<html>Gateway timeout</html>".to_vec()));
    let text = send_through_mcp(server.command(&["mcp"]));
    let requests = server.requests();
    let key = requests.iter().find_map(|request| request.header("idempotency-key")).unwrap();
    assert!(text.contains(&format!("repeat the call with `idempotency_key` = {key}")), "{text}");
}

#[test]
fn a_dry_run_sends_nothing() {
    let server = ScriptedServer::start(|request| panic!("{}", request.line()));
    for words in [["events", "send", "--name", "user.created"], ["emails", "send", "--subject", "x"]] {
        let run = server.run(&[&words[..], &["--dry-run"]].concat());
        assert_eq!((run.status, &run.json()["dry_run"]), (Some(0), &json!(true)), "{run:?}");
    }
}

#[test]
fn a_key_for_sending_only_is_valid() {
    let server = ScriptedServer::start(|_| {
        let details = json!({"required_key_scope": "full"});
        Reply::Json(403, json!({"error": {"message": "No", "code": "forbidden", "details": details}}))
    });
    let home = tempfile::tempdir().unwrap();
    let mut login = program();
    login.args(["login", "--base-url", &format!("http://{}", server.address)]).env("HOME", home.path());
    let mut child = login.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let run = finish(child.wait_with_output().unwrap());
    assert_eq!((run.status, &run.json()["account"], &run.json()["scope"]), (Some(0), &Value::Null, &json!("sending")));
    let whoami = server.run(&["whoami"]);
    assert_eq!((whoami.status, &whoami.json()["scope"]), (Some(0), &json!("sending")), "{whoami:?}");
    let doctor = server.run(&["doctor"]);
    assert!(doctor.status == Some(0) && doctor.stdout.contains("is valid, for sending only"), "{doctor:?}");
}

#[test]
fn a_body_that_stops_is_a_timeout() {
    let server = ScriptedServer::start(|_| Reply::Stall);
    let run = server.run(&["account", "get", "--timeout", "1"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(3), Some("timeout")), "{run:?}");
}

#[test]
fn other_answers_are_told_from_those_of_the_api() {
    let server = ScriptedServer::start(|request| match request.target.as_str() {
        "/emails/html" => Reply::Raw(200, Vec::new(), b"<html>Sign in</html>".to_vec()),
        "/emails/empty" => Reply::Raw(200, Vec::new(), Vec::new()),
        "/emails/large" => Reply::Raw(413, Vec::new(), b"<html>Too large</html>".to_vec()),
        _ => Reply::Raw(302, vec![("location", "https://mail.example/".to_owned())], Vec::new()),
    });
    for (id, part) in [("html", "proxy"), ("empty", "empty"), ("large", "limits the size"), ("moved", "redirects to")] {
        let run = server.run(&["emails", "get", id]);
        assert_eq!(run.status, Some(1), "{id}");
        assert!(run.error()["message"].as_str().unwrap().contains(part), "{run:?}");
    }
}

#[test]
fn a_server_that_closes_each_connection_is_called_again() {
    let server = ScriptedServer::start(|request| {
        let body = match page(&request.target, 5) {
            Reply::Json(_, value) => value.to_string().into_bytes(),
            _ => Vec::new(),
        };
        Reply::Raw(200, vec![("connection", "close".to_owned())], body)
    });
    let run = server.run(&["emails", "list", "--all", "--jsonl"]);
    assert_eq!((run.status, run.stdout.lines().count(), server.requests().len()), (Some(0), 10, 5));
}

#[test]
fn a_post_keeps_its_idempotency_key_when_it_is_repeated() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => error(503, "service_unavailable"),
        _ => Reply::Json(200, json!({"id": "msg_1", "status": "sent", "warnings": ["No text"]})),
    });
    let run = server.run(&["emails", "send", "--from", "a@example.com", "--to", "b@example.net"]);
    assert_eq!((run.status, run.stderr.trim()), (Some(0), "warning: No text"));
    let requests = server.requests();
    assert!(requests[0].header("idempotency-key").is_some());
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
}

#[test]
fn profiles_are_stored_listed_and_chosen() {
    let server = ScriptedServer::start(|_| Reply::Json(200, json!({"account": {"email": "ada@example.com"}})));
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], input: &str| {
        let mut command = program();
        command.args(arguments).env("HOME", home.path()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        finish(child.wait_with_output().unwrap())
    };
    let url = format!("http://{}", server.address);
    for name in ["staging", "production"] {
        let login = run(&["login", "--base-url", &url, "--profile", name], KEY);
        assert_eq!(login.status, Some(0), "{login:?}");
    }
    assert_eq!(mode_of(&home.path().join(".config/postrider/profiles.toml")), 0o600);
    let chosen = |run: &dyn Fn(&[&str], &str) -> scripted_server::Finished| {
        let list = run(&["profiles"], "").json();
        let profiles = list["profiles"].as_array().unwrap().clone();
        profiles.iter().find(|profile| profile["default"] == true).unwrap()["name"].clone()
    };
    assert_eq!(chosen(&run), "staging");
    assert_eq!(run(&["profiles", "use", "production"], "").status, Some(0));
    assert_eq!(chosen(&run), "production");
    assert_eq!(run(&["profiles", "use", "test"], "").status, Some(2));
    assert_eq!(run(&["account", "get"], "").status, Some(0));
    assert_eq!(run(&["logout"], "").json()["default"], "staging");
}

#[test]
fn manual_pages_cover_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    let run = finish(program().arg("man").arg(directory.path()).output().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    for (page, part) in [
        ("postrider", "POSTRIDER"),
        ("postrider-emails-send", "html\\-file"),
        ("postrider-templates-push", "publish"),
        ("postrider-listen", "forward\\-to"),
    ] {
        let text = std::fs::read_to_string(directory.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(part), "{page}");
    }
    assert!(!directory.path().join("postrider-man.1").exists());
}

#[test]
fn a_failed_call_leaves_no_secret_file() {
    let server = ScriptedServer::start(|_| error(422, "validation_error"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key").display().to_string();
    let run = server.run(&["api-keys", "create", "--name", "ci", "--save-secret", &file]);
    assert_eq!((run.status, std::path::Path::new(&file).exists()), (Some(1), false), "{run:?}");
}

#[test]
fn a_list_that_leads_in_circles_ends() {
    let server = ScriptedServer::start(|request| {
        let next = if request.target.contains("cursor=a") { "b" } else { "a" };
        Reply::Json(200, json!({"emails": [{"id": 1}], "templates": [], "has_more": true, "next_cursor": next}))
    });
    let run = server.run(&["emails", "list", "--all"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), r#"[{"id":1},{"id":1},{"id":1}"#), "{run:?}");
    let directory = tempfile::tempdir().unwrap();
    let run = server.run(&["templates", "pull", &directory.path().display().to_string()]);
    assert!(run.status == Some(1) && run.stderr.contains("repeats a cursor"), "{run:?}");
    let refusing = ScriptedServer::start(|_| error(403, "forbidden"));
    let run = refusing.run(&["emails", "list", "--all"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
}

#[test]
fn any_retry_after_is_read() {
    let server = ScriptedServer::start(|_| {
        let body = json!({"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}).to_string();
        Reply::Raw(429, vec![("retry-after", u64::MAX.to_string())], body.into_bytes())
    });
    let run = server.run(&["account", "get"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(3), Some("rate_limit_exceeded")), "{run:?}");
}

#[test]
fn a_server_that_repeats_the_request_does_not_show_the_key() {
    for status in [200, 302, 400, 502] {
        let server = ScriptedServer::start(move |request| {
            let seen = format!("Authorization: {}", request.header("authorization").unwrap_or_default());
            let location = format!("https://sign-in.example/?{}", seen.replace(' ', "+"));
            let headers = if status == 302 { vec![("location", location)] } else { Vec::new() };
            Reply::Raw(status, headers, format!("{}{seen}", "x".repeat(150)).into_bytes())
        });
        let run = server.run(&["account", "get"]);
        assert!(run.stderr.contains("Bearer rnl_\u{2026}6789") && !run.stderr.contains("SecretSecret"), "{run:?}");
    }
}

#[test]
fn a_send_without_an_answer_names_its_idempotency_key() {
    let server = ScriptedServer::start(|_| Reply::Stall);
    let send =
        ["emails", "send", "--from", "a@example.com", "--to", "b@example.net", "--subject", "x", "--timeout", "1"];
    let run = server.run(&send);
    let key = server.requests()[0].header("idempotency-key").unwrap().to_owned();
    let message = run.error()["message"].as_str().unwrap_or_default().to_owned();
    assert!(run.status == Some(3) && message.ends_with(&format!("--idempotency-key {key}")), "{run:?}");
    assert_eq!((&run.error()["code"], &run.error()["idempotency_key"]), (&json!("timeout"), &json!(key)));
}

#[test]
fn a_browser_that_does_not_end_counts_as_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (browser, running) = (directory.path().join("browser"), directory.path().join("running"));
    std::fs::write(&running, "").unwrap();
    // It ends with the test, which removes the directory.
    std::fs::write(&browser, format!("#!/bin/sh\nwhile [ -e {} ]; do sleep 0.1; done\n", running.display())).unwrap();
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = ScriptedServer::start(|request| panic!("{}", request.line()));
    let mut command = server.command(&["open"]);
    command.env("BROWSER", &browser).env("PATH", std::env::var_os("PATH").unwrap());
    let run = finish(command.output().unwrap());
    assert_eq!((run.status, &run.json()["opened"]), (Some(0), &json!(true)), "{run:?}");
    // `/` is the inbox of a server that `dev` has started.
    assert!(run.json()["url"].as_str().unwrap().ends_with("/dashboard"), "{run:?}");
}

#[test]
fn an_empty_id_is_refused() {
    let server = ScriptedServer::start(|request| panic!("{}", request.line()));
    let run = server.run(&["domains", "delete", "", "--yes"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(2), Some("usage")), "{run:?}");
}

#[test]
fn emails_are_young_by_the_clock_of_the_server() {
    // The server's clock is an hour behind.
    let an_hour_ago = std::time::UNIX_EPOCH.elapsed().unwrap() - std::time::Duration::from_secs(3_600);
    let now = jiff::Timestamp::UNIX_EPOCH + an_hour_ago;
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap();
    let server = ScriptedServer::start(move |request| {
        let message = json!({"id": 7, "received_at": now.to_string(), "text": "Your code is 123456"});
        let body = match request.target.as_str() {
            "/messages/7" => message,
            target if target.contains("after=7") => json!({"messages": []}),
            _ => json!({"messages": [message]}),
        };
        Reply::Raw(200, vec![("date", date.clone())], body.to_string().into_bytes())
    });
    let run = server.run(&["wait", "--to", "ada@example.net", "--since", "1m", "--for", "5s"]);
    assert_eq!((run.status, &run.json()["codes"][0]), (Some(0), &json!("123456")), "{run:?}");
}

/// A time that only a server whose clock was moved can give.
const MOVED_TIME: &str = "2999-01-01T00:00:00.000Z";

#[test]
fn wait_takes_the_next_message_of_the_inbox() {
    let server = ScriptedServer::start(|request| {
        let message = |id: u64| json!({"id": id, "received_at": MOVED_TIME, "text": format!("Your code is 12345{id}")});
        Reply::Json(
            200,
            match request.target.as_str() {
                "/messages?to=ada%40example.net&limit=1" => json!({"messages": [message(7)]}),
                "/messages/8" => message(8),
                target if target.contains("&after=7&") => json!({"messages": [message(8)]}),
                other => panic!("{other}"),
            },
        )
    });
    let run = server.run(&["wait", "--to", "ada@example.net", "--for", "5s"]);
    assert_eq!((run.status, &run.json()["codes"][0]), (Some(0), &json!("123458")), "{run:?}");
}

#[test]
fn wait_passes_over_a_message_that_was_deleted() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |request| {
        let message = |id: u64| json!({"id": id, "received_at": MOVED_TIME, "text": "Your code is 123456"});
        match request.target.as_str() {
            "/messages/8" => error(404, "not_found"),
            "/messages/9" => Reply::Json(200, message(9)),
            target if target.contains("&after=") => {
                let is_first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
                Reply::Json(200, json!({"messages": [message(if is_first { 8 } else { 9 })]}))
            }
            _ => Reply::Json(200, json!({"messages": []})),
        }
    });
    let run = server.run(&["wait", "--to", "ada@example.net", "--for", "10s"]);
    assert_eq!((run.status, &run.json()["id"]), (Some(0), &json!(9)), "{run:?}");
}

#[test]
fn wait_takes_the_next_received_email() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |request| {
        let email = |id: &str| json!({"email_id": id, "subject": "Sign in", "received_at": MOVED_TIME});
        match request.target.as_str() {
            "/received-emails/inb_2" => {
                let detail = json!({"email_id": "inb_2", "subject": "Sign in", "text": "Your code is 123456"});
                Reply::Json(200, json!({"received_email": detail}))
            }
            target if target.starts_with("/received-emails?") => {
                let is_first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
                let emails = if is_first {
                    vec![email("inb_1"), email("inb_0")]
                } else {
                    // The new one is not the first; those behind the last one of the start are older.
                    vec![email("inb_1"), email("inb_2"), email("inb_0"), email("inb_old")]
                };
                Reply::Json(200, json!({"received_emails": emails, "has_more": false, "next_cursor": null}))
            }
            _ => error(404, "not_found"),
        }
    });
    let run = server.run(&["wait", "--to", "ada@example.net", "--subject", "sign", "--for", "5s"]);
    let email = run.json();
    assert_eq!((run.status, &email["id"], &email["codes"][0]), (Some(0), &json!("inb_2"), &json!("123456")), "{run:?}");
}

#[test]
fn the_newest_requests_are_shown_in_their_order() {
    let server = ScriptedServer::start(|_| {
        let logs: Vec<Value> = (0..30).map(|age| json!({"id": format!("req_{age}")})).collect();
        Reply::Json(200, json!({"logs": logs, "has_more": true, "next_cursor": "c"}))
    });
    for (count, shown) in [("1", &["req_0"][..]), ("3", &["req_2", "req_1", "req_0"])] {
        let run = server.run(&["logs", "tail", "--count", count]);
        let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, shown.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(), "{run:?}");
    }
    assert_eq!(server.run(&["logs", "tail", "--count", "0"]).status, Some(2));
}

#[test]
fn values_that_are_no_events_are_skipped() {
    let server = ScriptedServer::start(|request| match request.target.as_str() {
        "/webhook-events" => {
            let events = "id: c1\ndata: 5\n\nid: c2\ndata: [1]\n\nid: c3\ndata: {\"id\":\"evt_1\"}\n\n";
            Reply::Raw(200, vec![("content-type", "text/event-stream".to_owned())], events.as_bytes().to_vec())
        }
        "/hook" => Reply::Json(200, json!({})),
        _ => Reply::Json(200, json!({"events": [7, "x"], "has_more": false, "next_cursor": "c0"})),
    });
    let hook = format!("http://{}/hook", server.address);
    let run = server.run(&["listen", "--forward-to", &hook, "--count", "1"]);
    assert_eq!((run.status, run.json()["forwarded"]["status"].as_u64()), (Some(0), Some(200)), "{run:?}");
    let page = ScriptedServer::start(|request| match request.target.as_str() {
        "/webhook-events" => Reply::Raw(200, vec![("content-type", "text/html".to_owned())], b"<p>Hi".to_vec()),
        _ => Reply::Json(200, json!({"events": []})),
    });
    let run = page.run(&["listen"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(1), Some("unexpected_response")), "{run:?}");
}

#[test]
fn a_stream_that_never_began_fails_and_a_lost_one_is_opened_again() {
    let page = || Reply::Json(200, json!({"events": [], "has_more": false, "next_cursor": "c0"}));
    let refused = ScriptedServer::start(move |request| match request.target.as_str() {
        "/webhook-events" => Reply::Raw(429, vec![("retry-after", "600".to_owned())], b"<p>Slow down".to_vec()),
        _ => page(),
    });
    let run = refused.run(&["listen"]);
    assert_eq!((run.status, &run.error()["retry_after"]), (Some(3), &json!(600)), "{run:?}");
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = ScriptedServer::start(move |request| match request.target.as_str() {
        "/webhook-events" => match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            1 => Reply::Raw(408, Vec::new(), b"<p>Too slow".to_vec()),
            n => {
                let event = format!("id: c{n}\ndata: {{\"id\":\"evt_{n}\"}}\n\n");
                Reply::Raw(200, vec![("content-type", "text/event-stream".to_owned())], event.into_bytes())
            }
        },
        _ => page(),
    });
    let run = server.run(&["listen", "--count", "2"]);
    let ids: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].take()).collect();
    assert_eq!((run.status, ids), (Some(0), vec![json!("evt_0"), json!("evt_2")]), "{run:?}");
}

#[test]
fn a_payload_stays_an_object() {
    for change in ["=5", "data.=5"] {
        let arguments = ["trigger", "email.bounced", "--forward-to", "http://127.0.0.1:9", "--set", change];
        let run = finish(program().args(arguments).output().unwrap());
        assert_eq!(run.status, Some(2), "{run:?}");
    }
}

#[test]
fn a_url_that_does_not_answer_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    drop(listener);
    let run = finish(program().args(["trigger", "email.bounced", "--forward-to", &url]).output().unwrap());
    let message = run.error()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(&format!("nothing answers at the URL {url}")), "{run:?}");
}

#[test]
fn a_rehearsed_trigger_sends_nothing() {
    let server = ScriptedServer::start(|request| panic!("{}", request.line()));
    let run = server.run(&["trigger", "email.bounced", "--email-id", "msg_1", "--dry-run"]).json();
    let body = json!({"event": "email.bounced", "deliver": true, "email_id": "msg_1"});
    assert_eq!((&run["dry_run"], &run["request"]["body"]), (&json!(true), &body));
    let hook = format!("http://{}/hook", server.address);
    let set = ["--set", "data.rcpt_to=ada@example.net"];
    let run =
        server.run(&[&["trigger", "email.bounced", "--forward-to", &hook, "--dry-run"], &set[..]].concat()).json();
    assert_eq!((&run["dry_run"], &run["event"]["data"]["rcpt_to"]), (&json!(true), &json!("ada@example.net")));
}

#[test]
fn a_stored_key_is_not_sent_to_another_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("postrider/profiles.toml");
    let mut file = cli::profile::ProfileFile { default: Some("a".to_owned()), ..Default::default() };
    let profile = cli::profile::Profile {
        base_url: "https://a.example".to_owned(),
        api_key: Some(KEY.to_owned()),
        sign_in: None,
    };
    file.profiles.insert("a".to_owned(), profile);
    file.write(&path).unwrap();
    let server = ScriptedServer::start(|request| panic!("{}", request.line()));
    let mut command = server.command(&["account", "get"]);
    let run =
        finish(command.env_remove("POSTRIDER_API_KEY").env("XDG_CONFIG_HOME", directory.path()).output().unwrap());
    assert!(run.status == Some(2) && run.stderr.contains("a different server"), "{run:?}");
}

#[test]
fn arguments_must_be_text() {
    let argument: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff");
    let run = finish(program().args(["emails", "get"]).arg(argument).output().unwrap());
    assert_eq!((run.status, run.error()["code"].as_str()), (Some(2), Some("usage")), "{run:?}");
}
