//! What is to be done so that the wanted records stand, given what stands already: a pure function.
//!
//! What stands already is skipped, so that applying again changes nothing. What is others' stays: other texts at the
//! same name, a DMARC policy, another key, an alias that leads elsewhere. Where ours and theirs cannot stand side by side it
//! is a conflict, told with what to do. The one record that both need is the SPF record, which is merged when the
//! customer says so (RFC 7208 3.2 allows one).

use mail::setup::{DomainRecord, RecordPurpose, RecordType};
use serde::Serialize;

use crate::sender_policy::LOOKUPS_MAX;
use crate::setup::judge::dkim::{self, KeyFault, KeyMismatch};
use crate::setup::spf;

/// The type of a record that stands at a provider: what can be in the way of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExistingRecordType {
    /// Text.
    Txt,
    /// An alias.
    Cname,
    /// A mail host.
    Mx,
    /// An address, of either family.
    Address,
}

/// A record that stands at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingRecord {
    /// Its full name, in lower case, without the dot at the end.
    pub name: String,
    /// Its type.
    pub kind: ExistingRecordType,
    /// Its value: a text unquoted and joined, a host in lower case without the dot at the end.
    pub value: String,
}

/// What the customer allows to be put together with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergePolicy {
    /// Our include into the domain's SPF record.
    pub spf: bool,
    /// Our mail host beside others: mail then goes to whichever has the lower preference.
    pub mx: bool,
}

/// What is done about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// It is added.
    Create,
    /// One that is there is replaced by it.
    Update,
    /// It is there already, or the domain has one of its own that does.
    Skip,
    /// Something is in its way; nothing is done.
    Conflict,
}

/// What is to be done about one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordChange {
    /// What is done.
    pub action: ChangeAction,
    /// The record as it will stand: for a merged SPF record with the merged value.
    pub record: DomainRecord,
    /// The value that it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Why, and in a conflict what to do about it: a plain sentence or two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is to be done for each wanted record, in their order.
#[must_use]
pub fn plan_changes(standing: &[ExistingRecord], wanted: &[DomainRecord], merge: MergePolicy) -> Vec<RecordChange> {
    wanted
        .iter()
        .map(|record| {
            let there: Vec<&ExistingRecord> =
                standing.iter().filter(|there| there.name.eq_ignore_ascii_case(&record.name)).collect();
            plan_change(&there, record, merge)
        })
        .collect()
}

/// `there` is what stands at the record's name.
fn plan_change(there: &[&ExistingRecord], record: &DomainRecord, merge: MergePolicy) -> RecordChange {
    if record.record_type == RecordType::Cname {
        return plan_cname(there, record);
    }
    if let Some(alias) = there.iter().find(|there| there.kind == ExistingRecordType::Cname) {
        let reason = format!(
            "{} is an alias of {}, and nothing can stand beside an alias; take the CNAME record away first",
            record.name, alias.value
        );
        return conflict(record, reason);
    }
    let texts: Vec<&str> =
        there.iter().filter(|there| there.kind == ExistingRecordType::Txt).map(|there| there.value.as_str()).collect();
    match record.purpose {
        RecordPurpose::Spf => plan_spf(&texts, record, merge.spf),
        RecordPurpose::Dmarc => plan_dmarc(&texts, record),
        RecordPurpose::Dkim => plan_dkim_key(&texts, record),
        RecordPurpose::Inbound => plan_mx(there, record, merge.mx),
        RecordPurpose::Ownership | RecordPurpose::ReturnPath | RecordPurpose::Tracking => {
            if texts.contains(&record.value.as_str()) { skip(record, None) } else { create(record) }
        }
    }
}

/// An alias stands alone (RFC 2181 10.1).
fn plan_cname(there: &[&ExistingRecord], record: &DomainRecord) -> RecordChange {
    match there.first() {
        None => create(record),
        Some(ExistingRecord { kind: ExistingRecordType::Cname, value, .. })
            if normalize_host(value) == normalize_host(&record.value) =>
        {
            skip(record, None)
        }
        Some(ExistingRecord { kind: ExistingRecordType::Cname, value, .. }) => conflict(
            record,
            format!(
                "{} is an alias of {value} already; take that CNAME record away if nothing else needs it",
                record.name
            ),
        ),
        Some(_) => conflict(
            record,
            format!(
                "{} has other records, and an alias cannot stand beside them; take them away if nothing needs them",
                record.name
            ),
        ),
    }
}

