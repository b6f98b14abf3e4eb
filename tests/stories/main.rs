//! End-to-end tests: each file covers one feature with a complete postrider in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../store/tests/database/mod.rs"]
mod database;
#[path = "../world/mod.rs"]
mod world;

mod answered;
mod automated;
mod behind_a_proxy;
mod certificates;
mod dead_destination;
mod deadlines;
mod delivery;
mod development;
mod dkim2;
mod doctor;
mod earlier_store;
mod enforced_tls;
mod fail_over;
mod give_up;
mod holds;
mod inbound;
mod limits;
mod logs;
mod metrics;
mod new_keys;
mod operator;
mod operator_search;
mod own_domains;
mod private_files;
mod rate_limit;
mod reload;
mod reports;
mod restart;
mod retention;
mod retry;
mod scheduled;
mod service_fields;
mod slow_destination;
mod source_pools;
mod steered_nodes;
mod store_check;
mod suppression;
mod tls_reports;
mod told_to_wait;
mod two_nodes;
