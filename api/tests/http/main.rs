//! The API as its callers meet it, over a door on port 0: a file for each noun of the API, and for what
//! holds for all of them. One program, because each further one is linked anew with all the crates.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod account;
mod api_keys;
mod automations;
mod batch;
mod blocked;
mod bodies;
mod claims;
mod conversion_export;
mod document;
mod documented;
mod domain_connect;
mod domains;
mod door;
mod emails;
mod events;
mod hostile;
mod idempotency;
mod invitations;
mod lists;
mod lockout;
mod logs;
mod metrics;
mod plans;
mod proxied;
mod purse;
mod rates;
mod reach;
mod received;
mod rehearsal;
mod returned;
mod scheduled;
mod sessions;
mod smtp_credentials;
mod suppressions;
mod templated;
mod templates;
mod timeline;
mod tls;
mod tracking;
mod unsubscribe;
mod warnings;
mod webhooks;
mod wire;
mod wording;
mod world;
#[path = "../../../tests/world/zone.rs"]
mod zone;
