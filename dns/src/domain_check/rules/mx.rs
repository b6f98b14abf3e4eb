//! Checks the MX record of a receiving domain, which must be the only one.

use super::{RuleInput, RuleResult, is_zone_appended, zone_appended};
use crate::domain_check::display_text::{join_list, short_value};
use crate::domain_check::record_set::RecordData;

pub(super) fn check_mx(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let hosts: Vec<&str> = case
        .record_set
        .data
        .iter()
        .filter_map(|data| match data {
            RecordData::MailHost { host, .. } => Some(host.as_str()),
            _ => None,
        })
        .collect();
    let others: Vec<&str> = hosts.iter().copied().filter(|host| host != value).collect();
    let named = || join_list(&others.iter().take(5).map(|host| short_value(host)).collect::<Vec<String>>());
    if hosts.is_empty() {
        return case.explain_missing();
    }
    if others.is_empty() {
        return RuleResult::verified();
    }
    if let Some(found) = others.iter().find(|found| is_zone_appended(found, value, case.domain)) {
        return zone_appended(case, found);
    }
    if hosts.len() > others.len() {
        return RuleResult::mismatch(format!(
            "Besides {value}, the MX records of {name} name {}, so some of its mail is delivered there. Remove them.",
            named()
        ));
    }
    if let Some(alias) = case.record_set.aliases.first() {
        return case.conflict_with_alias(alias);
    }
    if others.iter().all(|host| host.is_empty()) {
        return RuleResult::conflict(format!(
            "{name} has a null MX record (\"MX 0 .\", RFC 7505: it accepts no mail). Replace it with this one."
        ));
    }
    RuleResult::conflict(format!(
        "The mail of {name} is delivered to {}. Replace those MX records only if all its mail is to be received here; \
         otherwise receive on a separate subdomain.",
        named()
    ))
}
