//! Automations: multi-step workflows that events of a customer's product trigger.
//!
//! ```text
//! signal ─► match ─[ new runs + automation.started + due work | waiting runs resumed | runs cancelled ]
//! due work ─► advance ─[ step result + automation.step_completed + next due work ] ─► … ─► completed | failed
//! ```
//!
//! [`signal_matching`] writes the effects of a signal into the caller's commit: the one of `POST /events`, or of a job that the
//! outbox dispatcher enqueues for an event of the service ([`trigger_index`]). [`runner`] processes the due work of this node's
//! partitions, [`step`] decides the effect of a step, and [`email_step`] and [`sms_step`] execute it. [`jobs`] is background work
//! other than steps, and [`dry_run`] a dry run for users who test an automation.
//!
//! All state is on disk: a waiting run uses no memory. Each change of a run checks the version that was read. The
//! change, its event and the next due work are one commit. An email of a step is part of that commit, so a crash
//! neither repeats nor loses it.

mod definition_cache;
mod dry_run;
mod email_step;
pub(crate) mod engine;
mod jobs;
mod render_email;
pub(crate) mod runner;
mod signal_matching;
mod sms_provider;
mod sms_step;
mod step;
pub(crate) mod trigger_index;
mod trigger_signal;

pub use self::dry_run::{DryRun, DryRunError};
pub use self::engine::{AutomationEngine, SignalEffects};
pub use self::runner::AutomationRunner;
pub use self::sms_provider::SmsProvider;

/// Upper bound of the events deleted with a run; its steps record fewer.
pub const RUN_EVENTS_MAX: usize = 200;
