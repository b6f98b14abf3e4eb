//! What letters to partners say, as plain text and as HTML: the same words in both.
//!
//! Nothing of it was written by strangers but what the owner says of a rejection and where money is to go; a name that
//! somebody gave in the public form does not stand in mail that goes to an address that nobody has confirmed.
//!
//! What the service writes in a program's stead ([`write_fixed`]) are fixed words: the one thing of the program in them is a
//! host that its account has verified.

use std::fmt::Write as _;

use mail::address::{Address, DomainName};
use mail::affiliate::money::Currency;
use mail::affiliate::partner_letter::PartnerEmailKind;
use mail::affiliate::program::PayoutMethod;
use mail::letter::SystemEmail;

/// What the words are made of.
#[derive(Debug, Clone)]
pub(super) struct EmailFacts {
    /// The program, as people know it.
    pub(super) site: String,
    /// Its website.
    pub(super) website_url: String,
    /// Where one signs in.
    pub(super) portal: String,
    /// The link that the letter carries.
    pub(super) link: Option<String>,
    /// Where payouts go.
    pub(super) goes_to: Option<(PayoutMethod, String)>,
    /// The payout that is told of.
    pub(super) payout: Option<PayoutEmailDetails>,
}

/// What is told of a payout.
#[derive(Debug, Clone)]
pub(crate) struct PayoutEmailDetails {
    /// How much, in minor units.
    pub(crate) amount: i64,
    /// Of what.
    pub(crate) currency: Currency,
    /// In which way.
    pub(crate) method: PayoutMethod,
    /// To whom.
    pub(crate) destination: String,
    /// What proves it, or why it failed.
    pub(crate) note: Option<String>,
}

/// A part of a letter.
enum EmailBlock {
    /// A paragraph.
    Paragraph(String),
    /// A link that is there to be followed.
    Link(&'static str, String),
    /// What was said by the owner, or stands for itself.
    Quote(String),
}

/// A letter as it is written.
pub(super) struct PartnerEmailContent {
    subject: String,
    parts: Vec<EmailBlock>,
    /// Who writes, and why.
    foot: String,
}

/// How people call a way to pay.
#[must_use]
pub fn method_name(method: PayoutMethod) -> &'static str {
    match method {
        PayoutMethod::Paypal => "PayPal",
        PayoutMethod::Wise => "Wise",
        PayoutMethod::Bank => "bank transfer",
        PayoutMethod::Other => "another way",
        PayoutMethod::Stripe => "Stripe",
    }
}

/// Where money goes, in a line.
#[must_use]
pub fn destination_line((method, destination): (PayoutMethod, &str)) -> String {
    let first = destination.lines().next().unwrap_or_default();
    format!("{}: {first}", method_name(method))
}

/// Writes a letter; to the former destination of payouts, where it is not the partner who reads it.
pub(super) fn render(tells: &PartnerEmailKind, is_former: bool, facts: &EmailFacts) -> PartnerEmailContent {
    let site = &facts.site;
    let (subject, parts) = if is_former { former_destination_text(facts) } else { program_text(tells, facts) };
    let foot = format!(
        "This is mail of the partner program of {site} ({}), to a partner or somebody who asked to be one.",
        facts.website_url
    );
    PartnerEmailContent { subject, parts, foot }
}

/// Writes a letter in the service's own words; none where it has none, for nobody asks for such a letter.
pub(super) fn render_service_text(
    tells: &PartnerEmailKind,
    host: Option<&DomainName>,
    facts: &EmailFacts,
) -> Option<PartnerEmailContent> {
    let program = host
        .map_or_else(|| "a partner program".to_owned(), |host| format!("the partner program of {}", host.to_unicode()));
    let words = |text: String| EmailBlock::Paragraph(text);
    let sign_in = || EmailBlock::Link("Sign in", facts.portal.clone());
    let link = |label| EmailBlock::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    let (subject, parts) = match tells {
        PartnerEmailKind::Welcome => (
            format!("You joined {program}"),
            vec![words(format!("You asked to join {program}, and are a partner now.")), sign_in()],
        ),
        PartnerEmailKind::Received => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was received. It waits for an answer."))],
        ),
        PartnerEmailKind::Approved => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was approved.")), sign_in()],
        ),
        PartnerEmailKind::Rejected { .. } => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was not approved."))],
        ),
        PartnerEmailKind::SignIn => (
            "Sign in to the partner portal".to_owned(),
            vec![
                words(format!("Here is the link to the portal of {program}. It works once, within 15 minutes:")),
                link("Sign in"),
            ],
        ),
        PartnerEmailKind::ConfirmPayout { .. } => {
            let destination =
                if facts.goes_to.is_some() { "another payout destination" } else { "a payout destination" };
            (
                format!("Confirm {destination}"),
                vec![
                    words(format!(
                        "Somebody who is signed in to the portal of {program} as you asked for {destination}."
                    )),
                    link("Look at it and confirm it"),
                    words("The link works once, within an hour.".to_owned()),
                ],
            )
        }
        PartnerEmailKind::Invited
        | PartnerEmailKind::PayoutPaid { .. }
        | PartnerEmailKind::PayoutFailed { .. }
        | PartnerEmailKind::PayoutChanged { .. } => return None,
    };
    let foot =
        "This mail was asked for on a page of the partner portal. If it was not you, ignore it: nothing happens.";
    Some(PartnerEmailContent { subject, parts, foot: foot.to_owned() })
}

