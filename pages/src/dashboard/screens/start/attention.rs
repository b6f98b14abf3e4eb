//! The list of what needs the person: wrong records, failing webhooks, full quotas, idle keys, pending decisions.

use jiff::{SignedDuration, Timestamp};

use super::readings::{APPROVALS_MAX, AccountUsage, FailedAutomation, StartReadings};
use crate::dashboard::kit::time::date_and_time;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::affiliate::payout_runs::PayoutRun;
use crate::dashboard::screens::approvals::{Approval, operation_title};
use crate::dashboard::screens::credentials::Credential;
use crate::dashboard::screens::domains::SendingDomain;
use crate::dashboard::screens::webhooks::Webhook;

/// From this part of a quota on it is almost used.
const ALMOST_PERCENT: u64 = 80;
/// Keys that were not used for so long after their creation are idle.
const IDLE_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Keys that end within this time are named.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);
/// A failed run needs attention for this time.
const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most items of one kind; the list page shows all.
const SHOWN: usize = 3;

/// One thing that needs the person.
#[derive(Debug)]
pub(super) struct AttentionItem {
    pub(super) tone: Tone,
    pub(super) label: &'static str,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) path: String,
}

impl AttentionItem {
    fn new(tone: Tone, label: &'static str, title: impl Into<String>, text: impl Into<String>, path: &str) -> Self {
        Self { tone, label, title: title.into(), text: text.into(), path: format!("/dashboard{path}") }
    }
}

/// All items, the urgent ones first. They tell the person to do only what the role allows.
pub(super) fn items(context: &Context<'_>, readings: &StartReadings) -> Vec<AttentionItem> {
    let now = context.now();
    let mut items = Vec::new();
    if let Some(account) = &readings.account {
        of_account(account, &mut items);
    }
    let verified = readings.verified.iter().flatten().filter(|domain| domain.degraded_since.is_some());
    items.extend(verified.map(degraded).take(SHOWN));
    items.extend(readings.webhooks.iter().flatten().filter_map(|webhook| of_webhook(context, webhook)).take(SHOWN));
    let may_verify = context.allows("verify_domain");
    items.extend(readings.unverified.iter().flatten().map(|domain| unverified(domain, may_verify)).take(SHOWN));
    items.extend(
        readings.keys.iter().flatten().filter_map(|key| of_key(key, now, context.allows("delete_api_key"))).take(SHOWN),
    );
    let may_approve = readings.approvals.iter().all(|approval| context.may_decide(&approval.operation));
    items.extend(pending_requests(&readings.approvals, may_approve));
    items.extend(readings.failures.iter().filter_map(|one| failed_runs(one, now)).take(SHOWN));
    of_program(context, readings, &mut items);
    items.sort_by_key(|item| match item.tone {
        Tone::Bad => 0,
        Tone::Warning => 1,
        _ => 2,
    });
    items
}

fn of_account(account: &AccountUsage, items: &mut Vec<AttentionItem>) {
    if account.account.suspended {
        let text = "All its email is rejected. Ask the operator of this server why.";
        items.push(AttentionItem::new(Tone::Bad, "Account", "The account is suspended", text, "/billing"));
    }
    if account.account.access_level == "sandbox" {
        let text = "Only certain senders and recipients are allowed until the account is released.";
        items.push(AttentionItem::new(Tone::Warning, "Account", "The account is in the sandbox", text, "/billing"));
    }
    let (usage, limits) = (&account.usage, &account.limits);
    let emails = [
        ("emails of this month", usage.emails_month, limits.emails_per_month),
        ("emails of today", usage.emails_day, limits.emails_per_day),
    ];
    for (title, used, limit) in emails {
        items.extend(quota(title, used, limit, grouped));
    }
    for (name, limit) in &limits.storage {
        let used = usage.storage.get(name).copied().flatten().unwrap_or(0);
        let title = match name.strip_suffix("_bytes") {
            Some(name) => format!("bytes for {}", sentence_case(name).to_lowercase()),
            None => sentence_case(name).to_lowercase(),
        };
        let amount = if name.ends_with("_bytes") { file_size } else { grouped };
        items.extend(quota(&title, used, *limit, amount));
    }
}

/// A quota that is used up, or almost.
fn quota(title: &str, used: u64, limit: Option<u64>, amount: fn(u64) -> String) -> Option<AttentionItem> {
    let limit = limit.filter(|limit| *limit > 0)?;
    let percent = used.saturating_mul(100) / limit;
    let text = format!("{} of {} used.", amount(used), amount(limit));
    let (tone, title) = match percent {
        _ if used >= limit => (Tone::Bad, format!("The {title} are used up")),
        ALMOST_PERCENT.. => (Tone::Warning, format!("The {title} are almost used up: {percent}%")),
        _ => return None,
    };
    Some(AttentionItem::new(tone, "Quota", title, text, "/billing"))
}

fn domain_path(domain: &SendingDomain) -> String {
    format!("/domains/{}", encode(&domain.id))
}

