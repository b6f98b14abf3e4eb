//! Derives the finding for a record from its observations, without lookups and without a clock.
//!
//! Each mistake has its own sentence: what is published, why it is wrong, what to change. There is one file per kind of
//! record; this one has the common parts.

pub(super) mod alias;
pub(crate) mod dkim;
mod dmarc;
mod mx;
mod ownership;
pub(super) mod spf;

use jiff::Timestamp;
use model::domain_setup::{DomainRecord, RecordFinding, RecordPurpose, RecordStatus};

use super::display_text::{display_value, repair_text, short_value};
use super::observation::RecordObservation;
use super::query::QueryError;
use super::record_set::{RecordData, RecordSet};

/// Maximum values that a finding shows.
const FOUND_MAX: usize = 10;

/// Returns the finding for a record of a domain.
///
/// A verified record can also have an error: it works, but should be changed.
pub fn apply_rules(domain: &str, record: &DomainRecord, answers: &RecordObservation, now: Timestamp) -> RecordFinding {
    let RuleResult { status, error, merged } = rule_result(domain, record, answers);
    RecordFinding { status, found: found_values(record, answers), error, merged, checked_at: now }
}

pub(super) fn record_status(domain: &str, record: &DomainRecord, answers: &RecordObservation) -> RecordStatus {
    rule_result(domain, record, answers).status
}

/// The status and the sentences of a finding.
struct RuleResult {
    status: RecordStatus,
    error: Option<String>,
    merged: Option<String>,
}

impl RuleResult {
    fn verified() -> Self {
        Self { status: RecordStatus::Verified, error: None, merged: None }
    }

    fn with_status(status: RecordStatus, sentence: String) -> Self {
        Self { status, error: Some(sentence), merged: None }
    }

    fn missing(sentence: String) -> Self {
        Self::with_status(RecordStatus::Missing, sentence)
    }

    fn mismatch(sentence: String) -> Self {
        Self::with_status(RecordStatus::Mismatch, sentence)
    }

    fn conflict(sentence: String) -> Self {
        Self::with_status(RecordStatus::Conflict, sentence)
    }

    fn pending(sentence: String) -> Self {
        Self::with_status(RecordStatus::Pending, sentence)
    }
}

/// A record and the records found at its name.
struct RuleInput<'a> {
    domain: &'a str,
    record: &'a DomainRecord,
    answers: &'a RecordObservation,
    record_set: &'a RecordSet,
}

fn rule_result(domain: &str, record: &DomainRecord, answers: &RecordObservation) -> RuleResult {
    let zone = answers.zone.as_deref().unwrap_or(domain);
    let record_set = match &answers.records {
        Ok(_) if answers.bogus => return no_answer(QueryError::Bogus, zone, &record.name),
        Ok(record_set) => record_set,
        Err(error) => return no_answer(*error, zone, &record.name),
    };
    let case = RuleInput { domain, record, answers, record_set };
    let verdict = match record.purpose {
        RecordPurpose::Ownership => ownership::check_ownership(&case),
        RecordPurpose::Dkim => dkim::check_dkim(&case),
        RecordPurpose::Spf => spf::check_spf(&case),
        RecordPurpose::Dmarc => dmarc::check_dmarc(&case),
        RecordPurpose::Inbound => mx::check_mx(&case),
        RecordPurpose::ReturnPath | RecordPurpose::Tracking => alias::check_alias(&case),
    };
    let is_done = matches!(verdict.status, RecordStatus::Verified | RecordStatus::Pending);
    match answers.wildcard && !is_done && case.misplaced_at().is_none() {
        true => RuleResult { merged: verdict.merged, ..case.wildcard_mismatch() },
        false => verdict,
    }
}

