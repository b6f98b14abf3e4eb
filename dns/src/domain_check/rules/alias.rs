//! Checks a CNAME to a host of the service: the return path or a tracking host.

use super::{RuleInput, RuleResult, is_zone_appended, zone_appended};
use crate::domain_check::display_text::{join_list, short_value};
use crate::domain_check::record_set::{RecordData, RecordSet};

/// The targets of the CNAME records at a name; a valid name has at most one.
pub(in crate::domain_check) fn alias_targets(look: &RecordSet) -> impl Iterator<Item = &str> {
    look.data.iter().filter_map(|data| match data {
        RecordData::Alias(host) => Some(host.as_str()),
        _ => None,
    })
}

pub(super) fn check_alias(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let targets: Vec<&str> = alias_targets(case.look).collect();
    match targets.as_slice() {
        [] => missing_alias(case),
        [one] if one == value || case.answers.onward.contains(value) => RuleResult::verified(),
        [one] if *one == name => {
            RuleResult::mismatch(format!("The CNAME at {name} points to itself. Change its target to {value}."))
        }
        [one] if is_zone_appended(one, value, case.domain) => zone_appended(case, one),
        [one] => RuleResult::mismatch(format!(
            "The CNAME at {name} points to {}, not to {value}. Change its target to {value}.",
            short_value(one)
        )),
        several => RuleResult::mismatch(format!(
            "There are {} CNAME records at {name}, where only one is allowed. Keep the one to {value}.",
            several.len()
        )),
    }
}

fn missing_alias(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let beside = &case.answers.beside;
    let is_there = |kind: &str| beside.iter().any(|(there, _)| *there == kind);
    if beside.is_empty() || case.misplaced_at().is_some() {
        return case.explain_missing();
    }
    let host = |text: &str| text.trim().trim_end_matches('.').to_ascii_lowercase();
    let mut texts = beside.iter().flat_map(|(_, look)| look.texts());
    if texts.any(|text| host(text) == *value) {
        return RuleResult::conflict(format!(
            "The host was published at {name} as a TXT record, but a CNAME is required. Replace the TXT record with a \
             CNAME to {value}."
        ));
    }
    let kinds: Vec<String> = beside.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    let kinds = join_list(&kinds);
    let proxied = match is_there("A") || is_there("AAAA") {
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
