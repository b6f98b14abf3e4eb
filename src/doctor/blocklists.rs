//! `blocklists`: whether our addresses are on a list that many hosts refuse mail by (RFC 5782).
//!
//! ```text
//! 5.113.0.203.zen.spamhaus.org   A?   nothing: not listed; 127.0.0.x: listed, x says why;
//!                                     127.255.255.x: the list refuses to say
//! 2.0.0.127.zen.spamhaus.org     A?   always listed: without it the "nothing" above is worth nothing
//! ```

use std::net::{IpAddr, Ipv4Addr};

use mail::address::DomainName;

use super::finding::{DoctorFinding, Observations};
use super::hostname::unknown_address_finding;
use super::names::OWN_RESOLVER_ADVICE;
use super::place::CheckContext;
use super::record::reversed_address;

const NAME: &str = "blocklists";
/// Listed everywhere, for tests (RFC 5782 5).
const TEST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A list.
struct Blocklist {
    zone: &'static str,
    /// It lists IPv6 addresses too.
    ipv6: bool,
    /// Where to ask to be taken out.
    removal: &'static str,
}

const LISTS: [Blocklist; 3] = [
    Blocklist { zone: "zen.spamhaus.org", ipv6: true, removal: "https://check.spamhaus.org/" },
    Blocklist { zone: "bl.spamcop.net", ipv6: false, removal: "https://www.spamcop.net/bl.shtml" },
    Blocklist { zone: "b.barracudacentral.org", ipv6: false, removal: "https://www.barracudacentral.org/lookups" },
];

/// What a list says of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListingResult {
    NotListed,
    Listed(Vec<Ipv4Addr>),
    Refused(Ipv4Addr),
    NoAnswer(String),
}

fn parse_answer(answer: Result<Vec<IpAddr>, String>) -> ListingResult {
    let codes: Vec<Ipv4Addr> = match answer {
        Err(why) => return ListingResult::NoAnswer(why),
        Ok(found) => {
            found.into_iter().filter_map(|ip| if let IpAddr::V4(four) = ip { Some(four) } else { None }).collect()
        }
    };
    match codes.iter().find(|code| code.octets().starts_with(&[127, 255, 255])) {
        Some(refused) => ListingResult::Refused(*refused),
        None if codes.is_empty() => ListingResult::NotListed,
        // RFC 5782 2.1: entries are in 127.0.0.0/8; anything else is a resolver that makes answers up.
        None if codes.iter().any(|code| !code.is_loopback()) => {
            ListingResult::NoAnswer("something on the way makes answers up".to_owned())
        }
        None => ListingResult::Listed(codes),
    }
}

async fn query_list(place: &CheckContext, list: &Blocklist, address: IpAddr) -> ListingResult {
    let name = format!("{}.{}", reversed_address(address), list.zone);
    match name.parse::<DomainName>() {
        Err(_) => ListingResult::NoAnswer(format!("{name} is no name")),
        Ok(name) => parse_answer(
            place.resolver.addresses(&name).await.map(|found| found.data).map_err(|error| error.to_string()),
        ),
    }
}

/// Asks every list about every address.
pub(super) async fn check_blocklists(place: &CheckContext) -> DoctorFinding {
    if place.uses_smarthost() {
        return DoctorFinding::skipped(NAME, "mail leaves by the smarthost: its address counts, not ours");
    }
    let sources = place.sources.public();
    if sources.is_empty() {
        return unknown_address_finding(NAME);
    }
    let [zen, spamcop, barracuda] = &LISTS;
    let (zen, spamcop, barracuda) = tokio::join!(
        query_addresses(place, zen, &sources),
        query_addresses(place, spamcop, &sources),
        query_addresses(place, barracuda, &sources)
    );
    let mut notes = Observations::default();
    for (list, control, said) in [zen, spamcop, barracuda] {
        judge(&mut notes, list, &control, &said);
    }
    notes.into_finding(NAME)
}

async fn query_addresses<'a>(
    place: &CheckContext,
    list: &'a Blocklist,
    sources: &[IpAddr],
) -> (&'a Blocklist, ListingResult, Vec<(IpAddr, ListingResult)>) {
    let control = query_list(place, list, TEST_ADDRESS).await;
    let mut said = Vec::new();
    for &address in sources.iter().filter(|address| list.ipv6 || address.is_ipv4()) {
        said.push((address, query_list(place, list, address).await));
    }
    (list, control, said)
}

