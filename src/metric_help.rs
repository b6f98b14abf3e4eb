//! HELP lines of `/metrics`: what each metric measures, in one sentence.

const COUNTERS: &[(&str, &str)] = &[
    ("postrider_acme_orders_total", "Certificate orders (ACME) that ended, by outcome."),
    ("postrider_api_connections_refused_total", "API connections refused because of too many connections."),
    ("postrider_api_requests_total", "API requests answered, by operation and class of status."),
    ("postrider_attempts_total", "Delivery attempts that ended, by outcome."),
    ("postrider_bounces_total", "Recipients that bounced, by category and source: SMTP reply or later report."),
    ("postrider_conversion_exports_total", "Conversion export requests to the operator's URL, by outcome."),
    ("postrider_conversions_total", "Conversions counted."),
    ("postrider_deferrals_total", "Delivery attempts that will be retried, by cause."),
    ("postrider_dns_lookups_total", "DNS lookups not answered by the cache, by outcome."),
    ("postrider_emails_accepted_total", "Emails accepted, by the API and SMTP."),
    ("postrider_failures_total", "Recipients that failed for reasons other than the recipient, by reason."),
    ("postrider_last_uses_dropped_total", "Uses of credentials that were not recorded because of too many at once."),
    ("postrider_mta_sts_fetches_total", "Fetches of MTA-STS policies, by outcome."),
    ("postrider_product_events_total", "Product events accepted."),
    ("postrider_proxy_headers_refused_total", "Connections from proxies without a valid PROXY header."),
    ("postrider_received_total", "Messages received for customers' domains."),
    (
        "postrider_requests_not_logged_total",
        "API requests missing in the request log because it could not be written in time.",
    ),
    ("postrider_returned_total", "Messages received at return paths, by mailbox and classification."),
    ("postrider_smtp_accept_errors_total", "SMTP connections that could not be accepted."),
    ("postrider_smtp_auth_failures_total", "Failed SMTP logins."),
    ("postrider_smtp_dictionaries_total", "MX sessions ended because of too many unknown recipients."),
    ("postrider_smtp_panics_total", "SMTP sessions ended by a bug of the server."),
    ("postrider_smtp_refused_total", "SMTP sessions and messages refused, by listener and reason."),
    ("postrider_smtp_sessions_refused_total", "SMTP sessions refused because of a session limit."),
    ("postrider_smtp_sessions_total", "SMTP sessions started."),
    ("postrider_spam_filter_failures_total", "Messages that the spam filter failed to check."),
    ("postrider_spilled_over_total", "Messages sent by another pool during a warm-up, by pool."),
    ("postrider_store_checkpoints_total", "Checkpoints of the store since the start."),
    ("postrider_store_commits_total", "Commits of the store since the start."),
    ("postrider_store_conflicts_total", "Conflicting commits of the store since the start."),
    ("postrider_store_groups_total", "Group commits of the store since the start."),
    ("postrider_store_log_written_bytes_total", "Bytes written to the store's log since the start."),
    ("postrider_tasks_damaged_total", "Queue tasks whose row or message cannot be read, since the start."),
    ("postrider_tls_reports_total", "TLS reports (RFC 8460) sent, by method."),
    ("postrider_tls_sessions_dropped_total", "TLS sessions missing in TLS reports because of too many destinations."),
    ("postrider_tls_sessions_total", "TLS sessions with mail hosts, by result."),
    ("postrider_visits_total", "Opens and clicks, by kind and outcome."),
    ("postrider_webhook_attempts_total", "Webhook attempts that ended, by outcome."),
];

