//! Outgoing protocols: the SMTP client.

pub mod smtp;
