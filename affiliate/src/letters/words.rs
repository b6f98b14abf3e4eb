//! What letters to partners say, as plain text and as HTML: the same words in both.
//!
//! Nothing of it was written by strangers but what the owner says of a rejection and where money is to go; a name that
//! somebody gave in the public form does not stand in mail that goes to an address that nobody has confirmed.
//!
//! What the service writes in a program's stead ([`write_fixed`]) are fixed words: the one thing of the program in them is a
//! host that its account has verified.

use std::fmt::Write as _;

use mail::address::{Address, Name};
use mail::affiliate::money::Currency;
use mail::affiliate::partner_letter::Tells;
use mail::affiliate::program::PayoutMethod;
use mail::letter::Letter;

/// What the words are made of.
#[derive(Debug, Clone)]
pub(super) struct Facts {
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
    pub(super) payout: Option<ToldPayout>,
}

/// What is told of a payout.
#[derive(Debug, Clone)]
pub(crate) struct ToldPayout {
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
enum Part {
    /// A paragraph.
    Words(String),
    /// A link that is there to be followed.
    Link(&'static str, String),
    /// What was said by the owner, or stands for itself.
    Quote(String),
}

/// A letter as it is written.
pub(super) struct Written {
    subject: String,
    parts: Vec<Part>,
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
pub(super) fn write(tells: &Tells, is_former: bool, facts: &Facts) -> Written {
    let site = &facts.site;
    let (subject, parts) = if is_former { former(facts) } else { own(tells, facts) };
    let foot = format!(
        "This is mail of the partner program of {site} ({}), to a partner or somebody who asked to be one.",
        facts.website_url
    );
    Written { subject, parts, foot }
}

/// Writes a letter in the service's own words; none where it has none, for nobody asks for such a letter.
pub(super) fn write_fixed(tells: &Tells, host: Option<&Name>, facts: &Facts) -> Option<Written> {
    let program = host.map_or_else(
        || "a partner program".to_owned(),
        |host| format!("the partner program of {}", host.to_unicode()),
    );
    let words = |text: String| Part::Words(text);
    let sign_in = || Part::Link("Sign in", facts.portal.clone());
    let link = |label| Part::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    let (subject, parts) = match tells {
        Tells::Welcome => (
            format!("You joined {program}"),
            vec![words(format!("You asked to join {program}, and are a partner now.")), sign_in()],
        ),
        Tells::Received => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was received. It waits for an answer."))],
        ),
        Tells::Approved => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was approved.")), sign_in()],
        ),
        Tells::Rejected { .. } => (
            format!("Your application to {program}"),
            vec![words(format!("Your application to {program} was not approved."))],
        ),
        Tells::SignIn => (
            "Sign in to the partner portal".to_owned(),
            vec![
                words(format!(
                    "Here is the link to the portal of {program}. It works once, within 15 minutes:"
                )),
                link("Sign in"),
            ],
        ),
        Tells::ConfirmPayout { .. } => {
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
        Tells::Invited
        | Tells::PayoutPaid { .. }
        | Tells::PayoutFailed { .. }
        | Tells::PayoutChanged { .. } => return None,
    };
    let foot = "This mail was asked for on a page of the partner portal. If it was not you, ignore it: nothing happens.";
    Some(Written { subject, parts, foot: foot.to_owned() })
}

fn own(tells: &Tells, facts: &Facts) -> (String, Vec<Part>) {
    let site = &facts.site;
    let sign_in = || Part::Link("Sign in", facts.portal.clone());
    let link = |label| Part::Link(label, facts.link.clone().unwrap_or_else(|| facts.portal.clone()));
    match tells {
        Tells::Welcome => (
            format!("Welcome to the partner program of {site}"),
            vec![
                Part::Words(format!("You are a partner of {site} now.")),
                Part::Words(
                    "In the partner portal you find your link, what comes of it, and how you are paid."
                        .to_owned(),
                ),
                sign_in(),
            ],
        ),
        Tells::Invited => (
            format!("{site} invites you to its partner program"),
            vec![
                Part::Words(format!("{site} would like to have you as a partner: you share a link, and earn when somebody buys by it.")),
                link("See the invitation"),
                Part::Words("The link works once, within 7 days. If you do not know what this is about, leave it: without the link nothing happens.".to_owned()),
            ],
        ),
        Tells::Received => (
            format!("Your application to the partner program of {site}"),
            vec![
                Part::Words(format!("{site} has received your application to its partner program. You hear from us when it was looked at.")),
                Part::Words("If you did not apply, leave this: nothing happens.".to_owned()),
            ],
        ),
        Tells::Approved => (
            format!("You are a partner of {site}"),
            vec![
                Part::Words(format!("Your application to the partner program of {site} was approved.")),
                sign_in(),
            ],
        ),
        Tells::Rejected { reason } => {
            let mut parts =
                vec![Part::Words(format!("Your application to the partner program of {site} was not approved."))];
            parts.extend(reason.clone().map(Part::Quote));
            (format!("Your application to the partner program of {site}"), parts)
        }
        Tells::SignIn => (
            format!("Sign in to the partner portal of {site}"),
            vec![
                Part::Words("Here is the link that was asked for. It works once, within 15 minutes:".to_owned()),
                link("Sign in"),
                Part::Words("If you have not asked for it, leave it: without the link nobody can sign in.".to_owned()),
            ],
        ),
        Tells::PayoutPaid { .. } | Tells::PayoutFailed { .. } => payout(tells, facts),
        Tells::ConfirmPayout { method, destination } => (
            format!("Confirm where {site} pays you"),
            vec![
                Part::Words("Somebody who has signed in to your partner portal asked that payouts go there from now on:".to_owned()),
                Part::Quote(destination_line((*method, destination))),
                link("Look at the change and confirm it"),
                Part::Words("The link works once, within an hour. If it was not you, do not follow it: nothing changes. Tell us then, for somebody else can sign in as you.".to_owned()),
            ],
        ),
        Tells::PayoutChanged { before } => changed(before.as_ref(), facts),
    }
}

fn changed(before: Option<&(PayoutMethod, String)>, facts: &Facts) -> (String, Vec<Part>) {
    let site = &facts.site;
    let mut parts = vec![Part::Words(format!("From now on {site} pays you here:"))];
    if let Some((method, destination)) = &facts.goes_to {
        parts.push(Part::Quote(destination_line((*method, destination))));
    }
    if let Some((method, destination)) = before {
        let before = destination_line((*method, destination));
        parts.push(Part::Words(format!("Before, it was {before}.")));
    }
    parts.push(Part::Words("If this was not your wish, tell us at once.".to_owned()));
    let subject = match before {
        Some(_) => format!("{site} pays you to another destination"),
        None => format!("Where {site} pays you"),
    };
    (subject, parts)
}

fn payout(tells: &Tells, facts: &Facts) -> (String, Vec<Part>) {
    let site = &facts.site;
    let sum = facts.payout.as_ref().map_or_else(
        || "what you have earned".to_owned(),
        |payout| {
            format!("{} {}", payout.currency.written(payout.amount), payout.currency.as_str().to_uppercase())
        },
    );
    let mut parts = Vec::new();
    let to = facts.payout.as_ref().map(|payout| destination_line((payout.method, &payout.destination)));
    let note = facts.payout.as_ref().and_then(|payout| payout.note.clone());
    let subject = if matches!(tells, Tells::PayoutPaid { .. }) {
        parts.push(Part::Words(format!("{site} has paid you {sum}.")));
        parts.extend(to.map(Part::Quote));
        parts.extend(note.map(|reference| Part::Words(format!("Reference: {reference}"))));
        format!("{site} has paid you {sum}")
    } else {
        parts.push(Part::Words(format!("{site} could not pay you {sum}: twice in a row it did not arrive.")));
        parts.extend(to.map(Part::Quote));
        parts.extend(note.map(|why| Part::Words(format!("What was said: {why}"))));
        parts.push(Part::Words(
            "Nothing is lost: it goes into the next payout. Until you say anew where payouts go, there is none."
                .to_owned(),
        ));
        format!("{site} could not pay you")
    };
    parts.push(Part::Link("Sign in", facts.portal.clone()));
    (subject, parts)
}

/// Where money went so far is told that it goes elsewhere; where to, is none of its business.
fn former(facts: &Facts) -> (String, Vec<Part>) {
    let site = &facts.site;
    let parts = vec![
        Part::Words(format!(
            "Payouts of the partner program of {site} went to this address. From now on they go elsewhere, as was confirmed by mail."
        )),
        Part::Words("If this was not your wish, tell us at once.".to_owned()),
    ];
    (format!("Payouts of {site} go elsewhere"), parts)
}

impl Written {
    /// The letter, to this address.
    pub(super) fn letter(self, to: Address) -> Letter {
        let (text, html) = (self.text(), self.html());
        Letter { html: Some(html), ..Letter::new(to, self.subject, text) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let _ = match part {
                Part::Words(words) => writeln!(text, "{words}\n"),
                Part::Link(label, url) => writeln!(text, "{label}:\n{url}\n"),
                Part::Quote(quote) => {
                    let quote: String =
                        quote.lines().fold(String::new(), |all, line| all + "    " + line + "\n");
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
                Part::Words(words) => writeln!(html, "<p>{}</p>", escaped(words)),
                Part::Link(label, url) => writeln!(
                    html,
                    "<p><a href=\"{}\" style=\"display:inline-block;padding:10px 18px;border-radius:6px;\
                     background:#0b57d0;color:#ffffff;text-decoration:none;font-weight:600\">{label}</a></p>",
                    escaped(url)
                ),
                Part::Quote(quote) => writeln!(
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

    fn facts() -> Facts {
        Facts {
            site: "shop.example".to_owned(),
            website_url: "https://shop.example".to_owned(),
            portal: "https://api.example/portal/sign-in?key=pk_1".to_owned(),
            link: Some("https://api.example/portal/link/s3cret".to_owned()),
            goes_to: Some((PayoutMethod::Wise, "new@example.org".to_owned())),
            payout: Some(ToldPayout {
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
        let facts = Facts { site: evil(), website_url: evil(), ..facts() };
        let (method, payout) = (PayoutMethod::Bank, mail::id::PayoutId::from_bytes([1; 16]));
        let host: Name = "shop.example".parse().unwrap();
        for tells in [
            Tells::Welcome,
            Tells::Received,
            Tells::Approved,
            Tells::Rejected { reason: Some(evil()) },
            Tells::SignIn,
            Tells::ConfirmPayout { method, destination: evil() },
        ] {
            for host in [None, Some(&host)] {
                let letter =
                    write_fixed(&tells, host, &facts).unwrap().letter("a@example.org".parse().unwrap());
                let all = format!("{} {} {}", letter.subject, letter.text, letter.html.unwrap());
                assert!(!all.contains("evil") && !all.contains("Pay http"), "{all}");
                assert_eq!(all.contains("shop.example"), host.is_some(), "{all}");
            }
        }
        for tells in [Tells::Invited, Tells::PayoutPaid { payout }, Tells::PayoutChanged { before: None }] {
            assert!(write_fixed(&tells, None, &facts).is_none());
        }
    }

    #[test]
    fn the_first_destination_is_not_another_one() {
        let tells = Tells::ConfirmPayout { method: PayoutMethod::Bank, destination: "DE 1".to_owned() };
        let subject = |goes_to| write_fixed(&tells, None, &Facts { goes_to, ..facts() }).unwrap().subject;
        assert_eq!(subject(None), "Confirm a payout destination");
        assert_eq!(subject(facts().goes_to), "Confirm another payout destination");
    }

    #[test]
    fn letters_say_the_same_in_text_and_html() {
        let payout = mail::id::PayoutId::from_bytes([1; 16]);
        let reason = Some("<b>Too</b> few\nreaders".to_owned());
        let method = PayoutMethod::Bank;
        let table = [
            (Tells::Welcome, "Welcome to the partner program of shop.example", "sign-in?key=pk_1"),
            (Tells::Invited, "shop.example invites you to its partner program", "/portal/link/s3cret"),
            (Tells::Received, "Your application to the partner program of shop.example", "has received"),
            (Tells::Approved, "You are a partner of shop.example", "was approved"),
            (
                Tells::Rejected { reason },
                "Your application to the partner program of shop.example",
                "readers",
            ),
            (Tells::SignIn, "Sign in to the partner portal of shop.example", "/portal/link/s3cret"),
            (Tells::PayoutPaid { payout }, "shop.example has paid you 1234.50 USD", "tx-1"),
            (Tells::PayoutFailed { payout }, "shop.example could not pay you", "1234.50 USD"),
            (
                Tells::ConfirmPayout { method, destination: "DE 1".to_owned() },
                "Confirm where shop.example pays you",
                "bank transfer: DE 1",
            ),
            (
                Tells::PayoutChanged { before: Some((PayoutMethod::Paypal, "old@example.org".to_owned())) },
                "shop.example pays you to another destination",
                "Wise: new@example.org",
            ),
            (Tells::PayoutChanged { before: None }, "Where shop.example pays you", "Wise: new@example.org"),
        ];
        for (tells, subject, says) in table {
            let letter = write(&tells, false, &facts()).letter("a@example.org".parse().unwrap());
            let html = letter.html.clone().unwrap();
            assert_eq!(letter.subject, subject);
            assert!(letter.text.contains(says) && html.contains(says), "{}\n{html}", letter.text);
            assert!(letter.text.ends_with("somebody who asked to be one.\n") && !html.contains("<b>"));
        }
        let former = write(&Tells::PayoutChanged { before: None }, true, &facts());
        assert!(!former.text().contains("new@example.org"), "{}", former.text());
    }
}
