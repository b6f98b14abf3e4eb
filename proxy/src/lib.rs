//! Who is behind a connection: the PROXY protocol, versions 1 and 2, as a load balancer in front of
//! a listener speaks it (HAProxy's `doc/proxy-protocol.txt`).
//!
//! ```text
//! accepted socket ─► Proxies::peer ─► from a proxy? ─ yes ─► header ─► the client's address
//!                                          └─ no ─► its own address, and not a byte is read
//! ```
//!
//! [`header`] reads bytes and knows no socket; [`proxies`] knows whom to believe, and reads no byte
//! more than the header has. Both front doors, SMTP and HTTP, begin here.

pub mod header;
pub mod proxies;
