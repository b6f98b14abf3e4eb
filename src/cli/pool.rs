//! `postrider admin pool`: assigns accounts to pools of source addresses, and controls their warm-up.

use clap::{Args, Subcommand};
use jiff::civil::Date;
use model::pool::WarmUpOverride;
use model::slug::PoolName;

use crate::admin::AdminRequest;

/// Commands of `admin pool`.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// List pools: addresses, accounts and plans, warm-up
    List,
    /// Assign an account to a pool, regardless of its plan
    Assign {
        /// Account id or owner's address
        #[arg(long)]
        account: String,
        /// Pool name
        pool: PoolName,
    },
    /// Return an account to its plan's pool
    Unassign {
        /// Account id or owner's address
        #[arg(long)]
        account: String,
    },
    /// Override the start of a pool's warm-up, or end it
    WarmUp {
        /// Pool name
        pool: PoolName,
        #[command(flatten)]
        start: WarmUpArguments,
    },
}

/// New state of the warm-up.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct WarmUpArguments {
    /// First day (UTC), for example 2026-01-31
    #[arg(long, value_name = "DAY")]
    since: Option<Date>,
    /// End the warm-up
    #[arg(long)]
    over: bool,
    /// Use the configured start
    #[arg(long)]
    as_configured: bool,
}

/// Builds the admin request.
pub fn build_request(command: &PoolCommand) -> AdminRequest {
    match command {
        PoolCommand::List => AdminRequest::PoolList,
        PoolCommand::Assign { account, pool } => {
            AdminRequest::PoolAssign { account: account.clone(), pool: Some(pool.clone()) }
        }
        PoolCommand::Unassign { account } => AdminRequest::PoolAssign { account: account.clone(), pool: None },
        PoolCommand::WarmUp { pool, start } => {
            let end = start.over.then_some(WarmUpOverride::Over);
            let warm_up = start.since.map(WarmUpOverride::Since).or(end);
            AdminRequest::PoolWarmUp { pool: pool.clone(), warm_up }
        }
    }
}