fn program_text(tells: &PartnerEmailKind, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let sign_in = || EmailBlock::Link("Sign in", facts.portal.clone());
    let link = |label| EmailBlock::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    match tells {
        PartnerEmailKind::Welcome => (
            format!("Welcome to the partner program of {site}"),
            vec![
                EmailBlock::Paragraph(format!("You are a partner of {site} now.")),
                EmailBlock::Paragraph(
                    "In the partner portal you find your link, what comes of it, and how you are paid."
                        .to_owned(),
                ),
                sign_in(),
            ],
        ),
        PartnerEmailKind::Invited => (
            format!("{site} invites you to its partner program"),
            vec![
                EmailBlock::Paragraph(format!("{site} would like to have you as a partner: you share a link, and earn when somebody buys by it.")),
                link("See the invitation"),
                EmailBlock::Paragraph("The link works once, within 7 days. If you do not know what this is about, leave it: without the link nothing happens.".to_owned()),
            ],
        ),
        PartnerEmailKind::Received => (
            format!("Your application to the partner program of {site}"),
            vec![
                EmailBlock::Paragraph(format!("{site} has received your application to its partner program. You hear from us when it was looked at.")),
                EmailBlock::Paragraph("If you did not apply, leave this: nothing happens.".to_owned()),
            ],
        ),
        PartnerEmailKind::Approved => (
            format!("You are a partner of {site}"),
            vec![
                EmailBlock::Paragraph(format!("Your application to the partner program of {site} was approved.")),
                sign_in(),
            ],
        ),
        PartnerEmailKind::Rejected { reason } => {
            let mut parts =
                vec![EmailBlock::Paragraph(format!("Your application to the partner program of {site} was not approved."))];
            parts.extend(reason.clone().map(EmailBlock::Quote));
            (format!("Your application to the partner program of {site}"), parts)
        }
        PartnerEmailKind::SignIn => (
            format!("Sign in to the partner portal of {site}"),
            vec![
                EmailBlock::Paragraph("Here is the link that was asked for. It works once, within 15 minutes:".to_owned()),
                link("Sign in"),
                EmailBlock::Paragraph("If you have not asked for it, leave it: without the link nobody can sign in.".to_owned()),
            ],
        ),
        PartnerEmailKind::PayoutPaid { .. } | PartnerEmailKind::PayoutFailed { .. } => payout_text(tells, facts),
        PartnerEmailKind::ConfirmPayout { method, destination } => (
            format!("Confirm where {site} pays you"),
            vec![
                EmailBlock::Paragraph("Somebody who has signed in to your partner portal asked that payouts go there from now on:".to_owned()),
                EmailBlock::Quote(destination_line((*method, destination))),
                link("Look at the change and confirm it"),
                EmailBlock::Paragraph("The link works once, within an hour. If it was not you, do not follow it: nothing changes. Tell us then, for somebody else can sign in as you.".to_owned()),
            ],
        ),
        PartnerEmailKind::PayoutChanged { before } => destination_changed_text(before.as_ref(), facts),
    }
}

fn destination_changed_text(before: Option<&(PayoutMethod, String)>, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let mut parts = vec![EmailBlock::Paragraph(format!("From now on {site} pays you here:"))];
    if let Some((method, destination)) = &facts.goes_to {
        parts.push(EmailBlock::Quote(destination_line((*method, destination))));
    }
    if let Some((method, destination)) = before {
        let before = destination_line((*method, destination));
        parts.push(EmailBlock::Paragraph(format!("Before, it was {before}.")));
    }
    parts.push(EmailBlock::Paragraph("If this was not your wish, tell us at once.".to_owned()));
    let subject = match before {
        Some(_) => format!("{site} pays you to another destination"),
        None => format!("Where {site} pays you"),
    };
    (subject, parts)
}

