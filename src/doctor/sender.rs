//! `spf` and `return_path`: the two names below ours that customers' records point to.
//!
//! ```text
//! customer.example     TXT   "v=spf1 include:{spf_include_host} …"     its record must pass our addresses
//! rp.customer.example  CNAME {return_path_host}                        MX to us, and an SPF record: it is the
//!                                                                      envelope's domain, which SPF judges
//! ```

use std::net::IpAddr;

use dns::mail_hosts::MailHosts;
use dns::sender_policy::{self, SpfResult};
use mail::address::DomainName;

use super::finding::{DoctorFinding, Observations};
use super::hostname::unknown_address_finding;
use super::place::{CheckContext, ProbeHost, join_words};
use super::record;

/// What stands at a name, and what it says of our addresses.
struct SpfLookup {
    records: Result<Vec<String>, String>,
    verdicts: Vec<(IpAddr, SpfResult)>,
}

async fn lookup_spf(place: &CheckContext, name: &DomainName) -> SpfLookup {
    let records = place.resolver.txt(name).await.map_err(|error| error.to_string()).map(|found| {
        let is_policy = |text: &String| {
            let text = text.to_ascii_lowercase();
            text == "v=spf1" || text.starts_with("v=spf1 ")
        };
        found.data.into_iter().filter(is_policy).collect()
    });
    let mut verdicts = Vec::new();
    // Where nothing stands, or nobody answers, there is nothing to evaluate.
    let one = records.as_ref().is_ok_and(|records: &Vec<String>| records.len() == 1);
    for address in if one { place.sources.public() } else { Vec::new() } {
        let verdict = sender_policy::check_domain(&place.resolver, name, (address, &place.config.hostname)).await;
        verdicts.push((address, verdict));
    }
    SpfLookup { records, verdicts }
}

/// Whether the record that customers include is there and covers our addresses.
pub(super) async fn check_spf(place: &CheckContext) -> DoctorFinding {
    let name = place.config.spf_include_host();
    let mut notes = Observations::default();
    let sources = place.sources.public();
    if place.uses_smarthost() {
        match lookup_spf(place, &name).await.records {
            Ok(records) if !records.is_empty() => {
                notes.good(format!("{name} says {}", join_words(&records)));
                notes.skip("mail leaves by the smarthost: whether its addresses are in there cannot be seen from here");
            }
            Ok(_) => notes.fail(
                format!("{name} has no SPF record, and customers' records include it"),
                format!(
                    "{} (the name is what the smarthost's provider tells its customers to include)",
                    record::txt_record(&name, "v=spf1 include:spf.relay.example -all")
                ),
            ),
            Err(why) => notes.fail(why, DNS_ADVICE),
        }
        return notes.into_finding("spf");
    }
    if sources.is_empty() {
        return unknown_address_finding("spf");
    }
    let wanted = record::txt_record(&name, &record::spf_value(&sources));
    judge(&mut notes, &name, lookup_spf(place, &name).await, &wanted);
    notes.into_finding("spf")
}

const DNS_ADVICE: &str = "See the finding `dns`: ask again when the name server answers.";

