//! `hostname` and `ptr`: our name leads to us, and our addresses lead back to it.
//!
//! Receiving hosts look up the PTR record of whoever comes, look up the name that it gives, and expect the
//! address again (forward-confirmed reverse DNS); and they compare it with what we say in EHLO, which is
//! `hostname`. Large providers refuse mail without the first, and filter it without the second
//! (RFC 5321 4.1.4 says only that it may not be the one reason; practice is stricter).

use std::net::IpAddr;

use mail::address::DomainName;

use super::addresses::is_private;
use super::finding::{DoctorFinding, Observations};
use super::place::{CheckContext, join_words};
use super::record;

/// Top-level names that are never in the public DNS (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and habit).
const NON_PUBLIC_TLDS: [&str; 11] =
    ["local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "test", "invalid", "alt", "arpa"];

/// Whether our name is there and leads to us.
pub(super) async fn check_hostname(place: &CheckContext) -> DoctorFinding {
    judge_hostname(place)
}

fn judge_hostname(place: &CheckContext) -> DoctorFinding {
    let (name, mut notes) = (&place.config.hostname, Observations::default());
    let top = name.as_str().rsplit('.').next().unwrap_or_default();
    if name.parent().is_none() || NON_PUBLIC_TLDS.contains(&top) {
        notes.fail(
            format!("`hostname` is {name}, which is no name of the public DNS: others cannot look it up"),
            "Set `hostname` to a name in a domain of yours, say hostname = \"mx1.yourdomain.net\", and publish its address.",
        );
        return notes.into_finding("hostname");
    }
    let forward = match &place.hostname_addresses {
        Err(why) => {
            notes.fail(why, "See the finding `dns`: ask again when the name server answers.");
            return notes.into_finding("hostname");
        }
        Ok(forward) => forward,
    };
    let sources = place.sources.public();
    if forward.is_empty() {
        notes.fail(
            format!("{name} has no address (no A or AAAA record)"),
            if sources.is_empty() {
                format!("Publish an A record of {name} with this server's public address.")
            } else {
                join_lines(sources.iter().map(|one| record::address_record(name, *one)))
            },
        );
        return notes.into_finding("hostname");
    }
    let mut ours = Vec::new();
    for &address in forward {
        if is_private(address) {
            let fix = format!("Publish {name} with public addresses only.");
            notes.fail(format!("{name} is {address}, which is a private address: nobody outside reaches it"), fix);
        } else if place.is_ours(address) {
            ours.push(address);
        } else {
            notes.fail(
                format!("{name} is {address}, which is not this machine's"),
                format!(
                    "Take the record out, or, if a NAT or balancer leads from it to this machine, say so: postrider doctor --address {address}"
                ),
            );
        }
    }
    if !ours.is_empty() {
        let by = if place.sources.behind_nat() {
            format!("; this machine has {}, so a NAT must lead there and back", join_words(&local_addresses(place)))
        } else {
            ", and that is this machine".to_owned()
        };
        notes.good(format!("{name} is {}{by}", join_words(&ours)));
    }
    if !place.uses_smarthost() {
        let unnamed = |source: &&IpAddr| !forward.contains(source) && place.ehlo_name_for(**source) == name;
        for source in sources.iter().filter(unnamed) {
            notes.warn(
                format!("mail leaves from {source}, which {name} does not name"),
                record::address_record(name, *source),
            );
        }
    }
    notes.into_finding("hostname")
}

fn local_addresses(place: &CheckContext) -> Vec<IpAddr> {
    place.sources.0.iter().map(|source| source.local).collect()
}

pub(super) fn join_lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// What the reverse DNS says of one address: the names, each with its own addresses.
struct ReverseLookup {
    address: IpAddr,
    /// What we say in EHLO, coming from there.
    ehlo_name: DomainName,
    names: Result<Vec<(DomainName, Vec<IpAddr>)>, String>,
}

/// Whether our addresses lead back to our name.
pub(super) async fn check_ptr(place: &CheckContext) -> DoctorFinding {
    if place.uses_smarthost() {
        return DoctorFinding::skipped("ptr", "mail leaves by the smarthost: its address counts, not ours");
    }
    let public = place.sources.public();
    if public.is_empty() {
        return unknown_address_finding("ptr");
    }
    let mut seen = Vec::new();
    for address in public {
        let names = match place.resolver.ptr(address).await {
            Err(error) => Err(error.to_string()),
            Ok(names) => {
                let mut with_addresses = Vec::new();
                for name in names.data.into_iter().take(4) {
                    let back = place.resolver.addresses(&name).await;
                    with_addresses.push((name, back.map(|back| back.data).unwrap_or_default()));
                }
                Ok(with_addresses)
            }
        };
        seen.push(ReverseLookup { address, ehlo_name: place.ehlo_name_for(address).clone(), names });
    }
    judge_ptr(&seen)
}

/// A check of public addresses where none is known.
pub(super) fn unknown_address_finding(name: &'static str) -> DoctorFinding {
    DoctorFinding::warning(
        name,
        "this machine has private addresses only, and the public one is not known",
        "Publish the address of `hostname`, or say which it is: postrider doctor --address 203.0.113.5",
    )
}

fn judge_ptr(seen: &[ReverseLookup]) -> DoctorFinding {
    const WHERE: &str = "Set by whoever gave you the address, in the provider's panel (not in your own zone):";
    let mut notes = Observations::default();
    for ReverseLookup { address, ehlo_name: hostname, names } in seen {
        let record = format!("{WHERE}\n{}", record::ptr_record(*address, hostname));
        let names = match names {
            Err(why) => {
                notes.fail(why, "See the finding `dns`: ask again when the name server answers.");
                continue;
            }
            Ok(names) if names.is_empty() => {
                notes.fail(
                    format!("{address} has no name (no PTR record): large providers refuse mail from it"),
                    record,
                );
                continue;
            }
            Ok(names) => names,
        };
        let confirmed: Vec<&DomainName> =
            names.iter().filter(|(_, back)| back.contains(address)).map(|(name, _)| name).collect();
        if confirmed.contains(&hostname) {
            notes.good(format!("{address} is {hostname}, and back"));
        } else if names.iter().any(|(name, _)| name == hostname) {
            notes.fail(
                format!("{address} says that it is {hostname}, which is not {address}"),
                record::address_record(hostname, *address),
            );
        } else if let [name, ..] = confirmed[..] {
            notes.warn(
                format!("{address} is {name}, and we say {hostname} in EHLO: filters count that against us"),
                format!("{record}\nor set hostname = \"{name}\""),
            );
        } else {
            let all: Vec<&DomainName> = names.iter().map(|(name, _)| name).collect();
            notes.fail(format!("{address} says that it is {}, which does not lead back", join_words(&all)), record);
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
    async fn the_name_must_be_there_and_ours() {
        for (zone, own, status, said) in [
            ("mx1.example.net. A 203.0.113.5", "203.0.113.5", CheckStatus::Ok, "that is this machine"),
            ("", "203.0.113.5", CheckStatus::Failed, "no A or AAAA record"),
            ("mx1.example.net. A 203.0.113.5", "203.0.113.6", CheckStatus::Failed, "not this machine's"),
            ("mx1.example.net. A 10.0.0.7", "203.0.113.6", CheckStatus::Failed, "private address"),
            ("mx1.example.net. A 203.0.113.5", "10.0.0.2", CheckStatus::Ok, "a NAT must lead there"),
            ("$SERVFAIL mx1.example.net", "203.0.113.5", CheckStatus::Failed, "gave no answer"),
        ] {
            let ground = TestDns::new(zone).await;
            let found = check_hostname(&test_context(&ground, &format!("source_addresses = [\"{own}\"]")).await).await;
            assert_eq!(found.status, status, "{zone} {own}: {found:#?}");
            assert!(found.found.contains(said), "{found:#?}");
        }
        let ground = TestDns::new("").await;
        let found =
            check_hostname(&test_context(&ground, "source_addresses = [\"203.0.113.5\", \"2001:db8::5\"]").await).await;
        let fix = "mx1.example.net. 3600 IN A 203.0.113.5\nmx1.example.net. 3600 IN AAAA 2001:db8::5";
        assert_eq!(found.fix.as_deref(), Some(fix));
        let mut inside = test_context(&ground, "").await;
        inside.config.hostname = "mail.lan".parse().unwrap();
        assert!(check_hostname(&inside).await.found.contains("no name of the public DNS"));
    }

    #[tokio::test]
    async fn addresses_must_lead_back() {
        for (zone, status, said) in [
            ("5.113.0.203.in-addr.arpa. PTR mx1.example.net.", CheckStatus::Ok, "and back"),
            ("", CheckStatus::Failed, "no PTR record"),
            ("5.113.0.203.in-addr.arpa. PTR static-5.isp.example.", CheckStatus::Failed, "does not lead back"),
            (
                "5.113.0.203.in-addr.arpa. PTR s5.isp.example.\ns5.isp.example. A 203.0.113.5",
                CheckStatus::Warning,
                "in EHLO",
            ),
            ("$SERVFAIL 5.113.0.203.in-addr.arpa", CheckStatus::Failed, "gave no answer"),
        ] {
            let ground = TestDns::new(&format!("mx1.example.net. A 203.0.113.5\n{zone}")).await;
            let found = check_ptr(&test_context(&ground, "source_addresses = [\"203.0.113.5\"]").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{found:#?}");
        }
        let elsewhere = "5.113.0.203.in-addr.arpa. PTR mx1.example.net.\nmx1.example.net. A 203.0.113.6";
        let ground = TestDns::new(elsewhere).await;
        let found = check_ptr(&test_context(&ground, "source_addresses = [\"203.0.113.5\"]").await).await;
        assert_eq!(found.fix.as_deref(), Some("mx1.example.net. 3600 IN A 203.0.113.5"));
    }

    #[tokio::test]
    async fn a_smarthost_has_its_own_address() {
        let ground = TestDns::new("mx1.example.net. A 203.0.113.5").await;
        let found = check_ptr(&test_context(&ground, "smarthost = \"relay.example.org:587\"").await).await;
        assert_eq!(found.status, CheckStatus::Skipped);
    }
}
