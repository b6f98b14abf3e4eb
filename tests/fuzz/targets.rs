//! The fuzz targets. Each accepts any bytes and panics if an invariant is violated. `fuzz/` runs them with coverage
//! feedback; `main.rs` in this directory runs a short smoke test of each.

use std::sync::Arc;

use ::net::proxy_protocol::header::{HeaderProgress, parse};
use bytes::Bytes;
use jiff::Timestamp;
use message::address::{Address, Mailbox};
use message::header::{self, CompletionContext, HeaderField, SubmittedMessage};
use model::email::Category;
use model::id::{AccountId, EmailId};
use model::signed_token::TokenKey;
use model::template::{self, ParsedTemplate, TemplateBodies};
use model::tracking::{LinkTracker, TrackingTarget, restore_html, rewrite_html};
use smtp::content_budget::ContentBudget;
use smtp::handler::{Hook, HookVerdict, SessionTls};
use smtp::limits::SessionLimits;
use smtp::line_framer::LineFramer;
use smtp::replies::ReplyBuffer;
use smtp::session::{Input, SessionAction, SmtpSession};
use smtp::settings::{ListenerRole, SessionSettings};

pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("session", session),
    ("address", address),
    ("message", header),
    ("reply", reply),
    ("config", config),
    ("proxy", proxy),
    ("template", template),
    ("mjml", mjml),
    ("tracking", tracking),
    ("service", service),
    ("bounce", bounce),
    ("received", received),
];

/// Client bytes in two reads, for each listener role. No accepted message has a bare CR or LF unless it is binary, and
/// all memory is returned to the budget.
pub fn session(bytes: &[u8]) {
    session_at(ListenerRole::Relay, SessionLimits::for_relay(), false, bytes);
    session_at(ListenerRole::Mx, SessionLimits::for_mx(), false, bytes);
    session_at(ListenerRole::Submission, SessionLimits::default(), true, bytes);
}

fn session_at(role: ListenerRole, limits: SessionLimits, is_secured: bool, bytes: &[u8]) {
    let hostname = "mx.example".parse().unwrap();
    let budget = ContentBudget::new(1 << 20);
    let settings = Arc::new(SessionSettings::new(role, hostname, limits, Arc::clone(&budget), true));
    let mut replies = ReplyBuffer::default();
    let mut session = SmtpSession::new(settings, 1, [127, 0, 0, 1].into(), is_secured, &mut replies);
    let mut inbox = LineFramer::default();
    let tls = SessionTls { version: "TLSv1.3", cipher: "TLS13_AES_128_GCM_SHA256" };
    if is_secured {
        session.step(Input::TlsEstablished(tls), &mut replies);
    }
    let middle = bytes.len() / 2;
    for chunk in [&bytes[..middle], &bytes[middle..]] {
        inbox.push(chunk);
        let mut next = inbox.drive_session(&mut session, &mut replies);
        while let SessionAction::CallHook(question) = next {
            if let Hook::Submit(message) = &question {
                let text = &message.content;
                let lone = |n: usize| match text[n] {
                    b'\n' => n == 0 || text[n - 1] != b'\r',
                    b'\r' => text.get(n + 1) != Some(&b'\n'),
                    _ => false,
                };
                assert!(message.binary || !(0..text.len()).any(lone), "a bare CR or LF was accepted");
                assert!(!message.recipients.is_empty());
            }
            drop(question);
            next = session.step(Input::Verdict(HookVerdict::Accept), &mut replies).action;
            if matches!(next, SessionAction::Read) {
                next = inbox.drive_session(&mut session, &mut replies);
            }
        }
        replies.mark_sent(usize::MAX);
        match next {
            SessionAction::Close => break,
            SessionAction::StartTls => {
                inbox.discard();
                session.step(Input::TlsEstablished(tls), &mut replies);
            }
            SessionAction::Read | SessionAction::CallHook(_) => {}
        }
    }
    drop((session, inbox));
    assert_eq!(budget.free_bytes(), 1 << 20, "memory was not released");
}

/// An accepted address round-trips through its text and contains no control character that could end a command.
pub fn address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(address) = text.parse::<Address>() {
        let text = address.to_string();
        assert_eq!(text.parse::<Address>().as_ref(), Ok(&address));
        assert!(!text.chars().any(char::is_control));
    }
    if let Ok(mailbox) = text.parse::<Mailbox>() {
        assert!(!mailbox.to_string().contains(['\r', '\n']));
    }
}

