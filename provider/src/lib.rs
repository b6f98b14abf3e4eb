//! Publishes a domain's records at its DNS provider, or at a server that accepts dynamic updates.
//!
//! ```text
//! ProviderCredentials ─┐
//! wanted records ──────┼─► Publisher::apply ─► ProviderZone ─► plan_changes ─► create, replace ─► PublishReport
//! domain ──────────────┘                      (existing records)    └─ dry run or conflict ────► PublishReport
//! ```
//!
//! Existing records are read from the provider's API and not from the DNS, where answers may be cached. [`dns::record_changes`]
//! is pure and decides on the changes; a conflict prevents all of them. The changes are then made one after another,
//! and the first failure ends the publication. The [`PublishReport`] has the outcome of each. Existing records are
//! skipped, so a further publication continues where a failed one ended.
//!
//! Without credentials, the customer can be sent to the provider's own page ([`Publisher::domain_connect_url`]).
//!
//! dns-update implements the providers' APIs, with fixed endpoints. Three operations are implemented here, because
//! dns-update's are not safe enough: replacing a text atomically at Cloudflare (`cloudflare.rs`) and by dynamic update
//! (`rfc2136.rs`), and reading Route 53's record lists with alias records in them (`route53.rs`).
//!
//! Limits: 32 records, 15 seconds per step, a minute in total, messages of providers cut to 300 characters. Redirects
//! are not followed. Secrets are neither in `Debug` output nor in messages nor in the log.

mod cloudflare;
mod credentials;
mod domain_connect;
mod fetch;
mod providers;
mod publisher;
mod request_signature;
mod rfc2136;
mod route53;
mod secret;
mod server;
mod txt_quoting;
mod upstream_error;
mod zone;

pub use credentials::{CredentialField, CredentialFieldError, ProviderCredentials};
pub use dns::record_changes::{
    ChangeAction, ExistingRecord, ExistingRecordType, MergePolicy, RecordChange, plan_changes,
};
pub use domain_connect::{DomainConnectError, DomainConnectTemplate, TemplateNameError};
pub use fetch::FetchSettings;
pub use providers::{Provider, UnknownProvider};
pub use publisher::{AppliedChange, PublishReport, PublishRequest, Publisher, RECORDS_MAX, RecordChangeOutcome};
pub use request_signature::{RequestKey, RequestKeyError};
pub use secret::SecretText;
pub use server::{ServerAddress, ServerError};
pub use upstream_error::{ApplyError, UpstreamError, UpstreamFault};