/// The result if the records at the name could not be queried.
fn no_answer(error: QueryError, zone: &str, name: &str) -> RuleResult {
    let retry_note = "We check again; if the problem persists, ask your DNS provider.";
    RuleResult::pending(match error {
        QueryError::TimedOut => {
            format!("The name servers of {zone} did not answer in time, so {name} could not be checked. {retry_note}")
        }
        QueryError::RateLimited => format!(
            "The name servers of {zone} are queried for many domains at the moment, so {name} could \
             not be checked. We check again."
        ),
        QueryError::Unreachable => {
            format!("No name server of {zone} could be reached, so {name} could not be checked. {retry_note}")
        }
        QueryError::ServerFailure => {
            format!("The name servers of {zone} fail (SERVFAIL) when queried for {name}. {retry_note}")
        }
        QueryError::Refused => format!(
            "The name servers of {zone} refuse to answer for {name} (REFUSED). Check that the NS records at \
             your registrar name the servers of the provider at which you publish."
        ),
        QueryError::Lame => format!(
            "The name servers that are named for {zone} do not serve it. Check that the NS records at your \
             registrar name the servers of the provider at which you publish."
        ),
        QueryError::Garbled => {
            format!("The name servers of {zone} return invalid answers for {name}. {retry_note}")
        }
        QueryError::Bogus => format!(
            "The DNSSEC signatures of {zone} are invalid (bogus), so validating resolvers see no \
             record at {name} at all. Have your DNS provider sign the zone again, or remove the DS record at \
             your registrar."
        ),
        QueryError::AliasLoop => {
            return RuleResult::mismatch(format!(
                "The CNAME at {name} is part of a loop, or leads through too many others. Remove it and publish the \
                 record itself."
            ));
        }
    })
}

impl RuleInput<'_> {
    fn name(&self) -> &str {
        &self.record.name
    }

    fn type_name(&self) -> &'static str {
        self.record.record_type.word()
    }

    fn zone_name(&self) -> &str {
        self.answers.zone.as_deref().unwrap_or(self.domain)
    }

    /// The name to enter at a provider that appends the zone.
    fn entry_name(&self) -> &str {
        let name = self.name();
        let labels = name.strip_suffix(self.zone_name()).map(|labels| labels.trim_end_matches('.'));
        match labels {
            Some("") => "@",
            Some(labels) => labels,
            None => name,
        }
    }

    /// Another name at which the record was published by mistake.
    fn misplaced_at(&self) -> Option<&str> {
        let is_match = |data: &RecordData| match (self.record.purpose, data) {
            (RecordPurpose::Ownership, RecordData::Text(text)) => text.trim() == self.record.value,
            (RecordPurpose::Dkim, RecordData::Text(text)) => dkim::is_same_key(text, &self.record.value),
            (RecordPurpose::Spf, RecordData::Text(text)) => super::spf_check::is_record(text),
            (RecordPurpose::Dmarc, RecordData::Text(text)) => dmarc::is_record(text),
            (_, RecordData::Alias(host) | RecordData::MailHost { host, .. }) => *host == self.record.value,
            _ => false,
        };
        let found = self.answers.misplaced.iter().find(|(_, record_set)| record_set.data.iter().any(is_match));
        found.map(|(name, _)| name.as_str())
    }

    /// Explains a missing record: it was published elsewhere, a CNAME is in its place, or it was not published.
    fn explain_missing(&self) -> RuleResult {
        let (name, kind, entry) = (self.name(), self.type_name(), self.entry_name());
        if let Some(misplaced_name) = self.misplaced_at() {
            let zone = self.zone_name();
            return RuleResult::missing(format!(
                "The record was published at {misplaced_name} instead of {name}: your provider appends {zone} to what \
                 you type. Move it: as its name, type \"{entry}\"."
            ));
        }
        if let Some(alias) = self.record_set.aliases.first() {
            return self.conflict_with_alias(alias);
        }
        if !self.answers.registered {
            return RuleResult::missing(format!(
                "The domain {} does not exist in the DNS: it is not registered, its registration expired, or \
                 your registrar has no name servers for it. Until that is fixed, none of its records can be found.",
                self.domain
            ));
        }
        RuleResult::missing(format!(
            "There is no {kind} record at {name}. Publish it at your DNS provider (name \"{entry}\" where the \
             provider adds {}).",
            self.zone_name()
        ))
    }

    /// A CNAME excludes other records at its name (RFC 1034 3.6.2), so these are not visible.
    fn conflict_with_alias(&self, alias: &str) -> RuleResult {
        let (name, kind) = (self.name(), self.type_name());
        if name == self.domain {
            return RuleResult::conflict(format!(
                "{name} itself is a CNAME to {alias}, which hides every other record at it, including this {kind} \
                 record. Replace the CNAME with A and AAAA records (or your provider's ALIAS) and publish this record \
                 next to them."
            ));
        }
        RuleResult::conflict(format!(
            "There is a CNAME to {alias} at {name}, where this {kind} record belongs, and a CNAME excludes other \
             records. Replace the CNAME with the {kind} record."
        ))
    }

    fn wildcard_mismatch(&self) -> RuleResult {
        let (name, kind) = (self.name(), self.type_name());
        let parent = name.split_once('.').map_or(self.domain, |(_, parent)| parent);
        let parent = if parent.ends_with(self.domain) { self.domain } else { parent };
        RuleResult::missing(format!(
            "There is no record at {name} itself: the answer comes from a wildcard (*.{parent}). Publish this {kind} \
             record at {name}; it takes precedence, and the wildcard can stay."
        ))
    }

    /// Finds a text that would be correct without quotes or backslashes that were published by mistake.
    fn flawed_text(&self, is_expected: impl Fn(&str) -> bool) -> Option<RuleResult> {
        let mut flaws = self.record_set.texts().filter_map(repair_text);
        let (_, flaw) = flaws.find(|(repaired, _)| is_expected(repaired))?;
        Some(RuleResult::mismatch(format!("{} {}", flaw.describe(self.name()), flaw.remedy())))
    }
}

