//! Plan: what the account may do, how much of it is used, and how to get more.

use serde_json::Map;

use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/billing" => show, reads ["get_account"];
};

#[answer]
struct AccountReply {
    account: Account,
    limits: Map<String, Value>,
    usage: Map<String, Value>,
    upgrade_url: Option<String>,
}

#[answer]
struct Account {
    id: String,
    email: String,
    plan: String,
    access_level: String,
    suspended: bool,
    features: Map<String, Value>,
    created_at: String,
}

/// A quota of the plan, with what is used of it.
struct Quota {
    name: String,
    used: Option<u64>,
    /// `None` is unlimited.
    limit: Option<u64>,
}

impl Quota {
    fn amount(&self, amount: u64) -> String {
        if self.name.ends_with("bytes") { file_size(amount) } else { grouped(amount) }
    }

    fn percent(&self) -> Option<u64> {
        let (used, limit) = (self.used?, self.limit.filter(|limit| *limit > 0)?);
        Some(used.saturating_mul(100) / limit)
    }
}

impl Quota {
    /// The name for people: `email_bytes` is "Email, size".
    fn title(&self) -> String {
        match self.name.strip_suffix("_bytes") {
            Some(name) => format!("{}, size", sentence_case(name)),
            None => sentence_case(&self.name),
        }
    }

    /// True if there is something to say: a limit, or a use that is counted.
    const fn is_known(&self) -> bool {
        self.used.is_some() || self.limit.is_some()
    }
}

/// Pairs limits and usage by name; usage has the same names, at the top or below `storage`.
fn quotas(limits: &Map<String, Value>, usage: &Map<String, Value>) -> Vec<Quota> {
    let mut found = Vec::new();
    for (name, limit) in limits {
        match limit {
            Value::Object(inner) => {
                let none = Map::new();
                let inner_usage = usage.get(name).and_then(Value::as_object).unwrap_or(&none);
                found.extend(quotas(inner, inner_usage));
            }
            _ if matches!(name.as_str(), "requests_per_second" | "retention_days") => {}
            limit => {
                // `emails_per_day` limits `emails_day`.
                let used = usage.get(name).or_else(|| usage.get(&name.replace("_per_", "_"))).and_then(Value::as_u64);
                found.push(Quota { name: name.clone(), used, limit: limit.as_u64() });
            }
        }
    }
    found
}

fn share_badge(percent: u64) -> Badge {
    let tone = match percent {
        90.. => Tone::Bad,
        70.. => Tone::Warning,
        _ => Tone::Neutral,
    };
    Badge::new(format!("{percent} %"), tone)
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_account");
    let reply: AccountReply = context.read(&call).await?;
    let account = &reply.account;
    let features = account.features.iter().filter(|(_, value)| **value == Value::Bool(true));
    let features: Vec<_> = features.map(|(name, _)| sentence_case(name)).collect();
    let number = |name: &str| reply.limits.get(name).and_then(Value::as_u64).map(grouped);
    let facts = Facts::new()
        .row("Plan", Badge::new(sentence_case(&account.plan), Tone::Active))
        .row("Access", sentence_case(&account.access_level))
        .row("Owner", &account.email)
        .row("Account", maud! { code { (account.id) } })
        .row("Also includes", if features.is_empty() { "–".to_owned() } else { features.join(", ") })
        .optional("Requests per second", number("requests_per_second"))
        .optional("Emails are kept for", number("retention_days").map(|days| format!("{days} days")))
        .row("Since", time_or_dash(Some(&account.created_at)));
    let quotas = quotas(&reply.limits, &reply.usage);
    let table = Table::of("Quotas", quotas.iter().filter(|quota| quota.is_known()))
        .column("Quota", |quota| quota.title())
        .number("Used", |quota| quota.used.map_or_else(|| "–".to_owned(), |used| quota.amount(used)))
        .number("Limit", |quota| quota.limit.map_or_else(|| "Unlimited".to_owned(), |limit| quota.amount(limit)))
        .number("Share", |quota| quota.percent().map(share_badge));
    let body = maud! {
        @if account.suspended {
            (Notice { tone: Tone::Bad, text: "The account is suspended: its email is rejected. Contact the operator \
                of this service." })
        }
        section.card { (facts) @if let Some(url) = &reply.upgrade_url { p { a.button.primary href=(url) { "Change the plan" } } } }
        section { h2 { "Usage" } (table) }
    };
    Ok(Page::new("Plan", body).same_as(call).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_paired_with_usage() {
        let limits =
            json!({"emails_per_day": 100, "retention_days": 30, "storage": {"templates": null, "email_bytes": 10}});
        let usage = json!({"emails_per_day": 95, "storage": {"templates": 3}});
        let found = quotas(limits.as_object().unwrap(), usage.as_object().unwrap());
        let found: Vec<_> =
            found.iter().map(|quota| (quota.name.as_str(), quota.used, quota.limit, quota.percent())).collect();
        assert_eq!(
            found,
            [
                ("emails_per_day", Some(95), Some(100), Some(95)),
                ("templates", Some(3), None, None),
                ("email_bytes", None, Some(10), None),
            ]
        );
    }
}
