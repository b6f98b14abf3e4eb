//! Outgoing protocols: the SMTP client and the HTTP client.

pub mod http;
pub mod smtp;