/// The first required record that is wrong, and why.
fn wrong_record(domain: &SendingDomain) -> Option<String> {
    let is_wrong = |status: &str| matches!(status, "missing" | "mismatch" | "conflict");
    let record = domain.records.iter().find(|record| record.required && is_wrong(&record.status))?;
    let problem = match (&record.error, record.status.as_str()) {
        (Some(error), _) => error.clone(),
        (None, "missing") => "not found".into(),
        (None, _) => "has a wrong value".into(),
    };
    Some(format!("{} {}: {problem}", record.kind, record.name))
}

fn degraded(domain: &SendingDomain) -> AttentionItem {
    let text = wrong_record(domain).unwrap_or_else(|| "A required record is no longer found.".into());
    AttentionItem::new(
        Tone::Bad,
        "Domain",
        format!("{} will lose its verification", domain.name),
        text,
        &domain_path(domain),
    )
}

fn unverified(domain: &SendingDomain, may_verify: bool) -> AttentionItem {
    let text = wrong_record(domain).unwrap_or_else(|| {
        let text = match (&domain.last_checked_at, may_verify) {
            (None, true) => "Publish its records, then verify.",
            (None, false) => "Its records have not been checked yet.",
            (Some(_), true) => "Its records have been found; verify it again.",
            (Some(_), false) => "Its records have been found.",
        };
        text.to_owned()
    });
    AttentionItem::new(Tone::Warning, "Domain", format!("{} is not verified", domain.name), text, &domain_path(domain))
}

fn of_webhook(context: &Context<'_>, webhook: &Webhook) -> Option<AttentionItem> {
    let path = format!("/webhooks/{}", encode(&webhook.id));
    let item = |tone, title: &str, text: &str| {
        Some(AttentionItem::new(tone, "Webhook", format!("{} {title}", webhook.url), text, &path))
    };
    let may_enable = context.allows("update_webhook");
    match (webhook.disabled_reason.as_deref(), &webhook.failing_since) {
        (Some("gone"), _) if may_enable => {
            item(Tone::Bad, "is turned off", "It answered 410 Gone. Enable it again when it is back.")
        }
        (Some("gone"), _) => item(Tone::Bad, "is turned off", "It answered 410 Gone."),
        (Some("failing"), _) if !may_enable => item(Tone::Bad, "is turned off", "It failed for too long."),
        (Some("failing"), _) => {
            item(Tone::Bad, "is turned off", "It failed for too long. Fix it, enable it, and replay what it missed.")
        }
        (None, Some(_)) => {
            item(Tone::Warning, "fails", "Deliveries are retried; if they keep failing, it is turned off.")
        }
        _ => None,
    }
}

fn of_key(key: &Credential, now: Timestamp, may_replace: bool) -> Option<AttentionItem> {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    if !key.enabled {
        return None;
    }
    let path = format!("/api-keys/{}", encode(&key.id));
    let item = |tone, state: &str, text: &str| {
        Some(AttentionItem::new(tone, "Key", format!("The key {} {state}", key.name), text, &path))
    };
    if let Some(ends) = key.expires_at.as_deref().and_then(time) {
        let left = ends.duration_since(now);
        if left.is_negative() || left.is_zero() {
            let text = "Programs that use it are refused.";
            let text = if may_replace { format!("{text} Create a new one, or delete it.") } else { text.to_owned() };
            return item(Tone::Warning, "has expired", &text);
        }
        if left <= SOON {
            let days = left.as_hours() / 24;
            let state = match days {
                0 => "expires today".to_owned(),
                1 => "expires in a day".to_owned(),
                days => format!("expires in {days} days"),
            };
            let text = if may_replace { "Create a new one in time, and put it in place." } else { "" };
            return item(Tone::Warning, &state, text);
        }
    }
    let is_old = time(&key.created_at).is_some_and(|created| now.duration_since(created) > IDLE_AFTER);
    let is_idle = key.last_used_at.is_none() && is_old;
    let text = if may_replace { "If no program needs it, delete it." } else { "" };
    if is_idle { item(Tone::Neutral, "has never been used", text) } else { None }
}

/// Requests that a policy holds until a person decides.
fn pending_requests(approvals: &[Approval], may_approve: bool) -> Option<AttentionItem> {
    let approval = if may_approve { "your approval" } else { "approval" };
    let ends = approvals.iter().map(|approval| &approval.expires_at).min()?;
    let ends = ends.parse::<Timestamp>().map_or_else(|_| ends.clone(), |time| format!("{} UTC", date_and_time(time)));
    let (title, text, path) = match approvals {
        [one] => (
            format!("A request is waiting for {approval}: {}", operation_title(&one.operation)),
            format!("It expires unless someone decides by {ends}."),
            format!("/approvals/{}", encode(&one.id)),
        ),
        all => {
            let count = if all.len() < APPROVALS_MAX { String::new() } else { "more than ".to_owned() };
            let number = if all.len() < APPROVALS_MAX { all.len() } else { APPROVALS_MAX - 1 };
            (
                sentence_case(&format!("{count}{number} requests are waiting for {approval}")),
                format!("The first expires unless someone decides by {ends}."),
                "/approvals?status=pending".to_owned(),
            )
        }
    };
    Some(AttentionItem::new(Tone::Warning, "Approval", title, text, &path))
}