fn plan_spf(texts: &[&str], record: &DomainRecord, merge: bool) -> RecordChange {
    let policies: Vec<&str> = texts.iter().copied().filter(|text| spf::is_record(text)).collect();
    let existing = match *policies.as_slice() {
        [] => return create(record),
        [one] => one,
        _ => {
            let reason = format!(
                "{} has {} SPF records, and with more than one none counts (RFC 7208 3.2); \
                 make one of them first",
                record.name,
                policies.len()
            );
            return conflict(record, reason);
        }
    };
    let terms = match spf::parse_strict(existing) {
        Ok(terms) => terms,
        Err(why) => {
            return conflict(record, format!("the domain's SPF record cannot be read: {why}; mend it first"));
        }
    };
    let ours = spf::include_mechanisms(&record.value);
    if ours.iter().all(|our| spf::passes_include(&terms, our)) {
        return skip(record, Some("the domain's SPF record holds ours".to_owned()));
    }
    let Some(merged) = spf::merge::merge_records(&[existing], &ours) else {
        return conflict(record, "the domain's SPF record cannot be read; mend it first".to_owned());
    };
    let lookups = spf::parse_strict(&merged).map_or(0, |terms| terms.lookups());
    let merged = DomainRecord { value: merged, ..record.clone() };
    if lookups > LOOKUPS_MAX {
        let reason = format!(
            "the SPF record would ask the DNS {lookups} times, and {LOOKUPS_MAX} are allowed (RFC 7208 4.6.4); \
             take away what no longer sends for the domain"
        );
        return conflict(record, reason);
    }
    if merge {
        let reason = "our part is put into the domain's SPF record, the rest of it stays".to_owned();
        return RecordChange {
            action: ChangeAction::Update,
            record: merged,
            replaces: Some(existing.to_owned()),
            reason: Some(reason),
        };
    }
    let reason = "the domain has an SPF record, and it may have one only; \
                  allow merging, or replace it by this value"
        .to_owned();
    conflict(&merged, reason)
}

/// What the domain does with mail that fails is its owner's word: it stays whatever it says.
fn plan_dmarc(texts: &[&str], record: &DomainRecord) -> RecordChange {
    // RFC 7489 6.6.3: texts that do not begin so are not policies.
    match texts.iter().find(|text| text.trim_start().to_ascii_lowercase().starts_with("v=dmarc1")) {
        None => create(record),
        Some(policy) if **policy == record.value => skip(record, None),
        Some(_) => skip(record, Some("the domain has a DMARC policy of its own, which stays".to_owned())),
    }
}

/// One name has one key (RFC 6376 3.6.2.2). What the inspection calls right stays as it is, and what it calls wrong is
/// replaced; only a whole key that is not ours stays, for somebody may be signing with it.
fn plan_dkim_key(texts: &[&str], record: &DomainRecord) -> RecordChange {
    let text = match *texts {
        [] => return create(record),
        [text] => text,
        _ => {
            let reason = format!(
                "{} has {} texts, and a selector has one key only; take away those that are not this one",
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
            format!("{sentence} Take it away if nobody signs with it any more, or use another selector."),
        ),
        Err(KeyMismatch { sentence, .. }) => RecordChange {
            action: ChangeAction::Update,
            record: record.clone(),
            replaces: Some(text.to_owned()),
            reason: Some(sentence),
        },
    }
}

fn plan_mx(there: &[&ExistingRecord], record: &DomainRecord, merge: bool) -> RecordChange {
    let hosts: Vec<&str> =
        there.iter().filter(|there| there.kind == ExistingRecordType::Mx).map(|there| there.value.as_str()).collect();
    let ours = normalize_host(&record.value);
    if hosts.iter().any(|there| normalize_host(there) == ours) {
        return skip(record, None);
    }
    if hosts.iter().any(|there| normalize_host(there).is_empty()) {
        let reason = format!(
            "{} says that it takes no mail (a null MX, RFC 7505), which stands alone; take it away first",
            record.name
        );
        return conflict(record, reason);
    }
    match hosts.first() {
        None => create(record),
        Some(_) if merge => RecordChange {
            reason: Some(format!("put beside {}; mail goes to the host with the lowest preference", hosts.join(", "))),
            ..create(record)
        },
        Some(other) => conflict(
            record,
            format!(
                "the mail of {} goes to {other}; receive on a subdomain of its own, or take the MX record away",
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
