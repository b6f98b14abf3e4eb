//! `/metrics`: recorded metrics, current states, and the recipient domains with the longest queues.
//!
//! A scrape reads counters in memory ([`store::queue_counts`]) and queries the operating system for disk space. It does
//! not read the store. At most [`TOP_DOMAINS`] series by domain are written here directly, because the recorder would
//! retain every domain ever seen.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use metrics_exporter_prometheus::PrometheusHandle;
use store::queue_counts::QueueSummary;

use crate::metric_help::TOP_DOMAINS_HELP;
use crate::services::Server;

/// Maximum number of domains with their own series.
pub const TOP_DOMAINS: usize = 10;
const TOP_DOMAINS_NAME: &str = "postrider_queue_domain_recipients";

/// Renders `/metrics`.
#[derive(Clone)]
pub struct Scrape {
    server: Server,
    recorder: PrometheusHandle,
    data_dir: PathBuf,
}

impl Scrape {
    /// Creates the renderer for a server.
    pub fn new(server: Server, recorder: PrometheusHandle, data_dir: PathBuf) -> Self {
        Self { server, recorder, data_dir }
    }

    /// Renders the text in the format of Prometheus.
    pub fn render(&self) -> String {
        let summary = self.server.store.queue_counts().summary(TOP_DOMAINS);
        measure(&self.server, &summary);
        measure_disk(&self.data_dir);
        let mut text = self.recorder.render();
        write_top_domains(&mut text, &summary);
        text
    }
}

/// Sets gauges, and counters that the store maintains.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
fn measure(server: &Server, summary: &QueueSummary) {
    let (in_memory, body_bytes, queues_on_disk) = server.queue.delivery.memory_load();
    let health = server.store.health();
    for (name, value) in [
        ("postrider_tasks_in_memory", in_memory as f64),
        ("postrider_body_bytes_in_memory", body_bytes as f64),
        ("postrider_queues_on_disk", queues_on_disk as f64),
        ("postrider_queue_held", f64::from(u8::from(server.queue.delivery.queues.queue_hold().is_some()))),
        ("postrider_nodes", f64::from(server.queue.services.leases.nodes())),
        ("postrider_partitions", server.queue.services.leases.len() as f64),
        ("postrider_store_segments_bytes", health.segments_bytes as f64),
        ("postrider_store_live_body_bytes", health.live_body_bytes as f64),
        ("postrider_store_pending_bytes", health.pending_bytes as f64),
        ("postrider_store_free_bytes", health.free_bytes as f64),
    ] {
        metrics::gauge!(name).set(value);
    }
    metrics::counter!("postrider_store_commits_total").absolute(health.commits);
    metrics::counter!("postrider_store_groups_total").absolute(health.groups);
    metrics::counter!("postrider_store_conflicts_total").absolute(health.conflicts);
    metrics::counter!("postrider_store_log_written_bytes_total").absolute(health.log_bytes_written);
    metrics::counter!("postrider_store_checkpoints_total").absolute(health.checkpoints);
    for (state, class, recipients) in &summary.recipients {
        metrics::gauge!("postrider_queue_recipients", "state" => state.word(), "class" => class.word())
            .set(*recipients as f64);
    }
    let now = server.clock.now();
    let age = summary.oldest_accepted_at.map_or(0.0, |at| now.duration_since(at).as_secs_f64().max(0.0));
    metrics::gauge!("postrider_queue_oldest_age_seconds").set(age);
    let is_complete = !server.store.queue_counts().is_incomplete();
    metrics::gauge!("postrider_queue_counted").set(f64::from(u8::from(is_complete)));
}

/// Sets the disk space of the data directory. Sets nothing if it cannot be read.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
fn measure_disk(data_dir: &Path) {
    let Ok(disk) = rustix::fs::statvfs(data_dir) else { return };
    // Space available to unprivileged processes.
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let size = disk.f_blocks.saturating_mul(disk.f_frsize);
    metrics::gauge!("postrider_data_dir_free_bytes").set(free as f64);
    metrics::gauge!("postrider_data_dir_size_bytes").set(size as f64);
}

fn write_top_domains(text: &mut String, summary: &QueueSummary) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a String does not fail. A domain name has no characters that need escaping in a label value.
    let _ = writeln!(text, "# HELP {TOP_DOMAINS_NAME} {TOP_DOMAINS_HELP}\n# TYPE {TOP_DOMAINS_NAME} gauge");
    for (domain, recipients) in &summary.top_domains {
        let _ = writeln!(text, "{TOP_DOMAINS_NAME}{{domain=\"{domain}\"}} {recipients}");
    }
}
