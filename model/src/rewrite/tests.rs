//! Rewritten messages are parsed again: the intended changes are made, and nothing else changes.

use message::header::{SubmittedMessage, parse_header};

use super::*;
use crate::parsed_body::ParsedBody;

const URL: &str = "https://send.example/u/token";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_link_is_added_to_the_header_once() {
    let message = b"From: a@b.example\r\nLIST-Unsubscribe: <https://elsewhere.example>,\r\n <mailto:x@y>\r\n\
                    List-Unsubscribe-Post: x\r\nSubject: hi\r\n\r\nno token\r\n";
    assert_eq!(
        text(insert_unsubscribe_link(message, URL)),
        format!(
            "List-Unsubscribe: <{URL}>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\
             From: a@b.example\r\nSubject: hi\r\n\r\nno token\r\n"
        )
    );
    assert!(text(insert_unsubscribe_link(b"", URL)).ends_with("One-Click\r\n"));
    assert!(text(insert_unsubscribe_link(b"hello {{unsubscribe_url}}", URL)).contains("hello"));
}

#[test]
fn the_token_is_replaced_in_every_encoding() {
    let subject = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe_=7B=7Bunsubscribe=5Furl=7D=7D?=\r\n";
    let base64 = STANDARD.encode("<p>\u{e4} {{ unsubscribe_url }}</p>\n".repeat(4));
    let message = format!(
        "From: a@b.example\r\n{subject}MIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"o\"\r\n\r\npreamble {{{{unsubscribe_url}}}}\r\n--o\r\n\
         Content-Type: multipart/alternative; boundary=\"i\"\r\n\r\n--i\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
         gr=C3=BCn =7B=7Bunsubscribe_=\r\nurl=7D=7D\r\nlast\r\n--i\r\n\
         Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{base64}\r\n--i--\r\n\
         --o\r\nContent-Type: text/plain; name=\"a.txt\"\r\nContent-Disposition: attachment; filename=\"a.txt\"\r\n\r\n\
         {{{{unsubscribe_url}}}} stays\r\n--o--\r\n"
    );
    let linked = insert_unsubscribe_link(message.as_bytes(), URL);
    let read = ParsedBody::parse(&linked);
    assert_eq!(read.text.as_deref().map(str::trim_end), Some(format!("gr\u{fc}n {URL}\nlast").as_str()));
    let html = format!("<p>\u{e4} {URL}</p>\n").repeat(4);
    assert_eq!(read.html.as_deref().map(str::trim_end), Some(html.trim_end()));
    assert_eq!(read.files.len(), 1);
    let parsed = MessageParser::default().parse(&linked).unwrap();
    assert_eq!(parsed.subject(), Some(format!("Gr\u{fc}\u{df}e {URL}").as_str()));
    let linked = text(linked);
    assert!(linked.contains("preamble {{unsubscribe_url}}") && linked.contains("{{unsubscribe_url}} stays"));
    assert!(message::header::check_lines(linked.as_bytes()).is_ok(), "{linked}");
    assert!(linked.ends_with("\r\n--o--\r\n"), "{linked}");
}

#[test]
fn bytes_of_other_charsets_are_unchanged() {
    let message = b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\n\xe4 {{unsubscribe_url}} \xfc\r\n";
    let linked = insert_unsubscribe_link(message, URL);
    assert!(
        linked.ends_with(
            format!("\r\n\r\n\u{e4} {URL} \u{fc}\r\n").chars().map(|c| c as u8).collect::<Vec<_>>().as_slice()
        )
    );
}

fn rendered() -> RenderedTemplate {
    RenderedTemplate {
        subject: Some("From the template".to_owned()),
        html: Some("<p>\u{e4}</p>".to_owned()),
        text: Some("\u{e4}".to_owned()),
    }
}

#[test]
fn template_bodies_replace_those_of_the_message() {
    let reply_to = ["r@b.example".parse().unwrap()];
    let message = b"From: a@b.example\r\nSubject: \r\nX-Order: 7\r\nContent-Type: text/html\r\n\
                    Service-Template: x\r\nMessage-ID: <1@x>\r\n\r\nold";
    let new = replace_bodies(message, &rendered(), &reply_to);
    let read = ParsedBody::parse(&new);
    assert_eq!(
        (read.html.as_deref(), read.text.as_deref().map(str::trim_end)),
        (Some("<p>\u{e4}</p>"), Some("\u{e4}"))
    );
    assert!(read.files.is_empty());
    let header = parse_header(&SubmittedMessage::new(new.clone())).unwrap();
    assert_eq!(header.summary.subject, "From the template");
    assert_eq!(header.summary.message_id, "1@x");
    assert_eq!(header.summary.reply_to, reply_to);
    let new = text(new);
    assert!(new.contains("X-Order: 7\r\n") && !new.contains("old") && !new.contains("Service-"), "{new}");
    let own = replace_bodies(b"Subject: mine\r\nReply-To: c@d.example\r\n\r\n", &rendered(), &reply_to);
    let own = text(own);
    assert!(own.contains("Subject: mine\r\n") && !own.contains("r@b.example"), "{own}");
}

#[test]
fn template_bodies_keep_the_attachments() {
    let message = b"From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n\
        Content-Type: multipart/alternative; boundary=i\r\n\r\n--i\r\nContent-Type: text/plain\r\n\r\nold\r\n--i\r\n\
        Content-Type: text/x-amp-html\r\n\r\nold\r\n--i--\r\n--o\r\n\
        Content-Type: application/pdf; name=\"a.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\
        Content-Disposition: attachment; filename=\"a.pdf\"\r\n\r\nAAECAw==\r\n--o\r\n\
        Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nhello\r\n--o--\r\n";
    let new = replace_bodies(message, &rendered(), &[]);
    let read = ParsedBody::parse(&new);
    assert_eq!(read.text.as_deref().map(str::trim_end), Some("\u{e4}"));
    let files: Vec<_> = read.files.iter().map(|file| (file.content_type.as_str(), file.size_bytes)).collect();
    assert_eq!(files[0], ("application/pdf", 4));
    assert_eq!((files.len(), files[1].0), (2, "message/rfc822"));
    assert!(has_attachments(&new) && !has_attachments(b"Subject: x\r\n\r\nhi"));
    assert!(!text(new).contains("old"));
    // A field without its line end.
    assert!(
        text(replace_bodies(b"E:", &rendered(), &[])).starts_with("E:\r\nSubject: From the template\r\nMIME-Version: ")
    );
    // The whole message is a file.
    let message = b"Content-Type: application/pdf\r\nContent-Disposition: attachment\r\n\
                    Content-Transfer-Encoding: base64\r\n\r\nAAECAw==\r\n";
    let read = ParsedBody::parse(&replace_bodies(message, &rendered(), &[]));
    assert_eq!((read.files.len(), read.files[0].size_bytes), (1, 4));
}

proptest::proptest! {
    /// No input panics, and a message without the placeholder keeps its body.
    #[test]
    fn inserting_a_link_keeps_the_message(body in "[a-z{}=\\r\\n -]{0,200}", kind in "(text/plain|text/html|multipart/mixed; boundary=a)") {
        let message = format!("From: a@b.example\r\nContent-Type: {kind}\r\n\r\n{body}");
        let linked = text(insert_unsubscribe_link(message.as_bytes(), URL));
        proptest::prop_assert!(linked.ends_with(&message), "{}", linked);
        let _ = replace_bodies(message.as_bytes(), &rendered(), &[]);
    }
}
