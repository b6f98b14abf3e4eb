//! `dns` and `dnssec`: whether the name server answers, soon, and lets no forged answer through.
//!
//! A name whose signatures are broken on purpose must not be answered, one whose signatures are good must.
//! DNSBLs turn the resolvers of the public away (RFC 5782 says nothing of it; their terms do): a mail server has
//! a resolver of its own.

use std::net::IpAddr;
use std::time::Duration;

use mail::address::Name;
use tokio::time::Instant;

use super::finding::{Finding, Notes};
use super::place::{Place, told};

/// Names that are always there.
const WELL_KNOWN: [&str; 3] = ["gmail.com", "outlook.com", "iana.org"];
/// Signed, and signed wrongly on purpose.
const SIGNED: &str = "isc.org";
const BOGUS: &str = "dnssec-failed.org";
/// A name that is not known yet takes a few questions of its own.
const SLOW: Duration = Duration::from_millis(1_000);

/// Resolvers that serve the public.
const PUBLIC: [(&str, &str); 18] = [
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

/// One of our own, which validates as it comes.
pub(super) const OWN: &str = "Run a resolver of your own, which validates and is nobody else's:\n\
apt install unbound\n[dns]\nservers = [\"127.0.0.1:53\"]";

/// Which servers are asked: the configuration's, else the system's.
fn servers(place: &Place) -> Vec<IpAddr> {
    let configured = &place.config.dns.servers;
    if !configured.is_empty() {
        return configured.iter().map(std::net::SocketAddr::ip).collect();
    }
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    in_resolv_conf(&text)
}

fn in_resolv_conf(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.parse().ok()).flatten()
    };
    text.lines().filter_map(address).collect()
}

/// What became of one question.
enum Asked {
    /// There are records.
    Known(Duration),
    /// There are none.
    Unknown(Duration),
    /// No answer, and why.
    Unanswered(String),
}

/// Whether the name server answers, and how soon.
pub(super) async fn dns(place: &Place) -> Finding {
    let [one, two, three] = WELL_KNOWN;
    let (one, two, three) = tokio::join!(time(place, one), time(place, two), time(place, three));
    judge(&servers(place), &[one, two, three])
}

async fn time(place: &Place, name: &str) -> Asked {
    let Ok(name) = name.parse::<Name>() else { return Asked::Unanswered(format!("{name} is no name")) };
    let began = Instant::now();
    // Not what another check asks: that answer might be there already.
    match place.resolver.txt(&name).await {
        Err(error) => Asked::Unanswered(error.to_string()),
        Ok(found) if found.data.is_empty() => Asked::Unknown(began.elapsed()),
        Ok(_) => Asked::Known(began.elapsed()),
    }
}

fn judge(servers: &[IpAddr], asked: &[Asked]) -> Finding {
    let mut notes = Notes::default();
    let who = told(servers);
    let time = |one: &Asked| match one {
        Asked::Known(time) | Asked::Unknown(time) => Some(*time),
        Asked::Unanswered(_) => None,
    };
    let why = asked.iter().find_map(|one| if let Asked::Unanswered(why) = one { Some(why) } else { None });
    match (asked.iter().filter_map(time).max(), why) {
        (None, why) => notes.fail(
            format!("{who} gives no answers, so no mail can go anywhere: {}", why.map_or("", |why| why)),
            format!("Is it running, and does a firewall let DNS out (port 53, UDP and TCP)? Try: dig @{who} gmail.com MX\n{OWN}"),
        ),
        (Some(_), Some(why)) => notes.warn(format!("{who} does not answer every question: {why}"), OWN),
        (Some(time), None) if time > SLOW => {
            notes.warn(format!("{who} took {} ms for an answer: mail waits for it", time.as_millis()), OWN);
        }
        (Some(time), None) => notes.good(format!("{who} answers, within {} ms", time.as_millis().max(1))),
    }
    if asked.iter().all(|one| matches!(one, Asked::Unknown(_))) {
        notes.warn(
            format!("{who} knows nothing of {}: it does not speak for the whole Internet", told(&WELL_KNOWN)),
            OWN,
        );
    }
    for server in servers {
        let public = PUBLIC.iter().find(|(address, _)| address.parse() == Ok(*server));
        if let Some((_, owner)) = public {
            notes.warn(
                format!("{server} is {owner}'s resolver for everybody: blocklists refuse to answer it, and it may turn a busy server away"),
                OWN,
            );
        }
    }
    notes.settle("dns")
}

