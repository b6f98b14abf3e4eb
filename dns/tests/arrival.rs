//! Sender authentication of received messages, against a name server on loopback.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../../tests/world/zone.rs"]
mod zone;

use std::time::Duration;

use bytes::Bytes;
use dns::authentication::blocklist::find_listing;
use dns::authentication::inbound::{AuthenticationVerdict, AuthorDomain, MessageSource, authenticate};
use dns::dkim_key::{DkimKey, KeyAlgorithm};
use dns::resolver::{Resolver, ResolverSettings};
use dns::sign::Signer;
use jiff::Timestamp;
use message::dmarc::DmarcPolicy;
use message::received::AuthResult::{self, Fail, None as NoResult, Pass, PermError, SoftFail, TempError};
use zone::NameServer;

const ZONE: &str = r#"
good.example          TXT "v=spf1 ip4:192.0.2.1 -all"
_dmarc.good.example   TXT "v=DMARC1; p=reject"
soft.example          TXT "v=spf1 ip4:192.0.2.9 ~all"
hard.example          TXT "v=spf1 -all"
_dmarc.strict.example TXT "v=DMARC1; p=reject; aspf=s"
_dmarc.mild.example   TXT "v=DMARC1; p=quarantine"
void.example          TXT "v=spf1 a:n1.void.example a:n2.void.example a:n3.void.example ip4:192.0.2.1 -all"
two.example           TXT "v=spf1 a:n1.void.example a:n2.void.example ip4:192.0.2.1 -all"
deep.example          TXT "v=spf1 include:deep.example -all"
double.example        TXT "v=spf1 ip4:192.0.2.1 -all"
double.example        TXT "v=spf1 -all"
_dmarc.double.example TXT "v=DMARC1; p=reject"
_dmarc.double.example TXT "v=DMARC1; p=none"
prefix.example        TXT "v=spf1 ip4:192.0.2.0/33 -all"
macro.example         TXT "v=spf1 exists:%{ir}.%{l}.list.example -all exp=why.macro.example"
why.macro.example     TXT "%{i} may not (%{h})"
1.2.0.192.ada.list.example A 127.0.0.2
$SERVFAIL broken.example
$SERVFAIL _dmarc.broken.example
1.2.0.192.in-addr.arpa PTR host.good.example.
host.good.example     A 192.0.2.1
2.2.0.192.in-addr.arpa PTR host.good.example.
1.2.0.192.list.example A 127.0.0.2
2.2.0.192.list.example A 127.255.255.254
"#;

fn resolver(server: &NameServer) -> Resolver {
    Resolver::new(&ResolverSettings {
        servers: vec![server.address],
        try_timeout: Duration::from_millis(200),
        retries: 1,
        ..ResolverSettings::default()
    })
    .unwrap()
}

fn message_source(sender: &str, peer: &str) -> MessageSource {
    MessageSource {
        peer: peer.parse().unwrap(),
        helo: "host.good.example".to_owned(),
        reverse_path: Some(sender).filter(|sender| !sender.is_empty()).map(|sender| sender.parse().unwrap()),
        hostname: "mx.example".parse().unwrap(),
        received_at: Timestamp::UNIX_EPOCH,
    }
}

async fn verdict(zone: &str, message: &str, message_source: MessageSource) -> AuthenticationVerdict {
    let server = NameServer::start(zone).await;
    authenticate(&resolver(&server), Bytes::from(message.to_owned()), message_source).await
}

fn from(author: &str) -> String {
    format!("From: {author}\r\nSubject: s\r\n\r\nHello\r\n")
}

#[tokio::test]
async fn spf_determines_permitted_senders() {
    let cases: &[(&str, &str, AuthResult)] = &[
        ("a@good.example", "192.0.2.1", Pass),
        ("a@good.example", "192.0.2.2", Fail),
        ("a@soft.example", "192.0.2.1", SoftFail),
        ("a@nothing.example", "192.0.2.1", NoResult),
        ("a@broken.example", "192.0.2.1", TempError),
        ("a@void.example", "192.0.2.1", PermError),
        ("a@two.example", "192.0.2.1", Pass),
        ("a@deep.example", "192.0.2.1", PermError),
        ("a@double.example", "192.0.2.1", PermError),
        ("a@prefix.example", "192.0.2.1", PermError),
        ("ada@macro.example", "192.0.2.1", Pass),
    ];
    for (sender, peer, wanted) in cases {
        let found = verdict(ZONE, &from("a@nothing.example"), message_source(sender, peer)).await;
        assert_eq!(found.auth.spf, *wanted, "{sender} {peer}");
    }
}

