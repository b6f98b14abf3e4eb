//! A visit to a customer's site, as its script reports it, and the source under which it is counted.
//!
//! ```text
//! utm_source ─► its value · ad click ─► "ad" · referrer of another site ─► its host · else "(direct)"
//! ```

use jiff::Timestamp;
use message::percent;
use serde::{Deserialize, Serialize};

use super::signup_context::{AdClickIds, truncate};

/// Maximum length of a visitor id; the script generates 22 characters.
pub const VISITOR_CHARS_MAX: usize = 64;
/// Maximum length of a source label, in bytes: it is part of a storage key.
pub const SOURCE_BYTES_MAX: usize = 100;
/// Maximum length of a page URL that is parsed.
pub const URL_BYTES_MAX: usize = 2 * 1024;
/// Retention of visitors and their data: 13 months.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(396 * 24 * 3600);

/// Source of visits without any sign of origin.
pub const DIRECT: &str = "(direct)";
/// Source of ad clicks without `utm_source`.
pub const AD: &str = "ad";

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteVisit {
    /// The cookie `stx_vid`.
    pub visitor_id: String,
    /// Source under which the visit is counted.
    pub source: String,
    /// `utm_medium`.
    pub medium: Option<String>,
    /// `utm_campaign`.
    pub campaign: Option<String>,
    /// Path of the landing page, without its query.
    pub landing: String,
    pub clicks: AdClickIds,
    pub at: Timestamp,
}

/// Returns whether a text is a valid visitor id.
pub fn is_visitor_id(text: &str) -> bool {
    (8..=VISITOR_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Creates a visit from a page URL and its referrer. Returns `None` if the visitor id is invalid.
pub fn from_page(visitor_id: &str, url: &str, referrer: &str, at: Timestamp) -> Option<SiteVisit> {
    if !is_visitor_id(visitor_id) {
        return None;
    }
    let page = PageUrl::parse(url);
    let parameter = |name: &str| page.parameter(name, SOURCE_BYTES_MAX);
    let id = |name: &str| page.parameter(name, super::signup_context::VALUE_BYTES_MAX);
    let clicks = AdClickIds { gclid: id("gclid"), gbraid: id("gbraid"), wbraid: id("wbraid") };
    let from = PageUrl::parse(referrer).host.filter(|host| Some(host) != page.host.as_ref());
    let source = parameter("utm_source")
        .map(|source| source.to_lowercase())
        .or_else(|| (!clicks.is_empty()).then(|| AD.to_owned()))
        .or(from)
        .unwrap_or_else(|| DIRECT.to_owned());
    Some(SiteVisit {
        visitor_id: visitor_id.to_owned(),
        source,
        medium: parameter("utm_medium"),
        campaign: parameter("utm_campaign"),
        landing: truncate(page.path, SOURCE_BYTES_MAX),
        clicks,
        at,
    })
}

/// The parsed parts of a URL.
struct PageUrl<'a> {
    /// In lower case, without `www.`, port and user.
    host: Option<String>,
    path: &'a str,
    query: &'a str,
}

impl<'a> PageUrl<'a> {
    fn parse(url: &'a str) -> Self {
        let none = Self { host: None, path: "/", query: "" };
        if url.len() > URL_BYTES_MAX {
            return none;
        }
        let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
            return none;
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match location.find('/') {
            Some(slash) => location.split_at(slash),
            None => (location, "/"),
        };
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_lowercase();
        let host = host.strip_prefix("www.").unwrap_or(&host).to_owned();
        let is_host = |host: &String| {
            !host.is_empty()
                && host.len() <= SOURCE_BYTES_MAX
                && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'))
        };
        Self { host: Some(host).filter(is_host), path, query }
    }

    fn parameter(&self, name: &str, bytes_max: usize) -> Option<String> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        let value = value.replace('+', " ");
        let plain = percent::decode_lenient(&value);
        Some(truncate(plain.trim(), bytes_max)).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef";

    fn visit(url: &str, referrer: &str) -> SiteVisit {
        from_page(ID, url, referrer, Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn visits_are_assigned_to_sources() {
        for (url, referrer, source) in [
            ("https://a.example/", "", DIRECT),
            ("https://a.example/x", "https://www.a.example/y", DIRECT),
            ("https://a.example/", "https://www.Search.example/q?x=1", "search.example"),
            ("https://a.example/?utm_source=News+Letter", "https://b.example/", "news letter"),
            ("https://a.example/?utm_source=%C3%A4", "", "ä"),
            ("https://a.example/?gclid=abc", "https://www.search.example/", AD),
            ("https://a.example/?gclid=abc&utm_source=x", "", "x"),
            ("javascript:alert(1)", "data:text/html,x", DIRECT),
            ("https://a.example/", "https://<script>/", DIRECT),
            ("", "", DIRECT),
        ] {
            assert_eq!(visit(url, referrer).source, source, "{url} {referrer}");
        }
        let long = format!("https://a.example/?utm_source={}", "x".repeat(3_000));
        assert_eq!(visit(&long, "").source, DIRECT);
        let long = format!("https://a.example/?utm_source={}", "ä".repeat(300));
        assert!(visit(&long, "").source.len() <= SOURCE_BYTES_MAX);
    }

    #[test]
    fn parameters_of_a_visit_are_read() {
        let parsed = visit("https://u:p@a.example:8443/p/q?gbraid=b&utm_medium=cpc&utm_campaign=c%20d#f?gclid=no", "");
        assert_eq!((parsed.landing.as_str(), parsed.medium.as_deref()), ("/p/q", Some("cpc")));
        assert_eq!(parsed.campaign.as_deref(), Some("c d"));
        assert_eq!(parsed.clicks, AdClickIds { gbraid: Some("b".into()), ..AdClickIds::default() });
        for bad in ["", "short", "has space in it", "ümlaut-ümlaut", &"x".repeat(65)] {
            assert_eq!(from_page(bad, "", "", Timestamp::UNIX_EPOCH), None, "{bad}");
        }
    }
}
