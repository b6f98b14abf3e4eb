//! The window: what the world says about names, and what we say under ours.
//!
//! [`lookup`] asks the DNS, [`mail_hosts`] makes of the answer an order in which to try hosts.
//! [`dkim_key`] makes keys, [`seal`] keeps them encrypted, [`sign`] signs with them, [`signers`] keeps
//! ready ones at hand, [`signing_pool`] runs them off the event loop. [`verdict`] reads the signatures
//! of others, [`sender_policy`] the SPF records. [`setup`] looks whether the records that a sending domain
//! needs stand in its own zone, within the bounds that [`limiter`] counts, [`provider`] publishes them where the zone is kept. Nothing here knows of
//! accounts, queues or stores.

mod answer_cache;
pub mod dkim_key;
mod ipv6;
pub mod limiter;
pub mod lookup;
pub mod mail_hosts;
pub mod plan;
mod relax;
pub mod seal;
pub mod sender_policy;
pub mod setup;
pub mod sign;
pub mod signers;
pub mod signing_pool;
pub mod verdict;
