//! Detects whether a person or a machine fetched a pixel or link.
//!
//! Machines fetch mail content before and beside people: gateways fetch every link to check its target, and image
//! proxies fetch every image to hide the reader. Their fetches are recorded with a flag, but do not count as opens or
//! clicks. The rules, in order:
//!
//! - HEAD, a prefetch, or no user agent: a machine.
//! - Apple Mail Privacy Protection fetches all images of all mail, read or not, with the user agent `Mozilla/5.0`: a
//!   machine; proxy `apple_mpp` if it is in Apple's network.
//! - Gmail fetches an image through its proxy when the message is opened: a person, proxy `gmail`. Yahoo does the
//!   same. Gmail's prefetcher has a user agent of its own: a machine.
//! - Security gateways, link previews and programs, by user agent or network: a machine.
//! - A fetch before delivery, or sooner after it than a person can act ([`PERSON_OPENS_AFTER`],
//!   [`PERSON_CLICKS_AFTER`]): the recipient's own server, which scans the message before accepting it.
//!
//! A scanner that imitates a browser and waits counts as a person, because it cannot be distinguished.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use message::word_list;
use serde::{Deserialize, Serialize};

use crate::cidr::IpNetwork;

/// Minimum time between delivery and an open by a person.
pub const PERSON_OPENS_AFTER: Duration = Duration::from_secs(1);
/// Minimum time between delivery and a click by a person.
pub const PERSON_CLICKS_AFTER: Duration = Duration::from_secs(2);

/// A proxy of a mail client between the reader and this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageProxy {
    /// Apple Mail Privacy Protection.
    AppleMpp,
    Gmail,
}

/// Properties of a request for a pixel or a link.
#[derive(Debug, Clone, Copy)]
pub struct FetchSignals<'a> {
    pub ip: IpAddr,
    /// The User-Agent field; empty if missing.
    pub user_agent: &'a str,
    /// A HEAD request, or one that declares itself a prefetch.
    pub is_prefetch: bool,
    /// A link rather than the pixel.
    pub is_click: bool,
    /// Time since delivery; `None` before delivery.
    pub since_delivery: Option<Duration>,
}

/// Result of the detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectedVisitor {
    /// A machine rather than a person.
    pub machine: bool,
    pub proxy: Option<ImageProxy>,
}

/// The complete user agent of Apple's proxy.
const APPLE_AGENT: &str = "Mozilla/5.0";
/// Suffix of the user agent of Gmail's prefetcher; no browser has it.
const GMAIL_PREFETCH: &str = "Edge/12.246 Mozilla/5.0";

/// Apple's networks.
const APPLE: &[&str] = &["17.0.0.0/8", "2620:149::/32", "2a01:b740::/32"];

/// Networks of mail security services, as published by them.
const SCANNERS: &[&str] = &[
    // Barracuda
    "64.235.144.0/20",
    "209.222.80.0/21",
    // Broadcom (MessageLabs)
    "67.219.240.0/20",
    "85.158.136.0/21",
    "195.245.230.0/23",
    "216.82.240.0/20",
    // Mimecast
    "185.58.84.0/22",
    "205.139.110.0/23",
    // Proofpoint
    "67.231.144.0/20",
    "148.163.128.0/19",
    "205.220.160.0/19",
];

/// Parts of the user agents of machines that fetch every link, in lower case.
static CRAWLERS: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_list::entries(include_str!("bot_detection/crawlers.txt")).collect());

/// Parts of the user agents of programs that a person runs, in lower case.
static PROGRAMS: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_list::entries(include_str!("bot_detection/programs.txt")).collect());

static APPLE_NETWORKS: LazyLock<Vec<IpNetwork>> = LazyLock::new(|| networks(APPLE));
static SCANNER_NETWORKS: LazyLock<Vec<IpNetwork>> = LazyLock::new(|| networks(SCANNERS));

fn networks(texts: &[&str]) -> Vec<IpNetwork> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn is_in(networks: &[IpNetwork], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(ip))
}

/// Detects who sent a request.
pub fn detect_visitor(request: &FetchSignals<'_>) -> DetectedVisitor {
    let agent = request.user_agent.trim();
    let proxy = detect_proxy(agent, request.ip);
    let bare = agent.is_empty() || agent == APPLE_AGENT || agent.ends_with(GMAIL_PREFETCH);
    let machine = request.is_prefetch || bare || is_too_soon(request) || is_known_machine(agent, request.ip);
    DetectedVisitor { machine, proxy }
}

