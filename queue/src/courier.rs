//! The garden gates: how mail leaves the house.

pub mod http;
pub mod smtp;
