//! Parser of free-form bounces: formats older than RFC 3464, which some mail systems still send.
//!
//! A format is recognised by a fixed phrase of its generator that vacation replies do not contain. A subject alone is
//! enough only if the author is a mailer daemon. The cause is searched between that phrase and the returned message:
//! first a reply code, then known words.

use crate::address::{Address, DomainName};
use crate::classify::BounceClass;
use crate::encoded_word;
use crate::word_list;

use super::report_parts::{self, ReportPart};
use super::smtp_codes::{self, EmbeddedCode, one_line};
use super::{BounceDetail, ParsedReport, find_part};

/// Bytes of the text that are parsed.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Lines of the text that are parsed.
const LINES_MAX: usize = 400;

/// Phrases of delay notices, in lower case.
const DELAY_SENTENCES: &str = include_str!("freeform/delay_sentences.txt");

/// Phrases of failure notices, in lower case.
const FAILURE_SENTENCES: &str = include_str!("freeform/failure_sentences.txt");

/// Phrases of challenge-response systems, in lower case. They hold the message until its sender confirms, so it has not
/// bounced. A real bounce requests no confirmation.
const CHALLENGE_SENTENCES: &str = include_str!("freeform/challenge_sentences.txt");

/// Subjects of failure notices by mailer daemons, in lower case.
const FAILURE_SUBJECTS: &str = include_str!("freeform/failure_subjects.txt");

/// Local-part prefixes of bounce authors.
const DAEMON_LOCAL_PARTS: &[&str] =
    &["mailer-daemon", "postmaster", "mailerdaemon", "mail-daemon", "maildaemon", "mdaemon", "microsoftexchange"];

/// Display-name prefixes of bounce authors.
const DAEMON_NAMES: &[&str] = &[
    "mail delivery system",
    "mail delivery subsystem",
    "mail delivery service",
    "mail delivery software",
    "mailer-daemon",
    "mailer daemon",
    "mail administrator",
    "system administrator",
    "postmaster",
    "internet mail delivery",
    "microsoft outlook",
];

/// Separators between the report and the returned message, in lower case.
const RETURNED_MESSAGE_MARKERS: &str = include_str!("freeform/returned_message_markers.txt");

/// Words that indicate a temporary cause.
const TRANSIENT_WORDS: &[&str] = &[
    "retry timeout exceeded",
    "timed out",
    "timeout",
    "too long",
    "giving up",
    "temporarily",
    "temporary",
    "expired",
    "connection refused",
    "unable to connect",
    "could not connect",
    "no route to host",
];

