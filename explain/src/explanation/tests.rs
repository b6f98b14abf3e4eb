//! Recipients in each state, with the words that people get.

use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-11-26T12:00:00Z".parse().unwrap()
}

fn explained(recipient: Value) -> Explanation {
    explain(&serde_json::from_value(recipient).unwrap(), "email.sent", now())
}

#[test]
fn a_recipient_is_told_that_another_one_blocked_the_email() {
    let failed: RecipientDelivery = serde_json::from_value(json!({"status": "failed", "attempts": 0})).unwrap();
    let explanation = explain(&failed, "email.suppressed", now());
    assert_eq!(
        explanation.paragraph(),
        "It was not sent: no delivery was attempted. Nobody got this email, because another recipient is on your \
         suppression list or has opted out of this category. Send the email again without that recipient."
    );
    assert_eq!(explanation.next_step, None, "the same recipients would be refused again");
    let other_cause = explain(&failed, "email.failed", now());
    assert_eq!((other_cause.reason, other_cause.next_step), (None, Some(NextStep::Resend)));
}

#[test]
fn a_put_off_recipient_is_tried_again() {
    let explanation = explained(json!({
        "email": "a@example.net", "type": "to", "status": "deferred", "attempts": 2, "mx_host": "mx.example.net",
        "last_response": {"smtp_code": 451, "enhanced_code": "4.7.1", "text": "Greylisted, try later"}, "error": null,
        "next_attempt_at": "2026-01-01T10:00:00.000Z",
        "waits_for": {"cause": "schedule", "text": "the next attempt (number 3)", "destination": null, "place": null,
            "until": "2026-01-01T10:00:00.000Z"},
    }));
    assert_eq!(
        explanation.paragraph(),
        "It is in the queue after 2 attempts. The mail host makes every new sender wait a few minutes (greylisting). \
         The next attempt is at 1 Jan 2026, 10:00 UTC. mx.example.net said: “451 4.7.1 Greylisted, try later”. \
         Nothing to do: it is retried automatically until it is delivered or expires."
    );
}

#[test]
fn a_recipient_in_an_attempt_waits_for_the_reply() {
    let explanation = explained(json!({
        "status": "queued", "attempts": 0, "next_attempt_at": null, "waits_for": {"cause": "reply"},
    }));
    assert_eq!(
        explanation.paragraph(),
        "It is being delivered right now. The recipient's mail host has not answered yet. Nothing to do: wait for the \
         host's reply."
    );
}

#[test]
fn an_unknown_mailbox_is_named() {
    let explanation = explained(json!({
        "status": "bounced", "attempts": 1, "bounced_at": "2026-01-01T10:00:00Z",
        "last_response": {"smtp_code": 550, "enhanced_code": "5.1.1", "text": "No"},
    }));
    assert_eq!(explanation.reason.as_deref(), Some("The mailbox does not exist."));
    assert_eq!((explanation.standing, explanation.next_step), (DeliveryState::Stopped, None));
}

#[test]
fn a_domain_without_mail_hosts_is_named_instead_of_a_host() {
    let mut recipient = json!({
        "status": "bounced", "attempts": 1, "error": "nomail.example accepts no mail (null MX)",
        "bounced_at": "2026-01-01T10:00:00Z",
    });
    assert_eq!(
        explained(recipient.clone()).paragraph(),
        "It bounced on 1 Jan 2026, 10:00 UTC, and will not be retried. The domain of the address does not exist, or \
         does not accept mail. The last error was: “nomail.example accepts no mail (null MX)”. Check the spelling of \
         the part after the @."
    );
    recipient["mx_host"] = "mx.example.net".into();
    assert!(explained(recipient).place.contains("the recipient's mail host refused it"));
    let looked_up = json!({
        "status": "deferred", "attempts": 1, "error": "dest.example: no name server answered",
        "waits_for": {"cause": "schedule", "text": "the next attempt (number 2)"},
    });
    let explanation = explained(looked_up);
    assert!(explanation.reason.unwrap().starts_with("The mail hosts of the recipient's domain could not be"));
    assert!(explanation.advice.contains("`postrider doctor`"), "{}", explanation.advice);
}

#[test]
fn only_a_failure_without_a_host_may_be_a_misspelled_domain() {
    let mut recipient = json!({
        "status": "failed", "attempts": 9, "mx_host": "mx.example.net",
        "error": "the host sent a line that is not an SMTP reply",
    });
    let advice = explained(recipient.clone()).advice;
    assert!(!advice.contains("spelled") && advice.contains("recipient's administrator"), "{advice}");
    recipient["mx_host"] = Value::Null;
    assert!(explained(recipient).advice.contains("is spelled correctly"));
}