/// The values found, for display. For SPF only the intended SPF records, since a domain can have many other texts.
fn found_values(record: &DomainRecord, answers: &RecordObservation) -> Vec<String> {
    let Ok(record_set) = &answers.records else { return Vec::new() };
    let is_relevant = |data: &&RecordData| match (record.purpose, data) {
        (RecordPurpose::Spf, RecordData::Text(text)) => {
            super::spf_check::is_record(text) || super::spf_check::is_almost_record(text)
        }
        _ => true,
    };
    let aliases = record_set.aliases.iter().take(1).map(|alias| format!("CNAME {alias}"));
    let mut data: Vec<&RecordData> = record_set.data.iter().filter(is_relevant).collect();
    // The expected value first, however many there are.
    data.sort_by_key(|data| !matches!(data, RecordData::Text(text) if *text == record.value));
    let conflicting = answers.conflicting.iter().flat_map(|(kind, record_set)| {
        record_set.data.iter().map(move |data| format!("{kind} {}", display_value(&data.to_string())))
    });
    let obsolete = answers.spf.obsolete.iter().map(|text| format!("SPF {}", display_value(text)));
    let data = data.into_iter().map(|data| display_value(&data.to_string()));
    aliases.chain(data).chain(conflicting).chain(obsolete).take(FOUND_MAX).collect()
}

/// Returns whether a provider appended the zone to a host that was entered without a trailing dot.
fn is_zone_appended(found: &str, wanted: &str, domain: &str) -> bool {
    let rest = found.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('.'));
    rest.is_some_and(|zone| domain == zone || domain.ends_with(&format!(".{zone}")) || zone.ends_with(domain))
}

fn zone_appended(case: &RuleInput<'_>, found: &str) -> RuleResult {
    let (name, value, kind) = (case.name(), &case.record.value, case.type_name());
    RuleResult::mismatch(format!(
        "The {kind} at {name} points to {}: your provider appended its zone to the host. Enter the host with a \
         trailing dot, \"{value}.\".",
        short_value(found)
    ))
}
