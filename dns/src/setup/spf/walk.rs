//! What a receiver has to look up for an SPF record, counted by looking it up (RFC 7208 4.6.4).
//!
//! Level by level: all that a record names at once, then all that those records name. What is named twice
//! costs twice, as far as we count ([`LOOKUPS_COUNTED_MAX`]); a record that leads back to itself is a fault.

use futures_util::future::join_all;
use hickory_proto::rr::RecordType;

use super::{Mechanism, Qualifier, Record, Term, is_record, passes, read};
use crate::sender_policy::{HOSTS_MAX, Target};
use crate::setup::look::{Data, Look, Looker, Seen};

/// So far we count.
pub(in crate::setup) const LOOKUPS_COUNTED_MAX: usize = 20;

/// What was seen on the way through a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
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
struct Page {
    domain: String,
    /// The domains through whose records it was reached, from the first one on.
    through: Vec<String>,
    record: Record,
    passes: bool,
}

/// A question that a term asks.
struct Step {
    host: String,
    kind: Kind,
    passes: bool,
    through: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Record,
    Addresses,
    MailHosts,
}

impl Walk {
    /// Goes through a record of a domain.
    pub(in crate::setup) async fn through(looker: &Looker<'_>, domain: &str, record: Record) -> Self {
        let mut walk = Self::default();
        let mut pages =
            vec![Page { domain: domain.to_ascii_lowercase(), through: Vec::new(), record, passes: true }];
        while !pages.is_empty() && walk.lookups <= LOOKUPS_COUNTED_MAX {
            let mut steps = Vec::new();
            for page in pages.drain(..) {
                walk.turn(&page, &mut steps);
            }
            steps.truncate(LOOKUPS_COUNTED_MAX);
            let seen = join_all(steps.iter().map(|step| step.take(looker))).await;
            for (step, seen) in steps.into_iter().zip(seen) {
                pages.extend(walk.note(step, seen));
            }
        }
        walk
    }

    fn turn(&mut self, page: &Page, steps: &mut Vec<Step>) {
        for term in page.record.read().filter(|term| term.asks()) {
            let (host, kind, passes) = match term {
                Term::Mechanism(qualifier, Mechanism::Include(host)) => {
                    let include = format!("include:{}", host.as_str());
                    // The first that matches decides (RFC 7208 4.6.2): one before it may refuse.
                    let passes =
                        page.passes && *qualifier == Qualifier::Pass && passes(&page.record, &include);
                    if passes {
                        self.passes.push(include);
                    }
                    (Some(host), Some(Kind::Record), passes)
                }
                Term::Redirect(host) => (Some(host), Some(Kind::Record), page.passes),
                Term::Mechanism(_, Mechanism::Hosts { mail, host, .. }) => {
                    let kind = if *mail { Kind::MailHosts } else { Kind::Addresses };
                    (host.as_ref(), Some(kind), false)
                }
                Term::Mechanism(_, Mechanism::Exists(host)) => (Some(host), Some(Kind::Addresses), false),
                _ => (None, None, false),
            };
            self.lookups += 1;
            // What has a macro in it is known only when mail comes.
            let Some(kind) = kind.filter(|_| !host.is_some_and(Target::has_macro)) else { continue };
            let host = host.map_or(page.domain.as_str(), Target::as_str);
            let mut through = Vec::new();
            if kind == Kind::Record {
                through = [page.through.as_slice(), std::slice::from_ref(&page.domain)].concat();
                if let Some(again) = through.iter().position(|before| before == host) {
                    self.faults.push(circle(host, again == 0));
                    continue;
                }
            }
            steps.push(Step { host: host.to_owned(), kind, passes, through });
        }
    }

    /// Books what a step found, and gives the page that it leads to.
    fn note(&mut self, step: Step, seen: Seen) -> Option<Page> {
        let Step { host, kind, passes, through } = step;
        let Ok(look) = seen else {
            self.unanswered.push(host);
            return None;
        };
        if look.data.is_empty() {
            self.voids.push(host.clone());
        }
        match kind {
            Kind::Addresses => None,
            Kind::MailHosts => {
                if look.data.len() > HOSTS_MAX {
                    self.faults.push(format!("\"mx\" of {host} names more than {HOSTS_MAX} hosts"));
                }
                None
            }
            Kind::Record => self.page((host, through), &look, passes),
        }
    }

    fn page(&mut self, (host, through): (String, Vec<String>), look: &Look, passes: bool) -> Option<Page> {
        let mut records = look.texts().filter(|text| is_record(text));
        let fault = match (records.next(), records.next()) {
            (None, _) => format!("it includes {host}, which has no SPF record"),
            (Some(_), Some(_)) => format!("it includes {host}, which has several SPF records"),
            (Some(record), None) => match read(record) {
                Ok(record) => return Some(Page { domain: host, through, record, passes }),
                Err(why) => format!("it includes {host}, in whose SPF record {why}"),
            },
        };
        self.faults.push(fault);
        None
    }
}

/// What is said of a record from which the way leads back to it.
fn circle(host: &str, is_the_first: bool) -> String {
    if is_the_first {
        return "it includes itself, so that reading it has no end".to_owned();
    }
    format!("it includes {host}, whose SPF record includes itself, so that reading it has no end")
}

impl Step {
    async fn take(&self, looker: &Looker<'_>) -> Seen {
        match self.kind {
            Kind::Record => looker.look(&self.host, RecordType::TXT).await,
            Kind::MailHosts => looker.look(&self.host, RecordType::MX).await,
            Kind::Addresses => {
                let four = looker.look(&self.host, RecordType::A).await?;
                if four.data.iter().any(|data| matches!(data, Data::Address(_))) {
                    return Ok(four);
                }
                looker.look(&self.host, RecordType::AAAA).await
            }
        }
    }
}
