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
pub(super) fn steps(readings: &StartReadings) -> Vec<StartStep> {
    let step = |title, text, path: &str, is_done: Option<bool>| {
        Some(StartStep { title, text, path: format!("/dashboard{path}"), is_done: is_done? })
    };
    let domain_path = match readings.unverified.as_deref() {
        Some([domain, ..]) => format!("/domains/{}", encode(&domain.id)),
        _ => "/domains/new".into(),
    };
    let is_domain_done = readings.verified.as_ref().map(|domains| !domains.is_empty());
    let domain_path = if is_domain_done == Some(true) { "/domains" } else { &domain_path };
    let key_path = if readings.keys.as_ref().is_some_and(Vec::is_empty) { "/api-keys/new" } else { "/api-keys" };
    let send_path = if readings.has_sent() == Some(false) { "/emails/new" } else { "/emails" };
    let hook_path = if readings.webhooks.as_ref().is_some_and(Vec::is_empty) { "/webhooks/new" } else { "/webhooks" };
    let all = [
        step(
            "Verify a domain",
            "Publish its records, so that receivers trust your email.",
            domain_path,
            is_domain_done,
        ),
        step(
            "Create an API key",
            "Your program signs in with it.",
            key_path,
            readings.keys.as_ref().map(|keys| !keys.is_empty()),
        ),
        step("Send the first email", "From your program, or from here.", send_path, readings.has_sent()),
        step(
            "Add a webhook",
            "Your program receives deliveries, bounces and complaints as events.",
            hook_path,
            readings.webhooks.as_ref().map(|webhooks| !webhooks.is_empty()),
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
