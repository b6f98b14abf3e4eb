//! Counts the DNS lookups that a receiver needs for an SPF record, by doing them (RFC 7208 4.6.4).
//!
//! All names of a record are looked up in parallel, then all names of the records found, level by level. A name that
//! occurs twice counts twice. Counting stops after [`LOOKUPS_COUNTED_MAX`]. A record that includes itself is a fault.

use futures_util::future::join_all;
use hickory_proto::rr::RecordType;

use super::{SpfMechanism, SpfQualifier, SpfRecord, SpfTerm, is_record, parse_strict, passes_include};
use crate::domain_check::record_set::{RecordData, RecordFetcher, RecordSet, RecordSetResult};
use crate::spf::{DomainSpec, HOSTS_MAX};

/// Counting stops at this number of lookups.
pub(in crate::domain_check) const LOOKUPS_COUNTED_MAX: usize = 20;

/// The lookups of an SPF record and their results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpfLookups {
    /// Terms with a DNS lookup: at most [`LOOKUPS_COUNTED_MAX`] and the rest of the level that reaches it.
    pub lookups: usize,
    /// Names without a result (void lookups).
    pub voids: Vec<String>,
    /// Includes that authorize mail, on whatever level: `include:spf.example.net`.
    pub passes: Vec<String>,
    /// Reasons why receivers abort the evaluation, each as the end of a sentence.
    pub faults: Vec<String>,
    /// Names whose query was not answered.
    pub unanswered: Vec<String>,
}

/// A record that is still to be evaluated, with its domain, and whether its matches authorize mail.
struct PendingRecord {
    domain: String,
    /// The domains whose records led to it, from the first one on.
    through: Vec<String>,
    record: SpfRecord,
    passes: bool,
}

/// The DNS lookup of a term.
struct TermLookup {
    host: String,
    kind: TermLookupKind,
    passes: bool,
    through: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TermLookupKind {
    Record,
    Addresses,
    MailHosts,
}

impl SpfLookups {
    /// Evaluates the record of a domain.
    pub(in crate::domain_check) async fn count_lookups(
        fetcher: &RecordFetcher<'_>,
        domain: &str,
        record: SpfRecord,
    ) -> Self {
        let mut walk = Self::default();
        let mut pages =
            vec![PendingRecord { domain: domain.to_ascii_lowercase(), through: Vec::new(), record, passes: true }];
        while !pages.is_empty() && walk.lookups <= LOOKUPS_COUNTED_MAX {
            let mut steps = Vec::new();
            for page in pages.drain(..) {
                walk.expand_record(&page, &mut steps);
            }
            steps.truncate(LOOKUPS_COUNTED_MAX);
            let result = join_all(steps.iter().map(|step| step.run(fetcher))).await;
            for (step, result) in steps.into_iter().zip(result) {
                pages.extend(walk.record_result(step, result));
            }
        }
        walk
    }

    fn expand_record(&mut self, page: &PendingRecord, steps: &mut Vec<TermLookup>) {
        for term in page.record.effective_terms().filter(|term| term.costs_lookup()) {
            let (host, kind, passes) = match term {
                SpfTerm::Mechanism(qualifier, SpfMechanism::Include(host)) => {
                    let include = format!("include:{}", host.as_str());
                    // The first match decides (RFC 7208 4.6.2): an earlier term can have another qualifier.
                    let passes =
                        page.passes && *qualifier == SpfQualifier::Pass && passes_include(&page.record, &include);
                    if passes {
                        self.passes.push(include);
                    }
                    (Some(host), Some(TermLookupKind::Record), passes)
                }
                SpfTerm::Redirect(host) => (Some(host), Some(TermLookupKind::Record), page.passes),
                SpfTerm::Mechanism(_, SpfMechanism::Hosts { mail, host, .. }) => {
                    let kind = if *mail { TermLookupKind::MailHosts } else { TermLookupKind::Addresses };
                    (host.as_ref(), Some(kind), false)
                }
                SpfTerm::Mechanism(_, SpfMechanism::Exists(host)) => {
                    (Some(host), Some(TermLookupKind::Addresses), false)
                }
                _ => (None, None, false),
            };
            self.lookups += 1;
            // The value of a macro is known only for a message.
            let Some(kind) = kind.filter(|_| !host.is_some_and(DomainSpec::has_macro)) else { continue };
            let host = host.map_or(page.domain.as_str(), DomainSpec::as_str);
            let mut through = Vec::new();
            if kind == TermLookupKind::Record {
                through = [page.through.as_slice(), std::slice::from_ref(&page.domain)].concat();
                if let Some(repeated_at) = through.iter().position(|before| before == host) {
                    self.faults.push(loop_fault(host, repeated_at == 0));
                    continue;
                }
            }
            steps.push(TermLookup { host: host.to_owned(), kind, passes, through });
        }
    }

    /// Records the result of a lookup, and returns the record that it leads to.
    fn record_result(&mut self, step: TermLookup, result: RecordSetResult) -> Option<PendingRecord> {
        let TermLookup { host, kind, passes, through } = step;
        let Ok(record_set) = result else {
            self.unanswered.push(host);
            return None;
        };
        if record_set.data.is_empty() {
            self.voids.push(host.clone());
        }
        match kind {
            TermLookupKind::Addresses => None,
            TermLookupKind::MailHosts => {
                if record_set.data.len() > HOSTS_MAX {
                    self.faults.push(format!("\"mx\" of {host} names more than {HOSTS_MAX} hosts"));
                }
                None
            }
            TermLookupKind::Record => self.pending_record(host, through, &record_set, passes),
        }
    }

    fn pending_record(
        &mut self,
        host: String,
        through: Vec<String>,
        record_set: &RecordSet,
        passes: bool,
    ) -> Option<PendingRecord> {
        let mut records = record_set.texts().filter(|text| is_record(text));
        let fault = match (records.next(), records.next()) {
            (None, _) => format!("it includes {host}, which has no SPF record"),
            (Some(_), Some(_)) => format!("it includes {host}, which has several SPF records"),
            (Some(record), None) => match parse_strict(record) {
                Ok(record) => return Some(PendingRecord { domain: host, through, record, passes }),
                Err(why) => format!("it includes {host}, whose SPF record is invalid: {why}"),
            },
        };
        self.faults.push(fault);
        None
    }
}

/// The fault of a record that includes itself, directly or not.
fn loop_fault(host: &str, is_first: bool) -> String {
    if is_first {
        return "it includes itself, so it never ends".to_owned();
    }
    format!("it includes {host}, whose SPF record includes itself, so it never ends")
}

impl TermLookup {
    async fn run(&self, fetcher: &RecordFetcher<'_>) -> RecordSetResult {
        match self.kind {
            TermLookupKind::Record => fetcher.fetch(&self.host, RecordType::TXT).await,
            TermLookupKind::MailHosts => fetcher.fetch(&self.host, RecordType::MX).await,
            TermLookupKind::Addresses => {
                let ipv4 = fetcher.fetch(&self.host, RecordType::A).await?;
                if ipv4.data.iter().any(|data| matches!(data, RecordData::Address(_))) {
                    return Ok(ipv4);
                }
                fetcher.fetch(&self.host, RecordType::AAAA).await
            }
        }
    }
}
