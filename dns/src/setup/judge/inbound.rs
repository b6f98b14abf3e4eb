//! The MX record of a domain that receives through us: it is the only one there.

use super::{Case, Verdict, appended, is_appended};
use crate::setup::look::Data;
use crate::setup::text::{list, short};

pub(super) fn verdict(case: &Case<'_>) -> Verdict {
    let (name, value) = (case.name(), &case.record.value);
    let hosts: Vec<&str> = case
        .look
        .data
        .iter()
        .filter_map(|data| match data {
            Data::MailHost { host, .. } => Some(host.as_str()),
            _ => None,
        })
        .collect();
    let others: Vec<&str> = hosts.iter().copied().filter(|host| host != value).collect();
    let named = || list(&others.iter().take(5).map(|host| short(host)).collect::<Vec<String>>());
    if hosts.is_empty() {
        return case.absent();
    }
    if others.is_empty() {
        return Verdict::verified();
    }
    if let Some(found) = others.iter().find(|found| is_appended(found, value, case.domain)) {
        return appended(case, found);
    }
    if hosts.len() > others.len() {
        return Verdict::mismatch(format!(
            "Beside {value}, the MX records of {name} name {}, so that some of its mail goes there. Remove them.",
            named()
        ));
    }
    if let Some(alias) = case.look.aliases.first() {
        return case.in_the_way_of(alias);
    }
    if others.iter().all(|host| host.is_empty()) {
        return Verdict::conflict(format!(
            "The MX record of {name} says that it takes no mail (\"MX 0 .\", RFC 7505). Replace it by this one."
        ));
    }
    Verdict::conflict(format!(
        "The mail of {name} goes to {}. Replace those MX records only if all mail of {name} is to come here; \
         else receive at a subdomain of its own.",
        named()
    ))
}
