//! What a receiver has to look up for an SPF record, counted by looking it up (RFC 7208 4.6.4).
//!
//! Level by level: all that a record names at once, then all that those records name. What is named twice
//! costs twice, as far as we count ([`LOOKUPS_COUNTED_MAX`]); a record that leads back to itself is a fault.

use futures_util::future::join_all;
use hickory_proto::rr::RecordType;

use super::{SpfMechanism, SpfQualifier, SpfRecord, SpfTerm, is_record, parse_strict, passes_include};
use crate::sender_policy::{DomainSpec, HOSTS_MAX};
use crate::setup::look::{RecordData, RecordFetcher, RecordSet, RecordSetResult};

/// So far we count.
pub(in crate::setup) const LOOKUPS_COUNTED_MAX: usize = 20;

/// What was seen on the way through a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpfLookups {
    /// Terms that cost a receiver a lookup, at most [`LOOKUPS_COUNTED_MAX`] and what their level has.
    pub lookups: usize,
    /// Names looked up where nothing was found.
    pub voids: Vec<String>,
    /// Mechanisms that let mail pass, from whichever record they were reached: `include:spf.example.net`.
    pub passes: Vec<String>,
    /// What makes receivers give up, each the end of a sentence.
    pub faults: Vec<String>,
    /// Names about which nobody gave an answer.
    pub unanswered: Vec<String>,
}

/// A record to read, whose it is, and whether what passes in it passes in the first one.
struct PendingRecord {
    domain: String,
    /// The domains through whose records it was reached, from the first one on.
    through: Vec<String>,
    record: SpfRecord,
    passes: bool,
}

/// A question that a term asks.
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
    /// Goes through a record of a domain.
    pub(in crate::setup) async fn count_lookups(looker: &RecordFetcher<'_>, domain: &str, record: SpfRecord) -> Self {
        let mut walk = Self::default();
        let mut pages =
            vec![PendingRecord { domain: domain.to_ascii_lowercase(), through: Vec::new(), record, passes: true }];
        while !pages.is_empty() && walk.lookups <= LOOKUPS_COUNTED_MAX {
            let mut steps = Vec::new();
            for page in pages.drain(..) {
                walk.expand_record(&page, &mut steps);
            }
            steps.truncate(LOOKUPS_COUNTED_MAX);
            let seen = join_all(steps.iter().map(|step| step.run(looker))).await;
            for (step, seen) in steps.into_iter().zip(seen) {
                pages.extend(walk.record_result(step, seen));
            }
        }
        walk
    }

    fn expand_record(&mut self, page: &PendingRecord, steps: &mut Vec<TermLookup>) {
        for term in page.record.effective_terms().filter(|term| term.costs_lookup()) {
            let (host, kind, passes) = match term {
                SpfTerm::Mechanism(qualifier, SpfMechanism::Include(host)) => {
                    let include = format!("include:{}", host.as_str());
                    // The first that matches decides (RFC 7208 4.6.2): one before it may refuse.
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
            // What has a macro in it is known only when mail comes.
            let Some(kind) = kind.filter(|_| !host.is_some_and(DomainSpec::has_macro)) else { continue };
            let host = host.map_or(page.domain.as_str(), DomainSpec::as_str);
            let mut through = Vec::new();
            if kind == TermLookupKind::Record {
                through = [page.through.as_slice(), std::slice::from_ref(&page.domain)].concat();
                if let Some(again) = through.iter().position(|before| before == host) {
                    self.faults.push(loop_fault(host, again == 0));
                    continue;
                }
            }
            steps.push(TermLookup { host: host.to_owned(), kind, passes, through });
        }
    }

    /// Books what a step found, and gives the page that it leads to.
    fn record_result(&mut self, step: TermLookup, seen: RecordSetResult) -> Option<PendingRecord> {
        let TermLookup { host, kind, passes, through } = step;
        let Ok(look) = seen else {
            self.unanswered.push(host);
            return None;
        };
        if look.data.is_empty() {
            self.voids.push(host.clone());
        }
        match kind {
            TermLookupKind::Addresses => None,
            TermLookupKind::MailHosts => {
                if look.data.len() > HOSTS_MAX {
                    self.faults.push(format!("\"mx\" of {host} names more than {HOSTS_MAX} hosts"));
                }
                None
            }
            TermLookupKind::Record => self.pending_record((host, through), &look, passes),
        }
    }

    fn pending_record(
        &mut self,
        (host, through): (String, Vec<String>),
        look: &RecordSet,
        passes: bool,
    ) -> Option<PendingRecord> {
        let mut records = look.texts().filter(|text| is_record(text));
        let fault = match (records.next(), records.next()) {
            (None, _) => format!("it includes {host}, which has no SPF record"),
            (Some(_), Some(_)) => format!("it includes {host}, which has several SPF records"),
            (Some(record), None) => match parse_strict(record) {
                Ok(record) => return Some(PendingRecord { domain: host, through, record, passes }),
                Err(why) => format!("it includes {host}, in whose SPF record {why}"),
            },
        };
        self.faults.push(fault);
        None
    }
}

/// What is said of a record from which the way leads back to it.
fn loop_fault(host: &str, is_the_first: bool) -> String {
    if is_the_first {
        return "it includes itself, so that reading it has no end".to_owned();
    }
    format!("it includes {host}, whose SPF record includes itself, so that reading it has no end")
}

impl TermLookup {
    async fn run(&self, looker: &RecordFetcher<'_>) -> RecordSetResult {
        match self.kind {
            TermLookupKind::Record => looker.fetch(&self.host, RecordType::TXT).await,
            TermLookupKind::MailHosts => looker.fetch(&self.host, RecordType::MX).await,
            TermLookupKind::Addresses => {
                let four = looker.fetch(&self.host, RecordType::A).await?;
                if four.data.iter().any(|data| matches!(data, RecordData::Address(_))) {
                    return Ok(four);
                }
                looker.fetch(&self.host, RecordType::AAAA).await
            }
        }
    }
}
