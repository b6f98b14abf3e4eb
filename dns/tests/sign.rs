//! DKIM signatures from the key to the verdict: many forms of messages, both algorithms, and changes that break them.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/world/zone.rs"]
mod zone;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use dns::authentication::{DkimKeySource, DkimVerdict, verify_dkim};
use dns::dkim_key::{DkimKeys, record_name};
use dns::resolver::{Resolver, ResolverSettings};
use dns::sign::{SignError, Signer};
use dns::signing_pool::SigningPool;
use jiff::Timestamp;
use message::address::DomainName;
use message::received::AuthResult;
use proptest::prelude::*;

static KEYS: LazyLock<DkimKeys> = LazyLock::new(|| DkimKeys::generate().unwrap());

fn domain() -> DomainName {
    "example.com".parse().unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

fn signer(rsa: bool, ed25519: bool) -> Signer {
    let e = "s1e";
    Signer::new(&domain(), rsa.then_some(("s1", &KEYS.rsa)), ed25519.then_some((e, &KEYS.ed25519))).unwrap()
}

fn published() -> Vec<(String, String)> {
    [("s1", &KEYS.rsa), ("s1e", &KEYS.ed25519)]
        .map(|(selector, key)| (record_name(selector, &domain()).unwrap().to_string(), key.txt_record()))
        .into()
}

fn signed(message: &[u8]) -> Vec<u8> {
    [signer(true, true).sign(&[message], now()).unwrap().as_slice(), message].concat()
}

async fn verdicts(message: impl Into<Bytes>) -> Vec<DkimVerdict> {
    verify_dkim(message.into(), DkimKeySource::Fixed(published())).await
}

async fn results(message: impl Into<Bytes>) -> Vec<AuthResult> {
    verdicts(message).await.into_iter().map(|verdict| verdict.result).collect()
}

/// Header sections, each with a From field.
const HEADERS: [&str; 6] = [
    "From: a@example.com\r\n",
    "From: Ada <a@example.com>\r\nTo: b@example.net\r\nSubject: Hello\r\nDate: Mon, 21 Sep 2026 10:00:00 +0000\r\n\
     Message-ID: <1@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n",
    "Subject:\r\nfrom:\t \t a@example.com \t\r\nTO:b@example.net,\r\n\tc@example.net,\r\n  d@example.net \r\n",
    "Received: by x; y\r\nFrom: a@example.com\r\nReceived: by z\r\nSubject: one\r\nSubject: two\r\nTo: 1\r\nTo: 2\r\nTo: 3\r\n",
    "From: \u{fc} <a@example.com>\r\nSubject: gr\u{fc}\u{df}e  \t dich\r\nX-Else: y\r\n",
    "From: a@example.com\r\nList-Unsubscribe: <https://example.com/u>\r\n\
     List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nFeedback-ID: 1:2:3:x\r\nReply-To: r@example.com\r\nCc: c@example.com\r\n",
];

/// Bodies with their relaxed hashes, as another implementation (dkimpy 1.1.8) computes them for messages received by
/// SMTP, where every line ends in CRLF.
const BODIES: [(&str, &str); 14] = [
    ("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("\r\n", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("\r\n\r\n\r\n", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("Hello\r\n", "Ba3gj8+xBPQLJTahTfzW6RbWQ/XPgESxkCi2B66PSQg="),
    ("Hello", "Ba3gj8+xBPQLJTahTfzW6RbWQ/XPgESxkCi2B66PSQg="),
    ("Hello\r\n\r\n\r\n", "Ba3gj8+xBPQLJTahTfzW6RbWQ/XPgESxkCi2B66PSQg="),
    ("Hello\r\n \r\n", "Ba3gj8+xBPQLJTahTfzW6RbWQ/XPgESxkCi2B66PSQg="),
    ("Hello\r\n \t \r\n\t\r\n  ", "Ba3gj8+xBPQLJTahTfzW6RbWQ/XPgESxkCi2B66PSQg="),
    (" \r\n\t\r\n", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("   ", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("Hello  \t you \t\r\n\r\n  again\t\r\n \r\nend", "FmO3Q+IhkL8Twt5LKX0IBttPvxNhuczpBVPCIiCOIZI="),
    (" \r\n\r\n lead", "+Kl0EapC2nma+qzPAexofXvZOtzmNtA6YF5aBNefCQ8="),
    ("gr\u{fc}\u{df}e\r\n\u{20ac}\r\n", "MXYKbxSS64ZIeS4TS9bAunlxkbGX7JELFeGYW4QRdHk="),
    ("\u{c}\r\n\u{b}x\u{c} \r\n\u{c} \r\n", "jpz0shzTUDGbu7qryDATrlWqw6SkpmJrxQnDvFXTvNo="),
];

fn tag(signature: &str, name: &str) -> String {
    let flat: String = signature.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let start = flat.find(&format!(";{name}=")).map_or(0, |at| at + name.len() + 2);
    flat[start..].split(';').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_header_and_body_is_signed_with_both_keys() {
    for headers in HEADERS {
        for (body, hash) in BODIES {
            let message = format!("{headers}\r\n{body}");
            let lines = String::from_utf8(signer(true, true).sign(&[message.as_bytes()], now()).unwrap()).unwrap();
            assert_eq!(lines.matches("DKIM-Signature: ").count(), 2);
            assert!(lines.lines().all(|line| line.len() <= 78), "{lines}");
            assert_eq!(tag(&lines, "bh"), hash, "{body:?}");
            let found = verdicts(lines + &message).await;
            let found: Vec<_> = found.iter().map(|v| (v.selector.as_str(), v.algorithm, v.result)).collect();
            let pass = AuthResult::Pass;
            assert_eq!(found, [("s1", "rsa-sha256", pass), ("s1e", "ed25519-sha256", pass)], "{message:?}");
        }
    }
}

#[tokio::test]
async fn one_key_makes_one_signature() {
    let message = b"From: a@example.com\r\n\r\nHello\r\n";
    for (rsa, ed25519, algorithm) in [(true, false, "rsa-sha256"), (false, true, "ed25519-sha256")] {
        let lines = signer(rsa, ed25519).sign(&[message], now()).unwrap();
        let found = verdicts([&lines, message.as_slice()].concat()).await;
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].algorithm, found[0].domain.as_str()), (algorithm, "example.com"));
        assert_eq!(found[0].result, AuthResult::Pass, "{found:?}");
    }
}

#[test]
fn the_signature_has_the_expected_tags() {
    let message = format!("{}\r\nHello\r\n", HEADERS[5]);
    let lines = String::from_utf8(signer(true, false).sign(&[message.as_bytes()], now()).unwrap()).unwrap();
    assert!(!lines.contains(" l=") && !lines.contains("\tl=") && !lines.contains(" x="), "{lines}");
    assert!(lines.ends_with("==\r\n"), "nothing behind the value: {lines}");
    assert_eq!(tag(&lines, "t"), "1790000000");
    assert_eq!(tag(&lines, "c"), "relaxed/relaxed");
    assert_eq!(
        tag(&lines, "h").to_ascii_lowercase(),
        "from:from:to:cc:cc:subject:date:message-id:reply-to:reply-to:mime-version:content-type:\
         content-transfer-encoding:in-reply-to:references:list-unsubscribe:list-unsubscribe:\
         list-unsubscribe-post:list-unsubscribe-post:feedback-id"
    );
}

#[tokio::test]
async fn chunks_are_one_message() {
    let message = format!("{}\r\nHello \r\n there\r\n \r\n\r\n", HEADERS[3]).into_bytes();
    let whole = signer(false, true).sign(&[&message], now()).unwrap();
    let headers = message.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 2;
    let line_ends = message[..headers].iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
    for cut in line_ends.chain(headers + 2..=message.len()) {
        let (a, b) = message.split_at(cut);
        assert_eq!(signer(false, true).sign(&[a, b"", b, b""], now()).unwrap(), whole, "cut at {cut}");
    }
    assert_eq!(results([whole, message].concat()).await, [AuthResult::Pass]);
}

#[tokio::test]
async fn additions_and_changes_invalidate_the_signature() {
    let message = b"From: a@example.com\r\nSubject: x\r\n\r\nHello\r\n";
    let good = signed(message);
    for added in [
        "From: e@evil.example\r\n",
        "Subject: y\r\n",
        "To: e@evil.example\r\n",
        "Cc: e@evil.example\r\n",
        "Reply-To: e@evil.example\r\n",
        "Date: Mon, 21 Sep 2026 10:00:00 +0000\r\n",
        "Content-Type: text/html\r\n",
        "List-Unsubscribe: <https://evil.example>\r\n",
    ] {
        let found = results([added.as_bytes(), &good].concat()).await;
        assert_eq!(found, [AuthResult::Fail; 2], "{added}");
    }
    let found = results([b"Received: by a relay\r\nX-Spam: no\r\n", good.as_slice()].concat()).await;
    assert_eq!(found, [AuthResult::Pass; 2]);
    let text = String::from_utf8(good).unwrap();
    assert_eq!(results(text.replace("Hello", "hello")).await, [AuthResult::Fail; 2]);
    assert_eq!(results(text.replace("Subject: x", "Subject: y")).await, [AuthResult::Fail; 2]);
    // Changes of white space by relays do not break the signature.
    assert_eq!(results(text.replace("Subject: x", "SUBJECT:\t x ")).await, [AuthResult::Pass; 2]);
    assert_eq!(results(text.replace("Hello\r\n", "Hello \r\n\r\n \r\n")).await, [AuthResult::Pass; 2]);
}

#[test]
fn malformed_messages_are_not_signed() {
    let many = format!("From: a@example.com\r\n{}\r\nx", "To: b@example.net\r\n".repeat(200));
    for (message, error) in [
        ("", SignError::NoFrom),
        ("Subject: x\r\n\r\nFrom: a@example.com\r\n", SignError::NoFrom),
        ("From: a@example.com\r\nno field\r\n\r\nx", SignError::Malformed),
        (" From: a@example.com\r\n\r\nx: y", SignError::Malformed),
        (": x\r\n\r\n", SignError::Malformed),
        ("Fr\u{f6}m: x\r\n\r\n", SignError::Malformed),
        (many.as_str(), SignError::TooManyFields),
    ] {
        assert_eq!(signer(false, true).sign(&[message.as_bytes()], now()), Err(error), "{message:?}");
    }
}

#[tokio::test]
async fn foreign_signatures_get_a_verdict() {
    use AuthResult::{Neutral, PermError};
    let message = "From: a@example.com\r\n\r\nHello\r\n";
    assert_eq!(results(message).await, []);
    assert_eq!(results("").await, []);
    assert_eq!(results("DKIM-Signature: nonsense\r\n\r\n").await, [Neutral]);
    let good = String::from_utf8(signed(message.as_bytes())).unwrap();
    // A missing key, and far too many signatures.
    let unknown = good.replace("s=s1;", "s=other;");
    assert_eq!(results(unknown).await, [PermError, AuthResult::Pass]);
    let lines = good.strip_suffix(message).unwrap();
    assert_eq!(results(lines.repeat(500) + message).await.len(), dns::authentication::SIGNATURES_MAX);
    let limited = good.replace("t=1790000000", "t=1790000000; l=2");
    assert!(results(limited).await.iter().all(|result| *result == Neutral));
}

#[tokio::test]
async fn keys_are_read_from_dns() {
    let message = signed(b"From: a@example.com\r\n\r\nHello\r\n");
    let zone: String = published().iter().map(|(name, value)| format!("{name}. TXT \"{value}\"\n")).collect();
    let server = zone::NameServer::start(&zone).await;
    let resolver =
        Resolver::new(&ResolverSettings { servers: vec![server.address], ..ResolverSettings::default() }).unwrap();
    let verify = async || {
        let found = verify_dkim(Bytes::from(message.clone()), DkimKeySource::Dns(resolver.clone()));
        let found = tokio::spawn(found).await.unwrap();
        found.into_iter().map(|verdict| verdict.result).collect::<Vec<_>>()
    };
    assert_eq!(verify().await, [AuthResult::Pass; 2]);
    server.set(&(zone + "$SERVFAIL s1._domainkey.example.com\n"));
    resolver.clear_cache();
    assert_eq!(verify().await, [AuthResult::TempError, AuthResult::Pass]);
    server.set("");
    resolver.clear_cache();
    assert_eq!(verify().await, [AuthResult::PermError; 2]);
}

#[tokio::test]
async fn the_signing_pool_returns_the_same_signatures() {
    let pool = Arc::new(SigningPool::start(Some(2)).unwrap());
    let signer = Arc::new(signer(true, true));
    let prefix = Bytes::from_static(b"Received: by x\r\n");
    let tasks: Vec<_> = (0..600)
        .map(|n| {
            let (pool, signer, prefix) = (Arc::clone(&pool), Arc::clone(&signer), prefix.clone());
            let content = Bytes::from(format!("From: a@example.com\r\n\r\nNumber {n}\r\n"));
            tokio::spawn(async move {
                let signed = pool.sign(Arc::clone(&signer), vec![prefix, content.clone()], now()).await.unwrap();
                (n, signed, signer.sign(&[&content], now()).unwrap())
            })
        })
        .collect();
    for task in tasks {
        let (n, by_pool, alone) = task.await.unwrap();
        assert_eq!(by_pool, alone, "{n}");
    }
    let refused = pool.sign(signer, vec![Bytes::from_static(b"To: x\r\n\r\n")], now()).await;
    assert_eq!(refused, Err(SignError::NoFrom));
}

proptest! {
    #[test]
    fn any_bytes_are_signed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let (a, b) = bytes.split_at(cut.min(bytes.len()));
        let _ = signer(false, true).sign(&[b"From: a@example.com\r\n", a, b], now());
        let _ = signer(false, true).sign(&[a, b], now());
    }
}
