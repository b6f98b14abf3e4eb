//! Whether an account sent emails that are no longer retained: a list without entries does not mean that nothing was sent.

use crate::dashboard::backend::Reply;
use crate::dashboard::prelude::*;

/// Facts about the emails that are no longer in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::dashboard::screens) struct EmailHistory {
    pub(in crate::dashboard::screens) has_sent: bool,
    /// Days for which emails are retained.
    retention_days: Option<u64>,
}

#[answer]
struct RetentionAccount {
    limits: RetentionLimits,
    usage: MonthUsage,
}

#[answer]
struct RetentionLimits {
    retention_days: Option<u64>,
}

#[answer]
struct MonthUsage {
    emails_month: u64,
}

#[answer]
struct YearMetrics {
    totals: YearTotals,
}

#[answer]
struct YearTotals {
    sent: u64,
}

impl EmailHistory {
    /// Reads the usage of the month and, if it is zero, the metrics of 12 months. What the role may not read, or what
    /// fails, counts as unknown: the page of the list is shown all the same.
    pub(in crate::dashboard::screens) async fn read(context: &Context<'_>) -> Self {
        let account: RetentionAccount = read_or_default(context, Call::new("get_account"), |reply| reply.read()).await;
        let mut has_sent = account.usage.emails_month > 0;
        if !has_sent {
            let (year, _) = DateRange::read(&Fields::parse(b"range=365"), context.now());
            let call = year.within(Call::new("get_email_metrics")).query("metrics", "sent");
            let metrics: YearMetrics = read_or_default(context, call, |reply| reply.read_field("metrics")).await;
            has_sent = metrics.totals.sent > 0;
        }
        Self { has_sent, retention_days: account.limits.retention_days.filter(|days| *days > 0) }
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

async fn read_or_default<T: Default>(
    context: &Context<'_>,
    call: Call,
    read: impl Fn(&Reply) -> Result<T, Failure>,
) -> T {
    if !context.allows(call.operation) {
        return T::default();
    }
    context.perform(&call).await.and_then(|reply| read(&reply)).unwrap_or_default()
}
