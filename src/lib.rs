//! Wiring of the server: builds the parts and connects them; the rules are in the other crates.
//!
//! [`config`] is read, [`services`] builds the services from it, and [`serve`] opens the listeners.
//! [`dev`] does this for a developer's machine. [`doctor`] checks an installation and its environment; [`setup`] leads
//! from an installed package to a server that sends mail.
//! [`admin`] is the operator's socket; [`cli`] is its client and the command line.
//! [`acme`] renews certificates, [`log`] writes the log,
//! [`docs_pages`] serves the API reference, [`dashboard`] the dashboard with its forms ([`form_data`]), [`console`] the
//! the operator's console, [`mcp`] the tools for assistants, and [`clock_shift`] stores how far the operator has advanced the
//! clock.

pub mod acme;
pub mod active_certificates;
pub mod admin;
pub mod certificate;
pub mod cli;
pub mod clock_shift;
pub mod config;
pub mod console;
pub mod dashboard;
pub mod dev;
pub mod docs_pages;
pub mod doctor;
pub mod form_data;
pub mod log;
pub mod mcp;
pub mod metric_help;
pub mod metrics;
pub mod node;
pub mod reload;
pub mod serve;
pub mod services;
pub mod setup;
mod start_wait;
pub mod store_references;