fn judge(notes: &mut Observations, list: &Blocklist, control: &ListingResult, said: &[(IpAddr, ListingResult)]) {
    let zone = list.zone;
    let refused = said.iter().map(|(_, said)| said).chain([control]).find_map(|said| match said {
        ListingResult::Refused(code) => Some(*code),
        _ => None,
    });
    if let Some(code) = refused {
        return notes.warn(format!("{zone} refuses to say ({code}): {}", refusal_text(code)), OWN_RESOLVER_ADVICE);
    }
    for (address, said) in said {
        match said {
            ListingResult::Listed(codes) => notes.fail(
                format!("{address} is on {zone}: {}", listing_text(zone, codes)),
                // A list of where no mail should come from: nothing has happened yet.
                if zone.ends_with("spamhaus.org") && codes.iter().all(|code| matches!(code.octets()[3], 10 | 11)) {
                    format!(
                        "Ask to be taken out, since this is a mail server: {} (some providers ask for it themselves)",
                        list.removal
                    )
                } else {
                    format!("Find out why before you ask to be taken out, or it comes back: {}", list.removal)
                },
            ),
            ListingResult::NoAnswer(why) => notes.skip(format!("{zone} says nothing of {address}: {why}")),
            ListingResult::NotListed if matches!(control, ListingResult::Listed(_)) => {
                notes.good(format!("{address} is not on {zone}"))
            }
            ListingResult::NotListed | ListingResult::Refused(_) => notes
                .skip(format!("{zone} gives no answers here (not even for its test entry): look at {}", list.removal)),
        }
    }
}

/// Spamhaus's words for its refusals.
fn refusal_text(code: Ipv4Addr) -> &'static str {
    match code.octets()[3] {
        252 => "it does not know the name that was asked",
        254 => "the question came through a resolver of the public (see the finding `dns`)",
        255 => "too many questions came from this resolver",
        _ => "it does not serve this resolver",
    }
}

fn listing_text(zone: &str, codes: &[Ipv4Addr]) -> String {
    let spamhaus = |last: u8| match last {
        2 => "spam was sent from it (SBL)",
        3 => "mail from it looks like spam, or its names change too often (CSS)",
        4..=7 => "it looks broken into, a bot or open proxy (XBL)",
        9 => "its network is in criminal hands (DROP)",
        10 | 11 => "its provider says that no mail comes from there (PBL)",
        _ => "listed",
    };
    if !zone.ends_with("spamhaus.org") {
        return "spam was reported from it".to_owned();
    }
    let mut words: Vec<&str> = codes.iter().map(|code| spamhaus(code.octets()[3])).collect();
    words.dedup();
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context};
    use super::*;

    const TESTS: &str = "2.0.0.127.zen.spamhaus.org. A 127.0.0.2\n2.0.0.127.bl.spamcop.net. A 127.0.0.2\n\
                         2.0.0.127.b.barracudacentral.org. A 127.0.0.2\n";

    #[tokio::test]
    async fn lists_are_read() {
        for (zone, status, said) in [
            (TESTS.to_owned(), CheckStatus::Ok, "203.0.113.5 is not on zen.spamhaus.org"),
            (String::new(), CheckStatus::Skipped, "no answers here"),
            (format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 127.0.0.10"), CheckStatus::Failed, "(PBL)"),
            (format!("{TESTS}5.113.0.203.bl.spamcop.net. A 127.0.0.2"), CheckStatus::Failed, "reported"),
            (
                format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 127.255.255.254"),
                CheckStatus::Warning,
                "resolver of the public",
            ),
            (format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 203.0.113.80"), CheckStatus::Ok, "makes answers up"),
        ] {
            let ground = TestDns::new(&zone).await;
            let found = check_blocklists(&test_context(&ground, "source_addresses = [\"203.0.113.5\"]").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
    }

    #[tokio::test]
    async fn ipv6_is_asked_by_nibbles() {
        let listed = "5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.zen.spamhaus.org. A 127.0.0.3";
        let ground = TestDns::new(&format!("{TESTS}{listed}")).await;
        let found = check_blocklists(&test_context(&ground, "source_addresses = [\"2001:db8::5\"]").await).await;
        assert!(found.status == CheckStatus::Failed && found.found.contains("(CSS)"), "{found:#?}");
    }
}