fn payout_text(tells: &PartnerEmailKind, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let sum = facts.payout.as_ref().map_or_else(
        || "what you have earned".to_owned(),
        |payout| {
            format!("{} {}", payout.currency.format_amount(payout.amount), payout.currency.as_str().to_uppercase())
        },
    );
    let mut parts = Vec::new();
    let to = facts.payout.as_ref().map(|payout| destination_line((payout.method, &payout.destination)));
    let note = facts.payout.as_ref().and_then(|payout| payout.note.clone());
    let subject = if matches!(tells, PartnerEmailKind::PayoutPaid { .. }) {
        parts.push(EmailBlock::Paragraph(format!("{site} has paid you {sum}.")));
        parts.extend(to.map(EmailBlock::Quote));
        parts.extend(note.map(|reference| EmailBlock::Paragraph(format!("Reference: {reference}"))));
        format!("{site} has paid you {sum}")
    } else {
        parts.push(EmailBlock::Paragraph(format!("{site} could not pay you {sum}: twice in a row it did not arrive.")));
        parts.extend(to.map(EmailBlock::Quote));
        parts.extend(note.map(|why| EmailBlock::Paragraph(format!("What was said: {why}"))));
        parts.push(EmailBlock::Paragraph(
            "Nothing is lost: it goes into the next payout. Until you say anew where payouts go, there is none."
                .to_owned(),
        ));
        format!("{site} could not pay you")
    };
    parts.push(EmailBlock::Link("Sign in", facts.portal.clone()));
    (subject, parts)
}

/// Where money went so far is told that it goes elsewhere; where to, is none of its business.
fn former_destination_text(facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let parts = vec![
        EmailBlock::Paragraph(format!(
            "Payouts of the partner program of {site} went to this address. From now on they go elsewhere, as was confirmed by mail."
        )),
        EmailBlock::Paragraph("If this was not your wish, tell us at once.".to_owned()),
    ];
    (format!("Payouts of {site} go elsewhere"), parts)
}

impl PartnerEmailContent {
    /// The letter, to this address.
    pub(super) fn into_email(self, to: Address) -> SystemEmail {
        let (text, html) = (self.text(), self.html());
        SystemEmail { html: Some(html), ..SystemEmail::new(to, self.subject, text) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let _ = match part {
                EmailBlock::Paragraph(words) => writeln!(text, "{words}\n"),
                EmailBlock::Link(label, url) => writeln!(text, "{label}:\n{url}\n"),
                EmailBlock::Quote(quote) => {
                    let quote: String = quote.lines().fold(String::new(), |all, line| all + "    " + line + "\n");
                    writeln!(text, "{quote}")
                }
            };
        }
        let _ = writeln!(text, "-- \n{}", self.foot);
        text
    }

    fn html(&self) -> String {
        let mut html = String::from(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"></head>\n\
             <body style=\"margin:0;padding:24px 16px;color:#1b1f24;font:16px/1.55 system-ui,-apple-system,'Segoe UI',\
             Roboto,sans-serif\">\n<div style=\"max-width:34em;margin:0 auto\">\n",
        );
        for part in &self.parts {
            let _ = match part {
                EmailBlock::Paragraph(words) => writeln!(html, "<p>{}</p>", escaped(words)),
                EmailBlock::Link(label, url) => writeln!(
                    html,
                    "<p><a href=\"{}\" style=\"display:inline-block;padding:10px 18px;border-radius:6px;\
                     background:#0b57d0;color:#ffffff;text-decoration:none;font-weight:600\">{label}</a></p>",
                    escaped(url)
                ),
                EmailBlock::Quote(quote) => writeln!(
                    html,
                    "<blockquote style=\"margin:1em 0;padding:2px 14px;border-left:4px solid #d0d7de;\
                     white-space:pre-line\">{}</blockquote>",
                    escaped(quote)
                ),
            };
        }
        let _ = writeln!(
            html,
            "<p style=\"margin-top:2em;color:#57606a;font-size:13px\">{}</p>\n</div>\n</body></html>",
            escaped(&self.foot)
        );
        html
    }
}

