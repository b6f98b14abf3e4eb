//! Collects the observations from which the finding for one record is derived.
//!
//! First the records at its name are queried. If they are correct, only their DNSSEC signatures are checked. If not,
//! further queries find the cause: other names at which the record was published by mistake, records of other types at
//! its name, and a wildcard that answers for it.

use futures_util::future::join_all;
use hickory_proto::rr::RecordType as Wire;
use model::domain_setup::{DomainRecord, RecordPurpose, RecordStatus, RecordType};

use super::record_set::{OBSOLETE_SPF, RecordFetcher, RecordSet, RecordSetResult};
use super::spf_check::lookup_count::SpfLookups;
use super::{rules, spf_check};

/// Maximum CNAMEs followed from a name to the required host.
const CHAIN_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordObservation {
    /// The zone of the domain, if NS records lead to it.
    pub zone: Option<String>,
    /// False if the domain's top-level domain answers that it does not exist.
    pub registered: bool,
    /// The records of the wanted type at the record's name.
    pub records: RecordSetResult,
    /// For a CNAME: the further targets, if it leads to another CNAME.
    pub further_targets: Vec<String>,
    /// For a CNAME: records of other types at the name, which exclude a CNAME.
    pub conflicting: Vec<(&'static str, RecordSet)>,
    /// Names at which the record may have been published by mistake, with the records there.
    pub misplaced: Vec<(String, RecordSet)>,
    /// The answer at the name comes from a wildcard.
    pub wildcard: bool,
    /// Validating resolvers refuse the answer.
    pub bogus: bool,
    /// For SPF: the evaluation of the records.
    pub spf: SpfObservation,
}

/// The evaluation of a domain's SPF records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpfObservation {
    /// The lookups of the record, if there is one valid record.
    pub walk: Option<SpfLookups>,
    /// The existing record merged with the service's includes and its lookups, if a merge is needed.
    pub merged: Option<(String, SpfLookups)>,
    /// Records of the obsolete type SPF (99), which receivers ignore.
    pub obsolete: Vec<String>,
}

impl RecordObservation {
    /// Creates an observation of the records at the name only.
    pub fn from_records(records: RecordSetResult) -> Self {
        Self {
            zone: None,
            registered: true,
            records,
            further_targets: Vec::new(),
            conflicting: Vec::new(),
            misplaced: Vec::new(),
            wildcard: false,
            bogus: false,
            spf: SpfObservation::default(),
        }
    }

    /// Collects the observations for a record.
    pub(super) async fn observe(fetcher: &RecordFetcher<'_>, domain: &str, record: &DomainRecord) -> Self {
        let kind = wire_type(record.record_type);
        let mut answers = Self::from_records(fetcher.fetch(&record.name, kind).await);
        answers.registered = fetcher.registered;
        // The zone of an unregistered domain is its top-level domain, which is not worth showing.
        answers.zone = fetcher.zone().filter(|zone| zone.contains('.'));
        let Ok(records) = answers.records.clone() else { return answers };
        match record.purpose {
            RecordPurpose::Spf => answers.spf = SpfObservation::gather(fetcher, domain, record, &records).await,
            RecordPurpose::ReturnPath | RecordPurpose::Tracking => {
                answers.further_targets = alias_chain(fetcher, record, &records).await
            }
            _ => {}
        }
        if rules::record_status(domain, record, &answers) == RecordStatus::Verified {
            answers.bogus = fetcher.is_bogus(&record.name, kind).await;
        } else {
            answers.observe_causes(fetcher, domain, record).await;
        }
        answers
    }

    /// Collects what explains a mistake. A query without an answer only makes the explanation shorter.
    async fn observe_causes(&mut self, fetcher: &RecordFetcher<'_>, domain: &str, record: &DomainRecord) {
        let names = misplaced_names(domain, self.zone.as_deref(), record);
        let kind = wire_type(record.record_type);
        let misplaced = join_all(names.into_iter().map(async |name| {
            let record_set = fetcher.fetch(&name, kind).await.unwrap_or_default();
            (name, record_set)
        }));
        let conflicting = join_all(conflicting_types(record).iter().map(async |&(word, kind)| {
            let record_set = fetcher.fetch(&record.name, kind).await.unwrap_or_default();
            (word, kind, record_set)
        }));
        let (misplaced, conflicting) = tokio::join!(misplaced, conflicting);
        self.misplaced = misplaced.into_iter().filter(|(_, record_set)| !record_set.is_empty()).collect();
        // With a CNAME, the records belong to its target and not to the name.
        let conflicting: Vec<_> = conflicting
            .into_iter()
            .filter(|(_, _, record_set)| record_set.aliases.is_empty() && !record_set.is_empty())
            .collect();
        let at_name =
            self.records.as_ref().ok().filter(|record_set| !record_set.is_empty()).map(|record_set| (kind, record_set));
        let existing = at_name.or_else(|| conflicting.first().map(|(_, kind, record_set)| (*kind, record_set)));
        if let Some((kind, record_set)) = existing {
            self.wildcard = is_wildcard(fetcher, self.zone.as_deref(), &record.name, kind, record_set).await;
        }
        self.conflicting = conflicting.into_iter().map(|(word, _, record_set)| (word, record_set)).collect();
    }
}

