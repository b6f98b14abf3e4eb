//! The SMTP server: submission, relay and MX (RFC 5321, RFC 6409).
//!
//! ```text
//! socket ─► listener ─► LineFramer ─► SmtpSession::step(Input) ─► StepOutput
//!                           ▲                │ ReplyBuffer ─► socket, one write per pipelined group
//!                           └─ HookVerdict ◄─ SessionHandler ◄─ Hook
//! ```
//!
//! - [`session`] is the protocol state machine without a socket. Its input is bytes and verdicts, its output is replies
//!   and hooks, so every dialog can be tested as a text file.
//! - [`command`] is the table of verbs. [`parameter`] and [`path`] parse the arguments of MAIL and RCPT, [`line_framer`]
//!   frames command lines, [`data`] receives content, [`sasl`] parses AUTH.
//! - [`handler`] is the interface to the code that decides. [`sending_handlers`] implements it for submission and relay with the
//!   queue's intake. `submission` submits their messages and applies the `Service-*` fields. [`mx`] implements it for mail to
//!   local domains.
//! - [`listener`] owns sockets, TLS and timers. [`limits`] has the limits of one session.
//! - Resources that sessions share are limited per kind of listener ([`capacity`]): [`connection_limiter`] limits the number of
//!   sessions, [`content_budget`] the content in memory. Both give each holder a share ([`fair_share`]). [`login_throttle`] delays failed
//!   logins.

pub mod capacity;
pub mod command;
pub mod connection_limiter;
pub mod content_budget;
pub mod data;
pub mod handler;
pub mod limits;
pub mod line_framer;
pub mod listener;
pub mod login_throttle;
pub mod mx;
pub mod parameter;
pub mod path;
pub mod received_field;
pub mod replies;
pub mod sasl;
pub mod sending_handlers;
pub mod session;
pub mod settings;
pub mod submission;
