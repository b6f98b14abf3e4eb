//! A domain with its wanted records, and checks against the text of a zone.

use dns::domain_check::{DomainCheckSettings, DomainChecker};
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus, RecordType};

use crate::zone::NameServer;

pub(crate) const DOMAIN: &str = "example.com";
pub(crate) const TOKEN: &str = "service-verification=Abc123";
/// The delegation to the domain's own server.
pub(crate) const DELEGATION: &str = "
    example.com NS ns1.provider.example.
    ns1.provider.example A 127.0.0.1
";
/// Records at the service's and other hosts.
pub(crate) const OWN_RECORDS: &str = r#"
    rp.service.example     A 192.0.2.1
    spf.service.example    TXT "v=spf1 ip4:192.0.2.0/24 -all"
    other.example          TXT "v=spf1 ip4:198.51.100.0/24 -all"
"#;
/// A key of the service, of 2,048 bits.
pub(crate) const KEY: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArY0z2ZTJgbjbIi9gRpXu0pWtERgQEcruNJZixwaxMGyg4rAp/CaRiVQoH8YPTMrBjMNZMMPq2Q1hgCBKdOfhpOU26YKZxkDf7mQJlWmptOc89JAGjEFdaVG34KrL0r4/JRO2BINybgl7suapNeed/v/F4K3GuNG/uuOaME0yVc+i3R1kNlt5WqHW71XcyyZ/6w/gFECg5R/qJGQPec3zTisjEIQThYRs6fAb484tRV9ySGGko+iCaBpJDQo7tawbzEew9ausY0pTWtJPYFcsMjAExuyZcwIscxd7SjvOqpIzdr8lscJ1yoO9cjG2/hf91RM6Zj6rAjDQ7VL9JSNRXwIDAQAB";

pub(crate) fn record(purpose: RecordPurpose) -> DomainRecord {
    let (record_type, name, value) = match purpose {
        RecordPurpose::Ownership => (RecordType::Txt, "_service.example.com", TOKEN.to_owned()),
        RecordPurpose::Dkim => (RecordType::Txt, "s1._domainkey.example.com", format!("v=DKIM1; k=rsa; p={KEY}")),
        RecordPurpose::ReturnPath => (RecordType::Cname, "rp.example.com", "rp.service.example".to_owned()),
        RecordPurpose::Spf => (RecordType::Txt, DOMAIN, "v=spf1 include:spf.service.example ~all".to_owned()),
        RecordPurpose::Dmarc => {
            (RecordType::Txt, "_dmarc.example.com", "v=DMARC1; p=none; rua=mailto:d@service.example".to_owned())
        }
        RecordPurpose::Inbound => (RecordType::Mx, DOMAIN, "mx.service.example".to_owned()),
        RecordPurpose::Tracking => (RecordType::Cname, "track.example.com", "track.service.example".to_owned()),
    };
    DomainRecord {
        purpose,
        record_type,
        name: name.to_owned(),
        value,
        ttl_s: 3_600,
        priority: (purpose == RecordPurpose::Inbound).then_some(10),
        required: true,
    }
}

pub(crate) fn settings(resolver: &NameServer, authority: &NameServer) -> DomainCheckSettings {
    DomainCheckSettings {
        servers: vec![resolver.address],
        authority_port: authority.address.port(),
        allow_private: true,
        ..DomainCheckSettings::default()
    }
}

pub(crate) async fn check_all(checker: &DomainChecker, records: &[DomainRecord]) -> Vec<RecordFinding> {
    let domain: DomainName = DOMAIN.parse().unwrap();
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let findings = checker.check(&domain, records, now).await;
    assert_eq!(findings.len(), records.len());
    findings
}

pub(crate) async fn check_one(checker: &DomainChecker, record: DomainRecord) -> RecordFinding {
    check_all(checker, &[record]).await.remove(0)
}

/// Checks one record against a zone. One server acts as the resolver and as the domain's authoritative server.
pub(crate) async fn check(purpose: RecordPurpose, zone: &str) -> RecordFinding {
    check_without_own_records(purpose, &format!("{OWN_RECORDS}{zone}")).await
}

/// Like [`check`], without records at the service's hosts.
pub(crate) async fn check_without_own_records(purpose: RecordPurpose, zone: &str) -> RecordFinding {
    let server = NameServer::start(&format!("{DELEGATION}{zone}")).await;
    let checker = DomainChecker::new(settings(&server, &server)).unwrap();
    check_one(&checker, record(purpose)).await
}

/// Checks each zone text for its status and for words of its sentence; without words there must be no sentence.
pub(crate) async fn table(purpose: RecordPurpose, cases: &[(&str, RecordStatus, &str)]) {
    for (zone, status, words) in cases {
        let finding = check(purpose, zone).await;
        assert_eq!(finding.status, *status, "{zone}\n{finding:#?}");
        assert_eq!(finding.error.is_none(), words.is_empty(), "{zone}\n{finding:#?}");
        let error = finding.error.unwrap_or_default();
        assert!(error.contains(words), "{zone}\n{error}");
        assert!(words.is_empty() || error.ends_with('.'), "{error}");
    }
}