/// Rewriting links is idempotent, and restoring and rewriting again gives the same HTML, for malformed HTML too.
pub fn tracking(bytes: &[u8]) {
    let Ok(html) = std::str::from_utf8(bytes) else { return };
    let key = TokenKey::new([1; 32]);
    let id = EmailId::new(Timestamp::UNIX_EPOCH, 1);
    let target = TrackingTarget::new(AccountId::new(Timestamp::UNIX_EPOCH, 1), id, 1);
    let base = "https://track.example";
    let tracking = LinkTracker { key: &key, base, service: base, target };
    let tracked = rewrite_html(html, &tracking, false, true);
    assert_eq!(rewrite_html(&tracked, &tracking, false, true), tracked);
    let restored = restore_html(&tracked, &key);
    assert_eq!(rewrite_html(&restored, &tracking, false, true), tracked);
    let with_pixel = rewrite_html(html, &tracking, true, true);
    assert_eq!(restore_html(&with_pixel, &key), restored);
}

/// A header that parses can be completed: other fields remain, Bcc and `Service-*` fields are removed, and From exists.
pub fn header(bytes: &[u8]) {
    let message = SubmittedMessage::new(bytes.to_vec());
    let Ok(header) = header::parse_header(&message) else { return };
    let reverse_path: Address = "a@b.example".parse().unwrap();
    let context =
        CompletionContext { id_left: "1", reverse_path: Some(&reverse_path), received: "", now: Timestamp::UNIX_EPOCH };
    if let Ok(completed) = header::complete_message(&message, header, &context) {
        let message_bytes = [completed.top, completed.rest.concat()].concat();
        let (fields, _) = header::parse_fields(&message_bytes);
        let stays = |field: &HeaderField| {
            !field.has_name(&message_bytes, "Bcc") && !message::header::is_service_field(&message_bytes, field)
        };
        assert!(fields.iter().all(stays));
        assert!(fields.iter().any(|field| field.has_name(&message_bytes, "From")));
    }
}

/// `Service-*` fields are parsed or refused with a message. A rewritten message has exactly one List-Unsubscribe, and
/// a filled one exactly one MIME-Version.
pub fn service(bytes: &[u8]) {
    let submitted = SubmittedMessage::new(bytes.to_vec());
    if let Err(error) = model::service_headers::parse(&submitted) {
        assert!(!error.to_string().is_empty());
    }
    if header::parse_header(&submitted).is_err() {
        return;
    }
    let linked = model::rewrite::insert_unsubscribe_link(bytes, "https://u.example/u/x");
    let (fields, _) = header::parse_fields(&linked);
    assert_eq!(fields.iter().filter(|field| field.has_name(&linked, "List-Unsubscribe")).count(), 1);
    let rendered = template::RenderedTemplate { text: Some("x".to_owned()), ..template::RenderedTemplate::default() };
    let filled = model::rewrite::replace_bodies(bytes, &rendered, &[]);
    let (fields, _) = header::parse_fields(&filled);
    assert_eq!(fields.iter().filter(|field| field.has_name(&filled, "MIME-Version")).count(), 1);
}

/// Any bounce or complaint is parsed; its diagnostic is bounded and on one line.
pub fn bounce(bytes: &[u8]) {
    use message::bounce::{ParsedReport, parse, parse_complaint};
    let recipient: Address = "ada@recipient.example".parse().unwrap();
    match parse(bytes, Some(&recipient), None) {
        ParsedReport::Failed(failure) | ParsedReport::Delayed(failure) => {
            assert!(!failure.diagnostic.contains(char::is_control) && failure.diagnostic.len() <= 4_000);
            assert!((400..600).contains(&failure.reply.code));
        }
        ParsedReport::Complaint(complaint) => assert!(complaint.return_paths.len() <= 64),
        ParsedReport::Nothing => {}
    }
    let _ = parse_complaint(bytes);
}