#[tokio::test]
async fn the_explanation_of_an_spf_failure_is_returned() {
    let found = verdict(ZONE, &from("a@nothing.example"), message_source("eve@macro.example", "192.0.2.1")).await;
    assert_eq!(found.spf_explanation.as_deref(), Some("192.0.2.1 may not (host.good.example)"));
    let field = found.header_field();
    assert!(field.contains("spf=fail (192.0.2.1 may not  host.good.example ) smtp.mailfrom"), "{field}");
}

#[tokio::test]
async fn dmarc_applies_to_the_authors_domain() {
    let cases: &[(&str, &str, AuthResult, DmarcPolicy)] = &[
        ("a@good.example", "Ada <ada@good.example>", Pass, DmarcPolicy::Reject),
        ("a@hard.example", "ada@good.example", Fail, DmarcPolicy::Reject),
        ("a@nothing.example", "ada@mild.example", Fail, DmarcPolicy::Quarantine),
        ("a@good.example", "ada@sub.strict.example", Fail, DmarcPolicy::Reject),
        ("a@good.example", "ada@nothing.example", NoResult, DmarcPolicy::None),
        ("a@good.example", "ada@double.example", NoResult, DmarcPolicy::None),
        ("a@good.example", "ada@broken.example", TempError, DmarcPolicy::None),
    ];
    for (sender, author, wanted, policy) in cases {
        let found = verdict(ZONE, &from(author), message_source(sender, "192.0.2.1")).await;
        assert_eq!((found.auth.dmarc, found.policy), (*wanted, *policy), "{sender} {author}");
        assert_eq!(found.is_dmarc_reject(), (*wanted, *policy) == (Fail, DmarcPolicy::Reject));
    }
}

#[tokio::test]
async fn several_authors_or_none_are_not_authenticated() {
    for message in [
        "From: a@good.example\r\nFrom: b@evil.example\r\n\r\nx".to_owned(),
        "From: a@good.example, b@evil.example\r\n\r\nx".to_owned(),
        "From: a@good.example\r\nfrom : a@good.example\r\n\r\nx".to_owned(),
        "Subject: x\r\n\r\nx".to_owned(),
        "From: \r\n\r\nx".to_owned(),
        "From: undisclosed:;\r\n\r\nx".to_owned(),
        String::new(),
    ] {
        let found = verdict(ZONE, &message, message_source("a@good.example", "192.0.2.1")).await;
        assert_eq!((&found.author, found.auth.dmarc), (&AuthorDomain::Invalid, PermError), "{message:?}");
        assert!(found.header_field().contains("dmarc=permerror (no single author)\r\n"), "{}", found.header_field());
    }
}

#[tokio::test]
async fn valid_signatures_authenticate_their_domain() {
    let key = DkimKey::generate(KeyAlgorithm::Ed25519).unwrap();
    let signer = Signer::new(&"mild.example".parse().unwrap(), None, Some(("s", &key))).unwrap();
    let message = from("ada@mild.example");
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let signature = signer.sign(&[message.as_bytes()], now).unwrap();
    let signed = String::from_utf8(signature).unwrap() + &message;
    let zone = format!("{ZONE}\ns._domainkey.mild.example TXT \"{}\"\n", key.txt_record());
    let found = verdict(&zone, &signed, message_source("a@soft.example", "192.0.2.1")).await;
    assert_eq!((found.auth.dkim, found.auth.dmarc, found.iprev), (Pass, Pass, Pass), "{found:?}");
    let names: Vec<&str> = found.authenticated.iter().map(message::address::DomainName::as_str).collect();
    assert_eq!(names, ["mild.example"]);
    assert_eq!(
        found.header_field(),
        "Authentication-Results: mx.example;\r\n\tiprev=pass policy.iprev=192.0.2.1;\r\n\t\
         spf=softfail smtp.mailfrom=a@soft.example;\r\n\t\
         dkim=pass header.d=mild.example header.s=s header.a=ed25519-sha256;\r\n\t\
         dmarc=pass (p=quarantine) header.from=mild.example\r\n"
    );
    let changed = signed.replace("Hello", "Hullo");
    let found = verdict(&zone, &changed, message_source("a@soft.example", "192.0.2.2")).await;
    assert_eq!((found.auth.dkim, found.auth.dmarc, found.iprev), (Fail, Fail, Fail));
    // Large messages are verified on a blocking thread, with the same result.
    let large = format!("{message}{}", "A line of text.\r\n".repeat(50_000));
    let signed = String::from_utf8(signer.sign(&[large.as_bytes()], now).unwrap()).unwrap() + &large;
    assert_eq!(verdict(&zone, &signed, message_source("a@soft.example", "192.0.2.1")).await.auth.dkim, Pass);
}

