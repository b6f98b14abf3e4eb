//! End-to-end tests: each file covers one feature with a complete postrider in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../store/tests/database/mod.rs"]
mod database;
#[path = "../world/mod.rs"]
mod world;

mod assistant_tools;
mod auto_replies;
mod automations_on_nodes;
mod behind_a_proxy;
mod certificates;
mod console;
mod dashboard;
mod deadlines;
mod delivery;
mod development;
mod dkim2;
mod dkim_rotation;
mod doctor;
mod earlier_store;
mod fail_over;
mod give_up;
mod holds;
mod inbound;
mod injected_mail;
mod limits;
mod local_domains;
mod logs;
mod metrics;
mod operator;
mod operator_search;
mod private_files;
mod queue_commands_on_nodes;
mod rate_limit;
mod reload;
mod reply_pauses;
mod reports;
mod restart;
mod retention;
mod retry;
mod scheduled;
mod service_fields;
mod slow_destination;
mod source_pools;
mod store_check;
mod suppression;
mod tls_mode;
mod tls_reports;
mod two_nodes;
mod unreachable_destination;