/// Any received message is parsed in bounds and with one-line fields. Only forged Authentication-Results fields are
/// stripped; the body stays whole.
pub fn received(bytes: &[u8]) {
    use message::received::{ParsedReceivedEmail, strip_forged_auth_results};
    let reading = ParsedReceivedEmail::parse(bytes);
    let heading = &reading.heading;
    assert_eq!(*heading, ParsedReceivedEmail::parse_header(bytes));
    assert_eq!(heading.attachment_count, reading.attachments.len() as u64);
    assert!(!format!("{}{}{:?}", heading.from, heading.subject, heading.to).contains(['\r', '\n']));
    assert!(serde_json::to_vec(heading).is_ok_and(|row| row.len() < 100_000));
    for index in 0..reading.attachments.len().min(5) {
        assert_eq!(ParsedReceivedEmail::parse_attachment(bytes, index).as_ref(), reading.attachments.get(index));
    }
    let message = Bytes::copy_from_slice(bytes);
    let left = strip_forged_auth_results(&message, &"mx.example".parse().unwrap()).concat();
    assert!(left.len() <= bytes.len());
    let body = bytes.windows(3).position(|bytes| bytes == b"\n\r\n").and_then(|at| bytes.get(at..)).unwrap_or_default();
    assert!(left.ends_with(body.get(1..).unwrap_or_default()));
}

/// A parsed enhanced status code has class 2, 4 or 5.
pub fn reply(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some((code, remaining)) = message::reply::Enhanced::split_prefix(text) {
        assert!(text.starts_with(char::is_numeric) && remaining.len() < text.len());
        assert!(code.class == 2 || code.class == 4 || code.class == 5);
    }
}

/// Any text is a valid configuration or yields a list of problems.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(problems) = postrider::config::from_text(text, []) {
        assert!(!problems.is_empty());
    }
}

/// A PROXY header gives the same result in one piece and in many, and the parser never requests bytes behind it.
pub fn proxy(bytes: &[u8]) {
    let (mut end, mut step) = (0, parse(&[]));
    while let Ok(HeaderProgress::Incomplete(count)) = step {
        assert!(count > 0, "incomplete, but no bytes are requested");
        if end + count > bytes.len() {
            break;
        }
        end += count;
        step = parse(&bytes[..end]);
    }
    match step {
        Ok(HeaderProgress::Complete { size_bytes, .. }) => {
            assert_eq!(size_bytes, end, "a byte behind the header was requested");
            assert_eq!(parse(bytes), step);
        }
        Ok(HeaderProgress::Incomplete(_)) => {
            assert!(!matches!(parse(bytes), Ok(HeaderProgress::Complete { .. })))
        }
        Err(_) => assert!(parse(bytes).is_err()),
    }
}

/// Any text, also within a column, compiles to HTML that has each tag, or is refused with line numbers.
pub fn mjml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let column = format!("<mjml><mj-body><mj-section><mj-column>{text}</mj-column></mj-section></mj-body></mjml>");
    for source in [text, &column] {
        match mjml::compile(source) {
            Ok(compiled) => assert!(compiled.html.len() <= template::MARKUP_BYTES_MAX),
            Err(error) => assert!((1..=source.matches('\n').count() + 1).contains(&error.line)),
        }
    }
}

/// Any text is a valid template or is refused with line numbers. The rendered HTML is bounded, and the subject has no
/// control characters.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let settings = template::TemplateSettings {
        category: Category::Transactional,
        unsubscribe_enabled: false,
        from: None,
        reply_to: Vec::new(),
        subject: Some(text.to_owned()),
        preheader: None,
        variables: Vec::new(),
    };
    let bodies = TemplateBodies { html: Some(text.to_owned()), ..TemplateBodies::default() };
    match ParsedTemplate::compile(&settings, &bodies) {
        Ok(program) => {
            let variables = serde_json::json!({"a": "x\r\ny", "b": [{"a": 1}, {"b": [null, true]}]});
            let (rendered, _) = program.preview(&variables);
            assert!(!rendered.subject.unwrap_or_default().contains(char::is_control));
            let bytes_max = template::render::RENDERED_BYTES_MAX;
            assert!(rendered.html.is_none_or(|html| html.len() <= bytes_max));
        }
        Err(errors) => {
            let lines = text.matches('\n').count() + 1;
            assert!(errors.iter().all(|(_, error)| (1..=lines).contains(&error.line)));
        }
    }
}
