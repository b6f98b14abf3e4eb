//! Email metrics: hourly counts, in total and by dimension.
//!
//! ```text
//! event + its email ─► (counter, increment) × (total, domain, each tag, template, provider, category, domain and category)
//! ```
//!
//! Opens and delays count once per recipient. Opens and clicks by machines are not counted. Each delivery also counts in
//! the bucket of its delivery time ([`crate::delivery_time`]), in the same rows.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use message::words;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::delivery_time::DeliveryTimeBucket;
use crate::email::Email;
use crate::event::{Event, EventKind};
use crate::recipient::Recipient;

/// Retention of hourly counts: two years.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(731 * 24 * 3600);
/// Maximum length of a dimension value, in bytes: it is part of a storage key.
const VALUE_BYTES_MAX: usize = 400;

words! {
    Counter {
        /// Recipients of accepted mail (of scheduled mail, when it is due).
        Sent = "sent",
        /// Recipients whose server accepted the message.
        Delivered = "delivered",
        /// Recipients whose server rejected the message.
        Bounced = "bounced",
        /// Recipients given up for another reason.
        Failed = "failed",
        /// Recipients whose first attempt was deferred.
        Delayed = "delayed",
        Complained = "complained",
        Opened = "opened",
        /// Recipients who clicked a link.
        Clicked = "clicked",
        /// Recipients that were skipped: suppressed or opted out.
        Suppressed = "suppressed",
        /// Recipients who unsubscribed by the email's link.
        Unsubscribed = "unsubscribed",
    }
}

/// A number that a row of metrics has: a counter, or the deliveries in a bucket of delivery times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricKey {
    Counter(Counter),
    DeliveryTime(DeliveryTimeBucket),
    /// A number of a later release, which other nodes may run already. It is written back as it was read.
    Unknown(Box<str>),
}

/// Prefix of a bucket's number in stored rows.
const DELIVERY_TIME_PREFIX: &str = "delivery_time_";

impl Serialize for MetricKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Counter(counter) => serializer.serialize_str(counter.word()),
            Self::DeliveryTime(bucket) => {
                serializer.collect_str(&format_args!("{DELIVERY_TIME_PREFIX}{}", bucket.number()))
            }
            Self::Unknown(word) => serializer.serialize_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for MetricKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordVisitor;
        impl Visitor<'_> for WordVisitor {
            type Value = MetricKey;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a counter or a delivery time")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<MetricKey, E> {
                let known = match word.strip_prefix(DELIVERY_TIME_PREFIX) {
                    Some(number) => {
                        number.parse().ok().and_then(DeliveryTimeBucket::from_number).map(MetricKey::DeliveryTime)
                    }
                    None => Counter::from_word(word).map(MetricKey::Counter),
                };
                Ok(known.unwrap_or_else(|| MetricKey::Unknown(word.into())))
            }
        }
        deserializer.deserialize_str(WordVisitor)
    }
}

/// The numbers of a row; a missing one is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MetricCounts(pub BTreeMap<MetricKey, u64>);

impl MetricCounts {
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(&MetricKey::Counter(counter)).copied().unwrap_or(0)
    }

    pub fn add(&mut self, counter: Counter, added: u64) {
        self.add_to(MetricKey::Counter(counter), added);
    }

    /// Counts a delivery that took this long.
    pub fn add_delivery_time(&mut self, bucket: DeliveryTimeBucket) {
        self.add_to(MetricKey::DeliveryTime(bucket), 1);
    }

    fn add_to(&mut self, key: MetricKey, added: u64) {
        let count = self.0.entry(key).or_default();
        *count = count.saturating_add(added);
    }

    /// The deliveries by delivery time, shortest first. Deliveries that an earlier release counted are not in it.
    pub fn delivery_times(&self) -> Vec<(DeliveryTimeBucket, u64)> {
        let bucket = |(key, count): (&MetricKey, &u64)| match key {
            MetricKey::DeliveryTime(bucket) => Some((*bucket, *count)),
            MetricKey::Counter(_) | MetricKey::Unknown(_) => None,
        };
        self.0.iter().filter_map(bucket).collect()
    }

    /// Takes counts away; no count becomes less than 0.
    pub fn subtract_all(&mut self, taken: &Self) {
        for (key, taken) in &taken.0 {
            if let Some(count) = self.0.get_mut(key) {
                *count = count.saturating_sub(*taken);
            }
        }
    }

    /// Returns whether all counts are 0.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|count| *count == 0)
    }

    pub fn add_all(&mut self, added: &Self) {
        for (key, added) in &added.0 {
            self.add_to(key.clone(), *added);
        }
    }
}

