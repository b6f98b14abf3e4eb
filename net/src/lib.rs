//! Network, time and limits, without SMTP and messages: the guarded HTTP client, the PROXY protocol, local
//! addresses, clock and entropy, and limiters in bounded memory.
//!
//! [`clock`] and [`entropy`] are the only sources of time and randomness. [`http_client`] fetches URLs of customers and
//! strangers; each address is checked after it was resolved.

pub mod clock;
pub mod entropy;
pub mod http_client;
pub mod limit;
pub mod local_addresses;
pub mod proxy_protocol;
