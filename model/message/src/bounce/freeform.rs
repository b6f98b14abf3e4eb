//! Parser of free-form bounces: formats older than RFC 3464, which some mail systems still send.
//!
//! A format is recognised by a fixed phrase of its generator that vacation replies do not contain. A subject alone is
//! enough only if the author is a mailer daemon. The cause is searched between that phrase and the returned message:
//! first a reply code, then known words.

use crate::address::{Address, DomainName};
use crate::classify::BounceClass;
use crate::encoded_word;

use super::report_parts::{self, ReportPart};
use super::smtp_codes::{self, EmbeddedCode, one_line};
use super::{BounceDetail, ParsedReport, find_part};

/// Bytes of the text that are parsed.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Lines of the text that are parsed.
const LINES_MAX: usize = 400;

/// Phrases of delay notices, in lower case.
const DELAY_SENTENCES: &[&str] = &[
    "this is a warning message only",
    "you do not need to resend your message",
    "has not yet been delivered",
    "has not been delivered to one or more of its recipients after more than",
    "message delivery has been delayed",
    "delivery is delayed to these recipients",
    "delivery incomplete",
    "there was a temporary problem delivering your message",
    "your message has not been delivered yet",
    "we will continue to attempt",
    "will be retried for",
    "warning: could not send message for past",
    // OpenSMTPD, PowerMTA
    "a message is delayed for more than",
    "; will keep trying until",
];

/// Phrases of failure notices, in lower case.
const FAILURE_SENTENCES: &[&str] = &[
    // qmail and derived servers; many Japanese and Chinese providers
    "this is the qmail-send program",
    "i'm afraid i wasn't able to deliver your message",
    "sorry it didn't work out",
    "your mail was not delivered to the following address",
    "your message was not delivered to the following address",
    // Exim
    "this message was created automatically by mail delivery software",
    "a message that you sent could not be delivered",
    "a message that you have sent could not be delivered",
    // Postfix
    "i'm sorry to have to inform you that your message could not",
    "this is the mail system at host",
    "this is the postfix program",
    // sendmail
    "the following addresses had permanent fatal errors",
    "the following addresses had permanent delivery errors",
    // Exchange, Outlook.com
    "your message did not reach some or all of the intended recipients",
    "delivery has failed to these recipients",
    "the following recipient(s) could not be reached",
    "the following recipient(s) cannot be reached",
    "your message couldn't be delivered",
    "your message wasn't delivered",
    "this is an automatically generated delivery status notification",
    "your message to the following recipients could not be delivered",
    // Gmail
    "delivery to the following recipient failed permanently",
    "delivery to the following recipients failed permanently",
    "the response from the remote server was",
    "wasn't delivered to",
    // Yahoo
    "unable to deliver your message to the following address",
    "unable to deliver message to the following address",
    // Lotus Domino
    "was not delivered to:",
    "message could not be delivered",
    // Mail.ru, Yandex
    "could not be delivered to one or more of its recipients",
    "could not be delivered to one or more recipients",
    "не может быть доставлено",
    "не удалось доставить",
    "не доставлено",
    // providers in Japan, and elsewhere
    "each of the following recipients was rejected by a remote mail server",
    "the following recipients did not receive this message",
    "the user(s) account is temporarily over quota",
    "the user(s) account is disabled",
    "could not be delivered to the following",
    "メールを配信できません",
    "メールを送信できません",
    "メールは送信できません",
    "宛先不明",
    "宛先が見つかりません",
    "konnte nicht zugestellt werden",
    "n'a pas pu être remis",
    "no se ha podido entregar",
    "no se pudo entregar",
    "this report relates to a message you sent",
    "undeliverable to the following",
    "the message could not be delivered",
    "your mail message to the following address",
    // OpenSMTPD, DragonFly, PowerMTA, Courier
    "an error has occurred while attempting to deliver a message",
    "there was an error delivering your mail to",
    "delivery failed; will not continue trying",
    "your message to the following recipients cannot be delivered",
    // MDaemon, GroupWise, CommuniGate, Kerio, iCloud
    "had permanent fatal delivery errors",
    "was undeliverable to the following",
    "failed to deliver to '",
    "your message cannot be delivered to the following recipients",
    // mailer daemons of unknown make
    "your message was not delivered because",
    "the following message could not be delivered",
    "could not deliver your message",
    "could not deliver your mail",
    "could not deliver the message",
    "unable to deliver the message",
    "unable to deliver your mail",
    "your email could not be delivered",
    "your e-mail could not be delivered",
    // MessageLabs, Amazon, Mimecast, Barracuda
    "i was not able to deliver your message",
    "an error occurred while trying to deliver the mail to the following recipients",
    "was not able to be delivered",
    "was blocked by our spam firewall",
    // NetEase, QQ; Naver, Daum
    "您的邮件被退回",
    "邮件无法送达",
    "메일이 전송되지 않았습니다",
    "메일을 보낼 수 없습니다",
    // Italian, Portuguese, French, Dutch
    "non può essere recapitato",
    "impossibile recapitare",
    "não pôde ser entregue",
    "não foi possível entregar",
    "n'a pas pu être distribué",
    "n'a pas pu être délivré",
    "kon niet worden bezorgd",
    "kan niet worden bezorgd",
    // Polish, Czech, Turkish, Swedish, Danish, Norwegian, Finnish, Hungarian
    "nie mogła zostać dostarczona",
    "nie można dostarczyć",
    "nepodařilo doručit",
    "teslim edilemedi",
    "kunde inte levereras",
    "kunne ikke leveres",
    "ei voitu toimittaa",
    "nem kézbesíthető",
];

