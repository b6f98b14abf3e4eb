//! Checks the DMARC record. Any valid record is accepted, whatever its policy (RFC 7489 6.3).

use super::{RuleInput, RuleResult};
use crate::domain_check::display_text::short_value;
use crate::domain_check::tag_list::{parse_tags, tag_value};

/// Returns whether a text is a DMARC record for receivers (RFC 7489 6.6.3).
pub(super) fn is_record(text: &str) -> bool {
    let first = text.split(';').next().unwrap_or_default();
    first.split_once('=').is_some_and(|(name, value)| name.trim() == "v" && value.trim() == "DMARC1")
}

pub(super) fn check_dmarc(case: &RuleInput<'_>) -> RuleResult {
    let name = case.name();
    let records: Vec<&str> = case.record_set.texts().filter(|text| is_record(text)).collect();
    match records.as_slice() {
        [] => missing_dmarc(case),
        [record] => match record_fault(record) {
            None => RuleResult::verified(),
            Some(why) => RuleResult::mismatch(format!(
                "The DMARC record at {name} is invalid: {why}. Fix it, or publish this \
                 record's value."
            )),
        },
        several => RuleResult::mismatch(format!(
            "There are {} DMARC records at {name}, so receivers ignore all of them (RFC 7489 6.6.3). Keep one.",
            several.len()
        )),
    }
}

fn missing_dmarc(case: &RuleInput<'_>) -> RuleResult {
    let name = case.name();
    if let Some(flawed) = case.flawed_text(is_record) {
        return flawed;
    }
    if case.record_set.texts().any(|text| text.to_ascii_lowercase().contains("dmarc1")) {
        return RuleResult::mismatch(format!(
            "The TXT record at {name} is meant to be a DMARC record, but does not begin with \"v=DMARC1;\", so \
             receivers ignore it. Publish this record's value."
        ));
    }
    let mut verdict = case.explain_missing();
    if let Some(error) = &mut verdict.error {
        error.push_str(" It is optional here, but large receivers require it.");
    }
    verdict
}

/// The mistake in a record, as the end of a sentence.
fn record_fault(record: &str) -> Option<String> {
    let tags = match parse_tags(record) {
        Ok(tags) => tags,
        Err(why) => return Some(why),
    };
    let policies = ["none", "quarantine", "reject"];
    let is_policy = |value: &str| policies.iter().any(|policy| value.eq_ignore_ascii_case(policy));
    let wrong =
        |name: &str, value: &str, wanted: &str| Some(format!("\"{name}={}\" should be {wanted}", short_value(value)));
    let choice = "\"none\", \"quarantine\" or \"reject\"";
    if tag_value(&tags, "p").is_none() {
        return Some(format!("it has no policy, \"p=\" with {choice}"));
    }
    for &(name, value) in &tags {
        let fault = match name {
            "p" | "sp" | "np" if !is_policy(value) => wrong(name, value, choice),
            "adkim" | "aspf" if !matches!(value, "r" | "s" | "R" | "S") => wrong(name, value, "\"r\" or \"s\""),
            "pct" if !value.parse::<u8>().is_ok_and(|percent| percent <= 100) => {
                wrong(name, value, "a number from 0 to 100")
            }
            "rua" | "ruf" if !value.split(',').all(is_report_address) => {
                wrong(name, value, "addresses of the form \"mailto:reports@example.com\", separated by commas")
            }
            _ => None,
        };
        if fault.is_some() {
            return fault;
        }
    }
    None
}

/// Returns whether a text is `mailto:` and an address, with an optional size limit after `!` (RFC 7489 6.2).
fn is_report_address(uri: &str) -> bool {
    let uri = uri.trim();
    match uri.split_at_checked("mailto:".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("mailto:") => {
            let address = rest.split_once('!').map_or(rest, |(address, _)| address);
            address.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'))
        }
        // Receivers ignore other schemes.
        _ => uri.split_once(':').is_some_and(|(scheme, _)| scheme == "https" || scheme == "http"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_dmarc_records_are_reported() {
        for good in [
            "v=DMARC1; p=none",
            "v=DMARC1;p=reject;sp=none;adkim=s;aspf=r;pct=50;rua=mailto:a@example.com!10m,mailto:b@example.com;",
            "v = DMARC1 ; p = Quarantine ; np=reject; psd=n; t=y; fo=1:d:s; ri=86400; rf=afrf",
        ] {
            assert!(is_record(good) && record_fault(good).is_none(), "{good}: {:?}", record_fault(good));
        }
        for (bad, why) in [
            ("v=DMARC1;", "no policy"),
            ("v=DMARC1; p=block", "\"p=block\" should be"),
            ("v=DMARC1; p=none, rua=mailto:a@example.com", "\"p=none, rua=mailto:a@example.com\" should be"),
            ("v=DMARC1; p=none; rua=a@example.com", "mailto:"),
            ("v=DMARC1; p=none; pct=all", "0 to 100"),
            ("v=DMARC1; p=none; adkim=strict", "\"r\" or \"s\""),
            ("v=DMARC1; p=none; p=none", "twice"),
            ("v=DMARC1; none", "not a tag"),
        ] {
            let found = record_fault(bad).unwrap_or_default();
            assert!(is_record(bad) && found.contains(why), "{bad}: {found}");
        }
        for other in ["v=dmarc1; p=none", "p=none; v=DMARC1", "DMARC1; p=none", ""] {
            assert!(!is_record(other), "{other}");
        }
    }
}
