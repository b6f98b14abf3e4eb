//! Received mail: stored for customers, forwarded to the operator, or processed as a report about sent mail.
//!
//! [`service`] routes the recipients of a message from the MX listener, inspects the message and stores it. [`bounces`]
//! processes bounces, complaints, DMARC reports and TLS reports that arrive at return paths.

pub mod bounces;
pub mod service;
