//! Runs every dialog of `tests/dialogs/*.smtp`, once with each `C:` line in one piece and once byte by byte. The format
//! is described in tests/dialogs/README.md.

#![allow(clippy::unwrap_used, reason = "a test")]

mod conversation;

use std::path::{Path, PathBuf};
use std::time::Duration;

use conversation::{BUDGET_BYTES, Conversation};
use message::reply::{Enhanced, SmtpReply};
use smtp::limits::SessionLimits;
use smtp::session::Input;
use smtp::settings::ListenerRole;

struct Line<'a> {
    number: usize,
    key: &'a str,
    value: &'a str,
}

struct Dialog<'a> {
    title: &'a str,
    lines: Vec<Line<'a>>,
}

fn dialogs(text: &str) -> Vec<Dialog<'_>> {
    let mut all: Vec<Dialog<'_>> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("== ") {
            all.push(Dialog { title, lines: Vec::new() });
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("line {}: no colon", number + 1));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let dialog = all.last_mut().unwrap_or_else(|| panic!("line {}: no title", number + 1));
        dialog.lines.push(Line { number: number + 1, key, value });
    }
    all
}

/// Expands `\r \n \t \0 \\ \xHH` and `\{text*count}`; other characters are literal UTF-8.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        let kind = after.chars().next().unwrap_or_else(|| panic!("a lone backslash: {text}"));
        rest = &after[kind.len_utf8()..];
        match kind {
            'r' => out.push(b'\r'),
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            '0' => out.push(0),
            '\\' => out.push(b'\\'),
            'x' => {
                out.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                rest = &rest[2..];
            }
            '{' => {
                let (inner, after) = rest.split_once('}').unwrap();
                let (unit, count) = inner.rsplit_once('*').unwrap();
                out.extend_from_slice(unescape(unit).repeat(count.parse().unwrap()).as_slice());
                rest = after;
            }
            other => panic!("unknown escape \\{other}"),
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Matches a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            after.is_empty()
                || (0..=rest.len()).filter(|n| rest.is_char_boundary(*n)).any(|n| matches(after, &rest[n..]))
        }),
    }
}

fn reply_of(text: &str) -> SmtpReply {
    let (code, rest) = text.split_once(' ').unwrap();
    let (enhanced, text) = Enhanced::split_prefix(rest).unwrap();
    SmtpReply::new(code.parse().unwrap(), enhanced, text.to_owned())
}

fn open(dialog: &Dialog<'_>) -> Conversation {
    let setting = |key: &str| dialog.lines.iter().find(|l| l.key == key).map(|l| l.value);
    let (role, mut limits) = match setting("role").unwrap_or("submission") {
        "submission" => (ListenerRole::Submission, SessionLimits::default()),
        "relay" => (ListenerRole::Relay, SessionLimits::for_relay()),
        "mx" => (ListenerRole::Mx, SessionLimits::default()),
        other => panic!("unknown role {other}"),
    };
    for line in dialog.lines.iter().filter(|l| l.key == "limit") {
        let (name, value) = line.value.split_once(' ').unwrap();
        let value: u64 = value.parse().unwrap();
        match name {
            "message_bytes_max" => limits.message_bytes_max = value,
            "recipients_max" => limits.recipients_max = value as usize,
            "mails_max" => limits.mails_max = value,
            "commands_max" => limits.commands_max = value,
            "junk_max" => limits.junk_max = value as u32,
            "errors_max" => limits.errors_max = value as u32,
            "greet_delay_s" => limits.timeouts.greet_delay = Duration::from_secs(value),
            other => panic!("unknown limit {other}"),
        }
    }
    let (offered, secured) = match setting("tls").unwrap_or("offered") {
        "none" => (false, false),
        "offered" => (true, false),
        "on" => (true, true),
        other => panic!("unknown tls {other}"),
    };
    Conversation::new(role, limits, offered, secured)
}

struct Run<'a> {
    conversation: Conversation,
    bytewise: bool,
    replies: Vec<String>,
    taken: usize,
    location: &'a str,
}

