//! The answer to "why is it not there yet", recipient by recipient.

use explain::explanation::{DeliveryState, Explanation, NextStep, RecipientDelivery, explain};

use super::email_path;
use super::object::WholeEmail;
use crate::dashboard::kit::time::Time;
use crate::dashboard::prelude::*;

/// One paragraph for each recipient of an email. Those who do not have it come first.
pub(super) fn standings(context: &Context<'_>, email: &WholeEmail) -> impl Renderable {
    let (recipients, last_event, now) = (email.recipients.iter(), &email.item.last_event, context.now());
    let mut explained: Vec<_> = recipients.map(|recipient| (recipient, explain(recipient, last_event, now))).collect();
    explained.sort_by_key(|(_, explanation)| match explanation.standing {
        DeliveryState::Stopped => 0,
        DeliveryState::Waiting => 1,
        DeliveryState::Arrived => 2,
    });
    let has = |standing| explained.iter().any(|(_, explanation)| explanation.standing == standing);
    let title = match (has(DeliveryState::Waiting), has(DeliveryState::Stopped), has(DeliveryState::Arrived)) {
        (true, ..) if email.item.is_scheduled() => "When it is sent",
        (true, ..) => "Why it has not arrived yet",
        (false, true, true) => "Who has received it, and who has not",
        (false, true, false) => "Why it did not arrive",
        _ => "Where it is",
    };
    maud! {
        section.standings aria-labelledby="standing" {
            h2 #standing { (title) }
            @for (recipient, explanation) in &explained {
                (RecipientCard { context, email, recipient, explanation }.view())
            }
        }
    }
}

struct RecipientCard<'c> {
    context: &'c Context<'c>,
    email: &'c WholeEmail,
    recipient: &'c RecipientDelivery,
    explanation: &'c Explanation,
}

impl RecipientCard<'_> {
    /// Several recipients who have the email would all get the same advice.
    fn shows_advice(&self) -> bool {
        let is_alike = self.explanation.standing == DeliveryState::Arrived && self.recipient.complained_at.is_none();
        let is_repeated = is_alike && self.email.recipients.len() > 1;
        !(self.explanation.advice.is_empty() || is_repeated)
    }

    fn next_lead(&self) -> &'static str {
        match self.explanation.next_step {
            Some(NextStep::Reschedule) => " Scheduled for: ",
            _ => " Next attempt: ",
        }
    }

    /// Path and label of the next step, if the role allows it.
    fn action(&self) -> Option<(String, &'static str)> {
        let id = self.email.item.id.as_str();
        let (operation, path, label) = match self.explanation.next_step? {
            NextStep::Resend if !self.email.item.is_resendable() => return None,
            NextStep::Resend => ("resend_email", format!("{}/resend", email_path(id)), "Send it again"),
            NextStep::Reschedule => {
                ("update_email", format!("{}/reschedule", email_path(id)), "Send it at another time")
            }
            NextStep::ShowSuppression => (
                "get_suppression",
                format!("/dashboard/suppressions/{}", encode(&self.recipient.email)),
                "Show the suppression",
            ),
            NextStep::CheckDomain => ("list_domains", "/dashboard/domains".to_owned(), "Check your domains"),
        };
        self.context.allows(operation).then_some((path, label))
    }

    fn view(&self) -> impl Renderable {
        let (recipient, explanation) = (self.recipient, self.explanation);
        let tone = match (explanation.standing, recipient.complained_at) {
            (DeliveryState::Arrived, None) => Tone::Good,
            (DeliveryState::Arrived, Some(_)) | (DeliveryState::Stopped, _) => Tone::Bad,
            (DeliveryState::Waiting, _) if recipient.attempts > 0 => Tone::Warning,
            (DeliveryState::Waiting, _) => Tone::Active,
        };
        let is_scheduled = recipient.waits_for.as_ref().is_some_and(|wait| wait.cause == "scheduled_at");
        let status = match recipient.complained_at {
            Some(_) => "complained",
            None if is_scheduled => "scheduled",
            None => recipient.status.as_str(),
        };
        let kind = match recipient.kind.as_str() {
            "cc" => Some("Copy"),
            "bcc" => Some("Blind copy"),
            _ => None,
        };
        let like = format!("/dashboard/emails?to={}", encode(&recipient.email));
        maud! {
            div.card.standing {
                div.standing-head {
                    h3 { (recipient.email) }
                    (Badge::new(sentence_case(status), tone))
                    @if let Some(kind) = kind { span.small.soft { (kind) } }
                    a.small href=(like) { "All to this address" }
                }
                p {
                    (explanation.place)
                    @if let Some(reason) = &explanation.reason { " " (reason) }
                    @if let Some(at) = explanation.next_try_at { (self.next_lead()) (Time(at)) }
                }
                @if let Some(words) = &explanation.last_words {
                    p.said { (words.lead()) ": " q { (words.text()) } }
                }
                @if self.shows_advice() {
                    p {
                        strong { "What to do: " } (explanation.advice)
                        @if let Some((path, label)) = self.action() { " " a href=(path) { (label) } }
                    }
                }
            }
        }
    }
}
