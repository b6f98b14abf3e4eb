//! Computes the changes that publish the wanted records, given the existing records of a zone. A pure function.
//!
//! - Records that already exist are skipped, so that applying the plan again changes nothing.
//! - Records of others stay: other texts at the same name, a DMARC policy, another key, an alias to another target.
//! - A wanted record that cannot coexist with an existing one is a conflict; its reason explains what to do.
//! - The SPF record is shared: it is merged if the customer permits it, because a domain has only one (RFC 7208 3.2).

use model::domain_setup::{DomainRecord, RecordPurpose, RecordType};
use serde::Serialize;

use crate::domain_check::rules::dkim::{self, KeyFault, KeyMismatch};
use crate::domain_check::spf_check;
use crate::spf::LOOKUPS_MAX;

/// The types of existing records that can conflict with a wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExistingRecordType {
    Txt,
    Cname,
    Mx,
    /// An A or AAAA record.
    Address,
}

/// A record that exists at a DNS provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingRecord {
    /// Full name in lower case, without the trailing dot.
    pub name: String,
    pub kind: ExistingRecordType,
    /// The value: text unquoted and joined, a host in lower case without the trailing dot.
    pub value: String,
}

/// The existing records with which the customer permits a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergePolicy {
    /// Add the service's include to the domain's SPF record.
    pub spf: bool,
    /// Add the service's MX next to others. Mail is then delivered to the host with the lowest preference.
    pub mx: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    Create,
    /// Replaces an existing record.
    Update,
    /// It exists already, or the domain has an equivalent of its own.
    Skip,
    /// An existing record prevents it; nothing is changed.
    Conflict,
}

/// The planned change of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordChange {
    pub action: ChangeAction,
    /// The record after the change, for SPF with the merged value.
    pub record: DomainRecord,
    /// The value that is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The reason, and for a conflict what to do about it: one or two sentences for the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The change for each wanted record, in their order.
pub fn plan_changes(zone_records: &[ExistingRecord], wanted: &[DomainRecord], merge: MergePolicy) -> Vec<RecordChange> {
    wanted
        .iter()
        .map(|record| {
            let existing: Vec<&ExistingRecord> =
                zone_records.iter().filter(|existing| existing.name.eq_ignore_ascii_case(&record.name)).collect();
            plan_change(&existing, record, merge)
        })
        .collect()
}

/// Plans one record, given the existing records at its name.
fn plan_change(existing: &[&ExistingRecord], record: &DomainRecord, merge: MergePolicy) -> RecordChange {
    if record.record_type == RecordType::Cname {
        return plan_cname(existing, record);
    }
    if let Some(alias) = existing.iter().find(|existing| existing.kind == ExistingRecordType::Cname) {
        let reason = format!(
            "{} has a CNAME record to {}, which excludes any other record; remove the CNAME record first",
            record.name, alias.value
        );
        return conflict(record, reason);
    }
    let texts: Vec<&str> = existing
        .iter()
        .filter(|existing| existing.kind == ExistingRecordType::Txt)
        .map(|existing| existing.value.as_str())
        .collect();
    match record.purpose {
        RecordPurpose::Spf => plan_spf(&texts, record, merge.spf),
        RecordPurpose::Dmarc => plan_dmarc(&texts, record),
        RecordPurpose::Dkim => plan_dkim_key(&texts, record),
        RecordPurpose::Inbound => plan_mx(existing, record, merge.mx),
        RecordPurpose::Ownership | RecordPurpose::ReturnPath | RecordPurpose::Tracking => {
            if texts.contains(&record.value.as_str()) { skip(record, None) } else { create(record) }
        }
    }
}

/// Plans a CNAME, which cannot coexist with other records (RFC 2181 10.1).
fn plan_cname(existing: &[&ExistingRecord], record: &DomainRecord) -> RecordChange {
    match existing.first() {
        None => create(record),
        Some(ExistingRecord { kind: ExistingRecordType::Cname, value, .. })
            if normalize_host(value) == normalize_host(&record.value) =>
        {
            skip(record, None)
        }
        Some(ExistingRecord { kind: ExistingRecordType::Cname, value, .. }) => conflict(
            record,
            format!("{} already has a CNAME record to {value}; remove it if nothing else needs it", record.name),
        ),
        Some(_) => conflict(
            record,
            format!(
                "{} has other records, which exclude a CNAME record; remove them if nothing needs them",
                record.name
            ),
        ),
    }
}

