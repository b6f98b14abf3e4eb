//! `spf` and `return_path`: checks the two names below `hostname` to which customers' records point.
//!
//! ```text
//! customer.example     TXT   "v=spf1 include:{spf_include_host} …"     its record must permit the source addresses
//! rp.customer.example  CNAME {return_path_host}                        MX to this server, and an SPF record, because
//!                                                                      SPF checks the envelope's domain
//! ```

use std::net::IpAddr;

use dns::mx::MailHosts;
use dns::spf;
use message::address::DomainName;
use message::received::AuthResult;

use super::context::{CheckContext, ProbeHost, join_words};
use super::finding::{DoctorFinding, Observations};
use super::hostname::unknown_address_finding;
use super::zone_lines;

/// SPF records at a name, and their results for the source addresses.
struct SpfLookup {
    records: Result<Vec<String>, String>,
    verdicts: Vec<(IpAddr, AuthResult)>,
}

async fn lookup_spf(context: &CheckContext, name: &DomainName) -> SpfLookup {
    let records = context.resolver.txt(name).await.map_err(|error| error.to_string()).map(|found| {
        let is_policy = |text: &String| {
            let text = text.to_ascii_lowercase();
            text == "v=spf1" || text.starts_with("v=spf1 ")
        };
        found.data.into_iter().filter(is_policy).collect()
    });
    let mut verdicts = Vec::new();
    // Evaluates a single record only: none, several, or a failed lookup are reported as such.
    let is_single = records.as_ref().is_ok_and(|records: &Vec<String>| records.len() == 1);
    for address in if is_single { context.sources.public() } else { Vec::new() } {
        let verdict = spf::check_domain(&context.resolver, name, address, &context.config.hostname).await;
        verdicts.push((address, verdict));
    }
    SpfLookup { records, verdicts }
}

/// Checks the record that customers include, and that it permits the source addresses.
pub(super) async fn check_spf(context: &CheckContext) -> DoctorFinding {
    let name = context.config.spf_include_host();
    let mut notes = Observations::default();
    let sources = context.sources.public();
    if context.uses_smarthost() {
        match lookup_spf(context, &name).await.records {
            Ok(records) if !records.is_empty() => {
                notes.good(format!("{name} has the SPF record {}", join_words(&records)));
                notes.skip(
                    "mail is sent through the smarthost: its addresses are unknown, so the record was not verified",
                );
            }
            Ok(_) => notes.fail(
                format!("{name} has no SPF record, but customers' records include it"),
                format!(
                    "{} (use the name that the smarthost's provider documents)",
                    zone_lines::txt_record(&name, "v=spf1 include:spf.relay.example -all")
                ),
            ),
            Err(reason) => notes.fail(reason, DNS_ADVICE),
        }
        return notes.into_finding("spf");
    }
    if sources.is_empty() {
        return unknown_address_finding("spf");
    }
    let expected_record = zone_lines::txt_record(&name, &zone_lines::spf_value(&sources));
    evaluate(&mut notes, &name, lookup_spf(context, &name).await, &expected_record);
    notes.into_finding("spf")
}

const DNS_ADVICE: &str = "See the finding `dns`; retry when the name server responds.";

fn evaluate(notes: &mut Observations, name: &DomainName, policy: SpfLookup, expected_record: &str) {
    let records = match policy.records {
        Err(reason) => return notes.fail(reason, DNS_ADVICE),
        Ok(records) => records,
    };
    match &records[..] {
        [] => {
            return notes.fail(
                format!("{name} has no SPF record, so SPF fails for every domain that includes it"),
                expected_record,
            );
        }
        [record] => {
            if let Some(term) = record.split_whitespace().skip(1).find(|term| !is_spf_term(term)) {
                return notes.fail(
                    format!("the SPF record of {name} has the invalid term `{term}` (RFC 7208 4.6): {record}"),
                    format!("Replace it: {expected_record}"),
                );
            }
        }
        several => {
            return notes.fail(
                format!("{name} has {} SPF records, but only one is valid (RFC 7208 4.5)", several.len()),
                format!("Keep one: {expected_record}"),
            );
        }
    }
    for (address, verdict) in policy.verdicts {
        match verdict {
            AuthResult::Pass => notes.good(format!("the SPF record of {name} permits {address}")),
            AuthResult::TempError => {
                notes.fail(format!("the SPF record of {name} includes a name whose lookup fails"), DNS_ADVICE);
            }
            AuthResult::PermError => notes.fail(
                format!(
                    "the SPF record of {name} cannot be evaluated (syntax error, or more than 10 lookups): {}",
                    join_words(&records)
                ),
                format!("Replace it: {expected_record}"),
            ),
            other => notes.fail(
                format!(
                    "the SPF record of {name} does not permit {address} ({}): {}",
                    other.word(),
                    join_words(&records)
                ),
                format!("Add the address, for example: {expected_record}"),
            ),
        }
    }
    if records.iter().any(|text| text.to_ascii_lowercase().contains("+all") || text.ends_with(" all")) {
        notes.fail(
            format!("the SPF record of {name} permits every sender (+all) and protects no domain"),
            format!("Replace it: {expected_record}"),
        );
    }
}

