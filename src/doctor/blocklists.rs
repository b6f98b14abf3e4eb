//! `blocklists`: checks whether the source addresses are on DNS blocklists that many hosts use (RFC 5782).
//!
//! ```text
//! 5.113.0.203.zen.spamhaus.org   A?   no records: not listed; 127.0.0.x: listed, x is the reason;
//!                                     127.255.255.x: the list refuses the query
//! 2.0.0.127.zen.spamhaus.org     A?   test entry, always listed; if it is missing, "no records" above proves nothing
//! ```

use std::net::{IpAddr, Ipv4Addr};

use message::address::DomainName;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use super::hostname::unknown_address_finding;
use super::name_servers::OWN_RESOLVER_ADVICE;
use super::zone_lines::reversed_address;

const NAME: &str = "blocklists";
/// Test entry of every list (RFC 5782 5).
const TEST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

struct Blocklist {
    zone: &'static str,
    /// True if the list includes IPv6 addresses.
    ipv6: bool,
    /// Page for removal requests.
    removal: &'static str,
}

const LISTS: [Blocklist; 3] = [
    Blocklist { zone: "zen.spamhaus.org", ipv6: true, removal: "https://check.spamhaus.org/" },
    Blocklist { zone: "bl.spamcop.net", ipv6: false, removal: "https://www.spamcop.net/bl.shtml" },
    Blocklist { zone: "b.barracudacentral.org", ipv6: false, removal: "https://www.barracudacentral.org/lookups" },
];

/// Result of a query about an address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListingResult {
    NotListed,
    Listed(Vec<Ipv4Addr>),
    Refused(Ipv4Addr),
    NoAnswer(String),
}

fn parse_answer(answer: Result<Vec<IpAddr>, String>) -> ListingResult {
    let codes: Vec<Ipv4Addr> = match answer {
        Err(reason) => return ListingResult::NoAnswer(reason),
        Ok(addresses) => {
            addresses.into_iter().filter_map(|ip| if let IpAddr::V4(v4) = ip { Some(v4) } else { None }).collect()
        }
    };
    match codes.iter().find(|code| code.octets().starts_with(&[127, 255, 255])) {
        Some(code) => ListingResult::Refused(*code),
        None if codes.is_empty() => ListingResult::NotListed,
        // RFC 5782 2.1: entries are in 127.0.0.0/8. Other addresses are forged by a resolver.
        None if codes.iter().any(|code| !code.is_loopback()) => {
            ListingResult::NoAnswer("a resolver forges responses".to_owned())
        }
        None => ListingResult::Listed(codes),
    }
}

async fn query_list(context: &CheckContext, list: &Blocklist, address: IpAddr) -> ListingResult {
    let name = format!("{}.{}", reversed_address(address), list.zone);
    match name.parse::<DomainName>() {
        Err(_) => ListingResult::NoAnswer(format!("{name} is not a DNS name")),
        Ok(name) => parse_answer(
            context.resolver.addresses(&name).await.map(|found| found.data).map_err(|error| error.to_string()),
        ),
    }
}

/// Queries every list about every address.
pub(super) async fn check_blocklists(context: &CheckContext) -> DoctorFinding {
    if context.uses_smarthost() {
        return DoctorFinding::skipped(NAME, "all mail is sent through the smarthost, so its address counts");
    }
    let sources = context.sources.public();
    if sources.is_empty() {
        return unknown_address_finding(NAME);
    }
    let [zen, spamcop, barracuda] = &LISTS;
    let (zen, spamcop, barracuda) = tokio::join!(
        query_addresses(context, zen, &sources),
        query_addresses(context, spamcop, &sources),
        query_addresses(context, barracuda, &sources)
    );
    let mut notes = Observations::default();
    for (list, control, listing) in [zen, spamcop, barracuda] {
        evaluate(&mut notes, list, &control, &listing);
    }
    notes.into_finding(NAME)
}

