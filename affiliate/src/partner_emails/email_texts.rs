//! Texts of partner emails, as plain text and as HTML with the same content.
//!
//! The only free text from users is the owner's reason for a rejection and the payout destination. A name entered in
//! the public form is never mailed to an unconfirmed address.
//!
//! Emails that the service sends for a program ([`render_service_text`]) have fixed texts. The only value they take
//! from the program is a host that its account has verified.

use std::fmt::Write as _;

use hypertext::prelude::*;
use message::address::{Address, DomainName};
use model::affiliate::money::Currency;
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::program::PayoutMethod;
use model::system_email::SystemEmail;

// Mail programs ignore style sheets, so each element has its style.
const BODY_STYLE: &str = "margin:0;padding:24px 16px;color:#1b1f24;\
                          font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif";
const LINK_STYLE: &str = "display:inline-block;padding:10px 18px;border-radius:6px;background:#0b57d0;color:#ffffff;\
                          text-decoration:none;font-weight:600";
const QUOTE_STYLE: &str = "margin:1em 0;padding:2px 14px;border-left:4px solid #d0d7de;white-space:pre-line";

/// Values that the texts insert.
#[derive(Debug, Clone)]
pub(super) struct EmailFacts {
    /// Host of the program's website.
    pub(super) site: String,
    pub(super) website_url: String,
    /// Sign-in address of the portal.
    pub(super) portal: String,
    /// The link that the email carries.
    pub(super) link: Option<String>,
    /// Current payout destination.
    pub(super) payout_destination: Option<(PayoutMethod, String)>,
    /// The payout that the email reports.
    pub(super) payout: Option<PayoutEmailDetails>,
}

#[derive(Debug, Clone)]
pub(crate) struct PayoutEmailDetails {
    /// In minor units.
    pub(crate) amount: i64,
    pub(crate) currency: Currency,
    pub(crate) method: PayoutMethod,
    pub(crate) destination: String,
    /// The reference of a paid payout, or the reason of a failed one.
    pub(crate) note: Option<String>,
}

enum EmailBlock {
    Paragraph(String),
    /// A link with its label, shown as a button in HTML.
    Link(&'static str, String),
    /// A quotation: the owner's words, or a payout destination.
    Quote(String),
}

fn paragraph(text: impl Into<String>) -> EmailBlock {
    EmailBlock::Paragraph(text.into())
}

/// A rendered email.
pub(super) struct PartnerEmailContent {
    subject: String,
    parts: Vec<EmailBlock>,
    /// Footer: the sender, and why the recipient gets this email.
    footer: String,
}

/// Returns the display name of a payout method.
pub fn method_name(method: PayoutMethod) -> &'static str {
    match method {
        PayoutMethod::Paypal => "PayPal",
        PayoutMethod::Wise => "Wise",
        PayoutMethod::Bank => "Bank transfer",
        PayoutMethod::Other => "Other",
        PayoutMethod::Stripe => "Stripe",
    }
}

/// Returns method and first line of a payout destination.
pub fn destination_line(method: PayoutMethod, destination: &str) -> String {
    let first = destination.lines().next().unwrap_or_default();
    format!("{}: {first}", method_name(method))
}

/// Renders a program's email. With `is_former`, renders the notice to the former payout destination.
pub(super) fn render(kind: &PartnerEmailKind, is_former: bool, facts: &EmailFacts) -> PartnerEmailContent {
    let site = &facts.site;
    let (subject, parts) = if is_former { former_destination_text(facts) } else { program_text(kind, facts) };
    let footer = format!(
        "You receive this because you joined, applied to or were invited to the partner program of {site} ({}).",
        facts.website_url
    );
    PartnerEmailContent { subject, parts, footer }
}

