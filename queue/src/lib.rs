//! The mail queue: intake, delivery, events, automations and inbound processing.
//!
//! [`intake`] accepts all mail: [`sender_authorization`] authorizes senders, [`template_cache`] caches compiled
//! templates, and [`idempotency`] executes each operation under a client's key once. [`subsystems`] builds delivery, and
//! [`background_tasks`] starts it. [`scheduler`] knows which tasks are in memory ([`in_flight`]) and which on disk
//! ([`due_index`]), and [`dispatch`] puts them into the ready queues of destinations ([`destination_queues`],
//! [`ready_queue`]). [`attempt`] runs the connections of the SMTP client ([`client`]), secured as [`transport_security`]
//! and [`mta_sts`] require, and [`outcome`] decides what follows from an attempt.
//!
//! [`weighted_fair_queue`] orders the tasks of a ready queue, [`pacing`] limits its connections and rate,
//! [`retry_schedule`] spaces the attempts, and [`routing`] finds the mail hosts of a domain. [`request_limiter`] limits
//! requests of accounts. `tls_session_stats` counts TLS results, and [`tls_reporter`] sends them (RFC 8460). [`users`]
//! manages the users of an account.

pub mod account_limits;
pub mod account_subsystems;
pub mod account_tasks;
mod attempt;
mod attempt_log;
pub mod automations;
pub mod background_tasks;
pub mod billing;
pub mod bounces;
mod checked_out;
pub mod client;
pub mod cluster;
mod commit_retries;
pub mod credential_auth;
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
pub mod domains;
mod dsn_builder;
pub mod dsn_request;
pub mod due_index;
pub mod email_tracking;
pub mod event_subsystems;
pub mod event_tasks;
pub mod hold_admin;
pub mod holds;
pub mod idempotency;
pub mod in_flight;
pub mod inbound;
pub mod intake;
pub mod last_hour;
pub mod lease;
pub mod local_domains;
mod lookup_failures;
pub mod membership;
pub mod message_signer;
pub mod mta_sts;
pub mod outbox;
pub mod outcome;
mod outcome_writer;
pub mod own_hostnames;
pub mod owner_alert_queue;
pub mod owner_alerts;
pub mod pacing;
pub mod partition_timers;
pub mod pause_state;
pub mod pending_dsns;
pub mod pool_admin;
mod prepared_message;
pub mod product_events;
mod provider_limits;
pub mod provisioning;
pub mod queue_admin;
pub mod queue_command;
mod queue_counter;
mod queue_loader;
pub mod quota_tracker;
pub mod ready_queue;
pub mod recent_events;
pub mod reply_policy;
pub mod request_limiter;
mod retention;
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
pub mod suppression_import;
pub mod suppressions;
pub mod system_mailer;
mod task_reservation;
pub mod template_cache;
pub mod tls_reporter;
mod tls_session_stats;
pub mod transport_security;
pub mod users;
mod warm_up;
pub mod webhooks;
pub mod weighted_fair_queue;