/// Returns whether a term is a mechanism or a modifier (RFC 7208 4.6.1). mail-auth ignores unknown mechanisms; other
/// implementations treat them as errors.
fn is_spf_term(term: &str) -> bool {
    let term = term.to_ascii_lowercase();
    let mechanism = term.strip_prefix(['+', '-', '~', '?']).unwrap_or(&term);
    let (kind, value) = match mechanism.split_once([':', '/']) {
        Some((kind, value)) => (kind, Some(value)),
        None => (mechanism, None),
    };
    let is_address = |is_v4: bool| {
        let ip = value.and_then(|value| value.split('/').next()?.parse::<IpAddr>().ok());
        ip.is_some_and(|ip| ip.is_ipv4() == is_v4)
    };
    match kind {
        "all" => value.is_none(),
        "a" | "mx" | "ptr" => true,
        "include" | "exists" => value.is_some_and(|value| !value.is_empty()),
        "ip4" => is_address(true),
        "ip6" => is_address(false),
        _ => mechanism
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))),
    }
}

/// Result of resolving the mail hosts of the return path.
enum ReturnPathRoute {
    Hosts { hosts: Vec<(DomainName, Vec<IpAddr>)>, by_mx: bool },
    NoRoute(&'static str),
    Unknown(String),
}

async fn return_path_route(context: &CheckContext, name: &DomainName) -> ReturnPathRoute {
    let (hosts, by_mx) = match context.resolver.mx(name).await {
        Err(error) => return ReturnPathRoute::Unknown(error.to_string()),
        Ok(found) => match found.data {
            MailHosts::Mx(hosts) => (hosts.into_iter().map(|mx| mx.host).collect(), true),
            MailHosts::ImplicitMx(host) => (vec![host], false),
            MailHosts::NullMx => return ReturnPathRoute::NoRoute("has a null MX and accepts no mail"),
            MailHosts::NoMail => return ReturnPathRoute::NoRoute("has neither MX records nor an address"),
            MailHosts::NoSuchDomain => return ReturnPathRoute::NoRoute("does not exist"),
        },
    };
    let mut with_addresses = Vec::new();
    for host in hosts.into_iter().take(8) {
        let found = context.addresses(&ProbeHost::Name(host.clone())).await;
        with_addresses.push((host, found.unwrap_or_default()));
    }
    ReturnPathRoute::Hosts { hosts: with_addresses, by_mx }
}

/// Checks that bounces reach this server, and that the return path's domain passes SPF.
pub(super) async fn check_return_path(context: &CheckContext) -> DoctorFinding {
    let name = context.config.return_path_host();
    let hostname = &context.config.hostname;
    let mut notes = Observations::default();
    let expected_record = zone_lines::mx_record(&name, hostname);
    match return_path_route(context, &name).await {
        ReturnPathRoute::Unknown(reason) => notes.fail(reason, DNS_ADVICE),
        ReturnPathRoute::NoRoute(reason) => {
            notes.fail(
                format!(
                    "{name} {reason}: bounces cannot be received, and some hosts refuse mail with such a return path"
                ),
                expected_record,
            );
        }
        ReturnPathRoute::Hosts { hosts, by_mx } => {
            for (host, addresses) in hosts {
                let is_own = addresses.iter().any(|address| context.is_own_address(*address)) || host == *hostname;
                if addresses.is_empty() {
                    notes.fail(
                        format!("mail to {name} is sent to {host}, which has no address"),
                        expected_record.clone(),
                    );
                } else if is_own {
                    notes.good(format!("mail to {name} is sent to this machine ({host})"));
                } else {
                    notes.warn(
                        format!(
                            "mail to {name} is sent to {host} ({}), which is not this machine",
                            join_words(&addresses)
                        ),
                        format!("This is correct if that is another of your nodes; otherwise: {expected_record}"),
                    );
                }
            }
            if !by_mx {
                notes.warn(
                    format!("{name} has an address but no MX record, which spam filters penalise"),
                    expected_record,
                );
            }
        }
    }
    let include = context.config.spf_include_host();
    let expected_record = zone_lines::txt_record(&name, &format!("v=spf1 include:{include} -all"));
    if context.uses_smarthost() || context.sources.public().is_empty() {
        notes.skip("its SPF record was not verified: the source addresses are unknown");
    } else {
        evaluate(&mut notes, &name, lookup_spf(context, &name).await, &expected_record);
    }
    notes.into_finding("return_path")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    const OURS: &str = "source_addresses = [\"203.0.113.5\"]";

    #[tokio::test]
    async fn the_spf_record_must_permit_the_source_addresses() {
        for (zone, status, expected_text) in [
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.0/24 -all\"", CheckStatus::Ok, "permits 203.0.113.5"),
            ("", CheckStatus::Failed, "no SPF record"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 -all\"", CheckStatus::Failed, "(fail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 ~all\"", CheckStatus::Failed, "(softfail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 +all\"", CheckStatus::Failed, "every sender"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip9:1 -all\"", CheckStatus::Failed, "`ip9:1`"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5. -all\"", CheckStatus::Failed, "`ip4:203.0.113.5.`"),
            (
                "spf.mx1.example.net. TXT \"v=spf1 include:gone.example.net -all\"",
                CheckStatus::Failed,
                "cannot be evaluated",
            ),
            (
                "spf.mx1.example.net. TXT \"v=spf1 include:slow.example.net -all\"\n$SERVFAIL slow.example.net",
                CheckStatus::Failed,
                "lookup fails",
            ),
            ("$SERVFAIL spf.mx1.example.net", CheckStatus::Failed, "did not answer"),
            (
                "spf.mx1.example.net. TXT \"v=spf1 a -all\"\nspf.mx1.example.net. TXT \"v=spf1 -all\"",
                CheckStatus::Failed,
                "2 SPF records",
            ),
        ] {
            let dns = TestDns::new(zone).await;
            let found = check_spf(&test_context(&dns, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected_text), "{zone}: {found:#?}");
        }
        let dns = TestDns::new("").await;
        let found = check_spf(&test_context(&dns, OURS).await).await;
        let fix = "spf.mx1.example.net. 3600 IN TXT \"v=spf1 ip4:203.0.113.5 -all\"";
        assert_eq!(found.fix.as_deref(), Some(fix));
    }

