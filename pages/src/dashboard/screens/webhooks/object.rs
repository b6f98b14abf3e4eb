//! Endpoints and deliveries as the API has them.

use jiff::Timestamp;

use crate::dashboard::kit::time::{Time, date_and_time};
use crate::dashboard::prelude::*;

/// An endpoint.
#[answer]
pub(in crate::dashboard::screens) struct Webhook {
    pub id: String,
    pub url: String,
    /// Empty: all that need not be named.
    pub events: Vec<String>,
    pub enabled: bool,
    pub description: Option<String>,
    pub domain_ids: Vec<String>,
    pub inbound_addresses: Vec<String>,
    pub retry_policy: String,
    pub failing_since: Option<String>,
    pub disabled_reason: Option<String>,
    pub created_at: String,
}

#[answer]
pub(super) struct OneWebhook {
    pub webhook: Webhook,
    /// Only after the creation and a rotation.
    pub secret: String,
}

impl Webhook {
    /// Reads the endpoint of the page's path.
    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        let found: OneWebhook = context.read(&Call::new("get_webhook").id(context.id())).await?;
        Ok(found.webhook)
    }

    /// The host of the URL, by which a person knows the endpoint.
    pub(super) fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or(rest)
    }

    pub(super) fn badge(&self) -> Badge {
        match (self.enabled, &self.failing_since) {
            (false, _) => Badge::new("Disabled", Tone::Warning),
            (true, Some(_)) => Badge::new("Failing", Tone::Bad),
            (true, None) => Badge::new("Enabled", Tone::Good),
        }
    }

    /// The state in a sentence, if it needs attention.
    pub(super) fn trouble(&self) -> Option<String> {
        if !self.enabled {
            return Some(
                match self.disabled_reason.as_deref() {
                    Some("gone") => {
                        "It is disabled because it answered 410 (Gone). Events since then are not sent to it. Enable \
                         it when the URL works again."
                    }
                    Some("failing") => {
                        "It is disabled because all deliveries failed for a long time. Fix the receiver, enable the \
                         endpoint, and replay the failed deliveries."
                    }
                    _ => "It is disabled: no events are sent to it.",
                }
                .to_owned(),
            );
        }
        let since = self.failing_since.as_deref().and_then(Time::parse)?;
        Some(format!(
            "All deliveries since {} UTC have failed. The deliveries below show its responses.",
            date_and_time(since.0)
        ))
    }

    /// The subscription in words.
    pub(super) fn subscription(&self) -> String {
        match self.events.as_slice() {
            [] => "All events".to_owned(),
            [one] => one.clone(),
            [one, two] => format!("{one}, {two}"),
            [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        }
    }
}

/// A delivery: an event on its way to an endpoint.
#[answer]
pub(super) struct Delivery {
    pub id: String,
    pub event_id: String,
    pub r#type: String,
    pub status: String,
    pub attempts_count: u64,
    pub next_attempt_at: Option<String>,
    pub response_status: Option<u16>,
    pub created_at: String,
    pub delivered_at: Option<String>,
    /// Only of one delivery.
    pub payload: Option<Value>,
    pub attempts: Vec<Attempt>,
}

/// A try of a delivery.
#[answer]
pub(super) struct Attempt {
    pub n: u64,
    pub at: String,
    pub response_status: Option<u16>,
    pub response_body: String,
    pub duration_ms: u64,
    pub error: Option<String>,
}

impl Delivery {
    pub(super) fn badge(&self) -> Badge {
        match (self.status.as_str(), self.attempts_count) {
            ("pending", 1..) => Badge::new("Retrying", Tone::Warning),
            ("pending", 0) => Badge::new("Pending", Tone::Active),
            (status, _) => Badge::of(status),
        }
    }

    /// When it is tried again, or that it is not.
    pub(super) fn next_try(&self, now: Timestamp) -> String {
        let next = self.next_attempt_at.as_deref().and_then(Time::parse);
        match (self.status.as_str(), next) {
            ("delivered", _) => "None: it was delivered".to_owned(),
            ("failed", _) => "None: all attempts failed".to_owned(),
            (_, Some(Time(at))) => until(at.as_second() - now.as_second()),
            (_, None) => "At once".to_owned(),
        }
    }

    /// The state in words, and the next attempt.
    pub(super) fn standing(&self, now: Timestamp) -> String {
        let tries = match self.attempts_count {
            1 => "the first attempt".to_owned(),
            count => format!("attempt {count}"),
        };
        let answer = match self.response_status {
            Some(status) => format!("answered {status}"),
            None => "did not respond".to_owned(),
        };
        match (self.status.as_str(), self.attempts_count) {
            ("delivered", _) => format!("Delivered: your endpoint {answer} on {tries}."),
            ("failed", _) => format!(
                "Failed: your endpoint {answer} on {tries}, the last one. It is sent again only if you request it."
            ),
            (_, 0) => "It is about to be sent.".to_owned(),
            _ => {
                let next = self.next_try(now);
                format!("Not delivered yet: your endpoint {answer} on {tries}. Next attempt: {}.", lower_first(&next))
            }
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// A span of seconds from now, in words.
fn until(seconds: i64) -> String {
    let count = |number: i64, unit: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("In {number} {unit}{plural}")
    };
    match seconds {
        ..=0 => "At once".to_owned(),
        1..90 => count(seconds, "second"),
        90..5_400 => count((seconds + 30) / 60, "minute"),
        _ => count((seconds + 1_800) / 3_600, "hour"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_words() {
        let words = [0, 1, 30, 120, 3_600, 36_000].map(until);
        assert_eq!(words, ["At once", "In 1 second", "In 30 seconds", "In 2 minutes", "In 60 minutes", "In 10 hours"]);
    }

    #[test]
    fn hosts_are_found_in_urls() {
        for (url, host) in [
            ("https://example.com/hooks?x=/", "example.com"),
            ("http://127.0.0.1:80", "127.0.0.1:80"),
            ("odd", "odd"),
            ("", ""),
        ] {
            assert_eq!(Webhook { url: url.into(), ..Webhook::default() }.host(), host);
        }
    }

    #[test]
    fn a_delivery_says_where_it_stands() {
        let now: Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let delivery = |status: &str, attempts_count, response_status| Delivery {
            status: status.into(),
            attempts_count,
            response_status,
            next_attempt_at: Some("2026-11-26T12:02:00Z".into()),
            ..Delivery::default()
        };
        assert_eq!(
            delivery("pending", 2, Some(500)).standing(now),
            "Not delivered yet: your endpoint answered 500 on attempt 2. Next attempt: in 2 minutes."
        );
        assert_eq!(
            delivery("delivered", 1, Some(204)).standing(now),
            "Delivered: your endpoint answered 204 on the first attempt."
        );
        assert!(delivery("failed", 5, None).standing(now).contains("did not respond on attempt 5, the last one"));
    }
}
