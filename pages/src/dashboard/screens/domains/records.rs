//! The records of a domain: what to publish, what was found, and where both differ.

use explain::domain::{DomainFinding, FindingSeverity, explain_domain, explain_record, purpose_sentence};

use super::{DomainRecord, SendingDomain, domain_call, domain_view, read_domain};
use crate::dashboard::kit::diff::CharDiff;
use crate::dashboard::prelude::*;

/// A record with its state.
pub(super) struct RecordCard<'a> {
    pub(super) record: &'a DomainRecord,
    /// The domain, for the part of the name that providers ask for.
    pub(super) domain: &'a str,
}

impl RecordCard<'_> {
    /// The found value that is most like the right one, if it is like it at all; and the right one in the form in
    /// which it is found.
    fn nearest(&self) -> Option<(&str, String)> {
        let record = self.record;
        let right = match record.priority {
            Some(priority) => format!("{priority} {}", record.value),
            None => record.value.clone(),
        };
        let likeness = |found: &str| {
            let same = found.chars().zip(right.chars()).take_while(|(found, right)| found == right).count();
            (same, usize::MAX - found.len().abs_diff(right.len()))
        };
        let nearest = record.found.iter().max_by_key(|found| likeness(found))?;
        Some((nearest, right))
    }

    /// Its fault, if it has one. A record that was not looked up yet has no fault.
    fn finding(&self) -> Option<DomainFinding> {
        explain_record(&self.record.standing(), false).filter(|_| self.record.status != "pending")
    }

    fn badge(&self) -> Badge {
        match self.record.status.as_str() {
            "verified" => Badge::new("Found", Tone::Good),
            "missing" if !self.record.required => Badge::new("Not found", Tone::Neutral),
            "missing" => Badge::new("Not found", Tone::Warning),
            "mismatch" => Badge::new("Wrong value", Tone::Bad),
            "conflict" => Badge::new("Conflict", Tone::Bad),
            _ => Badge::new("Not checked yet", Tone::Neutral),
        }
    }
}

/// The part of a name before the domain; providers add the domain themselves.
fn host_part<'a>(name: &'a str, domain: &str) -> &'a str {
    match name.strip_suffix(domain) {
        Some("") => "@",
        Some(part) => part.strip_suffix('.').unwrap_or(name),
        None => name,
    }
}

