//! The front door for mail: SMTP as a server (RFC 5321, RFC 6409).
//!
//! ```text
//! socket ─► listener ─► inbox (frames lines) ─► session.step(Input) ─► Output
//!                          ▲                          │ Replies ─► socket, one write a group
//!                          └──── Answer ◄─ answers ◄──┘ Question
//! ```
//!
//! [`session`] knows the protocol and no socket: bytes and answers go in, replies and questions come
//! out, so that every dialog is a text file. [`command`] is the table of verbs, [`parameter`] and
//! [`path`] read what stands behind MAIL and RCPT, [`data`] receives content, [`sasl`] reads AUTH.
//! [`answers`] is the seam to whoever decides; [`policy`] decides with the hall, and `take` hands it
//! messages, with what their `Service-*` fields ask; [`mx`] takes mail for our own. [`listener`] owns
//! sockets, TLS and time; [`limits`] names the bounds of one session. What sessions share is bounded by kind of
//! listener ([`capacity`]): their number by [`peers`], the content in memory by [`budget`], both with a share for
//! each holder ([`quota`]); failed logins wait in [`logins`].

pub mod answers;
pub mod budget;
pub mod capacity;
pub mod command;
mod counts;
pub mod data;
pub mod inbox;
pub mod limits;
pub mod listener;
pub mod logins;
pub mod mx;
pub mod parameter;
pub mod path;
pub mod peers;
pub mod policy;
pub mod quota;
pub mod received;
pub mod replies;
pub mod sasl;
pub mod session;
pub mod settings;
mod take;