/// Phrases of challenge-response systems, in lower case. They hold the message until its sender confirms, so it has not
/// bounced. A real bounce requests no confirmation.
const CHALLENGE_SENTENCES: &[&str] = &[
    "to complete the delivery",
    "to complete delivery",
    "confirm that you are a person",
    "confirm that you are human",
    "confirm you are human",
    "confirm that you have sent",
    "confirm that you sent",
    "confirm your message by",
    "confirm your email address by",
    "please confirm your message",
    "prove that you are human",
    "prove that you are a person",
    "verify that you are human",
    "verify that you are a person",
];

/// Subjects of failure notices by mailer daemons, in lower case.
const FAILURE_SUBJECTS: &[&str] = &[
    "undelivered mail",
    "undeliverable",
    "mail delivery failed",
    "mail delivery failure",
    "mail system error",
    "delivery status notification (failure)",
    "delivery failure",
    "delivery failed",
    "delivery notification: delivery has failed",
    "failure notice",
    "failed delivery",
    "returned mail",
    "returned to sender",
    "non-delivery",
    "non delivery",
    "nondeliverable",
    "message undeliverable",
    "undelivered",
    "unzustellbar",
    "non remis",
    "message status - undeliverable",
    "permanent delivery failure",
    "message delivery failure",
    "delivery status notification: error",
];

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
const RETURNED_MESSAGE_MARKERS: &[&str] = &[
    "--- below this line is a copy of the message",
    "------ this is a copy of the message",
    "------ this is a copy of your message",
    "--- the header of the original message",
    "--- original message",
    "----- original message",
    "----- original headers",
    "--- enclosed is a copy of the message",
    "message headers follow.",
    "original message follows.",
    "below is a copy of the original message:",
    "original message headers:",
    "original message header:",
    "----- unsent message follows",
    "----- transcript of session follows is truncated",
    "received: from",
    "return-path: <",
];

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
    let contains_any = |sentences: &[&str]| sentences.iter().any(|known| lower.contains(known));
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
    let by_subject = FAILURE_SUBJECTS.iter().any(|known| subject.trim_start().starts_with(known));
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
        RETURNED_MESSAGE_MARKERS.iter().any(|mark| lower.starts_with(mark))
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
