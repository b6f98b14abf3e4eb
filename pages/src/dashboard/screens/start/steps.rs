//! The first steps of an account.

use super::readings::StartReadings;
use crate::dashboard::prelude::*;

pub(super) struct StartStep {
    title: &'static str,
    text: &'static str,
    path: String,
    is_done: bool,
}

/// The steps that the role can see.
pub(super) fn steps(context: &Context<'_>, readings: &StartReadings) -> Vec<StartStep> {
    let step = |title, text, path: &str, is_done: Option<bool>| {
        Some(StartStep { title, text, path: format!("/dashboard{path}"), is_done: is_done? })
    };
    let is_domain_done = readings.verified.as_ref().map(|domains| !domains.is_empty());
    let are_keys_done = readings.keys.as_ref().map(|keys| !keys.is_empty());
    let are_webhooks_done = readings.webhooks.as_ref().map(|webhooks| !webhooks.is_empty());
    // The form of a step that is to be done, if the role may send it, or else the list.
    let form_or_list = |list: &str, operation: &str, is_done: Option<bool>| {
        let shows_form = is_done == Some(false) && context.allows(operation);
        if shows_form { format!("{list}/new") } else { list.to_owned() }
    };
    let domain_path = match readings.unverified.as_deref() {
        Some([domain, ..]) if is_domain_done != Some(true) => format!("/domains/{}", encode(&domain.id)),
        _ => form_or_list("/domains", "create_domain", is_domain_done),
    };
    let all = [
        step(
            "Verify a domain",
            "Publish its records, so that receivers trust your email.",
            &domain_path,
            is_domain_done,
        ),
        step(
            "Create an API key",
            "Your program signs in with it.",
            &form_or_list("/api-keys", "create_api_key", are_keys_done),
            are_keys_done,
        ),
        step(
            "Send the first email",
            "From your program, or from here.",
            &form_or_list("/emails", "send_email", readings.has_sent()),
            readings.has_sent(),
        ),
        step(
            "Add a webhook",
            "Your program receives deliveries, bounces and complaints as events.",
            &form_or_list("/webhooks", "create_webhook", are_webhooks_done),
            are_webhooks_done,
        ),
        step(
            "Choose a plan",
            "With a payment method, you can keep sending beyond the free amount.",
            "/billing",
            readings.account.as_ref().map(|one| one.account.plan != "free"),
        ),
        step(
            "Invite your team",
            "Everyone signs in with their own account.",
            "/team",
            readings.users.map(|users| users > 1),
        ),
    ];
    all.into_iter().flatten().collect()
}

/// The list of steps. When all are done, it is folded up.
pub(super) fn start_steps(steps: &[StartStep]) -> Fragment {
    let done = steps.iter().filter(|step| step.is_done).count();
    let next = steps.iter().position(|step| !step.is_done);
    if steps.is_empty() || next.is_none() {
        return Fragment::default();
    }
    Fragment::new(maud! {
        section.card.start {
            div.section-head {
                h2 { "Set up" }
                span.small.soft { (done) " of " (steps.len()) " done" }
            }
            ol.start-steps {
                @for (n, step) in steps.iter().enumerate() {
                    li.done[step.is_done].next[next == Some(n)] {
                        span.step-mark aria-hidden="true" { @if step.is_done { "✓" } @else { (n + 1) } }
                        div {
                            p {
                                a href=(step.path) { (step.title) }
                                @if step.is_done { span.hidden { " (done)" } }
                                @if next == Some(n) { span.small.step-next { " Next" } }
                            }
                            p.help { (step.text) }
                        }
                    }
                }
            }
        }
    })
}