    #[tokio::test]
    async fn the_return_path_must_lead_to_this_server() {
        let policy = "rp.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 -all\"\nmx1.example.net. A 203.0.113.5";
        for (zone, status, expected_text) in [
            ("rp.mx1.example.net. MX 10 mx1.example.net.", CheckStatus::Ok, "is sent to this machine"),
            ("", CheckStatus::Failed, "neither MX records nor an address"),
            ("rp.mx1.example.net. A 203.0.113.5", CheckStatus::Warning, "no MX record"),
            ("rp.mx1.example.net. MX 0 .", CheckStatus::Failed, "accepts no mail"),
            ("rp.mx1.example.net. MX 10 gone.example.net.", CheckStatus::Failed, "no address"),
            (
                "rp.mx1.example.net. MX 10 mx9.example.net.\nmx9.example.net. A 203.0.113.9",
                CheckStatus::Warning,
                "not this machine",
            ),
        ] {
            let dns = TestDns::new(&format!("{policy}\n{zone}")).await;
            let found = check_return_path(&test_context(&dns, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected_text), "{zone}: {found:#?}");
        }
        let dns = TestDns::new("mx1.example.net. A 203.0.113.5").await;
        let fix = check_return_path(&test_context(&dns, OURS).await).await.fix.unwrap();
        assert_eq!(
            fix,
            "rp.mx1.example.net. 3600 IN MX 10 mx1.example.net.\n\
             rp.mx1.example.net. 3600 IN TXT \"v=spf1 include:spf.mx1.example.net -all\""
        );
    }
}
