//! `spf` and `return_path`: the two names below ours that customers' records point to.
//!
//! ```text
//! customer.example     TXT   "v=spf1 include:{spf_include_host} …"     its record must pass our addresses
//! rp.customer.example  CNAME {return_path_host}                        MX to us, and an SPF record: it is the
//!                                                                      envelope's domain, which SPF judges
//! ```

use std::net::IpAddr;

use dns::mail_hosts::MailHosts;
use dns::sender_policy::{self, PolicyResult};
use mail::address::Name;

use super::finding::{Finding, Notes};
use super::hostname::unknown;
use super::place::{Host, Place, told};
use super::record;

/// What stands at a name, and what it says of our addresses.
struct Policy {
    records: Result<Vec<String>, String>,
    verdicts: Vec<(IpAddr, PolicyResult)>,
}

async fn policy(place: &Place, name: &Name) -> Policy {
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
        let verdict = sender_policy::check(&place.resolver, name, (address, &place.config.hostname)).await;
        verdicts.push((address, verdict));
    }
    Policy { records, verdicts }
}

/// Whether the record that customers include is there and covers our addresses.
pub(super) async fn spf(place: &Place) -> Finding {
    let name = place.config.spf_include_host();
    let mut notes = Notes::default();
    let sources = place.sources.public();
    if place.by_smarthost() {
        match policy(place, &name).await.records {
            Ok(records) if !records.is_empty() => {
                notes.good(format!("{name} says {}", told(&records)));
                notes.skip("mail leaves by the smarthost: whether its addresses are in there cannot be seen from here");
            }
            Ok(_) => notes.fail(
                format!("{name} has no SPF record, and customers' records include it"),
                format!(
                    "{} (the name is what the smarthost's provider tells its customers to include)",
                    record::txt(&name, "v=spf1 include:spf.relay.example -all")
                ),
            ),
            Err(why) => notes.fail(why, DNS),
        }
        return notes.settle("spf");
    }
    if sources.is_empty() {
        return unknown("spf");
    }
    let wanted = record::txt(&name, &record::spf(&sources));
    judge(&mut notes, &name, policy(place, &name).await, &wanted);
    notes.settle("spf")
}

const DNS: &str = "See the finding `dns`: ask again when the name server answers.";

