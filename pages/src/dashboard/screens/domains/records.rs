//! The records of a domain: what to publish, what was found, and where both differ.

use hypertext::{Buffer, maud_borrow, prelude::*};

use super::{DomainRecord, SendingDomain, domain_call, domain_view, read_domain};
use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;
use crate::dashboard::form::{Form, plain};
use crate::dashboard::kit::badge::{Badge, Tone};
use crate::dashboard::kit::copy_button::CopyButton;
use crate::dashboard::kit::diff::CharDiff;
use crate::dashboard::kit::notice::Notice;
use crate::dashboard::kit::time::time_or_dash;
use crate::dashboard::table::{Outcome, View};

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
                p.help { (record.purpose_text()) }
                dl.record {
                    div.short { dt { "Type" } dd { (record.kind) } }
                    @if let Some(priority) = record.priority { div.short { dt { "Priority" } dd { (priority) } } }
                    div.short { dt { "TTL" } dd { (ttl) } }
                    div {
                        dt { "Name" }
                        dd {
                            code { (record.name) } (CopyButton { text: &record.name, label: "the name" })
                            @if host != record.name { p.help { "If your provider adds the domain itself: " code { (host) } } }
                        }
                    }
                    div { dt { "Value" } dd { code { (record.value) } (CopyButton { text: &record.value, label: "the value" }) } }
                }
                @if record.status != "verified" {
                    @if let Some(error) = &record.error { p.dns-error { (plain(error)) } }
                }
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

/// The domain's state in a sentence, with what to do.
fn state_sentence(domain: &SendingDomain) -> (Tone, String) {
    let wrong = domain.wrong_records().count();
    match (domain.status.as_str(), &domain.degraded_since) {
        ("verified", Some(_)) => (
            Tone::Warning,
            "A required record is not found any more. After 72 hours no email can be sent from the domain; put the record back."
                .into(),
        ),
        ("verified", None) => (Tone::Good, "You can send email from this domain.".into()),
        _ if wrong > 0 => {
            let records = if wrong == 1 { "One required record is".into() } else { format!("{wrong} required records are") };
            (Tone::Warning, format!("{records} missing or wrong. Publish what is marked below at your DNS provider, then verify."))
        }
        _ if domain.verified_at.is_none() && domain.last_checked_at.is_none() => {
            (Tone::Active, "Publish these records at your DNS provider, then verify.".into())
        }
        _ => (Tone::Active, "The records were found; verify again to complete.".into()),
    }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let domain = read_domain(context).await?;
    let (tone, text) = state_sentence(&domain);
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
    context.perform(&domain_call("verify_domain", context)).await?;
    Ok(Outcome::done(super::domain_page(context.id()), "verified"))
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