impl Renderable for RecordCard<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (record, domain) = (self.record, self.domain);
        let finding = self.finding();
        let host = host_part(&record.name, domain);
        let is_wrong = record.status == "mismatch";
        let nearest = if is_wrong { self.nearest() } else { None };
        let ttl = record.ttl.to_string();
        maud_borrow! {
            article.card.dns {
                div.dns-head {
                    h3 { (record.purpose_title()) }
                    (self.badge())
                    @if !record.required { span.soft.small { "recommended" } }
                }
                p.help { (purpose_sentence(&record.purpose)) }
                dl.record {
                    div.short { dt { "Type" } dd { (record.kind) } }
                    @if let Some(priority) = record.priority { div.short { dt { "Priority" } dd { (priority) } } }
                    div.short { dt { "TTL" } dd { (ttl) } }
                    div {
                        dt { "Name" }
                        dd {
                            code { (record.name) } (copy_button(&record.name, "the name"))
                            @if host != record.name { p.help { "If your provider appends the domain automatically: \
                                " code { (host) } } }
                        }
                    }
                    div { dt { "Value" } dd { code { (record.value) } (copy_button(&record.value, "the value")) } }
                }
                @if let Some(finding) = &finding { p.dns-error { (finding.what) " " (finding.advice) } }
                @if let Some((found, right)) = &nearest { (CharDiff { found, right }) }
                @if record.status == "conflict" || record.found.len() > 1 && record.status != "verified" {
                    div {
                        p.help { "All values found there:" }
                        ul.found { @for found in &record.found { li { code { (found) } } } }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// The domain's state in sentences, and what is wrong besides its records.
fn state(domain: &SendingDomain) -> (Tone, String) {
    let explanation = explain_domain(&domain.standing(), None);
    let is_urgent = |finding: &DomainFinding| finding.severity < FindingSeverity::Improves;
    let tone = match (explanation.can_send, explanation.findings.iter().any(is_urgent)) {
        (true, false) if domain.last_checked_at.is_none() => Tone::Neutral,
        (true, false) => Tone::Good,
        _ if domain.last_checked_at.is_none() && domain.wrong_records().next().is_none() => Tone::Active,
        (false, false) => Tone::Active,
        (_, true) => Tone::Warning,
    };
    let others = explanation.findings.iter().filter(|finding| finding.record.is_none());
    let mut sentences = vec![explanation.statement.clone()];
    sentences.extend(others.flat_map(|finding| [finding.what.clone(), finding.advice.clone()]));
    if domain.wrong_records().next().is_some() {
        sentences.push("Publish the marked records at your DNS provider, then verify.".into());
    } else if domain.last_checked_at.is_none() {
        sentences.push("Publish these records at your DNS provider, then verify.".into());
    }
    (tone, sentences.join(" "))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let (tone, text) = state(&domain);
    let verify = Form::new("verify", "Verify now", Vec::new());
    // Records to mend stand first.
    let mut records: Vec<_> = domain.records.iter().collect();
    records.sort_by_key(|record| match record.status.as_str() {
        "mismatch" | "conflict" => 0,
        "missing" if record.required => 1,
        _ => 2,
    });
    let content = maud_borrow! {
        (Notice { tone, text: &text })
        div.buttons {
            @if context.allows("verify_domain") { (verify.within(context)) }
            @if context.allows("apply_domain_dns") { a.button href={ (domain.page()) "/publish" } { "Publish at your provider" } }
            a.button href={ (domain.page()) "/zone-file" } { "Download zone file" }
            @if domain.last_checked_at.is_some() {
                span.soft.small { "Checked " (time_or_dash(domain.last_checked_at.as_deref())) }
            }
        }
        section {
            h2 { "Records" }
            @for record in &records { (RecordCard { record, domain: &domain.name }) }
        }
    };
    Ok(domain_view(context, &domain, "", content, domain_call("get_domain", context)))
}

pub(super) async fn verify(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&domain_call("verify_domain", context), super::domain_page(context.id()), "verified").await
}

pub(super) async fn zone_file(context: &Context<'_>) -> Result<View, Failure> {
    let call = domain_call("get_domain_zone_file", context);
    let name = read_domain(context).await?.name;
    Ok(View::Download { call, file_name: format!("{name}.zone") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    fn record(status: &str, found: &[&str]) -> DomainRecord {
        DomainRecord {
            purpose: "return_path".into(),
            kind: "CNAME".into(),
            name: "rp.mail.example.com".into(),
            value: "rp.postrider.example".into(),
            ttl: 3600,
            priority: None,
            required: true,
            status: status.into(),
            found: found.iter().map(|&text| text.into()).collect(),
            error: Some("The value is <wrong>".into()),
        }
    }

    #[test]
    fn a_wrong_value_is_compared_with_the_right_one() {
        let record = record("mismatch", &["<b>other.example</b>", "rp.postrder.example"]);
        let html = render(RecordCard { record: &record, domain: "mail.example.com" });
        assert!(html.contains("rp.postr<ins>i</ins>der.example"), "{html}");
        assert!(html.contains("&lt;b&gt;other") && html.contains("&lt;wrong&gt;"), "{html}");
        assert!(html.contains("<code>rp</code>"), "{html}");
    }

    #[test]
    fn a_right_value_has_no_error() {
        let record = record("verified", &["rp.postrider.example"]);
        let html = render(RecordCard { record: &record, domain: "example.com" });
        assert!(!html.contains("wrong") && !html.contains("<ins>"), "{html}");
    }

    #[test]
    fn names_are_shortened() {
        assert_eq!(host_part("rp.example.com", "example.com"), "rp");
        assert_eq!(host_part("example.com", "example.com"), "@");
        assert_eq!(host_part("rp.notexample.com", "example.com"), "rp.notexample.com");
    }
}
