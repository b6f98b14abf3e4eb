//! Publishing a domain's records where its zone is kept: at a provider, or at a server that takes dynamic updates.
//!
//! ```text
//! Credentials ─┐
//! wanted ──────┼─► Publisher::apply ─► zone (what stands there) ─► plan ─► zone (create, replace) ─► Report
//! domain ──────┘                                                    └─ dry run or conflict ────────► Report
//! ```
//!
//! What stands is read at the provider itself, not in the DNS, where old answers may be kept. [`dns::plan`] decides and is
//! pure; nothing is done when anything is in conflict. Then each change is made in turn, and the first that fails
//! ends it: the [`Report`] says of each what became of it. As what stands is skipped, applying again goes on where
//! it ended.
//!
//! Without credentials, the customer can be sent to the provider's own page ([`Publisher::connect`]).
//!
//! The providers' interfaces are spoken by dns-update, whose addresses for them are fixed. Three things it does not do
//! as safely as a domain's mail deserves are done here: a text is replaced in one step at Cloudflare
//! (`cloudflare.rs`) and by dynamic update (`rfc2136.rs`), and Route 53's lists are read with alias records in
//! them (`route53.rs`).
//!
//! Limits: 32 records, 15 seconds a step, a minute in all, messages of others cut to 300 characters. Redirects are not
//! followed. Secrets are in no `Debug`, no message and no log.

mod cloudflare;
mod connect;
mod credentials;
mod fault;
mod fetch;
mod providers;
mod publisher;
mod quotes;
mod rfc2136;
mod route53;
mod secret;
mod server;
mod signature;
mod zone;

pub use connect::{DomainConnectError, DomainConnectTemplate, TemplateNameError};
pub use credentials::{CredentialField, CredentialFieldError, ProviderCredentials, credential_fields};
pub use dns::plan::{ChangeAction, ExistingRecord, ExistingRecordType, MergePolicy, RecordChange, plan_changes};
pub use fault::{ApplyError, UpstreamError, UpstreamFault};
pub use fetch::FetchSettings;
pub use providers::{Provider, UnknownProvider};
pub use publisher::{AppliedChange, PublishReport, PublishRequest, Publisher, RECORDS_MAX, RecordChangeOutcome};
pub use secret::SecretText;
pub use server::{ServerAddress, ServerError};
pub use signature::{RequestKey, RequestKeyError};