/// An automation of which a run failed in the last days.
fn failed_runs(automation: &FailedAutomation, now: Timestamp) -> Option<AttentionItem> {
    let FailedAutomation { id, name, failed_at, error } = automation;
    let text = error.as_deref().unwrap_or("Look at the step that failed.");
    let path = format!("/automations/{}/runs?status=failed", encode(id));
    (now.duration_since(*failed_at) < RECENT)
        .then(|| AttentionItem::new(Tone::Warning, "Automation", format!("A run of {name} failed"), text, &path))
}

fn of_program(context: &Context<'_>, readings: &StartReadings, items: &mut Vec<AttentionItem>) {
    let mut add = |title: &str, text: &str, path: &str| {
        items.push(AttentionItem::new(Tone::Warning, "Affiliate", title, text, path))
    };
    if readings.has_reviews {
        let (title, text) = if context.allows("allow_affiliate_referral") {
            ("Referrals are waiting for your review", "They earn nothing until you allow or reject them.")
        } else {
            ("Referrals are waiting for review", "They earn nothing until they are allowed.")
        };
        add(title, text, "/affiliate/reviews");
    }
    if readings.has_applications {
        let may_approve = context.allows("approve_affiliate");
        let text =
            if may_approve { "Approve or reject them, so that they know." } else { "Their links do not work yet." };
        add("Partners are waiting for approval", text, "/affiliate/partners?status=pending");
    }
    for run in &readings.runs {
        of_run(context, run, &mut add);
    }
    let failed =
        readings.program.as_ref().and_then(|program| program["processor"]["failed_events"].as_u64()).unwrap_or(0);
    if failed > 0 {
        let title = format!("{} of the payment processor could not be processed", counted(failed, "event"));
        let may_replay = context.allows("replay_affiliate_processor_event");
        let text =
            if may_replay { "Look at them, then replay them." } else { "They have no effect until they are replayed." };
        add(&title, text, "/affiliate/processor/events");
    }
}

/// A payout run that waits for approval, or that failed in part.
fn of_run(context: &Context<'_>, run: &PayoutRun, add: &mut impl FnMut(&str, &str, &str)) {
    let path = format!("/affiliate/payouts/runs/{}", encode(&run.id));
    match (run.status.as_str(), run.partial) {
        ("draft", _) => {
            let who = if context.allows("approve_affiliate_payout_run") { "you approve" } else { "an owner approves" };
            let payouts = counted(run.payouts_count, "payout");
            let text = format!("It has {payouts}. Partners are paid when {who} it.");
            add("A payout run is waiting for approval", &text, &path);
        }
        (_, true) => {
            let text = if context.allows("mark_affiliate_payout_paid") {
                "Look at the failed payouts, and pay them another way."
            } else {
                "The commissions of failed payouts are included in the next run."
            };
            add("A payout run partly failed", text, &path);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last_used: bool, expires_at: Option<&str>, enabled: bool) -> Credential {
        let last_used_at = last_used.then_some("2026-11-01T00:00:00Z");
        let key = json!({
            "id": "key_1", "name": "shop", "enabled": enabled, "last_used_at": last_used_at, "expires_at": expires_at,
            "created_at": "2026-10-01T00:00:00Z",
        });
        serde_json::from_value(key).unwrap()
    }

    #[test]
    fn keys_need_attention_when_idle_or_ending() {
        let now: Timestamp = "2026-11-20T00:00:00Z".parse().unwrap();
        let title = |key: Credential| of_key(&key, now, true).map(|item| item.title);
        assert_eq!(title(key(true, None, true)), None);
        assert_eq!(title(key(false, None, true)).unwrap(), "The key shop has never been used");
        assert_eq!(title(key(false, None, false)), None);
        assert_eq!(title(key(true, Some("2026-11-22T01:00:00Z"), true)).unwrap(), "The key shop expires in 2 days");
        assert_eq!(title(key(true, Some("2026-11-19T01:00:00Z"), true)).unwrap(), "The key shop has expired");
        assert_eq!(title(key(true, Some("2027-11-19T01:00:00Z"), true)), None);
    }

    #[test]
    fn quotas_need_attention_when_almost_used() {
        assert!(quota("emails", 79, Some(100), grouped).is_none() && quota("emails", 5, None, grouped).is_none());
        assert_eq!(quota("emails", 80, Some(100), grouped).unwrap().tone, Tone::Warning);
        assert_eq!(quota("emails", 100, Some(100), grouped).unwrap().tone, Tone::Bad);
    }
}