impl Run<'_> {
    fn send(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(if self.bytewise { 1 } else { bytes.len().max(1) }) {
            self.conversation.send(piece);
        }
        self.listen();
    }

    fn listen(&mut self) {
        let wire = String::from_utf8(self.conversation.take_replies()).unwrap();
        assert!(wire.is_empty() || wire.ends_with("\r\n"), "{}: a reply without CRLF", self.location);
        self.replies.extend(wire.split_terminator("\r\n").map(str::to_owned));
    }

    fn line(&mut self, line: &Line<'_>) {
        let location = format!("{}, line {}", self.location, line.number);
        match line.key {
            "role" | "tls" | "limit" | "whole" => {}
            "C" => {
                let mut bytes = unescape(line.value);
                bytes.extend_from_slice(b"\r\n");
                self.send(&bytes);
            }
            "C!" => self.send(&unescape(line.value)),
            "S" => {
                let got = self.next(&location);
                assert!(matches(line.value, &got), "{location}: expected `{}`, received `{got}`", line.value);
            }
            "S+" => loop {
                let got = self.next(&location);
                assert!(got.starts_with(line.value), "{location}: expected `{}…`, received `{got}`", line.value);
                if got.as_bytes().get(3) == Some(&b' ') {
                    break;
                }
            },
            "silence" => assert_eq!(self.replies, Vec::<String>::new(), "{location}"),
            "handler" => {
                let (kind, reply) = line.value.split_once(' ').unwrap();
                self.conversation.scripted.push_back((kind.to_owned(), reply_of(reply)));
            }
            "wait" => {
                let seconds = line.value.strip_suffix('s').unwrap().parse().unwrap();
                self.conversation.step(Input::Now(Duration::from_secs(seconds)));
                self.listen();
            }
            "drain" => {
                self.conversation.step(Input::Drain);
                self.listen();
            }
            "closed" => {
                assert!(self.conversation.closed, "{location}: the session is still open");
            }
            "open" => assert!(!self.conversation.closed, "{location}: the session is closed"),
            key if key.starts_with("taken") => self.taken(key, line.value, &location),
            key if key.starts_with("mail ") || key.starts_with("rcpt ") => self.envelope(key, line.value, &location),
            other => panic!("{location}: unknown `{other}`"),
        }
    }

    fn next(&mut self, location: &str) -> String {
        assert!(!self.replies.is_empty(), "{location}: no reply");
        self.replies.remove(0)
    }

    fn taken(&mut self, key: &str, value: &str, location: &str) {
        if key == "taken" {
            self.taken += 1;
        }
        let message = self.conversation.taken.get(self.taken - 1);
        let message = message.unwrap_or_else(|| panic!("{location}: no message was accepted"));
        let path = |a: &Option<message::address::Address>| a.as_ref().map_or(String::new(), ToString::to_string);
        let actual = match key {
            "taken" => {
                let to: Vec<String> = message.recipients.iter().map(|r| r.address.to_string()).collect();
                format!("<{}> {}", path(&message.envelope.reverse_path), to.join(" "))
            }
            "taken content" => {
                assert_eq!(message.content, unescape(value), "{location}");
                return;
            }
            "taken trace" => {
                let field = smtp::received_field::received_field(
                    &message.trace,
                    message.envelope.smtputf8,
                    jiff::Timestamp::UNIX_EPOCH,
                );
                field.replace("\r\n\t", " ").trim_end().to_owned()
            }
            other => panic!("{location}: unknown `{other}`"),
        };
        assert!(matches(value, &actual), "{location}: expected `{value}`, got `{actual}`");
    }

    fn envelope(&mut self, key: &str, value: &str, location: &str) {
        let message = self.conversation.taken.get(self.taken.wrapping_sub(1)).unwrap_or_else(|| panic!("{location}"));
        let (envelope, notify) = (&message.envelope, message.recipients.first().map(|r| &r.notify).unwrap());
        let actual = match key {
            "mail envid" => envelope.envelope_id.clone().unwrap_or_default(),
            "mail ret" => if envelope.return_full { "FULL" } else { "HDRS" }.to_owned(),
            "mail requiretls" => envelope.require_tls.to_string(),
            "mail smtputf8" => envelope.smtputf8.to_string(),
            "mail binary" => message.binary.to_string(),
            "rcpt orcpt" => notify.original_recipient.clone().unwrap_or_default(),
            "rcpt notify" => [
                (notify.never, "NEVER"),
                (notify.success, "SUCCESS"),
                (notify.wants_failure(), "FAILURE"),
                (notify.delay, "DELAY"),
            ]
            .iter()
            .filter_map(|(on, name)| on.then_some(*name))
            .collect::<Vec<_>>()
            .join(","),
            other => panic!("{location}: unknown `{other}`"),
        };
        assert_eq!(actual, value, "{location}");
    }
}

fn run(file: &str, dialog: &Dialog<'_>, bytewise: bool) {
    let location = format!("{file}: {}{}", dialog.title, if bytewise { " (byte by byte)" } else { "" });
    let mut run = Run { conversation: open(dialog), bytewise, replies: Vec::new(), taken: 0, location: &location };
    run.listen();
    for line in &dialog.lines {
        run.line(line);
    }
    assert_eq!(run.replies, Vec::<String>::new(), "{location}: unexpected replies");
    assert_eq!(run.conversation.taken.len(), run.taken, "{location}: accepted messages");
    // Every dialog releases its memory.
    let Conversation { session, taken, budget, .. } = run.conversation;
    drop((session, taken));
    assert_eq!(budget.free_bytes(), BUDGET_BYTES, "{location}: the budget is released");
}

#[test]
fn every_dialog_runs_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/dialogs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "smtp"));
    files.sort();
    let wanted = std::env::var("DIALOG").unwrap_or_default();
    let mut count = 0;
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        for dialog in dialogs(&text) {
            if !name.contains(&wanted) && !dialog.title.contains(&wanted) {
                continue;
            }
            run(&name, &dialog, false);
            if !dialog.lines.iter().any(|l| l.key == "whole") {
                run(&name, &dialog, true);
            }
            count += 1;
        }
    }
    let least = if wanted.is_empty() { 40 } else { 1 };
    assert!(count >= least, "only {count} dialogs found");
}
