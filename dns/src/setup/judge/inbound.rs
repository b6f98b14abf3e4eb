//! The MX record of a domain that receives through us: it is the only one there.

use super::{RuleInput, RuleResult, is_zone_appended, zone_appended};
use crate::setup::look::RecordData;
use crate::setup::text::{join_list, short_value};

pub(super) fn check_mx(case: &RuleInput<'_>) -> RuleResult {
    let (name, value) = (case.name(), &case.record.value);
    let hosts: Vec<&str> = case
        .look
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
            "Beside {value}, the MX records of {name} name {}, so that some of its mail goes there. Remove them.",
            named()
        ));
    }
    if let Some(alias) = case.look.aliases.first() {
        return case.conflict_with_alias(alias);
    }
    if others.iter().all(|host| host.is_empty()) {
        return RuleResult::conflict(format!(
            "The MX record of {name} says that it takes no mail (\"MX 0 .\", RFC 7505). Replace it by this one."
        ));
    }
    RuleResult::conflict(format!(
        "The mail of {name} goes to {}. Replace those MX records only if all mail of {name} is to come here; \
         else receive at a subdomain of its own.",
        named()
    ))
}
