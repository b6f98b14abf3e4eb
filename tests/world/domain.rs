//! A sending domain and the DNS records that it must publish.

#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dns::resolver::{Resolver, ResolverSettings};
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordPurpose, RecordType};

/// Any time will do: no test of these records depends on it.
pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;
pub(crate) const DOMAIN: &str = "shop.example";

pub(crate) fn record(purpose: RecordPurpose, record_type: RecordType, name: &str, value: &str) -> DomainRecord {
    DomainRecord {
        purpose,
        record_type,
        name: name.to_owned(),
        value: value.to_owned(),
        ttl_s: 3_600,
        priority: (record_type == RecordType::Mx).then_some(10),
        required: true,
    }
}

/// The records that a domain must publish.
pub(crate) fn wanted_of(domain: &str) -> Vec<DomainRecord> {
    use RecordPurpose::{Dkim, Dmarc, Inbound, Ownership, ReturnPath, Spf};
    use RecordType::{Cname, Mx, Txt};
    // As long as an RSA key of 2,048 bits: two TXT strings.
    let key = format!("v=DKIM1; k=rsa; p={}", "MIIBIjANBgkqhkiG9w0B".repeat(20));
    vec![
        record(Ownership, Txt, &format!("_postrider.{domain}"), "postrider-verify=abc"),
        record(Dkim, Txt, &format!("pr1._domainkey.{domain}"), &key),
        record(ReturnPath, Cname, &format!("rp.{domain}"), "rp.post.example"),
        record(Spf, Txt, domain, "v=spf1 include:spf.post.example ~all"),
        record(Dmarc, Txt, &format!("_dmarc.{domain}"), "v=DMARC1; p=none"),
        record(Inbound, Mx, domain, "in.post.example"),
    ]
}

pub(crate) fn wanted() -> Vec<DomainRecord> {
    wanted_of(DOMAIN)
}

pub(crate) fn name(text: &str) -> DomainName {
    text.parse().unwrap()
}

/// A resolver that queries one server and caches nothing.
pub(crate) fn resolver(server: std::net::SocketAddr) -> Resolver {
    let settings = ResolverSettings {
        servers: vec![server],
        ttl_max: std::time::Duration::ZERO,
        negative_ttl_max: std::time::Duration::ZERO,
        ..ResolverSettings::default()
    };
    Resolver::new(&settings).unwrap()
}