/// Renders an email of the service, with fixed texts; `None` for kinds that are never requested.
pub(super) fn render_service_text(
    kind: &PartnerEmailKind,
    host: Option<&DomainName>,
    facts: &EmailFacts,
) -> Option<PartnerEmailContent> {
    let program = host
        .map_or_else(|| "a partner program".to_owned(), |host| format!("the partner program of {}", host.to_unicode()));
    let sign_in = || EmailBlock::Link("Sign in", facts.portal.clone());
    let link = |label| EmailBlock::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    let (subject, parts) = match kind {
        PartnerEmailKind::Welcome => (
            format!("You joined {program}"),
            vec![paragraph(format!("You asked to join {program}. You are now a partner.")), sign_in()],
        ),
        PartnerEmailKind::Received => (
            format!("Your application to {program}"),
            vec![paragraph(format!(
                "Your application to {program} was received. You will get an email once it has been reviewed."
            ))],
        ),
        PartnerEmailKind::Approved => (
            format!("Your application to {program}"),
            vec![paragraph(format!("Your application to {program} was approved.")), sign_in()],
        ),
        PartnerEmailKind::Rejected { .. } => (
            format!("Your application to {program}"),
            vec![paragraph(format!("Your application to {program} was not approved."))],
        ),
        PartnerEmailKind::SignIn => (
            "Sign in to the partner portal".to_owned(),
            vec![
                paragraph(format!(
                    "Use this link to sign in to the portal of {program}. It works once and expires after 15 minutes:"
                )),
                link("Sign in"),
            ],
        ),
        PartnerEmailKind::ConfirmPayout { .. } => {
            let destination =
                if facts.payout_destination.is_some() { "another payout destination" } else { "a payout destination" };
            (
                format!("Confirm {destination}"),
                vec![
                    paragraph(format!("Someone signed in as you to the portal of {program} requested {destination}.")),
                    link("Review and confirm"),
                    paragraph("The link works once and expires after one hour."),
                ],
            )
        }
        PartnerEmailKind::Invited
        | PartnerEmailKind::PayoutPaid { .. }
        | PartnerEmailKind::PayoutFailed { .. }
        | PartnerEmailKind::PayoutChanged { .. } => return None,
    };
    let footer = "You receive this because someone entered your address on the partner portal. If it was not you, ignore this email.";
    Some(PartnerEmailContent { subject, parts, footer: footer.to_owned() })
}

fn program_text(kind: &PartnerEmailKind, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let sign_in = || EmailBlock::Link("Sign in", facts.portal.clone());
    let link = |label| EmailBlock::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    match kind {
        PartnerEmailKind::Welcome => (
            format!("Welcome to the partner program of {site}"),
            vec![
                paragraph(format!("You are now a partner of {site}.")),
                paragraph("The partner portal shows your link, your earnings and your payouts."),
                sign_in(),
            ],
        ),
        PartnerEmailKind::Invited => (
            format!("{site} invites you to its partner program"),
            vec![
                paragraph(format!(
                    "{site} invites you to become a partner: share your link and earn a commission on \
                    every sale."
                )),
                link("See the invitation"),
                paragraph(
                    "The link works once and expires after 7 days. If you did not expect this, ignore this \
                    email.",
                ),
            ],
        ),
        PartnerEmailKind::Received => (
            format!("Your application to the partner program of {site}"),
            vec![
                paragraph(format!(
                    "{site} has received your application to its partner program. We will email you \
                    once it has been reviewed."
                )),
                paragraph("If you did not apply, ignore this email."),
            ],
        ),
        PartnerEmailKind::Approved => (
            format!("You are a partner of {site}"),
            vec![paragraph(format!("Your application to the partner program of {site} was approved.")), sign_in()],
        ),
        PartnerEmailKind::Rejected { reason } => {
            let mut parts = vec![paragraph(format!(
                "Your application to the partner program of {site} was not \
                approved."
            ))];
            parts.extend(reason.clone().map(EmailBlock::Quote));
            (format!("Your application to the partner program of {site}"), parts)
        }
        PartnerEmailKind::SignIn => (
            format!("Sign in to the partner portal of {site}"),
            vec![
                paragraph("Use this link to sign in. It works once and expires after 15 minutes:"),
                link("Sign in"),
                paragraph("If you did not request it, ignore this email: nobody can sign in without the link."),
            ],
        ),
        PartnerEmailKind::PayoutPaid { .. } | PartnerEmailKind::PayoutFailed { .. } => payout_text(kind, facts),
        PartnerEmailKind::ConfirmPayout { method, destination } => (
            format!("Confirm where {site} pays you"),
            vec![
                paragraph("Someone signed in to your partner portal requested this payout destination:"),
                EmailBlock::Quote(destination_line(*method, destination)),
                link("Review and confirm the change"),
                paragraph(
                    "The link works once and expires after one hour. If it was not you, do not follow it: \
                    nothing changes. Contact us, because someone else can sign in as you.",
                ),
            ],
        ),
        PartnerEmailKind::PayoutChanged { before } => destination_changed_text(before.as_ref(), facts),
    }
}

