//! Explanations in the words of the dashboard, the command line and the MCP tools: "why is it not there yet" for each
//! recipient of an email, and how a sending domain stands.

pub mod dmarc;
pub mod domain;
pub mod explanation;
pub mod reply;
pub mod wait;
