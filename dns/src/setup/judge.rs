//! What is to be said of a record, from what was seen: no lookups, no clock.
//!
//! Each way to publish a record wrong has a sentence of its own: what stands there, why that does not do,
//! what to do about it. One file for each kind of record; here is what they have in common.

pub(super) mod alias;
pub(crate) mod dkim;
mod dmarc;
mod inbound;
mod ownership;
pub(super) mod spf;

use jiff::Timestamp;
use mail::setup::{Finding, Purpose, Record, RecordStatus, RecordType};

use super::evidence::Answers;
use super::exchange::Trouble;
use super::look::{Data, Look};
use super::text::{mended, short, shown};

/// Values shown of a name.
const FOUND_MAX: usize = 10;

/// Says what became of a record of a domain.
///
/// A verified record may have an error too: then it works, and something about it is unwise.
#[must_use]
pub fn judge(domain: &str, record: &Record, answers: &Answers, now: Timestamp) -> Finding {
    let Verdict { status, error, merged } = verdict(domain, record, answers);
    Finding { status, found: found(record, answers), error, merged, checked_at: now }
}

pub(super) fn status(domain: &str, record: &Record, answers: &Answers) -> RecordStatus {
    verdict(domain, record, answers).status
}

/// A finding without what was found.
struct Verdict {
    status: RecordStatus,
    error: Option<String>,
    merged: Option<String>,
}

impl Verdict {
    fn verified() -> Self {
        Self { status: RecordStatus::Verified, error: None, merged: None }
    }

    fn of(status: RecordStatus, sentence: String) -> Self {
        Self { status, error: Some(sentence), merged: None }
    }

    fn missing(sentence: String) -> Self {
        Self::of(RecordStatus::Missing, sentence)
    }

    fn mismatch(sentence: String) -> Self {
        Self::of(RecordStatus::Mismatch, sentence)
    }

    fn conflict(sentence: String) -> Self {
        Self::of(RecordStatus::Conflict, sentence)
    }

    fn pending(sentence: String) -> Self {
        Self::of(RecordStatus::Pending, sentence)
    }
}

/// A record and what stands at its name.
struct Case<'a> {
    domain: &'a str,
    record: &'a Record,
    answers: &'a Answers,
    look: &'a Look,
}

fn verdict(domain: &str, record: &Record, answers: &Answers) -> Verdict {
    let zone = answers.zone.as_deref().unwrap_or(domain);
    let look = match &answers.here {
        Ok(_) if answers.bogus => return no_answer(Trouble::Bogus, zone, &record.name),
        Ok(look) => look,
        Err(trouble) => return no_answer(*trouble, zone, &record.name),
    };
    let case = Case { domain, record, answers, look };
    let verdict = match record.purpose {
        Purpose::Ownership => ownership::verdict(&case),
        Purpose::Dkim => dkim::verdict(&case),
        Purpose::Spf => spf::verdict(&case),
        Purpose::Dmarc => dmarc::verdict(&case),
        Purpose::Inbound => inbound::verdict(&case),
        Purpose::ReturnPath | Purpose::Tracking => alias::verdict(&case),
    };
    let done = matches!(verdict.status, RecordStatus::Verified | RecordStatus::Pending);
    match answers.wildcard && !done && case.stray().is_none() {
        true => Verdict { merged: verdict.merged, ..case.only_a_wildcard() },
        false => verdict,
    }
}

/// Nobody could say what stands there.
fn no_answer(trouble: Trouble, zone: &str, name: &str) -> Verdict {
    let again = "We look again; if it stays so, ask your DNS provider.";
    Verdict::pending(match trouble {
        Trouble::TimedOut => format!(
            "The name servers of {zone} did not answer in time, so it is not known what stands at {name}. {again}"
        ),
        Trouble::Spent => format!(
            "The name servers of {zone} are asked for many domains at the moment, so it is not known what stands at \
             {name}. We look again."
        ),
        Trouble::Unreachable => format!(
            "No name server could be reached that knows {zone}, so it is not known what stands at {name}. {again}"
        ),
        Trouble::ServerFailure => {
            format!("The name servers of {zone} fail (SERVFAIL) when asked for {name}. {again}")
        }
        Trouble::Refused => format!(
            "The name servers of {zone} refuse to answer for {name} (REFUSED). Check that the NS records at \
             your registrar name the servers of the provider at which you publish."
        ),
        Trouble::Lame => format!(
            "The name servers that are named for {zone} do not serve it. Check that the NS records at your \
             registrar name the servers of the provider at which you publish."
        ),
        Trouble::Garbled => {
            format!("The name servers of {zone} answer the question for {name} with nonsense. {again}")
        }
        Trouble::Bogus => format!(
            "The DNSSEC signatures of {zone} do not hold (bogus), so that everybody who checks them sees no \
             record at {name} at all. Let your DNS provider sign the zone anew, or take the DS record away at \
             your registrar."
        ),
        Trouble::AliasLoop => {
            return Verdict::mismatch(format!(
                "The CNAME at {name} leads in a circle, or through too many others. Remove it and publish the \
                 record itself."
            ));
        }
    })
}