/// Text between tags or in an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> EmailFacts {
        EmailFacts {
            site: "shop.example".to_owned(),
            website_url: "https://shop.example".to_owned(),
            portal: "https://api.example/portal/sign-in?key=pk_1".to_owned(),
            link: Some("https://api.example/portal/link/s3cret".to_owned()),
            goes_to: Some((PayoutMethod::Wise, "new@example.org".to_owned())),
            payout: Some(PayoutEmailDetails {
                amount: 123_450,
                currency: "usd".parse().unwrap(),
                method: PayoutMethod::Paypal,
                destination: "ada@example.org".to_owned(),
                note: Some("tx-1".to_owned()),
            }),
        }
    }

    /// What owners and partners were free to choose does not stand in what the service writes.
    #[test]
    fn fixed_words_hold_nothing_of_owners_and_partners() {
        const EVIL: &str = "Pay http://evil.example now";
        let evil = || EVIL.to_owned();
        let facts = EmailFacts { site: evil(), website_url: evil(), ..facts() };
        let (method, payout) = (PayoutMethod::Bank, mail::id::PayoutId::from_bytes([1; 16]));
        let host: DomainName = "shop.example".parse().unwrap();
        for tells in [
            PartnerEmailKind::Welcome,
            PartnerEmailKind::Received,
            PartnerEmailKind::Approved,
            PartnerEmailKind::Rejected { reason: Some(evil()) },
            PartnerEmailKind::SignIn,
            PartnerEmailKind::ConfirmPayout { method, destination: evil() },
        ] {
            for host in [None, Some(&host)] {
                let letter =
                    render_service_text(&tells, host, &facts).unwrap().into_email("a@example.org".parse().unwrap());
                let all = format!("{} {} {}", letter.subject, letter.text, letter.html.unwrap());
                assert!(!all.contains("evil") && !all.contains("Pay http"), "{all}");
                assert_eq!(all.contains("shop.example"), host.is_some(), "{all}");
            }
        }
        for tells in [
            PartnerEmailKind::Invited,
            PartnerEmailKind::PayoutPaid { payout },
            PartnerEmailKind::PayoutChanged { before: None },
        ] {
            assert!(render_service_text(&tells, None, &facts).is_none());
        }
    }

    #[test]
    fn the_first_destination_is_not_another_one() {
        let tells = PartnerEmailKind::ConfirmPayout { method: PayoutMethod::Bank, destination: "DE 1".to_owned() };
        let subject = |goes_to| render_service_text(&tells, None, &EmailFacts { goes_to, ..facts() }).unwrap().subject;
        assert_eq!(subject(None), "Confirm a payout destination");
        assert_eq!(subject(facts().goes_to), "Confirm another payout destination");
    }

    #[test]
    fn letters_say_the_same_in_text_and_html() {
        let payout = mail::id::PayoutId::from_bytes([1; 16]);
        let reason = Some("<b>Too</b> few\nreaders".to_owned());
        let method = PayoutMethod::Bank;
        let table = [
            (PartnerEmailKind::Welcome, "Welcome to the partner program of shop.example", "sign-in?key=pk_1"),
            (PartnerEmailKind::Invited, "shop.example invites you to its partner program", "/portal/link/s3cret"),
            (PartnerEmailKind::Received, "Your application to the partner program of shop.example", "has received"),
            (PartnerEmailKind::Approved, "You are a partner of shop.example", "was approved"),
            (
                PartnerEmailKind::Rejected { reason },
                "Your application to the partner program of shop.example",
                "readers",
            ),
            (PartnerEmailKind::SignIn, "Sign in to the partner portal of shop.example", "/portal/link/s3cret"),
            (PartnerEmailKind::PayoutPaid { payout }, "shop.example has paid you 1234.50 USD", "tx-1"),
            (PartnerEmailKind::PayoutFailed { payout }, "shop.example could not pay you", "1234.50 USD"),
            (
                PartnerEmailKind::ConfirmPayout { method, destination: "DE 1".to_owned() },
                "Confirm where shop.example pays you",
                "bank transfer: DE 1",
            ),
            (
                PartnerEmailKind::PayoutChanged { before: Some((PayoutMethod::Paypal, "old@example.org".to_owned())) },
                "shop.example pays you to another destination",
                "Wise: new@example.org",
            ),
            (PartnerEmailKind::PayoutChanged { before: None }, "Where shop.example pays you", "Wise: new@example.org"),
        ];
        for (tells, subject, says) in table {
            let letter = render(&tells, false, &facts()).into_email("a@example.org".parse().unwrap());
            let html = letter.html.clone().unwrap();
            assert_eq!(letter.subject, subject);
            assert!(letter.text.contains(says) && html.contains(says), "{}\n{html}", letter.text);
            assert!(letter.text.ends_with("somebody who asked to be one.\n") && !html.contains("<b>"));
        }
        let former = render(&PartnerEmailKind::PayoutChanged { before: None }, true, &facts());
        assert!(!former.text().contains("new@example.org"), "{}", former.text());
    }
}
