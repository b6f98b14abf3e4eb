//! The depth of the queue over time, as a chart of the whole queue or of a domain.

use jiff::Timestamp;

use crate::dashboard::kit::chart::{Chart, ChartKind, Series, Unit, as_f64};
use crate::dashboard::prelude::*;

/// The ranges: the word in the query, and the label.
const RANGES: [(&str, &str); 3] = [("1h", "Hour"), ("6h", "6 hours"), ("24h", "24 hours")];
/// The range without a query.
const DEFAULT_RANGE: &str = "6h";
/// The field of the query.
const FIELD: &str = "depth";

/// The answer of `queue_depth`.
#[answer]
pub(super) struct QueueDepth {
    #[serde(skip)]
    range: &'static str,
    period_minutes: u64,
    periods: Vec<DepthPeriod>,
    nodes: u64,
    /// The recipients of a domain now; none for the whole queue.
    pub(super) now: Option<DomainDepth>,
}

/// A period with its deepest sample; without fields if there is none.
#[answer]
struct DepthPeriod {
    at: Option<String>,
    queued: Option<u64>,
    deferred: Option<u64>,
    held: Option<u64>,
    /// All recipients of a domain.
    waiting: Option<u64>,
}

/// The recipients of a domain by state.
#[answer]
pub(super) struct DomainDepth {
    pub(super) queued: u64,
    pub(super) deferred: u64,
    pub(super) held: u64,
}

impl QueueDepth {
    /// Reads the depth of the whole queue or of a domain, in the range that the query names.
    pub(super) async fn read(context: &Context<'_>, domain: Option<&str>) -> Result<Self, Failure> {
        let asked = context.query().get(FIELD);
        let range = RANGES.iter().map(|(word, _)| *word).find(|word| *word == asked).unwrap_or(DEFAULT_RANGE);
        let mut body = json!({"range": range});
        if let Some(domain) = domain {
            body["domain"] = domain.into();
        }
        let depth: Self = context.read(&Call::new("queue_depth").json(body)).await?;
        Ok(Self { range, ..depth })
    }

    fn chart(&self) -> Chart {
        let label = |period: &DepthPeriod| {
            let at = period.at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
            at.map_or_else(|| "–".to_owned(), |at| at.strftime("%H:%M").to_string())
        };
        let labels = self.periods.iter().map(label).collect();
        let note = match self.period_minutes {
            1 => "One bar per minute.".to_owned(),
            minutes => format!("Each bar shows the maximum of {minutes} minutes."),
        };
        let scope = if self.nodes > 1 { " Partitions of this node." } else { "" };
        let chart = Chart::new(ChartKind::Bars, "Queue depth", Unit::Count, "From (UTC)", labels)
            .note(format!("Waiting recipients. {note} Kept in memory for a day, since the server started.{scope}"));
        if self.now.is_some() {
            return chart.series(self.series("Waiting", |period| period.waiting));
        }
        let chart = chart
            .series(self.series("Queued", |period| period.queued))
            .series(self.series("Deferred", |period| period.deferred));
        let has_held = self.periods.iter().any(|period| period.held.is_some_and(|held| held > 0));
        if has_held { chart.series(self.series("Held", |period| period.held)) } else { chart }
    }

    fn series(&self, label: &str, value: fn(&DepthPeriod) -> Option<u64>) -> Series {
        let values: Vec<_> = self.periods.iter().map(value).collect();
        let latest = values.iter().rev().find_map(|value| *value);
        let series = Series::new(label, values.into_iter().map(|value| value.map(as_f64)).collect());
        match latest {
            Some(latest) => series.total(grouped(latest)),
            None => series,
        }
    }
}

/// The chart with the choice of its range.
///
/// `path`: the path of the page.
pub(super) fn depth_section(depth: &QueueDepth, path: &str) -> impl Renderable {
    let link = move |word: &str| if word == DEFAULT_RANGE { path.to_owned() } else { format!("{path}?{FIELD}={word}") };
    maud! {
        section.depth {
            nav.tabs aria-label="Range of the queue depth" {
                @for (word, label) in RANGES {
                    a href=(link(word)) aria-current=[(word == depth.range).then_some("true")] { (label) }
                }
            }
            (depth.chart())
        }
    }
}