impl Case<'_> {
    fn name(&self) -> &str {
        &self.record.name
    }

    fn kind(&self) -> &'static str {
        match self.record.record_type {
            RecordType::Txt => "TXT",
            RecordType::Cname => "CNAME",
            RecordType::Mx => "MX",
        }
    }

    fn zone(&self) -> &str {
        self.answers.zone.as_deref().unwrap_or(self.domain)
    }

    /// What one types at a provider that puts the zone behind it.
    fn entry(&self) -> &str {
        let name = self.name();
        let labels = name.strip_suffix(self.zone()).map(|labels| labels.trim_end_matches('.'));
        match labels {
            Some("") => "@",
            Some(labels) => labels,
            None => name,
        }
    }

    /// Another name at which the record was published by mistake.
    fn stray(&self) -> Option<&str> {
        let is_it = |data: &Data| match (self.record.purpose, data) {
            (Purpose::Ownership, Data::Text(text)) => text.trim() == self.record.value,
            (Purpose::Dkim, Data::Text(text)) => dkim::is_same_key(text, &self.record.value),
            (Purpose::Spf, Data::Text(text)) => super::spf::is_record(text),
            (Purpose::Dmarc, Data::Text(text)) => dmarc::is_record(text),
            (_, Data::Alias(host) | Data::MailHost { host, .. }) => *host == self.record.value,
            _ => false,
        };
        let found = self.answers.elsewhere.iter().find(|(_, look)| look.data.iter().any(is_it));
        found.map(|(name, _)| name.as_str())
    }

    /// The record is not there: because it was published elsewhere, because an alias is, or not at all.
    fn absent(&self) -> Verdict {
        let (name, kind, entry) = (self.name(), self.kind(), self.entry());
        if let Some(stray) = self.stray() {
            let zone = self.zone();
            return Verdict::missing(format!(
                "The record was published at {stray} instead of {name}: your provider puts {zone} behind what \
                 you type. Move it: as its name, type \"{entry}\"."
            ));
        }
        if let Some(alias) = self.look.aliases.first() {
            return self.in_the_way_of(alias);
        }
        if !self.answers.registered {
            return Verdict::missing(format!(
                "The DNS knows no domain {}: it is not registered, its registration ran out, or your registrar \
                 has no name servers for it. Until that is put right, no record of it can be found.",
                self.domain
            ));
        }
        Verdict::missing(format!(
            "There is no {kind} record at {name}. Publish it at your DNS provider (name \"{entry}\" where the \
             provider adds {}).",
            self.zone()
        ))
    }

    /// No other record can stand beside a CNAME (RFC 1034 3.6.2), and none of it is asked for.
    fn in_the_way_of(&self, alias: &str) -> Verdict {
        let (name, kind) = (self.name(), self.kind());
        if name == self.domain {
            return Verdict::conflict(format!(
                "{name} itself is a CNAME to {alias}, which hides every other record at it, this {kind} record \
                 too. Replace the CNAME by A and AAAA records (or your provider's ALIAS) and publish this record \
                 beside them."
            ));
        }
        Verdict::conflict(format!(
            "A CNAME to {alias} stands at {name}, where this {kind} record belongs, and nothing can stand beside \
             a CNAME. Replace the CNAME by the {kind} record."
        ))
    }

    fn only_a_wildcard(&self) -> Verdict {
        let (name, kind) = (self.name(), self.kind());
        let parent = name.split_once('.').map_or(self.domain, |(_, parent)| parent);
        let parent = if parent.ends_with(self.domain) { self.domain } else { parent };
        Verdict::missing(format!(
            "There is no record at {name} itself: what answers is a wildcard (*.{parent}). Publish this {kind} \
             record at {name}; it takes precedence, and the wildcard can stay."
        ))
    }

    /// A text that would be right, had it not been quoted or escaped on its way.
    fn flawed(&self, is_right: impl Fn(&str) -> bool) -> Option<Verdict> {
        let mut flaws = self.look.texts().filter_map(mended);
        let (_, flaw) = flaws.find(|(meant, _)| is_right(meant))?;
        Some(Verdict::mismatch(format!("{} {}", flaw.sentence(self.name()), flaw.remedy())))
    }
}

/// What stands there, for a person to read: of SPF only what is meant as such, a domain has many texts.
fn found(record: &Record, answers: &Answers) -> Vec<String> {
    let Ok(look) = &answers.here else { return Vec::new() };
    let is_shown = |data: &&Data| match (record.purpose, data) {
        (Purpose::Spf, Data::Text(text)) => super::spf::is_record(text) || super::spf::is_nearly_record(text),
        _ => true,
    };
    let aliases = look.aliases.iter().take(1).map(|alias| format!("CNAME {alias}"));
    let mut data: Vec<&Data> = look.data.iter().filter(is_shown).collect();
    // Ours first, among however many.
    data.sort_by_key(|data| !matches!(data, Data::Text(text) if *text == record.value));
    let beside = answers.beside.iter().flat_map(|(kind, look)| {
        look.data.iter().map(move |data| format!("{kind} {}", shown(&data.to_string())))
    });
    let obsolete = answers.spf.obsolete.iter().map(|text| format!("SPF {}", shown(text)));
    let data = data.into_iter().map(|data| shown(&data.to_string()));
    aliases.chain(data).chain(beside).chain(obsolete).take(FOUND_MAX).collect()
}

/// A host to which the provider put the zone, for want of a dot at its end.
fn is_appended(found: &str, wanted: &str, domain: &str) -> bool {
    let rest = found.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('.'));
    rest.is_some_and(|zone| domain == zone || domain.ends_with(&format!(".{zone}")) || zone.ends_with(domain))
}

fn appended(case: &Case<'_>, found: &str) -> Verdict {
    let (name, value, kind) = (case.name(), &case.record.value, case.kind());
    Verdict::mismatch(format!(
        "The {kind} at {name} leads to {}: your provider put its zone behind the host. Enter the host with a \
         dot at its end, \"{value}.\".",
        short(found)
    ))
}