fn destination_changed_text(before: Option<&(PayoutMethod, String)>, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let mut parts = vec![paragraph(format!("Your payouts from {site} will be sent to:"))];
    if let Some((method, destination)) = &facts.payout_destination {
        parts.push(EmailBlock::Quote(destination_line(*method, destination)));
    }
    if let Some((method, destination)) = before {
        let before = destination_line(*method, destination);
        parts.push(paragraph(format!("Previously: {before}.")));
    }
    parts.push(paragraph("If you did not request this, contact us at once."));
    let subject = match before {
        Some(_) => format!("Your payout details for {site} changed"),
        None => format!("Your payout details for {site}"),
    };
    (subject, parts)
}

fn payout_text(kind: &PartnerEmailKind, facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let sum = facts.payout.as_ref().map_or_else(
        || "what you have earned".to_owned(),
        |payout| {
            format!("{} {}", payout.currency.format_amount(payout.amount), payout.currency.as_str().to_uppercase())
        },
    );
    let mut parts = Vec::new();
    let to = facts.payout.as_ref().map(|payout| destination_line(payout.method, &payout.destination));
    let note = facts.payout.as_ref().and_then(|payout| payout.note.clone());
    let subject = if matches!(kind, PartnerEmailKind::PayoutPaid { .. }) {
        parts.push(paragraph(format!("{site} has paid you {sum}.")));
        parts.extend(to.map(EmailBlock::Quote));
        parts.extend(note.map(|reference| paragraph(format!("Reference: {reference}"))));
        format!("{site} has paid you {sum}")
    } else {
        parts.push(paragraph(format!("{site} could not pay you {sum}. Two payouts failed.")));
        parts.extend(to.map(EmailBlock::Quote));
        parts.extend(note.map(|reason| paragraph(format!("Reason: {reason}"))));
        parts.push(paragraph(
            "Nothing is lost: the amount is added to your next payout. Update your payout details \
            to receive payouts.",
        ));
        format!("{site} could not pay you")
    };
    parts.push(EmailBlock::Link("Sign in", facts.portal.clone()));
    (subject, parts)
}

/// Renders the notice to the former payout destination. It does not contain the new one.
fn former_destination_text(facts: &EmailFacts) -> (String, Vec<EmailBlock>) {
    let site = &facts.site;
    let parts = vec![
        paragraph(format!(
            "Payouts from the partner program of {site} used to be sent to this address. They now go \
            to another destination, which was confirmed by email."
        )),
        paragraph("If you did not request this, contact us at once."),
    ];
    (format!("Payouts from {site} no longer go to this address"), parts)
}

impl PartnerEmailContent {
    pub(super) fn into_email(self, to: Address) -> SystemEmail {
        let (text, html) = (self.text(), self.html());
        SystemEmail { html: Some(html), ..SystemEmail::new(to, self.subject, text) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let _ = match part {
                EmailBlock::Paragraph(text_block) => writeln!(text, "{text_block}\n"),
                EmailBlock::Link(label, url) => writeln!(text, "{label}:\n{url}\n"),
                EmailBlock::Quote(quote) => {
                    let quote: String = quote.lines().fold(String::new(), |all, line| all + "    " + line + "\n");
                    writeln!(text, "{quote}")
                }
            };
        }
        let _ = writeln!(text, "-- \n{}", self.footer);
        text
    }

