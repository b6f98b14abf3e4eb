//! The window: what the world says about names, and what we say under ours.
//!
//! [`lookup`] asks the DNS, [`mail_hosts`] makes of the answer an order in which to try hosts.
//! [`dkim_key`] makes keys, [`seal`] keeps them encrypted, [`sign`] signs with them, [`signers`] keeps
//! ready ones at hand, [`signing_pool`] runs them off the event loop. [`verdict`] reads the signatures
//! of others. [`provider`] publishes a domain's records where its zone is kept; [`egress`] says which addresses
//! a name given by a stranger may lead to. Nothing here knows of accounts, queues or stores.

pub mod dkim_key;
pub mod egress;
mod ipv6;
pub mod lookup;
pub mod mail_hosts;
pub mod provider;
mod relax;
pub mod seal;
pub mod sign;
pub mod signers;
pub mod signing_pool;
pub mod verdict;