/// Parses a free-form bounce; `None` if the message is not one.
pub(super) fn parse(message: &[u8], parts: &[ReportPart<'_>]) -> Option<ParsedReport> {
    let text = report_text(parts)?;
    let lines = report_lines(&text);
    let lower = opening_text(&lines);
    let subject = decoded_field(message, "Subject").to_lowercase();
    let contains_any = |sentences: &str| word_list::entries(sentences).any(|known| lower.contains(known));
    // People and vacation replies use the same words, so the author decides (RFC 3834 3.2).
    if !is_by_daemon(message) {
        return None;
    }
    // An enhanced code proves a rejection; three digits alone may be a confirmation code to type.
    let is_refused = |line: &&str| smtp_codes::find_code(line).is_some_and(|code| code.enhanced.is_some());
    if contains_any(CHALLENGE_SENTENCES) && !lines.iter().any(is_refused) {
        return None;
    }
    if contains_any(DELAY_SENTENCES) || subject.contains("(delay)") {
        return Some(ParsedReport::Delayed(parse_failure(&lines)));
    }
    let by_subject = word_list::entries(FAILURE_SUBJECTS).any(|known| subject.trim_start().starts_with(known));
    if !contains_any(FAILURE_SENTENCES) && !by_subject {
        return None;
    }
    Some(ParsedReport::Failed(parse_failure(&lines)))
}

/// The readable text of the report.
fn report_text(parts: &[ReportPart<'_>]) -> Option<String> {
    let mut text = match find_part(parts, &["text/plain"]) {
        Some(part) => part.text().into_owned(),
        None => mail_parser::decoders::html::html_to_text(&truncate_text(&find_part(parts, &["text/html"])?.text())),
    };
    // Normalises typographic apostrophes.
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Some(text.replace(['\u{2019}', '\u{2018}'], "'"))
}

fn truncate_text(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}

/// Returns whether the local part is that of a mailer daemon.
pub(super) fn is_daemon(address: &Address) -> bool {
    let local = address.unquoted_local_part().to_ascii_lowercase();
    DAEMON_LOCAL_PARTS.iter().any(|daemon| local.starts_with(daemon))
}

/// Returns whether the author is a mailer daemon: by local part, by display name, or because From is `<>`.
fn is_by_daemon(message: &[u8]) -> bool {
    let from = decoded_field(message, "From").to_lowercase();
    let (name, address) = from.rsplit_once('<').unwrap_or(("", &from));
    let name = name.trim().trim_matches('"');
    address.trim_start().starts_with('>')
        || DAEMON_LOCAL_PARTS.iter().any(|daemon| address.trim_start().starts_with(daemon))
        || DAEMON_NAMES.iter().any(|daemon| name.starts_with(daemon))
}

/// A header field with its encoded words decoded.
fn decoded_field(message: &[u8], name: &str) -> String {
    report_parts::header_field(message, name).map(|value| encoded_word::decode_text(&value)).unwrap_or_default()
}

/// The start of a report on one line, in lower case; the phrases occur near the start.
fn opening_text(lines: &[&str]) -> String {
    const OPENING_BYTES: usize = 4 * 1024;
    let mut text = String::new();
    for line in lines {
        if text.len() > OPENING_BYTES {
            break;
        }
        text.push_str(&line.to_lowercase());
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of the report, without the returned message and quoted lines.
fn report_lines(text: &str) -> Vec<&str> {
    let is_returned = |line: &&str| {
        let lower = line.trim().to_lowercase();
        word_list::entries(RETURNED_MESSAGE_MARKERS).any(|mark| lower.starts_with(mark))
    };
    let lines = text.lines().map(str::trim).take_while(|line| !is_returned(line));
    lines.filter(|line| !line.is_empty() && !line.starts_with('>')).take(LINES_MAX).collect()
}

fn parse_failure(lines: &[&str]) -> BounceDetail {
    let at = lines.iter().position(|line| smtp_codes::find_code(line).is_some());
    let found = at.and_then(|at| smtp_codes::find_code(lines.get(at)?));
    let find_words = || lines.iter().position(|line| BounceClass::from_text(line).is_some());
    let is_transient = |line: &&str| {
        let lower = line.to_lowercase();
        TRANSIENT_WORDS.iter().any(|word| lower.contains(word))
    };
    // Long replies are folded, so the next lines are included.
    let cause_at = at.or_else(find_words).or_else(|| lines.iter().position(is_transient));
    let cause = cause_at.and_then(|at| lines.get(at..)).unwrap_or_default();
    let cause = one_line(&cause.iter().take(3).copied().collect::<Vec<_>>().join(" "));
    let is_about_address = || {
        let reason = BounceClass::from_text(&cause);
        matches!(reason, Some(BounceClass::UnknownUser | BounceClass::DomainNotFound | BounceClass::Inactive))
    };
    let coded = found.unwrap_or_else(|| EmbeddedCode { code: None, enhanced: None, text: cause.clone() });
    // Without a code the failure counts as permanent only if the text names an invalid address.
    let soft = match (coded.enhanced, coded.code) {
        (Some(enhanced), _) => enhanced.class == 4 || (enhanced.subject, enhanced.detail) == (4, 7),
        (None, Some(code)) => code < 500,
        (None, None) => !is_about_address() || lines.iter().any(is_transient),
    };
    let has_code = coded.code.is_some();
    let mut reply = coded.into_reply(!soft);
    // A code at the end of a sentence has no text behind it; the sentence is the explanation.
    if reply.lines.iter().all(|line| line.as_ref() == "no reason was given") && !cause.is_empty() {
        reply.lines = vec![cause.clone().into()];
    }
    let diagnostic = if cause.is_empty() { reply.to_string() } else { cause };
    // The rejecting host is named in the same line or in an adjacent one.
    let near = |at: usize| [Some(at), at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let host = cause_at.and_then(|at| near(at).filter_map(|at| lines.get(at)).find_map(|line| failing_host(line)));
    BounceDetail { reply, has_code, diagnostic, soft, host }
}

/// Parses `host mx.example.net [192.0.2.1] said`, `mx.example.net gave this error` and `<mx.example.net #5.1.1`.
fn failing_host(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().take(60).peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(['<', '>', '[', ']', '(', ')', ',', ':']);
        let is_label = matches!(bare.to_ascii_lowercase().as_str(), "host" | "server" | "mta");
        let next = words.peek().map_or("", |next| *next);
        let candidate = if is_label { next } else { word };
        let named = is_label || (word.starts_with('<') && next.starts_with('#')) || next == "gave";
        let name = candidate.split(['[', '(']).next().unwrap_or_default();
        let name = name.trim_matches(['<', '>', ',', ':', '.']);
        if named && name.contains('.') && name.parse::<DomainName>().is_ok() {
            return Some(name.to_ascii_lowercase());
        }
    }
    None
}
