//! `hostname` and `ptr`: checks forward and reverse DNS of the host name and the source addresses.
//!
//! Receiving hosts look up the PTR record of a client's address, then that name's addresses, and expect the address
//! among them (forward-confirmed reverse DNS). They also compare the name with the EHLO name, which is `hostname`.
//! Large providers refuse mail if the first fails and filter it if the second differs (RFC 5321 4.1.4 only forbids
//! refusing for that reason alone; practice is stricter).

use std::net::IpAddr;

use message::address::DomainName;

use super::addresses::is_private;
use super::context::{CheckContext, join_words};
use super::finding::{DoctorFinding, Observations};
use super::zone_lines;

/// Top-level names that are not in the public DNS (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and common private names).
const NON_PUBLIC_TLDS: [&str; 11] =
    ["local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "test", "invalid", "alt", "arpa"];

/// Checks that the host name resolves to this machine.
pub(super) async fn check_hostname(context: &CheckContext) -> DoctorFinding {
    let (name, mut notes) = (&context.config.hostname, Observations::default());
    let top = name.as_str().rsplit('.').next().unwrap_or_default();
    if name.parent().is_none() || NON_PUBLIC_TLDS.contains(&top) {
        notes.fail(
            format!("`hostname` is {name}, which is not in the public DNS: others cannot resolve it"),
            "Set `hostname` to a name in your own domain, such as hostname = \"mx1.yourdomain.net\", and publish its \
             address.",
        );
        return notes.into_finding("hostname");
    }
    let forward = match &context.hostname_addresses {
        Err(reason) => {
            notes.fail(reason, "See the finding `dns`; retry when the name server responds.");
            return notes.into_finding("hostname");
        }
        Ok(forward) => forward,
    };
    let sources = context.sources.public();
    if forward.is_empty() {
        notes.fail(
            format!("{name} has no address (no A or AAAA record)"),
            if sources.is_empty() {
                format!("Publish an A record of {name} with this server's public address.")
            } else {
                join_lines(sources.iter().map(|address| zone_lines::address_record(name, *address)))
            },
        );
        return notes.into_finding("hostname");
    }
    let mut own_addresses = Vec::new();
    for &address in forward {
        if is_private(address) {
            let fix = format!("Publish {name} with public addresses only.");
            notes.fail(format!("{name} resolves to {address}, a private address that others cannot reach"), fix);
        } else if context.is_own_address(address) {
            own_addresses.push(address);
        } else {
            notes.fail(
                format!("{name} resolves to {address}, which is not an address of this machine"),
                format!(
                    "Remove the record; or, if a NAT or load balancer forwards this address to this machine: \
                     postrider doctor --address {address}"
                ),
            );
        }
    }
    if !own_addresses.is_empty() {
        let suffix = if context.sources.behind_nat() {
            format!(
                "; this machine has {}, so NAT must translate in both directions",
                join_words(&local_addresses(context))
            )
        } else {
            ", this machine".to_owned()
        };
        notes.good(format!("{name} resolves to {}{suffix}", join_words(&own_addresses)));
    }
    if !context.uses_smarthost() {
        let unnamed = |source: &&IpAddr| !forward.contains(source) && context.ehlo_name_for(**source) == name;
        for source in sources.iter().filter(unnamed) {
            notes.warn(
                format!("mail is sent from {source}, to which {name} does not resolve"),
                zone_lines::address_record(name, *source),
            );
        }
    }
    notes.into_finding("hostname")
}

fn local_addresses(context: &CheckContext) -> Vec<IpAddr> {
    context.sources.0.iter().map(|source| source.local).collect()
}

pub(super) fn join_lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// Result of a reverse lookup of one address: its names, each with the name's addresses.
struct ReverseLookup {
    address: IpAddr,
    /// EHLO name used with this source address.
    ehlo_name: DomainName,
    names: Result<Vec<(DomainName, Vec<IpAddr>)>, String>,
}

/// Checks that the source addresses have PTR records with the EHLO name.
pub(super) async fn check_ptr(context: &CheckContext) -> DoctorFinding {
    if context.uses_smarthost() {
        return DoctorFinding::skipped("ptr", "all mail is sent through the smarthost, so its address counts");
    }
    let public = context.sources.public();
    if public.is_empty() {
        return unknown_address_finding("ptr");
    }
    let mut lookups = Vec::new();
    for address in public {
        let names = match context.resolver.ptr(address).await {
            Err(error) => Err(error.to_string()),
            Ok(names) => {
                let mut with_addresses = Vec::new();
                for name in names.data.into_iter().take(4) {
                    let resolved = context.resolver.addresses(&name).await;
                    with_addresses.push((name, resolved.map(|resolved| resolved.data).unwrap_or_default()));
                }
                Ok(with_addresses)
            }
        };
        lookups.push(ReverseLookup { address, ehlo_name: context.ehlo_name_for(address).clone(), names });
    }
    evaluate_ptr(&lookups)
}

/// Finding of a check of public addresses when none is known.
pub(super) fn unknown_address_finding(name: &'static str) -> DoctorFinding {
    DoctorFinding::warning(
        name,
        "this machine has private addresses only, and its public address is unknown",
        "Publish the address of `hostname`, or name it: postrider doctor --address 203.0.113.5",
    )
}

fn evaluate_ptr(lookups: &[ReverseLookup]) -> DoctorFinding {
    const WHERE: &str =
        "Set the PTR record at the provider of the address, usually in its control panel (not in your own zone):";
    let mut notes = Observations::default();
    for ReverseLookup { address, ehlo_name: hostname, names } in lookups {
        let record = format!("{WHERE}\n{}", zone_lines::ptr_record(*address, hostname));
        let names = match names {
            Err(reason) => {
                notes.fail(reason, "See the finding `dns`; retry when the name server responds.");
                continue;
            }
            Ok(names) if names.is_empty() => {
                notes.fail(format!("{address} has no PTR record: large providers refuse mail from it"), record);
                continue;
            }
            Ok(names) => names,
        };
        let confirmed: Vec<&DomainName> =
            names.iter().filter(|(_, addresses)| addresses.contains(address)).map(|(name, _)| name).collect();
        if confirmed.contains(&hostname) {
            notes.good(format!("{address} has the PTR record {hostname}, which resolves to {address}"));
        } else if names.iter().any(|(name, _)| name == hostname) {
            notes.fail(
                format!("{address} has the PTR record {hostname}, which does not resolve to {address}"),
                zone_lines::address_record(hostname, *address),
            );
        } else if let [name, ..] = confirmed[..] {
            notes.warn(
                format!("{address} has the PTR record {name}, but EHLO says {hostname}: spam filters penalise this"),
                format!("{record}\nor set hostname = \"{name}\""),
            );
        } else {
            let all: Vec<&DomainName> = names.iter().map(|(name, _)| name).collect();
            notes.fail(
                format!("{address} has the PTR record {}, which does not resolve to it", join_words(&all)),
                record,
            );
        }
    }
    notes.into_finding("ptr")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    #[tokio::test]
    async fn the_host_name_must_resolve_to_this_machine() {
        for (zone, source, status, expected_text) in [
            ("mx1.example.net. A 203.0.113.5", "203.0.113.5", CheckStatus::Ok, "this machine"),
            ("", "203.0.113.5", CheckStatus::Failed, "no A or AAAA record"),
            ("mx1.example.net. A 203.0.113.5", "203.0.113.6", CheckStatus::Failed, "not an address of this machine"),
            ("mx1.example.net. A 10.0.0.7", "203.0.113.6", CheckStatus::Failed, "private address"),
            ("mx1.example.net. A 203.0.113.5", "10.0.0.2", CheckStatus::Ok, "NAT must translate"),
            ("$SERVFAIL mx1.example.net", "203.0.113.5", CheckStatus::Failed, "did not answer"),
        ] {
            let dns = TestDns::new(zone).await;
            let found = check_hostname(&test_context(&dns, &format!("source_addresses = [\"{source}\"]")).await).await;
            assert_eq!(found.status, status, "{zone} {source}: {found:#?}");
            assert!(found.found.contains(expected_text), "{found:#?}");
        }
        let dns = TestDns::new("").await;
        let found =
            check_hostname(&test_context(&dns, "source_addresses = [\"203.0.113.5\", \"2001:db8::5\"]").await).await;
        let fix = "mx1.example.net. 3600 IN A 203.0.113.5\nmx1.example.net. 3600 IN AAAA 2001:db8::5";
        assert_eq!(found.fix.as_deref(), Some(fix));
        let mut inside = test_context(&dns, "").await;
        inside.config.hostname = "mail.lan".parse().unwrap();
        assert!(check_hostname(&inside).await.found.contains("not in the public DNS"));
    }

    #[tokio::test]
    async fn addresses_need_matching_ptr_records() {
        for (zone, status, expected_text) in [
            ("5.113.0.203.in-addr.arpa. PTR mx1.example.net.", CheckStatus::Ok, "which resolves to 203.0.113.5"),
            ("", CheckStatus::Failed, "no PTR record"),
            ("5.113.0.203.in-addr.arpa. PTR static-5.isp.example.", CheckStatus::Failed, "does not resolve to it"),
            (
                "5.113.0.203.in-addr.arpa. PTR s5.isp.example.\ns5.isp.example. A 203.0.113.5",
                CheckStatus::Warning,
                "but EHLO says",
            ),
            ("$SERVFAIL 5.113.0.203.in-addr.arpa", CheckStatus::Failed, "did not answer"),
        ] {
            let dns = TestDns::new(&format!("mx1.example.net. A 203.0.113.5\n{zone}")).await;
            let found = check_ptr(&test_context(&dns, "source_addresses = [\"203.0.113.5\"]").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected_text), "{found:#?}");
        }
        let other_address = "5.113.0.203.in-addr.arpa. PTR mx1.example.net.\nmx1.example.net. A 203.0.113.6";
        let dns = TestDns::new(other_address).await;
        let found = check_ptr(&test_context(&dns, "source_addresses = [\"203.0.113.5\"]").await).await;
        assert_eq!(found.fix.as_deref(), Some("mx1.example.net. 3600 IN A 203.0.113.5"));
    }

    #[tokio::test]
    async fn a_smarthost_has_its_own_address() {
        let dns = TestDns::new("mx1.example.net. A 203.0.113.5").await;
        let found = check_ptr(&test_context(&dns, "smarthost = \"relay.example.org:587\"").await).await;
        assert_eq!(found.status, CheckStatus::Skipped);
    }
}
