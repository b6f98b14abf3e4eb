//! Limits in bounded memory: rates ([`rate_limiter`]), connections ([`fair_share`]), memory ([`memory_budget`],
//! [`body_budget`]) and concurrent work ([`keyed_semaphore`], [`resizable_semaphore`]); and turns of accounts
//! ([`round_robin`]).

pub mod body_budget;
pub mod bounded_counters;
pub mod fair_share;
pub mod keyed_semaphore;
pub mod memory_budget;
pub mod rate_limit;
pub mod rate_limiter;
pub mod resizable_semaphore;
pub mod round_robin;
