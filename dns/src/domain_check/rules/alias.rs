//! Checks a CNAME to a host of the service: the return path or a tracking host.

use super::{RuleInput, RuleResult, is_zone_appended, zone_appended};
use crate::domain_check::display_text::{join_list, short_value};
use crate::domain_check::record_set::{RecordData, RecordSet};

/// The targets of the CNAME records at a name; a valid name has at most one.
pub(in crate::domain_check) fn alias_targets(record_set: &RecordSet) -> impl Iterator<Item = &str> {
    record_set.data.iter().filter_map(|data| match data {
        RecordData::Alias(host) => Some(host.as_str()),
        _ => None,
    })
}

pub(super) fn check_alias(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let targets: Vec<&str> = alias_targets(case.record_set).collect();
    match targets.as_slice() {
        [] => missing_alias(case),
        [target] if target == value || case.answers.further_targets.contains(value) => RuleResult::verified(),
        [target] if *target == name => {
            RuleResult::mismatch(format!("The CNAME at {name} points to itself. Change its target to {value}."))
        }
        [target] if is_zone_appended(target, value, case.domain) => zone_appended(case, target),
        [target] => RuleResult::mismatch(format!(
            "The CNAME at {name} points to {}, not to {value}. Change its target to {value}.",
            short_value(target)
        )),
        several => RuleResult::mismatch(format!(
            "There are {} CNAME records at {name}, where only one is allowed. Keep the one to {value}.",
            several.len()
        )),
    }
}

fn missing_alias(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let conflicting = &case.answers.conflicting;
    let exists = |kind: &str| conflicting.iter().any(|(found, _)| *found == kind);
    if conflicting.is_empty() || case.misplaced_at().is_some() {
        return case.explain_missing();
    }
    let host = |text: &str| text.trim().trim_end_matches('.').to_ascii_lowercase();
    let mut texts = conflicting.iter().flat_map(|(_, record_set)| record_set.texts());
    if texts.any(|text| host(text) == *value) {
        return RuleResult::conflict(format!(
            "The host was published at {name} as a TXT record, but a CNAME is required. Replace the TXT record with a \
             CNAME to {value}."
        ));
    }
    let kinds: Vec<String> = conflicting.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    let kinds = join_list(&kinds);
    let proxied = match exists("A") || exists("AAAA") {
        true => {
            " If you did publish the CNAME, your provider answers with addresses instead: turn off its \
             proxy or flattening for this name."
        }
        false => "",
    };
    RuleResult::conflict(format!(
        "{name} has records of type {kinds}, but a CNAME is required, which excludes other records. \
         Remove them and publish a CNAME to {value}.{proxied}"
    ))
}
