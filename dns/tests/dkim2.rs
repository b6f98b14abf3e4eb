//! DKIM2 from the key to the verdict: a signature is valid for one transaction of one message. The verifier shares only
//! the keys with the signer.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/world/dkim2.rs"]
mod verifier;
#[path = "../../tests/world/zone.rs"]
mod zone;

use std::fmt::Write as _;
use std::sync::LazyLock;

use dns::dkim_key::{DkimKeys, record_name};
use dns::sign::Signer;
use dns::sign::dkim2::{instance_length, message_instance};
use jiff::Timestamp;
use message::address::{Address, DomainName};
use zone::NameServer;

static KEYS: LazyLock<DkimKeys> = LazyLock::new(|| DkimKeys::generate().unwrap());

const SENDER: &str = "b-01kb3yx8m0000000000000000-0-abcdefgh@rp.example.com";
const RECIPIENT: &str = "Bob.B@example.net";

const HEADERS: [&str; 5] = [
    "From: a@example.com\r\n",
    "Subject:\r\nfrom:\t \t a@example.com \t\r\nTO:b@example.net,\r\n\tc@example.net,\r\n  d@example.net \r\n",
    "Received: by x; y\r\nFrom: a@example.com\r\nreceived: by z\r\nSubject: one\r\nsubject: two\r\nSubject: three\r\n",
    "Return-Path: <x@y.example>\r\nX-Else: y\r\nARC-Seal: i=1\r\nAuthentication-Results: x; none\r\n\
     DKIM-Signature: v=1\r\nDelivered-To: d\r\nX: signed\r\nFrom: a@example.com\r\nZ-Last: z\r\nA-First: a\r\n",
    "From: \u{fc} <a@example.com>\r\nSubject: gr\u{fc}\u{df}e  \t dich\r\n",
];

const BODIES: [&str; 9] = [
    "",
    "\r\n",
    "\r\n\r\n\r\n",
    "Hello\r\n",
    "Hello",
    "Hello\r\n\r\n\r\n",
    "Hello \t\r\n \r\n",
    "  Hello  \t you \r\n\r\n again\r\n\r\n \r\nend",
    "gr\u{fc}\u{df}e\r\n\u{20ac}\r\n",
];

/// The current time, because the verifier reads the system clock.
#[expect(clippy::disallowed_methods, reason = "the verifier asks the machine for the time")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn domain() -> DomainName {
    "example.com".parse().unwrap()
}

fn signer(rsa: bool, ed25519: bool) -> Signer {
    let e = "s1e";
    Signer::new(&domain(), rsa.then_some(("s1", &KEYS.rsa)), ed25519.then_some((e, &KEYS.ed25519))).unwrap()
}

async fn names() -> NameServer {
    let mut zone = String::new();
    for (selector, key) in [("s1", &KEYS.rsa), ("s1e", &KEYS.ed25519)] {
        let name = record_name(selector, &domain()).unwrap();
        writeln!(zone, "{name}. TXT \"{}\"", key.txt_record()).unwrap();
    }
    NameServer::start(&zone).await
}

/// The message as it is sent in a transaction.
fn signed(signer: &Signer, message: &str, from: &str, to: &str) -> String {
    let instance = message_instance(&[message.as_bytes()]).unwrap().expect("it is for us to sign");
    let from = (!from.is_empty()).then(|| from.parse::<Address>().unwrap());
    let to: Address = to.parse().unwrap();
    let signature = signer.sign_transaction(&instance, from.as_ref(), &to, now()).unwrap();
    String::from_utf8([signature, instance].concat()).unwrap() + message
}

#[tokio::test]
async fn every_header_and_body_is_signed() {
    let (names, signer) = (names().await, signer(false, true));
    for headers in HEADERS {
        for body in BODIES {
            let message = signed(&signer, &format!("{headers}\r\n{body}"), SENDER, RECIPIENT);
            let verdict = verifier::verdict(names.address, &message, SENDER, RECIPIENT).await;
            assert_eq!(verdict, "Pass", "{message:?}");
        }
    }
}

#[tokio::test]
async fn ed25519_is_preferred_for_the_single_signature() {
    let names = names().await;
    let message = "From: a@example.com\r\n\r\nHello\r\n";
    for (rsa, ed25519, set) in [
        (true, false, "s=s1:rsa-sha256:"),
        (false, true, "s=s1e:ed25519-sha256:"),
        (true, true, "s=s1e:ed25519-sha256:"),
    ] {
        let message = signed(&signer(rsa, ed25519), message, SENDER, RECIPIENT);
        assert!(message.lines().all(|line| line.len() <= 78), "{message}");
        assert!(message.contains(set) && message.matches("-sha256:").count() == 1, "{message}");
        let verdict = verifier::verdict(names.address, &message, SENDER, RECIPIENT).await;
        assert_eq!(verdict, "Pass", "{message}");
    }
}