async fn query_addresses<'a>(
    context: &CheckContext,
    list: &'a Blocklist,
    sources: &[IpAddr],
) -> (&'a Blocklist, ListingResult, Vec<(IpAddr, ListingResult)>) {
    let control = query_list(context, list, TEST_ADDRESS).await;
    let mut listing = Vec::new();
    for &address in sources.iter().filter(|address| list.ipv6 || address.is_ipv4()) {
        listing.push((address, query_list(context, list, address).await));
    }
    (list, control, listing)
}

fn evaluate(notes: &mut Observations, list: &Blocklist, control: &ListingResult, listing: &[(IpAddr, ListingResult)]) {
    let zone = list.zone;
    let refusal_code = listing.iter().map(|(_, listing)| listing).chain([control]).find_map(|listing| match listing {
        ListingResult::Refused(code) => Some(*code),
        _ => None,
    });
    if let Some(code) = refusal_code {
        return notes.warn(format!("{zone} refuses queries ({code}): {}", refusal_text(code)), OWN_RESOLVER_ADVICE);
    }
    for (address, listing) in listing {
        match listing {
            ListingResult::Listed(codes) => notes.fail(
                format!("{address} is on {zone}: {}", listing_text(zone, codes)),
                // The PBL lists addresses that should not send mail; no abuse has been observed.
                if zone.ends_with("spamhaus.org") && codes.iter().all(|code| matches!(code.octets()[3], 10 | 11)) {
                    format!(
                        "Request removal, because this is a mail server: {} (with some providers, only they can \
                         request it)",
                        list.removal
                    )
                } else {
                    format!("Fix the cause before you request removal, or it will be listed again: {}", list.removal)
                },
            ),
            ListingResult::NoAnswer(reason) => notes.skip(format!("{zone} did not answer for {address}: {reason}")),
            ListingResult::NotListed if matches!(control, ListingResult::Listed(_)) => {
                notes.good(format!("{address} is not on {zone}"))
            }
            ListingResult::NotListed | ListingResult::Refused(_) => {
                notes.skip(format!("{zone} is not responding (not even for its test entry): look at {}", list.removal))
            }
        }
    }
}

/// Meaning of Spamhaus's error codes.
fn refusal_text(code: Ipv4Addr) -> &'static str {
    match code.octets()[3] {
        252 => "it does not know the name",
        254 => "the query was sent through a public resolver (see `dns`)",
        255 => "too many queries from this resolver",
        _ => "it does not serve this resolver",
    }
}

fn listing_text(zone: &str, codes: &[Ipv4Addr]) -> String {
    let spamhaus = |last: u8| match last {
        2 => "it sent spam (SBL)",
        3 => "its mail looks like spam, or its names change too often (CSS)",
        4..=7 => "it seems to be compromised: a bot or open proxy (XBL)",
        9 => "its network is controlled by criminals (DROP)",
        10 | 11 => "its provider declares that it sends no mail (PBL)",
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
    async fn blocklist_responses_are_interpreted() {
        for (zone, status, expected) in [
            (TESTS.to_owned(), CheckStatus::Ok, "203.0.113.5 is not on zen.spamhaus.org"),
            (String::new(), CheckStatus::Skipped, "not responding"),
            (format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 127.0.0.10"), CheckStatus::Failed, "(PBL)"),
            (format!("{TESTS}5.113.0.203.bl.spamcop.net. A 127.0.0.2"), CheckStatus::Failed, "reported"),
            (
                format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 127.255.255.254"),
                CheckStatus::Warning,
                "public resolver",
            ),
            (format!("{TESTS}5.113.0.203.zen.spamhaus.org. A 203.0.113.80"), CheckStatus::Ok, "forges responses"),
        ] {
            let dns = TestDns::new(&zone).await;
            let found = check_blocklists(&test_context(&dns, "source_addresses = [\"203.0.113.5\"]").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected), "{zone}: {found:#?}");
        }
    }

    #[tokio::test]
    async fn ipv6_is_asked_by_nibbles() {
        let listed = "5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.zen.spamhaus.org. A 127.0.0.3";
        let dns = TestDns::new(&format!("{TESTS}{listed}")).await;
        let found = check_blocklists(&test_context(&dns, "source_addresses = [\"2001:db8::5\"]").await).await;
        assert!(found.status == CheckStatus::Failed && found.found.contains("(CSS)"), "{found:#?}");
    }
}