words! {
    /// Property by which metrics can be grouped. The numbers are stored; 0 is the total.
    #[repr(u8)]
    Dimension {
        Domain = "domain" as 1,
        /// A tag, `name:value`.
        Tag = "tag" as 2,
        /// The template's alias, or its id if it has none.
        Template = "template" as 3,
        /// Organisation that runs the recipient's mail host; unknown before the first attempt.
        Provider = "provider" as 4,
        Category = "category" as 5,
        /// Category and domain together: [`category_and_domain`].
        CategoryAndDomain = "category_and_domain" as 6,
    }
}

/// The value of [`Dimension::CategoryAndDomain`].
pub fn category_and_domain(category: &str, domain: &str) -> String {
    format!("{category} {domain}")
}

/// An hour of UTC, numbered from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(pub i64);

impl Hour {
    const SECONDS: i64 = 3_600;

    pub fn containing(at: Timestamp) -> Self {
        Self(at.as_second().div_euclid(Self::SECONDS))
    }

    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_second(self.0.saturating_mul(Self::SECONDS)).unwrap_or(Timestamp::MAX)
    }

    /// The first hour of the same UTC day.
    pub fn day(self) -> Self {
        Self(self.0.div_euclid(24) * 24)
    }
}

/// Returns the counter of an event and its increment.
pub fn counter_for_event(event: &Event) -> Option<(Counter, u64)> {
    let at = |pointer: &str| event.detail.pointer(pointer);
    let by_a_person = |first: &str, machine: &str| {
        at(first).and_then(serde_json::Value::as_bool) == Some(true)
            && at(machine).and_then(serde_json::Value::as_bool) == Some(false)
    };
    Some(match event.kind {
        EventKind::Sent => (Counter::Sent, at("/recipients_count").and_then(serde_json::Value::as_u64)?),
        EventKind::Delivered => (Counter::Delivered, 1),
        EventKind::Bounced => (Counter::Bounced, 1),
        EventKind::Failed => (Counter::Failed, 1),
        EventKind::DeliveryDelayed => {
            let attempt = at("/delay/attempt").and_then(serde_json::Value::as_u64);
            (Counter::Delayed, u64::from(attempt == Some(1)))
        }
        EventKind::Opened => (Counter::Opened, u64::from(by_a_person("/open/first", "/open/machine"))),
        EventKind::Clicked => (Counter::Clicked, u64::from(by_a_person("/click/first", "/click/machine"))),
        EventKind::Suppressed => {
            let suppressed = at("/suppressed").and_then(serde_json::Value::as_array);
            (Counter::Suppressed, suppressed.map_or(1, |list| list.len() as u64))
        }
        EventKind::Unsubscribed => (Counter::Unsubscribed, 1),
        EventKind::Complained => (Counter::Complained, 1),
        _ => return None,
    })
    .filter(|(_, count)| *count > 0)
}

/// Returns the bucket of a delivery's time since the email entered the queue; `None` for other events.
pub fn delivery_time_of_event(event: &Event, queued_at: Timestamp) -> Option<DeliveryTimeBucket> {
    let time = event.created_at.duration_since(queued_at).max(jiff::SignedDuration::ZERO);
    (event.kind == EventKind::Delivered).then(|| DeliveryTimeBucket::containing(time.unsigned_abs()))
}

/// Returns the dimension values under which an event counts, besides the total.
pub fn dimension_values(email: &Email, recipient: Option<&Recipient>) -> Vec<(Dimension, String)> {
    let mut values = Vec::new();
    let mut add = |dimension, mut value: String| {
        value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
        values.push((dimension, value));
    };
    let category = email.category.word();
    add(Dimension::Category, category.to_owned());
    if let Some(domain) = &email.domain {
        add(Dimension::Domain, domain.to_string());
        add(Dimension::CategoryAndDomain, category_and_domain(category, domain.as_str()));
    }
    for tag in &email.tags {
        add(Dimension::Tag, format!("{}:{}", tag.name, tag.value));
    }
    if let Some(template) = &email.template {
        add(Dimension::Template, template.alias.clone().unwrap_or_else(|| template.id.to_string()));
    }
    if let Some(host) = recipient.and_then(|recipient| recipient.mx_host.as_deref()) {
        add(Dimension::Provider, provider_domain(host));
    }
    values
}

/// Second-level labels under which organisations register names in country domains.
const SECOND_LEVELS: &[&str] =
    &["ac", "co", "com", "edu", "gob", "gov", "govt", "gv", "mil", "ne", "net", "nom", "or", "org", "sch"];

/// The organisational domain of a host name: `google.com` of `gmail-smtp-in.l.google.com`. An address, or an address
/// literal (RFC 5321 4.1.3), stays whole.
pub fn provider_domain(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let of_country = matches!(labels.as_slice(), [.., second, top]
        if top.len() == 2 && SECOND_LEVELS.contains(second));
    let label_count = if of_country { 3 } else { 2 };
    labels.get(labels.len().saturating_sub(label_count)..).unwrap_or_default().join(".")
}

