//! Formats that the standards of mail define: addresses, header fields, MIME, replies and reports.
//!
//! No I/O, no async, no clock, no accounts: time and randomness are arguments. It is the lowest crate; of the other crates
//! it uses only the macros of `schema-derive`.

pub mod address;
pub mod address_pattern;
mod ascii_header;
pub mod attachment_policy;
pub mod bounce;
pub mod classify;
pub mod compose;
pub mod dane;
pub mod dmarc;
pub mod domain_name;
pub mod dsn;
pub mod encoded_word;
pub mod fingerprint;
pub mod header;
pub mod hexadecimal;
pub mod inbound_message;
pub mod mime;
pub mod mta_sts;
pub mod outcome;
pub mod pending_dsn;
pub mod percent;
pub mod received;
pub mod reply;
pub mod row;
pub mod sender_fields;
pub mod tls_report;
mod word_enum;
pub mod word_list;
