//! The depth of the queue over the last day, sampled once a minute, in memory.
//!
//! ```text
//! queue counts ─► one sample a minute ─► ring of a day ─► periods of 1, 5 or 15 minutes, each with its deepest sample
//! ```
//!
//! A sample has the longest queues by domain. A domain that is not among them has no figure for that minute, unless the
//! sample has all domains: then it has none waiting.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use store::queue_counts::{QueueSummary, QueuedState};
use tokio_util::sync::CancellationToken;

use crate::services::Server;

/// Time between samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(60);
/// Time until the next look at counts that are not complete yet.
const INCOMPLETE_INTERVAL: Duration = Duration::from_secs(5);
/// Age up to which a page does without a new sample.
const FRESH: SignedDuration = SignedDuration::from_secs(5);
/// Age at which samples are dropped.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// Samples in memory.
const SAMPLES_MAX: usize = 24 * 60;
/// Domains of a sample.
const DOMAINS_MAX: usize = 20;

/// The samples of the last day.
#[derive(Debug, Default)]
pub struct QueueDepthHistory {
    /// Oldest first.
    samples: Mutex<VecDeque<DepthSample>>,
}

#[derive(Debug)]
struct DepthSample {
    at: Timestamp,
    queued: u64,
    deferred: u64,
    held: u64,
    /// Recipients of the domains with the longest queues.
    domains: Vec<(Arc<str>, u64)>,
}

impl DepthSample {
    fn total(&self) -> u64 {
        self.queued.saturating_add(self.deferred).saturating_add(self.held)
    }

    /// The recipients of a domain; `None` if the sample does not know.
    fn of_domain(&self, domain: &str) -> Option<u64> {
        let found = self.domains.iter().find(|(name, _)| &**name == domain).map(|(_, recipients)| *recipients);
        found.or((self.domains.len() < DOMAINS_MAX).then_some(0))
    }
}

/// The range of a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DepthRange {
    Hour,
    #[default]
    SixHours,
    Day,
}

impl DepthRange {
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "1h" => Some(Self::Hour),
            "6h" => Some(Self::SixHours),
            "24h" => Some(Self::Day),
            _ => None,
        }
    }

    fn periods(self) -> i64 {
        match self {
            Self::Hour => 60,
            Self::SixHours => 72,
            Self::Day => 96,
        }
    }

    /// The length of a period in minutes.
    fn minutes(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::SixHours => 5,
            Self::Day => 15,
        }
    }
}