fn judge(notes: &mut Notes, name: &Name, policy: Policy, wanted: &str) {
    let records = match policy.records {
        Err(why) => return notes.fail(why, DNS),
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
            if let Some(term) = record.split_whitespace().skip(1).find(|term| !is_term(term)) {
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
            PolicyResult::Pass => notes.good(format!("the SPF record of {name} lets {address} send")),
            PolicyResult::TempError => {
                notes.fail(format!("the SPF record of {name} includes a name that does not answer"), DNS);
            }
            PolicyResult::PermError => notes.fail(
                format!(
                    "the SPF record of {name} cannot be evaluated (written wrongly, or more than 10 look-ups): {}",
                    told(&records)
                ),
                format!("Replace it: {wanted}"),
            ),
            other => notes.fail(
                format!("the SPF record of {name} does not let {address} send ({}): {}", other.as_str(), told(&records)),
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
fn is_term(term: &str) -> bool {
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
enum Way {
    Hosts { hosts: Vec<(Name, Vec<IpAddr>)>, by_mx: bool },
    Nowhere(&'static str),
    Unknown(String),
}

async fn way(place: &Place, name: &Name) -> Way {
    let (hosts, by_mx) = match place.resolver.mx(name).await {
        Err(error) => return Way::Unknown(error.to_string()),
        Ok(found) => match found.data {
            MailHosts::Mx(hosts) => (hosts.into_iter().map(|mx| mx.host).collect(), true),
            MailHosts::ImplicitMx(host) => (vec![host], false),
            MailHosts::NullMx => return Way::Nowhere("says that it takes no mail (null MX)"),
            MailHosts::NoMail => return Way::Nowhere("has neither MX records nor an address"),
            MailHosts::NoSuchDomain => return Way::Nowhere("does not exist"),
        },
    };
    let mut with_addresses = Vec::new();
    for host in hosts.into_iter().take(8) {
        let found = place.addresses(&Host::Named(host.clone())).await;
        with_addresses.push((host, found.unwrap_or_default()));
    }
    Way::Hosts { hosts: with_addresses, by_mx }
}

/// Whether bounces find back to us, and whether the envelope's domain passes SPF.
pub(super) async fn return_path(place: &Place) -> Finding {
    let name = place.config.return_path_host();
    let hostname = &place.config.hostname;
    let mut notes = Notes::default();
    let wanted = record::mx(&name, hostname);
    match way(place, &name).await {
        Way::Unknown(why) => notes.fail(why, DNS),
        Way::Nowhere(what) => {
            notes.fail(format!("{name} {what}: bounces cannot come back, and some hosts refuse mail whose return path takes none"), wanted);
        }
        Way::Hosts { hosts, by_mx } => {
            for (host, addresses) in hosts {
                let ours = addresses.iter().any(|address| place.is_ours(*address)) || host == *hostname;
                if addresses.is_empty() {
                    notes
                        .fail(format!("mail to {name} goes to {host}, which has no address"), wanted.clone());
                } else if ours {
                    notes.good(format!("mail to {name} comes here ({host})"));
                } else {
                    notes.warn(
                        format!(
                            "mail to {name} goes to {host} ({}), which is not this machine",
                            told(&addresses)
                        ),
                        format!("Right if that is another of your nodes; otherwise: {wanted}"),
                    );
                }
            }
            if !by_mx {
                notes.warn(
                    format!("{name} has an address and no MX record: works, but spam filters frown"),
                    wanted,
                );
            }
        }
    }
    let include = place.config.spf_include_host();
    let wanted = record::txt(&name, &format!("v=spf1 include:{include} -all"));
    if place.by_smarthost() || place.sources.public().is_empty() {
        notes.skip("whether its SPF record lets our addresses send cannot be seen from here");
    } else {
        judge(&mut notes, &name, policy(place, &name).await, &wanted);
    }
    notes.settle("return_path")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::super::testing::{Ground, place};
    use super::*;

    const OURS: &str = "source_addresses = [\"203.0.113.5\"]";

    #[tokio::test]
    async fn the_include_must_cover_our_addresses() {
        for (zone, status, said) in [
            (
                "spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.0/24 -all\"",
                Status::Ok,
                "lets 203.0.113.5 send",
            ),
            ("", Status::Failed, "no SPF record"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 -all\"", Status::Failed, "(fail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.6 ~all\"", Status::Failed, "(softfail)"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 +all\"", Status::Failed, "everybody"),
            ("spf.mx1.example.net. TXT \"v=spf1 ip9:1 -all\"", Status::Failed, "`ip9:1`"),
            (
                "spf.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5. -all\"",
                Status::Failed,
                "`ip4:203.0.113.5.`",
            ),
            (
                "spf.mx1.example.net. TXT \"v=spf1 include:gone.example.net -all\"",
                Status::Failed,
                "cannot be evaluated",
            ),
            (
                "spf.mx1.example.net. TXT \"v=spf1 include:slow.example.net -all\"\n$SERVFAIL slow.example.net",
                Status::Failed,
                "does not answer",
            ),
            ("$SERVFAIL spf.mx1.example.net", Status::Failed, "gave no answer"),
            (
                "spf.mx1.example.net. TXT \"v=spf1 a -all\"\nspf.mx1.example.net. TXT \"v=spf1 -all\"",
                Status::Failed,
                "2 SPF records",
            ),
        ] {
            let ground = Ground::of(zone).await;
            let found = spf(&place(&ground, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = Ground::of("").await;
        let found = spf(&place(&ground, OURS).await).await;
        let fix = "spf.mx1.example.net. 3600 IN TXT \"v=spf1 ip4:203.0.113.5 -all\"";
        assert_eq!(found.fix.as_deref(), Some(fix));
    }

    #[tokio::test]
    async fn bounces_must_find_back() {
        let policy =
            "rp.mx1.example.net. TXT \"v=spf1 ip4:203.0.113.5 -all\"\nmx1.example.net. A 203.0.113.5";
        for (zone, status, said) in [
            ("rp.mx1.example.net. MX 10 mx1.example.net.", Status::Ok, "comes here"),
            ("", Status::Failed, "neither MX records nor an address"),
            ("rp.mx1.example.net. A 203.0.113.5", Status::Warning, "no MX record"),
            ("rp.mx1.example.net. MX 0 .", Status::Failed, "takes no mail"),
            ("rp.mx1.example.net. MX 10 gone.example.net.", Status::Failed, "no address"),
            (
                "rp.mx1.example.net. MX 10 mx9.example.net.\nmx9.example.net. A 203.0.113.9",
                Status::Warning,
                "not this machine",
            ),
        ] {
            let ground = Ground::of(&format!("{policy}\n{zone}")).await;
            let found = return_path(&place(&ground, OURS).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = Ground::of("mx1.example.net. A 203.0.113.5").await;
        let fix = return_path(&place(&ground, OURS).await).await.fix.unwrap();
        assert_eq!(
            fix,
            "rp.mx1.example.net. 3600 IN MX 10 mx1.example.net.\n\
             rp.mx1.example.net. 3600 IN TXT \"v=spf1 include:spf.mx1.example.net -all\""
        );
    }
}
