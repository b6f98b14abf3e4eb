//! Tests of the attachment policy: blocked attachments in disguises that mail clients decode, and allowed ones.

use super::*;

/// A multipart message with one text part and these parts.
fn mixed(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n{parts}--b--\n")
        .replace('\n', "\r\n")
}

fn is_blocked(message: &str) -> bool {
    let message = SubmittedMessage::new(message.to_owned());
    may_have_attachments(&message) && matches!(check_message(&message), Err(AttachmentError::Blocked { .. }))
}

fn check(message: impl Into<bytes::Bytes>) -> Result<(), AttachmentError> {
    check_message(&SubmittedMessage::new(message))
}

const EVIL: &str = "Content-Disposition: attachment; filename=evil.exe\n\nMZ";

#[test]
fn blocked_names_are_found_in_every_field() {
    for head in [
        "Content-Disposition: attachment; filename=evil.exe",
        "content-disposition : INLINE;\n FILENAME=\"EVIL.EXE. .\"",
        "Content-Disposition: attachment; filename*=utf-8''evil%2eexe",
        "Content-Disposition: attachment; filename*0=\"evil.\";\n filename*1=\"exe\"",
        "Content-Disposition: attachment; filename=\"=?utf-8?B?ZXZpbC5leGU=?=\"",
        "Content-Type: application/octet-stream; name=evil.exe",
        "Content-Type: text/plain; name=\"evil.e\u{200b}xe\"",
        "Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.js",
        "no field\nContent-Type: application/octet-stream; name=evil.exe",
    ] {
        assert!(is_blocked(&mixed(&[&format!("{head}\n\nMZ")])), "{head}");
        if !head.starts_with("no") {
            assert!(is_blocked(&format!("From: a@b.example\n{head}\n\nMZ").replace('\n', "\r\n")), "{head}");
        }
    }
}

#[test]
fn errors_show_the_decoded_name() {
    for name in ["filename*=utf-8'en'%e2%82%ac%20evil%2eexe", "filename=\"=?utf-8?Q?=E2=82=AC_evil=2Eexe?=\""] {
        let message = mixed(&[&format!("Content-Disposition: attachment; {name}\n\nMZ")]);
        let error = check(message).unwrap_err().to_string();
        assert_eq!(error, "attachment `\u{20ac} evil.exe`: files of type .exe are not accepted");
    }
}

#[test]
fn attachments_of_attached_messages_are_checked() {
    let message = mixed(&[EVIL]);
    let encoded = base64::engine::general_purpose::STANDARD.encode(&message);
    for part in [
        format!("Content-Type: message/rfc822\n\n{}", message.replace("=b\r\n", "=c\r\n").replace("--b", "--c")),
        format!("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{encoded}"),
        format!("Content-Type: application/x; name=\"a.EML\"\nContent-Transfer-Encoding: base64\n\n{encoded}"),
        "Content-Type: multipart/digest; boundary=d\n\n--d\n\nContent-Type: x/y; name=a.dll\n\nx\n--d--".to_owned(),
    ] {
        assert!(is_blocked(&mixed(&[&part])), "{part}");
    }
    assert!(check_attached_message(message.as_bytes()).is_err());
    assert_eq!(check_attached_message(mixed(&["Content-Type: image/png; name=a.png\n\nx"; 20]).as_bytes()), Ok(()));
    assert!(is_message("Message/RFC822; x=y", "") && is_message("", "a.Eml. ") && !is_message("text/plain", "a"));
}

#[test]
fn at_most_ten_attachments_are_accepted() {
    let file = "Content-Type: application/pdf; name=a.pdf\n\nx";
    assert_eq!(check(mixed(&[file; 10])), Ok(()));
    assert_eq!(check(mixed(&[file; 11])), Err(AttachmentError::TooMany("a.pdf".to_owned())));
    let unnamed = "Content-Type: image/png\n\nx";
    assert_eq!(check(mixed(&[unnamed; 11])), Err(AttachmentError::TooMany("unnamed".to_owned())));
    assert_eq!(check(mixed(&["Content-Type: text/html\n\nx"; 20])), Ok(()));
}

#[test]
fn ambiguous_fields_are_refused() {
    let twice = "Content-Type: text/plain\nContent-Type: text/html\n\nx";
    assert_eq!(check(mixed(&[twice])), Err(AttachmentError::DuplicateField("Content-Type")));
    let boundaries = "Content-Type: multipart/mixed; boundary=x; boundary=y\n\nx";
    assert_eq!(check(mixed(&[boundaries])), Err(AttachmentError::DuplicateField("boundary")));
    let encoded = "Content-Type: multipart/mixed; boundary*=us-ascii''x\n\nx";
    assert_eq!(check(mixed(&[encoded])), Err(AttachmentError::BoundaryEncoded));
}

#[test]
fn depth_and_number_of_parts_are_bounded() {
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
    assert_eq!(check(deep), Err(AttachmentError::TooComplex));
    let wide = mixed(&["\nx"; 2_000]);
    assert_eq!(check(wide), Err(AttachmentError::TooComplex));
}

#[test]
fn plain_messages_are_not_checked() {
    for plain in ["", "Subject: x\r\n\r\nhi", "Content-Type: text/html; charset=utf-8\r\n\r\nhi"] {
        assert!(!may_have_attachments(&SubmittedMessage::new(plain)), "{plain}");
    }
    assert_eq!(check(""), Ok(()));
}