    fn html(&self) -> String {
        html::fragment::render(maud! {
            !DOCTYPE
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                }
                body style=(BODY_STYLE) {
                    div style="max-width:34em;margin:0 auto" {
                        @for part in &self.parts {
                            "\n"
                            @match part {
                                EmailBlock::Paragraph(text) => { p { (text) } }
                                EmailBlock::Link(label, url) => { p { a href=(url) style=(LINK_STYLE) { (label) } } }
                                EmailBlock::Quote(quote) => { blockquote style=(QUOTE_STYLE) { (quote) } }
                            }
                        }
                        "\n"
                        p style="margin-top:2em;color:#57606a;font-size:13px" { (self.footer) }
                    }
                }
            }
        })
    }
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
            payout_destination: Some((PayoutMethod::Wise, "new@example.org".to_owned())),
            payout: Some(PayoutEmailDetails {
                amount: 123_450,
                currency: "usd".parse().unwrap(),
                method: PayoutMethod::Paypal,
                destination: "ada@example.org".to_owned(),
                note: Some("tx-1".to_owned()),
            }),
        }
    }

    /// Free text from owners and partners never appears in emails of the service.
    #[test]
    fn service_texts_contain_no_text_of_owners_and_partners() {
        const EVIL: &str = "Pay http://evil.example now";
        let evil = || EVIL.to_owned();
        let facts = EmailFacts { site: evil(), website_url: evil(), ..facts() };
        let (method, payout) = (PayoutMethod::Bank, model::id::PayoutId::from_bytes([1; 16]));
        let host: DomainName = "shop.example".parse().unwrap();
        for kind in [
            PartnerEmailKind::Welcome,
            PartnerEmailKind::Received,
            PartnerEmailKind::Approved,
            PartnerEmailKind::Rejected { reason: Some(evil()) },
            PartnerEmailKind::SignIn,
            PartnerEmailKind::ConfirmPayout { method, destination: evil() },
        ] {
            for host in [None, Some(&host)] {
                let email =
                    render_service_text(&kind, host, &facts).unwrap().into_email("a@example.org".parse().unwrap());
                let all = format!("{} {} {}", email.subject, email.text, email.html.unwrap());
                assert!(!all.contains("evil") && !all.contains("Pay http"), "{all}");
                assert_eq!(all.contains("shop.example"), host.is_some(), "{all}");
            }
        }
        for kind in [
            PartnerEmailKind::Invited,
            PartnerEmailKind::PayoutPaid { payout },
            PartnerEmailKind::PayoutChanged { before: None },
        ] {
            assert!(render_service_text(&kind, None, &facts).is_none());
        }
    }

    #[test]
    fn a_first_destination_is_not_called_another_one() {
        let kind = PartnerEmailKind::ConfirmPayout { method: PayoutMethod::Bank, destination: "DE 1".to_owned() };
        let subject = |goes_to| {
            render_service_text(&kind, None, &EmailFacts { payout_destination: goes_to, ..facts() }).unwrap().subject
        };
        assert_eq!(subject(None), "Confirm a payout destination");
        assert_eq!(subject(facts().payout_destination), "Confirm another payout destination");
    }

    #[test]
    fn emails_have_the_same_content_in_text_and_html() {
        let payout = model::id::PayoutId::from_bytes([1; 16]);
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
                "Bank transfer: DE 1",
            ),
            (
                PartnerEmailKind::PayoutChanged { before: Some((PayoutMethod::Paypal, "old@example.org".to_owned())) },
                "Your payout details for shop.example changed",
                "Wise: new@example.org",
            ),
            (
                PartnerEmailKind::PayoutChanged { before: None },
                "Your payout details for shop.example",
                "Wise: new@example.org",
            ),
        ];
        for (kind, subject, expected) in table {
            let email = render(&kind, false, &facts()).into_email("a@example.org".parse().unwrap());
            let html = email.html.clone().unwrap();
            assert_eq!(email.subject, subject);
            assert!(email.text.contains(expected) && html.contains(expected), "{}\n{html}", email.text);
            assert!(
                email.text.contains("or were invited to the partner program of shop.example") && !html.contains("<b>")
            );
        }
        let former = render(&PartnerEmailKind::PayoutChanged { before: None }, true, &facts());
        assert!(!former.text().contains("new@example.org"), "{}", former.text());
    }
}