impl SpfObservation {
    async fn gather(fetcher: &RecordFetcher<'_>, domain: &str, record: &DomainRecord, record_set: &RecordSet) -> Self {
        let mut answers = Self::default();
        let records: Vec<&str> = record_set.texts().filter(|text| spf_check::is_record(text)).collect();
        let includes = spf_check::include_mechanisms(&record.value);
        match records.as_slice() {
            [] => {
                let obsolete = fetcher.fetch(&record.name, OBSOLETE_SPF).await.unwrap_or_default();
                answers.obsolete = obsolete.texts().map(str::to_owned).collect();
                return answers;
            }
            [record_text] => {
                let Ok(terms) = spf_check::parse_strict(record_text) else { return answers };
                let walk = SpfLookups::count_lookups(fetcher, domain, terms).await;
                let complete = includes.iter().all(|our| walk.passes.contains(our));
                answers.walk = Some(walk);
                if complete {
                    return answers;
                }
            }
            _ => {}
        }
        if let Some(merged) = spf_check::record_merge::merge_records(&records, &includes)
            && let Ok(terms) = spf_check::parse_strict(&merged)
        {
            answers.merged = Some((merged, SpfLookups::count_lookups(fetcher, domain, terms).await));
        }
        answers
    }
}

fn wire_type(record_type: RecordType) -> Wire {
    match record_type {
        RecordType::Txt => Wire::TXT,
        RecordType::Cname => Wire::CNAME,
        RecordType::Mx => Wire::MX,
    }
}

/// Record types that exclude a CNAME at the same name.
fn conflicting_types(record: &DomainRecord) -> &'static [(&'static str, Wire)] {
    match record.record_type {
        RecordType::Cname => &[("A", Wire::A), ("AAAA", Wire::AAAA), ("MX", Wire::MX), ("TXT", Wire::TXT)],
        RecordType::Txt | RecordType::Mx => &[],
    }
}

/// Names at which a record is often published by mistake. Many providers append the zone to the entered name, so a full
/// name contains it twice. An entry for a subdomain without its own label is created in the parent zone. The latter is
/// checked only for values that are unique to this domain, because the parent domain may be set up too.
fn misplaced_names(domain: &str, zone: Option<&str>, record: &DomainRecord) -> Vec<String> {
    let name = &record.name;
    let mut names = vec![format!("{name}.{domain}")];
    if let Some(zone) = zone.filter(|zone| *zone != domain) {
        names.push(format!("{name}.{zone}"));
        let is_own = matches!(record.purpose, RecordPurpose::Ownership | RecordPurpose::Dkim);
        if let Some(labels) = name.strip_suffix(domain).filter(|labels| is_own && !labels.is_empty()) {
            names.push(format!("{labels}{zone}"));
        }
    }
    names
}

/// The targets after the first one, if a CNAME does not lead directly to its host.
async fn alias_chain(fetcher: &RecordFetcher<'_>, record: &DomainRecord, record_set: &RecordSet) -> Vec<String> {
    let mut chain: Vec<String> = Vec::new();
    let mut next = rules::alias::alias_targets(record_set).next().map(str::to_owned);
    while let Some(target) = next.take() {
        if target == record.value || chain.len() >= CHAIN_MAX {
            break;
        }
        let record_set = fetcher.fetch(&target, Wire::CNAME).await.unwrap_or_default();
        next = rules::alias::alias_targets(&record_set).next().map(str::to_owned);
        chain.extend(next.clone());
    }
    chain
}

/// Returns whether the answer for a name equals that of the wildcard next to it.
async fn is_wildcard(
    fetcher: &RecordFetcher<'_>,
    zone: Option<&str>,
    name: &str,
    kind: Wire,
    record_set: &RecordSet,
) -> bool {
    let Some((_, parent)) = name.split_once('.').filter(|_| zone != Some(name)) else { return false };
    let star = fetcher.fetch(&format!("*.{parent}"), kind).await.unwrap_or_default();
    let sorted = |record_set: &RecordSet| {
        let mut data = record_set.data.clone();
        data.sort();
        (record_set.aliases.clone(), data)
    };
    !star.is_empty() && sorted(&star) == sorted(record_set)
}