/// What a question came to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Addresses,
    Nothing,
    None(String),
}

async fn ask(place: &Place, name: &str) -> Answer {
    let Ok(name) = name.parse::<Name>() else { return Answer::Nothing };
    match place.resolver.addresses(&name).await {
        Err(error) => Answer::None(error.to_string()),
        Ok(found) if found.data.is_empty() => Answer::Nothing,
        Ok(_) => Answer::Addresses,
    }
}

/// Whether forged answers are let through.
pub(super) async fn dnssec(place: &Place) -> Finding {
    let (signed, bogus) = tokio::join!(ask(place, SIGNED), ask(place, BOGUS));
    judge_dnssec(&signed, &bogus)
}

fn judge_dnssec(signed: &Answer, bogus: &Answer) -> Finding {
    let mut notes = Notes::default();
    match (signed, bogus) {
        (Answer::Addresses, Answer::None(_)) => {
            notes.good(format!("forged answers are refused ({BOGUS} is not answered, {SIGNED} is)"));
        }
        (Answer::Addresses, Answer::Addresses) => notes.warn(
            format!("the name server does not validate: it answers for {BOGUS}, whose signatures are broken on purpose. Whoever can forge an answer can have our mail"),
            OWN,
        ),
        (Answer::Addresses, Answer::Nothing) => {
            return Finding::skipped("dnssec", format!("{BOGUS} has no address any more: nothing to compare with"));
        }
        (Answer::None(why), _) => {
            return Finding::skipped("dnssec", format!("no answer for {SIGNED}, which is signed well: {why}"));
        }
        (Answer::Nothing, _) => return Finding::skipped("dnssec", format!("{SIGNED} has no address here: nothing to compare with")),
    }
    notes.settle("dnssec")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::super::testing::{Ground, place};
    use super::*;

    #[tokio::test]
    async fn a_validating_resolver_refuses_the_bogus_name() {
        for (zone, status) in [
            ("isc.org. A 203.0.113.1\n$SERVFAIL dnssec-failed.org", Status::Ok),
            ("isc.org. A 203.0.113.1\ndnssec-failed.org. A 203.0.113.2", Status::Warning),
            ("isc.org. A 203.0.113.1", Status::Skipped),
            ("$SERVFAIL isc.org\n$SERVFAIL dnssec-failed.org", Status::Skipped),
        ] {
            let ground = Ground::of(zone).await;
            assert_eq!(dnssec(&place(&ground, "").await).await.status, status, "{zone}");
        }
    }

    #[tokio::test]
    async fn a_resolver_answers_or_not() {
        for (zone, status) in [
            ("gmail.com. TXT x", Status::Ok),
            ("", Status::Warning),
            ("gmail.com. TXT x\n$REFUSED iana.org", Status::Warning),
            ("$REFUSED gmail.com\n$REFUSED outlook.com\n$REFUSED iana.org", Status::Failed),
        ] {
            let ground = Ground::of(zone).await;
            let found = dns(&place(&ground, "").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
        }
    }

    #[test]
    fn resolvers_of_the_public_are_known() {
        let servers = in_resolv_conf(
            "# x\nsearch example.net\nnameserver 8.8.8.8\nnameserver fe80::1%eth0\nnameserver 127.0.0.53\n",
        );
        assert_eq!(servers.len(), 2);
        let found = judge(&servers, &[Asked::Known(Duration::from_millis(20))]);
        assert!(
            found.status == Status::Warning && found.found.starts_with("8.8.8.8 is Google's"),
            "{found:#?}"
        );
        let slow = judge(&[], &[Asked::Known(Duration::from_secs(3))]);
        assert_eq!(slow.status, Status::Warning);
        assert!(PUBLIC.iter().all(|(address, _)| address.parse::<IpAddr>().is_ok()));
    }
}