/// RFC 8460 3: reports are signed with a key whose record has `s=tlsrpt`.
#[tokio::test]
async fn a_key_for_tls_reports_authenticates_only_them() {
    let key = DkimKey::generate(KeyAlgorithm::Ed25519).unwrap();
    let signer = Signer::new(&"mild.example".parse().unwrap(), None, Some(("s", &key))).unwrap();
    let message = from("tls@mild.example");
    let signature = signer.sign(&[message.as_bytes()], Timestamp::from_second(1_700_000_000).unwrap()).unwrap();
    let signed = String::from_utf8(signature).unwrap() + &message;
    let record = key.txt_record();
    let for_reports = async |tag: &str, signed: &str| {
        let zone = format!("{ZONE}\ns._domainkey.mild.example TXT \"{record}; {tag}\"\n");
        let found = verdict(&zone, signed, message_source("a@soft.example", "192.0.2.1")).await;
        assert_eq!((found.auth.dkim == Pass, found.authenticated_domains().len()), (false, 0), "{tag}");
        let names = found.authenticated_for_tls_report();
        names.iter().map(message::address::DomainName::to_string).collect::<Vec<_>>()
    };
    assert_eq!(for_reports("s=tlsrpt", &signed).await, ["mild.example"]);
    assert!(for_reports("s=other", &signed).await.is_empty());
    assert!(for_reports("s=tlsrpt", &signed.replace("Hello", "Hullo")).await.is_empty());
    let two_authors = format!("From: eve@evil.example\r\n{signed}");
    assert!(for_reports("s=tlsrpt", &two_authors).await.is_empty());
}

#[tokio::test]
async fn spf_uses_the_helo_name_without_a_reverse_path() {
    let zone = format!("{ZONE}\nhost.good.example TXT \"v=spf1 a -all\"\n");
    let found = verdict(&zone, &from("ada@good.example"), message_source("", "192.0.2.1")).await;
    assert_eq!((found.auth.spf, found.auth.dmarc), (Pass, Pass));
    assert!(found.header_field().contains("spf=pass smtp.helo=host.good.example"), "{}", found.header_field());
}

#[tokio::test]
async fn remote_text_cannot_forge_the_results_field() {
    let odd = MessageSource { helo: "x;\r\n dkim=pass (y".to_owned(), ..message_source("", "192.0.2.1") };
    let found = verdict(ZONE, "DKIM-Signature: v=1; d=x y; s=\"; b\r\n\r\nx", odd).await;
    assert!(!found.header_field().contains("dkim=pass"), "{}", found.header_field());
}

#[tokio::test]
async fn blocklists_are_queried() {
    let server = NameServer::start(ZONE).await;
    let (resolver, lists) = (resolver(&server), ["none.example", "list.example"].map(|list| list.parse().unwrap()));
    let found = find_listing(&resolver, "192.0.2.1".parse().unwrap(), &lists).await;
    assert_eq!(found.map(|list| list.to_string()).as_deref(), Some("list.example"));
    for free in ["192.0.2.2", "192.0.2.3", "2001:db8::1"] {
        assert_eq!(find_listing(&resolver, free.parse().unwrap(), &lists).await, None, "{free}");
    }
}
