//! The PROXY protocol, versions 1 and 2: the client's address of a connection from a load balancer (HAProxy's
//! `doc/proxy-protocol.txt`).
//!
//! ```text
//! accepted socket ─► TrustedProxies::client_address ─► trusted proxy? ─ yes ─► header ─► the client's address
//!                                                           └─ no ─► the peer's address; no byte is read
//! ```
//!
//! [`header`] parses bytes without I/O. [`trusted_proxies`] has the trusted networks and reads exactly the header from the
//! socket. The SMTP and HTTP listeners both use it.

pub mod header;
pub mod trusted_proxies;
