//! A CNAME that leads to a host of ours: the return path, a tracking host.

use super::{RuleInput, RuleResult, is_zone_appended, zone_appended};
use crate::setup::look::{RecordData, RecordSet};
use crate::setup::text::{join_list, short_value};

/// The hosts that a name is an alias of; by rights one at most.
pub(in crate::setup) fn alias_targets(look: &RecordSet) -> impl Iterator<Item = &str> {
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
            RuleResult::mismatch(format!("The CNAME at {name} leads to itself. Let it lead to {value}."))
        }
        [one] if is_zone_appended(one, value, case.domain) => zone_appended(case, one),
        [one] => RuleResult::mismatch(format!(
            "The CNAME at {name} leads to {}, not to {value}. Change its target to {value}.",
            short_value(one)
        )),
        several => RuleResult::mismatch(format!(
            "There are {} CNAME records at {name}, where only one may be. Keep the one to {value}.",
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
            "The host was published at {name} as a TXT record, and a CNAME is wanted. Replace the TXT record by a \
             CNAME to {value}."
        ));
    }
    let kinds: Vec<String> = beside.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    let kinds = join_list(&kinds);
    let proxied = match is_there("A") || is_there("AAAA") {
        true => {
            " If you did publish the CNAME, your provider answers with addresses in its place: switch off its \
             proxy or flattening for this name."
        }
        false => "",
    };
    RuleResult::conflict(format!(
        "At {name} stand records of the type {kinds}, and a CNAME is wanted, beside which nothing can stand. \
         Remove them and publish a CNAME to {value}.{proxied}"
    ))
}
