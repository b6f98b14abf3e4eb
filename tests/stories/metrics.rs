//! `/metrics` while mail waits: the queue is counted without a scan, and the text is valid for Prometheus (the rules of
//! `promtool check metrics`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use model::recipient::RecipientState;
use postrider::metrics::Scrape;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

/// The metrics recorder of this process.
fn recorded() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    let install = || {
        let handle = PrometheusBuilder::new().install_recorder().unwrap();
        postrider::metric_help::describe_metrics();
        handle
    };
    HANDLE.get_or_init(install).clone()
}

fn scrape(world: &TestWorld, recorded: &PrometheusHandle) -> String {
    Scrape::new(world.server.clone(), recorded.clone(), world.config().data_dir).render()
}

/// Value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// Scrapes until the text satisfies the condition.
async fn wait(world: &TestWorld, recorded: &PrometheusHandle, condition: impl Fn(&str) -> bool) -> String {
    let waiting = async {
        loop {
            let text = scrape(world, recorded);
            if condition(&text) {
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    let result = tokio::time::timeout(crate::world::PATIENCE, waiting).await;
    result.unwrap_or_else(|_| panic!("{}", scrape(world, recorded)))
}

/// A parsed exposition text.
#[derive(Default)]
struct Exposition<'t> {
    help: BTreeMap<&'t str, &'t str>,
    types: BTreeMap<&'t str, &'t str>,
    /// Metric names in the order of their series.
    metrics: Vec<&'t str>,
    faults: Vec<String>,
}

impl<'t> Exposition<'t> {
    fn read(text: &'t str) -> Self {
        let mut read = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let about = |word: &str| line.strip_prefix(word).and_then(|rest| rest.split_once(' '));
            if let Some((name, text)) = about("# HELP ") {
                if text.is_empty() || read.help.insert(name, text).is_some() {
                    read.faults.push(format!("{name}: HELP is empty or duplicated"));
                }
            } else if let Some((name, kind)) = about("# TYPE ") {
                if read.types.insert(name, kind).is_some() {
                    read.faults.push(format!("{name}: duplicate TYPE"));
                }
            } else {
                read.series(line);
            }
        }
        read
    }

    fn is_summary(&self, name: &str) -> bool {
        self.types.get(name).is_some_and(|kind| matches!(*kind, "summary" | "histogram"))
    }

    fn series(&mut self, line: &'t str) {
        let series = line.split(['{', ' ']).next().unwrap();
        let of_summary = SUMMARY_ENDS.iter().find_map(|end| series.strip_suffix(end));
        let name = of_summary.filter(|name| self.is_summary(name)).unwrap_or(series);
        if self.metrics.last().is_none_or(|last| *last != name) {
            self.metrics.push(name);
        }
        if line.rsplit(' ').next().unwrap().parse::<f64>().is_err() {
            self.faults.push(format!("invalid value: {line}"));
        }
    }
}

const SUMMARY_ENDS: &[&str] = &["_sum", "_count", "_bucket"];
/// Metric types, and units other than base units: not allowed in names.
const NOT_IN_NAMES: &[&str] = &[
    "ms",
    "us",
    "ns",
    "milliseconds",
    "microseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "percent",
    "bits",
    "counter",
    "gauge",
    "summary",
    "histogram",
];

/// Violations of the rules of `promtool check metrics`.
fn lint(text: &str) -> Vec<String> {
    let mut read = Exposition::read(text);
    let mut faults = std::mem::take(&mut read.faults);
    let distinct: BTreeSet<&str> = read.metrics.iter().copied().collect();
    if distinct.len() != read.metrics.len() {
        faults.push(format!("the series of a metric are not contiguous: {:?}", read.metrics));
    }
    for name in distinct {
        let Some(kind) = read.types.get(name) else {
            faults.push(format!("{name}: no TYPE"));
            continue;
        };
        if !read.help.contains_key(name) {
            faults.push(format!("{name}: no HELP"));
        }
        if (*kind == "counter") != name.ends_with("_total") {
            faults.push(format!("{name}: a {kind}; counters, and they alone, end in _total"));
        }
        if name.bytes().any(|b| !matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
            faults.push(format!("{name}: not in snake case"));
        }
        if !read.is_summary(name) && SUMMARY_ENDS.iter().any(|end| name.ends_with(end)) {
            faults.push(format!("{name}: has a suffix reserved for summaries"));
        }
        let words = name.split('_').filter(|word| NOT_IN_NAMES.contains(word));
        faults.extend(words.map(|word| format!("{name}: contains the word {word}")));
    }
    faults
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_recipients_are_counted_by_state_class_and_domain() {
    let recorded = recorded();
    let world = TestWorld::start().await;
    world.sink.script("one@dest.example", &[Behaviour::AtRcpt("451 4.7.1 greylisted")]);
    let id = world.relay(&["one@dest.example"], "later").await;
    world.wait(id, |e| e.recipients[0].state == RecipientState::Deferred).await;
    let deferred = "postrider_queue_recipients{state=\"deferred\",class=\"transactional\"}";
    let is_whole = |text: &str| value(text, "postrider_queue_counted") == Some(1.0);
    let text = wait(&world, &recorded, |text| is_whole(text) && value(text, deferred) == Some(1.0)).await;
    assert_eq!(value(&text, "postrider_queue_domain_recipients{domain=\"dest.example\"}"), Some(1.0));
    assert_eq!(value(&text, "postrider_deferrals_total{category=\"policy\"}"), Some(1.0), "{text}");
    assert!(value(&text, "postrider_data_dir_free_bytes").unwrap() > 0.0);
    assert!(value(&text, "postrider_dns_lookups_total{outcome=\"records\"}").unwrap() >= 2.0);
    assert!(value(&text, "postrider_dns_lookup_seconds_count").unwrap() >= 2.0);
    world.server.clock.advance(std::time::Duration::from_secs(30));
    let age = value(&scrape(&world, &recorded), "postrider_queue_oldest_age_seconds").unwrap();
    assert!((30.0..300.0).contains(&age), "{age}");

    // After a restart the counts come from the stored queue.
    let world = world.restart("").await;
    wait(&world, &recorded, |text| is_whole(text) && value(text, deferred) == Some(1.0)).await;
    world.sink.script("two@dest.example", &[Behaviour::AtRcpt("550 5.1.1 no such user")]);
    let bounced = world.relay(&["two@dest.example"], "nobody").await;
    world.wait(bounced, |e| e.recipients[0].state == RecipientState::Bounced).await;
    world.server.clock.advance(std::time::Duration::from_secs(600));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    // The DSN about the bounce is delivered, too.
    let is_empty = |text: &str| value(text, "postrider_queue_oldest_age_seconds") == Some(0.0);
    let text = wait(&world, &recorded, |text| value(text, deferred) == Some(0.0) && is_empty(text)).await;
    assert!(!text.contains("domain=\"dest.example\""), "{text}");
    assert_eq!(value(&text, "postrider_bounces_total{category=\"unknown_user\",told=\"at_once\"}"), Some(1.0));
    assert_eq!(lint(&text), Vec::<String>::new(), "{text}");
    world.end().await;
}

#[test]
fn the_lint_finds_violations() {
    let invalid = "# HELP a_total x\n# TYPE a_total gauge\na_total 1\n# TYPE b counter\nb 1\nc_ms 2\n";
    let found = lint(invalid);
    for part in ["a_total: a gauge", "b: no HELP", "b: a counter", "c_ms: no TYPE"] {
        assert!(found.iter().any(|found| found.contains(part)), "{part}: {found:?}");
    }
}
