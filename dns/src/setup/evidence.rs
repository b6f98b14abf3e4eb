//! What is gathered about one record before it is judged.
//!
//! First what stands at its name. When that is right, only whether its signatures hold; when it is not,
//! where else it may have been published by mistake, what stands in its place, and whether a wildcard
//! answers for it: questions that are asked only to say what to do.

use futures_util::future::join_all;
use hickory_proto::rr::RecordType as Wire;
use mail::setup::{DomainRecord, RecordPurpose, RecordStatus, RecordType};

use super::judge;
use super::look::{OBSOLETE_SPF, RecordFetcher, RecordSet, RecordSetResult};
use super::spf;
use super::spf::walk::SpfLookups;

/// Aliases from a name to the host that it should lead to.
const CHAIN_MAX: usize = 8;

/// What was seen of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordObservation {
    /// The zone that the domain is in, where NS records lead to it.
    pub zone: Option<String>,
    /// Whether the domain exists, as far as its top level says.
    pub registered: bool,
    /// What stands at the record's name, of its type.
    pub here: RecordSetResult,
    /// Where the alias at the name leads on to, step by step: for an alias.
    pub onward: Vec<String>,
    /// What stands there of types that keep an alias from being published: for an alias.
    pub beside: Vec<(&'static str, RecordSet)>,
    /// Names at which the record may have been published by mistake, and what stands there.
    pub elsewhere: Vec<(String, RecordSet)>,
    /// What answers at the name comes from a wildcard.
    pub wildcard: bool,
    /// Resolvers that check signatures refuse what stands there.
    pub bogus: bool,
    /// What the SPF records come to: for SPF.
    pub spf: SpfObservation,
}

/// What an SPF record comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpfObservation {
    /// The one record, when there is one and it can be read.
    pub walk: Option<SpfLookups>,
    /// What is there and ours in one record, where that is needed.
    pub merged: Option<(String, SpfLookups)>,
    /// Records of the type that nobody reads any more.
    pub obsolete: Vec<String>,
}

impl RecordObservation {
    /// Nothing but what stands at the name.
    #[must_use]
    pub fn from_records(here: RecordSetResult) -> Self {
        Self {
            zone: None,
            registered: true,
            here,
            onward: Vec::new(),
            beside: Vec::new(),
            elsewhere: Vec::new(),
            wildcard: false,
            bogus: false,
            spf: SpfObservation::default(),
        }
    }

    /// Gathers it.
    pub(super) async fn observe(looker: &RecordFetcher<'_>, domain: &str, record: &DomainRecord) -> Self {
        let kind = wire_type(record.record_type);
        let mut answers = Self::from_records(looker.fetch(&record.name, kind).await);
        answers.registered = looker.is_registered();
        // A top level is the zone of what is not registered: no words for people.
        answers.zone = looker.zone().filter(|zone| zone.contains('.'));
        let Ok(here) = answers.here.clone() else { return answers };
        match record.purpose {
            RecordPurpose::Spf => answers.spf = SpfObservation::gather(looker, domain, record, &here).await,
            RecordPurpose::ReturnPath | RecordPurpose::Tracking => {
                answers.onward = alias_chain(looker, record, &here).await
            }
            _ => {}
        }
        if judge::record_status(domain, record, &answers) == RecordStatus::Verified {
            answers.bogus = looker.is_bogus(&record.name, kind).await;
        } else {
            answers.observe_causes(looker, domain, record).await;
        }
        answers
    }

