//! The kitchen: what was handed in is accepted, planned, tried and settled here.
//!
//! [`accept`] is the one door ([`sender`] says who may come through it, [`templates`] keeps what is sent by
//! name, [`once`] what is done once), [`worker`] brings tasks to [`site`]s and back from disk ([`scheduled`], [`flight`]), [`attempt`]
//! runs the connections of [`courier`], as [`guard`] and [`sts`] find that it is to be protected, [`settle`] decides what
//! comes next. [`fair`], [`pace`], [`retry`]
//! and [`plan`] are the rules in between, [`rate`] and [`throttle`] the ones about those who ask;
//! `tls_sessions` counts how TLS went, and [`tls_reports`] tells those who ask for it;
//! [`people`] are the users of an account; [`clock`] and [`entropy`] are the only sources of time and chance in the house.

pub mod accept;
mod appointments;
mod attempt;
mod attempt_log;
pub mod automations;
pub mod billing;
pub mod bodies;
pub mod clock;
pub mod contacts;
pub mod courier;
mod deadlines;
mod delays;
pub mod destinations;
mod dispatch;
mod dkim2;
pub mod domains;
pub mod enrol;
pub mod entropy;
pub mod fair;
mod figures;
pub mod flight;
pub mod guard;
pub mod holds;
pub mod import;
pub mod inbound;
pub mod judgement;
pub mod last_hour;
pub mod lease;
mod lookup_failures;
pub mod membership;
pub mod meter;
mod notification;
pub mod once;
pub mod operate;
pub mod order;
pub mod owner_notice;
pub mod pace;
pub mod people;
mod places;
pub mod plan;
pub mod pools;
mod porter;
pub mod postman;
pub mod product_events;
mod provider;
pub mod quota;
pub mod rate;
pub mod receiving;
mod refill;
pub mod refusal;
mod report;
mod reservation;
mod retention;
pub mod retry;
pub mod returned;
pub mod scheduled;
mod sender;
pub mod settle;
mod settlement;
pub mod site;
pub mod smarthosts;
mod staged;
pub mod sts;
pub mod tell;
pub mod templates;
pub mod throttle;
pub mod tls_reports;
mod tls_sessions;
pub mod visits;
mod warm_up;
pub mod webhooks;
mod withdrawn;
pub mod worker;
