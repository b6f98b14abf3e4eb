//! `postrider admin pool`: from which addresses mail leaves, and how these are warmed up.

use clap::{Args, Subcommand};
use jiff::civil::Date;
use mail::given_name::PoolName;
use mail::pool::WarmUpOverride;

use crate::admin::AdminRequest;

/// Pools of source addresses.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// The pools: their addresses, whose mail leaves from them, how far they are warmed up
    List,
    /// Have an account's mail leave from a pool, whatever its plan
    Assign {
        /// The account's id or its owner's address
        #[arg(long)]
        account: String,
        /// The pool
        pool: PoolName,
    },
    /// Have an account's mail leave from the pool of its plan again
    Unassign {
        /// The account's id or its owner's address
        #[arg(long)]
        account: String,
    },
    /// Warm up a pool from another day on than configured, or end its warm-up
    WarmUp {
        /// The pool
        pool: PoolName,
        /// Since when
        #[command(flatten)]
        when: WarmUpArguments,
    },
}

/// Since when a pool is warmed up.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct WarmUpArguments {
    /// The first day of it (UTC), like 2026-01-31
    #[arg(long, value_name = "DAY")]
    since: Option<Date>,
    /// It is warm
    #[arg(long)]
    over: bool,
    /// As the configuration says
    #[arg(long)]
    as_configured: bool,
}

/// What the server is asked.
#[must_use]
pub fn build_request(command: &PoolCommand) -> AdminRequest {
    match command {
        PoolCommand::List => AdminRequest::PoolList,
        PoolCommand::Assign { account, pool } => {
            AdminRequest::PoolAssign { account: account.clone(), pool: Some(pool.clone()) }
        }
        PoolCommand::Unassign { account } => AdminRequest::PoolAssign { account: account.clone(), pool: None },
        PoolCommand::WarmUp { pool, when } => {
            let over = when.over.then_some(WarmUpOverride::Over);
            let warm_up = when.since.map(WarmUpOverride::Since).or(over);
            AdminRequest::PoolWarmUp { pool: pool.clone(), warm_up }
        }
    }
}