    /// What helps to say what is wrong. A question without an answer is a thing less to say.
    async fn observe_causes(&mut self, looker: &RecordFetcher<'_>, domain: &str, record: &DomainRecord) {
        let elsewhere = misplaced_names(domain, self.zone.as_deref(), record);
        let kind = wire_type(record.record_type);
        let strays = join_all(elsewhere.into_iter().map(async |name| {
            let look = looker.fetch(&name, kind).await.unwrap_or_default();
            (name, look)
        }));
        let beside = join_all(conflicting_types(record).iter().map(async |&(word, kind)| {
            let look = looker.fetch(&record.name, kind).await.unwrap_or_default();
            (word, kind, look)
        }));
        let (strays, beside) = tokio::join!(strays, beside);
        self.elsewhere = strays.into_iter().filter(|(_, look)| !look.is_empty()).collect();
        // An alias leads to records that are not the name's own.
        let beside: Vec<_> =
            beside.into_iter().filter(|(_, _, look)| look.aliases.is_empty() && !look.is_empty()).collect();
        let here = self.here.as_ref().ok().filter(|look| !look.is_empty()).map(|look| (kind, look));
        let there = here.or_else(|| beside.first().map(|(_, kind, look)| (*kind, look)));
        if let Some((kind, look)) = there {
            self.wildcard = is_wildcard(looker, self.zone.as_deref(), &record.name, (kind, look)).await;
        }
        self.beside = beside.into_iter().map(|(word, _, look)| (word, look)).collect();
    }
}

impl SpfObservation {
    async fn gather(looker: &RecordFetcher<'_>, domain: &str, record: &DomainRecord, here: &RecordSet) -> Self {
        let mut answers = Self::default();
        let records: Vec<&str> = here.texts().filter(|text| spf::is_record(text)).collect();
        let ours = spf::include_mechanisms(&record.value);
        match records.as_slice() {
            [] => {
                let obsolete = looker.fetch(&record.name, OBSOLETE_SPF).await.unwrap_or_default();
                answers.obsolete = obsolete.texts().map(str::to_owned).collect();
                return answers;
            }
            [one] => {
                let Ok(terms) = spf::parse_strict(one) else { return answers };
                let walk = SpfLookups::count_lookups(looker, domain, terms).await;
                let complete = ours.iter().all(|our| walk.passes.contains(our));
                answers.walk = Some(walk);
                if complete {
                    return answers;
                }
            }
            _ => {}
        }
        if let Some(merged) = spf::merge::merge_records(&records, &ours)
            && let Ok(terms) = spf::parse_strict(&merged)
        {
            answers.merged = Some((merged, SpfLookups::count_lookups(looker, domain, terms).await));
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

/// What may stand where an alias is wanted.
fn conflicting_types(record: &DomainRecord) -> &'static [(&'static str, Wire)] {
    match record.record_type {
        RecordType::Cname => &[("A", Wire::A), ("AAAA", Wire::AAAA), ("MX", Wire::MX), ("TXT", Wire::TXT)],
        RecordType::Txt | RecordType::Mx => &[],
    }
}

/// Many providers put the zone behind what is typed: a full name then has it twice. And what is typed for
/// a subdomain without its own label lands in the zone above; that is told of values that only this domain
/// has, for the domain above may well be set up too.
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

/// Where an alias leads on to, when it does not lead to its host at once.
async fn alias_chain(looker: &RecordFetcher<'_>, record: &DomainRecord, here: &RecordSet) -> Vec<String> {
    let mut chain: Vec<String> = Vec::new();
    let mut next = judge::alias::alias_targets(here).next().map(str::to_owned);
    while let Some(target) = next.take() {
        if target == record.value || chain.len() >= CHAIN_MAX {
            break;
        }
        let look = looker.fetch(&target, Wire::CNAME).await.unwrap_or_default();
        next = judge::alias::alias_targets(&look).next().map(str::to_owned);
        chain.extend(next.clone());
    }
    chain
}

/// Whether the name's answer is the one that `*` beside it gets: a name that exists has its own.
async fn is_wildcard(looker: &RecordFetcher<'_>, zone: Option<&str>, name: &str, there: (Wire, &RecordSet)) -> bool {
    let (kind, look) = there;
    let Some((_, parent)) = name.split_once('.').filter(|_| zone != Some(name)) else { return false };
    let star = looker.fetch(&format!("*.{parent}"), kind).await.unwrap_or_default();
    let sorted = |look: &RecordSet| {
        let mut data = look.data.clone();
        data.sort();
        (look.aliases.clone(), data)
    };
    !star.is_empty() && sorted(&star) == sorted(look)
}
