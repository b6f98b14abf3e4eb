//! Whether an account sent emails that are no longer retained: a list without entries does not mean that nothing was sent.

use crate::dashboard::prelude::*;

/// Facts about the emails that are no longer in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::dashboard::screens) struct EmailHistory {
    pub(in crate::dashboard::screens) has_sent: bool,
    /// Days for which emails are retained.
    retention_days: Option<u64>,
}

impl EmailHistory {
    /// Reads the usage of the month and, if it is zero, the metrics of 12 months. What the role may not read, or what
    /// fails, counts as unknown: the page of the list is shown all the same.
    pub(in crate::dashboard::screens) async fn read(context: &Context<'_>) -> Self {
        let account = read_or_null(context, Call::new("get_account")).await;
        let is_counted = |count: &Value| count.as_u64().is_some_and(|count| count > 0);
        let mut has_sent = is_counted(&account["usage"]["emails_month"]);
        if !has_sent {
            let (year, _) = DateRange::read(&Fields::parse(b"range=365"), context.now());
            let call = year.within(Call::new("get_email_metrics")).query("metrics", "sent");
            has_sent = is_counted(&read_or_null(context, call).await["metrics"]["totals"]["sent"]);
        }
        Self { has_sent, retention_days: account["limits"]["retention_days"].as_u64().filter(|days| *days > 0) }
    }

    /// The sentence for a list without entries, if there were emails; without a period.
    pub(in crate::dashboard::screens) fn none_retained(&self) -> Option<String> {
        let days = self.retention_days.filter(|_| self.has_sent)?;
        Some(if days == 1 {
            "No emails in the last day".to_owned()
        } else {
            format!("No emails in the last {days} days")
        })
    }
}

async fn read_or_null(context: &Context<'_>, call: Call) -> Value {
    if context.allows(call.operation) { context.read(&call).await.unwrap_or_default() } else { Value::Null }
}
