//! `hostname` and `ptr`: our name leads to us, and our addresses lead back to it.
//!
//! Receiving hosts look up the PTR record of whoever comes, look up the name that it gives, and expect the
//! address again (forward-confirmed reverse DNS); and they compare it with what we say in EHLO, which is
//! `hostname`. Large providers refuse mail without the first, and filter it without the second
//! (RFC 5321 4.1.4 says only that it may not be the one reason; practice is stricter).

use std::net::IpAddr;

use mail::address::Name;

use super::addresses::is_private;
use super::finding::{Finding, Notes};
use super::place::{Place, told};
use super::record;

/// Top-level names that are never in the public DNS (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and habit).
const NOT_PUBLIC: [&str; 11] = [
    "local",
    "localhost",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "test",
    "invalid",
    "alt",
    "arpa",
];

/// Whether our name is there and leads to us.
pub(super) async fn hostname(place: &Place) -> Finding {
    judge_hostname(place)
}

fn judge_hostname(place: &Place) -> Finding {
    let (name, mut notes) = (&place.config.hostname, Notes::default());
    let top = name.as_str().rsplit('.').next().unwrap_or_default();
    if name.parent().is_none() || NOT_PUBLIC.contains(&top) {
        notes.fail(
            format!("`hostname` is {name}, which is no name of the public DNS: others cannot look it up"),
            "Set `hostname` to a name in a domain of yours, say hostname = \"mx1.yourdomain.net\", and publish its address.",
        );
        return notes.settle("hostname");
    }
    let forward = match &place.forward {
        Err(why) => {
            notes.fail(why, "See the finding `dns`: ask again when the name server answers.");
            return notes.settle("hostname");
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
                lines(sources.iter().map(|one| record::address(name, *one)))
            },
        );
        return notes.settle("hostname");
    }
    let mut ours = Vec::new();
    for &address in forward {
        if is_private(address) {
            let fix = format!("Publish {name} with public addresses only.");
            notes.fail(
                format!("{name} is {address}, which is a private address: nobody outside reaches it"),
                fix,
            );
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
            format!("; this machine has {}, so a NAT must lead there and back", told(&locals(place)))
        } else {
            ", and that is this machine".to_owned()
        };
        notes.good(format!("{name} is {}{by}", told(&ours)));
    }
    if !place.by_smarthost() {
        let unnamed = |source: &&IpAddr| !forward.contains(source) && place.said_from(**source) == name;
        for source in sources.iter().filter(unnamed) {
            notes.warn(
                format!("mail leaves from {source}, which {name} does not name"),
                record::address(name, *source),
            );
        }
    }
    notes.settle("hostname")
}

fn locals(place: &Place) -> Vec<IpAddr> {
    place.sources.0.iter().map(|source| source.local).collect()
}

pub(super) fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// What the reverse DNS says of one address: the names, each with its own addresses.
struct Reverse {
    address: IpAddr,
    /// What we say in EHLO, coming from there.
    said: Name,
    names: Result<Vec<(Name, Vec<IpAddr>)>, String>,
}

/// Whether our addresses lead back to our name.
pub(super) async fn ptr(place: &Place) -> Finding {
    if place.by_smarthost() {
        return Finding::skipped("ptr", "mail leaves by the smarthost: its address counts, not ours");
    }
    let public = place.sources.public();
    if public.is_empty() {
        return unknown("ptr");
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
        seen.push(Reverse { address, said: place.said_from(address).clone(), names });
    }
    judge_ptr(&seen)
}

/// A check of public addresses where none is known.
pub(super) fn unknown(name: &'static str) -> Finding {
    Finding::warning(
        name,
        "this machine has private addresses only, and the public one is not known",
        "Publish the address of `hostname`, or say which it is: postrider doctor --address 203.0.113.5",
    )
}