#[tokio::test]
async fn a_signature_covers_its_envelope() {
    let (names, signer) = (names().await, signer(true, true));
    let message = "From: a@example.com\r\n\r\nHello\r\n";
    for (from, to) in
        [(SENDER, RECIPIENT), ("", RECIPIENT), (SENDER, "\u{fc}@xn--mnchen-3ya.example"), ("a@example.com", "a=b@c.d")]
    {
        let message = signed(&signer, message, from, to);
        let verdict_of = async |from: &str, to: &str| {
            verifier::verdict(names.address, &message, if from.is_empty() { "<>" } else { from }, to).await
        };
        assert_eq!(verdict_of(from, to).await, "Pass", "{from} {to}");
        for (from, to, why) in [
            (from, "mallory@example.net", "RcptToMismatch(1)"),
            (from, "bob.b@example.net", "RcptToMismatch(1)"),
            ("mallory@example.com", to, "MailFromMismatch(1)"),
        ] {
            assert!(verdict_of(from, to).await.contains(why), "{from} {to}");
        }
    }
}

#[tokio::test]
async fn additions_and_changes_invalidate_the_signature() {
    let (names, signer) = (names().await, signer(false, true));
    let message = "From: a@example.com\r\nSubject: x\r\n\r\nHello\r\n";
    let good = signed(&signer, message, SENDER, RECIPIENT);
    let verdict_of = async |message: &str| verifier::verdict(names.address, message, SENDER, RECIPIENT).await;
    for (changed, why) in [
        (good.replace("Hello", "Hello "), "BodyHashMismatch(1)"),
        (good.clone() + "more\r\n", "BodyHashMismatch(1)"),
        (good.replace("Subject: x", "Subject: y"), "HeaderHashMismatch(1)"),
        (good.replace("Subject: x", "Subject: x\r\nTo: e@evil.example"), "HeaderHashMismatch(1)"),
        ("From: e@evil.example\r\n".to_owned() + &good, "HeaderHashMismatch(1)"),
        (good.replace("h=sha256:", "h=sha256:A"), "IncorrectSignature(1)"),
        (good.replace("; t=1", "; t=2"), "IncorrectSignature(1)"),
        (good.replace("d=example.com", "d=evil.example"), "MailFromDomainMismatch(1)"),
    ] {
        let verdict = verdict_of(&changed).await;
        assert!(verdict.contains(why), "{why}: {verdict}");
    }
    // Trace fields added in transit, and other folding, do not break the signature.
    assert_eq!(verdict_of(&("Received: by x; y\r\nX-A: b\r\n".to_owned() + &good)).await, "Pass");
    assert_eq!(verdict_of(&good.replace("\r\n\t", " ")).await, "Pass");
    assert_eq!(verdict_of(message).await, "None");
}

#[test]
fn chunks_are_one_message() {
    let message = format!("{}\r\nHello \r\n there\r\n \r\n\r\n\r\n", HEADERS[2]).into_bytes();
    let whole = message_instance(&[&message]).unwrap();
    let headers = message.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 2;
    let line_ends = message[..headers].iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
    for cut in line_ends.chain(headers + 2..=message.len()) {
        let (a, b) = message.split_at(cut);
        assert_eq!(message_instance(&[a, b"", b, b""]).unwrap(), whole, "cut at {cut}");
    }
}

#[test]
fn messages_with_foreign_trace_fields_get_no_instance() {
    for field in [
        "Message-Instance: m=1; h=sha256:a:b;",
        "dkim2-signature : i=1",
        "Received-SPF: pass",
        "Original-Recipient: rfc822;a@b.example",
    ] {
        let message = format!("From: a@example.com\r\n{field}\r\n\r\nHello\r\n");
        assert_eq!(message_instance(&[message.as_bytes()]).unwrap(), None, "{field}");
    }
}

#[test]
fn the_length_of_the_instance_is_found() {
    let message = b"From: a@example.com\r\n\r\nMessage-Instance: x\r\n";
    let instance = message_instance(&[message]).unwrap().unwrap();
    let whole = [instance.as_slice(), message].concat();
    assert_eq!(instance_length(&whole), Some(instance.len()));
    assert_eq!(instance_length(&instance), Some(instance.len()));
    assert_eq!(instance_length(message), None);
    assert_eq!(instance_length(b""), None);
}
