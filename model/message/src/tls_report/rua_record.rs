//! The TLS reporting record, by which a domain requests reports (RFC 8460 3).

use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::percent;

/// Maximum number of destinations per record; further ones are ignored.
const DESTINATIONS_MAX: usize = 5;
/// Maximum length of a URI; longer ones are ignored.
const URI_BYTES_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportDestination {
    /// An email address.
    Mail(Address),
    /// A web server: `https://…`.
    Web(String),
}

/// Parses the TXT records at `_smtp._tls.{domain}` into destinations. The result is empty if there is no record, or
/// more than one (RFC 8460 3).
pub fn report_destinations(texts: &[String]) -> Vec<ReportDestination> {
    let mut records = texts.iter().filter_map(|text| record_fields(text));
    let (Some(fields), None) = (records.next(), records.next()) else { return Vec::new() };
    let rua = fields.split(';').find_map(|field| {
        let (key, value) = field.split_once('=')?;
        (key.trim() == "rua").then_some(value)
    });
    let mut found = Vec::new();
    for uri in rua.unwrap_or_default().split(',').filter_map(|uri| parse_destination(uri.trim())) {
        if found.len() < DESTINATIONS_MAX && !found.contains(&uri) {
            found.push(uri);
        }
    }
    found
}

fn record_fields(text: &str) -> Option<&str> {
    let (version, rest) = text.split_once(';')?;
    (version.trim_end() == "v=TLSRPTv1").then_some(rest)
}

fn parse_destination(uri: &str) -> Option<ReportDestination> {
    if uri.len() > URI_BYTES_MAX {
        return None;
    }
    let (scheme, rest) = uri.split_once(':')?;
    if scheme.eq_ignore_ascii_case("https") {
        return Some(ReportDestination::Web(uri.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("mailto") {
        return None;
    }
    let address = rest.split('?').next().unwrap_or_default();
    // `mailto` encodes commas, exclamation marks and semicolons.
    percent::decode(address)?.parse().ok().map(ReportDestination::Mail)
}
