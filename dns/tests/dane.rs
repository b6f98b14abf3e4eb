//! DNSSEC and DANE of mail hosts: signed, unsigned and forged answers (RFC 7672 2).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/world/signed.rs"]
mod signed;

use std::time::Duration;

use dns::resolver::{DaneRecords, DnssecMode, LookupError, Resolver, ResolverSettings};
use message::address::DomainName;
use message::dane::TlsaUsage;
use signed::SignedNameServer;

const ROOT: &str = "
good.test.            MX 10 mx.good.test.
mx.good.test.         A 127.0.0.1
_25._tcp.mx.good.test. TLSA 3 1 1 0000000000000000000000000000000000000000000000000000000000000000
_25._tcp.mx.good.test. TLSA 1 1 1 0000000000000000000000000000000000000000000000000000000000000000
odd.test.             MX 10 mx.odd.test.
mx.odd.test.          A 127.0.0.1
_25._tcp.mx.odd.test. TLSA 0 0 1 0000000000000000000000000000000000000000000000000000000000000000
bare.test.            MX 10 mx.bare.test.
mx.bare.test.         A 127.0.0.1
mixed.test.           MX 10 mx.open.test.
open.test.            NS ns.test.
forged.test.          NS ns.test.
forged.test.          DS 12345 15 2 0000000000000000000000000000000000000000000000000000000000000000
ns.test.              A 127.0.0.1
";

const OPEN: &str = "
open.test.             MX 10 mx.open.test.
mx.open.test.          A 127.0.0.1
_25._tcp.mx.open.test. TLSA 3 1 1 0000000000000000000000000000000000000000000000000000000000000000
";

const FORGED: &str = "
forged.test.             MX 10 mx.forged.test.
mx.forged.test.          A 127.0.0.1
";

async fn resolver() -> (SignedNameServer, Resolver) {
    let server = SignedNameServer::start(ROOT, &[("open.test", OPEN), ("forged.test", FORGED)]).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = ResolverSettings {
        servers: vec![server.address],
        try_timeout: Duration::from_millis(500),
        retries: 1,
        deadline: Duration::from_secs(5),
        validation: DnssecMode::Anchors(server.anchor_in(directory.path())),
        ..ResolverSettings::default()
    };
    let resolver = Resolver::new(&settings).unwrap();
    (server, resolver)
}

fn name(text: &str) -> DomainName {
    text.parse().unwrap()
}

#[tokio::test]
async fn answers_report_dnssec_validation() {
    let (_server, resolver) = resolver().await;
    for (domain, secure) in [("good.test", true), ("mixed.test", true), ("open.test", false)] {
        let found = resolver.mx(&name(domain)).await.unwrap();
        assert_eq!(found.is_secure, secure, "{domain}");
    }
    let forged = resolver.mx(&name("forged.test")).await;
    assert!(matches!(forged, Err(LookupError::Bogus { .. })), "{forged:?}");
    // Absence is not an error.
    assert!(resolver.txt(&name("nothing.test")).await.unwrap().data.is_empty());
    assert!(resolver.txt(&name("good.test")).await.unwrap().data.is_empty());
}

#[tokio::test]
async fn tlsa_records_are_looked_up() {
    let (_server, resolver) = resolver().await;
    let found = resolver.dane(&name("mx.good.test"), 25).await.unwrap();
    let DaneRecords::Records { records, .. } = found.data else { panic!("{found:?}") };
    assert_eq!(records.iter().map(|record| record.usage).collect::<Vec<_>>(), [TlsaUsage::EndEntity]);
    for (host, wanted) in [
        ("mx.odd.test", DaneRecords::Unusable),
        ("mx.bare.test", DaneRecords::None),
        // Unsigned records are ignored.
        ("mx.open.test", DaneRecords::None),
    ] {
        assert_eq!(resolver.dane(&name(host), 25).await.unwrap().data, wanted, "{host}");
    }
    assert!(matches!(resolver.dane(&name("mx.forged.test"), 25).await, Err(LookupError::Bogus { .. })));
}

#[tokio::test]
async fn answers_are_insecure_without_validation() {
    let server = SignedNameServer::start(ROOT, &[]).await;
    let settings = ResolverSettings { servers: vec![server.address], ..ResolverSettings::default() };
    let resolver = Resolver::new(&settings).unwrap();
    assert!(!resolver.mx(&name("good.test")).await.unwrap().is_secure);
    assert_eq!(resolver.dane(&name("mx.good.test"), 25).await.unwrap().data, DaneRecords::None);
}
