//! Tests of complete DSNs: for one recipient, for several, in ASCII and in UTF-8.

use mail_parser::{MessageParser, MimeHeaders as _};
use proptest::prelude::*;

use super::*;
use crate::reply::{Enhanced, SmtpReply};

fn notice(address: &str, action: DsnAction) -> PendingDsn {
    PendingDsn {
        recipient: 0,
        address: address.parse().unwrap(),
        action,
        original_recipient: None,
        expired: false,
        reply: Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), "user unknown")),
        remote_host: Some("mx.example.net".to_owned()),
        explanation: "It was refused for good; it will not be tried again.".to_owned(),
        accepted_at: Timestamp::UNIX_EPOCH,
        last_attempt_at: Timestamp::UNIX_EPOCH,
        smtputf8: false,
    }
}

fn report(to: &str, notices: &[PendingDsn], returned: &[u8], return_full: bool) -> String {
    let host: DomainName = "mx.example.org".parse().unwrap();
    let to: Address = to.parse().unwrap();
    let bytes = DsnMessage {
        reporting_host: &host,
        to: &to,
        message_id: "x@mx.example.org",
        now: Timestamp::UNIX_EPOCH,
        recipients: notices,
        envelope_id: Some("abc"),
        arrived_at: Timestamp::UNIX_EPOCH,
        returned,
        return_full,
    }
    .compose();
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "bare CR or LF: {text}");
    text
}

const PLAIN: &[u8] = b"From: a@b.example\r\nSubject: x\r\n\r\nbody\r\n";
const ACCENTED: &str = "From: a@b.example\r\nSubject: gr\u{fc}\u{df}e\r\n\r\nbody\r\n";

#[test]
fn a_local_error_is_not_attributed_to_a_remote_host() {
    let loops = PendingDsn {
        reply: Some(SmtpReply::new(550, Enhanced::new(5, 4, 6), "it loops back to this host")),
        remote_host: None,
        ..notice("who@example.net", DsnAction::Failed)
    };
    let text = report("sender@example.com", &[loops], PLAIN, false);
    assert!(text.contains("Status: 5.4.6\r\nDiagnostic-Code: x-postrider; 550 5.4.6 it loops"), "{text}");
    assert!(!text.contains(" said:") && !text.contains("Remote-MTA:"), "{text}");
}

#[test]
fn a_report_is_well_formed() {
    let failed = PendingDsn {
        original_recipient: Some("rfc822;who@example.net".into()),
        ..notice("who@example.net", DsnAction::Failed)
    };
    let text = report("sender@example.com", &[failed], PLAIN, false);
    let expected = "Original-Recipient: rfc822;who@example.net\r\n\
                    Final-Recipient: rfc822; who@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("Diagnostic-Code: smtp; 550 5.1.1 user unknown\r\n"), "{text}");
    assert!(text.contains("text/rfc822-headers") && !text.contains("body\r\n"), "{text}");
    assert!(text.contains("report-type=delivery-status;") && !text.contains("Transfer-Encoding"), "{text}");
}

#[test]
fn one_report_covers_many_recipients() {
    let until = Timestamp::from_second(172_800).unwrap();
    let notices = [
        notice("one@example.net", DsnAction::Failed),
        notice("two@example.net", DsnAction::Failed),
        notice("late@example.net", DsnAction::Delayed(until)),
        notice("there@example.net", DsnAction::Relayed),
    ];
    let text = report("sender@example.com", &notices, PLAIN, true);
    assert!(text.contains("Subject: Undelivered mail returned to sender\r\n"));
    // One field group per recipient, each after an empty line (RFC 3464 2.1).
    assert_eq!(text.matches("\r\n\r\nFinal-Recipient: rfc822; ").count(), 4, "{text}");
    assert_eq!(text.matches("Reporting-MTA: ").count(), 1);
    for action in ["failed\r\nStatus: 5.1.1", "delayed\r\nStatus: 4.1.1", "relayed\r\nStatus: 2.1.1"] {
        assert!(text.contains(&format!("Action: {action}\r\n")), "{action}: {text}");
    }
    assert_eq!(text.matches(DsnAction::Failed.intro_text()).count(), 1, "the introduction appears once for both");
    assert!(text.contains(DsnAction::Relayed.intro_text()) && text.contains(DsnAction::Delayed(until).intro_text()));
    assert!(text.contains("message/rfc822\r\n") && text.contains("\r\n\r\nbody\r\n"), "{text}");
}

