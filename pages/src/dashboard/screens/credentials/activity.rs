//! The operations that a key called, by the request log, and the smallest scope that would have done.

use std::collections::BTreeMap;

use super::Credential;
use crate::dashboard::prelude::*;
use crate::reference::operation::{ApiTable, KeyScope};

/// Pages of the request log that are read. It has no filter by key.
const PAGES: usize = 5;

#[derive(Debug, Deserialize)]
struct CountedRequest {
    operation: String,
    status: u16,
    api_key_id: Option<String>,
    created_at: String,
}

/// The operations that a key called, in the last requests of the account.
#[derive(Debug, Default)]
pub(super) struct KeyActivity {
    operations: BTreeMap<String, OperationCalls>,
    /// Requests of all keys that were looked at, and the time of the oldest.
    requests: u64,
    since: Option<String>,
}

#[derive(Debug, Default)]
struct OperationCalls {
    count: u64,
    refused: u64,
    last: String,
}

impl KeyActivity {
    pub(super) async fn read(context: &Context<'_>, key: &str) -> Result<Self, Failure> {
        let (requests, _) = context.read_pages("logs", &Call::new("list_logs"), PAGES).await?;
        let mut activity = Self::default();
        activity.add(requests, key);
        Ok(activity)
    }

    /// Adds requests, newest first.
    fn add(&mut self, requests: Vec<CountedRequest>, key: &str) {
        for request in requests {
            self.requests += 1;
            if request.api_key_id.as_deref() == Some(key) {
                let calls = self.operations.entry(request.operation).or_default();
                calls.count += 1;
                calls.refused += u64::from(request.status >= 400);
                if calls.last.is_empty() {
                    calls.last.clone_from(&request.created_at);
                }
            }
            self.since = Some(request.created_at);
        }
    }

    /// The smallest scope that allows all that was called; `None` if nothing was.
    fn smallest_scope(&self) -> Option<KeyScope> {
        if self.operations.is_empty() {
            return None;
        }
        let table = ApiTable::load();
        let is_sending =
            |id: &String| table.operation(id).is_some_and(|operation| operation.scope == KeyScope::Sending);
        Some(if self.operations.keys().all(is_sending) { KeyScope::Sending } else { KeyScope::Full })
    }
}

pub(super) fn key_activity_view(activity: &KeyActivity, key: &Credential) -> impl Renderable {
    let api = ApiTable::load();
    let mut operations: Vec<_> = activity.operations.iter().collect();
    operations.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.count));
    let table = Table::of("Operations of this key", operations)
        .column("Operation", |(id, _)| {
            api.operation(id).map_or_else(|| sentence_case(id), |operation| operation.summary.clone())
        })
        .number("Requests", |(_, calls)| grouped(calls.count))
        .number("Refused", |(_, calls)| grouped(calls.refused))
        .column("Required scope", |(id, _)| match api.operation(id).map(|operation| operation.scope) {
            Some(KeyScope::Sending) => "Sending only",
            _ => "Full access",
        })
        .column("Last", |(_, calls)| time_or_dash(Some(&calls.last)));
    let could_be_smaller = key.scope == "full" && activity.smallest_scope() == Some(KeyScope::Sending);
    maud! {
        section {
            h2 { "Activity" }
            p.soft {
                "From the last " (counted(activity.requests, "request")) " of the account"
                @if activity.since.is_some() { ", since " (time_or_dash(activity.since.as_deref())) }
                "."
            }
            @if could_be_smaller {
                (Notice { tone: Tone::Warning, text: "A key with “Sending only” could have done all of this. Create one, put it in place, and delete this key." })
            }
            @if table.is_empty() {
                p.card { "It made none of these requests. If no program uses it, delete it." }
            } @else {
                (table)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: &str, status: u16, key: &str) -> CountedRequest {
        CountedRequest {
            operation: operation.into(),
            status,
            api_key_id: Some(key.into()),
            created_at: "2026-11-20T10:00:00Z".into(),
        }
    }

    #[test]
    fn the_smallest_scope_is_found() {
        let mut activity = KeyActivity::default();
        assert_eq!(activity.smallest_scope(), None);
        activity.add(vec![request("send_email", 200, "a"), request("list_domains", 200, "b")], "a");
        assert_eq!(activity.smallest_scope(), Some(KeyScope::Sending));
        activity.add(vec![request("send_email", 400, "a"), request("list_domains", 200, "a")], "a");
        assert_eq!(activity.smallest_scope(), Some(KeyScope::Full));
        assert_eq!((activity.operations["send_email"].count, activity.operations["send_email"].refused), (2, 1));
        assert_eq!(activity.requests, 4);
    }
}
