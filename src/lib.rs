//! The wiring: no rules of its own. [`config`] is read, [`world`] is built from it, [`serve`] opens the
//! doors; [`dev`] does the same for a developer's machine; [`doctor`] looks for what
//! is wrong with an operator's; [`admin`] is the operator's door and
//! [`cli`] knocks at it. [`acme`] keeps certificates fresh, [`affairs`] runs what the
//! affiliate program does by itself, [`log`] writes the log, and [`clock_shift`] is how far the operator moved the clock.

pub mod acme;
pub mod admin;
pub mod affairs;
pub mod certificate;
pub mod cli;
pub mod clock_shift;
pub mod config;
pub mod dev;
pub mod doctor;
pub mod log;
pub mod metric_help;
pub mod metrics;
pub mod node;
pub mod reload;
pub mod serve;
pub mod world;