/// `part / whole`, rounded to four digits; 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "the result is rounded to four digits")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AccountId, EmailId, EventId};
    use serde_json::{Value, json};

    fn event(kind: EventKind, detail: Value) -> Event {
        let now = Timestamp::UNIX_EPOCH;
        Event {
            id: EventId::new(now, 1),
            account: AccountId::new(now, 1),
            subject: EmailId::new(now, 1).into(),
            kind,
            recipient: None,
            created_at: now,
            detail,
        }
    }

    #[test]
    fn events_count_the_expected_recipients() {
        use EventKind as E;
        for (kind, detail, expected) in [
            (E::Sent, json!({"recipients_count": 3}), Some((Counter::Sent, 3))),
            (E::Scheduled, json!({"recipients_count": 3}), None),
            (E::Delivered, json!({}), Some((Counter::Delivered, 1))),
            (E::DeliveryDelayed, json!({"delay": {"attempt": 1}}), Some((Counter::Delayed, 1))),
            (E::DeliveryDelayed, json!({"delay": {"attempt": 2}}), None),
            (E::Opened, json!({"open": {"first": true, "machine": false}}), Some((Counter::Opened, 1))),
            (E::Opened, json!({"open": {"first": true, "machine": true}}), None),
            (E::Opened, json!({"open": {"first": false, "machine": false}}), None),
            (E::Clicked, json!({"click": {"first": true, "machine": false}}), Some((Counter::Clicked, 1))),
            (E::Suppressed, json!({"suppressed": [{}, {}]}), Some((Counter::Suppressed, 2))),
            (E::Cancelled, json!({"recipients_count": 1}), None),
        ] {
            assert_eq!(counter_for_event(&event(kind, detail.clone())), expected, "{kind:?} {detail}");
        }
    }

    #[test]
    fn providers_are_grouped_by_organisation() {
        for (host, expected) in [
            ("gmail-smtp-in.l.google.com", "google.com"),
            ("ACME-com.mail.protection.outlook.com.", "outlook.com"),
            ("mx.mail.btinternet.co.uk", "btinternet.co.uk"),
            ("mx00.t-online.de", "t-online.de"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8::1", "2001:db8::1"),
            ("[127.0.0.1]", "[127.0.0.1]"),
            ("[IPv6:2001:db8::1]", "[ipv6:2001:db8::1]"),
            ("co.uk", "co.uk"),
            ("", ""),
        ] {
            assert_eq!(provider_domain(host), expected, "{host}");
        }
    }

    #[test]
    fn rates_have_four_digits() {
        assert_eq!((ratio(1, 3), ratio(0, 0), ratio(2, 2)), (0.3333, 0.0, 1.0));
    }

    #[test]
    fn hours_and_days_begin_at_utc() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let hour = Hour::containing(at("2026-01-01T10:59:59.9Z"));
        assert_eq!(hour.begins_at(), at("2026-01-01T10:00:00Z"));
        assert_eq!(hour.day().begins_at(), at("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn counter_words_match_serialization() {
        for counter in Counter::ALL {
            assert_eq!(serde_json::to_value(counter).unwrap(), counter.word());
        }
    }
    #[test]
    fn keys_of_rows_round_trip() {
        let time = |ms| MetricKey::DeliveryTime(DeliveryTimeBucket::containing(std::time::Duration::from_millis(ms)));
        for (key, word) in [
            (MetricKey::Counter(Counter::Sent), "sent"),
            (time(1), "delivery_time_0"),
            (time(u64::MAX), "delivery_time_47"),
        ] {
            assert_eq!(serde_json::to_value(&key).unwrap(), word);
            assert_eq!(serde_json::from_value::<MetricKey>(json!(word)).unwrap(), key);
        }
    }

    #[test]
    fn numbers_of_a_later_release_are_kept() {
        for word in ["delivery_time_48", "delivery_time_", "read"] {
            let key = serde_json::from_value::<MetricKey>(json!(word)).unwrap();
            assert_eq!(key, MetricKey::Unknown(word.into()));
            assert_eq!(serde_json::to_value(&key).unwrap(), word);
        }
    }

    #[test]
    fn only_deliveries_have_a_delivery_time() {
        let queued_at = Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_secs(60);
        let bucket = delivery_time_of_event(&event(EventKind::Delivered, json!({})), queued_at).unwrap();
        let mut counts = MetricCounts::default();
        counts.add(Counter::Delivered, 1);
        counts.add_delivery_time(bucket);
        assert_eq!(counts.delivery_times(), [(bucket, 1)]);
        let median = crate::delivery_time::percentile(&counts.delivery_times(), 50);
        assert!(median.is_some_and(|seconds| (seconds / 60.0 - 1.0).abs() < 0.25));
        assert_eq!(delivery_time_of_event(&event(EventKind::Bounced, json!({})), queued_at), None);
        // A clock that was set back gives no negative time.
        let later = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60);
        assert_eq!(delivery_time_of_event(&event(EventKind::Delivered, json!({})), later).unwrap().number(), 0);
    }
}