fn judge_ptr(seen: &[Reverse]) -> Finding {
    const WHERE: &str =
        "Set by whoever gave you the address, in the provider's panel (not in your own zone):";
    let mut notes = Notes::default();
    for Reverse { address, said: hostname, names } in seen {
        let record = format!("{WHERE}\n{}", record::ptr(*address, hostname));
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
        let confirmed: Vec<&Name> =
            names.iter().filter(|(_, back)| back.contains(address)).map(|(name, _)| name).collect();
        if confirmed.contains(&hostname) {
            notes.good(format!("{address} is {hostname}, and back"));
        } else if names.iter().any(|(name, _)| name == hostname) {
            notes.fail(
                format!("{address} says that it is {hostname}, which is not {address}"),
                record::address(hostname, *address),
            );
        } else if let [name, ..] = confirmed[..] {
            notes.warn(
                format!("{address} is {name}, and we say {hostname} in EHLO: filters count that against us"),
                format!("{record}\nor set hostname = \"{name}\""),
            );
        } else {
            let all: Vec<&Name> = names.iter().map(|(name, _)| name).collect();
            notes.fail(format!("{address} says that it is {}, which does not lead back", told(&all)), record);
        }
    }
    notes.settle("ptr")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::super::testing::{Ground, place};
    use super::*;

    #[tokio::test]
    async fn the_name_must_be_there_and_ours() {
        for (zone, own, status, said) in [
            ("mx1.example.net. A 203.0.113.5", "203.0.113.5", Status::Ok, "that is this machine"),
            ("", "203.0.113.5", Status::Failed, "no A or AAAA record"),
            ("mx1.example.net. A 203.0.113.5", "203.0.113.6", Status::Failed, "not this machine's"),
            ("mx1.example.net. A 10.0.0.7", "203.0.113.6", Status::Failed, "private address"),
            ("mx1.example.net. A 203.0.113.5", "10.0.0.2", Status::Ok, "a NAT must lead there"),
            ("$SERVFAIL mx1.example.net", "203.0.113.5", Status::Failed, "gave no answer"),
        ] {
            let ground = Ground::of(zone).await;
            let found = hostname(&place(&ground, &format!("source_addresses = [\"{own}\"]")).await).await;
            assert_eq!(found.status, status, "{zone} {own}: {found:#?}");
            assert!(found.found.contains(said), "{found:#?}");
        }
        let ground = Ground::of("").await;
        let found =
            hostname(&place(&ground, "source_addresses = [\"203.0.113.5\", \"2001:db8::5\"]").await).await;
        let fix = "mx1.example.net. 3600 IN A 203.0.113.5\nmx1.example.net. 3600 IN AAAA 2001:db8::5";
        assert_eq!(found.fix.as_deref(), Some(fix));
        let mut inside = place(&ground, "").await;
        inside.config.hostname = "mail.lan".parse().unwrap();
        assert!(hostname(&inside).await.found.contains("no name of the public DNS"));
    }

    #[tokio::test]
    async fn addresses_must_lead_back() {
        for (zone, status, said) in [
            ("5.113.0.203.in-addr.arpa. PTR mx1.example.net.", Status::Ok, "and back"),
            ("", Status::Failed, "no PTR record"),
            ("5.113.0.203.in-addr.arpa. PTR static-5.isp.example.", Status::Failed, "does not lead back"),
            (
                "5.113.0.203.in-addr.arpa. PTR s5.isp.example.\ns5.isp.example. A 203.0.113.5",
                Status::Warning,
                "in EHLO",
            ),
            ("$SERVFAIL 5.113.0.203.in-addr.arpa", Status::Failed, "gave no answer"),
        ] {
            let ground = Ground::of(&format!("mx1.example.net. A 203.0.113.5\n{zone}")).await;
            let found = ptr(&place(&ground, "source_addresses = [\"203.0.113.5\"]").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{found:#?}");
        }
        let elsewhere = "5.113.0.203.in-addr.arpa. PTR mx1.example.net.\nmx1.example.net. A 203.0.113.6";
        let ground = Ground::of(elsewhere).await;
        let found = ptr(&place(&ground, "source_addresses = [\"203.0.113.5\"]").await).await;
        assert_eq!(found.fix.as_deref(), Some("mx1.example.net. 3600 IN A 203.0.113.5"));
    }

    #[tokio::test]
    async fn a_smarthost_has_its_own_address() {
        let ground = Ground::of("mx1.example.net. A 203.0.113.5").await;
        let found = ptr(&place(&ground, "smarthost = \"relay.example.org:587\"").await).await;
        assert_eq!(found.status, Status::Skipped);
    }
}