fn plan_spf(texts: &[&str], record: &DomainRecord, merge: bool) -> RecordChange {
    let policies: Vec<&str> = texts.iter().copied().filter(|text| spf_check::is_record(text)).collect();
    let existing = match *policies.as_slice() {
        [] => return create(record),
        [policy] => policy,
        _ => {
            let reason = format!(
                "{} has {} SPF records, which makes all of them invalid (RFC 7208 3.2); \
                 merge them into one first",
                record.name,
                policies.len()
            );
            return conflict(record, reason);
        }
    };
    let terms = match spf_check::parse_strict(existing) {
        Ok(terms) => terms,
        Err(why) => {
            return conflict(record, format!("the domain's SPF record is invalid: {why}; fix it first"));
        }
    };
    let includes = spf_check::include_mechanisms(&record.value);
    if includes.iter().all(|our| spf_check::passes_include(&terms, our)) {
        return skip(record, Some("the domain's SPF record already includes ours".to_owned()));
    }
    let Some(merged) = spf_check::record_merge::merge_records(&[existing], &includes) else {
        return conflict(record, "the domain's SPF record is invalid; fix it first".to_owned());
    };
    let lookups = spf_check::parse_strict(&merged).map_or(0, |terms| terms.lookups());
    let merged = DomainRecord { value: merged, ..record.clone() };
    if lookups > LOOKUPS_MAX {
        let reason = format!(
            "the SPF record would need {lookups} DNS lookups, but only {LOOKUPS_MAX} are allowed (RFC 7208 4.6.4); \
             remove services that no longer send for the domain"
        );
        return conflict(record, reason);
    }
    if merge {
        let reason = "our include is added to the domain's SPF record; the rest is unchanged".to_owned();
        return RecordChange {
            action: ChangeAction::Update,
            record: merged,
            replaces: Some(existing.to_owned()),
            reason: Some(reason),
        };
    }
    let reason =
        "the domain already has an SPF record, but only one is allowed; allow merging, or replace it with this value"
            .to_owned();
    conflict(&merged, reason)
}

/// An existing DMARC policy stays, whatever it is: the domain's owner decides.
fn plan_dmarc(texts: &[&str], record: &DomainRecord) -> RecordChange {
    // RFC 7489 6.6.3: other texts are not DMARC records.
    match texts.iter().find(|text| text.trim_start().to_ascii_lowercase().starts_with("v=dmarc1")) {
        None => create(record),
        Some(policy) if **policy == record.value => skip(record, None),
        Some(_) => skip(record, Some("the domain has its own DMARC policy, which is left unchanged".to_owned())),
    }
}

/// A selector has one key (RFC 6376 3.6.2.2). A record that the domain check accepts is skipped, and one that it
/// rejects is replaced. A valid key that differs stays, because someone may be signing with it.
fn plan_dkim_key(texts: &[&str], record: &DomainRecord) -> RecordChange {
    let text = match *texts {
        [] => return create(record),
        [text] => text,
        _ => {
            let reason = format!(
                "{} has {} TXT records, and a selector can have only one; remove the others",
                record.name,
                texts.len()
            );
            return conflict(record, reason);
        }
    };
    match dkim::compare_key(&record.name, text, &record.value) {
        Ok(()) => skip(record, None),
        Err(KeyMismatch { fault: KeyFault::OtherKey, sentence }) => conflict(
            record,
            format!("{sentence} Remove it if nothing signs with it any longer, or use another selector."),
        ),
        Err(KeyMismatch { sentence, .. }) => RecordChange {
            action: ChangeAction::Update,
            record: record.clone(),
            replaces: Some(text.to_owned()),
            reason: Some(sentence),
        },
    }
}

fn plan_mx(existing: &[&ExistingRecord], record: &DomainRecord, merge: bool) -> RecordChange {
    let hosts: Vec<&str> = existing
        .iter()
        .filter(|existing| existing.kind == ExistingRecordType::Mx)
        .map(|existing| existing.value.as_str())
        .collect();
    let wanted_host = normalize_host(&record.value);
    if hosts.iter().any(|existing| normalize_host(existing) == wanted_host) {
        return skip(record, None);
    }
    if hosts.iter().any(|existing| normalize_host(existing).is_empty()) {
        let reason = format!(
            "{} has a null MX record (RFC 7505: it accepts no mail), which excludes others; remove it first",
            record.name
        );
        return conflict(record, reason);
    }
    match hosts.first() {
        None => create(record),
        Some(_) if merge => RecordChange {
            reason: Some(format!(
                "added next to {}; mail is delivered to the host with the lowest preference",
                hosts.join(", ")
            )),
            ..create(record)
        },
        Some(other) => conflict(
            record,
            format!(
                "the mail of {} is delivered to {other}; receive on a separate subdomain, or remove the MX record",
                record.name
            ),
        ),
    }
}

fn normalize_host(text: &str) -> String {
    text.trim_end_matches('.').to_ascii_lowercase()
}

fn create(record: &DomainRecord) -> RecordChange {
    RecordChange { action: ChangeAction::Create, record: record.clone(), replaces: None, reason: None }
}

fn skip(record: &DomainRecord, reason: Option<String>) -> RecordChange {
    RecordChange { action: ChangeAction::Skip, record: record.clone(), replaces: None, reason }
}

fn conflict(record: &DomainRecord, reason: String) -> RecordChange {
    RecordChange { action: ChangeAction::Conflict, record: record.clone(), replaces: None, reason: Some(reason) }
}