fn judge(notes: &mut Observations, name: &DomainName, policy: SpfLookup, wanted: &str) {
    let records = match policy.records {
        Err(why) => return notes.fail(why, DNS_ADVICE),
        Ok(records) => records,
    };
    match &records[..] {
        [] => {
            return notes.fail(
                format!("{name} has no SPF record, so mail fails SPF for every domain that relies on it"),
                wanted,
            );
        }
        [record] => {
            if let Some(term) = record.split_whitespace().skip(1).find(|term| !is_spf_term(term)) {
                return notes.fail(
                    format!("the SPF record of {name} has a term that is none, `{term}`, so it counts as an error (RFC 7208 4.6): {record}"),
                    format!("Replace it: {wanted}"),
                );
            }
        }
        several => {
            return notes.fail(
                format!("{name} has {} SPF records, which counts as none (RFC 7208 4.5)", several.len()),
                format!("Keep one: {wanted}"),
            );
        }
    }
    for (address, verdict) in policy.verdicts {
        match verdict {
            SpfResult::Pass => notes.good(format!("the SPF record of {name} lets {address} send")),
            SpfResult::TempError => {
                notes.fail(format!("the SPF record of {name} includes a name that does not answer"), DNS_ADVICE);
            }
            SpfResult::PermError => notes.fail(
                format!(
                    "the SPF record of {name} cannot be evaluated (written wrongly, or more than 10 look-ups): {}",
                    join_words(&records)
                ),
                format!("Replace it: {wanted}"),
            ),
            other => notes.fail(
                format!(
                    "the SPF record of {name} does not let {address} send ({}): {}",
                    other.as_str(),
                    join_words(&records)
                ),
                format!("Take the address in, say: {wanted}"),
            ),
        }
    }
    if records.iter().any(|text| text.to_ascii_lowercase().contains("+all") || text.ends_with(" all")) {
        notes.fail(
            format!("the SPF record of {name} lets everybody send (+all): it protects nobody"),
            format!("Replace it: {wanted}"),
        );
    }
}

/// Whether it is a mechanism or a modifier (RFC 7208 4.6.1): mail-auth passes over those that it does not know,
/// others stop there.
fn is_spf_term(term: &str) -> bool {
    let term = term.to_ascii_lowercase();
    let bare = term.strip_prefix(['+', '-', '~', '?']).unwrap_or(&term);
    let (kind, value) = match bare.split_once([':', '/']) {
        Some((kind, value)) => (kind, Some(value)),
        None => (bare, None),
    };
    let address = |four: bool| {
        let ip = value.and_then(|value| value.split('/').next()?.parse::<IpAddr>().ok());
        ip.is_some_and(|ip| ip.is_ipv4() == four)
    };
    match kind {
        "all" => value.is_none(),
        "a" | "mx" | "ptr" => true,
        "include" | "exists" => value.is_some_and(|value| !value.is_empty()),
        "ip4" => address(true),
        "ip6" => address(false),
        _ => bare
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))),
    }
}

