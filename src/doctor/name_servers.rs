//! `dns` and `dnssec`: checks that the name server responds, quickly, and validates DNSSEC.
//!
//! A name with signatures that are broken on purpose must not resolve; a name with valid signatures must. DNS
//! blocklists refuse queries from public resolvers (by their terms; RFC 5782 does not mention it), so a mail server
//! needs its own resolver.

use std::net::IpAddr;
use std::time::Duration;

use message::address::DomainName;
use tokio::time::Instant;

use super::context::{CheckContext, join_words};
use super::finding::{DoctorFinding, Observations};

/// Names that always exist.
const WELL_KNOWN: [&str; 3] = ["gmail.com", "outlook.com", "iana.org"];
/// A name with valid signatures, and one with signatures that are broken on purpose.
const SIGNED_NAME: &str = "isc.org";
const BOGUS_NAME: &str = "dnssec-failed.org";
/// Maximum acceptable time of a lookup that is not cached, which needs several queries.
const SLOW: Duration = Duration::from_millis(1_000);

const PUBLIC_RESOLVERS: [(&str, &str); 18] = [
    ("8.8.8.8", "Google"),
    ("8.8.4.4", "Google"),
    ("2001:4860:4860::8888", "Google"),
    ("2001:4860:4860::8844", "Google"),
    ("1.1.1.1", "Cloudflare"),
    ("1.0.0.1", "Cloudflare"),
    ("2606:4700:4700::1111", "Cloudflare"),
    ("2606:4700:4700::1001", "Cloudflare"),
    ("9.9.9.9", "Quad9"),
    ("149.112.112.112", "Quad9"),
    ("2620:fe::fe", "Quad9"),
    ("2620:fe::9", "Quad9"),
    ("208.67.222.222", "OpenDNS"),
    ("208.67.220.220", "OpenDNS"),
    ("4.2.2.1", "Level 3"),
    ("4.2.2.2", "Level 3"),
    ("185.12.64.1", "Hetzner"),
    ("185.12.64.2", "Hetzner"),
];

/// Instructions for a local resolver; unbound validates by default.
pub(super) const OWN_RESOLVER_ADVICE: &str = "Run your own validating resolver:\n\
apt install unbound\n[dns]\nservers = [\"127.0.0.1:53\"]";

/// Name servers in use: the configured ones, or those of the system.
fn name_servers(context: &CheckContext) -> Vec<IpAddr> {
    let configured = &context.config.dns.servers;
    if !configured.is_empty() {
        return configured.iter().map(std::net::SocketAddr::ip).collect();
    }
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    parse_resolv_conf(&text)
}

fn parse_resolv_conf(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.parse().ok()).flatten()
    };
    text.lines().filter_map(address).collect()
}

/// Result of a lookup with its duration.
enum TimedLookup {
    /// Records exist.
    Found(Duration),
    /// No records exist.
    NotFound(Duration),
    /// The lookup failed, with the reason.
    NoAnswer(String),
}

/// Checks whether the name server responds, and how quickly.
pub(super) async fn check_dns(context: &CheckContext) -> DoctorFinding {
    let [first, second, third] = WELL_KNOWN;
    let (first, second, third) =
        tokio::join!(time_lookup(context, first), time_lookup(context, second), time_lookup(context, third));
    evaluate(&name_servers(context), &[first, second, third])
}

async fn time_lookup(context: &CheckContext, name: &str) -> TimedLookup {
    let Ok(name) = name.parse::<DomainName>() else {
        return TimedLookup::NoAnswer(format!("{name} is not a DNS name"));
    };
    let started_at = Instant::now();
    // A type that other checks do not query, so that it is not cached.
    match context.resolver.txt(&name).await {
        Err(error) => TimedLookup::NoAnswer(error.to_string()),
        Ok(found) if found.data.is_empty() => TimedLookup::NotFound(started_at.elapsed()),
        Ok(_) => TimedLookup::Found(started_at.elapsed()),
    }
}

fn evaluate(servers: &[IpAddr], lookups: &[TimedLookup]) -> DoctorFinding {
    let mut notes = Observations::default();
    let server_names = join_words(servers);
    let time = |lookup: &TimedLookup| match lookup {
        TimedLookup::Found(time) | TimedLookup::NotFound(time) => Some(*time),
        TimedLookup::NoAnswer(_) => None,
    };
    let reason =
        lookups.iter().find_map(|lookup| if let TimedLookup::NoAnswer(reason) = lookup { Some(reason) } else { None });
    match (lookups.iter().filter_map(time).max(), reason) {
        (None, reason) => notes.fail(
            format!(
                "{server_names} is not responding, so no mail can be delivered: \
                {}",
                reason.map_or("", |reason| reason)
            ),
            format!(
                "Check that it runs and that the firewall permits DNS (port 53, UDP and TCP): dig @{server_names} \
                 gmail.com MX\n\
                 {OWN_RESOLVER_ADVICE}"
            ),
        ),
        (Some(_), Some(reason)) => notes.warn(
            format!(
                "{server_names} does not answer every query: \
            {reason}"
            ),
            OWN_RESOLVER_ADVICE,
        ),
        (Some(time), None) if time > SLOW => {
            let found = format!("{server_names} took {} ms to answer, which delays mail", time.as_millis());
            notes.warn(found, OWN_RESOLVER_ADVICE);
        }
        (Some(time), None) => notes.good(format!("{server_names} answers, within {} ms", time.as_millis().max(1))),
    }
    if lookups.iter().all(|lookup| matches!(lookup, TimedLookup::NotFound(_))) {
        notes.warn(
            format!("{server_names} cannot resolve {}: it does not serve the public DNS", join_words(&WELL_KNOWN)),
            OWN_RESOLVER_ADVICE,
        );
    }
    for server in servers {
        let public = PUBLIC_RESOLVERS.iter().find(|(address, _)| address.parse() == Ok(*server));
        if let Some((_, owner)) = public {
            notes.warn(
                format!(
                    "{server} is {owner}'s public resolver: blocklists refuse its queries, and it may throttle servers"
                ),
                OWN_RESOLVER_ADVICE,
            );
        }
    }
    notes.into_finding("dns")
}