fn detect_proxy(agent: &str, ip: IpAddr) -> Option<ImageProxy> {
    if agent == APPLE_AGENT && is_in(&APPLE_NETWORKS, ip) {
        Some(ImageProxy::AppleMpp)
    } else if agent.contains("GoogleImageProxy") || agent.ends_with(GMAIL_PREFETCH) {
        Some(ImageProxy::Gmail)
    } else {
        None
    }
}

fn is_too_soon(request: &FetchSignals<'_>) -> bool {
    let person = if request.is_click { PERSON_CLICKS_AFTER } else { PERSON_OPENS_AFTER };
    request.since_delivery.is_none_or(|since| since < person)
}

fn is_known_machine(agent: &str, ip: IpAddr) -> bool {
    let lower = agent.to_ascii_lowercase();
    PROGRAMS.iter().any(|word| lower.contains(word)) || is_crawler(agent, ip)
}

/// Returns whether the client fetches all links that it finds, by user agent or network. Programs that a person runs,
/// such as curl, do not count.
pub fn is_crawler(user_agent: &str, ip: IpAddr) -> bool {
    let agent = user_agent.to_ascii_lowercase();
    CRAWLERS.iter().any(|word| agent.contains(word)) || is_in(&SCANNER_NETWORKS, ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    const GMAIL: &str = "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)";
    const YAHOO: &str = "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html";
    const PREFETCH: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                            Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0";
    const CUBOT: &str = "Mozilla/5.0 (Linux; Android 13; CUBOT X70) AppleWebKit/537.36 (KHTML, like Gecko) \
                         Chrome/130.0.0.0 Mobile Safari/537.36";

    fn request<'a>(user_agent: &'a str, ip: &str) -> FetchSignals<'a> {
        let since_delivery = Some(Duration::from_secs(60));
        FetchSignals { ip: ip.parse().unwrap(), user_agent, is_prefetch: false, is_click: false, since_delivery }
    }

    #[test]
    fn bots_are_recognised_by_agent_and_network() {
        let apple = Some(ImageProxy::AppleMpp);
        for (agent, ip, machine, proxy) in [
            (FIREFOX, "192.0.2.1", false, None),
            (CUBOT, "2001:db8::1", false, None),
            ("Mozilla/5.0", "17.58.1.2", true, apple),
            ("Mozilla/5.0", "::ffff:17.58.1.2", true, apple),
            ("Mozilla/5.0", "192.0.2.1", true, None),
            (FIREFOX, "17.58.1.2", false, None),
            (GMAIL, "66.249.84.1", false, Some(ImageProxy::Gmail)),
            (PREFETCH, "66.249.84.1", true, Some(ImageProxy::Gmail)),
            (YAHOO, "87.248.114.1", false, None),
            (FIREFOX, "67.231.150.1", true, None),
            ("", "192.0.2.1", true, None),
            ("curl/8.9.1", "192.0.2.1", true, None),
            ("Barracuda Sentinel (EE)", "192.0.2.1", true, None),
            ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "192.0.2.1", true, None),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "192.0.2.1", true, None),
        ] {
            assert_eq!(detect_visitor(&request(agent, ip)), DetectedVisitor { machine, proxy }, "{agent} {ip}");
        }
    }

    #[test]
    fn bots_are_recognised_by_request_and_time() {
        let person = request(FIREFOX, "192.0.2.1");
        let since = |ms: u64| Some(Duration::from_millis(ms));
        assert!(detect_visitor(&FetchSignals { is_prefetch: true, ..person }).machine);
        assert!(detect_visitor(&FetchSignals { since_delivery: None, ..person }).machine);
        for (is_click, ms, machine) in
            [(false, 999, true), (false, 1_000, false), (true, 1_999, true), (true, 2_000, false)]
        {
            let request = FetchSignals { is_click, since_delivery: since(ms), ..person };
            assert_eq!(detect_visitor(&request).machine, machine, "{is_click} {ms}");
        }
    }

    #[test]
    fn tables_are_valid_and_match_real_agents() {
        assert_eq!(networks(APPLE).len(), APPLE.len());
        assert_eq!(networks(SCANNERS).len(), SCANNERS.len());
        assert!(CRAWLERS.iter().chain(PROGRAMS.iter()).all(|word| *word == word.to_ascii_lowercase()));
        let client = "192.0.2.1".parse().unwrap();
        assert!(is_crawler("Googlebot/2.1 (+http://www.google.com/bot.html)", client));
        assert!(is_crawler(FIREFOX, "67.231.150.1".parse().unwrap()));
        assert!(
            !["", "curl/8.9.1", "Mozilla/5.0 HeadlessChrome/140.0", FIREFOX, CUBOT]
                .into_iter()
                .any(|agent| is_crawler(agent, client))
        );
    }
}