const GAUGES: &[(&str, &str)] = &[
    ("postrider_body_bytes_in_memory", "Bytes of message bodies in memory for delivery."),
    ("postrider_certificate_expires_timestamp_seconds", "Expiry of the TLS certificate, in seconds since 1970."),
    ("postrider_data_dir_free_bytes", "Free bytes on the data directory's disk, from the operating system."),
    ("postrider_data_dir_size_bytes", "Size of the data directory's disk in bytes."),
    ("postrider_nodes", "Nodes of the cluster."),
    ("postrider_partitions", "Partitions of the queue owned by this node."),
    ("postrider_queue_counted", "1 when all queued recipients are counted, 0 while counting after a start."),
    ("postrider_queue_held", "1 while the queue is held after a restore, else 0."),
    ("postrider_queue_oldest_age_seconds", "Age of the oldest queued recipient, to the minute; 0 if there is none."),
    ("postrider_queue_recipients", "Recipients waiting for delivery, by state and class."),
    ("postrider_queues_on_disk", "Destinations with tasks that are not in memory."),
    ("postrider_store_free_bytes", "Free bytes on the store's disk, as last measured by the store."),
    ("postrider_store_live_body_bytes", "Bytes of message bodies in the store that are still needed."),
    ("postrider_store_pending_bytes", "Bytes in the store's log that are not in its index yet."),
    ("postrider_store_segments_bytes", "Bytes of the store's log files."),
    ("postrider_tasks_in_memory", "Queued tasks in memory."),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    ("postrider_account_first_attempt_seconds", "Seconds from acceptance to the first attempt, by account and class."),
    ("postrider_api_request_seconds", "Duration of API requests in seconds, by operation."),
    ("postrider_dns_lookup_seconds", "Duration of DNS lookups not answered by the cache, in seconds."),
    ("postrider_first_attempt_seconds", "Seconds from acceptance to the first attempt, by class."),
];

/// HELP text of the series by domain, which the recorder does not contain.
pub(crate) const TOP_DOMAINS_HELP: &str = "Recipients waiting for delivery, for the ten domains with the most.";

/// Registers the HELP texts with the recorder.
pub fn describe_metrics() {
    for (name, help) in COUNTERS {
        metrics::describe_counter!(*name, *help);
    }
    for (name, help) in GAUGES {
        metrics::describe_gauge!(*name, *help);
    }
    for (name, help) in HISTOGRAMS {
        metrics::describe_histogram!(*name, *help);
    }
}

/// All metrics with their Prometheus types.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds = [(COUNTERS, "counter"), (GAUGES, "gauge"), (HISTOGRAMS, "histogram")];
    kinds.into_iter().flat_map(|(metrics, kind)| metrics.iter().map(move |(name, _)| (*name, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn collect_sources(directory: &Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                collect_sources(&entry, texts);
            } else if entry.extension().is_some_and(|extension| extension == "rs") && !entry.ends_with("metric_help.rs")
            {
                texts.push(std::fs::read_to_string(&entry).unwrap());
            }
        }
    }

    /// Every metric in the sources has a HELP line, and every HELP line has a metric.
    #[test]
    fn every_metric_has_help() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut texts = Vec::new();
        for part in [
            "src",
            "api/src",
            "api/httpd/src",
            "queue/src",
            "events/src",
            "inbound/src",
            "accounts/src",
            "smtp/src",
            "net/src",
            "store/src",
            "affiliate/src",
            "dns/src",
        ] {
            collect_sources(&root.join(part), &mut texts);
        }
        let mut used = BTreeSet::new();
        for text in &texts {
            for call in ["counter!(", "gauge!(", "histogram!("] {
                for (at, _) in text.match_indices(call) {
                    let remaining = text[at + call.len()..].trim_start();
                    let name = remaining.strip_prefix('"').and_then(|remaining| remaining.split('"').next());
                    used.extend(name.map(str::to_owned));
                }
            }
            // Gauges set from a list.
            if text.contains("metrics::gauge!(name)") {
                let starts = text.split("(\"postrider_").skip(1);
                used.extend(starts.filter_map(|remaining| Some(format!("postrider_{}", remaining.split('"').next()?))));
            }
        }
        let described: BTreeSet<String> =
            [COUNTERS, GAUGES, HISTOGRAMS].concat().into_iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(used, described);
    }
}
