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
//! sockets, TLS and time; [`peers`] counts who is connected; [`limits`] names every bound.

pub mod answers;
pub mod command;
pub mod data;
pub mod inbox;
pub mod limits;
pub mod listener;
pub mod mx;
pub mod parameter;
pub mod path;
pub mod peers;
pub mod policy;
pub mod received;
pub mod replies;
pub mod sasl;
pub mod session;
pub mod settings;
mod take;
