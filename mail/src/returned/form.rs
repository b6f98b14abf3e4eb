//! Bounces in the free forms that mail systems have had since before RFC 3464, and some still have.
//!
//! A form is told by a sentence that its maker always writes; who tells people that they are away writes none
//! of them. A subject alone is enough only when a mailer daemon wrote. What was refused is looked for between
//! that sentence and the returned message: a reply code in it says most, then the words.

use crate::address::{Address, DomainName};
use crate::classify::BounceClass;
use crate::words;

use super::codes::{self, EmbeddedCode, one_line};
use super::parts::{self, ReportPart};
use super::{BounceDetail, ParsedReport, find_part};

/// Of the text so much is read.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// And so many lines.
const LINES_MAX: usize = 400;

/// Sentences of those who tell that they go on trying, in lower case.
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

/// Sentences of those who give up, in lower case.
const FAILURE_SENTENCES: &[&str] = &[
    // qmail and what came of it; many Japanese and Chinese providers
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

/// Sentences of those who keep a message until its sender has answered, in lower case: it has not come back. What they
/// ask for is asked of nobody whose message was refused.
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

/// Subjects of mailer daemons that give up, in lower case.
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

/// Who writes bounces, by the beginning of their address.
const DAEMON_LOCAL_PARTS: &[&str] =
    &["mailer-daemon", "postmaster", "mailerdaemon", "mail-daemon", "maildaemon", "mdaemon", "microsoftexchange"];

/// And by the name that they give themselves.
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

/// What stands between the report and the message that it returns, in lower case.
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

/// Words of what might pass by itself.
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

/// Reads a bounce in one of the free forms; none when it is none.
pub(super) fn parse(message: &[u8], parts: &[ReportPart<'_>]) -> Option<ParsedReport> {
    let text = report_text(parts)?;
    let lines = report_lines(&text);
    let lower = opening_text(&lines);
    let subject = decoded_field(message, "Subject").to_lowercase();
    let says = |sentences: &[&str]| sentences.iter().any(|known| lower.contains(known));
    // People and their auto-replies use the same words: who writes decides (RFC 3834 3.2).
    if !is_by_daemon(message) {
        return None;
    }
    // An enhanced code says that it was refused all the same; three digits may be those that are to be typed.
    let is_refused = |line: &&str| codes::find_code(line).is_some_and(|code| code.enhanced.is_some());
    if says(CHALLENGE_SENTENCES) && !lines.iter().any(is_refused) {
        return None;
    }
    if says(DELAY_SENTENCES) || subject.contains("(delay)") {
        return Some(ParsedReport::Delayed(parse_failure(&lines)));
    }
    let by_subject = FAILURE_SUBJECTS.iter().any(|known| subject.trim_start().starts_with(known));
    if !says(FAILURE_SENTENCES) && !by_subject {
        return None;
    }
    Some(ParsedReport::Failed(parse_failure(&lines)))
}

/// What people read of it.
fn report_text(parts: &[ReportPart<'_>]) -> Option<String> {
    let mut text = match find_part(parts, &["text/plain"]) {
        Some(part) => part.text().into_owned(),
        None => mail_parser::decoders::html::html_to_text(&truncate_text(&find_part(parts, &["text/html"])?.text())),
    };
    // Typed by a word processor.
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Some(text.replace(['\u{2019}', '\u{2018}'], "'"))
}

fn truncate_text(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}

/// Whether an address is of those who write bounces.
pub(super) fn is_daemon(address: &Address) -> bool {
    let local = address.unquoted_local_part().to_ascii_lowercase();
    DAEMON_LOCAL_PARTS.iter().any(|daemon| local.starts_with(daemon))
}

/// By its address, by the name before it, or by having none: reports have had `From: <>`.
fn is_by_daemon(message: &[u8]) -> bool {
    let from = decoded_field(message, "From").to_lowercase();
    let (name, address) = from.rsplit_once('<').unwrap_or(("", &from));
    let name = name.trim().trim_matches('"');
    address.trim_start().starts_with('>')
        || DAEMON_LOCAL_PARTS.iter().any(|daemon| address.trim_start().starts_with(daemon))
        || DAEMON_NAMES.iter().any(|daemon| name.starts_with(daemon))
}

/// A field as people see it.
fn decoded_field(message: &[u8], name: &str) -> String {
    parts::header_field(message, name).map(|value| words::decode_text(&value)).unwrap_or_default()
}

/// How a report begins, its lines joined, in lower case: forms say what they are at once.
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

/// The lines of the report, without the returned message and without what is quoted of one.
fn report_lines(text: &str) -> Vec<&str> {
    let is_returned = |line: &&str| {
        let lower = line.trim().to_lowercase();
        RETURNED_MESSAGE_MARKERS.iter().any(|mark| lower.starts_with(mark))
    };
    let lines = text.lines().map(str::trim).take_while(|line| !is_returned(line));
    lines.filter(|line| !line.is_empty() && !line.starts_with('>')).take(LINES_MAX).collect()
}

fn parse_failure(lines: &[&str]) -> BounceDetail {
    let at = lines.iter().position(|line| codes::find_code(line).is_some());
    let found = at.and_then(|at| codes::find_code(lines.get(at)?));
    let worded = || lines.iter().position(|line| BounceClass::from_text(line).is_some());
    let passing = |line: &&str| {
        let lower = line.to_lowercase();
        TRANSIENT_WORDS.iter().any(|word| lower.contains(word))
    };
    // What follows on the same thing: long replies are broken into lines.
    let spoken = at.or_else(worded).or_else(|| lines.iter().position(passing));
    let said = spoken.and_then(|at| lines.get(at..)).unwrap_or_default();
    let said = one_line(&said.iter().take(3).copied().collect::<Vec<_>>().join(" "));
    let is_about_address = || {
        let reason = BounceClass::from_text(&said);
        matches!(reason, Some(BounceClass::UnknownUser | BounceClass::DomainNotFound | BounceClass::Inactive))
    };
    let coded = found.unwrap_or_else(|| EmbeddedCode { code: None, enhanced: None, text: said.clone() });
    // Who gives no code is taken at their word that there is no such address, and for nothing else.
    let soft = match (coded.enhanced, coded.code) {
        (Some(enhanced), _) => enhanced.class == 4 || (enhanced.subject, enhanced.detail) == (4, 7),
        (None, Some(code)) => code < 500,
        (None, None) => !is_about_address() || lines.iter().any(passing),
    };
    let has_code = coded.code.is_some();
    let mut reply = coded.into_reply(!soft);
    // The code may end the sentence that says what it means.
    if reply.lines.iter().all(|line| line.as_ref() == "no reason was given") && !said.is_empty() {
        reply.lines = vec![said.clone().into()];
    }
    let diagnostic = if said.is_empty() { reply.to_string() } else { said };
    // Who refused is named where it is told, or beside it.
    let near = |at: usize| [Some(at), at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let host = spoken.and_then(|at| near(at).filter_map(|at| lines.get(at)).find_map(|line| failing_host(line)));
    BounceDetail { reply, has_code, diagnostic, soft, host }
}

/// `host mx.example.net [192.0.2.1] said`, `mx.example.net gave this error`, `<mx.example.net #5.1.1`.
fn failing_host(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().take(60).peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(['<', '>', '[', ']', '(', ')', ',', ':']);
        let announced = matches!(bare.to_ascii_lowercase().as_str(), "host" | "server" | "mta");
        let next = words.peek().map_or("", |next| *next);
        let candidate = if announced { next } else { word };
        let named = announced || (word.starts_with('<') && next.starts_with('#')) || next == "gave";
        let name = candidate.split(['[', '(']).next().unwrap_or_default();
        let name = name.trim_matches(['<', '>', ',', ':', '.']);
        if named && name.contains('.') && name.parse::<DomainName>().is_ok() {
            return Some(name.to_ascii_lowercase());
        }
    }
    None
}
