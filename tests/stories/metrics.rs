//! `/metrics` while mail waits: what is queued is counted without a scan, and the text is as Prometheus wants it
//! (the rules of `promtool check metrics`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use mail::recipient::RecipientState;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use postrider::metrics::Scrape;

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

/// The recorder of this process.
fn recorded() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    let install = || {
        let handle = PrometheusBuilder::new().install_recorder().unwrap();
        postrider::metric_help::describe();
        handle
    };
    HANDLE.get_or_init(install).clone()
}

fn scrape(world: &TestWorld, recorded: &PrometheusHandle) -> String {
    Scrape::new(world.world.clone(), recorded.clone(), world.config().data_dir).render()
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// Waits until the text has what is wanted.
async fn wait(world: &TestWorld, recorded: &PrometheusHandle, wanted: impl Fn(&str) -> bool) -> String {
    let waiting = async {
        loop {
            let text = scrape(world, recorded);
            if wanted(&text) {
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(crate::world::PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{}", scrape(world, recorded)))
}

/// What is wrong with a text, by the rules of `promtool check metrics`.
fn lint(text: &str) -> Vec<String> {
    const OTHER_UNITS: &[&str] = &[
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
    ];
    let (mut help, mut types) = (BTreeMap::new(), BTreeMap::new());
    let (mut families, mut wrong) = (Vec::<String>::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            if text.is_empty() || help.insert(name.to_owned(), text.to_owned()).is_some() {
                wrong.push(format!("{name}: HELP is empty or stands twice"));
            }
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            if types.insert(name.to_owned(), kind.to_owned()).is_some() {
                wrong.push(format!("{name}: TYPE stands twice"));
            }
        } else {
            let series = line.split(['{', ' ']).next().unwrap();
            let of_summary = ["_sum", "_count", "_bucket"].iter().find_map(|end| series.strip_suffix(end));
            let is_summary = |name: &&str| {
                types.get(*name).is_some_and(|kind| matches!(kind.as_str(), "summary" | "histogram"))
            };
            let name = of_summary.filter(is_summary).unwrap_or(series);
            if families.last().is_none_or(|last| last != name) {
                families.push(name.to_owned());
            }
            if line.rsplit(' ').next().unwrap().parse::<f64>().is_err() {
                wrong.push(format!("no value: {line}"));
            }
        }
    }
    let distinct: BTreeSet<&String> = families.iter().collect();
    if distinct.len() != families.len() {
        wrong.push(format!("the series of a metric do not stand together: {families:?}"));
    }
    for name in distinct {
        let Some(kind) = types.get(name) else {
            wrong.push(format!("{name}: no TYPE"));
            continue;
        };
        if !help.contains_key(name) {
            wrong.push(format!("{name}: no HELP"));
        }
        if (kind == "counter") != name.ends_with("_total") {
            wrong.push(format!("{name}: a {kind}; counters, and they alone, end in _total"));
        }
        if name.bytes().any(|b| !matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
            wrong.push(format!("{name}: not in snake case"));
        }
        if kind != "summary"
            && kind != "histogram"
            && ["_sum", "_count", "_bucket"].iter().any(|end| name.ends_with(end))
        {
            wrong.push(format!("{name}: an ending of summaries"));
        }
        for word in name.split('_') {
            if OTHER_UNITS.contains(&word) || ["counter", "gauge", "summary", "histogram"].contains(&word) {
                wrong.push(format!("{name}: the word {word}"));
            }
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_counted_by_state_class_and_domain() {
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
    world.world.clock.advance(std::time::Duration::from_secs(30));
    let age = value(&scrape(&world, &recorded), "postrider_queue_oldest_age_seconds").unwrap();
    assert!((30.0..300.0).contains(&age), "{age}");

    // After a restart it is counted from what lies on disk.
    let world = world.restart("").await;
    wait(&world, &recorded, |text| is_whole(text) && value(text, deferred) == Some(1.0)).await;
    world.sink.script("two@dest.example", &[Behaviour::AtRcpt("550 5.1.1 no such user")]);
    let bounced = world.relay(&["two@dest.example"], "nobody").await;
    world.wait(bounced, |e| e.recipients[0].state == RecipientState::Bounced).await;
    world.world.clock.advance(std::time::Duration::from_secs(600));
    world.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    let text = wait(&world, &recorded, |text| value(text, deferred) == Some(0.0)).await;
    assert!(!text.contains("domain=\"dest.example\""), "{text}");
    assert_eq!(
        value(&text, "postrider_bounces_total{category=\"unknown_user\",told=\"at_once\"}"),
        Some(1.0)
    );
    assert_eq!(value(&text, "postrider_queue_oldest_age_seconds"), Some(0.0));
    assert_eq!(lint(&text), Vec::<String>::new(), "{text}");
    world.end().await;
}

#[test]
fn the_rules_find_what_is_wrong() {
    let wrong = "# HELP a_total x\n# TYPE a_total gauge\na_total 1\n# TYPE b counter\nb 1\nc_ms 2\n";
    let found = lint(wrong);
    for part in ["a_total: a gauge", "b: no HELP", "b: a counter", "c_ms: no TYPE"] {
        assert!(found.iter().any(|found| found.contains(part)), "{part}: {found:?}");
    }
}
