//! DNS lookups, message signing, and verification of sender authentication.
//!
//! - [`resolver`] is the caching resolver. [`mx`] sorts the hosts of an MX answer.
//! - [`dkim_key`] generates DKIM keys, [`secrets`] encrypts them for storage, [`sign`] signs with them, [`signer_cache`] caches
//!   parsed ones, and [`signing_pool`] signs off the event loop.
//! - [`authentication`] verifies signatures of received mail, [`spf`] evaluates SPF.
//! - [`domain_check`] checks whether a sending domain's zone has the required records, [`query_limiter`] limits its queries, and
//!   [`record_changes`] computes the changes that a DNS provider would publish.
//!
//! This crate does not depend on accounts, queues or stores.

mod answer_cache;
pub mod authentication;
mod canonicalization;
pub mod dkim_key;
pub mod domain_check;
mod ipv6;
pub mod mx;
pub mod query_limiter;
pub mod record_changes;
pub mod resolver;
pub mod secrets;
pub mod sign;
pub mod signer_cache;
pub mod signing_pool;
pub mod spf;