#[test]
fn a_delivered_email_was_seen_or_may_be_in_the_spam_folder() {
    let mut recipient = json!({
        "status": "delivered", "attempts": 3, "mx_host": "mx.example.net", "delivered_at": "2026-01-01T10:00:00Z",
        "last_response": {"smtp_code": 250, "enhanced_code": null, "text": "queued as 7"},
    });
    let explanation = explained(recipient.clone());
    assert_eq!(
        explanation.place,
        "It was delivered: mx.example.net accepted it on 1 Jan 2026, 10:00 UTC, on attempt 3."
    );
    assert!(explanation.advice.contains("spam folder"));
    recipient["opened_at"] = "2026-01-01T11:00:00Z".into();
    assert_eq!(
        explained(recipient.clone()).reason.unwrap(),
        "The recipient saw it: it was opened on 1 Jan 2026, 11:00 UTC."
    );
    recipient["complained_at"] = "2026-01-01T12:00:00Z".into();
    assert!(explained(recipient).advice.starts_with("Do not send"));
}

#[test]
fn scheduled_emails_can_be_rescheduled() {
    let explanation = explained(json!({
        "status": "queued", "waits_for": {"cause": "scheduled_at", "text": "", "until": "2026-12-01T09:00:00Z"},
    }));
    assert_eq!((explanation.standing, explanation.next_step), (DeliveryState::Waiting, Some(NextStep::Reschedule)));
    assert_eq!(explanation.next_try_at, "2026-12-01T09:00:00Z".parse().ok());
}

#[test]
fn an_overdue_scheduled_email_waits_for_the_store() {
    let due = |until: &str| {
        let wait = json!({"cause": "scheduled_at", "text": "", "until": until});
        explained(json!({"status": "queued", "next_attempt_at": until, "waits_for": wait}))
    };
    let overdue = due("2026-11-26T11:50:00Z");
    assert_eq!(
        overdue.paragraph(),
        "It is due, and waits until the server can store new mail (its disk may be full). Nothing to do: it is sent as \
         soon as the server can store it."
    );
    assert_eq!((overdue.standing, overdue.next_step), (DeliveryState::Waiting, None));
    let just_due = due("2026-11-26T11:58:00Z");
    assert_eq!(just_due.next_step, Some(NextStep::Reschedule), "it is being released");
}

#[test]
fn every_status_and_cause_is_explained_in_sentences() {
    let causes = [
        "held",
        "account_suspended",
        "queue_held",
        "paused",
        "suspended",
        "schedule",
        "other_node",
        "resting",
        "unreachable",
        "rate",
        "warm_up",
        "connections",
        "turn",
        "reply",
        "look_up",
        "memory",
        "scheduled_at",
        "not_allowed",
        "something_new",
    ];
    let waiting =
        causes.map(|cause| json!({"status": "queued", "waits_for": {"cause": cause, "text": "this", "place": 2}}));
    let others = ["delivered", "bounced", "failed", "suppressed", "cancelled", "something_new"];
    let others = others.map(|status| json!({"status": status, "error": "connection refused", "attempts": 1}));
    for recipient in waiting.into_iter().chain(others) {
        let explanation = explained(recipient.clone());
        for sentence in [Some(&explanation.place), explanation.reason.as_ref(), Some(&explanation.advice)] {
            let sentence = sentence.map_or("", String::as_str);
            assert!(sentence.is_empty() || sentence.ends_with('.'), "{recipient}: {sentence}");
        }
        assert!(!explanation.place.is_empty(), "{recipient}");
    }
}

#[test]
fn causes_are_read_from_codes_and_words() {
    let reason = |code: u16, enhanced: Option<&str>, text: &str| {
        let reply = json!({"smtp_code": code, "enhanced_code": enhanced, "text": text});
        explained(json!({"status": "bounced", "attempts": 1, "last_response": reply})).reason.unwrap_or_default()
    };
    for (code, enhanced, text, part) in [
        (552, Some("5.2.2"), "Quota exceeded", "full"),
        (550, None, "User unknown", "mailbox does not exist"),
        (550, Some("5.7.26"), "Unauthenticated email is not accepted", "SPF, DKIM or DMARC"),
        (550, Some("5.7.1"), "Blocked using zen.spamhaus.org", "reputation"),
        (550, Some("5.7.1"), "Not on our list", "policy"),
        (552, None, "Message size exceeds", "larger"),
        (550, Some("5.1.10"), "null MX", "domain"),
        (554, Some("5.4.6"), "Routing loop", "in a loop"),
        (554, None, "No", ""),
    ] {
        let found = reason(code, enhanced, text);
        assert!(found.contains(part) && found.is_empty() == part.is_empty(), "{code} {text}: {found}");
    }
}