impl QueueDepthHistory {
    /// Takes samples until `stop`.
    pub async fn run(&self, server: &Server, stop: &CancellationToken) {
        loop {
            let is_sampled = self.sample(server).await;
            let interval = if is_sampled { SAMPLE_INTERVAL } else { INCOMPLETE_INTERVAL };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Takes a sample for a page, unless the last one is [`FRESH`].
    pub async fn refresh(&self, server: &Server) {
        let now = server.clock.now();
        let is_fresh = self.samples.lock().back().is_some_and(|last| now.duration_since(last.at).abs() < FRESH);
        if !is_fresh {
            self.sample(server).await;
        }
    }

    /// Takes a sample. Returns false if the counts are not complete.
    async fn sample(&self, server: &Server) -> bool {
        let counts = Arc::clone(server.store.queue_counts());
        if counts.is_incomplete() {
            return false;
        }
        // The longest queues are searched for among all domains, which may be many.
        let Ok(summary) = tokio::task::spawn_blocking(move || counts.summary(DOMAINS_MAX)).await else { return false };
        self.record(server.clock.now(), &summary);
        true
    }

    /// Adds a sample, and drops those older than a day. Of the samples of a minute, the last one is kept.
    pub fn record(&self, now: Timestamp, summary: &QueueSummary) {
        let mut samples = self.samples.lock();
        let minute = |at: Timestamp| at.as_second().div_euclid(60);
        if samples.back().is_some_and(|last| minute(last.at) == minute(now)) {
            samples.pop_back();
        }
        while samples.len() >= SAMPLES_MAX || samples.front().is_some_and(|first| now.duration_since(first.at) > KEPT) {
            samples.pop_front();
        }
        let sum = |state: QueuedState| {
            summary.recipients.iter().filter(|(of, ..)| *of == state).map(|(.., recipients)| recipients).sum::<u64>()
        };
        let (queued, deferred, held) = (sum(QueuedState::Queued), sum(QueuedState::Deferred), sum(QueuedState::Held));
        let before = samples.back().map_or(&[][..], |last| last.domains.as_slice());
        // Most domains are those of the last sample: their names are shared.
        let name = |domain: &str| before.iter().map(|(name, _)| name).find(|name| &***name == domain).cloned();
        let domains = summary.top_domains.iter().take(DOMAINS_MAX);
        let domains = domains.map(|(domain, count)| (name(domain).unwrap_or_else(|| domain.as_str().into()), *count));
        let domains = domains.collect();
        samples.push_back(DepthSample { at: now, queued, deferred, held, domains });
    }

    /// JSON of the periods of a range, oldest first, for the whole queue or a domain. A period has the figures of its
    /// deepest sample, or nulls if it has none.
    pub fn view(&self, now: Timestamp, range: DepthRange, domain: Option<&str>) -> Value {
        let samples = self.samples.lock();
        let seconds = range.minutes() * 60;
        let last = now.as_second().div_euclid(seconds);
        let first = last - range.periods() + 1;
        let of_period = |period: i64| {
            let inside = samples.iter().filter(move |sample| sample.at.as_second().div_euclid(seconds) == period);
            let at = Timestamp::from_second(period * seconds).ok();
            match domain {
                Some(domain) => {
                    let waiting = inside.filter_map(|sample| sample.of_domain(domain)).max();
                    json!({"at": at, "waiting": waiting})
                }
                None => {
                    let deepest = inside.max_by_key(|sample| sample.total());
                    json!({
                        "at": at,
                        "queued": deepest.map(|sample| sample.queued),
                        "deferred": deepest.map(|sample| sample.deferred),
                        "held": deepest.map(|sample| sample.held),
                    })
                }
            }
        };
        json!({
            "period_minutes": range.minutes(),
            "periods": (first..=last).map(of_period).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::task::TaskClass;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
    }

    fn summary(queued: u64, deferred: u64, domains: &[(&str, u64)]) -> QueueSummary {
        let class = TaskClass::Transactional;
        QueueSummary {
            recipients: vec![(QueuedState::Queued, class, queued), (QueuedState::Deferred, class, deferred)],
            oldest_accepted_at: None,
            top_domains: domains.iter().map(|(domain, count)| ((*domain).to_owned(), *count)).collect(),
        }
    }

    fn last(view: &Value) -> &Value {
        view["periods"].as_array().unwrap().last().unwrap()
    }

    #[test]
    fn a_period_has_its_deepest_sample() {
        let history = QueueDepthHistory::default();
        history.record(at(0), &summary(1, 0, &[]));
        history.record(at(1), &summary(5, 2, &[("a.example", 7)]));
        history.record(at(2), &summary(3, 0, &[("a.example", 3)]));
        let view = history.view(at(3), DepthRange::SixHours, None);
        assert_eq!((view["period_minutes"].as_u64(), view["periods"].as_array().unwrap().len()), (Some(5), 72));
        assert_eq!((&last(&view)["queued"], &last(&view)["deferred"]), (&json!(5), &json!(2)));
        assert_eq!(view["periods"][70]["queued"], Value::Null, "before the first sample");
        let minutes = history.view(at(3), DepthRange::Hour, None);
        let queued: Vec<_> = minutes["periods"].as_array().unwrap()[56..].iter().map(|one| &one["queued"]).collect();
        assert_eq!(queued, [&json!(1), &json!(5), &json!(3), &Value::Null]);
    }

    #[test]
    fn a_domain_is_known_if_it_is_among_the_longest() {
        let history = QueueDepthHistory::default();
        history.record(at(0), &summary(9, 0, &[("a.example", 9)]));
        let waiting = |domain| last(&history.view(at(0), DepthRange::Hour, Some(domain)))["waiting"].clone();
        assert_eq!((waiting("a.example"), waiting("b.example")), (json!(9), json!(0)));
        let names: Vec<_> = (0..DOMAINS_MAX).map(|n| format!("{n}.example")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), 3)).collect();
        history.record(at(1), &summary(60, 0, &many));
        let view = history.view(at(1), DepthRange::Hour, Some("b.example"));
        assert_eq!(last(&view)["waiting"], Value::Null, "it may have up to three");
    }

    #[test]
    fn samples_are_kept_for_a_day() {
        let history = QueueDepthHistory::default();
        history.record(at(0), &summary(7, 0, &[]));
        history.record(at(0) + Duration::from_secs(59), &summary(2, 0, &[]));
        assert_eq!(last(&history.view(at(0), DepthRange::Hour, None))["queued"], 2, "one sample a minute");
        for minute in 0..3_000 {
            history.record(at(minute), &summary(1, 0, &[("a.example", 1)]));
        }
        assert_eq!(history.samples.lock().len(), SAMPLES_MAX);
        history.record(at(6_000), &summary(1, 0, &[]));
        assert_eq!(history.samples.lock().len(), 1, "the clock was advanced");
    }
}
