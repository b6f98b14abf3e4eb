//! The mail queue: intake, routing, scheduling, delivery, DSNs, the cluster and the operator's commands.
//!
//! [`intake`] accepts all mail: [`sender_authorization`] authorizes senders, [`template_cache`] caches compiled
//! templates, and [`idempotency`] executes each operation under a client's key once. [`subsystems`] builds delivery, and
//! [`background_tasks`] starts it. [`scheduler`] knows which tasks are in memory ([`in_flight`]) and which on disk
//! ([`due_index`]), and `dispatch` puts them into the ready queues of destinations ([`destination_queues`],
//! [`ready_queue`]). `attempt` runs the connections of the SMTP client ([`client`]), secured as [`transport_security`]
//! and [`mta_sts`] require, and [`outcome`] decides what follows from an attempt.
//!
//! [`weighted_fair_queue`] orders the tasks of a ready queue, [`pacing`] limits its connections and rate,
//! [`retry_schedule`] spaces the attempts, and [`routing`] finds the mail hosts of a domain. [`account_limits`] are those
//! of an account's plan. `tls_session_stats` counts TLS results, and [`tls_reporter`] sends them (RFC 8460).
//!
//! The crate `events` has what follows from a recorded event, `inbound` has received mail, and `accounts` has users, domains
//! and suppressions. They use this crate, and it does not use them: [`cluster::PartitionListener`] tells them of partitions.

pub mod account_limits;
mod attempt;
mod attempt_log;
pub mod background_tasks;
mod checked_out;
pub mod client;
pub mod cluster;
mod commit_retries;
mod deadline_timers;
mod deadlines;
mod delay_tracker;
mod delays;
pub mod delivery_metrics;
pub mod delivery_policy;
pub mod destination_admin;
pub mod destination_policies;
pub mod destination_queues;
mod dispatch;
pub mod dkim2;
pub mod dkim_signing;
mod dsn_builder;
pub mod dsn_request;
pub mod due_index;
pub mod hold_admin;
pub mod holds;
pub mod idempotency;
pub mod in_flight;
pub mod intake;
pub mod last_hour;
pub mod lease;
pub mod local_domains;
mod lookup_failures;
pub mod membership;
pub mod message_signer;
pub mod mta_sts;
pub mod outcome;
mod outcome_writer;
pub mod own_hostnames;
pub mod pacing;
pub mod partition_timers;
pub mod pause_state;
pub mod pending_dsns;
pub mod pool_admin;
mod prepared_message;
mod provider_limits;
pub mod queue_admin;
pub mod queue_command;
mod queue_counter;
mod queue_loader;
pub mod quota_tracker;
pub mod ready_queue;
pub mod recent_events;
pub mod reply_policy;
pub mod request_limiter;
pub mod retry_schedule;
mod route_table;
pub mod routing;
pub mod scheduler;
pub mod sender_authorization;
pub mod service_links;
pub mod services;
pub mod shared_plans;
pub mod smarthosts;
pub mod source_pools;
pub mod storage_quota;
pub mod submit_error;
pub mod subsystems;
mod supervisor;
pub mod suppression_event;
pub mod system_mailer;
mod task_reservation;
pub mod template_cache;
pub mod tls_reporter;
mod tls_session_stats;
pub mod transport_security;
mod warm_up;
pub mod weighted_fair_queue;