#[test]
fn the_status_says_why_delivery_ended() {
    let status = |action, expired, reply: &str| {
        let reply = SmtpReply::parse_line(reply);
        PendingDsn { expired, reply, ..notice("who@example.net", action) }.status_code().to_string()
    };
    for (reply, failed, expired) in [
        ("550 user unknown", "5.0.0", "5.4.7"),
        ("550 4.2.2 mailbox full", "5.0.0", "5.4.7"),
        ("550 5.1.1 user unknown", "5.1.1", "5.4.7"),
        ("450 4.2.1 permanent by a rule of the operator", "5.2.1", "5.4.7"),
        ("451 4.3.0 try later", "5.3.0", "5.4.7"),
        ("", "5.0.0", "5.4.7"),
    ] {
        assert_eq!(status(DsnAction::Failed, false, reply), failed, "{reply}");
        assert_eq!(status(DsnAction::Failed, true, reply), expired, "{reply}");
    }
    let delayed = DsnAction::Delayed(Timestamp::UNIX_EPOCH);
    for (reply, expected) in [("451 try later", "4.0.0"), ("450 4.2.1 later", "4.2.1"), ("", "4.4.1")] {
        assert_eq!(status(delayed, false, reply), expected, "{reply}");
    }
}

#[test]
fn a_smtputf8_sender_gets_utf8() {
    let mut failed = notice("gr\u{fc}\u{df}e@example.net", DsnAction::Failed);
    failed.original_recipient = Some("utf-8;gr\u{fc}\u{df}e@example.net".into());
    failed.reply = Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), "unbekannter Empf\u{e4}nger"));
    let failed = [PendingDsn { smtputf8: true, ..failed }];
    let text = report("j\u{f6}rg@example.com", &failed, ACCENTED.as_bytes(), false);
    for expected in [
        "report-type=global-delivery-status;",
        "\r\nContent-Type: message/global-delivery-status\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
        "\r\nOriginal-Recipient: utf-8;gr\u{fc}\u{df}e@example.net\r\n",
        "\r\nFinal-Recipient: utf-8; gr\u{fc}\u{df}e@example.net\r\n",
        "\r\nDiagnostic-Code: smtp; 550 5.1.1 unbekannter Empf\u{e4}nger\r\n",
        "\r\nContent-Type: message/global-headers\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
        "\r\nSubject: gr\u{fc}\u{df}e\r\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let text = report("j\u{f6}rg@example.com", &failed, ACCENTED.as_bytes(), true);
    assert!(text.contains("\r\nContent-Type: message/global\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"), "{text}");
}

#[test]
fn utf8_is_quoted_for_an_ascii_return_path() {
    let failed = [PendingDsn { smtputf8: true, ..notice("gr\u{fc}\u{df}e@example.net", DsnAction::Failed) }];
    for full in [false, true] {
        let text = report("sender@example.com", &failed, ACCENTED.as_bytes(), full);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("message/global-delivery-status\r\nContent-Transfer-Encoding: quoted-printable"));
        let kind = if full { "message/global\r\n" } else { "message/global-headers\r\n" };
        assert!(text.contains(kind), "{text}");
        assert!(text.contains("Final-Recipient: utf-8; gr=C3=BC=C3=9Fe@example.net\r\n"), "{text}");
    }
}

#[test]
fn other_senders_get_ascii() {
    let mut failed = notice("who@example.net", DsnAction::Failed);
    failed.original_recipient = Some("utf-8;gr\u{fc}\u{df}e@example.net".into());
    failed.reply = Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), "unbekannter Empf\u{e4}nger"));
    let text = report("sender@example.com", &[failed], PLAIN, false);
    assert!(text.contains("Original-Recipient: utf-8;gr\\x{FC}\\x{DF}e@example.net\r\n"), "{text}");
    assert!(text.contains("Diagnostic-Code: smtp; 550 5.1.1 unbekannter Empf?nger\r\n"), "{text}");
    assert!(text.contains("report-type=delivery-status;") && !text.contains("global"), "{text}");
}

proptest! {
    #[test]
    fn every_report_has_three_parts(
        (reply, orcpt) in ("\\PC{0,60}", "\\PC{0,40}"),
        (local, to) in ("[a-z\u{e0}-\u{ff}]{1,20}", "[a-z\u{e0}-\u{ff}]{1,20}"),
        (smtputf8, full) in any::<(bool, bool)>(),
        header in "[a-z\u{e0}-\u{ff} ]{0,40}",
    ) {
        let mut failed = notice(&format!("{local}@example.net"), DsnAction::Failed);
        failed.original_recipient = Some(format!("utf-8;{orcpt}"));
        failed.reply = Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), reply));
        failed.smtputf8 = smtputf8;
        let returned = format!("Subject: {header}\r\n\r\nbody\r\n");
        let text = report(&format!("{to}@example.com"), &[failed], returned.as_bytes(), full);
        if to.is_ascii() && (smtputf8 || !local.is_ascii()) {
            prop_assert!(text.is_ascii());
        }
        let parsed = MessageParser::default().parse(text.as_bytes()).unwrap();
        let root = parsed.root_part();
        prop_assert!(root.is_content_type("multipart", "report"));
        let parts = root.sub_parts().unwrap();
        prop_assert_eq!(parts.len(), 3);
        let kind = root.content_type().unwrap().attribute("report-type").unwrap().to_owned();
        let second = parsed.part(parts[1]).unwrap();
        prop_assert!(second.is_content_type("message", &kind));
    }
}