/// Result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LookupOutcome {
    Addresses,
    NoRecords,
    NoAnswer(String),
}

async fn lookup(context: &CheckContext, name: &str) -> LookupOutcome {
    let Ok(name) = name.parse::<DomainName>() else { return LookupOutcome::NoRecords };
    match context.resolver.addresses(&name).await {
        Err(error) => LookupOutcome::NoAnswer(error.to_string()),
        Ok(found) if found.data.is_empty() => LookupOutcome::NoRecords,
        Ok(_) => LookupOutcome::Addresses,
    }
}

/// Checks whether the name server validates DNSSEC.
pub(super) async fn check_dnssec(context: &CheckContext) -> DoctorFinding {
    let (signed, bogus) = tokio::join!(lookup(context, SIGNED_NAME), lookup(context, BOGUS_NAME));
    evaluate_dnssec(&signed, &bogus)
}

fn evaluate_dnssec(signed: &LookupOutcome, bogus: &LookupOutcome) -> DoctorFinding {
    let mut notes = Observations::default();
    match (signed, bogus) {
        (LookupOutcome::Addresses, LookupOutcome::NoAnswer(_)) => {
            notes.good(format!("DNSSEC is validated ({BOGUS_NAME} does not resolve, {SIGNED_NAME} does)"));
        }
        (LookupOutcome::Addresses, LookupOutcome::Addresses) => notes.warn(
            format!(
                "the name server does not validate DNSSEC: it resolves {BOGUS_NAME}, whose signatures are broken on \
                 purpose. An attacker who forges responses can redirect outgoing mail"
            ),
            OWN_RESOLVER_ADVICE,
        ),
        (LookupOutcome::Addresses, LookupOutcome::NoRecords) => {
            let reason = format!("{BOGUS_NAME} has no address, so validation cannot be tested");
            return DoctorFinding::skipped("dnssec", reason);
        }
        (LookupOutcome::NoAnswer(reason), _) => {
            let reason = format!("cannot resolve {SIGNED_NAME}, which has valid signatures: {reason}");
            return DoctorFinding::skipped("dnssec", reason);
        }
        (LookupOutcome::NoRecords, _) => {
            let reason = format!("{SIGNED_NAME} has no address, so validation cannot be tested");
            return DoctorFinding::skipped("dnssec", reason);
        }
    }
    notes.into_finding("dnssec")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    #[tokio::test]
    async fn a_validating_resolver_refuses_the_bogus_name() {
        for (zone, status) in [
            ("isc.org. A 203.0.113.1\n$SERVFAIL dnssec-failed.org", CheckStatus::Ok),
            ("isc.org. A 203.0.113.1\ndnssec-failed.org. A 203.0.113.2", CheckStatus::Warning),
            ("isc.org. A 203.0.113.1", CheckStatus::Skipped),
            ("$SERVFAIL isc.org\n$SERVFAIL dnssec-failed.org", CheckStatus::Skipped),
        ] {
            let dns = TestDns::new(zone).await;
            assert_eq!(check_dnssec(&test_context(&dns, "").await).await.status, status, "{zone}");
        }
    }

    #[tokio::test]
    async fn a_resolver_answers_or_not() {
        for (zone, status) in [
            ("gmail.com. TXT x", CheckStatus::Ok),
            ("", CheckStatus::Warning),
            ("gmail.com. TXT x\n$REFUSED iana.org", CheckStatus::Warning),
            ("$REFUSED gmail.com\n$REFUSED outlook.com\n$REFUSED iana.org", CheckStatus::Failed),
        ] {
            let dns = TestDns::new(zone).await;
            let found = check_dns(&test_context(&dns, "").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
        }
    }

    #[test]
    fn resolvers_of_the_public_are_known() {
        let servers = parse_resolv_conf(
            "# x\nsearch example.net\nnameserver 8.8.8.8\nnameserver fe80::1%eth0\nnameserver 127.0.0.53\n",
        );
        assert_eq!(servers.len(), 2);
        let found = evaluate(&servers, &[TimedLookup::Found(Duration::from_millis(20))]);
        assert!(found.status == CheckStatus::Warning && found.found.starts_with("8.8.8.8 is Google's"), "{found:#?}");
        let slow = evaluate(&[], &[TimedLookup::Found(Duration::from_secs(3))]);
        assert_eq!(slow.status, CheckStatus::Warning);
        assert!(PUBLIC_RESOLVERS.iter().all(|(address, _)| address.parse::<IpAddr>().is_ok()));
    }
}
