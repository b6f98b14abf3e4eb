//! The garden gates: how mail leaves the house.

pub mod smtp;