/// Where mail to the return path would go.
enum ReturnPathRoute {
    Hosts { hosts: Vec<(DomainName, Vec<IpAddr>)>, by_mx: bool },
    NoRoute(&'static str),
    Unknown(String),
}

async fn return_path_route(place: &CheckContext, name: &DomainName) -> ReturnPathRoute {
    let (hosts, by_mx) = match place.resolver.mx(name).await {
        Err(error) => return ReturnPathRoute::Unknown(error.to_string()),
        Ok(found) => match found.data {
            MailHosts::Mx(hosts) => (hosts.into_iter().map(|mx| mx.host).collect(), true),
            MailHosts::ImplicitMx(host) => (vec![host], false),
            MailHosts::NullMx => return ReturnPathRoute::NoRoute("says that it takes no mail (null MX)"),
            MailHosts::NoMail => return ReturnPathRoute::NoRoute("has neither MX records nor an address"),
            MailHosts::NoSuchDomain => return ReturnPathRoute::NoRoute("does not exist"),
        },
    };
    let mut with_addresses = Vec::new();
    for host in hosts.into_iter().take(8) {
        let found = place.addresses(&ProbeHost::Name(host.clone())).await;
        with_addresses.push((host, found.unwrap_or_default()));
    }
    ReturnPathRoute::Hosts { hosts: with_addresses, by_mx }
}

/// Whether bounces find back to us, and whether the envelope's domain passes SPF.
pub(super) async fn check_return_path(place: &CheckContext) -> DoctorFinding {
    let name = place.config.return_path_host();
    let hostname = &place.config.hostname;
    let mut notes = Observations::default();
    let wanted = record::mx_record(&name, hostname);
    match return_path_route(place, &name).await {
        ReturnPathRoute::Unknown(why) => notes.fail(why, DNS_ADVICE),
        ReturnPathRoute::NoRoute(what) => {
            notes.fail(
                format!(
                    "{name} {what}: bounces cannot come back, and some hosts refuse mail whose return path takes none"
                ),
                wanted,
            );
        }
        ReturnPathRoute::Hosts { hosts, by_mx } => {
            for (host, addresses) in hosts {
                let ours = addresses.iter().any(|address| place.is_ours(*address)) || host == *hostname;
                if addresses.is_empty() {
                    notes.fail(format!("mail to {name} goes to {host}, which has no address"), wanted.clone());
                } else if ours {
                    notes.good(format!("mail to {name} comes here ({host})"));
                } else {
                    notes.warn(
                        format!(
                            "mail to {name} goes to {host} ({}), which is not this machine",
                            join_words(&addresses)
                        ),
                        format!("Right if that is another of your nodes; otherwise: {wanted}"),
                    );
                }
            }
            if !by_mx {
                notes.warn(format!("{name} has an address and no MX record: works, but spam filters frown"), wanted);
            }
        }
    }
    let include = place.config.spf_include_host();
    let wanted = record::txt_record(&name, &format!("v=spf1 include:{include} -all"));
    if place.uses_smarthost() || place.sources.public().is_empty() {
        notes.skip("whether its SPF record lets our addresses send cannot be seen from here");
    } else {
        judge(&mut notes, &name, lookup_spf(place, &name).await, &wanted);
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
    async fn the_include_must_cover_our_addresses() {
        for (zone, status, said) in [
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.0/24 -all\"", CheckStatus::Ok, "lets 203.0.113.5 send"),
            ("", CheckStatus::Failed, "no SPF record"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 -all\"", CheckStatus::Failed, "(fail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 ~all\"", CheckStatus::Failed, "(softfail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 +all\"", CheckStatus::Failed, "everybody"),
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
                "does not answer",
            ),
            ("$SERVFAIL spf.mx1.example.net", CheckStatus::Failed, "gave no answer"),
            (
                "spf.mx1.example.net. TXT \"v=spf1 a -all\"\nspf.mx1.example.net. TXT \"v=spf1 -all\"",
                CheckStatus::Failed,
                "2 SPF records",
            ),
        ] {
            let ground = TestDns::new(zone).await;
            let found = check_spf(&test_context(&ground, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = TestDns::new("").await;
        let found = check_spf(&test_context(&ground, OURS).await).await;
        let fix = "spf.mx1.example.net. 3600 IN TXT \"v=spf1 ip4:203.0.113.5 -all\"";
        assert_eq!(found.fix.as_deref(), Some(fix));
    }

    #[tokio::test]
    async fn bounces_must_find_back() {
        let policy = "rp.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 -all\"\nmx1.example.net. A 203.0.113.5";
        for (zone, status, said) in [
            ("rp.mx1.example.net. MX 10 mx1.example.net.", CheckStatus::Ok, "comes here"),
            ("", CheckStatus::Failed, "neither MX records nor an address"),
            ("rp.mx1.example.net. A 203.0.113.5", CheckStatus::Warning, "no MX record"),
            ("rp.mx1.example.net. MX 0 .", CheckStatus::Failed, "takes no mail"),
            ("rp.mx1.example.net. MX 10 gone.example.net.", CheckStatus::Failed, "no address"),
            (
                "rp.mx1.example.net. MX 10 mx9.example.net.\nmx9.example.net. A 203.0.113.9",
                CheckStatus::Warning,
                "not this machine",
            ),
        ] {
            let ground = TestDns::new(&format!("{policy}\n{zone}")).await;
            let found = check_return_path(&test_context(&ground, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = TestDns::new("mx1.example.net. A 203.0.113.5").await;
        let fix = check_return_path(&test_context(&ground, OURS).await).await.fix.unwrap();
        assert_eq!(
            fix,
            "rp.mx1.example.net. 3600 IN MX 10 mx1.example.net.\n\
             rp.mx1.example.net. 3600 IN TXT \"v=spf1 include:spf.mx1.example.net -all\""
        );
    }
}
